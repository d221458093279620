"""The write-ahead log: it is begun anew by itself, and one that cannot be is told of."""

import logging
from dataclasses import replace
from pathlib import Path

import pytest

from landed.core.changes import Changes
from landed.core.store import Fact
from landed.stores import wal
from landed.stores.driver import connect
from landed.stores.sqlite import SqliteStore
from landed.testing.store_checks.suite import made

pytestmark = [pytest.mark.anyio, pytest.mark.fault("X35")]

LIMIT = 5_000_000  # More than SQLite lets gather before it moves the log into the file: 4 MB.
RECORDS = 40


async def write(store: SqliteStore, lap: int) -> None:
    """Write eight megabytes, a record at a time."""
    for number in range(RECORDS):
        move = made(f"op-{lap}-{number}")
        large = replace(move, after=replace(move.after, frozen={"text": "x" * 200_000}))
        await store.commit(Changes(moves=(large,)))


async def wal_of(store: SqliteStore) -> Fact:
    (fact,) = [fact for fact in await store.facts() if fact.name == "wal_bytes"]
    return fact


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bound the log tightly, before the store is opened."""
    monkeypatch.setattr(wal, "LOG_MAX_BYTES", LIMIT)
    monkeypatch.setattr(wal, "LOOK_EVERY", 10)
    monkeypatch.setattr("landed.stores.driver.LOG_MAX_BYTES", LIMIT)


async def test_a_log_that_nobody_reads_from_is_begun_anew(
    store: SqliteStore, caplog: pytest.LogCaptureFixture
) -> None:
    await write(store, 1)
    await write(store, 2)
    assert (await wal_of(store)).ok
    assert not caplog.records


async def test_one_that_a_reader_holds_back_is_warned_of_until_the_reader_ends(
    path: str, store: SqliteStore, caplog: pytest.LogCaptureFixture
) -> None:
    reader = connect(path, wait_ms=0)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM record").fetchall()
    with caplog.at_level(logging.WARNING, "landed"):
        await write(store, 1)
        await write(store, 2)
    held_back = await wal_of(store)
    assert not held_back.ok
    assert int(held_back.value) > LIMIT
    warned = [record.getMessage() for record in caplog.records]
    assert 1 <= len(warned) <= 3  # Told again when it has doubled, not at each commit.
    assert all("-wal has grown to" in text and "sqlite3 shell" in text for text in warned)

    reader.close()
    await write(store, 3)
    assert (await wal_of(store)).ok
    assert Path(f"{path}-wal").stat().st_size <= LIMIT
