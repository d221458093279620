"""Servers that are killed, restarted, or give way to another: a runtime at work loses nothing."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import quote

import pytest

import landed
from landed.core.changes import Changes
from landed.core.errors import StoreError
from landed.core.outcome import Absent, Found, LookOutcome
from landed.core.tool import Call
from landed.core.value import Confirmed, Value
from landed.runtime.parts import assemble, register
from landed.runtime.runtime import Runtime
from landed.stores.postgres import PostgresStore, open_postgres
from landed.stores.postgres_line import Settings as LineSettings
from landed.stores.postgres_line import connect
from landed.testing.store_checks.suite import inserted, made, moved
from landed.tools.function import FunctionTool
from tests.stores.postgres.embedded import Server, serving

pytestmark = [pytest.mark.anyio, pytest.mark.services, pytest.mark.timeout(180)]

CALLS = 12
PRIMARY = "target_session_attrs=read-write"


@pytest.fixture
def own() -> Iterator[Server]:
    """A server that a test may kill, and that the other tests do not use."""
    with serving() as running:
        yield running


@dataclass
class Shop:
    """A service that keeps keys; each order waits for `gate`."""

    gate: asyncio.Event = field(default_factory=asyncio.Event)
    all_out: asyncio.Event = field(default_factory=asyncio.Event)
    expected: int = CALLS
    orders: dict[str, str] = field(default_factory=dict)
    effects: list[str] = field(default_factory=list)

    async def order(self, what: str, key: str) -> str:
        if key not in self.orders:
            self.effects.append(what)
        self.orders[key] = what
        if len(self.orders) >= self.expected:
            self.all_out.set()
        await self.gate.wait()
        return what

    async def find(self, call: Call) -> LookOutcome:
        found = self.orders.get(call.key)
        return Absent() if found is None else Found(result=found)

    def tool(self) -> "FunctionTool":
        return landed.tool(
            effect="irreversible",
            keyed="key",
            compares_payload=True,
            lookup=self.find,
            deadline_s=60.0,
        )(self.order)


@asynccontextmanager
async def working(store: PostgresStore, shop: Shop) -> AsyncIterator[Runtime]:
    async with assemble(store, tools=register([shop.tool()]), worker="w1") as runtime:
        yield runtime


async def all_ordered(rt: Runtime, shop: Shop, interrupt: Callable[[], None]) -> list[Value]:
    """Have the server interrupted while every order is out, and return what became of them."""
    calls = [
        asyncio.ensure_future(rt.perform("order", {"what": f"{n}"}, patience_s=100.0))
        for n in range(CALLS)
    ]
    await shop.all_out.wait()
    await asyncio.to_thread(interrupt)
    shop.gate.set()
    return await asyncio.gather(*calls)


async def test_a_server_that_is_killed_and_restarted_under_a_runtime_costs_nothing(
    own: Server,
) -> None:
    """Each order comes back to a server that was away while it was out."""
    shop = Shop()

    def restart() -> None:
        own.kill()
        own.start()

    url = own.database()
    async with working(await open_postgres(url), shop) as rt:
        values = await all_ordered(rt, shop, restart)
        (later,) = [await rt.perform("order", {"what": "later"}, patience_s=60.0)]
    assert [type(value) for value in (*values, later)] == [Confirmed] * (CALLS + 1)
    assert sorted(shop.effects) == sorted([*(f"{n}" for n in range(CALLS)), "later"])
    events = own.execute(url, "SELECT event, count(*) FROM landed.journal GROUP BY event")
    assert dict(events)["acknowledged"] == CALLS + 1


async def test_a_server_that_is_away_for_longer_than_a_write_waits_is_waited_for(
    own: Server,
) -> None:
    """What came back is kept in memory and written when the server is there again."""
    shop = Shop(expected=1)
    url = own.database()
    store = await open_postgres(url, reconnect_max_s=0.2)
    async with working(store, shop) as rt:
        asking = asyncio.ensure_future(rt.perform("order", {"what": "x"}, patience_s=100.0))
        await shop.all_out.wait()
        await asyncio.to_thread(own.kill)
        shop.gate.set()
        with pytest.raises(StoreError, match="cannot be reached"):
            await asking
        await asyncio.to_thread(own.start)
        (operation,) = own.execute(url, "SELECT id FROM landed.record WHERE kind = 'operation'")
        value = await rt.resolve(operation[0], patience_s=60.0)
    assert isinstance(value, Confirmed)
    assert shop.effects == ["x"]
    events = own.execute(url, "SELECT event FROM landed.journal ORDER BY seq")
    assert [one for (one,) in events if one in ("made", "sent", "acknowledged", "found")] == [
        *("made", "sent", "acknowledged")
    ]


@pytest.mark.fault("X37")
async def test_after_a_fail_over_a_runtime_goes_on_at_the_new_primary(own: Server) -> None:
    shop = Shop()
    name = own.name(own.database())
    with own.standby() as standby:
        url = both(own, standby, name)

        def fail_over() -> None:
            own.kill()
            standby.control("promote")

        async with working(await open_postgres(url), shop) as rt:
            await caught_up(own, standby)
            before = {fact.name: fact for fact in await rt.driver.store.facts()}
            assert not before["fail_over"].ok
            assert before["fail_over"].value == "1 follow, none is waited for"
            values = await all_ordered(rt, shop, fail_over)
            after = {fact.name: fact for fact in await rt.driver.store.facts()}
        assert after["role"].value == "primary"
        assert after["fail_over"].ok
        own.start()  # So that it can be stopped.
    assert [type(value) for value in values] == [Confirmed] * CALLS
    assert len(shop.effects) == CALLS


async def test_a_server_that_became_read_only_is_left_for_one_that_can_be_written(
    own: Server,
) -> None:
    """As a provider does that moves the primary: the old one still answers, and takes nothing."""
    name = own.name(own.database())
    with own.standby() as standby:
        store = await open_postgres(both(own, standby, name), reconnect_max_s=5.0)
        record = await inserted(store, "op-1")
        assert await store.load("op-1") == (record,)
        await caught_up(own, standby)
        standby.control("promote")
        own.execute(own.uri, "ALTER SYSTEM SET default_transaction_read_only = on")
        own.execute(own.uri, "SELECT pg_reload_conf()")
        await until_read_only(own)
        (sent,) = await store.commit(Changes(moves=(moved(record, "sent"),)))
        assert await store.load("op-1") == (sent,), "nothing is read from the old one either"
        assert standby.execute(standby.url(name), "SELECT version FROM landed.record") == [(2,)]
        assert own.execute(own.url(name), "SELECT version FROM landed.record") == [(1,)]
        await store.close()


async def test_where_only_a_standby_is_left_the_sentence_says_so(own: Server) -> None:
    name = own.name(own.database())
    first = await open_postgres(own.url(name))
    await inserted(first, "op-1")
    await first.close()
    with own.standby() as standby:
        with pytest.raises(StoreError, match="it is read-only: a standby, or set so"):
            await open_postgres(f"{standby.url(name)}&{PRIMARY}", reconnect_max_s=0.2)
        store = await open_postgres(standby.url(name), reconnect_max_s=0.2)
        with pytest.raises(StoreError, match="it is read-only: a standby, or set so"):
            await store.commit(Changes(moves=(made("op-2"),)))
        assert len(await store.load("op-1")) == 1, "it can be read all the same"
        await store.close()


def both(one: Server, other: Server, name: str) -> str:
    """Return the URL that names two servers, of which one can be written."""
    hosts = ",".join(quote(str(each.directory), safe="") for each in (one, other))
    return f"postgresql://postgres@/{name}?host={hosts}&{PRIMARY}"


async def caught_up(primary: Server, standby: Server) -> None:
    """Wait until the standby has replayed what the primary has now."""
    ((here,),) = primary.execute(primary.uri, "SELECT pg_current_wal_flush_lsn()")
    there = f"SELECT 1 WHERE pg_last_wal_replay_lsn() >= '{here}'::pg_lsn"
    while not await asyncio.to_thread(standby.execute, standby.uri, there):
        pass


async def until_read_only(server: Server) -> None:
    while True:
        watch = await connect(LineSettings(url=server.uri))
        found = await (await watch.execute("SHOW default_transaction_read_only")).fetchone()
        await watch.close()
        if found == ("on",):
            return
