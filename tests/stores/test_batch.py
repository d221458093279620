"""Group commit, without a database: who is written together, on which thread, and who is told."""

import asyncio
import threading
from collections.abc import Callable, Sequence

import pytest

from landed.core.errors import StoreError
from landed.stores.batch import BATCH_MAX, WAITING_MAX, ContendedError, GroupCommit

pytestmark = pytest.mark.anyio


class Disk:
    """Takes batches of texts, and answers each with itself in capitals."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.threads: list[str] = []
        self.is_contended = False
        self.gate = threading.Event()
        self.gate.set()
        self.entered = threading.Event()

    def write(self, items: list[str], wait: bool) -> Sequence[str | Exception]:
        if self.is_contended and not wait:
            raise ContendedError
        self.entered.set()
        assert self.gate.wait(10)
        self.batches.append(items)
        self.threads.append(threading.current_thread().name)
        return [StoreError(item) if item.startswith("bad") else item.upper() for item in items]

    def group(self, *, has_thread: bool = True) -> GroupCommit[str, str]:
        return GroupCommit(
            self.write, is_single=lambda item: item.startswith("alone"), has_thread=has_thread
        )


HERE = threading.current_thread().name
THERE = "landed-writer"


async def test_a_lone_write_is_written_at_once_on_the_callers_thread() -> None:
    disk = Disk()
    group = disk.group()
    writing = group.write("a")
    with pytest.raises(StopIteration) as done:
        writing.send(None)  # Not even one turn of the loop is waited for.
    assert done.value.value == "A"
    assert disk.threads == [HERE]


async def test_who_comes_in_one_tick_is_written_together() -> None:
    disk = Disk()
    group = disk.group()
    assert await asyncio.gather(*map(group.write, "abcd")) == ["A", "B", "C", "D"]
    assert disk.batches == [["a"], ["b", "c", "d"]]
    assert disk.threads == [HERE, THERE]
    await asyncio.gather(*map(group.write, "efg"))
    assert disk.batches[2:] == [["e", "f", "g"]], "in a crowd, the first waits for company"
    await group.close()


async def test_one_who_writes_in_a_row_lets_others_run() -> None:
    group = Disk().group()
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.ensure_future(count())
    for _ in range(20):
        await group.write("a")
    assert turns >= 10
    counting.cancel()


async def test_a_slow_disk_is_left_to_the_thread() -> None:
    disk = Disk()
    group = disk.group()
    await group.write("a")
    group._mean_s = 0.1
    await asyncio.sleep(0)
    await group.write("b")
    assert disk.threads == [HERE, THERE]
    for _ in range(100):
        await group.write("c")
    assert disk.threads[-1] == HERE, "the disk is quick again"
    await group.close()


async def test_what_must_not_wait_for_another_process_goes_to_the_thread() -> None:
    disk = Disk()
    disk.is_contended = True
    group = disk.group()
    assert await group.write("a") == "A"
    assert disk.threads == [THERE]
    await group.close()


async def test_what_comes_while_the_thread_writes_shares_the_next_batch() -> None:
    disk = Disk()
    disk.is_contended = True
    disk.gate.clear()
    group = disk.group()
    callers = [asyncio.ensure_future(group.write("a"))]
    await asyncio.to_thread(disk.entered.wait, 10)
    for item in "bcd":
        callers.append(asyncio.ensure_future(group.write(item)))
        await asyncio.sleep(0)
    disk.gate.set()
    assert await asyncio.gather(*callers) == ["A", "B", "C", "D"]
    assert disk.batches == [["a"], ["b", "c", "d"]]
    await group.close()


async def test_the_loop_is_woken_once_for_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    wakes: list[object] = []
    wake = loop.call_soon_threadsafe

    def counted(callback: Callable[..., object], *args: object) -> asyncio.Handle:
        wakes.append(callback)
        return wake(callback, *args)

    monkeypatch.setattr(loop, "call_soon_threadsafe", counted)
    group = Disk().group()
    await asyncio.gather(*map(group.write, ["first", *(f"{n}" for n in range(100))]))
    assert len(wakes) == 1
    await group.close()


async def test_errors_reach_their_own_callers() -> None:
    group = Disk().group()
    outcomes = await asyncio.gather(*map(group.write, ["a", "bad b", "c"]), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [str, StoreError, str]
    with pytest.raises(StoreError):
        await group.write("bad d")
    await group.close()


@pytest.mark.parametrize("has_thread", [True, False])
async def test_an_error_nobody_thought_of_reaches_all(has_thread: bool) -> None:
    def write(items: list[str], wait: bool) -> Sequence[str]:
        raise ZeroDivisionError

    group: GroupCommit[str, str] = GroupCommit(
        write, is_single=lambda item: False, has_thread=has_thread
    )
    outcomes = await asyncio.gather(*map(group.write, "abc"), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [ZeroDivisionError] * 3
    await group.close()


async def test_a_cancelled_caller_undoes_nothing() -> None:
    disk = Disk()
    group = disk.group()
    callers = [asyncio.ensure_future(group.write(item)) for item in "abc"]
    await asyncio.sleep(0)
    callers[1].cancel()
    outcomes = await asyncio.gather(*callers, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [str, asyncio.CancelledError, str]
    assert disk.batches == [["a"], ["b", "c"]]
    await group.close()


async def test_single_items_are_written_alone_and_in_order() -> None:
    disk = Disk()
    group = disk.group()
    await asyncio.gather(*map(group.write, ["a", "b", "c", "alone d", "alone e", "f", "g"]))
    assert disk.batches == [["a"], ["b", "c"], ["alone d"], ["alone e"], ["f", "g"]]
    await group.close()


async def test_a_batch_is_bounded() -> None:
    disk = Disk()
    group = disk.group()
    await asyncio.gather(*(group.write(str(n)) for n in range(2 * BATCH_MAX)))
    assert max(map(len, disk.batches)) == BATCH_MAX
    await group.close()


async def test_waiting_is_bounded() -> None:
    disk = Disk()
    disk.is_contended = True
    disk.gate.clear()
    group = disk.group()
    first = asyncio.ensure_future(group.write("first"))
    await asyncio.to_thread(disk.entered.wait, 10)
    callers = [asyncio.ensure_future(group.write("a")) for _ in range(WAITING_MAX)]
    await asyncio.sleep(0)
    with pytest.raises(StoreError, match="fewer at once"):
        await group.write("one too many")
    disk.gate.set()
    assert set(await asyncio.gather(first, *callers)) == {"FIRST", "A"}
    await group.close()


async def test_close_writes_what_was_handed_over() -> None:
    disk = Disk()
    group = disk.group()
    callers = [asyncio.ensure_future(group.write(item)) for item in "abc"]
    await asyncio.sleep(0)
    await group.close()
    assert [caller.result() for caller in callers] == ["A", "B", "C"]
    assert not [thread for thread in threading.enumerate() if thread.name == THERE]


async def test_without_a_thread_everything_is_written_here() -> None:
    disk = Disk()
    group = disk.group(has_thread=False)
    await asyncio.gather(*map(group.write, "abcd"))
    assert disk.batches == [["a"], ["b", "c", "d"]]
    assert set(disk.threads) == {HERE}
    await group.close()


def test_a_closed_loop_does_not_stop_the_writer() -> None:
    disk = Disk()
    disk.is_contended = True
    disk.gate.clear()
    group = disk.group()

    async def leave() -> None:
        caller = asyncio.ensure_future(group.write("a"))
        await asyncio.to_thread(disk.entered.wait, 10)
        caller.cancel()

    asyncio.run(leave())
    disk.gate.set()
    group.stop()
    assert disk.batches == [["a"]]
