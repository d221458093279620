"""The same ask is the same call: at once, later, after a crash, and from another process."""

import asyncio
from dataclasses import replace

import pytest

from landed.core.errors import ProposalError
from landed.core.key import Ask
from landed.core.operation import State
from landed.core.value import Blocked, Confirmed, Unknown
from landed.runtime.runtime import Runtime
from tests.runtime.rig import REPLY_LOST, RESET, Rig, Wire, booking, no_word, unkeyed

FRIDAY = {"day": "Fri"}
ASK = Ask(input="in-1", call_id="c1")


async def ask_friday(rt: Runtime):
    return await rt.perform("book", FRIDAY, ask=ASK)


@pytest.mark.req("S1-29")
@pytest.mark.field("A3")
@pytest.mark.fault("X19")
def test_ten_at_once_are_one_effect_and_nine_replays(rig: Rig) -> None:
    async def script(rt: Runtime):
        return await asyncio.gather(*(ask_friday(rt) for _ in range(10)))

    rig.far.wire.append(Wire(replies_s=1.0))
    values = rig.run(script, booking(rig.far))
    assert {value.operation for value in values} == {"op-a1"}
    assert all(isinstance(value, Confirmed) for value in values)
    assert [value.replayed for value in values].count(True) == 9
    assert (rig.far.total, len(rig.far.sends)) == (1, 1)


def test_asked_again_while_the_first_is_being_recorded_it_joins(rig: Rig) -> None:
    """The second call comes in between the first one's proposal and its commit."""

    async def script(rt: Runtime):
        first = asyncio.ensure_future(ask_friday(rt))
        await asyncio.sleep(0)
        return await asyncio.gather(first, ask_friday(rt), rt.perform("book", {"day": "Sat"}))

    first, second, other = rig.run(script, booking(rig.far))
    assert (first.operation, second.operation) == ("op-a1", "op-a1")
    assert other.operation != "op-a1"
    assert rig.far.total == 2


@pytest.mark.req("S4-51")
def test_asked_again_later_it_is_the_same_answer(rig: Rig) -> None:
    async def script(rt: Runtime):
        return await ask_friday(rt), await ask_friday(rt)

    first, second = rig.run(script, booking(rig.far))
    assert isinstance(first, Confirmed)
    assert second == replace(first, replayed=True)
    assert rig.far.sends == ["op-a1"]


@pytest.mark.req("S0-32")
@pytest.mark.field("A3")
def test_asked_again_by_a_later_process_it_is_the_same_answer(rig: Rig) -> None:
    tool = booking(rig.far)
    first = rig.run(ask_friday, tool)
    second = rig.run(ask_friday, tool)
    assert isinstance(second, Confirmed)
    assert (second.operation, second.replayed) == (first.operation, True)
    assert rig.far.sends == ["op-a1"]


@pytest.mark.req("S1-29")
@pytest.mark.fault("X19")
def test_asked_by_another_process_meanwhile_it_waits_for_the_first_ones(rig: Rig) -> None:
    tool = booking(rig.far, deadline_s=20.0)
    rig.far.wire.append(Wire(replies_s=8.0))

    async def script(rt: Runtime):
        return await ask_friday(rt), rig.world.timeline.now_s

    one = rig.start(script, tool)
    rig.world.pass_time(1.0)
    two = rig.start(script, tool)
    rig.world.wait(one, two)
    (first, _), (second, at_s) = one.result(), two.result()
    assert isinstance(first, Confirmed)
    assert isinstance(second, Confirmed)
    assert (first.operation, second.operation) == ("op-a1", "op-a1")
    assert (first.replayed, second.replayed) == (False, True)
    assert at_s < 10.0
    assert rig.far.total == 1


