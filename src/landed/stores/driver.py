"""The SQLite that is used, how its connections are set, and what its errors mean for a person.

`pysqlite3` carries a current SQLite. The standard library's is the fallback, with a warning where
its version can corrupt a WAL file that two connections write (the WAL-reset bug, mended in 3.51.3).
"""

import sqlite3
import warnings
from typing import TYPE_CHECKING, Any, TypeAlias

from landed.core.errors import StoreError
from landed.stores.wal import LOG_MAX_BYTES

if TYPE_CHECKING:
    driver = sqlite3
else:
    try:
        from pysqlite3 import dbapi2 as driver
    except ImportError:
        driver = sqlite3

Row: TypeAlias = tuple[Any, ...]
Connection: TypeAlias = sqlite3.Connection

READ_WAIT_MS = 2_000
"""How long a read may wait for SQLite's own short locks (recovery of the log, a last close)."""

_SYNCHRONOUS = "FULL"
FULL_SYNC = 2  # What `PRAGMA synchronous` answers for FULL.
_WAL_RESET_BUG = ((3, 7, 0), (3, 51, 3))
_APPLICATION_ID = 0x6C616E64  # "land", in the header of the file.

# SQLite's primary result codes; not every driver names them.
BUSY = 5
LOCKED = 6
READ_ONLY = 8
IO_ERROR = 10
CORRUPT = 11
FULL = 13
CANNOT_OPEN = 14
NOT_A_DATABASE = 26

FULL_ADVICE = "cannot grow: the disk is full. Nothing of the unit was written; free some space"

_ADVICE = {
    BUSY: "is locked by another process; end what holds it, or wait for it, and try again",
    LOCKED: "is locked by another process; end what holds it, or wait for it, and try again",
    READ_ONLY: "is read-only; give the file and its directory to the user that runs this process",
    IO_ERROR: (
        "cannot be read or written (disk error); this store does nothing more until it is opened "
        "again, because what the disk kept is known only then. Look at the disk first"
    ),
    CORRUPT: "is damaged; stop every process that uses it and restore it from a backup",
    FULL: FULL_ADVICE,
    CANNOT_OPEN: "cannot be opened; its directory must exist and be writable",
    NOT_A_DATABASE: "is not a SQLite database; give another path, or restore it from a backup",
}


def library() -> tuple[str, str]:
    """Return the driver's name and the version of the SQLite in it."""
    return driver.__name__.split(".")[0], driver.sqlite_version


def has_wal_reset_bug(version: str) -> bool:
    """Say whether a SQLite of this version may corrupt a WAL file with two writers."""
    numbers = tuple(int(part) for part in version.split(".")[:3])
    return _WAL_RESET_BUG[0] <= numbers < _WAL_RESET_BUG[1]


def warn_of_library() -> None:
    """Warn, once for each place that opens a store, when the SQLite in use has that bug."""
    name, version = library()
    if has_wal_reset_bug(version):
        warnings.warn(
            f"{name} brings SQLite {version}, which can corrupt a file that two connections write "
            "(mended in 3.51.3); install pysqlite3",
            RuntimeWarning,
            stacklevel=3,
        )


def connect(path: str, *, wait_ms: int) -> Connection:
    """Open one connection without implicit transactions; any thread may use it, one at a time."""
    connection = driver.connect(path, isolation_level=None, check_same_thread=False, timeout=0)
    connection.execute(f"PRAGMA busy_timeout = {wait_ms}")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA trusted_schema = OFF")
    # What is erased or freed is overwritten, not just forgotten.
    connection.execute("PRAGMA secure_delete = ON")
    return connection


def make_durable(connection: Connection, path: str) -> None:
    """Have every commit reach the disk before it returns, and read back that it is so.

    Raises `StoreError` when the database does not take the setting.
    """
    mode = pragma(connection, "journal_mode = WAL")
    connection.execute(f"PRAGMA synchronous = {_SYNCHRONOUS}")
    connection.execute("PRAGMA fullfsync = ON")  # Only macOS needs to be told.
    connection.execute(f"PRAGMA journal_size_limit = {LOG_MAX_BYTES}")
    if (mode == "wal" or path == ":memory:") and pragma(connection, "synchronous") == FULL_SYNC:
        return
    raise StoreError(
        f"{path} does not promise durable commits: journal_mode is {mode} and synchronous is "
        f"{pragma(connection, 'synchronous')}, where wal and {FULL_SYNC} (FULL) are needed; "
        "put it on a local disk"
    )


def require_ours(connection: Connection, path: str) -> None:
    """Raise `StoreError` when the file is another program's; nothing is changed in it."""
    mark = pragma(connection, "application_id")
    tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    if mark != _APPLICATION_ID and (mark or tables):
        raise StoreError(f"{path} holds another program's tables; give the store a file of its own")


def mark_as_ours(connection: Connection) -> None:
    """Say in the file's header that it is a store of `landed`.

    Written each time it is opened, so that a file that cannot be written is found out now: SQLite
    would only say so at the first commit.
    """
    connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")


def pragma(connection: Connection, text: str) -> str | int:
    """Return the one value that a PRAGMA answers with."""
    value: str | int = connection.execute(f"PRAGMA {text}").fetchone()[0]
    return value


def code_of(error: sqlite3.Error) -> int:
    """Return SQLite's primary result code, 0 for an error of the driver's own."""
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF


def store_error(error: Exception, path: str) -> StoreError:
    """Return what a driver's or the system's error means, and what to do about it."""
    if isinstance(error, driver.Error):
        advice = _ADVICE.get(code_of(error), "did not take that; please report it")
    elif isinstance(error, PermissionError):
        advice = _ADVICE[READ_ONLY]
    else:
        advice = _ADVICE[CANNOT_OPEN] if isinstance(error, OSError) else "did not take that"
    return StoreError(f"{path} {advice} ({type(error).__name__}: {error})")
