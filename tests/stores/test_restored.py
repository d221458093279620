"""Real files: a database that is put back from a backup, and the mark beside it in trouble."""

import asyncio
import json
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

import landed
from landed.core.errors import StoreError
from landed.core.incarnation import Incarnation, Mark
from landed.core.lease import Lease
from landed.core.outcome import Absent, Found, LookOutcome
from landed.core.tool import Call
from landed.runtime.parts import assemble, register
from landed.runtime.runtime import Runtime
from landed.stores.marks import FileMarks, marks_of
from landed.stores.sqlite import open_sqlite
from landed.tools.function import tool

pytestmark = pytest.mark.anyio


class Shop:
    """A service with a ledger of its own, a line for each order; it can be asked by key."""

    def __init__(self, place: Path) -> None:
        self.ledger = place / "ledger.txt"
        self.answers = asyncio.Event()
        self.answers.set()
        self.arrived = asyncio.Event()

    @property
    def orders(self) -> list[str]:
        return self.ledger.read_text().split() if self.ledger.exists() else []

    async def look(self, call: Call) -> LookOutcome:
        return Found(result={"id": call.key}) if call.key in self.orders else Absent()

    def tools(self) -> list[object]:
        @tool(effect="irreversible", keyed="key", lookup=self.look, close=self.look)
        async def order(what: str, key: str) -> object:
            """Order something."""
            with self.ledger.open("a") as ledger:
                ledger.write(f"{key}\n")
            self.arrived.set()
            await self.answers.wait()
            return {"id": key}

        return [order]


def copy(source: Path, target: Path) -> None:
    """Copy a database while others write to it, as SQLite's online backup does."""
    with closing(sqlite3.connect(source)) as here, closing(sqlite3.connect(target)) as there:
        here.backup(there)


def put_back(backup: Path, store: Path) -> None:
    for each in (store, *store.parent.glob(f"{store.name}-*al"), *store.parent.glob("*-shm")):
        each.unlink()
    copy(backup, store)


def url_of(path: Path) -> str:
    return f"sqlite:///{path}"


def running(store: Path, shop: Shop) -> Runtime:
    """The runtime that `landed.open` makes, but for a lease that a test can wait for."""
    return assemble(
        open_sqlite(str(store)),
        tools=register(shop.tools()),
        lease=Lease(lease_s=1.0, beat_s=0.2),
        marks=marks_of(url_of(store)),
    )


async def until_reconciled(rt: Runtime) -> None:
    lookout = rt.worker.lookout
    while lookout.incarnation.reconciling:
        said = asyncio.Event()

        def changed(incarnation: Incarnation, said: asyncio.Event = said) -> None:
            rt.driver.restored(incarnation)
            said.set()

        lookout.changed = changed
        await said.wait()


@pytest.mark.req("S4-30")
@pytest.mark.fault("X38")
async def test_a_database_put_back_sends_nothing_again_and_tells_of_it(tmp_path: Path) -> None:
    shop, store, noon = Shop(tmp_path), tmp_path / "agent.db", tmp_path / "noon.db"
    async with running(store, shop) as rt:
        shop.answers.clear()
        call = asyncio.ensure_future(rt.perform("order", {"what": "tea"}))
        await shop.arrived.wait()
        copy(store, noon)
        shop.answers.set()
        first = await call
        await rt.perform("order", {"what": "milk"})
    put_back(noon, store)

    async with running(store, shop) as rt:
        assert rt.worker.lookout.incarnation.number == 1
        await until_reconciled(rt)
        told = await rt.status(first.operation)
        third = await rt.perform("order", {"what": "bread"})
    assert isinstance(told, landed.Confirmed)
    assert isinstance(third, landed.Confirmed)
    assert len(shop.orders) == len(set(shop.orders)) == 3

    async with running(store, shop) as rt:
        assert not rt.worker.lookout.incarnation.reconciling
        assert rt.worker.lookout.incarnation.number == 1


@pytest.mark.fault("X38")
async def test_without_a_mark_nobody_can_tell(tmp_path: Path) -> None:
    """What was recorded at noon and sent since is sent again: what the mark is there for."""
    shop, store, noon = Shop(tmp_path), tmp_path / "agent.db", tmp_path / "noon.db"
    async with landed.open(url_of(store), tools=shop.tools(), mark="") as rt:
        await rt.perform("order", {"what": "tea"})
        copy(store, noon)
        await rt.perform("order", {"what": "milk"})
    put_back(noon, store)
    async with landed.open(url_of(store), tools=shop.tools(), mark="") as rt:
        assert rt.worker.lookout.incarnation.number == 0
    assert not list(tmp_path.glob("*.mark"))