def test_patience_holds_for_what_another_process_does(rig: Rig) -> None:
    tool = booking(rig.far, deadline_s=60.0)
    rig.far.wire.append(Wire(replies_s=40.0))

    async def impatient(rt: Runtime):
        value = await rt.perform("book", FRIDAY, ask=ASK, patience_s=3.0)
        return value, rig.world.timeline.now_s

    one = rig.start(ask_friday, tool)
    rig.world.pass_time(1.0)
    two = rig.start(impatient, tool)
    rig.world.wait(one, two)
    value, at_s = two.result()
    assert isinstance(value, Unknown)
    assert (value.operation, at_s) == ("op-a1", pytest.approx(4.0))
    assert isinstance(one.result(), Confirmed)


def test_who_waits_for_another_process_goes_on_when_that_one_dies(rig: Rig) -> None:
    tool = booking(rig.far, deadline_s=60.0)
    rig.far.wire.append(Wire(replies_s=40.0))

    async def wait_long(rt: Runtime):
        return await rt.perform("book", FRIDAY, ask=ASK, patience_s=100.0)

    one = rig.start(wait_long, tool)
    rig.world.pass_time(1.0)
    two = rig.start(wait_long, tool)
    rig.world.pass_time(5.0)
    rig.kill(one)
    rig.world.wait(two)
    value = two.result()
    assert isinstance(value, Confirmed)
    assert (value.operation, value.replayed) == ("op-a1", True)
    assert rig.far.effects == {"op-a1": 1}


def test_what_was_taken_over_meanwhile_is_told_as_it_stands_then(rig: Rig) -> None:
    """Not as the dead process left it: that one had sent it, and no more was known."""
    rig.far.wire.append(REPLY_LOST)
    tool = booking(rig.far, deadline_s=60.0, lookup=no_word)

    async def wait_long(rt: Runtime):
        return await rt.perform("book", FRIDAY, ask=ASK, patience_s=12.5)

    one = rig.start(wait_long, tool)
    rig.world.pass_time(1.0)
    two = rig.start(wait_long, tool)
    rig.world.pass_time(1.0)
    rig.kill(one)
    rig.world.wait(two)
    value = two.result()
    assert isinstance(value, Unknown)
    assert "unknown" in value.text
    assert "told" in rig.events("op-a1")


def test_with_other_arguments_it_is_a_proposal_error(rig: Rig) -> None:
    async def script(rt: Runtime):
        await ask_friday(rt)
        with pytest.raises(ProposalError) as raised:
            await rt.perform("book", {"day": "Sat"}, ask=ASK)
        return str(raised.value)

    text = rig.run(script, booking(rig.far))
    assert "c1" in text
    assert "op-a1" in text
    assert rig.far.sends == ["op-a1"]


def test_with_other_arguments_it_is_a_proposal_error_while_the_first_is_out(rig: Rig) -> None:
    async def script(rt: Runtime):
        first = asyncio.ensure_future(ask_friday(rt))
        await asyncio.sleep(0)
        with pytest.raises(ProposalError):
            await rt.perform("book", {"day": "Sat"}, ask=ASK)
        return await first

    assert isinstance(rig.run(script, booking(rig.far)), Confirmed)
    assert len(rig.operations()) == 1


def test_with_other_arguments_it_is_a_proposal_error_in_a_later_process(rig: Rig) -> None:
    async def other(rt: Runtime):
        with pytest.raises(ProposalError):
            await rt.perform("book", {"day": "Sat"}, ask=ASK)
        return await rt.status("op-a1")

    tool = booking(rig.far)
    rig.run(ask_friday, tool)
    assert isinstance(rig.run(other, tool), Confirmed)
    assert rig.far.sends == ["op-a1"]


@pytest.mark.parametrize(
    "another",
    [
        Ask(input="in-1", call_id="c2"),
        Ask(input="in-2", call_id="c1"),
        Ask(input="in-1", call_id="c1", session="s2"),
        Ask(input="in-1", call_id="c1", tenant="t2"),
    ],
)
def test_another_ask_is_another_call(rig: Rig, another: Ask) -> None:
    async def script(rt: Runtime):
        return await ask_friday(rt), await rt.perform("book", FRIDAY, ask=another)

    first, second = rig.run(script, booking(rig.far))
    assert isinstance(second, Confirmed)
    assert first.operation != second.operation
    assert rig.far.total == 2


