"""Behind PgBouncer in transaction mode, where no two transactions need meet on one connection."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from landed.core.store import Store
from landed.stores.postgres import PostgresStore, open_postgres
from landed.testing.check_store import CHECKS, Maker
from landed.testing.doubts import stage as doubts
from landed.testing.doubts.scenarios import DOUBTS_BY_NAME
from landed.testing.inline import inline
from landed.testing.invoices import stage as invoices
from landed.testing.invoices.scenarios import INVOICES_BY_NAME
from landed.testing.scenario import Ran, run
from landed.testing.scenarios import BY_NAME
from landed.testing.store_checks.suite import inserted
from tests.stores.postgres.bouncer import POOL, bouncing
from tests.stores.postgres.embedded import Server

pytestmark = [pytest.mark.anyio, pytest.mark.services, pytest.mark.fault("X39")]

PLAYED: dict[str, Callable[..., Ran]] = {
    "revise-crash-before-release": partial(run, BY_NAME["revise-crash-before-release"]),
    "invoice-redeploy": partial(invoices.run, INVOICES_BY_NAME["invoice-redeploy"]),
    "refund-restart": partial(doubts.run, DOUBTS_BY_NAME["refund-restart"]),
}


@pytest.fixture(scope="module")
def bouncer(server: Server) -> Iterator[Path]:
    with bouncing(server) as directory:
        yield directory


@pytest.fixture
def far(server: Server, bouncer: Path, url: str) -> str:
    """The URL of the test's database behind it."""
    return server.url(server.name(url), host=str(bouncer))


# What random programs would find, they find without it.
CHECKED = [name for name in CHECKS if name != "programs_do_what_apply_does"]


async def open_again(store: Store) -> Store:
    assert isinstance(store, PostgresStore)
    return await store.open_again()


@pytest.mark.parametrize("name", CHECKED)
async def test_the_store_keeps_its_contract(name: str, far: str, url: str, server: Server) -> None:
    async def make() -> Store:
        server.clear(url)
        return await open_postgres(far)

    await CHECKS[name](Maker(make=make, again=open_again))


async def test_ten_stores_share_its_few_connections(far: str, url: str, server: Server) -> None:
    stores = [await open_postgres(far) for _ in range(10)]
    for n, store in enumerate(stores):
        await store.renew(worker=f"w{n}", until=1e12)
        await inserted(store, f"op-{n}", worker=f"w{n}")
    for n, store in enumerate(stores):
        (held,) = await store.open_records(tenant="t", session="s", worker=f"w{n}")
        assert held.id == f"op-{n}"
    count = f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{server.name(url)}'"
    assert server.execute(server.uri, count) <= [(POOL,)]
    for store in stores:
        await store.close()


@pytest.mark.parametrize("name", PLAYED)
def test_a_scenario_takes_the_same_course(name: str, far: str) -> None:
    with inline(partial(open_postgres, far)) as base:
        ran = PLAYED[name](base=base)
    assert ran.as_described is True
    assert ran.plain() == PLAYED[name]().plain()
