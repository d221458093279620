"""The virtual loop: time that jumps, seeded order, and what asyncio and anyio do on it."""

import asyncio
import contextlib
import contextvars
from collections.abc import Callable

import anyio
import pytest

from landed.testing.loop import StepLimitError, StuckError, VirtualLoop
from landed.testing.sim import CancelAt, World, run

pytestmark = pytest.mark.usefixtures("quiet")

LONG_S = 10 * 86_400.0
"""Far more than the time-out of a test: whoever really waits this long fails."""


# Time.


def test_a_long_sleep_takes_virtual_time_only():
    async def main() -> float:
        await asyncio.sleep(LONG_S)  # virtual time
        return asyncio.get_running_loop().time()

    assert run(main()) == LONG_S


def test_time_stands_still_while_anything_is_ready():
    async def main() -> list[float]:
        loop = asyncio.get_running_loop()
        soon = loop.create_future()
        loop.call_later(1e-3, soon.set_result, None)
        times: list[float] = []
        for _ in range(100):
            await asyncio.sleep(0)
            times.append(loop.time())
        await soon
        return [*times, loop.time()]

    assert run(main()) == [0.0] * 100 + [1e-3]


def test_what_is_cancelled_does_not_run_or_move_the_time():
    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.call_later(5.0, pytest.fail, "a cancelled timer").cancel()
        loop.call_soon(pytest.fail, "a cancelled callback").cancel()
        await asyncio.sleep(1.0)  # virtual time
        await asyncio.Event().wait()

    with pytest.raises(StuckError, match=r"stuck at 1\.0"):
        run(main())


def test_time_moves_on_under_a_loop_that_spins():
    """anyio delivers a cancellation again and again until the cancelled have left."""

    async def stubborn(done: asyncio.Event) -> None:
        while not done.is_set():
            try:
                await done.wait()
            except asyncio.CancelledError:
                continue

    async def main() -> float:
        done = asyncio.Event()
        asyncio.get_running_loop().call_later(5.0, done.set)
        with anyio.move_on_after(1.0):
            await stubborn(done)
        return asyncio.get_running_loop().time()

    assert run(main()) == 5.0


def test_a_spin_does_not_hold_up_a_wait_that_ends_before_the_next_timer(world: World):
    async def main() -> None:
        over = asyncio.Event()
        asyncio.get_running_loop().call_later(10.0, over.set)
        while not over.is_set():
            await asyncio.sleep(0)

    process = world.start(main)
    world.pass_time(5.0)
    assert (world.timeline.now_s, process.alive) == (5.0, True)
    world.wait(process)
    assert world.timeline.now_s == 10.0


# Order.


def order_of(count: int, pause_s: Callable[[int], float], seed: int | None) -> tuple[int, ...]:
    """The order in which `count` sleepers woke."""

    async def main() -> tuple[int, ...]:
        woken: list[int] = []

        async def sleeper(number: int) -> None:
            await asyncio.sleep(pause_s(number))  # virtual time
            woken.append(number)

        await asyncio.gather(*(sleeper(number) for number in range(count)))
        return tuple(woken)

    return run(main(), seed=seed)


def test_without_a_seed_it_is_first_come_first_served():
    assert order_of(5, lambda _: 1.0, None) == (0, 1, 2, 3, 4)


def test_a_seed_gives_the_same_order_each_time():
    for seed in range(20):
        assert order_of(6, lambda _: 1.0, seed) == order_of(6, lambda _: 1.0, seed)


def test_seeds_find_every_order_of_timers_due_at_one_instant():
    assert len({order_of(4, lambda _: 1.0, seed) for seed in range(400)}) == 24


def test_seeds_find_every_order_of_what_is_ready():
    assert len({order_of(4, lambda _: 0, seed) for seed in range(400)}) == 24


def test_timers_that_differ_by_rounding_are_due_together():
    pauses = (0.1 + 0.2, 0.3)
    assert pauses[0] != pauses[1]
    assert {order_of(2, pauses.__getitem__, seed) for seed in range(20)} == {(0, 1), (1, 0)}


def test_no_order_wakes_a_timer_before_an_earlier_one():
    assert {order_of(3, lambda n: 3.0 - n, seed) for seed in range(50)} == {(2, 1, 0)}


def test_nobody_wakes_before_the_time_it_asked_for():
    async def main() -> bool:
        loop = asyncio.get_running_loop()
        on_time: list[bool] = []
        moments = (1.0, 1.0 + 4e-7, 1.0 + 8e-7)

        def wake(at_s: float) -> None:
            on_time.append(loop.time() >= at_s)

        for at_s in moments:
            loop.call_at(at_s, wake, at_s)
        await asyncio.sleep(2.0)  # virtual time
        return len(on_time) == len(moments) and all(on_time)

    assert run(main())


