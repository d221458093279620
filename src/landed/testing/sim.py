"""A simulated world: processes that can be killed at any moment, and an outside that survives.

Each `Process` has an event loop of its own, as a real one has, and the `World` has one more for
what is outside: services, and requests on the wire. All share one timeline, of
`landed.testing.loop`. To kill a process is to run nothing of its loop any more: it gets no
`CancelledError`, writes no state on the way out, and what it had sent stays sent. To pause it is
the same for a while: `pause`, then `resume`.

    with World(seed=7) as world:
        ended = world.run(agent)     # the first process; Ended(crashed_at="before:send") perhaps
        world.pass_time(60.0)
        ended = world.run(agent)     # the next process, in the same world
        world.settle()               # what is on the wire arrives; now look at the services

A process reaches the outside with `World.spawn`, as it would over a socket. The dead still run
their `finally` blocks: `spawn` refuses them, and everything else through which a process acts (a
store, say) keeps the `Process` it was made for and calls `require_alive` first.
"""

import asyncio
import contextvars
import types
from collections.abc import Awaitable, Callable, Coroutine, Generator
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, NoReturn, TypeVar

from landed.testing.clock import CountingIds, VirtualClock, parse_utc
from landed.testing.loop import MAX_STEPS, SimulatedCrash, StuckError, Timeline, VirtualLoop

T = TypeVar("T")

