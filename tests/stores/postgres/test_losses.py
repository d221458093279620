"""A lost connection is resolved: what was committed is told so, what was not is written again."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable

import pytest

from landed.core.changes import Changes, Guard, Hold
from landed.core.errors import StoreError
from landed.core.journal import verify
from landed.stores.postgres import PostgresStore
from landed.stores.postgres_line import Settings as LineSettings
from landed.stores.postgres_line import connect
from landed.testing.store_checks.suite import inserted, made, moved
from tests.stores.postgres.embedded import Server
from tests.stores.postgres.proxy import Cut, Proxy, proxied

pytestmark = [pytest.mark.anyio, pytest.mark.services]


@pytest.fixture
async def proxy(server: Server) -> AsyncIterator[Proxy]:
    async with proxied(server.socket) as running:
        yield running


@pytest.fixture
def far(server: Server, proxy: Proxy, url: str) -> str:
    """The URL of the test's database behind the proxy."""
    return server.url(server.name(url), host=proxy.directory)


RESOLVED = [Cut.BEFORE, Cut.AFTER, Cut.HELD]


@pytest.mark.fault("X30")
@pytest.mark.parametrize("cut", RESOLVED)
async def test_a_commit_whose_answer_is_lost_takes_effect_once(
    cut: Cut, far: str, url: str, proxy: Proxy, opened: Callable
) -> None:
    store: PostgresStore = await opened(far)
    first = await inserted(store, "op-1")
    proxy.commits = 0
    proxy.cuts.append(cut)
    (sent,) = await store.commit(Changes(moves=(moved(first, "sent"),)))
    assert proxy.commits == (1 if cut is Cut.AFTER else 2), "a redo only where it is needed"
    (last,) = await store.commit(Changes(moves=(moved(sent, "confirmed"),)))
    seen: PostgresStore = await opened(url)
    assert await seen.load("op-1") == (last,)
    entries = await seen.journal()
    assert [entry.event for entry in entries] == ["recorded", "sent", "confirmed"]
    assert [entry.prev for entry in entries] == ["", *(entry.hash for entry in entries[:-1])]
    for entry in entries:
        verify(entry)


@pytest.mark.fault("X30")
@pytest.mark.parametrize("cut", RESOLVED)
async def test_a_batch_whose_answer_is_lost_is_told_whole(
    cut: Cut, far: str, url: str, proxy: Proxy, opened: Callable
) -> None:
    store: PostgresStore = await opened(far)
    record = await inserted(store, "op-0")
    await store.commit(Changes(moves=(moved(record, "sent"),)))
    proxy.cuts += [cut]
    units = [Changes(moves=(made(f"op-{n}"),)) for n in range(1, 6)]
    units[2] = Changes(moves=(moved(record, "unknown"),))
    outcomes = await asyncio.gather(*map(store.commit, units), return_exceptions=True)
    done = [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]
    assert isinstance(outcomes[2], StoreError)
    assert len(done) == 4
    stored = await (await opened(url)).load(*(f"op-{n}" for n in range(1, 6)))
    assert stored == tuple(one for (one,) in done)


@pytest.mark.fault("X30")
@pytest.mark.parametrize("cut", RESOLVED)
async def test_every_other_write_survives_a_lost_answer_as_well(
    cut: Cut, far: str, url: str, proxy: Proxy, opened: Callable
) -> None:
    store: PostgresStore = await opened(far)
    await inserted(store, "op-1", worker="gone")
    proxy.cuts.append(cut)
    await store.renew(worker="w", until=10.0)
    proxy.cuts.append(cut)
    await store.renew(worker="w", until=20.0)
    proxy.cuts.append(cut)
    (claimed,) = await store.claim(worker="w", now=1.0)
    assert await (await opened(url)).load("op-1") == (claimed,)
    proxy.cuts.append(cut)
    await store.commit(Changes(takes=(Hold(name="x", record="op-1"),)))
    assert await store.holders("x") == {"x": "op-1"}
    proxy.cuts.append(cut)
    await store.retire(worker="w")
    other: PostgresStore = await opened(url)
    assert [one.id for one in await other.claim(worker="v", now=2.0)] == ["op-1"]
    assert proxy.cuts == []


@pytest.mark.fault("X30")
async def test_two_lost_answers_in_a_row_are_resolved(
    far: str, proxy: Proxy, opened: Callable
) -> None:
    store: PostgresStore = await opened(far)
    proxy.cuts += [Cut.BEFORE, Cut.BEFORE, Cut.AFTER]
    record = await inserted(store, "op-1")
    assert await store.load("op-1") == (record,)
    assert len(await store.journal()) == 1


