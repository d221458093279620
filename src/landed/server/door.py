"""The door: what is let in at all, before anything reads it. Plain ASGI, around the whole app.

A body has a bound in bytes and one in seconds, and is JSON (for the console: a form). A host or an
origin that is not one of ours is turned away: a page on the web whose name resolves to this machine
reaches nothing (DNS rebinding).
"""

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from landed.server.problems import ProblemError, response_of

BODY_MAX = 1_000_000  # bytes
BODY_S = 10.0  # how long a body may take to arrive
JSON_TYPES = ("application/json", "application/problem+json")
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(slots=True, eq=False)
class Door:
    """Lets in what is bounded and called for here; `hosts` empty lets every host in.

    `types` are what a body may be, `answer` makes an answer of what is turned away.
    """

    app: ASGIApp
    hosts: Collection[str] = ()
    body_max: int = BODY_MAX
    body_s: float = BODY_S
    methods: frozenset[str] = field(default=frozenset({"POST", "PUT", "PATCH", "DELETE"}))
    types: Collection[str] = JSON_TYPES
    answer: Callable[[ProblemError], Response] = response_of

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, or answer with why not."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        try:
            self._check_place(Headers(scope=scope))
            if scope["method"] in self.methods:
                receive = await self._bounded(Headers(scope=scope), receive)
        except ProblemError as error:
            await self.answer(error)(scope, receive, send)
            return
        except _GoneError:
            return  # Who hangs up halfway through the request asked for nothing.
        await self.app(scope, receive, send)

    def _check_place(self, headers: Headers) -> None:
        if not self.hosts:
            return
        origin = headers.get("origin", "")
        named = [_host(f"//{headers.get('host', '')}"), *([_host(origin)] if origin else [])]
        if any(name not in self.hosts for name in named):
            raise ProblemError("elsewhere", "call it by a name that it is served under")

    async def _bounded(self, headers: Headers, receive: Receive) -> Receive:
        declared = headers.get("content-length", "0")
        if not declared.isdigit() or int(declared) > self.body_max:
            raise self._too_large()
        try:
            async with asyncio.timeout(self.body_s):
                body = await self._read(receive)
        except TimeoutError:
            raise ProblemError("too-slow", headers={"Connection": "close"}) from None
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if body and kind not in self.types:
            raise ProblemError("not-json")
        return _again(body, receive)

    async def _read(self, receive: Receive) -> bytes:
        read = bytearray()
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise _GoneError
            read += message.get("body", b"")
            if len(read) > self.body_max:
                raise self._too_large()
            if not message.get("more_body", False):
                return bytes(read)

    def _too_large(self) -> ProblemError:
        detail = f"at most {self.body_max} bytes are taken"
        return ProblemError("too-large", detail, headers={"Connection": "close"})


class _GoneError(Exception):
    """The caller hung up before the request was whole."""


def _again(body: bytes, receive: Receive) -> Receive:
    """Return what hands out a body that was read already, and then whatever comes after it."""
    left = [body]

    async def received() -> Message:
        if left:
            return {"type": "http.request", "body": left.pop(), "more_body": False}
        return await receive()

    return received


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""
