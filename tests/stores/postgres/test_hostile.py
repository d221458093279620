"""A server that says nothing, a cut at every statement, a writer cancelled: none hangs or lies."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import psycopg
import pytest

from landed.core.changes import Changes, Hold
from landed.core.errors import StaleWriteError, StoreError
from landed.stores import postgres, postgres_line, postgres_transaction
from landed.stores.postgres import READERS_MAX, PostgresStore
from landed.stores.postgres_line import Connection, connect, rows
from landed.stores.postgres_line import Settings as LineSettings
from landed.stores.postgres_transaction import Begun, Mark
from landed.testing.store_checks.suite import inserted, made, moved
from tests.stores.postgres.embedded import Server
from tests.stores.postgres.proxy import COMMIT, Cut, Proxy, proxied

pytestmark = [pytest.mark.anyio, pytest.mark.services]

# Where a write may be interrupted: its beginning, its one statement, and each of those by which a
# unit is judged for itself.
TOGETHER = [b"BEGIN ISOLATION", b"WITH "]
JUDGED = [
    b"SAVEPOINT",
    b"FOR NO KEY UPDATE",
    b"FROM landed.loaded",
    b"FROM landed.name",
    b"RELEASE",
]


@pytest.fixture
async def proxy(server: Server) -> AsyncIterator[Proxy]:
    async with proxied(server.socket) as running:
        yield running


@pytest.fixture
def far(server: Server, proxy: Proxy, url: str) -> str:
    """The URL of the test's database behind the proxy."""
    return server.url(server.name(url), host=proxy.directory)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (postgres, postgres_line, postgres_transaction):
        monkeypatch.setattr(module, "ANSWER_MAX_S", 0.3)


async def counted(connection: Connection, query: str) -> int:
    ((count,),) = await rows(connection, query, ())
    return int(count)


async def until(url: str, query: str) -> None:
    """Wait until the server counts one."""
    watch = await connect(LineSettings(url=url))
    while not await counted(watch, query):
        await asyncio.sleep(0)
    await watch.close()


WAITING = "SELECT count(*) FROM pg_locks WHERE NOT granted"


@pytest.mark.fault("X30")
@pytest.mark.parametrize("cut", [Cut.BEFORE, Cut.AFTER, Cut.HELD])
@pytest.mark.parametrize("at", TOGETHER)
async def test_a_cut_at_any_statement_of_a_batch_is_written_again_once(
    at: bytes, cut: Cut, far: str, proxy: Proxy, opened: Callable
) -> None:
    store: PostgresStore = await opened(far)
    before = await inserted(store, "op-1")
    proxy.at = at
    proxy.cuts.append(cut)
    (after,) = await store.commit(Changes(moves=(moved(before, "sent"),)))
    assert proxy.cuts == []
    assert await store.load("op-1") == (after,)
    assert [one.event for one in await store.journal()] == ["recorded", "sent"]


@pytest.mark.fault("X30")
@pytest.mark.parametrize("cut", [Cut.BEFORE, Cut.AFTER, Cut.HELD])
@pytest.mark.parametrize("at", JUDGED)
async def test_a_cut_at_any_statement_of_a_unit_that_is_judged_disturbs_no_neighbour(
    at: bytes, cut: Cut, far: str, proxy: Proxy, opened: Callable
) -> None:
    store: PostgresStore = await opened(far)
    before = await inserted(store, "op-1")
    await store.commit(Changes(moves=(moved(before, "sent"),)))
    proxy.at = at
    proxy.cuts.append(cut)
    stale = Changes(moves=(moved(before, "unknown"),), takes=(Hold(name="x", record="op-1"),))
    outcomes = await asyncio.gather(
        store.commit(stale), store.commit(Changes(moves=(made("op-2"),))), return_exceptions=True
    )
    assert proxy.cuts == []
    assert "read it and decide again" in str(outcomes[0])
    assert await store.load("op-2") == outcomes[1]
    assert [one.event for one in await store.journal()] == ["recorded", "sent", "recorded"]


async def test_a_server_that_says_nothing_is_told_of_and_nothing_was_written(
    far: str, proxy: Proxy, opened: Callable, impatient: None
) -> None:
    store: PostgresStore = await opened(far)
    before = await inserted(store, "op-1")
    proxy.at = b"BEGIN ISOLATION"
    proxy.cuts.append(Cut.SILENT)
    with pytest.raises(StoreError, match=r"did not answer for 0\.3 s.*Nothing was written"):
        await store.commit(Changes(moves=(moved(before, "sent"),)))
    (after,) = await store.commit(Changes(moves=(moved(before, "sent"),)))
    assert await store.load("op-1") == (after,)


