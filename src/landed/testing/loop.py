"""An asyncio event loop on virtual time, of which several can share one timeline.

All loops of a simulation put their callbacks into one `Timeline`, which runs them one at a time, in
one thread. When nothing is ready, the time jumps to the next timer, and all timers of that instant
become ready together (else exploration would silently collapse to one order). With a seed, a seeded
choice decides which ready callback runs next; without one it is first come, first served.

Not simulated: threads (`run_in_executor` and `asyncio.to_thread` run the function inline; a thread
that someone starts all the same is not waited for), sockets, child processes, signals. Left to
chance, also with a seed: the order of sets of anything but tasks. anyio cancels the members of a
group in such an order; what must run the same each time uses `asyncio.TaskGroup`.

After trio's MockClock and its shuffled batches.
"""

import asyncio
import contextvars
import heapq
import itertools
import math
import random
import sys
import warnings
import weakref
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterable
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Any, TypeVar, TypeVarTuple

from landed.testing.numbered import Numbered

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

MAX_STEPS = 1_000_000
"""How many callbacks a timeline runs in all, unless told otherwise."""

SAME_INSTANT_S = 1e-6
"""Timers closer than this are due together: an absolute time in a float is no finer than this."""

SPIN_STEPS = 10_000
"""After so many callbacks at one instant the time moves on although something is ready.

Real time does too, and anyio counts on it: a cancelled scope calls itself back again and again
until its tasks have left.
"""

LAST_AWAITS = 100
"""How often the `finally` blocks of one dead coroutine may try to wait."""


class SimulationError(Exception):
    """The simulated program did what no run may do."""


class StuckError(SimulationError):
    """What is waited for can't happen, or not in the time allowed; `waiting` lists who waits."""

    def __init__(self, now_s: float, waiting: tuple[str, ...]) -> None:
        listed = "".join(f"\n  {line}" for line in waiting) or " nobody"
        super().__init__(f"stuck at {now_s:.6f} s; waiting:{listed}")
        self.waiting = waiting


class StepLimitError(SimulationError):
    """The timeline ran more callbacks than it may: something spins."""


class SimulatedCrash(SystemExit):
    """The process dies at `point`.

    A `SystemExit`, because asyncio keeps other exceptions on the task instead of letting them out.
    Raise it with `landed.testing.sim.Process.crash`, so that the process is dead before the
    exception runs through its `finally` blocks.
    """

    def __init__(self, point: str) -> None:
        super().__init__(f"simulated crash at {point}")
        self.point = point


class Timeline:
    """The order in which everything in a simulation happens: what is ready, what is timed, now."""

    def __init__(self, seed: int | None = None, max_steps: int = MAX_STEPS) -> None:
        self.now_s = 0.0
        self.steps = 0
        self._max_steps = max_steps
        self._choice = None if seed is None else random.Random(seed)
        self._ready: deque[_Step] = deque()
        self._first: deque[_Step] = deque()  # Before what is ready, and in this order.
        self._timed: list[tuple[float, int, _Step]] = []
        self._arrivals = itertools.count()
        self._steps_at_this_instant = 0
        self._loops: list[VirtualLoop] = []
        self._after_step: list[Callable[[], None]] = []

    def add(self, loop: "VirtualLoop") -> None:
        """Let `waiting` list the tasks of `loop` too."""
        self._loops.append(loop)

    def soon(self, step: "_Step") -> None:
        """Make `step` ready now."""
        self._ready.append(step)

    def first(self, steps: "Iterable[_Step]") -> None:
        """Run these before all that is ready, in their order."""
        self._first.extend(steps)

    def at(self, step: "_Step") -> None:
        """Make `step` ready when its time comes."""
        heapq.heappush(self._timed, (step.when(), next(self._arrivals), step))

    def after_step(self, action: Callable[[], None]) -> None:
        """Run `action` as soon as no simulated code is on the stack."""
        self._after_step.append(action)
        if _running_loop() is None:
            self._run_after_step()

    def drive(self, over: Callable[[], bool], until_s: float = math.inf) -> bool:
        """Run until `over()` says so: True. False when nothing more can happen by `until_s`.

        Raises `StepLimitError`, and lets out what asyncio lets out of a callback.
        """
        if _running_loop() is not None:
            raise RuntimeError("a simulation can't be driven from inside an event loop")
        while not over():
            if not (self._first or self._ready) or self._steps_at_this_instant >= SPIN_STEPS:
                # Where something spins and no timer is left, only the step limit can end it.
                due_s = self._next_timer_s()
                if due_s < math.inf and due_s <= until_s:
                    self._move_to(due_s)
                elif due_s < math.inf or not (self._first or self._ready):
                    return False
            self._run_one()
        return True

    def waiting(self) -> tuple[str, ...]:
        """Each unfinished task of each open loop, with the chain of calls it waits in."""
        return tuple(
            f"{loop.name}: {task.get_name()} in {_calls(task)}"
            for loop in self._loops
            for task in loop.unfinished
        )

    def _next_timer_s(self) -> float:
        while self._timed and not self._timed[0][2].may_run():
            heapq.heappop(self._timed)
        return self._timed[0][0] if self._timed else math.inf

    def _move_to(self, due_s: float) -> None:
        self._steps_at_this_instant = 0
        while self._timed and self._timed[0][0] <= due_s + SAME_INSTANT_S:
            when_s, _, step = heapq.heappop(self._timed)
            # To the last of them, so that nobody wakes before the time it asked for.
            self.now_s = max(self.now_s, when_s)
            self._ready.append(step)

    def _run_one(self) -> None:
        step = self._first.popleft() if self._first else self._chosen()
        if not step.may_run() or step.home.keeps(step):
            return
        self.steps += 1
        self._steps_at_this_instant += 1
        if self.steps > self._max_steps:
            raise StepLimitError(f"more than {self._max_steps} steps, at {self.now_s:.6f} s")
        try:
            with step.home.entered():
                step.run()
        except SimulatedCrash as crash:
            step.home.crashed(crash)
        finally:
            self._run_after_step()

    def _chosen(self) -> "_Step":
        index = 0 if self._choice is None else int(self._choice.random() * len(self._ready))
        step = self._ready[index]
        del self._ready[index]
        return step

    def _run_after_step(self) -> None:
        while self._after_step:
            self._after_step.pop(0)()


