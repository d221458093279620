"""How one request is carried to a provider, whoever carries it: as often and as long as was said.

A request that was turned away, or that nothing answered, may be sent again: a model's answer has no
effect in the world. Once a reply has begun it is never asked for twice.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Protocol

from landed.agent.providers.dialect import Fields, ProviderError, described, text
from landed.agent.providers.draft import Draft, ReplyError
from landed.agent.providers.patience import Backoff, Patience
from landed.tools.retry_after import retry_after_s

DRAIN_S = 0.1
"""How long the last bytes behind a whole reply are waited for, to keep the connection."""

AGAIN = frozenset({408, 409, 429})
"""Statuses below 500 after which the same request may be answered; 500 and more all may."""

SPENT = frozenset({"insufficient_quota", "billing_error"})
"""Kinds of refusal that no waiting mends, whatever their status is."""


class AgainError(Exception):
    """The provider turned the request away, or nothing answered it: another try may do better.

    `retry_after` is what it said about when, in its own words.
    """

    def __init__(self, text: str, *, retry_after: str = "") -> None:
        super().__init__(text)
        self.retry_after = retry_after


class SilenceError(ReplyError):
    """Nothing was heard for too long; the request may still go on over there."""


class RefusedError(Exception):
    """The provider turned the request away, and would again."""


def refusal(status: int, error: Fields, retry_after: str) -> AgainError | RefusedError:
    """Return what a request that was turned away is: `error` is the provider's own object."""
    words = f"HTTP {status}, {described(error)}"
    spent = {text(error.get("type")), text(error.get("code"))} & SPENT
    if spent or not (status in AGAIN or status >= 500):
        return RefusedError(words)
    return AgainError(words, retry_after=retry_after)


class Exchange(Protocol):
    """Sends a request once, and hears the reply into a draft."""

    async def __call__(
        self, body: bytes, headers: Mapping[str, str], draft: Draft, alive: Callable[[], None]
    ) -> None:
        """Send, and read until the draft is over or nothing more comes; `alive` at each byte.

        Raises `AgainError`, `RefusedError`, `ProviderError` and `ReplyError`.
        """
        ...

    def secrets(self) -> Sequence[str]:
        """Return what it sends beside that, and nobody may be shown."""
        ...

    async def aclose(self) -> None:
        """Close the connections of this loop; the next request makes new ones."""
        ...


class Wire:
    """Carries requests patiently over an exchange.

    `now` (UTC seconds) reads the dates of a `Retry-After`; `chance` (0 to 1) spreads the pauses.
    """

    def __init__(
        self,
        exchange: Exchange,
        *,
        patience: Patience,
        backoff: Backoff,
        now: Callable[[], float],
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._exchange = exchange
        self._patience = patience
        self._backoff = backoff
        self._now = now
        self._chance = chance

    async def carry(
        self, body: bytes, headers: Mapping[str, str], begin: Callable[[], Draft]
    ) -> None:
        """Bring the last draft that `begin` made, one for each try, to the end of its reply.

        Raises `AgainError`, `RefusedError`, `ProviderError` and `ReplyError`.
        """
        tried = 0
        while True:
            draft, tried = begin(), tried + 1
            try:
                return await self._once(body, headers, draft)
            except (AgainError, ProviderError) as error:
                pause_s = self._pause_s(error, draft, tried)
                if pause_s is None:
                    raise
            await asyncio.sleep(pause_s)

    def secrets(self) -> Sequence[str]:
        """Return what the exchange sends by itself, and nobody may be shown."""
        return self._exchange.secrets()

    async def aclose(self) -> None:
        """Close the connections of this loop; the next request makes new ones."""
        await self._exchange.aclose()

    def _pause_s(self, error: AgainError | ProviderError, draft: Draft, tried: int) -> float | None:
        if isinstance(error, ProviderError):
            asked_s, over = None, draft.begun or not error.again
        else:
            asked_s, over = retry_after_s(error.retry_after, self._now()), False
        pause_s = self._backoff.pause_s(tried, asked_s=asked_s, chance=self._chance())
        return None if over else pause_s

    async def _once(self, body: bytes, headers: Mapping[str, str], draft: Draft) -> None:
        """Send the request once, and read until the reply is over or nothing is heard any more."""
        loop, bounds, heard = asyncio.get_running_loop(), self._patience, False

        def alive() -> None:
            nonlocal heard
            heard = True
            limit.reschedule(loop.time() + bounds.between_s)

        try:
            async with asyncio.timeout(bounds.first_byte_s) as limit:
                await self._exchange(body, headers, draft, alive)
        except TimeoutError:
            silent_s = bounds.between_s if heard else bounds.first_byte_s
            raise SilenceError(f"nothing was heard for {silent_s:g} s") from None


async def drained(rest: AsyncIterator[object]) -> None:
    """Read what stands behind a whole reply, so that the connection can serve the next request."""
    with suppress(ReplyError, TimeoutError):
        async with asyncio.timeout(DRAIN_S):
            async for _ in rest:
                pass
