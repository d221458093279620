"""The schema changes in numbered steps, whole or not at all, and never under an older writer."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from landed.core.errors import StoreError
from landed.stores import opening
from landed.stores.driver import Connection, connect
from landed.stores.migrate import Migration, migrate, migrations, read
from landed.stores.sqlite import SqliteStore, open_sqlite
from landed.testing.store_checks.suite import inserted

pytestmark = pytest.mark.anyio

KNOWN = migrations()
NEWEST = KNOWN[-1].version
NEXT = Migration(
    version=NEWEST + 1,
    name="note",
    sql="-- A table; with a trigger, whose body ends in a semicolon, too.\n"
    "CREATE TABLE note (text TEXT) STRICT;\n"
    "CREATE TRIGGER note_stays BEFORE DELETE ON note\n"
    "BEGIN SELECT RAISE(ABORT, 'stays'); END;\n"
    "-- The end.\n",
    min_writer=1,
)
BOTH = (*KNOWN, NEXT)
LOCKING_OUT = (*KNOWN, replace(NEXT, min_writer=NEWEST + 1))


@pytest.fixture
def connection() -> Iterator[Connection]:
    connection = connect(":memory:", wait_ms=0)
    connection.execute("BEGIN")
    yield connection
    connection.close()


def tables(connection: Connection) -> set[str]:
    return {name for (name,) in connection.execute("SELECT name FROM sqlite_schema")}


def upgrade(path: str, known: tuple[Migration, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Open and close the file with a `landed` that knows these migrations."""
    with monkeypatch.context() as patch:
        patch.setattr(opening, "migrations", lambda: known)
        open_sqlite(path)


def test_the_known_migrations_are_numbered_without_gaps() -> None:
    assert [one.version for one in KNOWN] == list(range(1, len(KNOWN) + 1))
    assert all(one.min_writer <= one.version for one in KNOWN)


def test_migrations_are_applied_once_and_in_order(connection: Connection) -> None:
    assert migrate(connection, KNOWN, path="x") == NEWEST
    assert "note" not in tables(connection)
    assert migrate(connection, BOTH, path="x") == NEWEST + 1
    assert {"note", "note_stays"} <= tables(connection)
    assert migrate(connection, BOTH, path="x") == NEWEST + 1
    assert connection.execute("SELECT version FROM migration").fetchall() == [
        (version,) for version in range(1, NEWEST + 2)
    ]


def test_an_edited_migration_is_refused(connection: Connection) -> None:
    migrate(connection, BOTH, path="x")
    edited = (*KNOWN, replace(NEXT, sql=NEXT.sql.replace("'stays'", "'goes'")))
    with pytest.raises(
        StoreError, match=rf"migration {NEWEST + 1} \(note\) is not the one that was applied"
    ):
        migrate(connection, edited, path="x")


def test_line_ends_do_not_count(connection: Connection) -> None:
    migrate(connection, BOTH, path="x")
    windows = (*KNOWN, replace(NEXT, sql=NEXT.sql.replace("\n", "\r\n")))
    assert migrate(connection, windows, path="x") == NEWEST + 1


@pytest.mark.parametrize("sql", ["SELECT 1;\nCREATE TABLE oops (", "CREATE TABLE note (a);"])
async def test_a_failing_migration_leaves_the_file_as_it_was(
    sql: str, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_sqlite(path)
    record = await inserted(store, "op-1")
    await store.close()
    broken = (*BOTH, Migration(version=NEWEST + 2, name="broken", sql=sql, min_writer=1))
    with pytest.raises(StoreError):
        upgrade(path, broken, monkeypatch)
    store = open_sqlite(path)
    assert await store.load("op-1") == (record,)
    assert "note" not in tables(store._opened.reader)
    await store.close()


def test_a_migration_says_who_may_write() -> None:
    assert read(7, "x", "-- min_writer: 3\nSELECT 1;").min_writer == 3
    with pytest.raises(StoreError, match=r"migration 7 \(x\) names no min_writer"):
        read(7, "x", "SELECT 1;")


@pytest.mark.fault("X43")
def test_a_newer_schema_is_refused_and_left_as_it_is(connection: Connection) -> None:
    migrate(connection, LOCKING_OUT, path="x")
    before = connection.total_changes
    with pytest.raises(StoreError, match=rf"version {NEWEST + 1}, .* version {NEWEST}; upgrade"):
        migrate(connection, KNOWN, path="agent.db")
    assert connection.total_changes == before


@pytest.mark.fault("X43")
def test_a_newer_schema_that_allows_it_is_written(connection: Connection) -> None:
    migrate(connection, BOTH, path="x")
    assert migrate(connection, KNOWN, path="x") == NEWEST + 1


@pytest.mark.fault("X42")
async def test_an_old_worker_that_runs_on_is_stopped(
    opened: Callable[..., SqliteStore], path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = opened()
    record = await inserted(old, "op-1")
    upgrade(path, BOTH, monkeypatch)
    assert (await inserted(old, "op-2")).version == 1, "that migration keeps old writers"
    newer = NEWEST + 1
    ledger = f"UPDATE migration SET min_writer = {newer} WHERE version = {newer}"
    old._opened.writer.execute(ledger)
    with pytest.raises(StoreError, match=r"upgrade landed\. Nothing was changed"):
        await inserted(old, "op-3")
    with pytest.raises(StoreError, match="upgrade landed"):
        await old.claim(worker="me", now=1.0)
    assert (await old.load("op-1", "op-3")) == (record,)
    with pytest.raises(StoreError, match="upgrade landed"):
        open_sqlite(path)
