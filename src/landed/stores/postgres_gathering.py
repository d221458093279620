"""Group commit over a connection: what is committed in one tick of the event loop goes together.

While a batch is on its way to the server, what comes meanwhile waits and makes the next one. The
writing belongs to nobody who waits: a caller who is cancelled undoes nothing.
"""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from landed.core.errors import StoreError
from landed.core.onlooker import NOBODY, Wrote
from landed.stores.batch import BATCH_MAX, WAITING_MAX, settle

_CUT_OFF = (
    "the store, or its event loop, ended while this was on its way to Postgres; "
    "open the store again, and read"
)

W = TypeVar("W")
R = TypeVar("R")


class Gathering(Generic[W, R]):
    """Writes what comes in, in order, in batches, for one event loop.

    `write(items)` returns one outcome for each item. An item for which `is_single` says yes is a
    batch of its own. `wrote` is told of each batch of others.
    """

    def __init__(
        self,
        write: Callable[[list[W]], Awaitable[Sequence[R | Exception]]],
        *,
        is_single: Callable[[W], bool],
        wrote: Wrote = NOBODY.wrote,
    ) -> None:
        self._wrote = wrote
        self._write = write
        self._is_single = is_single
        self._waiting: deque[tuple[W, asyncio.Future[R]]] = deque()
        self._running: asyncio.Task[None] | None = None

    async def write(self, item: W) -> R:
        """Write the item and return its outcome, or raise it.

        Raises `StoreError` when too many wait already.
        """
        if len(self._waiting) >= WAITING_MAX:
            raise StoreError(f"{WAITING_MAX} commits wait for Postgres; hand over fewer at once")
        future: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, future))
        self._start()
        return await future

    async def close(self) -> None:
        """Write what was handed over."""
        while self._running is not None:
            await asyncio.wait({self._running})

    async def stop(self) -> None:
        """End the writing, and tell those who wait; after `close` there is nothing to be ended."""
        if self._running is not None:
            settle(list(self._waiting), [StoreError(_CUT_OFF)] * len(self._waiting))
            self._waiting.clear()
            self._running.cancel()
            await asyncio.wait({self._running})

    def _start(self) -> None:
        if self._running is None and self._waiting:
            self._running = asyncio.create_task(self._run(), name="landed-writer")

    async def _run(self) -> None:
        batch: list[tuple[W, asyncio.Future[R]]] = []
        try:
            while self._waiting:
                batch = self._next_batch()
                settle(batch, await self._outcomes([item for item, _ in batch]))
                # Those who wake up now may commit again, and share the next batch.
                await asyncio.sleep(0)
        except asyncio.CancelledError:
            # The end of a loop cancels every task, and some of them have a last word to write.
            settle(batch, [StoreError(_CUT_OFF)] * len(batch))
            raise
        finally:
            self._running = None
            self._start()

    async def _outcomes(self, items: list[W]) -> Sequence[R | Exception]:
        try:
            started_s = time.perf_counter()
            outcomes = await self._write(items)
            if not self._is_single(items[0]):
                self._wrote(len(items), time.perf_counter() - started_s)
            return outcomes
        except Exception as error:  # Whatever it is, those who wait must hear of it.
            return [error] * len(items)

    def _next_batch(self) -> list[tuple[W, "asyncio.Future[R]"]]:
        batch = [self._waiting.popleft()]
        while self._waiting and len(batch) < BATCH_MAX:
            if self._is_single(batch[-1][0]) or self._is_single(self._waiting[0][0]):
                break
            batch.append(self._waiting.popleft())
        return batch
