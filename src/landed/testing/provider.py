"""A provider of models that follows a script: real HTTP, three protocols, and every mishap.

    async with ScriptedProvider(Reply(text="Hello."), Reply(status=529)) as there:
        model = anthropic("scripted", url=there.url, key=None)

It serves `/v1/messages`, `/v1/chat/completions` and `/v1/responses` on a port of its own, to any
client on any loop: to `landed`'s models, to the official SDKs, to another program. A request that
the real services refuse (a call without its result, an empty assistant message, a thought that was
changed) is answered with their 400, before the script is looked at.
"""

import asyncio
from contextlib import suppress
from typing import Self

from landed.testing.provider_script import Received, Script
from landed.testing.provider_streams import Called, Protocol, Reply, chunks_of, is_json
from landed.testing.provider_thoughts import Thought

__all__ = ["Called", "Protocol", "Received", "Reply", "Script", "ScriptedProvider", "Thought"]

HOST = "127.0.0.1"


class ScriptedProvider(Script):
    """Answers requests with the replies of its script, in order, on `url`; see `Script`.

    `port` 0 takes a free one; `connections` counts those that clients made.
    """

    def __init__(
        self, *replies: Reply, forever: Reply | None = None, key: str = "", port: int = 0
    ) -> None:
        super().__init__(*replies, forever=forever, key=key)
        self.connections = 0
        self._port = port
        self._serving: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    @property
    def url(self) -> str:
        """Where it is, as Anthropic's dialect wants it."""
        assert self._server is not None, "enter the provider first"
        return f"http://{HOST}:{self._server.sockets[0].getsockname()[1]}"

    @property
    def openai_url(self) -> str:
        """Where it is, as OpenAI's dialects want it."""
        return f"{self.url}/v1"

    def url_of(self, protocol: Protocol) -> str:
        """Return where it is, as a protocol wants it."""
        return self.url if protocol == "anthropic" else self.openai_url

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, HOST, self._port)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for serving in self._serving:
            serving.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving = asyncio.current_task()
        assert serving is not None
        self._serving.add(serving)
        self.connections += 1
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                while await self._exchange(reader, writer):
                    pass
        except asyncio.CancelledError:
            pass  # The provider is closed; streams would report a cancelled callback as an error.
        finally:
            self._serving.discard(serving)
            writer.close()
            with suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Serve one request; returns whether the connection can serve another."""
        head = await reader.readuntil(b"\r\n\r\n")
        line, *rest = head.decode("latin-1").strip().split("\r\n")
        path = line.split(" ")[1]
        pairs = (each.partition(":") for each in rest)
        headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        received, reply = await self.answer(path, headers, body)
        if await _send(writer, received.protocol, reply):
            return True
        if reply.silent_at is not None:
            await _until_left(reader)
            received.left.set()
        return False


async def _until_left(reader: asyncio.StreamReader) -> None:
    with suppress(ConnectionError):
        while await reader.read(1024):
            pass


async def _send(writer: asyncio.StreamWriter, protocol: Protocol, reply: Reply) -> bool:
    """Send a reply; returns whether all of it was sent."""
    kind = "application/json" if is_json(reply) else "text/event-stream; charset=utf-8"
    lines = [f"HTTP/1.1 {reply.status} Scripted", f"content-type: {kind}"]
    lines += [f"{name}: {value}" for name, value in reply.headers.items()]
    head = "\r\n".join([*lines, "transfer-encoding: chunked", "", ""])
    writer.write(head.encode())
    # An empty chunk would say that nothing follows.
    for chunk in filter(None, chunks_of(protocol, reply)):
        writer.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
        await writer.drain()
    ended = reply.cut_at is None and reply.silent_at is None
    if ended:
        writer.write(b"0\r\n\r\n")
    await writer.drain()
    return ended
