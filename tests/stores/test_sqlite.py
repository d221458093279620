"""What is particular to SQLite: batches, locks, full and broken disks, loops, forks and closing."""

import asyncio
import contextlib
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from landed.core.changes import Changes, Hold
from landed.core.errors import StaleWriteError, StoreError, WrongLoopError
from landed.stores.driver import Connection, connect
from landed.stores.sqlite import SqliteStore, open_sqlite
from landed.stores.transaction import Writer
from landed.testing.store_checks.suite import inserted, made, moved

pytestmark = pytest.mark.anyio

Open = Callable[..., SqliteStore]


@contextlib.contextmanager
def held(path: str) -> Iterator[Connection]:
    """Hold SQLite's write lock, as a foreign program might."""
    other = connect(path, wait_ms=0)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield other
    finally:
        other.close()


def insert(*ids: str) -> Changes:
    return Changes(moves=tuple(made(id) for id in ids))


def hold(name: str, record: str) -> Hold:
    return Hold(name=name, record=record)


# Batches.


async def test_a_batch_is_one_transaction(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches: list[int] = []
    commit = Writer.commit

    def counted(self: Writer, units: list, *, wait: bool) -> object:
        batches.append(len(units))
        return commit(self, units, wait=wait)

    monkeypatch.setattr(Writer, "commit", counted)
    await asyncio.gather(*(store.commit(insert(f"op-{n}")) for n in range(64)))
    assert batches == [1, 63]
    assert [entry.seq for entry in await store.journal()] == list(range(1, 65))


def with_state(state: object) -> Changes:
    move = made("op-x")
    after = replace(move.after, state=state)  # type: ignore[arg-type]
    return Changes(moves=(replace(move, after=after),))


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param(with_state("\ud800"), id="half a surrogate pair"),
        pytest.param(Changes(moves=(made("op-x"),), epoch=2**70), id="a number too large"),
        pytest.param(with_state(b"sent"), id="bytes in place of text"),
        pytest.param(
            Changes(moves=(made("op-x"),), takes=(hold("\ud800", "op-x"),)), id="a bad name"
        ),
    ],
)
async def test_a_value_that_cannot_be_stored_disturbs_no_neighbour(
    bad: Changes, store: SqliteStore
) -> None:
    units = [insert("op-0"), insert("op-1"), bad, insert("op-2")]
    outcomes = await asyncio.gather(*map(store.commit, units), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [tuple, tuple, StoreError, tuple]
    assert len(await store.load("op-0", "op-1", "op-x", "op-2")) == 3


@pytest.mark.fault("X09")
@pytest.mark.parametrize("at_once", [1, 3])
async def test_a_crash_between_any_two_statements_leaves_all_or_nothing(
    at_once: int, opened: Open
) -> None:
    store = opened()
    record = await inserted(store, "op-0")
    survivor = store.open_again()
    before = await survivor.journal()
    units = [
        Changes(
            moves=(made("op-1"), moved(record, "sent")), takes=(Hold(name="x", record="op-1"),)
        ),
        Changes(moves=(made("op-2"),), takes=(hold("y", "op-2"),)),
        insert("op-3"),
    ][:at_once]
    steps = 0
    while await dies_after(steps, store, units):
        assert await survivor.journal() == before
        assert await survivor.load("op-1", "op-2", "op-3") == ()
        assert await survivor.holders("x", "y") == {}
        steps += 1
    assert steps >= 5, "each statement of the transaction was a place to die"
    assert len(await survivor.load("op-1", "op-2", "op-3")) == at_once
    await survivor.close()


class Dying:
    """A connection that dies after so many statements, and loses what was not committed."""

    def __init__(self, connection: Connection, statements: int) -> None:
        self._connection = connection
        self._left = statements

    def __getattr__(self, name: str) -> object:
        return getattr(self._connection, name)

    def execute(self, *arguments: object) -> object:
        return self._step(self._connection.execute, *arguments)

    def executemany(self, *arguments: object) -> object:
        return self._step(self._connection.executemany, *arguments)

    def _step(self, act: Callable[..., object], *arguments: object) -> object:
        if self._left == 0 and arguments[0] != "ROLLBACK":
            raise DiedError
        self._left -= 1
        return act(*arguments)


class DiedError(Exception):
    """Stands for the death of the process; what was not committed is rolled back."""


async def dies_after(statements: int, store: SqliteStore, units: list[Changes]) -> bool:
    writer = store._writer
    alive = writer.connection
    writer.connection = Dying(alive, statements)  # type: ignore[assignment]
    store._group._crowd = len(units)  # So that they share one batch.
    try:
        outcomes = await asyncio.gather(*map(store.commit, units), return_exceptions=True)
    finally:
        writer.connection = alive
    return any(isinstance(outcome, DiedError) for outcome in outcomes)


# Locks.


@pytest.mark.fault("X34")
async def test_a_write_waits_for_another_program(store: SqliteStore, path: str) -> None:
    with held(path) as other:
        commit = asyncio.ensure_future(store.commit(insert("op-1")))
        await asyncio.sleep(0)
        assert not commit.done(), "the loop is not blocked"
        assert await store.load("op-1") == ()
        other.execute("COMMIT")
        (record,) = await commit
    assert await store.load("op-1") == (record,)


@pytest.mark.fault("X34")
async def test_that_wait_is_bounded(opened: Open, path: str) -> None:
    store = opened(lock_wait_max_s=0.02)
    with held(path):
        with pytest.raises(StoreError, match=r"locked by another process for more than 0\.02 s"):
            await store.commit(insert("op-1"))
        with pytest.raises(StoreError, match="locked by another process"):
            await store.renew(worker="a", until=1.0)
    (record,) = await store.commit(insert("op-1"))
    assert record.version == 1


async def test_who_waits_is_next(opened: Open, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = threading.Event()
    pause = Writer._pause

    def noticed(self: Writer, deadline_s: float | None) -> None:
        pause(self, deadline_s)
        waiting.set()

    monkeypatch.setattr(Writer, "_pause", noticed)
    busy, other = opened(), opened()
    with held(path) as foreign:
        second = asyncio.ensure_future(other.commit(insert("op-2")))
        await asyncio.to_thread(waiting.wait, 10)
        # The busy one may not pass by, though it would get SQLite's lock as likely as the other.
        third = asyncio.ensure_future(busy.commit(insert("op-3")))
        await asyncio.sleep(0)
        foreign.execute("COMMIT")
        await asyncio.gather(second, third)
    assert [entry.id for entry in await busy.journal()] == ["op-2", "op-3"]


# Disks.


async def test_a_full_disk_leaves_the_state_unchanged(store: SqliteStore) -> None:
    record = await inserted(store, "op-1")
    writer = store._opened.writer
    (pages,) = writer.execute("PRAGMA page_count").fetchone()
    writer.execute(f"PRAGMA max_page_count = {pages}")
    large = moved(record, "sent")
    large = replace(large, after=replace(large.after, changing={"result": "x" * 100_000}))
    with pytest.raises(StoreError, match=r"the disk is full\. Nothing of the unit was written"):
        await store.commit(Changes(moves=(large,)))
    assert await store.load("op-1") == (record,)
    writer.execute("PRAGMA max_page_count = 100000")
    (record,) = await store.commit(Changes(moves=(large,)))
    assert await store.load("op-1") == (record,)


TOO_LARGE = """
import asyncio, resource, signal, sys
from landed.core.errors import StoreError
from landed.stores.sqlite import open_sqlite
from landed.testing.store_checks.suite import inserted

async def main(path):
    store = open_sqlite(path)
    await inserted(store, "op-1")
    # Files may not grow: the system answers writes with an error, as a failing disk does.
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, limit))
    for attempt in ("op-2", "op-3"):
        try:
            await inserted(store, attempt)
        except StoreError as error:
            print(error)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    try:
        await store.load("op-1")
    except StoreError as error:
        print(error)
    await store.close()
    store = open_sqlite(path)
    print([record.id for record in await store.load("op-1", "op-2", "op-3")])
    await store.close()

asyncio.run(main(sys.argv[1]))
"""


def run(script: str, path: str) -> list[str]:
    """Run a script in a process of its own and return the lines it printed."""
    ended = subprocess.run(
        [sys.executable, "-c", script, path], capture_output=True, text=True, timeout=30
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.splitlines()


def test_after_a_disk_error_nothing_is_done_until_it_is_opened_again(path: str) -> None:
    broken = "cannot be read or written (disk error); this store does nothing more until"
    lines = run(TOO_LARGE, path)
    assert len(lines) == 4
    assert all(broken in line for line in lines[:3]), lines
    assert lines[3] == "['op-1']"


# Loops and processes.


def test_a_store_belongs_to_one_loop(path: str) -> None:
    store = open_sqlite(path)
    asyncio.run(store.commit(insert("op-1")))

    async def use() -> None:
        with pytest.raises(WrongLoopError, match="belongs to another event loop"):
            await store.load("op-1")
        with pytest.raises(WrongLoopError):
            await store.commit(insert("op-2"))

    asyncio.run(use())
    asyncio.run(store.close())  # Its own loop is closed; somebody has to.


async def test_a_store_is_not_closed_from_another_living_loop(store: SqliteStore) -> None:
    await store.load("op-1")

    def elsewhere() -> None:
        with pytest.raises(WrongLoopError):
            asyncio.run(store.close())

    await asyncio.to_thread(elsewhere)


async def test_a_closed_store_says_so(opened: Open) -> None:
    store = opened()
    await store.close()
    await store.close()
    for use in (store.load("op-1"), store.commit(insert("op-1")), store.renew(worker="a", until=1)):
        with pytest.raises(StoreError, match="was closed; open it again"):
            await use


async def test_close_finishes_what_was_handed_over(opened: Open) -> None:
    store = opened()
    commits = [asyncio.ensure_future(store.commit(insert(f"op-{n}"))) for n in range(9)]
    await asyncio.sleep(0)
    await store.close()
    assert all(commit.done() for commit in commits)
    assert len(await opened().journal()) == 9


async def test_what_waits_when_the_loop_ends_is_not_half_written(opened: Open) -> None:
    def leave() -> None:
        async def main() -> None:
            commits = [asyncio.ensure_future(store.commit(insert(f"op-{n}"))) for n in range(5)]
            await asyncio.sleep(0)
            assert commits[0].done()

        store = opened()
        asyncio.run(main())
        asyncio.run(store.close())

    await asyncio.to_thread(leave)
    assert {len(await opened().load(f"op-{n}")) for n in range(5)} <= {0, 1}
    assert len(await opened().load("op-0")) == 1


FORK = """
import asyncio, os, sys
from landed.core.errors import StoreError
from landed.stores.sqlite import open_sqlite
from landed.testing.store_checks.suite import inserted

async def use(store):
    for act in (store.load("op-1"), inserted(store, "op-2"), store.close()):
        try:
            await act
        except StoreError as error:
            print(error, flush=True)

store = open_sqlite(sys.argv[1])
child = os.fork()
if child == 0:
    asyncio.run(use(store))
    os._exit(0)
os.waitpid(child, 0)
print(asyncio.run(inserted(store, "op-1")).id)
"""


@pytest.mark.fault("X22")
def test_a_forked_child_is_refused(path: str) -> None:
    lines = run(FORK, path)
    assert len(lines) == 4
    assert all("before this process was forked" in line for line in lines[:3])
    assert lines[3] == "op-1"


FORKED_WORKER = """
import asyncio, os, sys
from landed.stores.sqlite import open_sqlite
from landed.testing.store_checks.suite import inserted

async def begin(store):
    await store.renew(worker="a", until=1e12)
    await inserted(store, "op-1", worker="a")

store = open_sqlite(sys.argv[1])
asyncio.run(begin(store))
if os.fork() == 0:
    print("the child lives", flush=True)
    sys.stdin.read()
os._exit(0)
"""


@pytest.mark.fault("X22")
async def test_a_forked_child_does_not_keep_its_dead_parents_lock(
    store: SqliteStore, path: str
) -> None:
    command = [sys.executable, "-c", FORKED_WORKER, path]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "the child lives\n"
        assert parent.wait(30) == 0
        (claimed,) = await store.claim(worker="b", now=1.0)
        assert claimed.id == "op-1"


async def test_memory_that_was_closed_under_a_handle_says_so() -> None:
    store = open_sqlite(":memory:")
    handle = store.open_again()
    await store.close()
    for use in (handle.commit(insert("op-1")), handle.claim(worker="b", now=1.0), handle.facts()):
        with pytest.raises(StoreError, match="closed database"):
            await use
    with pytest.raises(StoreError, match="closed database"):
        await handle.load("op-1")
    await handle.close()


async def test_what_cannot_be_asked_is_a_store_error(store: SqliteStore) -> None:
    with pytest.raises(StoreError):
        await store.session_records(tenant="\ud800", session="s")
    assert await store.load("\ud800") == ()


async def test_a_conflict_names_the_record_and_its_versions(store: SqliteStore) -> None:
    record = await inserted(store, "op-1")
    await store.commit(Changes(moves=(moved(record, "sent"),)))
    with pytest.raises(StaleWriteError) as caught:
        await store.commit(Changes(moves=(moved(record, "unknown"),)))
    assert str(caught.value) == "record op-1 is at version 2, not 1; read it and decide again"
