"""What is open, and what waits for a person, is found by an index that holds nothing else."""

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from bench.doubts import finish
from landed.core.store import Page, Selection
from landed.stores.driver import connect
from landed.stores.listing import LOOKED_MAX, Asked, found
from landed.stores.queries import SQLITE
from landed.stores.sqlite import open_sqlite
from landed.testing.store_checks.suite import FAR, inserted

FINISHED = 2_000
# By the query: what it is handed, and the index that it may look into the records by.
LOOKS = {
    "owners": (("w",), "record_(left|open)"),
    "tenants_left": (("", '["w1"]', 100), "record_(left|open)"),
    "claimable": (("w1", "default", 100), "record_left"),
    "open_records": (("w1", "default", "s1", 100), "record_open"),
    "disown": (("w1",), "record_(left|open)"),
    "idle_workers": (("w",), "record_(left|open)"),
    "waiting": (("default", 0, 100), "record_waiting"),
    "open_workers": ((), "record_(left|open)"),
    "open_of": (("w1", "default", 0, 100), "record_left"),
    "open_counts": ((100,), "record_(open|left)"),
    "oldest_open": ((100, "operation", '["unknown"]'), "record_(open|left)"),
    "waiting_counts": ((100,), "record_waiting"),
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
    assert all(re.search(f"INDEX {index}", step) for step in steps), steps


@pytest.mark.anyio
async def test_what_looks_for_the_few_is_all_there() -> None:
    """A query over records by anything but their ids has to be in the table above, or bounded."""
    by_id = {
        "insert_record",
        "update_record",
        "versions",
        "load",
        "journal_of",
        "claim_records",
        "recent",
    }
    by_id |= {"begin_with_erasure", "let_bodies_go"}
    bounded = {"session_records", "sessions"}
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
    for of in Selection:
        assert await store.listed(tenant="default", of=of) == Page(records=(), next=0)
    assert await store.open_records(tenant="default", session="s1", worker="w1") == ()
    await store.close()


@pytest.mark.anyio
@pytest.mark.req("S4-50")
async def test_what_is_recent_is_found_by_position(tmp_path: Path) -> None:
    """No entry is looked at but the last ones, and no record but theirs."""
    path = str(tmp_path / "agent.db")
    await _full(path)
    connection = connect(path, wait_ms=1_000)
    rows = connection.execute(f"EXPLAIN QUERY PLAN {SQLITE.recent}", (2**62, 100, "default"))
    steps = [str(row[3]) for row in rows if re.search("journal|record", str(row[3]))]
    connection.close()

    assert len(steps) == 2
    assert "SEARCH journal USING INTEGER PRIMARY KEY (rowid<?)" in steps[0]
    assert "SEARCH record USING PRIMARY KEY (id=?)" in steps[1]


CLAIMING = ("owners", "tenants_left", "claimable", "idle_workers")


def _steps(path: str) -> int:
    """Return how many steps of SQLite's machine the queries of a claim take."""
    connection, steps = connect(path, wait_ms=1_000), 0

    def step() -> int:
        nonlocal steps
        steps += 1
        return 0

    connection.set_progress_handler(step, 1)
    for name in CLAIMING:
        connection.execute(getattr(SQLITE, name), LOOKS[name][0]).fetchall()
    connection.close()
    return steps


@pytest.mark.anyio
async def test_a_claim_costs_the_same_however_much_living_workers_hold(tmp_path: Path) -> None:
    path = str(tmp_path / "agent.db")
    store = open_sqlite(path)
    await store.renew(worker="alive", until=FAR)
    await inserted(store, "op-1", worker="w1")
    counts: list[int] = []
    for count in (10, FINISHED):
        writer = connect(path, wait_ms=1_000)
        writer.execute(HELD, (count,))
        writer.close()
        counts.append(_steps(path))
    await store.close()

    assert counts[1] == counts[0]


HELD = """
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
INSERT INTO record (id, kind, tenant, session, state, version, epoch, worker, open, made, last)
SELECT 'op-' || (SELECT count(*) FROM record) || '-' || i, 'operation', 'default', 's' || (i % 9),
    'sent', 3, 1, 'alive', 1, 10 + i, 10 + i FROM n
"""


@pytest.mark.anyio
@pytest.mark.parametrize("analysed", [False, True])
async def test_the_entries_of_a_record_are_found_by_position(
    tmp_path: Path, analysed: bool
) -> None:
    """Each is gone to from the one after it; the journal is not read through for it."""
    path = str(tmp_path / "agent.db")
    await _full(path)
    connection = connect(path, wait_ms=1_000)
    if analysed:
        connection.execute("ANALYZE")
    rows = connection.execute(f"EXPLAIN QUERY PLAN {SQLITE.journal_of}", ("op-1", 0, 100))
    steps = [str(row[3]) for row in rows if "journal" in str(row[3])]
    connection.close()

    assert len(steps) == 3
    assert all("SEARCH journal USING INTEGER PRIMARY KEY (rowid=?)" in one for one in steps), steps


@pytest.mark.parametrize(("limit", "looked"), [(2, LOOKED_MAX), (500, 2_000)])
def test_where_others_write_a_lot_only_so_much_is_looked_at_for_a_page(limit, looked):
    newest = 1_000_000
    counts: list[int] = []

    def page():
        """Answer as a store in which nothing is this tenant's."""
        asked = Asked(queries=SQLITE, tenant="t", after=newest, limit=limit)
        asking = found(Selection.RECENT, asked)
        rows: Any = None
        try:
            while True:
                parameters: Any = asking.send(rows).parameters
                before, count, _ = parameters
                counts.append(count)
                rows = [(before - n, None) for n in range(1, count + 1)]
        except StopIteration as over:
            return over.value

    assert page() == ([], newest - looked)
    assert sum(counts) == looked