@pytest.mark.fault("X30")
@pytest.mark.parametrize("at", [b"WITH ", COMMIT])
async def test_a_server_that_says_nothing_to_a_commit_is_asked_what_became_of_it(
    at: bytes, far: str, proxy: Proxy, opened: Callable, impatient: None
) -> None:
    """Also to the statement that goes in one message with it."""
    store: PostgresStore = await opened(far)
    before = await inserted(store, "op-1")
    proxy.at = at
    proxy.cuts.append(Cut.SILENT)
    (after,) = await store.commit(Changes(moves=(moved(before, "sent"),)))
    assert await store.load("op-1") == (after,)
    assert len(await store.journal()) == 2


async def test_a_read_from_a_server_that_says_nothing_ends(
    far: str, proxy: Proxy, opened: Callable, impatient: None
) -> None:
    store: PostgresStore = await opened(far)
    record = await inserted(store, "op-1")
    proxy.at = b"FROM landed.loaded"
    proxy.cuts.append(Cut.SILENT)
    with pytest.raises(StoreError, match="did not answer"):
        await store.load("op-1")
    assert await store.load("op-1") == (record,)


async def test_what_is_handed_over_while_the_writer_is_cancelled_is_written(
    url: str, opened: Callable
) -> None:
    """The end of a loop cancels every task, and some have a last word to write."""
    store: PostgresStore = await opened()
    record = await inserted(store, "op-1")
    other = await connect(LineSettings(url=url))
    await other.execute("BEGIN")
    await other.execute("SELECT 1 FROM landed.record WHERE id = 'op-1' FOR UPDATE")
    cut_off = asyncio.create_task(store.commit(Changes(moves=(moved(record, "sent"),))))
    await until(url, WAITING)
    (writer,) = (one for one in asyncio.all_tasks() if one.get_name() == "landed-writer")
    writer.cancel()
    last = asyncio.create_task(store.commit(Changes(moves=(made("op-2"),))))
    await asyncio.wait({writer})
    with pytest.raises(StoreError, match="ended while this was on its way"):
        await cut_off
    assert len(await asyncio.wait_for(last, 20.0)) == 1
    await other.execute("ROLLBACK")
    await other.close()
    assert await store.load("op-1") == (record,)


