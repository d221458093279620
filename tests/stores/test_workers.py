"""A living worker is left alone, and a dead one is known by its free file before its lease ends."""

from collections.abc import Callable
from pathlib import Path

import pytest

from landed.core.errors import LeaseLostError, StoreError
from landed.stores import locks
from landed.stores.locks import FileLock, is_free, lock_for_life, remove_if_free
from landed.stores.sqlite import SqliteStore, open_sqlite
from landed.testing.store_checks.suite import FAR, inserted

pytestmark = pytest.mark.anyio

Open = Callable[..., SqliteStore]


def workers(path: str) -> set[str]:
    """The worker files beside a store."""
    return {file.name for file in Path(path + "-workers").iterdir()}


async def test_a_dead_workers_records_are_claimed_before_its_lease_ends(opened: Open) -> None:
    first, second = opened(), opened()
    await first.renew(worker="a", until=FAR)
    record = await inserted(first, "op-1", worker="a")
    assert await second.claim(worker="b", now=1.0) == ()
    first.worker_died("a")
    (claimed,) = await second.claim(worker="b", now=1.0)
    assert (claimed.worker, claimed.epoch) == ("b", record.epoch + 1)


async def test_closing_a_store_ends_its_workers(opened: Open) -> None:
    first, second = opened(), opened()
    await first.renew(worker="a", until=FAR)
    await inserted(first, "op-1", worker="a")
    await first.close()
    assert len(await second.claim(worker="b", now=1.0)) == 1


async def test_in_memory_a_worker_lives_until_somebody_says_that_it_died() -> None:
    store = open_sqlite(":memory:")
    process = store.open_again()
    await process.renew(worker="a", until=FAR)
    await inserted(process, "op-1", worker="a")
    assert await store.claim(worker="b", now=1.0) == ()
    store.worker_died("a")
    assert len(await store.claim(worker="b", now=1.0)) == 1
    await store.close()


async def test_what_is_left_of_dead_workers_is_cleared_away(opened: Open, path: str) -> None:
    first, second = opened(), opened()
    for worker in ("idle", "busy", "alive"):
        await first.renew(worker=worker, until=FAR)
    await second.renew(worker="b", until=FAR)
    await inserted(first, "op-1", worker="busy")
    first.worker_died("idle")
    first.worker_died("busy")
    await second.claim(worker="b", now=1.0)
    assert workers(path) == {"alive", "b"}
    rows = second._opened.reader.execute("SELECT id FROM worker ORDER BY id").fetchall()
    assert rows == [("alive",), ("b",)]


async def test_the_registration_stays_while_something_is_held_under_it(opened: Open) -> None:
    first, second = opened(), opened()
    await first.renew(worker="a", until=10.0)
    for n in range(3):
        await inserted(first, f"op-{n}", worker="a")
    assert len(await second.claim(worker="b", now=11.0, limit=2)) == 2
    await first.renew(worker="a", until=20.0)
    assert await second.claim(worker="b", now=11.0) == (), "the rest is under a lease again"
    await second.claim(worker="b", now=20.0)
    with pytest.raises(LeaseLostError, match="the claim on worker a was lost"):
        await first.renew(worker="a", until=30.0)


async def test_a_worker_that_lost_its_registration_may_begin_anew(opened: Open) -> None:
    first, second = opened(), opened()
    await first.renew(worker="a", until=10.0)
    await inserted(first, "op-1", worker="a")
    await second.claim(worker="b", now=11.0)
    with pytest.raises(LeaseLostError):
        await first.renew(worker="a", until=30.0)
    await first.renew(worker="a", until=30.0)
    record = await inserted(first, "op-2", worker="a")
    assert await second.claim(worker="b", now=12.0) == ()
    assert await first.load("op-2") == (record,)