def test_sets_of_tasks_have_the_same_order_in_every_run():
    """A group keeps its tasks in a set, and `wait` returns sets."""

    async def main() -> tuple[int, ...]:
        left: list[int] = []

        async def member(number: int) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                left.append(number)

        with contextlib.suppress(ExceptionGroup):
            async with asyncio.TaskGroup() as group:
                members = {group.create_task(member(number)) for number in range(50)}
                await asyncio.wait(members, timeout=1.0)
                raise ValueError
        done, _ = await asyncio.wait(members)
        return (*left, *(int(one.get_name().removeprefix("task-")) for one in done))

    # Keeping what each run allocated makes the next one use other addresses.
    kept = [(run(main(), seed=3), [object() for _ in range(101 * n)]) for n in range(10)]
    assert len({order for order, _ in kept}) == 1


# What no run may do.


def test_a_deadlock_is_an_error_that_says_who_waits_where(world: World):
    async def receive_forever(queue: asyncio.Queue[int]) -> None:
        await queue.get()

    async def main() -> None:
        await receive_forever(asyncio.Queue())

    with pytest.raises(StuckError) as stuck:
        world.run(main, name="clerk")
    (line,) = stuck.value.waiting
    assert line.startswith("clerk#1: clerk in ")
    assert line.endswith("main > " + receive_forever.__qualname__ + " > Queue.get")
    assert line in str(stuck.value)


def test_a_process_that_only_lets_time_pass_is_stuck(world: World):
    async def heartbeat() -> None:
        while True:
            await asyncio.sleep(10.0)  # virtual time

    with pytest.raises(StuckError, match=r"stuck at 100\.0"):
        world.run(heartbeat, within_s=105.0)


def test_a_process_that_spins_runs_into_the_step_limit():
    async def spin() -> None:
        while True:
            await asyncio.sleep(0)

    with pytest.raises(StepLimitError, match="more than 20000 steps"):
        run(spin(), max_steps=20_000)


def test_something_on_the_wire_that_never_arrives_is_stuck(world: World):
    world.spawn(asyncio.sleep(10 * LONG_S), name="a slow letter")  # virtual time
    with pytest.raises(StuckError, match="world: a slow letter in sleep"):
        world.settle()


# What runs on it.


def test_the_tools_of_asyncio_work():
    var = contextvars.ContextVar("var", default=0)

    async def main() -> list[object]:
        loop, event, queue = asyncio.get_running_loop(), asyncio.Event(), asyncio.Queue[int](1)
        found: list[object] = []
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1.0):
                await event.wait()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(event.wait()), 1.0)
        loop.call_later(1.0, event.set)
        done, _ = await asyncio.wait({asyncio.ensure_future(event.wait())})
        found.append(len(done))
        async with asyncio.TaskGroup() as group:
            group.create_task(queue.put(1))
            group.create_task(queue.put(2))
            found.append(await queue.get() + await queue.get())
        var.set(7)
        found.append(await asyncio.to_thread(var.get))
        with pytest.raises(ZeroDivisionError):
            await loop.run_in_executor(None, lambda: 1 // 0)
        found.append(loop.time())
        return found

    for seed in (None, *range(20)):
        assert run(main(), seed=seed) == [1, 3, 7, 3.0]


def test_anyio_works():
    async def main() -> list[object]:
        found: list[object] = []
        lock = anyio.Lock()

        async def member(number: int) -> None:
            async with lock:
                await anyio.sleep(1.0)  # virtual time
                found.append(number)

        async with anyio.create_task_group() as group:
            for number in range(3):
                group.start_soon(member, number)
        with anyio.move_on_after(1.0) as scope:
            await anyio.sleep_forever()
        found += [scope.cancelled_caught, anyio.current_time()]
        return found

    assert run(main()) == [0, 1, 2, True, 4.0]
    assert len({tuple(run(main(), seed=seed)) for seed in range(50)}) == 6


def test_the_loop_alone_fits_a_runner_of_asyncio():
    async def main() -> float:
        asyncio.get_running_loop().create_task(asyncio.sleep(LONG_S))  # virtual time
        await asyncio.sleep(5.0)  # virtual time
        return asyncio.get_running_loop().time()

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        assert runner.run(main()) == 5.0
        assert runner.run(main()) == 10.0
        with pytest.raises(StuckError, match=r"loop: .* in Event\.wait"):
            runner.run(asyncio.Event().wait())


# Cancel at every await.


def test_a_cancel_is_delivered_at_each_suspension_in_turn():
    async def work(passed: list[int]) -> str:
        for number in range(1, 6):
            await asyncio.sleep(number)  # virtual time
            passed.append(number)
        return "done"

    async def main(cancel: CancelAt, passed: list[int]) -> str:
        return await cancel.watch(work(passed))

    for nth in range(1, 6):
        passed: list[int] = []
        with pytest.raises(asyncio.CancelledError):
            run(main(CancelAt(nth), passed))
        assert passed == list(range(1, nth))
    never = CancelAt(6)
    assert run(main(never, [])) == "done"
    assert never.seen == 5


def test_a_second_cancel_reaches_what_the_first_one_left_running():
    async def work(passed: list[str]) -> None:
        for name in ("first", "second", "third"):
            try:
                await asyncio.sleep(1.0)  # virtual time
            except asyncio.CancelledError:
                continue
            passed.append(name)

    async def main(cancel: CancelAt) -> list[str]:
        passed: list[str] = []
        await cancel.watch(work(passed))
        return passed

    assert run(main(CancelAt(1, 3))) == ["second"]