MONTH_S = 30 * 86_400.0
"""How much virtual time a world waits for something, unless told otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended(Generic[T]):
    """How a process ended: with the `result` of its main coroutine, or `crashed_at` a point."""

    result: T | None = None
    crashed_at: str | None = None


class Process(Generic[T]):
    """One incarnation of a program: everything that its event loop runs. Made by a `World`.

    `incarnation` numbers the processes of the world from 1. `clock` is this process's own, and may
    be shifted. It lives until its main coroutine and all that this left behind have ended, as under
    `asyncio.run`, or until it is killed.
    """

    def __init__(
        self, world: "World", main: Callable[[], Awaitable[T]], *, name: str, incarnation: int
    ) -> None:
        self.name = name
        self.incarnation = incarnation
        self.loop = _ProcessLoop(self, world.timeline)
        self.clock = VirtualClock(self.loop, world.start_at)
        self._timeline = world.timeline
        self._alive = True
        self._crashed_at: str | None = None
        self._main = self.loop.create_task(_call(main), name=name, context=contextvars.Context())
        self._main.add_done_callback(self._main_is_done)

    @property
    def alive(self) -> bool:
        """Whether code of this process may still act."""
        return self._alive

    def kill(self, point: str = "kill") -> None:
        """Die at once, as of SIGKILL; without effect on one that is over.

        May be called from anywhere. Code of this process that is on the stack goes on until it next
        waits, but as a dead one.
        """
        if self._alive:
            self._alive = False
            self._crashed_at = point
            self.loop.kill()

    def pause(self) -> None:
        """Stand still, as of SIGSTOP: nothing of its loop runs until `resume`, and it stays alive.

        What it had sent goes on; answers and timers wait. Code of this process that is on the stack
        goes on until it next waits. A process that is over stays so.
        """
        self.loop.pause()

    def resume(self) -> None:
        """Go on, as of SIGCONT: the clock has moved, and all that came due meanwhile is due now."""
        self.loop.resume()

    def crash(self, point: str) -> NoReturn:
        """Die here: what a crash point inside the process calls. Raises `SimulatedCrash`."""
        self.kill(point)
        raise SimulatedCrash(point)

    def require_alive(self) -> None:
        """Refuse a process that is over: raises `SimulatedCrash`."""
        if not self._alive:
            raise SimulatedCrash(self._crashed_at or "the end")

    def result(self) -> T:
        """What the main coroutine returned; raises what it raised, `SimulatedCrash` if killed.

        `RuntimeError` while the process is alive.
        """
        if self._alive:
            raise RuntimeError(f"{self.loop.name} is alive: let the world run it to its end")
        if self._crashed_at is not None:
            raise SimulatedCrash(self._crashed_at)
        return self._main.result()

    def ended(self) -> Ended[T]:
        """How it ended; raises as `result` does, but a crash is a value."""
        try:
            return Ended(result=self.result())
        except SimulatedCrash as crash:
            return Ended(crashed_at=crash.point)

    def _main_is_done(self, _: asyncio.Task[T]) -> None:
        self.loop.create_task(self._end(), name="end")

    async def _end(self) -> None:
        left = [task for task in self.loop.unfinished if task is not asyncio.current_task()]
        for task in left:
            task.cancel()
        for ending in await asyncio.gather(*left, return_exceptions=True):
            if isinstance(ending, Exception):
                message = "a task failed while its process ended"
                self.loop.call_exception_handler({"message": message, "exception": ending})
        await self.loop.shutdown_asyncgens()
        self._alive = False
        self._timeline.after_step(self.loop.close)


class World:
    """What is outside the processes and outlives them: the time, the services, the wire, the ids.

    `seed` chooses among what is ready at one time; None is first come, first served. `start` is the
    instant at virtual time 0.0. More than `max_steps` callbacks in all raise `StepLimitError`.

    `failures` keeps the errors that spawned coroutines ended with. An `AssertionError` among them
    is also raised out of the run that is going on: a service of a test may assert.
    """

    def __init__(
        self,
        seed: int | None = None,
        start: str = "2026-11-27T18:00:00Z",
        *,
        max_steps: int = MAX_STEPS,
    ) -> None:
        self.start_at = parse_utc(start)
        self.timeline = Timeline(seed, max_steps)
        self.loop = VirtualLoop(self.timeline, name="world")
        self.clock = VirtualClock(self.loop, self.start_at)
        self.ids = CountingIds()
        self.failures: list[BaseException] = []
        self._broken: AssertionError | None = None
        self._undelivered = 0
        self._processes: list[Process[Any]] = []

    def __enter__(self) -> "World":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the world: what is alive or on the wire is dropped without a word."""
        for process in self._processes:
            process.kill("the end of the world")
        self.loop.kill()

    def spawn(self, work: Coroutine[Any, Any, T], *, name: str | None = None) -> asyncio.Future[T]:
        """Let `work` run outside every process, and return its reply for the caller to await.

        The reply belongs to the loop of the caller (to the world's, when nothing runs). To cancel
        it, or to die, takes nothing back: the work goes on. A caller that is dead already reaches
        nobody: `SimulatedCrash`.
        """
        caller = _caller_loop(self.loop)
        if isinstance(caller, _ProcessLoop) and not caller.process.alive:
            work.close()
            caller.process.require_alive()
        reply: asyncio.Future[T] = caller.create_future()
        self._undelivered += 1
        task = self.loop.create_task(work, name=name, context=contextvars.Context())
        task.add_done_callback(partial(self._deliver, reply))
        return reply

    def start(self, main: Callable[[], Awaitable[T]], *, name: str = "agent") -> Process[T]:
        """Start a process whose main coroutine is `main()`; it runs when the world does."""
        process = Process(self, main, name=name, incarnation=len(self._processes) + 1)
        self._processes.append(process)
        return process

    def wait(self, *processes: Process[Any], within_s: float = MONTH_S) -> None:
        """Run the world until these processes have ended.

        Raises what the main coroutine of one raised, and `StuckError` if they don't end in time.
        """
        if not self._drive(lambda: not any(p.alive for p in processes), within_s):
            raise StuckError(self.timeline.now_s, self.timeline.waiting())
        for process in processes:
            process.ended()

    def run(
        self,
        main: Callable[[], Awaitable[T]],
        *,
        name: str = "agent",
        within_s: float = MONTH_S,
    ) -> Ended[T]:
        """Start a process and run the world until it has ended; raises as `wait` does."""
        process = self.start(main, name=name)
        self.wait(process, within_s=within_s)
        return process.ended()

    def settle(self, within_s: float = MONTH_S) -> None:
        """Run the world until nothing is on the wire: all that was spawned is done.

        Processes that are alive run too. Raises `StuckError` if it takes longer than `within_s`.
        """
        if not self._drive(lambda: not (self._undelivered or self.loop.unfinished), within_s):
            raise StuckError(self.timeline.now_s, self.timeline.waiting())

    def pass_time(self, duration_s: float) -> None:
        """Let virtual time go by, and run whatever is due in it."""
        until_s = self.timeline.now_s + duration_s
        self._drive(lambda: False, duration_s)
        self.timeline.now_s = max(self.timeline.now_s, until_s)

    def _drive(self, over: Callable[[], bool], within_s: float) -> bool:
        until_s = self.timeline.now_s + within_s
        done = self.timeline.drive(lambda: self._broken is not None or over(), until_s)
        if self._broken is not None:
            broken, self._broken = self._broken, None
            raise broken
        return done

    def _deliver(self, reply: asyncio.Future[T], task: asyncio.Task[T]) -> None:
        self._undelivered -= 1
        if task.cancelled():
            reply.cancel()
            return
        error = task.exception()
        if error is not None:
            self.failures.append(error)
        if isinstance(error, AssertionError):
            self._broken = error
        if reply.done():
            return
        if error is None:
            reply.set_result(task.result())
        else:
            reply.set_exception(error)
            reply.exception()  # It is in `failures`: asyncio need not log it as unseen.