CHILD = """
import asyncio, sys
from pathlib import Path
from tests.stores.test_restored import Shop, running

async def main():
    place = Path(sys.argv[1])
    async with running(place / "agent.db", Shop(place)) as rt:
        for what in sys.stdin:
            value = await rt.perform("order", {"what": what.strip()})
            while rt.worker.lookout.store.newest.last > rt.worker.lookout.marks._read().position:
                await rt.worker.lookout.carry_on()
            print(value.operation, flush=True)

asyncio.run(main())
"""


@pytest.mark.services
@pytest.mark.fault("X38")
async def test_backup_at_noon_run_on_kill_restore_start(tmp_path: Path) -> None:
    store, noon = tmp_path / "agent.db", tmp_path / "noon.db"
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    asks, answers = child.stdin, child.stdout
    assert asks is not None
    assert answers is not None

    def order(what: str) -> None:
        asks.write(f"{what}\n")
        asks.flush()
        answers.readline()

    order("tea")
    copy(store, noon)
    order("milk")
    child.send_signal(signal.SIGKILL)
    child.wait(20)
    asks.close()
    answers.close()
    put_back(noon, store)

    shop = Shop(tmp_path)
    async with running(store, shop) as rt:
        assert rt.worker.lookout.incarnation.number == 1
        await until_reconciled(rt)
        await rt.perform("order", {"what": "bread"})
    assert len(shop.orders) == len(set(shop.orders)) == 3


# The file.


@pytest.mark.parametrize(
    ("url", "mark", "place"),
    [
        ("sqlite:///agent.db", None, "agent.db.mark"),
        ("sqlite:////data/agent.db", None, "/data/agent.db.mark"),
        ("sqlite:///agent.db", "elsewhere/mark", "elsewhere/mark"),
        ("sqlite:///agent.db", "", None),
        ("sqlite://:memory:", None, None),
        ("postgresql://ana@host/shop", None, None),
        ("postgresql://ana@host/shop", "shop.mark", "shop.mark"),
    ],
)
def test_where_the_mark_of_a_store_is_kept(url: str, mark: str | None, place: str | None) -> None:
    kept = marks_of(url, mark)
    assert (kept.place if kept else None) == place


async def test_a_mark_is_read_as_it_was_written_and_nothing_is_left_beside_it(
    tmp_path: Path,
) -> None:
    marks = FileMarks(tmp_path / "mark")
    assert await marks.read() is None
    for position in (1, 2):
        await marks.write(Mark(position=position, hash="h"))
    assert await marks.read() == Mark(position=2, hash="h")
    assert [each.name for each in tmp_path.iterdir()] == ["mark"]


@pytest.mark.parametrize(
    "text",
    ["", '{"position": 7', "[]", '{"position": 7}', '{"position": "7", "hash": "h"}', "\xff"],
    ids=["empty", "torn", "no object", "no link", "no number", "no text"],
)
async def test_a_damaged_mark_is_told_and_nothing_is_opened(tmp_path: Path, text: str) -> None:
    store = tmp_path / "agent.db"
    shop = Shop(tmp_path)
    (tmp_path / "agent.db.mark").write_bytes(text.encode("latin-1"))
    with pytest.raises(StoreError, match="nothing is sent"):
        async with landed.open(url_of(store), tools=shop.tools()):
            pass
    assert shop.orders == []


async def test_a_place_that_cannot_be_written_is_told_at_the_start(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    mark = tmp_path / "nowhere" / "mark"
    with pytest.raises(StoreError, match="cannot be written"):
        async with landed.open(url_of(tmp_path / "agent.db"), tools=shop.tools(), mark=mark):
            pass


async def test_a_mark_that_cannot_be_replaced_leaves_the_one_before(tmp_path: Path) -> None:
    marks = FileMarks(tmp_path / "mark")
    (tmp_path / "mark").mkdir()
    with pytest.raises(StoreError, match="cannot be written"):
        await marks.write(Mark(position=1, hash="h"))
    with pytest.raises(StoreError, match="cannot be read"):
        await marks.read()
    assert [each.name for each in tmp_path.iterdir()] == ["mark"]


async def test_a_store_with_entries_and_no_mark_is_told_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store, mark = tmp_path / "agent.db", tmp_path / "agent.db.mark"
    shop = Shop(tmp_path)
    async with landed.open(url_of(store), tools=shop.tools()) as rt:
        await rt.perform("order", {"what": "tea"})
    assert "landed restored" not in caplog.text
    held = json.loads(mark.read_text())
    mark.unlink()
    async with landed.open(url_of(store), tools=shop.tools()):
        assert "landed restored" in caplog.text
    assert json.loads(mark.read_text()) == held
