"""What the runtime keeps within bounds: sends at once, and what it remembers of what is over."""

import asyncio
import gc

import pytest

from landed.core.arrival import Told
from landed.core.key import Ask
from landed.core.operation import State
from landed.core.value import Confirmed, Unknown
from landed.runtime.loop import LINGER_S
from landed.runtime.runtime import Runtime
from tests.runtime.rig import DROPPED, RESET, UNSENT, Rig, Wire, booking, unkeyed


async def book_all(rt: Runtime, count: int, sessions: int):
    calls = [
        rt.perform(
            "book", {"day": f"day {n}"}, ask=Ask(session=f"s{n % sessions}"), patience_s=500.0
        )
        for n in range(count)
    ]
    return await asyncio.gather(*calls)


def test_never_more_at_once_than_the_contract_says(rig: Rig) -> None:
    rig.far.wire.extend([Wire(replies_s=1.0)] * 10)
    values = rig.run(lambda rt: book_all(rt, 10, 5), booking(rig.far, concurrency=2))
    assert all(isinstance(value, Confirmed) for value in values)
    assert rig.far.most_at_once == 2
    assert rig.world.timeline.now_s == pytest.approx(5.0)


def test_without_a_bound_all_go_at_once(rig: Rig) -> None:
    rig.far.wire.extend([Wire(replies_s=1.0)] * 10)
    rig.run(lambda rt: book_all(rt, 10, 5), booking(rig.far))
    assert rig.far.most_at_once == 10


def test_what_comes_back_to_a_loop_that_was_let_go_of_is_for_the_next_one(rig: Rig) -> None:
    """As the late return of a thread does, long after its operation was found out about."""
    rig.far.wire.append(Wire(replies_s=3.0))

    async def script(rt: Runtime):
        let_go_of = rt.driver.loop_of(tenant="default", session="main")
        del rt.driver.loops[let_go_of.place]
        call = asyncio.ensure_future(rt.perform("book", {"day": "Fri"}))
        await asyncio.sleep(1.0)  # virtual time
        absorbed = let_go_of.hand_in(Told(operation="op-a1", state=State.SENT))
        await asyncio.wait_for(absorbed, 1.0)
        return let_go_of.inbox, list(rt.driver.loops), await call

    inbox, loops, value = rig.run(script, booking(rig.far))
    assert (inbox, loops) == ([], [("default", "main")])
    assert isinstance(value, Confirmed)
    assert "told" in rig.events("op-a1")


@pytest.mark.parametrize("wire", [RESET, UNSENT, DROPPED, Wire(refused="full")], ids=repr)
def test_a_place_comes_free_however_a_send_ends(rig: Rig, wire: Wire) -> None:
    rig.far.wire.extend([wire, Wire(), wire, Wire(), wire])
    values = rig.run(lambda rt: book_all(rt, 6, 3), booking(rig.far, concurrency=1))
    assert len(values) == 6
    assert rig.far.most_at_once <= 1
    assert not any(isinstance(value, Unknown) for value in values)


def test_a_place_comes_free_when_its_caller_leaves(rig: Rig) -> None:
    rig.far.wire.append(Wire(replies_s=100.0))

    async def script(rt: Runtime):
        call = asyncio.ensure_future(rt.perform("mail", {"to": "ana"}))
        await asyncio.sleep(1.0)  # virtual time
        call.cancel()
        await asyncio.wait({call})
        return await rt.perform("mail", {"to": "ben"}), rig.world.timeline.now_s

    value, at_s = rig.run(script, unkeyed(rig.far, concurrency=1, deadline_s=60.0))
    assert isinstance(value, Confirmed)
    assert at_s == pytest.approx(1.0)


def test_one_that_waits_for_a_place_is_told_as_recorded_when_patience_is_over(rig: Rig) -> None:
    rig.far.wire.append(Wire(replies_s=4.0))

    async def script(rt: Runtime):
        first = asyncio.ensure_future(rt.perform("book", {"day": "Fri"}))
        await asyncio.sleep(0)
        second = await rt.perform("book", {"day": "Sat"}, patience_s=1.0)
        return second, await first, await rt.resolve(second.operation)

    early, _, late = rig.run(script, booking(rig.far, concurrency=1))
    assert "not sent yet" in early.text
    assert isinstance(late, Confirmed)


def test_nothing_is_left_of_a_thousand_sessions(rig: Rig) -> None:
    async def script(rt: Runtime):
        values = await book_all(rt, 1_000, 1_000)
        await asyncio.sleep(2 * LINGER_S)  # virtual time
        return values, dict(rt.driver.loops), len(asyncio.all_tasks())

    values, loops, all_tasks = rig.run(script, booking(rig.far))
    assert all(isinstance(value, Confirmed) for value in values)
    assert loops == {}
    # The script's own, the heartbeat, who waits for a restore, and who lets plans lapse.
    assert all_tasks == 4


@pytest.mark.parametrize("wire", [RESET, UNSENT, DROPPED, Wire(refused="full")], ids=repr)
def test_nothing_is_left_in_the_loop_of_a_session_that_is_settled(rig: Rig, wire: Wire) -> None:
    async def script(rt: Runtime):
        loops = []
        for n in range(20):
            rig.far.wire.append(wire)
            ask = Ask(call_id=f"c{n}")
            call = asyncio.ensure_future(
                rt.perform("book", {"day": f"day {n}"}, ask=ask, patience_s=500.0)
            )
            await asyncio.sleep(0)
            loops += [each for each in rt.driver.loops.values() if each not in loops]
            await call
        await asyncio.sleep(2 * LINGER_S)  # virtual time
        return loops, dict(rt.driver.loops)

    loops, left = rig.run(script, booking(rig.far))
    assert left == {}
    for loop in loops:
        assert not loop.memory.operations
        assert not loop.waiters
        assert not loop.asks
        assert not loop.inbox
        assert not loop.calls.running
        assert not loop.following.watches


def test_no_timer_outlives_its_caller(rig: Rig) -> None:
    """An hour of patience holds nothing in memory once the answer is there."""

    async def script(rt: Runtime):
        for n in range(50):
            await rt.perform("book", {"day": f"day {n}"}, patience_s=3_600.0)
        gc.collect()
        timed = rig.world.timeline._timed
        return [step for *_, step in timed if not step.cancelled() and step.when() > 1_000.0]

    assert rig.run(script, booking(rig.far)) == []


def test_many_calls_of_one_session_share_their_laps(rig: Rig) -> None:
    values = rig.run(lambda rt: book_all(rt, 300, 1), booking(rig.far))
    assert all(isinstance(value, Confirmed) for value in values)
    assert set(rig.states("s0")) == {State.CONFIRMED}
