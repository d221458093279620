"""A full disk: nothing new is begun, and what comes back is written in the room kept for it."""

import asyncio
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import landed
from landed.core.changes import Changes, Hold, Kind
from landed.core.errors import StoreError
from landed.core.key import Ask
from landed.core.value import Confirmed
from landed.runtime.parts import assemble, register
from landed.runtime.runtime import Runtime
from landed.stores.driver import FULL, driver
from landed.stores.reserve import RESERVE_BYTES
from landed.stores.sqlite import SqliteStore, open_sqlite
from landed.testing.store_checks.suite import inserted, made, moved

pytestmark = [pytest.mark.anyio, pytest.mark.fault("X33")]

ELSEWHERE = Ask(session="elsewhere")  # Who waits in a session hears of its trouble.
IS_FULL = r"the disk is full\. Nothing of the unit was written; free some space"


class Filling:
    """A connection to a disk that is full from the n-th write on, until `room` is given."""

    def __init__(self, inner: Any, *, after: int, room: Callable[[], bool]) -> None:
        self.inner = inner
        self.left = after
        self.room = room
        self.refused = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def execute(self, query: str, *rest: Any) -> Any:
        self._write(query)
        return self.inner.execute(query, *rest)

    def executemany(self, query: str, *rest: Any) -> Any:
        self._write(query)
        return self.inner.executemany(query, *rest)

    def _write(self, query: str) -> None:
        if query.lstrip().startswith(("SELECT", "ROLLBACK", "BEGIN", "SAVEPOINT", "RELEASE")):
            return
        self.left -= 1
        if self.left < 0 and not self.room():
            self.refused += 1
            error = driver.OperationalError("database or disk is full")
            error.sqlite_errorcode = FULL
            raise error


def filling(store: SqliteStore, *, after: int, room: Callable[[], bool]) -> Filling:
    full = Filling(store._writer.connection, after=after, room=room)
    store._writer.connection = full  # type: ignore[assignment]
    return full


def reserve(path: str) -> Path:
    return Path(path + "-reserve")


WRITES = range(4)  # An update or insert, the entry, the name, COMMIT.


@pytest.mark.parametrize("after", WRITES)
async def test_what_would_be_new_is_refused_at_whatever_write_the_disk_is_full(
    after: int, store: SqliteStore, path: str
) -> None:
    full = filling(store, after=after, room=lambda: False)
    hold = Hold(name="x", record="op-1")
    with pytest.raises(StoreError, match=IS_FULL):
        await store.commit(Changes(moves=(made("op-1"),), takes=(hold,)))
    assert full.refused == 1
    assert await store.load("op-1") == ()
    assert reserve(path).stat().st_size == RESERVE_BYTES, "it is kept for what is under way"


