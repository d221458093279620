"""The network between an agent and a world in the same process, for httpx2 clients.

A request that has left is the world's: it runs as a task of the world, so that no cancelled wait
and no killed agent can call it back. That is what `httpx2.ASGITransport` can't do: it runs the
service inside its caller.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine

import httpx2
from starlette.types import ASGIApp, Message, Scope

from landed.testing.worlds.faults import CUT, Sleep

Spawn = Callable[[Coroutine[object, object, None]], object]
"""Starts a coroutine as a task of the world, and keeps it (asyncio holds tasks only weakly)."""

Witness = Callable[[httpx2.Request], Awaitable[None] | None]
"""Sees each request at the moment before it leaves; if it raises, the request doesn't leave."""


class WorldTransport(httpx2.AsyncBaseTransport):
    """Carries requests to `app`, each as a task of the world started by `spawn`.

    `latency_s` passes on the way there and again on the way back, by `sleep`. The read time-out
    of the request is applied to the whole exchange and raises `httpx2.ReadTimeout`; a dropped
    connection, and an app that ends without a whole answer, raise `httpx2.ReadError`. Neither they
    nor a cancelled caller disturb the run of the app.

    `witness` is called before each send. What it raises reaches the caller of the client, where a
    runtime rightly takes it for an answer that was lost: a witness that must fail a test also
    remembers what it saw, and the test looks there.
    """

    def __init__(
        self,
        app: ASGIApp,
        spawn: Spawn,
        witness: Witness | None = None,
        latency_s: float = 0.01,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._app = app
        self._spawn = spawn
        self._witness = witness
        self._latency_s = latency_s
        self._sleep = sleep

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request and wait for its answer; see the class for what it raises."""
        body = await request.aread()
        if self._witness is not None:
            seen = self._witness(request)
            if inspect.isawaitable(seen):
                await seen
        exchange = _Exchange(body)
        self._spawn(self._carry(_scope(request, exchange), exchange))
        timeout_s = request.extensions.get("timeout", {}).get("read")
        try:
            # `wait`, unlike `wait_for`, leaves what it waits for alone when it gives up.
            await asyncio.wait({exchange.answer}, timeout=timeout_s)
        finally:
            exchange.caller_gone.set()
        if not exchange.answer.done():
            raise httpx2.ReadTimeout(f"no answer within {timeout_s} s", request=request)
        answer = exchange.answer.result()
        if answer is None:
            raise httpx2.ReadError("the connection was lost", request=request)
        return answer

    async def _carry(self, scope: Scope, exchange: "_Exchange") -> None:
        async def send(message: Message) -> None:
            if exchange.heard(message):
                await self._sleep(self._latency_s)
                exchange.deliver()

        await self._sleep(self._latency_s)
        try:
            await self._app(scope, exchange.receive, send)
        finally:
            exchange.cut()


class _Exchange:
    """One request and what becomes of its answer, which is None when the connection was lost."""

    def __init__(self, body: bytes) -> None:
        self.answer: asyncio.Future[httpx2.Response | None] = (
            asyncio.get_running_loop().create_future()
        )
        self.caller_gone = asyncio.Event()
        self._unread = [body]
        self._status = 0
        self._headers: list[tuple[bytes, bytes]] = []
        self._content = bytearray()

    async def receive(self) -> Message:
        if self._unread:
            return {"type": "http.request", "body": self._unread.pop(), "more_body": False}
        await self.caller_gone.wait()
        return {"type": "http.disconnect"}

    def heard(self, message: Message) -> bool:
        """Take one message of the app's answer; True when the answer is whole."""
        if message["type"] == "http.response.start":
            self._status = message["status"]
            self._headers = list(message.get("headers", []))
            return False
        self._content += message.get("body", b"")
        return not message.get("more_body", False)

    def deliver(self) -> None:
        self._settle(
            httpx2.Response(self._status, headers=self._headers, content=bytes(self._content))
        )

    def cut(self) -> None:
        """Drop the connection, unless the answer has been delivered."""
        self.caller_gone.set()
        self._settle(None)

    def _settle(self, answer: httpx2.Response | None) -> None:
        if not self.answer.done():
            self.answer.set_result(answer)


def _scope(request: httpx2.Request, exchange: _Exchange) -> Scope:
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": request.method,
        "headers": [(name.lower(), value) for name, value in request.headers.raw],
        "scheme": request.url.scheme,
        "path": request.url.path,
        "raw_path": request.url.raw_path.split(b"?")[0],
        "query_string": request.url.query,
        "server": (request.url.host, request.url.port),
        "client": ("127.0.0.1", 1),
        "root_path": "",
        "state": {CUT: exchange.cut},
    }