@pytest.mark.fault("X20")
async def test_a_worker_of_the_same_name_is_another_worker(opened: Open) -> None:
    first, second, third = opened(), opened(), opened()
    await first.renew(worker="host", until=FAR)
    record = await inserted(first, "op-1", worker="host")
    first.worker_died("host")
    await second.renew(worker="host", until=FAR)
    held = await second.open_records(tenant="t", session="s", worker="host")
    assert held == (), "the name alone gives nothing"
    (claimed,) = await third.claim(worker="b", now=1.0)
    assert claimed.epoch > record.epoch
    assert await second.open_records(tenant="t", session="s", worker="host") == ()


@pytest.mark.fault("X20")
@pytest.mark.field("F1", "F2")
async def test_who_was_taken_for_dead_renews_and_ends_no_other_of_its_name(path: str) -> None:
    for place in (path, ":memory:"):
        base = open_sqlite(place)
        first, second = base.open_again(), base.open_again()
        await first.renew(worker="host", until=FAR)
        (base if place == ":memory:" else first).worker_died("host")
        await second.renew(worker="host", until=FAR)
        record = await inserted(second, "op-1", worker="host")
        with pytest.raises(LeaseLostError):
            await first.renew(worker="host", until=FAR)
        await first.retire(worker="host")
        await first.close()
        await second.renew(worker="host", until=FAR)
        assert await base.claim(worker="b", now=1.0) == (), "the second is alive"
        assert await second.load("op-1") == (record,)
        for store in (second, base):
            await store.close()


@pytest.mark.fault("X20")
async def test_the_name_of_a_living_worker_is_refused(opened: Open) -> None:
    first, second = opened(), opened()
    await first.renew(worker="host", until=FAR)
    record = await inserted(first, "op-1", worker="host")
    with pytest.raises(StoreError, match="start each worker under a new name"):
        await second.renew(worker="host", until=FAR)
    assert await second.open_records(tenant="t", session="s", worker="host") == (record,)
    memory = open_sqlite(":memory:")
    other = memory.open_again()
    await memory.renew(worker="host", until=FAR)
    with pytest.raises(StoreError, match="start each under a new name"):
        await other.renew(worker="host", until=FAR)
    assert await other.claim(worker="b", now=1.0) == ()
    await memory.close()


async def test_a_missing_file_says_nothing(opened: Open, path: str) -> None:
    first, second = opened(), opened()
    await first.renew(worker="a", until=10.0)
    await inserted(first, "op-1", worker="a")
    Path(path + "-workers", "a").unlink()
    assert await second.claim(worker="b", now=9.0) == (), "it may have been cleaned up"
    assert len(await second.claim(worker="b", now=10.0)) == 1


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".", "a b", "x" * 129])
async def test_a_workers_name_is_the_name_of_a_file(name: str, store: SqliteStore) -> None:
    with pytest.raises(StoreError, match="is no name for a worker"):
        await store.renew(worker=name, until=FAR)
    await store.renew(worker="host-1.example:4711+a8_f", until=FAR)


async def test_a_retired_worker_leaves_nothing(store: SqliteStore, path: str) -> None:
    await store.renew(worker="a", until=FAR)
    assert workers(path) == {"a"}
    await store.retire(worker="a")
    await store.retire(worker="a")
    assert workers(path) == set()
    await store.renew(worker="a", until=FAR)


def test_a_file_that_was_removed_in_between_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    removals = 2

    class Removed(FileLock):
        def try_lock(self) -> bool:
            nonlocal removals
            if removals:
                removals -= 1
                self.path.unlink()
            return super().try_lock()

    monkeypatch.setattr(locks, "FileLock", Removed)
    lock = lock_for_life(tmp_path / "a")
    assert lock.is_in_place()
    assert not is_free(tmp_path / "a")
    lock.close()
    lock.close()


def test_only_a_free_file_is_removed(tmp_path: Path) -> None:
    lock = lock_for_life(tmp_path / "a")
    remove_if_free(tmp_path / "a")
    assert (tmp_path / "a").exists()
    lock.close()
    remove_if_free(tmp_path / "a")
    remove_if_free(tmp_path / "a")
    assert not (tmp_path / "a").exists()