@pytest.mark.fault("X30")
async def test_commits_under_cuts_at_random_are_each_written_once(
    far: str, url: str, proxy: Proxy, opened: Callable
) -> None:
    store: PostgresStore = await opened(far)
    chance = random.Random(30)
    record = await inserted(store, "op-1")
    for n in range(60):
        proxy.cuts = [chance.choice([None, None, None, *RESOLVED]) for _ in range(4)]
        (record,) = await store.commit(Changes(moves=(moved(record, f"sent-{n}"),)))
    entries = await (await opened(url)).journal()
    assert [entry.event for entry in entries] == ["recorded", *(f"sent-{n}" for n in range(60))]
    assert [entry.prev for entry in entries] == ["", *(entry.hash for entry in entries[:-1])]


@pytest.mark.fault("X30")
async def test_an_outcome_that_cannot_be_learned_is_not_told_as_one_until_the_server_is_back(
    far: str, url: str, proxy: Proxy, opened: Callable
) -> None:
    store: PostgresStore = await opened(far, reconnect_max_s=0.2)
    proxy.cuts.append(Cut.NEVER_BACK)
    with pytest.raises(StoreError, match="whether it did is not known yet; read when it is back"):
        await inserted(store, "op-1")
    for asking in (store.load("op-1"), store.journal(), inserted(store, "op-2")):
        with pytest.raises(StoreError, match="not known yet"):
            await asking
    proxy.is_down = False
    (first,) = await store.load("op-1")
    (sent,) = await store.commit(Changes(moves=(moved(first, "sent"),)))
    assert await (await opened(url)).load("op-1", "op-2") == (sent,)
    one, two = await store.journal()
    assert two.prev == one.hash, "the chain goes on from what was found to be written"


@pytest.mark.fault("X30")
@pytest.mark.parametrize("cut", [Cut.NEVER_BACK, Cut.AWAY])
async def test_what_was_taken_over_unheard_comes_with_the_next_claim(
    cut: Cut, far: str, url: str, proxy: Proxy, opened: Callable
) -> None:
    """Else a worker that lives would hold it, and nobody would see to it."""
    store: PostgresStore = await opened(far, reconnect_max_s=0.2)
    await store.renew(worker="w", until=time.time() + 60.0)
    await inserted(store, "op-1", worker="gone")
    proxy.cuts.append(cut)
    with pytest.raises(StoreError, match="not known yet"):
        await store.claim(worker="w", now=time.time())
    proxy.is_down = False
    (claimed,) = await store.claim(worker="w", now=time.time())
    assert await (await opened(url)).load("op-1") == (claimed,)
    assert claimed.worker == "w"
    assert await store.claim(worker="w", now=time.time()) == ()


@pytest.mark.fault("X30")
@pytest.mark.parametrize("first", ["read", "write"])
async def test_one_that_never_came_to_the_server_is_found_not_to_have_been_written(
    first: str, far: str, proxy: Proxy, opened: Callable
) -> None:
    store: PostgresStore = await opened(far, reconnect_max_s=0.2)
    before = await inserted(store, "op-1")
    proxy.cuts.append(Cut.AWAY)
    with pytest.raises(StoreError, match="not known yet"):
        await store.commit(Changes(moves=(moved(before, "sent"),)))
    proxy.is_down = False
    if first == "read":
        assert await store.load("op-1") == (before,)
    (sent,) = await store.commit(Changes(moves=(moved(before, "sent"),)))
    assert await store.load("op-1") == (sent,)
    one, two = await store.journal()
    assert two.prev == one.hash


async def test_a_server_that_stays_away_is_told_and_nothing_was_written(
    far: str, url: str, proxy: Proxy, opened: Callable
) -> None:
    store: PostgresStore = await opened(far, reconnect_max_s=0.2)
    record = await inserted(store, "op-1")
    proxy.is_down = True
    await proxy.close()
    with pytest.raises(StoreError, match=r"cannot be reached.*Nothing was written"):
        await store.commit(Changes(moves=(moved(record, "sent"),)))
    with pytest.raises(StoreError):
        await store.load("op-1")
    proxy.is_down = False
    (sent,) = await store.commit(Changes(moves=(moved(record, "sent"),)))
    assert await store.load("op-1") == (sent,), "the store comes back with its server"


async def test_connections_that_the_server_ends_are_made_anew(
    server: Server, url: str, opened: Callable
) -> None:
    store: PostgresStore = await opened()
    record = await inserted(store, "op-1")
    await store.load("op-1")
    ended = server.execute(
        server.uri,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        f"WHERE datname = '{server.name(url)}'",
    )
    assert len(ended) == 2
    assert await store.load("op-1") == (record,)
    await store.commit(Changes(moves=(moved(record, "sent"),)))