@pytest.mark.parametrize("after", WRITES)
async def test_what_is_under_way_is_written_in_the_room_that_was_kept(
    after: int, store: SqliteStore, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    record = await inserted(store, "op-1")
    full = filling(store, after=after, room=lambda: not reserve(path).exists())
    hold = Hold(name="x", record="op-1")
    (sent,) = await store.commit(Changes(moves=(moved(record, "sent"),), takes=(hold,)))
    assert full.refused == 1
    assert await store.load("op-1") == (sent,)
    assert len(await store.journal()) == 2
    (warned,) = caplog.messages
    assert "nothing new is begun; free some space" in warned


async def test_each_of_a_batch_is_written_or_refused_by_what_it_is(
    store: SqliteStore, path: str
) -> None:
    record = await inserted(store, "op-1")
    filling(store, after=0, room=lambda: not reserve(path).exists())
    units = [made("op-2"), moved(record, "sent"), made("op-3")]
    outcomes = await asyncio.gather(
        *(store.commit(Changes(moves=(move,))) for move in units), return_exceptions=True
    )
    assert [isinstance(one, StoreError) for one in outcomes] == [True, False, True]
    assert len(await store.load("op-1", "op-2", "op-3")) == 1


async def test_an_outcome_that_finds_no_room_at_all_is_told_and_may_come_again(
    store: SqliteStore, path: str
) -> None:
    record = await inserted(store, "op-1")
    freed: list[bool] = []
    filling(store, after=0, room=lambda: bool(freed))
    for _ in range(2):
        with pytest.raises(StoreError, match=IS_FULL):
            await store.commit(Changes(moves=(moved(record, "sent"),)))
    with pytest.raises(StoreError, match=IS_FULL):
        await store.renew(worker="w", until=1.0)
    assert await store.load("op-1") == (record,)
    freed.append(True)
    (sent,) = await store.commit(Changes(moves=(moved(record, "sent"),)))
    assert await store.load("op-1") == (sent,)


async def test_a_heartbeat_is_written_in_that_room_too(store: SqliteStore, path: str) -> None:
    await store.renew(worker="w", until=1.0)
    filling(store, after=0, room=lambda: not reserve(path).exists())
    await store.renew(worker="w", until=2.0)
    assert not reserve(path).exists()


async def test_nothing_new_is_begun_before_the_room_could_be_kept_again(
    store: SqliteStore, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = await inserted(store, "op-1")
    filling(store, after=0, room=lambda: not reserve(path).exists())
    await store.commit(Changes(moves=(moved(record, "sent"),)))
    (fact,) = [fact for fact in await store.facts() if fact.name == "reserve"]
    assert not fact.ok
    reserve(path).mkdir()  # It cannot be made.
    monkeypatch.setattr(Path, "unlink", lambda *_, **__: None)
    with pytest.raises(StoreError, match=IS_FULL):
        await store.commit(Changes(moves=(made("op-2"),)))
    monkeypatch.undo()
    reserve(path).rmdir()
    store._writer.connection = store._writer.connection.inner  # type: ignore[attr-defined]
    await store.commit(Changes(moves=(made("op-2"),)))
    assert reserve(path).stat().st_size == RESERVE_BYTES
    (fact,) = [fact for fact in await store.facts() if fact.name == "reserve"]
    assert fact.ok


# A real disk.


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 8 MiB; who may not mount one cannot run these."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(place)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("this user may not mount a file system")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def fill(place: Path) -> Path:
    """Leave not a byte free."""
    filler = place / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (65536, 1):
            try:
                while file.write(bytes(size)):
                    pass
            except OSError:
                continue
    return filler


async def use_up(rt: Runtime) -> None:
    """Write until the room that is left in SQLite's log is used up, too."""
    with pytest.raises(StoreError, match=IS_FULL):
        await asyncio.gather(
            *(rt.receive("x" * 10_000, session="notes", delivery=f"{n}") for n in range(1000))
        )


@pytest.mark.services
async def test_on_a_real_disk_that_fills_up_while_a_send_is_out(small_disk: Path) -> None:
    sent: list[str] = []
    out, gate = asyncio.Event(), asyncio.Event()

    async def order(what: str) -> str:
        sent.append(what)
        out.set()
        await gate.wait()
        return what

    tool = landed.tool(effect="irreversible", deadline_s=600.0)(order)
    path = str(small_disk / "agent.db")
    async with assemble(open_sqlite(path), tools=register([tool])) as rt:
        asking = asyncio.ensure_future(rt.perform("order", {"what": "first"}))
        await out.wait()
        filler = fill(small_disk)
        await use_up(rt)
        with pytest.raises(StoreError, match=IS_FULL):
            await rt.perform("order", {"what": "second"}, ask=ELSEWHERE)
        assert sent == ["first"]
        gate.set()
        assert isinstance(await asking, Confirmed), "it is written in the room that was kept"
        filler.unlink()
        assert isinstance(await rt.perform("order", {"what": "third"}), Confirmed)
        assert reserve(path).stat().st_size == RESERVE_BYTES
    assert sent == ["first", "third"]


@pytest.mark.services
async def test_on_a_real_disk_without_that_room_the_outcome_waits_in_memory(
    small_disk: Path,
) -> None:
    out, gate = asyncio.Event(), asyncio.Event()

    async def order(what: str) -> str:
        out.set()
        await gate.wait()
        return what

    tool = landed.tool(effect="irreversible", deadline_s=600.0)(order)
    path = str(small_disk / "agent.db")
    store = open_sqlite(path)
    async with assemble(store, tools=register([tool])) as rt:
        asking = asyncio.ensure_future(rt.perform("order", {"what": "first"}))
        await out.wait()
        reserve(path).unlink()
        filler = fill(small_disk)
        await use_up(rt)
        gate.set()
        with pytest.raises(StoreError, match=IS_FULL):
            await asking
        page = await store.session_records(tenant="default", session="main")
        (operation,) = [one for one in page if one.kind is Kind.OPERATION]
        assert operation.state == "sent"
        filler.unlink()
        value = await rt.resolve(operation.id, patience_s=60.0)
        assert isinstance(value, Confirmed), "and is written when there is room again"
        events = [one.event for one in await store.journal(record=operation.id)]
        assert events == ["made", "sent", "acknowledged"]
