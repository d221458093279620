"""The scripted provider without sockets: an httpx2 transport, for tests on virtual time."""

import asyncio
from collections.abc import AsyncIterator

import httpx2

from landed.testing.provider_script import Received, Script
from landed.testing.provider_streams import Reply, chunks_of, is_json


class InlineProvider(Script, httpx2.AsyncBaseTransport):
    """Answers the requests of one client, in this loop; see `Script`.

    `model = anthropic("scripted", url="http://scripted", key=None, transport=provider)`
    """

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Answer one request from the script."""
        headers = {name.lower(): value for name, value in request.headers.items()}
        body = await request.aread()
        received, reply = await self.answer(request.url.path, headers, body)
        kind = "application/json" if is_json(reply) else "text/event-stream"
        return httpx2.Response(
            reply.status,
            headers={"content-type": kind, **reply.headers},
            stream=_Body(received, reply),
        )


class _Body(httpx2.AsyncByteStream):
    def __init__(self, received: Received, reply: Reply) -> None:
        self._received = received
        self._reply = reply
        self._over = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in chunks_of(self._received.protocol, self._reply):
            yield chunk
        if self._reply.silent_at is not None:
            await asyncio.Event().wait()
        if self._reply.cut_at is not None:
            raise httpx2.RemoteProtocolError("peer closed the connection (scripted)")
        self._over = True

    async def aclose(self) -> None:
        """Note that the client left, where it did before the end."""
        if not self._over:
            self._received.left.set()
