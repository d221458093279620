"""Group commit: who waits for the disk, and with whom.

Commits that come in the same tick of the event loop are written together, with one wait for the
disk. A commit that comes alone, while nothing is being written and the disk is quick, is written on
the caller's thread: handing it to another thread would cost more than the wait. Everything else
goes to the writer's thread, which wakes the loop once for each batch.
"""

import asyncio
import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Generic, TypeVar

from landed.core.errors import StoreError
from landed.core.onlooker import NOBODY, Wrote

W = TypeVar("W")
R = TypeVar("R")

INLINE_MEAN_MAX_S = 0.002
"""A lone write goes to the writer's thread while they take longer than this on average."""

BATCH_MAX = 512
WAITING_MAX = 10_000

_NEWEST_WEIGHT = 1 / 8  # Of a lone write in that average.


class ContendedError(Exception):
    """Another process is writing: what may not wait for it was not written."""


class GroupCommit(Generic[W, R]):
    """Writes what comes in, in order, in batches, for one event loop.

    `write(items, wait)` returns one outcome for each item. With `wait` False it runs on the loop's
    thread, and raises `ContendedError` rather than wait for another process. An item for which
    `is_single` says yes is a batch of its own. Without a thread everything runs on the loop's.
    `wrote` is told of each batch of others, on the thread that wrote it.
    """

    def __init__(
        self,
        write: Callable[[list[W], bool], Sequence[R | Exception]],
        *,
        is_single: Callable[[W], bool],
        has_thread: bool,
        wrote: Wrote = NOBODY.wrote,
    ) -> None:
        self._wrote = wrote
        self._write = write
        self._is_single = is_single
        self._has_thread = has_thread
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: deque[tuple[W, asyncio.Future[R]]] = deque()
        self._arrived = 0  # In this tick.
        self._crowd = 0  # In the last tick with any.
        self._is_ticking = False
        self._is_busy = False  # The thread has a batch.
        self._mean_s = 0.0  # Of lone writes.
        self._batches: SimpleQueue[list[tuple[W, asyncio.Future[R]]] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._idle: asyncio.Future[None] | None = None

    async def write(self, item: W) -> R:
        """Write the item and return its outcome, or raise it.

        A caller that is cancelled stops waiting; the item is written all the same. Raises
        `StoreError` when too many wait already.
        """
        self._arrived += 1
        # Where commits come one at a time, the first of a tick does not wait for company. The next
        # does, so that a caller who commits in a row lets others run in between.
        if self._arrived == 1 and self._crowd <= 1 and self._may_write_here(1):
            self._tick()
            outcomes = self._write_here([item])
            if outcomes is not None:
                return _result(outcomes[0])
        if len(self._waiting) >= WAITING_MAX:
            raise StoreError(f"{WAITING_MAX} commits wait for the disk; hand over fewer at once")
        future: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, future))
        self._tick()
        return await future

    async def close(self) -> None:
        """Write what was handed over, then end the thread."""
        if self._waiting or self._is_busy:
            self._idle = asyncio.get_running_loop().create_future()
            self._tick()
            await self._idle
        self.stop()

    def stop(self) -> None:
        """End the thread after the batch that it has; what waits behind it is not written."""
        if self._thread is not None:
            self._batches.put(None)
            self._thread.join()
            self._thread = None

    def _may_write_here(self, count: int) -> bool:
        if not self._has_thread:
            return True
        return count == 1 and not self._is_busy and self._mean_s < INLINE_MEAN_MAX_S

    def _tick(self) -> None:
        if not self._is_ticking and not self._is_busy:
            self._is_ticking = True
            self._loop = asyncio.get_running_loop()
            self._loop.call_soon(self._end_tick)

    def _end_tick(self) -> None:
        self._is_ticking = False
        if self._arrived:
            self._crowd, self._arrived = self._arrived, 0
        while self._waiting and not self._is_busy:
            batch = self._next_batch()
            outcomes = None
            if self._may_write_here(len(batch)):
                outcomes = self._write_here([item for item, _ in batch])
            if outcomes is None:
                self._hand_over(batch)
            else:
                settle(batch, outcomes)
        if self._idle is not None and not self._is_busy and not self._idle.done():
            self._idle.set_result(None)

    def _next_batch(self) -> list[tuple[W, "asyncio.Future[R]"]]:
        batch = [self._waiting.popleft()]
        while self._waiting and len(batch) < BATCH_MAX:
            if self._is_single(batch[-1][0]) or self._is_single(self._waiting[0][0]):
                break
            batch.append(self._waiting.popleft())
        return batch

    def _write_here(self, items: list[W]) -> Sequence[R | Exception] | None:
        try:
            return self._outcomes(items, False)
        except ContendedError:
            return None

    def _outcomes(self, items: list[W], wait: bool) -> Sequence[R | Exception]:
        try:
            # A store in memory looks at no clock, so that simulations repeat.
            return self._timed(items, wait) if self._has_thread else self._write(items, wait)
        except ContendedError:
            raise
        except Exception as error:  # Whatever it is, those who wait must hear of it.
            return [error] * len(items)

    def _timed(self, items: list[W], wait: bool) -> Sequence[R | Exception]:
        started_s = time.perf_counter()
        outcomes = self._write(items, wait)
        took_s = time.perf_counter() - started_s
        if len(items) == 1:
            self._mean_s += (took_s - self._mean_s) * _NEWEST_WEIGHT
        if not self._is_single(items[0]):
            self._wrote(len(items), took_s)
        return outcomes

    def _hand_over(self, batch: list[tuple[W, "asyncio.Future[R]"]]) -> None:
        self._is_busy = True
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="landed-writer", daemon=True)
            self._thread.start()
        self._batches.put(batch)

    def _run(self) -> None:
        while (batch := self._batches.get()) is not None:
            outcomes = self._outcomes([item for item, _ in batch], True)
            assert self._loop is not None
            # A closed loop has nobody left who waits.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._take_back, batch, outcomes)

    def _take_back(
        self, batch: list[tuple[W, "asyncio.Future[R]"]], outcomes: Sequence[R | Exception]
    ) -> None:
        self._is_busy = False
        settle(batch, outcomes)
        # Those who wake up now may commit again in this tick, and share the next batch.
        self._tick()


def _result(outcome: R | Exception) -> R:
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def settle(batch: list[tuple[W, "asyncio.Future[R]"]], outcomes: Sequence[R | Exception]) -> None:
    """Tell each of those who wait what became of their item."""
    for (_, future), outcome in zip(batch, outcomes, strict=True):
        if future.done():
            continue  # Its caller was cancelled.
        if isinstance(outcome, Exception):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)
