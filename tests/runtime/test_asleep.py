"""Workers that stand still past their lease, or whose clocks are wrong: harmless, and fenced."""

import asyncio
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from landed.core.errors import LeaseLostError
from landed.core.key import Ask
from landed.core.lease import Lease
from landed.core.operation import State
from landed.core.outcome import SendOutcome
from landed.core.tool import Call, Tool
from landed.core.value import Confirmed, Failed, Withdrawn
from landed.runtime.parts import assemble, register
from landed.runtime.runtime import Runtime
from landed.stores.sqlite import open_sqlite
from landed.testing.around import Around
from landed.testing.faults import parse_point
from landed.testing.sim import World, current_process
from landed.tools.function import tool
from tests.runtime.office import OfficeRig, proposed, refused, token_of
from tests.runtime.rig import UNSENT, Rig, Wire, booking

FRIDAY = {"day": "Fri"}
HOUR_S, DAY_S = 3_600.0, 86_400.0


@dataclass(slots=True, eq=False)
class Stalls(Around):
    """Stands still at the last moment before a send leaves: what was checked before was true."""

    async def send(self, call: Call) -> SendOutcome:
        current_process().pause()
        await asyncio.sleep(0)
        return await self.inner.send(call)


@dataclass(slots=True, eq=False)
class StallsAfterwards(Around):
    """Stands still when the answer is there and nobody has heard of it."""

    async def send(self, call: Call) -> SendOutcome:
        outcome = await self.inner.send(call)
        current_process().pause()
        await asyncio.sleep(0)
        return outcome


async def stubborn(rt: Runtime) -> str:
    """Work until one hears that one was replaced, and return the sentence."""
    try:
        await rt.perform("book", FRIDAY, patience_s=600.0)
        await rt.serve(asyncio.Event())
    except LeaseLostError as lost:
        return str(lost)
    raise AssertionError("it was never told")


async def nothing(rt: Runtime) -> int:
    return rt.recovered


async def settling(rt: Runtime) -> object:
    return await rt.resolve("op-a1", patience_s=300.0)


# Asleep.


@pytest.mark.req("S4-24", "S4-25", "S4-26")
@pytest.mark.field("F1")
@pytest.mark.fault("X18", "X21")
def test_what_leaves_after_the_lease_carries_the_same_key_and_takes_effect_once(rig: Rig) -> None:
    """For the store, a loop that is blocked for that long is the same as a process asleep."""
    mine: Tool = booking(rig.far)
    sleeper = rig.start(stubborn, Stalls(mine))
    rig.world.pass_time(60.0)
    successor = rig.start(settling, mine)
    rig.world.pass_time(5.0)
    before = rig.events("op-a1")
    sleeper.resume()
    rig.world.wait(sleeper, successor)
    rig.world.settle()

    assert isinstance(successor.result(), Confirmed)
    assert rig.far.sends == ["op-a1", "op-a1"]
    assert rig.far.effects == {"op-a1": 1}
    assert rig.events("op-a1") == before, "whoever woke wrote nothing"
    assert "another worker goes on with" in sleeper.result()
    assert rig.operation().worker == "w2"


@pytest.mark.req("S4-30", "S4-25")
@pytest.mark.fault("X18")
@pytest.mark.parametrize(
    "where", ["made", "sent", "before the send", "after the send", "acknowledged"]
)
def test_asleep_between_any_two_of_lease_store_and_service_one_effect_is_told_of(
    rig: Rig, where: str
) -> None:
    """No transaction spans the three: what is missing after each step is found out."""
    mine: Tool = booking(rig.far)
    wrapped = {"before the send": Stalls(mine), "after the send": StallsAfterwards(mine)}
    stands: list[bool] = []

    async def asked(rt: Runtime) -> str:
        try:
            value = await rt.perform("book", FRIDAY, ask=Ask(call_id="c1"), patience_s=200.0)
        except LeaseLostError:
            return "replaced"
        return type(value).__name__

    rig.kill_at = None if where in wrapped else parse_point(f"before:{where}")
    rig.only_pauses = True
    sleeper = rig.start(asked, wrapped.get(where, mine))
    rig.world.pass_time(60.0)
    stands.append(sleeper.alive)
    rig.kill_at = None
    successor = rig.start(asked, mine)
    rig.world.pass_time(30.0)
    sleeper.resume()
    rig.world.wait(sleeper, successor)
    rig.world.settle()

    assert stands == [True], "it was not asleep"
    assert rig.far.effects == {"op-a1": 1}
    assert [one.state for one in rig.operations() if one.tries] == [State.CONFIRMED]
    assert successor.result() == "Confirmed"


@pytest.mark.req("S4-26", "S4-30")
@pytest.mark.fault("X18")
def test_what_leaves_after_its_key_was_closed_is_refused(rig: Rig) -> None:
    mine: Tool = booking(rig.far)

    async def briefly(rt: Runtime) -> str:
        ask = Ask(send_by=rt.driver.clock.now() + 30.0)
        try:
            await rt.perform("book", FRIDAY, ask=ask, patience_s=600.0)
            await rt.serve(asyncio.Event())
        except LeaseLostError as lost:
            return str(lost)
        raise AssertionError("it was never told")

    sleeper = rig.start(briefly, Stalls(mine))
    rig.world.pass_time(60.0)
    successor = rig.start(settling, mine)
    rig.world.pass_time(5.0)
    sleeper.resume()
    rig.world.wait(sleeper, successor)
    rig.world.settle()

    assert isinstance(successor.result(), Failed)
    assert (rig.far.sends, rig.far.total) == (["op-a1"], 0)
    assert rig.states() == [State.FAILED]


