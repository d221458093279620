"""Carries one request to a provider and hands on what comes back, as it comes.

A request that was turned away, or that nothing answered, may be sent again: a model's answer has no
effect in the world. Once a reply has begun it is never asked for twice.
"""

import asyncio
import json
import random
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, TypeAlias

from landed.agent.providers.dialect import Dialect, ProviderError, described, fields, text
from landed.agent.providers.draft import Draft, ReplyError
from landed.agent.providers.patience import Backoff, Patience
from landed.agent.providers.sse import Event, Events
from landed.tools.retry_after import retry_after_s

if TYPE_CHECKING:
    import httpx2

REPLY_MAX_BYTES = 32 * 1024 * 1024
"""Bytes read of one reply, with everything around its words."""

REFUSAL_MAX_BYTES = 64 * 1024
"""Bytes read of what a provider says that turned a request away."""

DRAIN_S = 0.1
"""How long the last bytes behind a whole reply are waited for, to keep the connection."""

AGAIN = frozenset({408, 409, 429})
"""Statuses below 500 after which the same request may be answered; 500 and more all may."""

SPENT = frozenset({"insufficient_quota", "billing_error"})
"""Kinds of refusal that no waiting mends, whatever their status is."""

_OURS = {
    "accept": "text/event-stream, application/json",
    "accept-encoding": "identity",
    "content-type": "application/json",
    "user-agent": "landed",
}


_Clients: TypeAlias = "weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, httpx2.AsyncClient]"


class AgainError(Exception):
    """The provider turned the request away, or nothing answered it: another try may do better."""

    def __init__(self, text: str, *, asked_s: float | None = None) -> None:
        super().__init__(text)
        self.asked_s = asked_s


class SilenceError(ReplyError):
    """Nothing was heard for too long; the request may still go on over there."""


class RefusedError(Exception):
    """The provider turned the request away, and would again."""


class Wire:
    """Where requests go, and how patiently. A `transport` that is given is closed by its owner.

    `now` (UTC seconds) reads the dates of a `Retry-After`; `chance` (0 to 1) spreads the pauses.
    Otherwise connections are made for each loop; `aclose` closes those of the running one.
    """

    def __init__(
        self,
        dialect: Dialect,
        url: str,
        *,
        patience: Patience,
        backoff: Backoff,
        transport: "httpx2.AsyncBaseTransport | None" = None,
        now: Callable[[], float],
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._dialect = dialect
        self._url = url
        self._patience = patience
        self._backoff = backoff
        self._transport = transport
        self._now = now
        self._chance = chance
        # Connections belong to the loop they were made on; on another they are of no use.
        self._clients: _Clients = weakref.WeakKeyDictionary()

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

    async def aclose(self) -> None:
        """Close the connections of this loop; the next request makes new ones."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None and self._transport is None:
            await client.aclose()

    def _pause_s(self, error: AgainError | ProviderError, draft: Draft, tried: int) -> float | None:
        if isinstance(error, ProviderError) and (draft.begun or not error.again):
            return None
        asked_s = error.asked_s if isinstance(error, AgainError) else None
        return self._backoff.pause_s(tried, asked_s=asked_s, chance=self._chance())

    async def _once(self, body: bytes, headers: Mapping[str, str], draft: Draft) -> None:
        """Send the request once, and read until the reply is over or nothing is heard any more."""
        loop, bounds, heard = asyncio.get_running_loop(), self._patience, False

        def alive() -> None:
            nonlocal heard
            heard = True
            limit.reschedule(loop.time() + bounds.between_s)

        try:
            async with asyncio.timeout(bounds.first_byte_s) as limit:
                response = await self._sent(body, headers)
                async with aclosing(response), aclosing(_chunks(response, alive)) as chunks:
                    await self._read(response, chunks, draft)
        except TimeoutError:
            silent_s = bounds.between_s if heard else bounds.first_byte_s
            raise SilenceError(f"nothing was heard for {silent_s:g} s") from None

    async def _sent(self, body: bytes, headers: Mapping[str, str]) -> "httpx2.Response":
        import httpx2

        client, every = self._opened(), _OURS | dict(headers)
        request = client.build_request("POST", self._url, content=body, headers=every)
        try:
            return await client.send(request, stream=True)
        except httpx2.TransportError as error:
            raise AgainError(f"nothing answered ({type(error).__name__})") from error

    async def _read(
        self, response: "httpx2.Response", chunks: AsyncIterator[bytes], draft: Draft
    ) -> None:
        if response.status_code != 200:
            raise self._refusal(response, await _start_of(chunks))
        if response.headers.get("content-type", "").startswith("application/json"):
            whole = b"".join([chunk async for chunk in chunks])
            self._dialect.whole(draft, _object(whole))
            return
        events = Events()
        async for chunk in chunks:
            for event in events.feed(chunk):
                self._hear(draft, event)
                if draft.over:
                    await _drained(chunks)
                    return

    def _hear(self, draft: Draft, event: Event) -> None:
        if self._dialect.done and event.text.strip() == self._dialect.done:
            draft.over = True
        else:
            self._dialect.hear(draft, _object(event.text))

    def _refusal(self, response: "httpx2.Response", body: bytes) -> AgainError | RefusedError:
        status, headers = response.status_code, response.headers
        try:
            error = fields(fields(json.loads(body)).get("error"))
        except (ValueError, RecursionError):
            error = fields({"message": body[:200].decode(errors="replace")} if body else None)
        words = f"HTTP {status}, {described(error)}"
        spent = {text(error.get("type")), text(error.get("code"))} & SPENT
        if spent or not (status in AGAIN or status >= 500):
            return RefusedError(words)
        asked_s = retry_after_s(headers.get("retry-after", ""), self._now())
        return AgainError(words, asked_s=asked_s)

    def _opened(self) -> "httpx2.AsyncClient":
        import httpx2

        loop = asyncio.get_running_loop()
        client = self._clients.get(loop)
        if client is None:
            bounds = httpx2.Timeout(None, connect=self._patience.connect_s)
            client = httpx2.AsyncClient(transport=self._transport, timeout=bounds)
            self._clients[loop] = client
        return client


async def _chunks(
    response: "httpx2.Response", alive: Callable[[], None]
) -> AsyncGenerator[bytes, None]:
    """Yield the bytes of the reply, `alive` at each.

    Raises `ReplyError` where they end too early, or do not end.
    """
    import httpx2

    size = 0
    try:
        async with aclosing(response.aiter_bytes()) as chunks:
            async for chunk in chunks:
                alive()
                size += len(chunk)
                if size > REPLY_MAX_BYTES:
                    raise ReplyError(f"the reply has more than {REPLY_MAX_BYTES} bytes")
                yield chunk
    except httpx2.TransportError as error:
        raise ReplyError(f"the reply was cut off ({type(error).__name__})") from error


async def _start_of(chunks: AsyncIterator[bytes]) -> bytes:
    body = bytearray()
    with suppress(ReplyError):
        async for chunk in chunks:
            body += chunk
            if len(body) > REFUSAL_MAX_BYTES:
                break
    return bytes(body)


async def _drained(chunks: AsyncIterator[bytes]) -> None:
    """Read what stands behind a whole reply, so that the connection can serve the next request."""
    with suppress(ReplyError, TimeoutError):
        async with asyncio.timeout(DRAIN_S):
            async for _ in chunks:
                pass


def _object(body: str | bytes) -> Mapping[str, object]:
    try:
        return fields(json.loads(body))
    except (ValueError, RecursionError):
        raise ReplyError("the reply can't be read: it is no JSON") from None
