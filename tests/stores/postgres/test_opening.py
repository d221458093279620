"""What can be wrong with a Postgres is said when it is opened or used, with what to do."""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from landed.core.changes import Changes
from landed.core.errors import NewerSchemaError, StoreError, WrongLoopError
from landed.stores.migrate import migrations
from landed.stores.postgres import PostgresStore, open_postgres
from landed.stores.postgres_line import store_error
from landed.stores.urls import open_store
from landed.testing.store_checks.suite import inserted, made, moved
from tests.stores.postgres.embedded import Server

pytestmark = [pytest.mark.anyio, pytest.mark.services]


async def test_a_url_opens_the_store(url: str) -> None:
    store = await open_store(url)
    record = await inserted(store, "op-1")
    await store.close()
    await store.close()
    again = await open_store(url)
    assert await again.load("op-1") == (record,)
    assert all(fact.ok for fact in await again.facts())
    assert {fact.name for fact in await again.facts()} == {
        *("postgres", "synchronous", "fail_over", "fsync", "full_pages", "role", "schema"),
        *("open", "waiting", "oldest_unknown"),
    }
    await again.close()
    with pytest.raises(StoreError, match="was closed; open it again"):
        await again.load("op-1")


async def test_a_server_that_is_down_is_told_without_the_password(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be reached; start Postgres or correct") as told:
        await open_postgres(f"postgresql://u:hush@/x?host={tmp_path}", reconnect_max_s=0.1)
    assert "hush" not in str(told.value)


async def test_a_missing_database_is_told(server: Server) -> None:
    with pytest.raises(StoreError, match="no such database; create it first"):
        await open_postgres(server.url("nowhere"), reconnect_max_s=0.1)


async def test_an_unknown_url_names_what_is_known() -> None:
    with pytest.raises(StoreError, match="postgresql://user@host/database"):
        await open_store("mysql://x")


async def test_a_read_only_database_is_told(url: str, server: Server, opened: Callable) -> None:
    store: PostgresStore = await opened()
    record = await inserted(store, "op-1")
    name = server.name(url)
    server.execute(server.uri, f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    store._line.drop()
    for writing in (
        store.commit(Changes(moves=(moved(record, "sent"),))),
        store.renew(worker="w", until=1.0),
    ):
        with pytest.raises(StoreError, match="it is read-only"):
            await writing
    assert await store.load("op-1") == (record,)
    standby = psycopg.errors.InternalError_("cannot assign TransactionIds during recovery")
    assert "connect to the primary" in str(store_error(standby, "x"))


async def test_running_out_of_connections_is_told(url: str, server: Server) -> None:
    server.execute(server.uri, "CREATE ROLE narrow LOGIN CONNECTION LIMIT 1")
    name = server.name(url)
    server.execute(server.uri, f"GRANT CREATE ON DATABASE {name} TO narrow")
    first = await open_postgres(server.url(name, user="narrow"), reconnect_max_s=0.2)
    await inserted(first, "op-1")
    with pytest.raises(StoreError, match="out of connections; raise max_connections"):
        await open_postgres(server.url(name, user="narrow"), reconnect_max_s=0.2)
    with pytest.raises(StoreError, match="gave no connection to read with"):
        await first.load("op-1")  # There is no second connection to read with.
    await first.close()


async def test_a_user_who_may_not_make_the_schema_is_told(url: str, server: Server) -> None:
    server.execute(server.uri, "CREATE ROLE weak LOGIN")
    name = server.name(url)
    with pytest.raises(StoreError, match="let it create the schema landed"):
        await open_postgres(server.url(name, user="weak"))


async def test_a_database_that_loses_commits_is_refused(url: str, server: Server) -> None:
    name = server.name(url)
    server.execute(server.uri, f"ALTER DATABASE {name} SET synchronous_commit = off")
    with pytest.raises(StoreError, match="synchronous_commit=off"):
        await open_postgres(url)


@pytest.mark.fault("X37")
@pytest.mark.parametrize("level", ["local", "remote_write"])
async def test_a_database_that_loses_commits_at_a_fail_over_is_warned_of(
    level: str, url: str, server: Server, opened: Callable, caplog: pytest.LogCaptureFixture
) -> None:
    name = server.name(url)
    server.execute(server.uri, f"ALTER DATABASE {name} SET synchronous_commit = {level}")
    store: PostgresStore = await opened()
    (fact,) = (fact for fact in await store.facts() if not fact.ok)
    assert (fact.name, fact.value) == ("synchronous", level)
    assert "a fail-over would lose acknowledged commits" in fact.advice
    (warned,) = caplog.messages
    assert fact.advice in warned


@pytest.mark.fault("X42", "X43")
async def test_a_newer_schema_is_refused_at_opening_and_while_open(
    url: str, server: Server, opened: Callable
) -> None:
    store: PostgresStore = await opened()
    server.execute(url, "INSERT INTO landed.migration VALUES (9000, 'far', 'x', 1)")
    await (await open_postgres(url)).close()
    server.execute(url, "INSERT INTO landed.migration VALUES (9001, 'further', 'x', 9001)")
    with pytest.raises(StoreError, match="newer schema"):
        await open_postgres(url)
    for writing in (
        inserted(store, "op-1"),
        store.renew(worker="w", until=1.0),
        store.claim(worker="w", now=1.0),
    ):
        with pytest.raises(NewerSchemaError, match=r"upgrade landed\. Nothing was changed"):
            await writing
    assert await store.load("op-1") == ()


async def test_an_edited_migration_is_refused(url: str, server: Server, opened: Callable) -> None:
    await opened()
    server.execute(url, "UPDATE landed.migration SET checksum = 'x' WHERE version = 1")
    with pytest.raises(StoreError, match="is not the one that was applied"):
        await open_postgres(url)


async def test_ten_that_open_an_empty_database_at_once_make_one_schema(url: str) -> None:
    stores = await asyncio.gather(*(open_postgres(url) for _ in range(10)))
    facts = {fact.name: fact for fact in await stores[0].facts()}
    assert facts["schema"].value == str(migrations("postgres")[-1].version)
    for store in stores:
        await store.close()


async def test_another_secret_is_refused_and_an_older_one_is_not(
    url: str, opened: Callable
) -> None:
    await inserted(await opened(secret=b"one"), "op-1")
    with pytest.raises(StoreError, match="does not end in a link of this secret"):
        await opened(secret=b"two")
    store: PostgresStore = await opened(secret=b"two", older=(b"one",))
    assert len(await store.load("op-1")) == 1


async def test_an_edited_record_is_refused(url: str, server: Server, opened: Callable) -> None:
    store: PostgresStore = await opened()
    record = await inserted(store, "op-1", worker="gone")
    server.execute(url, "UPDATE landed.record SET state = 'confirmed'")
    with pytest.raises(StoreError, match="edited outside landed"):
        await store.load("op-1")
    assert await store.claim(worker="w", now=1.0) == ()
    (sent,) = await store.commit(Changes(moves=(moved(record, "sent"),)))
    assert await store.load("op-1") == (sent,)


async def test_a_value_that_does_not_fit_disturbs_no_neighbour(opened: Callable) -> None:
    store: PostgresStore = await opened()
    good, bad = made("op-1"), made("op-2")
    bad = replace(bad, after=replace(bad.after, tenant="nul \x00"))
    outcomes = await asyncio.gather(
        *(store.commit(Changes(moves=(move,))) for move in (good, bad, made("op-3"))),
        return_exceptions=True,
    )
    assert [isinstance(one, StoreError) for one in outcomes] == [False, True, False]
    assert len(await store.journal()) == 2


async def test_a_chain_goes_on_from_the_newest_link(opened: Callable) -> None:
    """So nothing that a later opening has seen can be left out of the journal unnoticed."""
    first: PostgresStore = await opened()
    await inserted(first, "op-1")
    second: PostgresStore = await opened()
    await inserted(second, "op-2")
    await inserted(first, "op-3")
    one, two, three = await first.journal()
    assert (one.prev, two.prev, three.prev) == ("", one.hash, one.hash)


async def test_of_two_workers_with_one_name_the_later_stands(opened: Callable) -> None:
    first: PostgresStore = await opened()
    second: PostgresStore = await opened()
    await first.renew(worker="w", until=10.0)
    record = await inserted(first, "op-1", worker="w")
    await second.renew(worker="w", until=20.0)
    with pytest.raises(StoreError, match="the claim on worker w was lost"):
        await first.renew(worker="w", until=30.0)
    (claimed,) = await second.claim(worker="w", now=1.0)
    assert claimed.epoch > record.epoch


async def test_a_store_that_is_closed_leaves_its_workers_to_others(opened: Callable) -> None:
    first: PostgresStore = await opened()
    second: PostgresStore = await opened()
    await first.renew(worker="w", until=1e12)
    await inserted(first, "op-1", worker="w")
    assert await second.claim(worker="v", now=1.0) == ()
    await first.close()
    assert len(await second.claim(worker="v", now=1.0)) == 1


async def test_another_loop_is_refused(opened: Callable) -> None:
    store: PostgresStore = await opened()
    raised: list[BaseException] = []

    def elsewhere() -> None:
        try:
            asyncio.run(store.load("op-1"))
        except WrongLoopError as error:
            raised.append(error)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert len(raised) == 1
