"""Plans between two processes, and words of a tool that a model must not read."""

import asyncio

import pytest

from landed.core.plan import PlanState, Wanted
from landed.core.value import Confirmed, Unknown
from landed.runtime.runtime import Runtime
from landed.tools.function import tool
from tests.runtime.rig import Rig, Wire, booking

FRIDAY = Wanted(tool="book", arguments={"day": "Fri"})


async def propose(rt: Runtime):
    heard = await rt.receive("book Friday", session="s1", delivery="d1")
    return await rt.propose([FRIDAY], ask=heard.ask("c1"))


@pytest.mark.req("S1-29", "S1-31")
def test_two_processes_that_propose_the_same_ask_carry_it_out_once(rig: Rig) -> None:
    rig.far.wire.append(Wire(replies_s=5.0))
    tools = booking(rig.far, deadline_s=30.0)
    one = rig.start(propose, tools)
    rig.world.pass_time(1.0)
    two = rig.start(propose, tools)
    rig.world.wait(one, two)
    first, second = one.result(), two.result()
    assert (first.state, second.state) == (PlanState.DONE, PlanState.DONE)
    assert (first.replayed, second.replayed) == (False, True)
    assert first.operations == second.operations
    assert len(rig.far.sends) == 1


def test_who_follows_the_plan_of_another_process_is_told_when_the_runtime_ends(rig: Rig) -> None:
    rig.far.wire.append(Wire(replies_s=20.0))
    tools = booking(rig.far, deadline_s=30.0)
    rig.start(propose, tools)
    rig.world.pass_time(1.0)

    async def leave(rt: Runtime):
        waiting = asyncio.ensure_future(propose(rt))
        await asyncio.sleep(2.0)  # virtual time
        await rt.drain()
        return await asyncio.wait_for(asyncio.shield(waiting), 1.0)

    two = rig.start(leave, tools)
    rig.world.wait(two)
    assert two.result().state is PlanState.RUNNING


@pytest.mark.req("S4-42", "S4-51")
@pytest.mark.field("A1")
def test_the_words_of_an_error_are_evidence_and_not_what_a_model_reads(rig: Rig) -> None:
    @tool(effect="reversible")
    async def refund(amount: int) -> None:
        raise TimeoutError("request failed, please try again")

    async def script(rt: Runtime):
        return await rt.perform(refund, {"amount": 480}, patience_s=1.0)

    value = rig.run(script, refund)
    assert isinstance(value, Unknown)
    assert "TimeoutError" in value.text
    assert "try again" not in value.text
    assert "failed" not in value.text
    (kept,) = rig.operations()
    assert "please try again" in kept.evidence[-1].says


def test_words_of_a_contract_that_do_not_fit_hide_nothing(rig: Rig) -> None:
    @tool(effect="reversible", says={"en": {"confirmed": "booked for {price}"}})
    async def book(day: str) -> dict[str, str]:
        return {"id": "R1"}

    async def script(rt: Runtime):
        return await rt.perform(book, {"day": "Fri"})

    value = rig.run(script, book)
    assert isinstance(value, Confirmed)
    assert (value.text, value.result) == ("Booked for ?", {"id": "R1"})


@pytest.mark.req("S0-55", "S0-71")
@pytest.mark.field("B9", "D8")
def test_an_input_that_was_acknowledged_and_not_acted_on_is_found_after_a_crash(rig: Rig) -> None:
    async def hear(rt: Runtime):
        await rt.receive("book Friday", session="s1", delivery="d1")
        await asyncio.sleep(60.0)  # virtual time

    async def take_up(rt: Runtime):
        (heard,) = await rt.unacted("s1")
        done = await rt.propose([FRIDAY], ask=heard.ask("c1"))
        return heard, done, await rt.unacted("s1")

    tools = booking(rig.far)
    first = rig.start(hear, tools)
    rig.world.pass_time(1.0)
    rig.kill(first)
    heard, done, left = rig.run(take_up, tools)
    assert (heard.text, heard.delivery) == ("book Friday", "d1")
    assert (done.turn, done.state) == (heard.turn, PlanState.DONE)
    assert left == ()
    assert len(rig.far.sends) == 1