@pytest.mark.req("S4-25")
@pytest.mark.fault("X18")
def test_whoever_slept_less_than_its_lease_goes_on_as_if_nothing_had_been(rig: Rig) -> None:
    mine: Tool = booking(rig.far)
    sleeper = rig.start(lambda rt: rt.perform("book", FRIDAY), Stalls(mine))
    rig.world.pass_time(20.0)
    other = rig.start(lambda rt: nothing(rt), mine)
    rig.world.pass_time(1.0)
    sleeper.resume()
    rig.world.wait(sleeper, other)

    assert other.result() == 0
    assert rig.far.effects == {"op-a1": 1}
    assert [one.worker for one in rig.operations()] == ["w1"]


@pytest.mark.fault("X21")
def test_a_loop_that_is_blocked_for_longer_than_its_lease_loses_it(tmp_path: Path) -> None:
    """Nothing renews in its stead: a heartbeat in a thread would keep a dead loop's claims."""
    path, lease = str(tmp_path / "agent.db"), Lease(lease_s=0.2, beat_s=0.05)
    left, answered = asyncio.Event(), asyncio.Event()
    claimed: list[str] = []

    @tool(effect="irreversible")
    async def mail(to: str) -> None:
        left.set()
        await answered.wait()

    async def take_over() -> None:
        store = open_sqlite(path)
        until = time.monotonic() + 20.0
        while not claimed and time.monotonic() < until:
            found = await store.claim(worker="other", now=time.time())
            claimed.extend(one.id for one in found)
        await store.close()

    async def blocked() -> None:
        rt = assemble(open_sqlite(path), tools=register([mail]), lease=lease)
        async with rt:
            waiting = asyncio.ensure_future(rt.perform("mail", {"to": "ana"}, patience_s=0.1))
            await left.wait()
            thread = threading.Thread(target=asyncio.run, args=(take_over(),))
            thread.start()
            thread.join()  # The loop is blocked until another has taken over.
            with pytest.raises(LeaseLostError):
                await rt.serve(asyncio.Event())
            with pytest.raises(LeaseLostError):
                await rt.perform("mail", {"to": "bob"})
            answered.set()
            await waiting

    asyncio.run(blocked())
    assert len(claimed) == 1


# Clocks.


@pytest.mark.fault("X15", "X16")
@pytest.mark.parametrize("jump_s", [HOUR_S, -HOUR_S, DAY_S, -DAY_S])
@pytest.mark.parametrize("off_s", [0.0, HOUR_S, -HOUR_S])
def test_clocks_that_disagree_and_jump_make_no_second_effect(
    rig: Rig, off_s: float, jump_s: float
) -> None:
    rig.far.wire.append(Wire(replies_s=20.0))
    mine = booking(rig.far, deadline_s=40.0)

    async def asked(rt: Runtime) -> str:
        try:
            await rt.perform("book", FRIDAY, ask=Ask(call_id="c1"), patience_s=200.0)
        except LeaseLostError:
            return "replaced"
        return "answered"

    one = rig.start(asked, mine)
    rig.world.pass_time(1.0)
    two = rig.start(asked, mine)
    two.clock.shift(off_s)
    rig.world.pass_time(5.0)
    one.clock.shift(jump_s)
    rig.world.wait(one, two)
    three = rig.start(settling, mine)
    rig.world.wait(three)
    rig.world.settle()

    assert rig.far.total <= 1
    assert set(rig.far.sends) == {"op-a1"}
    (state,) = rig.states()
    assert state in (State.CONFIRMED, State.FAILED)
    assert (state is State.CONFIRMED) == (rig.far.total == 1)


@pytest.mark.fault("X16")
def test_nothing_is_sent_late_after_a_jump_and_nothing_lives_again_after_the_next(
    rig: Rig,
) -> None:
    rig.far.wire.append(UNSENT)

    async def script(rt: Runtime):
        ask = Ask(send_by=rt.driver.clock.now() + 600.0)
        call = asyncio.ensure_future(rt.perform("book", FRIDAY, ask=ask, patience_s=100.0))
        await asyncio.sleep(0.1)  # virtual time
        current_process().clock.shift(DAY_S)
        await asyncio.sleep(10.0)  # virtual time
        current_process().clock.shift(-DAY_S)
        await asyncio.sleep(100.0)  # virtual time
        return await call

    value = rig.run(script, booking(rig.far))
    assert isinstance(value, Withdrawn | Failed)
    assert (rig.far.sends, rig.far.total) == (["op-a1"], 0)


@pytest.mark.fault("X15")
def test_a_yes_that_was_too_late_is_too_late_for_good() -> None:
    with World() as world:
        rig = OfficeRig(world)

        async def script(rt: Runtime):
            value = await proposed(rt)
            problems = []
            for jump_s in (600.0, -HOUR_S, -DAY_S):
                current_process().clock.shift(jump_s)
                late = rt.approve(token=token_of(value), principal="ana")
                problems.append((await refused(late)).problem)
            return problems

        assert rig.run(script) == ["expired"] * 3
        assert rig.office.done == []


@pytest.mark.fault("X15")
def test_the_order_is_that_of_the_journal_whatever_the_clock_showed(rig: Rig) -> None:
    async def script(rt: Runtime):
        for n in range(3):
            await rt.perform("book", {"day": f"day {n}"})
            current_process().clock.shift(-DAY_S)
        return [item.text for item in await rt.history()]

    told = rig.run(script, booking(rig.far))
    made = [one.made_at for one in rig.operations()]
    assert made == sorted(made, reverse=True)
    assert [one.id for one in rig.operations()] == ["op-a1", "op-a2", "op-a3"]
    days = [word for text in told for word in ("day 0", "day 1", "day 2") if word in text]
    assert list(dict.fromkeys(days)) == ["day 0", "day 1", "day 2"]
