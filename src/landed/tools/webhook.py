"""Tells somebody's server about an event: signed, to a checked address, in bounded tries.

A notification is not an operation. It may arrive twice, and it says so: each try has the same
`webhook-id`, by which the receiver knows it for the same event. What must land once belongs in a
tool; `landed.tools.egress` shows how the same signature and the same check serve one.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING

from landed.core.canonical import Json, canonical, checked
from landed.core.errors import ContractError, ProposalError
from landed.core.outcome import NoAnswer, Refused
from landed.core.pacing import Backoff
from landed.tools.addresses import Forbidden, target
from landed.tools.classify import bounded, described
from landed.tools.retry_after import retry_after_s
from landed.tools.signing import ID, is_id

if TYPE_CHECKING:
    import httpx2

PAYLOAD_MAX_BYTES = 65_536
"""Bytes of one payload. Standard Webhooks advises less than 20 kB: send ids, not all there is."""

GONE = 410  # The receiver wants nothing any more; Standard Webhooks has its sender stop.

# What says "not now" rather than no: request timeout, too early, too many requests.
NOT_NOW = frozenset({408, 425, 429})

_HEADERS = {
    "content-type": "application/json",
    "user-agent": "landed",
    "accept-encoding": "identity",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tries:
    """How often and how long one delivery is tried.

    most        tries in all
    try_s       seconds for one of them, from the look at the address to the status of the reply
    within_s    seconds for all of them with the pauses between
    backoff     the pauses; a `Retry-After` makes them longer
    """

    most: int = 5
    try_s: float = 15.0
    within_s: float = 300.0
    backoff: Backoff = field(default_factory=Backoff)


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """The receiver answered with a status of 2xx, at the last of so many tries."""

    status: int
    tries: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Missed:
    """A try that was no success; it is `refused` where the receiver surely did not take it."""

    reason: str
    refused: bool = False
    last: bool = False


class Webhook:
    """One receiver's URL, and how to tell it something. Needs the extra `landed[http]`.

    url         https, at a public address, port 443 or 8443 (see `landed.tools.addresses`)
    secrets     `whsec_…`, the current one first; each signs, so that they can be changed in peace
    tries       how often, how long
    transport   who checks and carries, `CheckedTransport()` unless given; whoever made it closes it
    now, sleep, chance
                the clock (UTC, seconds since the epoch), the wait and the jitter (0 ≤ chance < 1)

    What is sent is the payload and nothing else: no name of ours, no token. Whoever calls decides
    what is in it; put in facts and ids, and let the receiver ask for the rest.

    Raises `ContractError` for a URL that can be seen to be no receiver's, and for a secret that is
    none.
    """

    def __init__(
        self,
        url: str,
        secrets: str | Sequence[str],
        *,
        tries: Tries | None = None,
        transport: "httpx2.AsyncBaseTransport | None" = None,
        now: Callable[[], float] = time.time,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        if find_spec("httpx2") is None:
            raise ContractError("a webhook is sent over HTTP: install landed[http]")
        from landed.tools.egress import CheckedTransport, SignedTransport

        # A transport that is given may allow more; it says so itself when it is used.
        there = target(url, loopback=transport is not None)
        if isinstance(there, Forbidden):
            raise ContractError(f"a webhook cannot go there: {there.reason}")
        self._url = url
        self._tries = tries or Tries()
        carries = CheckedTransport() if transport is None else transport
        self._own = carries if transport is None else None
        self._transport = SignedTransport(carries, secrets, now=now)
        self._now, self._sleep, self._chance = now, sleep, chance
        self._not_before = 0.0

    async def deliver(
        self, event_id: str, payload: Mapping[str, Json]
    ) -> Delivered | Refused | NoAnswer:
        """Tell the receiver, and say what came of it; at most `within_s` and one try later.

        `event_id` names the event for ever: deliver it again under the same id and the receiver
        knows that it has it. *Delivered* is a 2xx. *Refused* is a no to every try: the address is
        forbidden, or it answered with a redirect or a 4xx. *NoAnswer* is all else: it may have
        arrived. Deliver it later, or tell a person.

        A redirect, a 410 and a forbidden address end it at once; any other status is tried again.

        A `Retry-After` holds for the deliveries after this one too. One that is longer than there
        is time for ends it at once.

        Raises `ProposalError` for an id or a payload that cannot be sent.
        """
        body = _body(event_id, payload)
        until = self._now() + self._tries.within_s
        heard: list[_Missed] = []
        while len(heard) < self._tries.most:
            wait_s = self._pause_s(heard)
            # Also by the length of it alone: a clock that is set back must not make this wait.
            if wait_s > min(until - self._now(), self._tries.within_s):
                return _in_the_end(heard, f"; the next would be in {wait_s:.0f} s, too late")
            if wait_s > 0:
                await self._sleep(wait_s)
            came = await self._try(event_id, body)
            if not isinstance(came, _Missed):
                return Delivered(status=came, tries=len(heard) + 1)
            heard.append(came)
            if came.last:
                break
        return _in_the_end(heard)

    async def aclose(self) -> None:
        """Close the connections that were made here."""
        if self._own is not None:
            await self._own.aclose()

    def _pause_s(self, heard: Sequence[_Missed]) -> float:
        held_s = max(self._not_before - self._now(), 0.0)
        if not heard and not held_s:
            return 0.0
        # Behind a Retry-After too, so that all who heard it do not return at the same moment.
        return held_s + self._tries.backoff.wait_s(max(len(heard), 1), self._chance())

    async def _try(self, event_id: str, body: bytes) -> int | _Missed:
        import httpx2

        from landed.tools.egress import ForbiddenAddressError

        limit_s = self._tries.try_s
        extensions = {"timeout": httpx2.Timeout(limit_s).as_dict()}
        headers = {**_HEADERS, ID: event_id}
        try:
            async with asyncio.timeout(limit_s):
                request = httpx2.Request(
                    "POST", self._url, headers=headers, content=body, extensions=extensions
                )
                reply = await self._transport.handle_async_request(request)
                # The status is the whole answer. The body is the receiver's, of any length, and
                # may be what an attacker wants to see of another's: it is not read.
                with suppress(Exception):
                    await reply.aclose()
        except ForbiddenAddressError as error:
            return _Missed(reason=str(error), refused=True, last=True)
        except TimeoutError:
            return _Missed(reason=f"no answer within {limit_s:g} s")
        except Exception as error:
            return _Missed(reason=described(error))
        return self._read(reply)

    def _read(self, reply: "httpx2.Response") -> int | _Missed:
        status = reply.status_code
        if 200 <= status < 300:
            return status
        if 300 <= status < 400:
            why = f"{status}, a redirect, which is not followed: give the new URL"
            return _Missed(reason=why, refused=True, last=True)
        if status == GONE:
            why = f"{status}: the receiver wants no more of these"
            return _Missed(reason=why, refused=True, last=True)
        wait_s = retry_after_s(reply.headers.get("retry-after", ""), self._now())
        if wait_s is not None:
            self._not_before = max(self._not_before, self._now() + wait_s)
        refused = 400 <= status < 500 and status not in NOT_NOW
        return _Missed(reason=f"status {status}", refused=refused)


def _body(event_id: str, payload: Mapping[str, Json]) -> bytes:
    if not is_id(event_id):
        raise ProposalError("an event id is 1 to 256 characters of ASCII, no space and no dot")
    return canonical(checked(payload, max_bytes=PAYLOAD_MAX_BYTES))


def _in_the_end(heard: Sequence[_Missed], more: str = "") -> Refused | NoAnswer:
    last = f"{len(heard)} tries; the last: {heard[-1].reason}" if heard else "not tried"
    reason = bounded(last + more)
    # One try that nobody refused may have arrived, whatever was said to the others.
    if heard and all(each.refused for each in heard):
        return Refused(reason=reason)
    return NoAnswer(reason=reason)
