"""A cancel is a message to the owner: what was sent is durably in doubt, and the cancel goes on."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from landed.core.key import Ask
from landed.core.operation import State
from landed.core.value import Confirmed, Unknown
from landed.runtime.opened import Settings
from landed.runtime.runtime import Runtime
from landed.testing.sim import CancelAt, World
from landed.tools.function import tool
from tests.runtime.rig import DROPPED, RESET, Rig, Wire, booking, never, unkeyed
from tests.runtime.stores import Fails, Hangs, SlowStore, TroubledStore
from tests.sampling import sampled

FRIDAY = {"day": "Fri"}
SLOW = Wire(replies_s=3.0)
WIRES = {"fine": Wire(), "slow": SLOW, "lost": DROPPED, "cut": RESET}
LET_GO_S = 5.0


def start(rt: Runtime, **more: Any) -> "asyncio.Task[Any]":
    return asyncio.ensure_future(rt.perform("book", FRIDAY, **more))


async def cancel(call: "asyncio.Task[Any]", *, times: int = 1) -> None:
    """Cancel, and again at each further turn of the loop, until the cancel has come through."""
    for _ in range(times):
        call.cancel()
        await asyncio.sleep(0)
    await asyncio.wait({call})
    assert call.cancelled()


async def seconds(rig: Rig, work: Coroutine[Any, Any, None]) -> float:
    """Return how much virtual time `work` takes."""
    begun = rig.world.timeline.now_s
    await work
    return rig.world.timeline.now_s - begun


# One cancel, and more.


@pytest.mark.req("S0-15", "S0-17")
@pytest.mark.parametrize("times", [1, 2, 25])
@pytest.mark.parametrize("store", [None, SlowStore])
def test_a_call_in_flight_is_durably_unknown_before_the_cancel_goes_on(
    rig: Rig, times: int, store: Callable[..., Any] | None
) -> None:
    rig.wrap = store or rig.wrap
    rig.far.wire.append(SLOW)

    async def script(rt: Runtime):
        call = asyncio.ensure_future(rt.perform("mail", {"to": "ana"}))
        await asyncio.sleep(1.0)  # virtual time
        took_s = await seconds(rig, cancel(call, times=times))
        (stored,) = await reader.load("op-a1")
        return took_s, stored.state

    reader = rig.base.open_again()
    took_s, state = rig.run(script, unkeyed(rig.far))
    assert state == State.UNKNOWN
    assert took_s < 1.0
    assert rig.events("op-a1")[:4] == ["made", "sent", "unwanted", "answer_lost"]


@pytest.mark.req("S0-15")
def test_it_says_that_it_may_still_land(rig: Rig) -> None:
    rig.far.wire.append(SLOW)

    async def script(rt: Runtime):
        call = asyncio.ensure_future(rt.perform("mail", {"to": "ana"}))
        await asyncio.sleep(1.0)  # virtual time
        await cancel(call)
        return await rt.status("op-a1")

    value = rig.run(script, unkeyed(rig.far))
    assert isinstance(value, Unknown)
    assert "stopped waiting" in value.text
    assert "cancelled" not in value.text


@pytest.mark.req("S0-22")
def test_no_longer_wanted_it_is_closed_and_never_sent_again(rig: Rig) -> None:
    rig.far.wire.append(DROPPED)

    async def script(rt: Runtime):
        call = start(rt)
        await asyncio.sleep(1.0)  # virtual time
        await cancel(call)
        return await rt.resolve("op-a1")

    value = rig.run(script, booking(rig.far))
    assert (type(value).__name__, rig.far.questions) == ("Failed", ["close"])
    assert rig.far.sends == ["op-a1"]


@pytest.mark.req("S0-24", "S0-22")
def test_a_request_that_arrives_after_the_close_is_refused(rig: Rig) -> None:
    rig.far.wire.append(Wire(arrives_s=4.0))

    async def script(rt: Runtime):
        call = start(rt)
        await asyncio.sleep(1.0)  # virtual time
        await cancel(call)
        await asyncio.sleep(60.0)  # virtual time

    rig.run(script, booking(rig.far))
    rig.world.settle()
    assert (rig.far.total, rig.states()) == (0, [State.FAILED])


def test_what_had_landed_before_the_cancel_is_confirmed(rig: Rig) -> None:
    rig.far.wire.append(SLOW)

    async def script(rt: Runtime):
        call = start(rt)
        await asyncio.sleep(1.0)  # virtual time
        await cancel(call)
        return await rt.resolve("op-a1")

    value = rig.run(script, booking(rig.far))
    assert isinstance(value, Confirmed)
    assert (rig.far.total, rig.far.questions) == (1, ["close"])


# Before anything was sent.


def test_while_it_waits_for_a_place_it_is_withdrawn(rig: Rig) -> None:
    rig.far.wire.append(SLOW)

    async def script(rt: Runtime):
        first, second = start(rt), asyncio.ensure_future(rt.perform("book", {"day": "Sat"}))
        await asyncio.sleep(1.0)  # virtual time
        await cancel(second)
        return await first

    assert isinstance(rig.run(script, booking(rig.far, concurrency=1)), Confirmed)
    assert rig.states() == [State.CONFIRMED, State.WITHDRAWN]
    assert rig.far.sends == ["op-a1"]


@pytest.mark.parametrize("times", [1, 2, 25])
def test_in_the_first_commit_nothing_is_sent(rig: Rig, times: int) -> None:
    rig.wrap = SlowStore

    async def script(rt: Runtime):
        call = start(rt)
        await asyncio.sleep(SlowStore.commit_s / 2)  # virtual time
        await cancel(call, times=times)
        await asyncio.sleep(60.0)  # virtual time

    rig.run(script, booking(rig.far))
    assert rig.far.sends == []
    assert rig.states() == [State.FAILED]
    assert rig.events("op-a1") == ["made", "sent", "unwanted", "never_sent"]


def test_between_two_tries_it_is_withdrawn(rig: Rig) -> None:
    rig.far.wire.append(Wire(unsent="connection refused"))

    async def script(rt: Runtime):
        call = start(rt)
        await asyncio.sleep(0.2)  # virtual time
        await cancel(call)
        await asyncio.sleep(60.0)  # virtual time

    rig.run(script, booking(rig.far))
    assert rig.states() == [State.WITHDRAWN]
    assert rig.far.sends == ["op-a1"]


# At every await.


def cancelled_at(suspensions: tuple[int, ...], wire: Wire) -> int:
    """Cancel `perform` at these of its suspensions; return how many it had."""
    with World() as world:
        rig = Rig(world, wrap=SlowStore)
        rig.far.wire.append(wire)
        at = CancelAt(*suspensions)

        async def script(rt: Runtime):
            call = asyncio.ensure_future(at.watch(rt.perform("book", FRIDAY)))
            await asyncio.wait({call})
            if at.seen >= suspensions[0]:
                assert call.cancelled()
            sent = bool(rig.far.sends)
            stored = await reader.load("op-a1")
            assert not sent or stored[0].state not in (State.RECORDED, State.SENT, State.RESENT)
            await asyncio.sleep(200.0)  # virtual time

        reader = rig.base.open_again()
        rig.run(script, booking(rig.far))
        world.settle()
        for operation in rig.operations():
            landed = operation.state is State.CONFIRMED
            assert operation.state in (State.CONFIRMED, State.FAILED, State.WITHDRAWN)
            assert rig.far.effects[operation.id] == landed
        return at.seen


@pytest.mark.req("S0-15", "S0-17")
@pytest.mark.fault("X12")
@pytest.mark.parametrize("again", [(), (1,), (2,), (1, 2, 3)], ids=str)
@pytest.mark.parametrize(
    "wire", [Wire(), SLOW, DROPPED, RESET], ids=["fine", "slow", "lost", "cut"]
)
def test_at_every_suspension(wire: Wire, again: tuple[int, ...]) -> None:
    suspension, seen = 0, 1
    while seen > suspension:
        suspension += 1
        seen = cancelled_at((suspension, *(suspension + one for one in again)), wire)
    assert suspension > 1


@pytest.mark.fault("X12")
@pytest.mark.parametrize(
    "wire", [Wire(), SLOW, DROPPED, RESET], ids=["fine", "slow", "lost", "cut"]
)
@pytest.mark.parametrize("first", sampled([0, 1], every=2))
def test_at_every_tenth_of_a_second(wire: Wire, first: int) -> None:
    for tenths in range(first, 60, 2):
        with World() as world:
            rig = Rig(world, wrap=SlowStore)
            rig.far.wire.append(wire)

            async def script(rt: Runtime, after_s: float = tenths / 10):
                call = start(rt)
                await asyncio.wait({call}, timeout=after_s)
                if not call.done():
                    await cancel(call)
                await asyncio.sleep(200.0)  # virtual time

            rig.run(script, booking(rig.far))
            world.settle()
            (state,) = rig.states()
            assert state in (State.CONFIRMED, State.FAILED, State.WITHDRAWN)
            assert rig.far.total == (state is State.CONFIRMED)


# The bound.


@pytest.mark.parametrize("event", ["made", "unwanted"])
@pytest.mark.parametrize("times", [1, 40])
def test_a_store_that_hangs_holds_nobody_longer_than_the_bound(
    rig: Rig, event: str, times: int
) -> None:
    rig.wrap = lambda store: TroubledStore(store, Hangs(event))
    rig.settings = Settings(let_go_s=LET_GO_S, drain_s=1.0)
    rig.far.wire.append(SLOW)

    async def script(rt: Runtime):
        call = start(rt)
        await asyncio.sleep(1.0)  # virtual time
        return await seconds(rig, cancel(call, times=times))

    assert rig.run(script, booking(rig.far)) == pytest.approx(LET_GO_S)


def test_a_store_that_fails_holds_nobody(rig: Rig) -> None:
    rig.wrap = lambda store: TroubledStore(store, Fails("unwanted", times=1))
    rig.far.wire.append(SLOW)

    async def script(rt: Runtime):
        call = start(rt)
        await asyncio.sleep(1.0)  # virtual time
        took_s = await seconds(rig, cancel(call))
        await asyncio.sleep(60.0)  # virtual time
        return took_s

    assert rig.run(script, booking(rig.far)) < 1.0
    assert rig.states() == [State.CONFIRMED]


# What the contract says about a change of mind.


@pytest.mark.req("S0-41")
def test_finish_lets_the_call_go_on_and_the_caller_go(rig: Rig) -> None:
    rig.far.wire.append(SLOW)

    async def script(rt: Runtime):
        call = start(rt)
        await asyncio.sleep(1.0)  # virtual time
        took_s = await seconds(rig, cancel(call))
        await asyncio.sleep(5.0)  # virtual time
        return took_s, await rt.status("op-a1")

    took_s, value = rig.run(script, booking(rig.far, on_interrupt="finish"))
    assert took_s == 0.0
    assert isinstance(value, Confirmed)
    assert rig.events("op-a1") == ["made", "sent", "unwanted", "acknowledged"]
    assert rig.far.questions == []


@pytest.mark.req("S0-33", "S0-41")
@pytest.mark.parametrize(("replies_s", "held_s"), [(2.0, 1.0), (9.0, 1.5)])
def test_wait_holds_the_caller_until_the_receipt_or_the_bound(
    rig: Rig, replies_s: float, held_s: float
) -> None:
    rig.far.wire.append(Wire(replies_s=replies_s))

    async def script(rt: Runtime):
        call = start(rt)
        await asyncio.sleep(1.0)  # virtual time
        return await seconds(rig, cancel(call))

    waits = booking(rig.far, on_interrupt="wait", wait_s=1.5)
    assert rig.run(script, waits) == pytest.approx(held_s)
    assert ("answer_lost" in rig.events("op-a1")) == (replies_s > 2.5)


@pytest.mark.req("S0-41", "S0-22")
def test_stop_and_resolve_finds_out_at_once(rig: Rig) -> None:
    rig.far.wire.append(SLOW)

    async def script(rt: Runtime):
        call = start(rt)
        await asyncio.sleep(1.0)  # virtual time
        await cancel(call)
        return await rt.resolve("op-a1"), rig.world.timeline.now_s

    value, at_s = rig.run(script, booking(rig.far, on_interrupt="stop_and_resolve"))
    assert isinstance(value, Confirmed)
    assert (at_s, rig.far.questions) == (pytest.approx(1.0), ["close"])


# Who else is there.


def test_one_of_two_who_wait_may_leave_and_the_other_gets_its_effect(rig: Rig) -> None:
    rig.far.wire.append(SLOW)

    async def script(rt: Runtime):
        one, two = (start(rt, ask=Ask(call_id="c1")) for _ in range(2))
        await asyncio.sleep(1.0)  # virtual time
        took_s = await seconds(rig, cancel(one))
        return took_s, await two

    took_s, value = rig.run(script, booking(rig.far))
    assert isinstance(value, Confirmed)
    assert took_s == 0.0
    assert "unwanted" not in rig.events("op-a1")


def test_when_the_last_of_them_leaves_it_is_no_longer_wanted(rig: Rig) -> None:
    rig.far.wire.append(DROPPED)

    async def script(rt: Runtime):
        calls = [start(rt, ask=Ask(call_id="c1")) for _ in range(3)]
        await asyncio.sleep(1.0)  # virtual time
        for call in calls:
            await cancel(call)
        await asyncio.sleep(60.0)  # virtual time

    rig.run(script, booking(rig.far))
    assert rig.events("op-a1").count("unwanted") == 1
    assert (rig.states(), rig.far.sends) == ([State.FAILED], ["op-a1"])


def test_who_waits_for_another_process_may_leave_at_once(rig: Rig) -> None:
    rig.far.wire.append(SLOW)
    mine = booking(rig.far)

    async def leave(rt: Runtime):
        call = start(rt, ask=Ask(call_id="c1"))
        await asyncio.sleep(1.0)  # virtual time
        return await seconds(rig, cancel(call))

    one = rig.start(lambda rt: rt.perform("book", FRIDAY, ask=Ask(call_id="c1")), mine)
    rig.world.pass_time(0.5)
    two = rig.start(leave, mine)
    rig.world.wait(one, two)
    assert two.result() < 0.1
    assert isinstance(one.result(), Confirmed)


def test_a_caller_who_left_is_told_nothing_later(rig: Rig) -> None:
    """What the history shows as told was really told to somebody."""
    rig.far.wire.append(RESET)

    async def script(rt: Runtime):
        call = asyncio.ensure_future(rt.perform("mail", {"to": "ana"}, patience_s=30.0))
        await asyncio.sleep(0)
        await cancel(call)
        await asyncio.sleep(100.0)  # virtual time

    rig.run(script, unkeyed(rig.far, assume_after_s=20.0))
    assert "told" not in rig.events()


def test_to_stop_waiting_for_resolve_changes_nothing(rig: Rig) -> None:
    rig.far.wire.append(SLOW)

    async def script(rt: Runtime):
        early = await rt.perform("book", FRIDAY, patience_s=0.5)
        look = asyncio.ensure_future(rt.resolve(early.operation))
        await asyncio.sleep(0.5)  # virtual time
        await cancel(look)
        await asyncio.sleep(10.0)  # virtual time
        return await rt.status(early.operation)

    assert isinstance(rig.run(script, booking(rig.far)), Confirmed)
    assert "unwanted" not in rig.events()


# Reads.


@tool(effect="none")
async def look(day: str) -> str:
    """Look, and get no answer."""
    await never()
    return day


@pytest.mark.req("S0-16")
@pytest.mark.parametrize("times", [1, 2, 25])
def test_a_read_that_nobody_waits_for_is_dropped_and_not_resolved(rig: Rig, times: int) -> None:
    async def script(rt: Runtime):
        call = asyncio.ensure_future(rt.perform("look", FRIDAY))
        await asyncio.sleep(1.0)  # virtual time
        return await seconds(rig, cancel(call, times=times))

    assert rig.run(script, look) == 0.0
    assert rig.events() == ["seen", "dropped"]
    assert rig.operations() == []


@pytest.mark.req("S0-17")
@pytest.mark.parametrize(("trouble", "held_s"), [(Fails, 0.0), (Hangs, LET_GO_S)])
def test_a_store_in_trouble_keeps_no_cancelled_read(
    rig: Rig, trouble: Callable[..., Any], held_s: float
) -> None:
    rig.wrap = lambda store: TroubledStore(store, trouble("dropped"))
    rig.settings = Settings(let_go_s=LET_GO_S)

    async def script(rt: Runtime):
        call = asyncio.ensure_future(rt.perform("look", FRIDAY))
        await asyncio.sleep(1.0)  # virtual time
        return await seconds(rig, cancel(call))

    assert rig.run(script, look) == pytest.approx(held_s)
