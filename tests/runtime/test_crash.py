"""A process that is killed at any moment: the next one finds out, and touches nothing else."""

import asyncio
from collections.abc import Callable

import pytest

from landed.core.key import Ask
from landed.core.operation import State
from landed.core.value import Confirmed
from landed.runtime.runtime import Runtime
from landed.testing.sim import Process, World
from tests.runtime.rig import (
    DROPPED,
    REPLY_LOST,
    RESET,
    SELDOM,
    UNSENT,
    Rig,
    Wire,
    booking,
    unkeyed,
)
from tests.runtime.stores import CountingStore, SlowStore
from tests.sampling import sampled

FRIDAY = {"day": "Fri"}
SETTLED = (State.CONFIRMED, State.FAILED, State.WITHDRAWN)
WIRES = {
    "fine": Wire(),
    "slow": Wire(replies_s=3.0),
    "late": Wire(arrives_s=7.0),
    "lost": REPLY_LOST,
    "dropped": DROPPED,
    "cut": RESET,
    "unsent": UNSENT,
}


async def book_friday(rt: Runtime):
    return await rt.perform("book", FRIDAY, ask=Ask(call_id="c1"), patience_s=60.0)


async def until_settled(rt: Runtime) -> int:
    """Find out whatever the last process left."""
    await asyncio.sleep(300.0)  # virtual time
    return rt.recovered


def kill_after(rig: Rig, process: Process, steps: int) -> bool:
    """Kill a process after so many steps of the world; return whether it was still alive."""
    until = rig.world.timeline.steps + steps
    rig.world.timeline.drive(lambda: rig.world.timeline.steps >= until or not process.alive)
    was_alive = process.alive
    rig.kill(process)
    return was_alive


def check_settled(rig: Rig) -> None:
    """Every operation is settled, and the world holds what its record says."""
    rig.world.settle()
    rig.check()
    for operation in rig.operations():
        assert operation.state in SETTLED
        assert rig.far.effects[operation.id] == (operation.state is State.CONFIRMED)


def at_every_step(trial: Callable[[Rig, int], bool]) -> int:
    """Run a trial that dies after 1, 2, 3… steps, until it outlives them; return how many."""
    for steps in range(1, 10_000):
        with World() as world:
            rig = Rig(world, lease=SELDOM)
            died = trial(rig, steps)
            check_settled(rig)
        if not died:
            return steps
    raise AssertionError("it never came to its end")


@pytest.mark.req("S4-05", "S0-43", "S0-18", "S0-53")
@pytest.mark.fault("X01", "X02", "X03", "X04")
@pytest.mark.parametrize("wire", sampled(WIRES, every=2))
@pytest.mark.parametrize("wrap", [None, SlowStore], ids=["quick store", "slow store"])
def test_killed_at_any_step_it_is_found_out(wire: str, wrap: type | None) -> None:
    def trial(rig: Rig, steps: int) -> bool:
        rig.wrap = wrap or rig.wrap
        rig.far.wire.append(WIRES[wire])
        died = kill_after(rig, rig.start(book_friday, booking(rig.far)), steps)
        recovered = rig.run(until_settled, booking(rig.far))
        assert recovered <= 1
        return died

    assert at_every_step(trial) > 10


@pytest.mark.req("S0-56")
@pytest.mark.fault("X07")
@pytest.mark.parametrize("wire", ["lost", "dropped"])
def test_killed_again_at_any_step_of_the_recovery(wire: str) -> None:
    def trial(rig: Rig, steps: int) -> bool:
        rig.far.wire.append(WIRES[wire])
        first = rig.start(book_friday, booking(rig.far))
        rig.world.pass_time(1.0)
        rig.kill(first)
        died = kill_after(rig, rig.start(until_settled, booking(rig.far)), steps)
        again = kill_after(rig, rig.start(until_settled, booking(rig.far)), steps)
        rig.run(until_settled, booking(rig.far))
        return died or again

    assert at_every_step(trial) > 10


@pytest.mark.req("S4-05", "S0-32")
def test_the_script_that_runs_again_joins_what_the_last_process_began() -> None:
    """As a durable program does: the same ask after the crash is the same operation."""

    def trial(rig: Rig, steps: int) -> bool:
        rig.far.wire.append(REPLY_LOST)
        died = kill_after(rig, rig.start(book_friday, booking(rig.far)), steps)
        value = rig.run(book_friday, booking(rig.far))
        assert isinstance(value, Confirmed)
        assert rig.far.total == 1
        return died

    assert at_every_step(trial) > 10


@pytest.mark.fault("X02", "X03")
@pytest.mark.field("B12")
def test_without_keys_or_questions_a_crash_leaves_it_unknown_and_never_sent_again() -> None:
    async def mail(rt: Runtime):
        return await rt.perform("mail", {"to": "ana"})

    for steps in range(1, 60):
        with World() as world:
            rig = Rig(world, lease=SELDOM)
            kill_after(rig, rig.start(mail, unkeyed(rig.far)), steps)
            rig.run(until_settled, unkeyed(rig.far))
            assert len(rig.far.sends) <= 1
            assert rig.far.total <= 1
            if rig.far.total:
                assert rig.states() in ([State.UNKNOWN], [State.CONFIRMED])


def test_it_counts_what_it_took_over(rig: Rig) -> None:
    async def script(rt: Runtime):
        calls = [rt.perform("book", {"day": f"day {n}"}) for n in range(150)]
        return await asyncio.gather(*calls)

    rig.far.wire.extend([Wire(replies_s=3.0)] * 150)
    process = rig.start(script, booking(rig.far))
    rig.world.pass_time(1.0)
    rig.kill(process)
    assert rig.run(until_settled, booking(rig.far)) == 150
    check_settled(rig)


@pytest.mark.services
def test_recovery_touches_only_what_is_in_flight(rig: Rig) -> None:
    """A store with 2,000 finished operations: the next process loads none of them."""
    finished, counting = 2_000, []

    async def fill(rt: Runtime):
        for page in range(0, finished, 500):
            calls = [
                rt.perform("book", {"day": f"day {n}"}, ask=Ask(session=f"s{n % 40}"))
                for n in range(page, page + 500)
            ]
            await asyncio.gather(*calls)

    rig.run(fill, booking(rig.far))
    assert rig.far.total == finished
    rig.far.wire.append(Wire(replies_s=3.0))
    process = rig.start(book_friday, booking(rig.far))
    rig.world.pass_time(1.0)
    rig.kill(process)

    def count(store):
        counting.append(CountingStore(store))
        return counting[-1]

    rig.wrap = count
    assert rig.run(until_settled, booking(rig.far)) == 1
    (counted,) = counting
    assert counted.claimed == [f"op-a{finished + 1}"]
    assert [id for id in counted.loaded if id.startswith("op-")] == []
    assert counted.paged == 0