class VirtualLoop(asyncio.BaseEventLoop):
    """An asyncio event loop on virtual time: `time()` starts at 0.0 and jumps from timer to timer.

    Alone it is a drop-in loop: `asyncio.Runner(loop_factory=VirtualLoop)`. Several of them on one
    `Timeline` are driven by it; a future is awaited on its own loop, but may be completed from any.
    """

    runs_threads_inline = True
    """Read by `landed.tools.threads`: synchronous tools run on the spot."""

    def __init__(self, timeline: Timeline | None = None, *, name: str = "loop") -> None:
        super().__init__()
        self.name = name
        self._timeline = timeline or Timeline()
        self._killed = False
        self._stop_asked = False
        self._is_paused = False
        self._kept: list[_Step] = []
        self._serials = itertools.count(1)
        self._open: dict[asyncio.Task[Any], contextvars.Context] = {}
        self._generators: weakref.WeakValueDictionary[int, AsyncGenerator[Any, Any]] = (
            weakref.WeakValueDictionary()
        )
        self._timeline.add(self)

    def __del__(self) -> None:
        """Say nothing: unlike a real loop, one that nobody closed holds nothing that leaks."""

    @property
    def unfinished(self) -> tuple[asyncio.Task[Any], ...]:
        """The tasks that are not done, oldest first."""
        return tuple(task for task in self._open if not task.done())

    def time(self) -> float:
        """Virtual seconds since the timeline began."""
        return self._timeline.now_s

    def call_soon(
        self,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: contextvars.Context | None = None,
    ) -> asyncio.Handle:
        """As in asyncio; on a killed loop the callback is dropped without a word."""
        step = self._step(self.time(), callback, args, context)
        self._timeline.soon(step)
        return step

    def call_at(
        self,
        when: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        """As in asyncio; `when` is in virtual seconds."""
        step = self._step(when, callback, args, context)
        self._timeline.at(step)
        return step

    def call_soon_threadsafe(
        self,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: contextvars.Context | None = None,
    ) -> asyncio.Handle:
        """The same as `call_soon`: there is one thread."""
        return self.call_soon(callback, *args, context=context)

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[*Ts], T], *args: *Ts
    ) -> asyncio.Future[T]:
        """Run `func` here and now, whatever the executor; the future that is returned is done."""
        future: asyncio.Future[T] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future

    def create_task(
        self,
        coro: Generator[Any, None, T] | Coroutine[Any, Any, T],
        *,
        name: object = None,
        context: contextvars.Context | None = None,
    ) -> asyncio.Task[T]:
        """As in asyncio; the loop keeps the task alive until it is done."""
        self._refuse_if_closed()
        context = contextvars.copy_context() if context is None else context
        task = Numbered(coro, loop=self, name=name, context=context, serial=next(self._serials))
        self._open[task] = context
        task.add_done_callback(self._forget)
        return task

    def run_forever(self) -> None:
        """Run until `stop()`; raises `StuckError` when nothing can happen before it."""
        self._stop_asked = False
        if not self._timeline.drive(lambda: self._stop_asked):
            raise StuckError(self.time(), self._timeline.waiting())

    def stop(self) -> None:
        """End `run_forever` after the step that is running."""
        self._stop_asked = True

    def is_running(self) -> bool:
        """Whether code of this loop is on the stack."""
        return _running_loop() is self

    def is_closed(self) -> bool:
        """Whether it was closed, or killed."""
        return self._killed or super().is_closed()

    def pause(self) -> None:
        """Run nothing of this loop until `resume`, while time goes on for all others."""
        self._is_paused = True

    def resume(self) -> None:
        """Go on where it was, then with what came due meanwhile, in the order it came."""
        self._is_paused = False
        self._timeline.first(self._kept)
        self._kept.clear()

    def keeps(self, step: "_Step") -> bool:
        """Take a step that is ready, for later, if this loop is paused."""
        if self._is_paused:
            self._kept.append(step)
        return self._is_paused

    def kill(self) -> None:
        """Run nothing of this loop any more, and let it complain of nothing.

        Its coroutines end as soon as no simulated code is on the stack, oldest first. Python would
        end them when it collects them: as their `finally` blocks run in any case, it is better that
        they run at a moment that is the same in every run. What they touch must refuse them.
        """
        self._killed = True
        self._timeline.after_step(self._bury)

    def crashed(self, crash: SimulatedCrash) -> None:
        """Take the crash that a step let out. It goes on to whoever drives the timeline."""
        raise crash

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """As in asyncio; but of a killed loop, pending tasks and unseen errors are no news."""
        if not self._killed:
            super().call_exception_handler(context)

    async def shutdown_asyncgens(self) -> None:
        """Close the asynchronous generators that are still suspended, oldest first."""
        closing = [generator.aclose() for generator in self._generators.values()]
        self._generators.clear()
        for ending in await asyncio.gather(*closing, return_exceptions=True):
            if isinstance(ending, Exception):
                message = "closing an asynchronous generator failed"
                self.call_exception_handler({"message": message, "exception": ending})

    @contextmanager
    def entered(self) -> Generator[None]:
        """Be the running loop for a while."""
        asyncio._set_running_loop(self)  # pyright: ignore[reportPrivateUsage]
        sys.set_asyncgen_hooks(self._generator_begins, self._generator_is_dropped)
        try:
            yield
        finally:
            sys.set_asyncgen_hooks(None, None)
            asyncio._set_running_loop(None)  # pyright: ignore[reportPrivateUsage]

    def _step(
        self,
        when_s: float,
        callback: Callable[..., object],
        args: tuple[object, ...],
        context: contextvars.Context | None,
    ) -> "_Step":
        self._refuse_if_closed()
        return _Step(self, when_s, callback, args, context)

    def _refuse_if_closed(self) -> None:
        if self.is_closed() and not self._killed:
            raise RuntimeError("Event loop is closed")

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._open.pop(task, None)

    def _generator_begins(self, generator: AsyncGenerator[Any, Any]) -> None:
        self._generators[next(self._serials)] = generator

    def _generator_is_dropped(self, generator: AsyncGenerator[Any, Any]) -> None:
        if not self.is_closed():
            self.create_task(generator.aclose())

    def _bury(self) -> None:
        with self.entered(), warnings.catch_warnings():
            # A coroutine that was handed to one that never started is never awaited. No news.
            warnings.simplefilter("ignore", RuntimeWarning)
            while self._open:
                task, context = next(iter(self._open.items()))
                del self._open[task]
                context.run(_end, task)
        self.close()