@pytest.mark.field("A3")
def test_two_deliberate_identical_charges_are_two_effects(rig: Rig) -> None:
    """Nothing is swallowed because it looks like what went before."""

    async def script(rt: Runtime):
        return [await rt.perform("mail", {"to": "ana"}) for _ in range(2)]

    first, second = rig.run(script, unkeyed(rig.far))
    assert isinstance(first, Confirmed)
    assert isinstance(second, Confirmed)
    assert rig.far.effects == {"op-a1": 1, "op-a2": 1}


def test_a_blocked_ask_tries_again_when_it_comes_again(rig: Rig) -> None:
    rig.far.wire.append(REPLY_LOST)
    rig.far.silent_questions = 1

    async def script(rt: Runtime):
        first = asyncio.ensure_future(rt.perform("book", FRIDAY))
        await asyncio.sleep(1.0)  # virtual time
        blocked = await ask_friday(rt)
        await first
        before = len(rig.far.sends)
        return blocked, before, await ask_friday(rt)

    blocked, before, again = rig.run(script, booking(rig.far))
    assert isinstance(blocked, Blocked)
    assert before == 1
    assert isinstance(again, Confirmed)
    assert (blocked.operation, again.operation) == ("op-a2", "op-a2")


def test_a_blocked_call_never_fires_by_itself(rig: Rig) -> None:
    async def script(rt: Runtime):
        first = asyncio.ensure_future(rt.perform("book", FRIDAY))
        await asyncio.sleep(1.0)  # virtual time
        blocked = await rt.perform("book", FRIDAY)
        await first
        await asyncio.sleep(60.0)  # virtual time
        return blocked

    rig.far.wire.append(REPLY_LOST)
    assert isinstance(rig.run(script, booking(rig.far)), Blocked)
    assert rig.far.total == 1
    assert rig.states() == [State.CONFIRMED, State.WITHDRAWN]


def test_many_asks_of_an_earlier_process_are_all_joined(rig: Rig) -> None:
    """A durable program that runs its script again asks for everything at once."""
    count = 150

    async def script(rt: Runtime):
        asks = [(Ask(call_id=f"c{n}"), {"day": f"day {n}"}) for n in range(count)]
        return await asyncio.gather(*(rt.perform("book", day, ask=ask) for ask, day in asks))

    tool = booking(rig.far)
    first, second = rig.run(script, tool), rig.run(script, tool)
    assert [one.operation for one in first] == [one.operation for one in second]
    assert all(value.replayed for value in second)
    assert rig.far.total == count


def test_a_caller_that_was_told_nothing_final_may_ask_again_for_more(rig: Rig) -> None:
    async def script(rt: Runtime):
        early = await rt.perform("book", FRIDAY, ask=ASK, patience_s=1.0)
        return early, await ask_friday(rt)

    rig.far.wire.append(Wire(replies_s=3.0))
    early, later = rig.run(script, booking(rig.far))
    assert isinstance(early, Unknown)
    assert isinstance(later, Confirmed)
    assert rig.far.sends == ["op-a1"]


def test_an_ask_of_an_unknown_is_answered_with_the_unknown(rig: Rig) -> None:
    rig.far.wire.append(RESET)

    async def script(rt: Runtime):
        ask = Ask(call_id="c1")
        return [await rt.perform("mail", {"to": "ana"}, ask=ask) for _ in range(2)]

    first, second = rig.run(script, unkeyed(rig.far))
    assert isinstance(first, Unknown)
    assert isinstance(second, Unknown)
    assert (second.operation, second.replayed) == (first.operation, True)
    assert rig.far.sends == ["op-a1"]
