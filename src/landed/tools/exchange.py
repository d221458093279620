"""Carries one HTTP request of one call and brings back the reply, or says what its absence means.

Requests go straight to a transport, without a client around it: no redirect is followed, nothing is
tried twice, and no cookie is carried from one principal's call to the next.
"""

import asyncio
import json
import re
from collections.abc import Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from landed.core.canonical import MAX_BYTES
from landed.core.contract import Contract
from landed.core.outcome import AnswerLost, NotSent
from landed.core.tool import Call
from landed.tools.classify import Unanswered, bounded, described, one_request
from landed.tools.retry_after import retry_after_s

if TYPE_CHECKING:
    import httpx2

REPLY_MAX_BYTES = MAX_BYTES
"""Bytes read of one reply: as much as one value of a record may have."""

# A connection is given up well before the whole send, so that "never connected" can still be told
# apart from "connected, and no answer".
CONNECT_SHARE = 1 / 3

SHOWN_BYTES = 4096  # Of a reply, before it is cut to a reason's length.

HeadersOf = Callable[[Call], Mapping[str, str]]

_SECRET_HEADER = re.compile("auth|cookie|key|secret|token", re.IGNORECASE)
_SECRET_MIN_CHARS = 8

# Replies are asked for unencoded: a kilobyte of gzip can be a megabyte of reply.
_OURS = {"accept": "application/json", "accept-encoding": "identity", "user-agent": "landed"}


_NO_MORE: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One whole reply; header names are in lower case, `says` is its start as evidence.

    `wait_s` is what its `Retry-After` asks for, None where it has none.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    says: str
    wait_s: float | None = None


class UnreadableReplyError(Exception):
    """A reply that was not read to its end."""


class Exchange:
    """Sends requests for one tool. `headers` are its own; `sent_at_header` may be "".

    A `transport` that is given is used on every loop and closed by its owner. Otherwise one is made
    for the running loop when first needed, with retries off.
    """

    def __init__(
        self,
        contract: Contract,
        *,
        headers: HeadersOf,
        sent_at_header: str,
        transport: "httpx2.AsyncBaseTransport | None",
    ) -> None:
        self._contract = contract
        self._headers = headers
        self._sent_at_header = sent_at_header
        self._given = transport
        self._own: httpx2.AsyncHTTPTransport | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def carry(
        self,
        call: Call,
        *,
        method: str,
        url: str,
        body: bytes | None,
        effect: bool,
        more: Mapping[str, str] = _NO_MORE,
        hidden: frozenset[str] = frozenset(),
    ) -> Reply | Unanswered:
        """Return the reply, whatever its status; without a whole one, what that means for a send.

        With `effect` the request carries the epoch and the time; `more` are headers of this one
        request, `hidden` what no evidence may repeat. It ends at the call's deadline.
        """
        bound_s = max(call.deadline_at - call.sent_at, 0.0)
        try:
            own = self._headers(call)
            every = {**call.trace, **own, **more}
            request = self._request(call, every, method, url, body, bound_s, effect=effect)
        except Exception as error:
            return NotSent(reason=described(error))
        try:
            async with asyncio.timeout(bound_s):
                return await self._carried(request, call, secrets=_secrets(own) | hidden)
        except TimeoutError:
            return AnswerLost(reason=f"no whole reply within {bound_s:g} s")
        except Exception as error:
            return one_request(error, self._contract)

    async def aclose(self) -> None:
        """Close the connections that were made here; the next request makes new ones."""
        own, self._own = self._own, None
        if own is not None and self._loop is asyncio.get_running_loop():
            await own.aclose()

    def _request(
        self,
        call: Call,
        own: Mapping[str, str],
        method: str,
        url: str,
        body: bytes | None,
        bound_s: float,
        *,
        effect: bool,
    ) -> "httpx2.Request":
        import httpx2

        headers = _OURS | {name.lower(): value for name, value in own.items()}
        if body is not None:
            headers.setdefault("content-type", "application/json")
        if effect and self._contract.fence:
            headers[self._contract.fence.lower()] = str(call.epoch)
        if effect and self._sent_at_header:
            headers[self._sent_at_header.lower()] = repr(call.sent_at)
        share_s = bound_s * CONNECT_SHARE
        timeout = httpx2.Timeout(bound_s, connect=share_s, pool=share_s)
        extensions = {"timeout": timeout.as_dict()}
        return httpx2.Request(method, url, headers=headers, content=body, extensions=extensions)

    async def _carried(
        self, request: "httpx2.Request", call: Call, *, secrets: frozenset[str]
    ) -> Reply:
        response = await self._transport().handle_async_request(request)
        body = bytearray()
        try:
            encoding = response.headers.get("content-encoding", "identity")
            if encoding != "identity":
                raise UnreadableReplyError(f"{response.status_code} in {encoding}, not asked for")
            async with aclosing(response.aiter_bytes()) as chunks:
                async for chunk in chunks:
                    body += chunk
                    if len(body) > REPLY_MAX_BYTES:
                        raise UnreadableReplyError(
                            f"{response.status_code} with more than {REPLY_MAX_BYTES} bytes"
                        )
        finally:
            await response.aclose()
        return Reply(
            status=response.status_code,
            headers={name.lower(): value for name, value in response.headers.items()},
            body=bytes(body),
            says=_shown(bytes(body), secrets),
            wait_s=retry_after_s(response.headers.get("retry-after", ""), call.sent_at),
        )

    def _transport(self) -> "httpx2.AsyncBaseTransport":
        if self._given is not None:
            return self._given
        import httpx2

        loop = asyncio.get_running_loop()
        if self._own is None or self._loop is not loop:
            # Connections belong to the loop they were made on; those of another are of no use.
            self._own, self._loop = httpx2.AsyncHTTPTransport(retries=0), loop
        return self._own


def _secrets(headers: Mapping[str, str]) -> frozenset[str]:
    """Return what no evidence may repeat, also when a service echoes it in an error."""
    return frozenset(
        word
        for name, value in headers.items()
        if _SECRET_HEADER.search(name)
        for word in value.split()
        if len(word) >= _SECRET_MIN_CHARS
    )


def _shown(body: bytes, secrets: frozenset[str]) -> str:
    text = _in_words(body) or body[:SHOWN_BYTES].decode(errors="replace")
    for secret in secrets:
        text = text.replace(secret, "***")
    return bounded(text)


def _in_words(body: bytes) -> str:
    """Return what a problem (RFC 9457), or an error like it, says to people; "" for another."""
    try:
        problem = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(problem, dict):
        return ""
    said = cast("dict[str, object]", problem)
    words = (said.get(name) for name in ("detail", "message", "title"))
    return next((each for each in words if isinstance(each, str) and each), "")
