"""A schema that is migrated while others work on it: nobody writes in a shape that is no more."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from landed.core.changes import Changes
from landed.core.errors import NewerSchemaError, StoreError
from landed.stores import postgres_opening
from landed.stores.migrate import Migration, migrations
from landed.stores.postgres import PostgresStore, open_postgres
from landed.stores.postgres_line import Settings as LineSettings
from landed.stores.postgres_line import connect, rows
from landed.stores.postgres_transaction import Begun, Mark
from landed.testing.store_checks.suite import inserted, moved
from tests.stores.postgres.embedded import Server

pytestmark = [pytest.mark.anyio, pytest.mark.services]

KNOWN = migrations("postgres")
NEWEST = KNOWN[-1].version
NEXT = Migration(
    version=NEWEST + 1,
    name="note",
    sql="CREATE TABLE landed.note (text TEXT)",
    min_writer=NEWEST + 1,
)
LOCKING_OUT = (*KNOWN, NEXT)
ALLOWING = (*KNOWN, replace(NEXT, min_writer=1))

WAITING = "SELECT count(*) FROM pg_locks WHERE NOT granted"


async def upgrade(
    url: str, known: tuple[Migration, ...], monkeypatch: pytest.MonkeyPatch, **settings: float
) -> None:
    """Open and close the store with a `landed` that knows these migrations."""
    with monkeypatch.context() as patch:
        patch.setattr(postgres_opening, "migrations", lambda _: known)
        await (await open_postgres(url, **settings)).close()  # type: ignore[arg-type]


async def until_somebody_waits(url: str) -> None:
    watch = await connect(LineSettings(url=url))
    while not (await rows(watch, WAITING, ()))[0][0]:
        await asyncio.sleep(0)
    await watch.close()


@pytest.mark.fault("X42")
async def test_one_that_has_begun_is_waited_for_and_the_next_is_refused(
    url: str, server: Server, opened: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who found that it may write has written when the schema changes, or never does."""
    old: PostgresStore = await opened()
    record = await inserted(old, "op-1")
    began, goes_on = asyncio.Event(), asyncio.Event()

    async def held(begun: Begun) -> tuple[None, Mark]:
        began.set()
        await goes_on.wait()
        await rows(begun.connection, "UPDATE landed.record SET worker = 'x' RETURNING 1", ())
        return None, Mark()

    writing = asyncio.create_task(old._transactions.run(held))
    await began.wait()
    upgrading = asyncio.create_task(upgrade(url, LOCKING_OUT, monkeypatch))
    await until_somebody_waits(url)
    assert server.execute(url, "SELECT to_regclass('landed.note')") == [(None,)]
    goes_on.set()
    await writing
    await upgrading
    assert server.execute(url, "SELECT worker FROM landed.record") == [("x",)]
    with pytest.raises(NewerSchemaError, match=rf"version {NEWEST + 1}, .* {NEWEST}; upgrade"):
        await old.commit(Changes(moves=(moved(record, "sent"),)))


@pytest.mark.fault("X42")
async def test_one_that_comes_meanwhile_waits_and_finds_out(url: str, opened: Callable) -> None:
    old: PostgresStore = await opened()
    record = await inserted(old, "op-1")
    newer = await connect(LineSettings(url=url))
    await newer.execute("BEGIN")
    await newer.execute("LOCK TABLE landed.migration IN ACCESS EXCLUSIVE MODE")
    await newer.execute("INSERT INTO landed.migration VALUES (9000, 'x', 'x', 9000)")
    writing = asyncio.create_task(old.commit(Changes(moves=(moved(record, "sent"),))))
    await until_somebody_waits(url)
    await newer.execute("COMMIT")
    with pytest.raises(NewerSchemaError):
        await writing
    assert await old.load("op-1") == (record,)
    await newer.close()


async def test_who_migrates_and_who_opens_wait_within_a_bound(
    url: str, opened: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    await opened()
    other = await connect(LineSettings(url=url))
    await other.execute("BEGIN")
    await other.execute("SELECT 1 FROM landed.migration")
    with pytest.raises(StoreError, match="another transaction holds what this one needs"):
        await upgrade(url, LOCKING_OUT, monkeypatch, lock_wait_max_s=0.1)
    await other.execute("LOCK TABLE landed.migration IN ACCESS EXCLUSIVE MODE")
    with pytest.raises(StoreError, match="another transaction holds what this one needs"):
        await open_postgres(url, lock_wait_max_s=0.1)
    await other.close()
    await upgrade(url, LOCKING_OUT, monkeypatch)


async def test_ten_that_upgrade_at_once_do_it_once(
    url: str, server: Server, opened: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    await inserted(await opened(), "op-1")
    with monkeypatch.context() as patch:
        patch.setattr(postgres_opening, "migrations", lambda _: LOCKING_OUT)
        stores = await asyncio.gather(*(open_postgres(url) for _ in range(10)))
    for store in stores:
        await store.close()
    applied = server.execute(url, "SELECT version FROM landed.migration ORDER BY version")
    assert applied == [(version,) for version in range(1, NEWEST + 2)]


@pytest.mark.fault("X43")
async def test_an_older_one_may_come_back_only_where_the_migration_says_so(
    url: str, server: Server, opened: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = await inserted(await opened(), "op-1")
    await upgrade(url, ALLOWING, monkeypatch)
    again: PostgresStore = await opened()
    (sent,) = await again.commit(Changes(moves=(moved(record, "sent"),)))
    ledger = f"UPDATE landed.migration SET min_writer = version WHERE version = {NEWEST + 1}"
    server.execute(url, ledger)
    with pytest.raises(NewerSchemaError, match=r"upgrade landed\. Nothing was changed"):
        await open_postgres(url)
    assert await again.load("op-1") == (sent,)


@pytest.mark.parametrize("sql", ["CREATE TABLE oops (", "CREATE TABLE landed.note (a TEXT)"])
async def test_a_failing_migration_leaves_the_schema_as_it_was(
    sql: str, url: str, server: Server, opened: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    store: PostgresStore = await opened()
    record = await inserted(store, "op-1")
    broken = Migration(version=NEWEST + 2, name="broken", sql=sql, min_writer=1)
    with pytest.raises(StoreError):
        await upgrade(url, (*LOCKING_OUT, broken), monkeypatch)
    assert server.execute(url, "SELECT to_regclass('landed.note')") == [(None,)]
    assert len(await store.commit(Changes(moves=(moved(record, "sent"),)))) == 1
