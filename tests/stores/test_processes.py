"""Real processes on one file: the living are left alone, the dead are taken over, all make way."""

import asyncio
import itertools
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from landed.core.changes import Changes
from landed.core.errors import LeaseLostError
from landed.core.journal import GENESIS, verify
from landed.stores.sqlite import SqliteStore
from landed.testing.store_checks.suite import FAR, inserted, moved

pytestmark = pytest.mark.anyio

Start = Callable[..., "subprocess.Popen[str]"]

SCRIPT = Path(__file__).with_name("process.py")


@pytest.fixture
def start(path: str) -> Iterator[Start]:
    """Start processes on the file, and kill those that are left."""
    started: list[subprocess.Popen[str]] = []

    def start_one(*arguments: object) -> "subprocess.Popen[str]":
        command = [sys.executable, str(SCRIPT), path, *map(str, arguments)]
        pipe = subprocess.PIPE
        started.append(subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True))
        return started[-1]

    yield start_one
    for process in started:
        process.kill()
        process.communicate()


def line(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def go(process: "subprocess.Popen[str]") -> None:
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


@pytest.mark.req("S4-05", "S4-24")
async def test_the_second_process_takes_over_only_once_the_first_is_dead(
    start: Start, store: SqliteStore
) -> None:
    first = start("hold", "first")
    assert line(first) == "holds op-1 under 1"
    await store.renew(worker="second", until=FAR)
    (held,) = await store.load("op-1")
    assert (held.worker, held.state) == ("first", "sent"), "visible to every process"
    for _ in range(3):
        assert await store.claim(worker="second", now=1.0) == (), "the first one is alive"
    first.kill()
    first.wait()
    (claimed,) = await store.claim(worker="second", now=1.0)
    assert (claimed.id, claimed.worker, claimed.epoch) == ("op-1", "second", 2)
    assert claimed.frozen == {"tool": "book"}
    (record,) = await store.commit(Changes(moves=(moved(claimed, "unknown"),)))
    assert record.version == 2
    with pytest.raises(LeaseLostError):
        await store.commit(Changes(moves=(moved(held, "confirmed"),)))


@pytest.mark.fault("X34")
async def test_two_processes_that_write_all_the_time_make_way_for_each_other(
    start: Start, store: SqliteStore
) -> None:
    writers = [start("write", name, 150) for name in ("a", "b")]
    assert [line(writer) for writer in writers] == ["ready", "ready"]
    for writer in writers:
        go(writer)
    assert [await asyncio.to_thread(line, writer) for writer in writers] == ["done", "done"]
    entries = await store.journal()
    assert [entry.prev for entry in entries] == [GENESIS, *(entry.hash for entry in entries[:-1])]
    for entry in entries:
        verify(entry)
    names = [entry.id[0] for entry in entries]
    assert names.count("a") == names.count("b") == 150
    turns = len(list(itertools.groupby(names)))
    assert turns >= 20, f"in 300 commits, the turn changed {turns} times only"


async def test_a_process_that_came_later_finds_what_was_committed(
    start: Start, store: SqliteStore
) -> None:
    await inserted(store, "op-0")
    writer = start("write", "a", 3)
    assert line(writer) == "ready"
    go(writer)
    assert line(writer) == "done"
    ids = [record.id for record in await store.session_records(tenant="t", session="s")]
    assert ids == ["op-0", "a-0", "a-1", "a-2"]