@pytest.mark.fault("X34")
async def test_a_deadlock_is_tried_again(url: str, opened: Callable) -> None:
    """The other transaction holds the second record and waits for the first."""
    store: PostgresStore = await opened(lock_wait_max_s=20.0)
    first, second = await inserted(store, "op-1"), await inserted(store, "op-2")
    other = await connect(LineSettings(url=url))
    await other.execute("BEGIN")
    await other.execute("SET LOCAL deadlock_timeout = '60s'")  # The store's side is the one to end.
    await other.execute("SELECT 1 FROM landed.record WHERE id = 'op-2' FOR UPDATE")
    moves = (moved(first, "sent"), moved(second, "sent"))
    committing = asyncio.create_task(store.commit(Changes(moves=moves)))
    waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted"
    watch = await connect(LineSettings(url=url))
    while (await (await watch.execute(waiting)).fetchone()) == (0,):
        pass
    locked = await other.execute("SELECT version FROM landed.record WHERE id = 'op-1' FOR UPDATE")
    assert await locked.fetchone() == (1,), "the store's attempt was rolled back"
    await other.execute("COMMIT")
    done = await committing
    assert [one.version for one in done] == [2, 2]
    await other.close()
    await watch.close()


async def test_what_a_unit_guards_stays_as_it_is_until_the_unit_is_in(
    url: str, opened: Callable
) -> None:
    store: PostgresStore = await opened()
    await inserted(store, "plan-1")
    other = await connect(LineSettings(url=url))
    await other.execute("BEGIN")
    await other.execute("SELECT 1 FROM landed.record WHERE id = 'plan-1' FOR NO KEY UPDATE")
    unit = Changes(moves=(made("op-1"),), guards=(Guard(id="plan-1", version=1),))
    committing = asyncio.create_task(store.commit(unit))
    watch = await connect(LineSettings(url=url))
    waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted"
    while not committing.done() and (await (await watch.execute(waiting)).fetchone()) == (0,):
        pass
    assert not committing.done(), "the unit went in while another was moving what it guards"
    await other.execute("COMMIT")
    assert len(await committing) == 1
    await other.close()
    await watch.close()


@pytest.mark.fault("X34")
async def test_who_holds_a_record_too_long_is_reported(url: str, opened: Callable) -> None:
    store: PostgresStore = await opened(lock_wait_max_s=0.05)
    record = await inserted(store, "op-1")
    other = await connect(LineSettings(url=url))
    await other.execute("BEGIN")
    await other.execute("SELECT 1 FROM landed.record FOR UPDATE")
    with pytest.raises(StoreError, match="another transaction holds what this one needs"):
        await store.commit(Changes(moves=(moved(record, "sent"),)))
    await other.execute("ROLLBACK")
    await other.close()
    await store.commit(Changes(moves=(moved(record, "sent"),)))


@pytest.mark.fault("X34")
@pytest.mark.timeout(120)
async def test_two_stores_that_move_the_same_records_in_any_order_lose_nothing(
    opened: Callable,
) -> None:
    stores: list[PostgresStore] = [await opened() for _ in range(2)]
    for n in range(8):
        await inserted(stores[0], f"op-{n}")

    async def move_on(store: PostgresStore, id: str) -> int:
        won = 0
        for _ in range(10):
            (record,) = await store.load(id)
            try:
                await store.commit(Changes(moves=(moved(record, "sent"),)))
                won += 1
            except StoreError as error:
                assert "read it and decide again" in str(error)  # noqa: PT017
        return won

    moving = [
        move_on(store, f"op-{n}")
        for store, order in zip(stores, (range(8), reversed(range(8))), strict=True)
        for n in order
    ]
    won = sum(await asyncio.gather(*moving))
    records = await stores[0].load(*(f"op-{n}" for n in range(8)))
    assert sum(one.version - 1 for one in records) == won
    assert len(await stores[0].journal()) == 8 + won


@pytest.mark.fault("X39")
async def test_nothing_is_left_in_a_session(far: str, proxy: Proxy, opened: Callable) -> None:
    """Behind PgBouncer each transaction may come upon another connection."""
    store: PostgresStore = await opened(far)
    await store.renew(worker="w", until=10.0)
    record = await inserted(store, "op-1")
    for connection in (await store._line.connected(),):
        prepared = await (
            await connection.execute("SELECT * FROM pg_prepared_statements")
        ).fetchall()
        held = await connection.execute("SELECT 1 FROM pg_locks WHERE locktype = 'advisory'")
        path = await (await connection.execute("SHOW search_path")).fetchone()
        wait = await (await connection.execute("SHOW lock_timeout")).fetchone()
        assert (prepared, await held.fetchall()) == ([], [])
        assert (path, wait) == (('"$user", public',), ("0",))
    for state in ("sent", "unknown", "confirmed"):
        store._line.drop()  # The next transaction comes upon a new connection.
        (record,) = await store.commit(Changes(moves=(moved(record, state),)))
    await store.renew(worker="w", until=20.0)
    assert record.version == 4
