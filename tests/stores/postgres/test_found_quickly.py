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


def rows_read(plan: object, table: str = "record") -> float:
    """Return how many rows of a table were looked at, returned or not."""
    read = 0.0
    match plan:
        case dict():
            if plan.get("Relation Name") == table:
                rows = plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0)
                read = rows * plan["Actual Loops"]
            return read + sum(rows_read(part, table) for part in plan.values())
        case list():
            return sum(rows_read(part, table) for part in plan)
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


LISTING = {
    "waiting": ("'t'", "0", "50"),
    "open_workers": (),
    "open_of": ("'gone'", "'t'", "0", "50"),
}


@pytest.mark.req("S4-50")
@pytest.mark.parametrize("name", CENSUS | LISTING)
async def test_a_census_and_a_listing_read_nothing_that_is_finished(
    name: str, url: str, server: Server, opened: Callable
) -> None:
    await inserted(await opened(), "op-1")
    server.execute(
        url,
        "INSERT INTO landed.record SELECT 'done-' || n, 'operation', 't', 's',"
        f" 'confirmed', 1, 0, 'w', 0, n, n FROM generate_series(1, {MANY}) AS n",
    )
    server.execute(url, "ANALYZE landed.record")

    query = asked(getattr(SHARED, name), (CENSUS | LISTING)[name])
    explain = f"EXPLAIN (ANALYZE, FORMAT JSON) {query}"
    ((plan,),) = server.execute(url, explain)

    assert rows_read(plan) <= 1, plan


@pytest.mark.req("S4-50")
async def test_what_is_recent_is_found_by_position(
    url: str, server: Server, opened: Callable
) -> None:
    """No entry is looked at but the last ones, and no record but theirs."""
    await inserted(await opened(), "op-1")
    numbers = f"generate_series(10, {MANY}) AS n"
    server.execute(
        url,
        "INSERT INTO landed.record SELECT 'done-' || n, 'operation', 't', 's',"
        f" 'confirmed', 1, 0, 'w', 0, n, n FROM {numbers}",
    )
    server.execute(
        url,
        "INSERT INTO landed.journal SELECT n, 'done-' || n, 1, 0, 'made', 'confirmed', 0.0, NULL,"
        f" '', '', '' FROM {numbers}",
    )
    server.execute(url, "ANALYZE landed.record, landed.journal")

    query = asked(SHARED.recent, (f"{2**62}", "40", "'t'"))
    ((plan,),) = server.execute(url, f"EXPLAIN (ANALYZE, FORMAT JSON) {query}")

    assert (rows_read(plan), rows_read(plan, "journal")) == (40, 40), plan
