"""Connections to Postgres: how they are set, what their errors mean, and coming back after a loss.

Nothing here is a state of the session (no search path, no prepared statement, no advisory lock), so
PgBouncer may hand each transaction to another connection.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import psycopg
from psycopg.conninfo import conninfo_to_dict

from landed.core.errors import StoreError

Connection: TypeAlias = psycopg.AsyncConnection[tuple[Any, ...]]
Cursor: TypeAlias = psycopg.AsyncCursor[tuple[Any, ...]]
Parameters: TypeAlias = tuple[object, ...]

DRIVER_ERRORS = (psycopg.Error, OSError)
RETRYABLE = (psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected)

ANSWER_MAX_S = 30.0
"""How long a transaction, a COMMIT or a read waits for a server that says nothing."""

PAUSE_MAX_S = 3.0
"""How long a process may stop, or be cut off, within a transaction before the server ends that.

Less than others wait for its locks, unless they were told not to.
"""

_RETRY_S = 0.05
_RETRY_MAX_S = 1.0

_ADVICE: tuple[tuple[str, str], ...] = (
    # The beginning of the error's code, and what to do; the first that fits is told.
    ("25006", "it is read-only: a standby, or set so; connect to the primary"),
    ("53300", "it is out of connections; raise max_connections, or put PgBouncer in front of it"),
    ("53", "it is out of disk or memory; make room and try again"),
    ("55P03", "another transaction holds what this one needs; end it, or wait, and try again"),
    ("28", "it does not let this user in; check the user, the password and pg_hba.conf"),
    ("3D000", "there is no such database; create it first"),
    ("42501", "the user may not do this; let it create the schema landed, or own it"),
    ("42P01", "tables of landed are gone; restore them from a backup"),
    ("22", "a value does not fit; nothing was written"),
    ("P0001", "its own rules refused it; nothing was written"),
)

# Before there is a connection, libpq tells no code, only a sentence; nor does a standby that is
# asked for a transaction's number.
_SIGNS = (
    ("too many", "53300"),
    ("does not exist", "3D000"),
    ("password", "28"),
    ("during recovery", "25006"),
    ("session is read-only", "25006"),
    ("in hot standby mode", "25006"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a store is opened; see `landed.stores.postgres.open_postgres`."""

    url: str
    secret: bytes = b""
    older: tuple[bytes, ...] = ()
    reconnect_max_s: float = 10.0
    lock_wait_max_s: float = 5.0
    clock: Callable[[], float] = time.time

    @property
    def secrets(self) -> tuple[bytes, ...]:
        """Return what links may be made with; the first makes new ones."""
        return (self.secret, *self.older)

    @property
    def place(self) -> str:
        """The store's address for a person to read, without the password."""
        return _place(self.url)


@cache
def _place(url: str) -> str:
    try:
        parts = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        return "the Postgres URL"
    host, port = parts.get("host") or "localhost", parts.get("port") or "5432"
    return f"postgresql://{host}:{port}/{parts.get('dbname') or ''}"


class Line:
    """The one writing connection: opened when it is needed, anew after a loss."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._connection: Connection | None = None

    async def connected(self) -> Connection:
        """Return the connection, or make one; raises `StoreError` after `reconnect_max_s`."""
        if self._connection is not None and not self._connection.closed:
            return self._connection
        deadline_s = time.monotonic() + self.settings.reconnect_max_s
        pause_s = _RETRY_S
        while True:
            try:
                self._connection = await connect(self.settings)
                return self._connection
            except DRIVER_ERRORS as error:
                if not is_loss(error) or time.monotonic() + pause_s >= deadline_s:
                    raise store_error(error, self.settings.place) from error
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _RETRY_MAX_S)

    def drop(self) -> None:
        """Let the connection go without a word; the server ends what was open on it."""
        if self._connection is not None:
            self._connection.pgconn.finish()
            self._connection = None


def options(settings: Settings) -> dict[str, Any]:
    """Return how every connection is set."""
    return {
        "autocommit": True,
        "prepare_threshold": None,
        "cursor_factory": psycopg.AsyncRawCursor,
        "connect_timeout": max(2, int(settings.reconnect_max_s)),
        "keepalives_idle": 10,
        "keepalives_interval": 5,
        "keepalives_count": 3,
        "tcp_user_timeout": 30_000,
    }


async def connect(settings: Settings) -> Connection:
    """Open a connection; raises what psycopg raises."""
    return await psycopg.AsyncConnection.connect(settings.url, **options(settings))


async def run(connection: Connection, query: str, parameters: Parameters = ()) -> Cursor:
    """Run one of our own queries."""
    return await connection.execute(query.encode(), parameters or None)


async def rows(connection: Connection, query: str, parameters: Parameters) -> list[Any]:
    """Run one of our own queries and return what it found."""
    return await (await run(connection, query, parameters)).fetchall()


def is_loss(error: BaseException) -> bool:
    """Whether the error says that the connection is gone, or was never there."""
    if isinstance(error, OSError):
        return True
    if not isinstance(error, psycopg.Error):
        return False
    code = error.sqlstate
    if code is None:
        return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    return code.startswith(("08", "57P", "25P03"))  # The last: it was stopped for too long.


def is_read_only(error: BaseException) -> bool:
    """Whether the error says that this server cannot be written: a standby, or set so."""
    return isinstance(error, psycopg.Error) and (
        error.sqlstate == "25006" or (error.sqlstate == "XX000" and "during recovery" in str(error))
    )


def silent(place: str) -> StoreError:
    """Return what it means that a connected server says nothing."""
    return StoreError(
        f"{place} is connected, but did not answer for {ANSWER_MAX_S:g} s; look whether it, or "
        "what stands before it, is stopped or overloaded. Nothing was written"
    )


def store_error(error: BaseException, place: str) -> StoreError:
    """Return what an error means for a person, and what to do about it."""
    said = " ".join(str(error).split()) or type(error).__name__
    code = error.sqlstate if isinstance(error, psycopg.Error) else None
    for start, advice in _ADVICE:
        if (code or "").startswith(start):
            return StoreError(f"{place}: {advice} ({said})")
    for sign, start in _SIGNS:
        if code in (None, "XX000") and sign in said:
            return StoreError(f"{place}: {dict(_ADVICE)[start]} ({said})")
    if is_loss(error):
        return StoreError(
            f"{place} cannot be reached; start Postgres or correct the URL. Nothing was written "
            f"({said})"
        )
    return StoreError(f"{place} refused: {said}")