async def test_a_commit_whose_writer_is_cancelled_is_looked_for_before_anything_else(
    url: str, opened: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    store: PostgresStore = await opened()
    record = await inserted(store, "op-1")
    seen: list[str] = []

    async def cancelled(connection: Connection, query: str, parameters: Any = ()) -> Any:
        done = await postgres_line.run(connection, query, parameters)
        if query == "COMMIT" and not seen:
            seen.append(query)
            raise asyncio.CancelledError
        return done

    monkeypatch.setattr(postgres_transaction, "run", cancelled)
    with pytest.raises(StoreError, match="ended while this was on its way"):
        await store.commit(Changes(moves=(moved(record, "sent"),)))
    (sent,) = await store.load("op-1")
    assert sent.version == 2
    await store.commit(Changes(moves=(moved(sent, "confirmed"),)))
    first, second, third = await store.journal()
    assert (second.prev, third.prev) == (first.hash, second.hash)


async def test_a_process_that_is_stopped_within_a_transaction_holds_nothing_for_long(
    url: str, opened: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_transaction, "PAUSE_MAX_S", 0.2)
    stopped: PostgresStore = await opened()
    other: PostgresStore = await opened()
    record = await inserted(stopped, "op-1")
    goes_on, holds, tries = asyncio.Event(), asyncio.Event(), []

    async def held(begun: Begun) -> tuple[None, Mark]:
        await rows(begun.connection, "SELECT 1 FROM landed.record FOR UPDATE", ())
        tries.append(1)
        holds.set()
        await goes_on.wait()
        await rows(begun.connection, "SELECT 1", ())
        return None, Mark()

    stuck = asyncio.create_task(stopped._transactions.run(held))
    await holds.wait()
    (sent,) = await other.commit(Changes(moves=(moved(record, "sent"),)))
    assert sent.version == 2
    goes_on.set()
    await stuck
    assert len(tries) == 2, "what it had begun is begun again, from what is there now"


async def test_no_connection_that_is_kept_to_read_with_is_mistaken_for_the_server(
    url: str, server: Server, opened: Callable
) -> None:
    """After a restart each of them may be one to the server that was."""
    store: PostgresStore = await opened()
    record = await inserted(store, "op-1")

    async def all_at_once() -> None:
        met = asyncio.Barrier(READERS_MAX)

        async def ask(connection: Connection) -> None:
            await met.wait()
            await rows(connection, "SELECT 1", ())

        await asyncio.gather(*(store._read(ask) for _ in range(READERS_MAX)))

    await all_at_once()
    ended = server.execute(
        server.uri,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        f"WHERE datname = '{server.name(url)}'",
    )
    assert len(ended) == READERS_MAX + 1
    assert await store.load("op-1") == (record,)


SERIALIZATION = """
CREATE SEQUENCE landed.tries;
CREATE FUNCTION landed.fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF nextval('landed.tries') <= {times} THEN
        RAISE EXCEPTION 'could not serialize access' USING ERRCODE = '40001';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER fails BEFORE INSERT ON landed.journal
FOR EACH ROW EXECUTE FUNCTION landed.fail();
"""


@pytest.mark.fault("X34")
async def test_a_serialization_failure_is_tried_again_within_a_bound(
    url: str, server: Server, opened: Callable
) -> None:
    store: PostgresStore = await opened()
    record = await inserted(store, "op-1")
    server.execute(url, SERIALIZATION.format(times=3))
    (sent,) = await store.commit(Changes(moves=(moved(record, "sent"),)))
    assert server.execute(url, "SELECT last_value FROM landed.tries") == [(4,)]
    server.execute(url, "DROP TRIGGER fails ON landed.journal; DROP SEQUENCE landed.tries")
    server.execute(url, "DROP FUNCTION landed.fail")
    server.execute(url, SERIALIZATION.format(times=10**6))
    with pytest.raises(StoreError, match="could not serialize"):
        await store.commit(Changes(moves=(moved(sent, "confirmed"),)))
    tries = server.execute(url, "SELECT last_value FROM landed.tries")
    assert tries == [(postgres_transaction.ATTEMPTS_MAX,)]
    assert await store.load("op-1") == (sent,)


@pytest.mark.fault("X34")
async def test_a_read_that_is_in_the_way_of_others_is_tried_again(opened: Callable) -> None:
    store: PostgresStore = await opened()
    tries: list[int] = []

    async def ask(connection: Connection) -> str:
        tries.append(1)
        if len(tries) == 1:
            raise psycopg.errors.SerializationFailure("canceling statement: conflict with recovery")
        return "read"

    assert await store._read(ask) == "read"


@pytest.mark.parametrize("is_reachable", [True, False])
async def test_closing_lets_go_of_every_connection(
    is_reachable: bool, far: str, url: str, server: Server, proxy: Proxy, opened: Callable
) -> None:
    store: PostgresStore = await opened(far, reconnect_max_s=0.2)
    await store.renew(worker="w", until=1e12)
    await store.load("op-1")
    if not is_reachable:
        proxy.is_down = True
        await proxy.close()
    await store.close()
    await gone(server, url)


async def test_a_close_that_is_cancelled_lets_go_of_every_connection(
    url: str, server: Server, opened: Callable
) -> None:
    store: PostgresStore = await opened()
    await store.renew(worker="w", until=1e12)
    await store.load("op-1")
    lock = await connect(LineSettings(url=url))
    await lock.execute("BEGIN")
    await lock.execute("LOCK TABLE landed.worker IN ACCESS EXCLUSIVE MODE")
    closing = asyncio.create_task(store.close())
    await until(url, WAITING)
    closing.cancel()
    await asyncio.wait({closing})
    await lock.close()
    await gone(server, url)


async def gone(server: Server, url: str) -> None:
    await until(
        server.uri,
        "SELECT (count(*) = 0)::int FROM pg_stat_activity "
        f"WHERE datname = '{server.name(url)}' AND backend_type = 'client backend'",
    )


async def test_conflict_after_conflict_is_told_as_one_and_logs_nothing(
    opened: Callable, caplog: pytest.LogCaptureFixture
) -> None:
    """Also where the server says early that the statement before COMMIT failed."""
    store: PostgresStore = await opened()
    before = await inserted(store, "op-1")
    await store.commit(Changes(moves=(moved(before, "sent"),)))
    for _ in range(50):
        with pytest.raises(StaleWriteError):
            await store.commit(Changes(moves=(moved(before, "unknown"),)))
    assert caplog.messages == []
