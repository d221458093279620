"""Threads for functions that block: daemons of their own, bounded, and never waited for at exit.

The loop's default pool would do neither: `asyncio.run` joins it, so that one hanging call keeps a
process from ending, and whoever fills it stops every other user of it.
"""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, TypeVar, cast
from weakref import WeakKeyDictionary

from landed.core.errors import NotSentError

R = TypeVar("R")


class Threads:
    """Runs functions in daemon threads, at most `at_most` at once per event loop.

    A loop with a true attribute `runs_threads_inline` (a simulation's) runs them on the spot.
    """

    def __init__(self, name: str, *, at_most: int) -> None:
        self._name = name
        self._at_most = at_most
        self._places: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = (
            WeakKeyDictionary()
        )

    async def run(self, function: Callable[[], R], *, wait_s: float) -> R:
        """Return what `function` returns, or raise what it raises.

        Raises `NotSentError` when no thread became free within `wait_s`: it was not called. When
        the wait is cancelled the thread goes on, keeps its place until it ends, and what it returns
        is dropped; the same when its loop is closed.
        """
        loop = asyncio.get_running_loop()
        if getattr(loop, "runs_threads_inline", False):
            return function()
        places = self._places.setdefault(loop, asyncio.Semaphore(self._at_most))
        try:
            async with asyncio.timeout(wait_s):
                await places.acquire()
        except TimeoutError:
            raise NotSentError(
                f"all {self._at_most} threads of {self._name} were busy for {wait_s:g} s"
            ) from None
        ended: asyncio.Future[_Ended[R]] = loop.create_future()
        # An error in the thread travels as a value: a future refuses a StopIteration.
        self._start(loop, function, ended, places)
        return (await ended).result()

    def _start(
        self,
        loop: asyncio.AbstractEventLoop,
        function: Callable[[], R],
        ended: "asyncio.Future[_Ended[R]]",
        places: asyncio.Semaphore,
    ) -> None:
        def come_back(end: _Ended[R]) -> None:
            places.release()
            if not ended.done():
                ended.set_result(end)

        def body(variables: contextvars.Context) -> None:
            end = _attempt(variables, function)
            with suppress(RuntimeError):  # The loop is closed; nobody is left to tell.
                loop.call_soon_threadsafe(come_back, end)

        variables = contextvars.copy_context()
        name = f"landed {self._name}"
        thread = threading.Thread(target=body, args=(variables,), name=name, daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            places.release()
            raise NotSentError(f"no thread could be started: {error}") from error


@dataclass(frozen=True, slots=True)
class _Ended(Generic[R]):
    value: R | None
    error: BaseException | None = None

    def result(self) -> R:
        if self.error is not None:
            raise self.error
        return cast("R", self.value)


def _attempt(variables: contextvars.Context, function: Callable[[], R]) -> _Ended[R]:
    try:
        return _Ended(variables.run(function))
    except BaseException as error:
        return _Ended(None, error)
