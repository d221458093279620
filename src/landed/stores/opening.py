"""How a SQLite file is opened: what is refused, what is set, and what is brought up to date.

Everything that can be wrong with a file is said here, before anything is written to it.
"""

import time
from dataclasses import dataclass
from pathlib import Path

from landed.core.errors import StoreError
from landed.core.journal import verify
from landed.stores.driver import (
    READ_WAIT_MS,
    Connection,
    connect,
    driver,
    make_durable,
    mark_as_ours,
    require_ours,
    store_error,
)
from landed.stores.locks import FileLock
from landed.stores.migrate import migrate, migrations
from landed.stores.place import require_local
from landed.stores.queries import SQLITE
from landed.stores.reading import entry
from landed.stores.reserve import Reserve
from landed.stores.workers import Liveness, MemoryWorkers, WorkerFiles

MEMORY = ":memory:"

_POLL_S = 0.005


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a store is opened; see `landed.stores.sqlite.open_sqlite`."""

    path: str
    secret: bytes = b""
    older: tuple[bytes, ...] = ()
    lock_wait_max_s: float = 5.0
    allow_network_fs: bool = False

    @property
    def secrets(self) -> tuple[bytes, ...]:
        """Return what links may be made with; the first makes new ones."""
        return (self.secret, *self.older)


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """An opened database. In memory, one connection reads and writes, and nobody queues."""

    settings: Settings
    writer: Connection
    reader: Connection
    turn: FileLock | None
    liveness: Liveness
    schema: int
    reserve: Reserve | None = None


def open_memory(settings: Settings) -> Opened:
    """Make a database in memory."""
    connection = connect(MEMORY, wait_ms=0)
    schema = _prepare(connection, settings)
    return Opened(
        settings=settings,
        writer=connection,
        reader=connection,
        turn=None,
        liveness=MemoryWorkers(),
        schema=schema,
    )


def open_file(settings: Settings) -> Opened:
    """Open the file at `settings.path`, or make it; raises `StoreError` with what to do."""
    path = Path(settings.path).resolve()
    if not settings.allow_network_fs:
        require_local(path.parent)
    try:
        turn = FileLock(path.with_name(path.name + "-lock"))
    except OSError as error:
        raise store_error(error, settings.path) from error
    try:
        # Two processes that make the file at the same moment would be in each other's way.
        _wait_for(turn, settings)
        try:
            return _open_locked(path, turn, settings)
        finally:
            turn.unlock()
    except BaseException:
        turn.close()
        raise


def _open_locked(path: Path, turn: FileLock, settings: Settings) -> Opened:
    connections: list[Connection] = []
    try:
        writer = connect(str(path), wait_ms=int(settings.lock_wait_max_s * 1000))
        connections.append(writer)
        schema = _prepare(writer, settings)
        # From here on the writer waits for others by itself, in fair turns.
        writer.execute("PRAGMA busy_timeout = 0")
        reader = connect(str(path), wait_ms=READ_WAIT_MS)
        connections.append(reader)
        reader.execute("PRAGMA query_only = ON")
    except BaseException as error:
        for connection in connections:
            connection.close()
        if isinstance(error, driver.Error):
            raise store_error(error, settings.path) from error
        raise
    reserve = Reserve(str(path))
    reserve.keep()
    return Opened(
        settings=settings,
        writer=writer,
        reader=reader,
        turn=turn,
        liveness=WorkerFiles(path.with_name(path.name + "-workers")),
        schema=schema,
        reserve=reserve,
    )


def _wait_for(turn: FileLock, settings: Settings) -> None:
    deadline_s = time.perf_counter() + settings.lock_wait_max_s
    while not turn.try_lock():
        if time.perf_counter() >= deadline_s:
            raise StoreError(
                f"{settings.path} is being opened or written by another process for more than "
                f"{settings.lock_wait_max_s:g} s; end what holds it, or wait for it, and try again"
            )
        time.sleep(_POLL_S)


def _prepare(connection: Connection, settings: Settings) -> int:
    require_ours(connection, settings.path)
    make_durable(connection, settings.path)
    connection.execute("BEGIN IMMEDIATE")
    try:
        mark_as_ours(connection)
        schema = migrate(connection, migrations(), path=settings.path)
        _check_secret(connection, settings)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return schema


def _check_secret(connection: Connection, settings: Settings) -> None:
    _, _, seq, _ = connection.execute(SQLITE.head).fetchone()
    if not seq:
        return
    newest = entry(connection.execute(SQLITE.journal_page, (seq - 1, 1)).fetchone())
    try:
        verify(newest, secret=settings.secret, older=settings.older)
    except StoreError:
        raise StoreError(
            f"the journal of {settings.path} does not end in a link of this secret; open it with "
            "the secret that it was written with. If that is the one, its end was edited"
        ) from None