class _Step(asyncio.TimerHandle):
    """One callback of one loop, waiting for its turn."""

    def __init__(
        self,
        home: VirtualLoop,
        when_s: float,
        callback: Callable[..., object],
        args: tuple[object, ...],
        context: contextvars.Context | None,
    ) -> None:
        super().__init__(when_s, callback, args, home, context)
        self.home = home

    def may_run(self) -> bool:
        return not self.cancelled() and not self.home.is_closed()

    def run(self) -> None:
        self._run()


def _end(task: asyncio.Task[Any]) -> None:
    coro = task.get_coro()
    for _ in range(LAST_AWAITS):
        try:
            # Not `close()`: where a `finally` block waits, that would leave the inner coroutines
            # to the garbage collector. What is thrown passes through all of them.
            coro.throw(SimulatedCrash("the end of its process"))
        except (Exception, SystemExit, asyncio.CancelledError):
            return
    raise SimulationError(f"{task.get_name()} of a dead process doesn't end: it catches everything")


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _calls(task: asyncio.Task[Any]) -> str:
    names: list[str] = []
    inner: object = task.get_coro()
    while len(names) < LAST_AWAITS and (name := getattr(inner, "__qualname__", None)):
        names.append(name)
        inner = getattr(inner, "cr_await", None)
    return " > ".join(names)
