"""An empty store beside a named one, for what must not touch the records there: a simulation.

A simulated scenario plays with time, and its ids are the same in every run. On a store that others
work on it would take their leases for over, and they its. So it gets a database of its own on that
server, or a file of its own in that directory, which is removed in the end.
"""

import secrets
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit

from landed.core.errors import StoreError
from landed.stores.urls import open_store
from landed.testing.inline import InlineStore, inline

PREFIX = "landed_demo_"


@contextmanager
def base_beside(url: str) -> Generator[InlineStore]:
    """Offer an empty store beside that at `url` to a simulation; raises as `store_beside` does."""
    with store_beside(url) as own, inline(partial(open_store, own)) as base:
        yield base


@contextmanager
def store_beside(url: str) -> Generator[str]:
    """Yield the URL of an empty store beside that at `url`, and remove it in the end.

    `url` is what `landed.open` takes. The store there is not opened; on Postgres its user must be
    allowed to create a database. Raises `StoreError`, with what to do, where none can be made.
    """
    if url.startswith(("postgresql://", "postgres://")):
        with _database_beside(url) as own:
            yield own
        return
    if not url.startswith("sqlite://"):
        raise StoreError(f"{url!r} names no store that is known")
    path = url.removeprefix("sqlite://")
    directory = None if path == ":memory:" else Path(path[1:]).absolute().parent
    if directory is not None and not directory.is_dir():
        raise StoreError(f"there is no directory {directory}; make it first")
    with tempfile.TemporaryDirectory(prefix=".landed-", dir=directory) as own:
        yield f"sqlite:///{own}/demo.db"


@contextmanager
def _database_beside(url: str) -> Generator[str]:
    name = f"{PREFIX}{secrets.token_hex(6)}"
    _on_server(url, f"CREATE DATABASE {name}")
    try:
        yield _with_database(url, name)
    finally:
        _on_server(url, f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


def _on_server(url: str, statement: str) -> None:
    try:
        import psycopg

        from landed.stores.postgres_line import Settings, store_error
    except ImportError as error:
        raise StoreError("a store in Postgres needs psycopg; install landed[postgres]") from error
    try:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(statement.encode())
    except psycopg.errors.InsufficientPrivilege as error:
        raise StoreError(
            f"{Settings(url=url).place}: the user may not create a database, and a simulation plays"
            " in one of its own; ALTER ROLE … CREATEDB, or name a server where it may"
        ) from error
    except psycopg.Error as error:
        raise store_error(error, Settings(url=url).place) from error


def _with_database(url: str, name: str) -> str:
    parts = urlsplit(url)
    # libpq lets a parameter win over the path.
    query = urlencode([one for one in parse_qsl(parts.query) if one[0] != "dbname"])
    return f"{parts.scheme}://{parts.netloc}/{name}" + (f"?{query}" if query else "")