class CancelAt:
    """Cancels the task that awaits `watch(work)` at chosen suspensions of `work`, 1 the first.

    For tests that cancel at every await: raise the number until `seen` stays below it.
    """

    def __init__(self, *suspensions: int) -> None:
        self.seen = 0
        self._suspensions = suspensions

    @types.coroutine
    def watch(self, work: Coroutine[Any, Any, T]) -> Generator[Any, Any, T]:
        """Await `work`; returns and raises what it does."""
        resume = partial(work.send, None)
        while True:
            try:
                awaited = resume()
            except StopIteration as end:
                result: T = end.value
                return result
            self.seen += 1
            if self.seen in self._suspensions and (task := asyncio.current_task()):
                task.cancel()
            try:
                yield awaited
                resume = partial(work.send, None)
            except BaseException as error:
                resume = partial(work.throw, error)


def current_process() -> Process[Any]:
    """The process whose code is running; raises `RuntimeError` outside of one."""
    loop = asyncio.get_running_loop()
    if not isinstance(loop, _ProcessLoop):
        raise RuntimeError("no process of a simulated world is running")
    return loop.process


def run(main: Coroutine[Any, Any, T], *, seed: int | None = None, max_steps: int = MAX_STEPS) -> T:
    """Run one coroutine as the only process of a world of its own, as `asyncio.run` would.

    Returns its result and raises its errors, `SimulatedCrash` among them.
    """
    with World(seed, max_steps=max_steps) as world:
        process = world.start(lambda: main)
        world.wait(process)
        return process.result()


class _ProcessLoop(VirtualLoop):
    """The event loop of one process, by which running code finds the process it belongs to."""

    def __init__(self, process: Process[Any], timeline: Timeline) -> None:
        super().__init__(timeline, name=f"{process.name}#{process.incarnation}")
        self.process = process

    def crashed(self, crash: SimulatedCrash) -> None:
        """Kill the process that a bare `raise SimulatedCrash` came out of."""
        self.process.kill(crash.point)


async def _call(main: Callable[[], Awaitable[T]]) -> T:
    return await main()


def _caller_loop(otherwise: asyncio.AbstractEventLoop) -> asyncio.AbstractEventLoop:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return otherwise
