"""The Postgres store keeps the contract of the seam, as the suite that SQLite passes says it."""

import asyncio

import pytest
from hypothesis import given, settings

from landed.core.store import Store
from landed.stores.postgres import PostgresStore, open_postgres
from landed.testing.check_store import CHECKS, Maker, check_store
from landed.testing.store_checks.programs import Unit, compare, programs
from landed.testing.store_checks.suite import inserted
from tests.stores.postgres.embedded import Server

pytestmark = [pytest.mark.anyio, pytest.mark.services]

SECRET = b"a secret of the test"


async def open_again(store: Store) -> Store:
    assert isinstance(store, PostgresStore)
    return await store.open_again()


@pytest.fixture
def maker(server: Server, url: str) -> Maker:
    async def make() -> Store:
        server.clear(url)  # Each check closes its store before the next is made.
        return await open_postgres(url, secret=SECRET)

    return Maker(make=make, again=open_again, secret=SECRET)


CLAIMED = {
    "one_of_ten_claims_wins": pytest.mark.fault("X19"),
    "who_lost_a_claim_writes_nothing": pytest.mark.req("S4-25"),
    "claims_of_two_handles_exclude_each_other": pytest.mark.req("S4-24"),
}


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=CLAIMED.get(name, ())) for name in CHECKS]
)
async def test_the_store_keeps_its_contract(name: str, maker: Maker) -> None:
    await CHECKS[name](maker)


@pytest.mark.req("K29")
@pytest.mark.timeout(180)
async def test_the_published_suite_runs_whole(maker: Maker) -> None:
    ran = await check_store(maker.make, again=open_again, secret=SECRET)
    assert ran == tuple(CHECKS)


@pytest.mark.timeout(120)
def test_units_committed_together_do_what_apply_does_one_after_the_other(maker: Maker) -> None:
    @settings(max_examples=40, deadline=None, database=None)
    @given(programs())
    def run(program: list[Unit]) -> None:
        asyncio.run(compare(maker.make, program, at_once=4))

    run()


@pytest.mark.fault("X19")
@pytest.mark.timeout(120)
async def test_of_ten_stores_that_claim_at_once_one_wins_a_hundred_times(maker: Maker) -> None:
    first = await maker.make()
    stores = [first] + [await open_again(first) for _ in range(9)]
    for n, store in enumerate(stores):
        await store.renew(worker=f"w{n}", until=1e12)
    epochs = [0]
    for n in range(100):
        await inserted(first, f"op-{n}", worker="gone")
        claims = (store.claim(worker=f"w{at}", now=1.0) for at, store in enumerate(stores))
        (won,) = [claimed for claimed in await asyncio.gather(*claims) if claimed]
        epochs.append(won[0].epoch)
    assert epochs == sorted(set(epochs))
    for store in reversed(stores):
        await store.close()
