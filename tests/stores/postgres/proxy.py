"""A proxy before Postgres that cuts a connection at a statement, before or after it took effect."""

import asyncio
import contextlib
import shutil
import tempfile
from collections.abc import AsyncIterator
from enum import StrEnum
from pathlib import Path

COMMIT = b"COMMIT\x00"


class Cut(StrEnum):
    BEFORE = "before"  # The server never gets it, and sees the connection end.
    AFTER = "after"  # The server did it; the answer gets lost.
    HELD = "held"  # The server never gets it, and does not see that anybody left.
    NEVER_BACK = "never back"  # As `after`, and nobody gets through any more.
    AWAY = "away"  # As `before`, and nobody gets through any more.
    SILENT = "silent"  # Nothing is passed on any more, and nobody is told.


class Proxy:
    """Passes everything on, until it is told to cut at a coming statement; COMMIT if not said."""

    def __init__(self, upstream: Path) -> None:
        self._upstream = upstream
        self.directory = tempfile.mkdtemp(prefix="landed-proxy-")
        self.at = COMMIT  # What the statement contains.
        self.cuts: list[Cut | None] = []  # One for each of them to come, in order.
        self.commits = 0
        self.is_down = False
        self._writers: list[asyncio.StreamWriter] = []

    async def serve(self, client: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        self._writers.append(back)
        if self.is_down:
            back.close()
            return
        server, forth = await asyncio.open_unix_connection(str(self._upstream))
        self._writers.append(forth)
        answering = asyncio.create_task(self._pass_on(server, back))
        held = False
        with contextlib.suppress(OSError):
            while asked := await client.read(65536):
                cut = self._cut(asked)
                if cut in (Cut.AFTER, Cut.NEVER_BACK):
                    answering.cancel()
                    await asyncio.wait({answering})
                    forth.write(asked)
                    await self._done(server, asked)
                if cut is not None:
                    held = cut is Cut.HELD
                    self.is_down = cut in (Cut.NEVER_BACK, Cut.AWAY)
                    if cut is Cut.SILENT:
                        answering.cancel()
                        while await client.read(65536):
                            pass
                    break
                forth.write(asked)
                await forth.drain()
        answering.cancel()
        back.close()
        if not held:
            forth.close()

    async def close(self) -> None:
        for writer in self._writers:
            writer.close()

    async def _done(self, server: asyncio.StreamReader, asked: bytes) -> None:
        """Wait until the server did what it was asked: that it committed comes last."""
        said = await server.read(65536)
        assert said
        while COMMIT in asked and COMMIT not in said:
            more = await server.read(65536)
            assert more
            said += more

    def _cut(self, asked: bytes) -> Cut | None:
        self.commits += COMMIT in asked
        if self.at not in asked:
            return None
        return self.cuts.pop(0) if self.cuts else None

    async def _pass_on(self, server: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while said := await server.read(65536):
                back.write(said)
                await back.drain()
            back.close()


@contextlib.asynccontextmanager
async def proxied(upstream: Path) -> AsyncIterator[Proxy]:
    proxy = Proxy(upstream)
    path = f"{proxy.directory}/.s.PGSQL.5432"
    listening = await asyncio.start_unix_server(proxy.serve, path)
    try:
        yield proxy
    finally:
        listening.close()
        await proxy.close()
        shutil.rmtree(proxy.directory)
