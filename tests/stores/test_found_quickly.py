"""What is open, and what waits for a person, is found by an index that holds nothing else."""

from dataclasses import fields
from pathlib import Path

import pytest

from bench.doubts import finish
from landed.stores.driver import connect
from landed.stores.queries import SQLITE
from landed.stores.sqlite import open_sqlite

FINISHED = 2_000
# By the query: what it is handed, and the index that it may look into the records by.
LOOKS = {
    "owners": (("w",), "record_open"),
    "claimable": (('["w1"]', 100), "record_open"),
    "open_records": (("w1", "default", "s1", 100), "record_open"),
    "disown": (("w1",), "record_open"),
    "idle_workers": (("w",), "record_open"),
    "waiting": (("default", 0, 100), "record_waiting"),
}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def _full(path: str) -> None:
    await open_sqlite(path).close()
    finish(path, FINISHED)


@pytest.mark.anyio
@pytest.mark.req("S4-09", "S4-50")
@pytest.mark.parametrize("name", LOOKS)
@pytest.mark.parametrize("analysed", [False, True])
async def test_finished_records_are_not_looked_at(
    tmp_path: Path, name: str, analysed: bool
) -> None:
    path = str(tmp_path / "agent.db")
    await _full(path)
    parameters, index = LOOKS[name]
    connection = connect(path, wait_ms=1_000)
    if analysed:
        connection.execute("ANALYZE")
    rows = connection.execute(f"EXPLAIN QUERY PLAN {getattr(SQLITE, name)}", parameters)
    steps = [str(row[3]) for row in rows if " record" in str(row[3])]
    connection.close()

    assert steps
    assert all(f"INDEX {index}" in step for step in steps), steps


@pytest.mark.anyio
async def test_what_looks_for_the_few_is_all_there() -> None:
    """A query over records by anything but their ids has to be in the table above, or bounded."""
    by_id = {"insert_record", "update_record", "versions", "load", "journal_of", "claim_records"}
    bounded = {"session_records"}
    over = {
        each.name for each in fields(SQLITE) if "record" in getattr(SQLITE, each.name).split()
    } | {each.name for each in fields(SQLITE) if "loaded" in getattr(SQLITE, each.name)}
    assert over - by_id - bounded - {"take_name", "free_name", "holders"} == set(LOOKS)


@pytest.mark.anyio
async def test_the_store_finds_nothing_among_the_finished(tmp_path: Path) -> None:
    path = str(tmp_path / "agent.db")
    await _full(path)
    store = open_sqlite(path)

    assert await store.claim(worker="w", now=0.0) == ()
    assert await store.waiting(tenant="default") == ()
    assert await store.open_records(tenant="default", session="s1", worker="w1") == ()
    await store.close()
