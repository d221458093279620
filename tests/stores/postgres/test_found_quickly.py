"""A claim and a census on Postgres read nothing finished; a claim nothing of the living either."""

import re
from collections.abc import Callable

import pytest

from landed.stores.postgres_queries import POSTGRES, SHARED
from landed.testing.store_checks.suite import FAR, inserted
from tests.stores.postgres.embedded import Server

pytestmark = [pytest.mark.anyio, pytest.mark.services]

MANY = 20_000
READ_MAX = 50
# Each query of a claim, with what it is handed.
CLAIMING = {
    "owners": (SHARED.owners, ("'me'",)),
    "tenants_left": (SHARED.tenants_left, ("''", "'{gone}'", "101")),
    "lock_claimable": (POSTGRES.lock_claimable, ("'{gone}'", "'{t,u}'", "50")),
    "remove_idle": (POSTGRES.remove_idle, ("'me'", "1.0")),
}


def asked(query: str, parameters: tuple[str, ...]) -> str:
    return re.sub(r"\$(\d)", lambda number: parameters[int(number[1]) - 1], query).rstrip(";")


def rows_read(plan: object) -> float:
    """Return how many rows of the records were looked at, returned or not."""
    read = 0.0
    match plan:
        case dict():
            if plan.get("Relation Name") == "record":
                rows = plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0)
                read = rows * plan["Actual Loops"]
            return read + sum(map(rows_read, plan.values()))
        case list():
            return sum(map(rows_read, plan))
        case _:
            return read


@pytest.mark.parametrize("name", CLAIMING)
async def test_a_claim_reads_only_what_was_left(
    name: str, url: str, server: Server, opened: Callable
) -> None:
    store = await opened()
    await store.renew(worker="alive", until=FAR)
    await inserted(store, "op-1", worker="gone")
    for worker, is_open in (("gone", 0), ("alive", 1)):
        server.execute(
            url,
            f"INSERT INTO landed.record SELECT '{worker}-' || n, 'operation', 't' || n % 7, 's',"
            f" 'sent', 1, 0, '{worker}', {is_open}, n, n FROM generate_series(1, {MANY}) AS n",
        )
    server.execute(url, "ANALYZE landed.record")

    explain = f"EXPLAIN (ANALYZE, FORMAT JSON) {asked(*CLAIMING[name])}"
    ((plan,),) = server.execute(url, explain)

    assert rows_read(plan) <= READ_MAX, plan
    if name == "lock_claimable":
        assert [one.id for one in await store.claim(worker="me", now=1.0)] == ["op-1"]


CENSUS = {
    "open_counts": ("10000",),
    "oldest_open": ("10000", "'operation'", "'{unknown}'"),
    "waiting_counts": ("10000",),
}


@pytest.mark.req("S4-50")
@pytest.mark.parametrize("name", CENSUS)
async def test_a_census_reads_nothing_that_is_finished(
    name: str, url: str, server: Server, opened: Callable
) -> None:
    await inserted(await opened(), "op-1")
    server.execute(
        url,
        "INSERT INTO landed.record SELECT 'done-' || n, 'operation', 't', 's',"
        f" 'confirmed', 1, 0, 'w', 0, n, n FROM generate_series(1, {MANY}) AS n",
    )
    server.execute(url, "ANALYZE landed.record")

    explain = f"EXPLAIN (ANALYZE, FORMAT JSON) {asked(getattr(SHARED, name), CENSUS[name])}"
    ((plan,),) = server.execute(url, explain)

    assert rows_read(plan) <= 1, plan
