"""A copy is of one moment, whole and checked, however many write meanwhile; it replaces nothing."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from landed.core.errors import StoreError
from landed.stores.backup import back_up
from landed.stores.sqlite import SqliteStore, open_sqlite
from landed.testing.store_checks.suite import inserted
from tests.stores.keeping_contract import erase, heard

pytestmark = pytest.mark.anyio

WRITES = """
import asyncio, sys
from landed.stores.sqlite import open_sqlite
from landed.testing.store_checks.suite import inserted

async def main():
    store = open_sqlite(sys.argv[1])
    for n in range(10_000):
        await inserted(store, f"op-w{n}", worker="w")
        if n == 20:
            print("writes", flush=True)

asyncio.run(main())
"""


async def test_a_copy_opens_and_holds_what_was_there(store: SqliteStore, path: str) -> None:
    records = [await inserted(store, f"op-{n}") for n in range(5)]
    copied = back_up(path, f"{path}.copy")
    assert (copied.records, copied.entries) == (5, 5)
    assert copied.size == Path(f"{path}.copy").stat().st_size
    copy = open_sqlite(f"{path}.copy")
    assert await copy.load(*(f"op-{n}" for n in range(5))) == tuple(records)
    assert await copy.journal() == await store.journal()
    await copy.close()


async def test_a_copy_is_of_one_moment_while_another_process_writes(path: str) -> None:
    store = open_sqlite(path)
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITES, path], stdout=subprocess.PIPE, text=True
    )
    try:
        assert writer.stdout is not None
        assert await asyncio.to_thread(writer.stdout.readline) == "writes\n"
        counts = []
        for n in range(3):
            copied = await asyncio.to_thread(back_up, path, f"{path}.{n}")
            assert copied.records == copied.entries  # Each record is whole, with its event.
            counts.append(copied.records)
            await inserted(store, f"op-{n}")  # And others go on writing.
        assert counts == sorted(counts)
        assert counts[-1] > 20
        assert writer.poll() is None
    finally:
        writer.kill()
        writer.communicate(timeout=10)
        await store.close()


async def test_a_copy_replaces_nothing(store: SqliteStore, path: str) -> None:
    Path(f"{path}.copy").write_text("mine")
    with pytest.raises(StoreError, match="is there already"):
        back_up(path, f"{path}.copy")
    assert Path(f"{path}.copy").read_text() == "mine"


async def test_what_died_halfway_is_written_again(store: SqliteStore, path: str) -> None:
    await inserted(store, "op-1")
    Path(f"{path}.copy.part").write_text("half")
    assert back_up(path, f"{path}.copy").records == 1
    assert not Path(f"{path}.copy.part").exists()


EDITS = [
    "UPDATE record SET state = 'confirmed'",
    "DROP TRIGGER journal_entry; UPDATE journal SET at = 9.5 WHERE seq = 2",
    "DROP TRIGGER journal_stays; DELETE FROM journal WHERE seq = 2",
]


@pytest.mark.req("S4-17")
@pytest.mark.parametrize("edit", EDITS)
async def test_an_edited_store_is_not_copied(edit: str, store: SqliteStore, path: str) -> None:
    for n in range(3):
        await heard(store, f"in-{n}")
    store._opened.writer.executescript(edit)
    with pytest.raises(StoreError, match=r"edited|one chain"):
        back_up(path, f"{path}.copy")
    assert not Path(f"{path}.copy").exists()
    assert not Path(f"{path}.copy.part").exists()


async def test_a_store_with_erased_records_is_copied(store: SqliteStore, path: str) -> None:
    await erase(store, await heard(store, "in-1"))
    assert back_up(path, f"{path}.copy").entries == 3


async def test_the_copy_is_on_the_disk_before_it_has_its_name(
    store: SqliteStore, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []

    def noting(name: str) -> Callable[..., object]:
        real = getattr(os, name)

        def call(*arguments: object) -> object:
            done.append(name)
            return real(*arguments)

        return call

    for name in ("fsync", "link"):
        monkeypatch.setattr(os, name, noting(name))
    back_up(path, f"{path}.copy")
    assert done == ["fsync", "link", "fsync"]


async def test_a_place_that_cannot_be_written_is_said(store: SqliteStore, path: str) -> None:
    with pytest.raises(StoreError, match="cannot be opened"):
        back_up(path, str(Path(path).parent / "nowhere" / "copy"))
