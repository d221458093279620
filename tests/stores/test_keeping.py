"""What is erased in SQLite is gone from its files; what is edited is found out."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from landed.core.changes import Changes
from landed.core.errors import StoreError
from landed.core.session import saying
from landed.stores.keeping import STILL_READ
from landed.stores.sqlite import SqliteStore, open_sqlite
from landed.testing.store_checks.suite import moved
from tests.stores.keeping_contract import KEEPING, erase, heard

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("name", KEEPING)
@pytest.mark.parametrize("place", ["file", "memory"])
async def test_the_store_keeps_the_contract_of_keeping(
    name: str, place: str, opened: Callable[..., SqliteStore]
) -> None:
    await KEEPING[name](opened() if place == "file" else opened(":memory:"))


def bytes_of(path: str) -> bytes:
    """Return all that is in the files of a store."""
    place = Path(path)
    beside = sorted(place.parent.glob(f"{place.name}*"))
    return b"".join(each.read_bytes() for each in beside if each.is_file())


async def test_the_bytes_are_gone_from_every_file(store: SqliteStore, path: str) -> None:
    """Bodies of every size, long ones on pages of their own, erased among others that stay."""
    chance = random.Random(7)
    ids = []
    for n in range(200):
        text = f"secret-{n:04d}-" * chance.choice([1, 3, 40, 400, 2000])
        unit = saying(id=f"message-{n}", tenant="t", session="s", turn="", text=text, at=1.5)
        ids += [record.id for record in await store.commit(unit)]
    gone = set(chance.sample(range(200), 120))
    for n in sorted(gone):
        (record,) = await store.load(ids[n])
        await erase(store, record)
    assert await store.keeping().scrub() == ""
    left = bytes_of(path)
    for n in range(200):
        assert (f"secret-{n:04d}-".encode() in left) == (n not in gone), n


@pytest.mark.parametrize("rewrites", [False, True])
async def test_the_bytes_stay_in_the_log_until_nobody_reads_it(
    store: SqliteStore, path: str, rewrites: bool
) -> None:
    record = await heard(store, "in-1")
    reader = open_sqlite(path)
    reader._opened.reader.execute("BEGIN")
    reader._opened.reader.execute("SELECT count(*) FROM journal").fetchone()
    await erase(store, record)
    assert await store.keeping().scrub(rewrites=rewrites) == STILL_READ
    assert b"4111-1111" in bytes_of(path)
    reader._opened.reader.execute("COMMIT")
    assert await store.keeping().scrub(rewrites=rewrites) == ""
    assert b"4111-1111" not in bytes_of(path)
    await reader.close()


@pytest.mark.parametrize(
    "beginning",
    ["NULL", "made", "last", "made + 1", "(SELECT max(erased) FROM record)"],
)
async def test_a_beginning_that_was_edited_is_found_out(beginning: str, store: SqliteStore) -> None:
    erased = [await erase(store, await heard(store, f"in-{n}")) for n in (1, 2)]
    await store.commit(Changes(moves=(moved(erased[0], "noted", open=False),)))
    store._opened.writer.execute(f"UPDATE record SET erased = {beginning} WHERE id = 'in-1'")
    with pytest.raises(StoreError, match=r"edited outside landed|was erased"):
        await store.load("in-1")
