"""What a SQLite store does for what is over: bodies are let go of, and leave the file."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Protocol

from landed.core.erased import ERASED
from landed.core.keeping import Kept
from landed.stores.driver import Connection, Row, driver
from landed.stores.pages import bounded
from landed.stores.queries import SQLITE, many
from landed.stores.reading import kept
from landed.stores.transaction import Writer
from landed.stores.unit import Head

STILL_READ = (
    "the log beside the file is still read by somebody, and may hold what was erased; it is gone"
    " when they are done and this is run again"
)


class Alone(Protocol):
    """Runs what needs the writing connection for itself, in its turn."""

    def __call__(self, act: Callable[[bool], str], /) -> Awaitable[str]:
        """Return what `act` returned; it is told whether it may wait for other processes."""
        ...


class SqliteKeeping:
    """A `landed.core.keeping.Keeping`; made by `landed.stores.sqlite.SqliteStore.keeping`."""

    def __init__(
        self,
        writer: Writer,
        *,
        rows: Callable[[str, Row], list[Row]],
        alone: Alone,
        secrets: tuple[bytes, ...],
    ) -> None:
        self._writer = writer
        self._rows = rows
        self._alone = alone
        self._secrets = secrets

    async def sessions(
        self, *, after: tuple[str, str] = ("", ""), limit: int = 1000
    ) -> tuple[tuple[str, str], ...]:
        """Return (tenant, session) of conversations that have records, in order, after one."""
        rows = self._rows(SQLITE.sessions, (*after, bounded(limit)))
        return tuple((tenant, session) for tenant, session in rows)

    async def kept(
        self, *, tenant: str, session: str, after: int = 0, limit: int = 1000
    ) -> tuple[Kept, ...]:
        """Return the records of a session made after journal position `after`, oldest first."""
        rows = self._rows(SQLITE.session_records, (tenant, session, after, bounded(limit)))
        return tuple([kept(row, self._secrets) for row in rows])

    async def let_go(self, *ids: str) -> None:
        """Let those of the records whose latest event is an erasure begin with it."""
        bounded(len(ids) or 1)
        await self._alone(partial(self._let_go, ids))

    async def scrub(self, *, rewrites: bool = False) -> str:
        """Have what was let go of leave the disk, and return what is still to be done."""
        return await self._alone(lambda _: self._scrub(rewrites))

    def _let_go(self, ids: tuple[str, ...], wait: bool) -> str:
        def write(head: Head) -> str:
            execute = self._writer.connection.execute
            execute(SQLITE.begin_with_erasure, (many(ids), ERASED))
            execute(SQLITE.let_bodies_go, (many(ids), ERASED))
            return ""

        return self._writer.run(write, wait=wait)

    def _scrub(self, rewrites: bool) -> str:
        self._writer.require_whole()
        try:
            return scrub(self._writer.connection, rewrites=rewrites)
        except driver.Error as error:
            raise self._writer.trouble(error) from error


def scrub(connection: Connection, *, rewrites: bool) -> str:
    """Empty the log, in which earlier pages stand; what was freed in the file was overwritten."""
    if rewrites:
        connection.execute("VACUUM")
    busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    return STILL_READ if busy else ""
