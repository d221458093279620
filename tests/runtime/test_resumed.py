"""A session that is resumed runs its agent again from the start; the world does not notice."""

import asyncio
from typing import Any

import pytest

from landed.core.key import Ask
from landed.core.operation import State
from landed.core.outcome import LookOutcome
from landed.core.plan import PlanState
from landed.core.report import Report
from landed.core.session import Input
from landed.core.tool import Call
from landed.core.value import Confirmed, PlanValue, Value
from landed.runtime.runtime import Runtime
from landed.testing.sim import current_process
from landed.tools.function import FunctionTool, tool
from tests.runtime.plan_rig import (
    ANA,
    act,
    at_of,
    calls,
    landed_in_order,
    office,
    only_plan,
    propose,
)
from tests.runtime.rig import DROPPED, Rig, Wire, booking

FRIDAY = {"day": "Fri"}
TIMES = range(1, 6)


async def hear(rt: Runtime) -> Input:
    return await rt.receive("book Friday, write to ben", principal=ANA, delivery="d1")


@pytest.mark.field("B2")
@pytest.mark.parametrize("times", TIMES)
def test_what_was_done_before_a_pause_is_done_once_however_often_it_is_resumed(
    rig: Rig, times: int
) -> None:
    """The agent does something and asks; each process that resumes it starts at its beginning."""
    tools = (booking(rig.far), act(rig.far, "write", risk="confirm"))

    async def agent(rt: Runtime) -> tuple[Value, PlanValue]:
        heard = await hear(rt)
        booked = await rt.perform("book", FRIDAY, ask=heard.ask("book"))
        return booked, await rt.propose(calls("write", "ben"), ask=heard.ask("write"))

    async def killed(rt: Runtime) -> None:
        await agent(rt)
        current_process().kill()

    for _ in range(times):
        process = rig.start(killed, *tools)
        rig.world.pass_time(2.0)
        assert not process.alive
        rig.base.worker_died(process.name)

    async def answered(rt: Runtime) -> tuple[Value, PlanValue, PlanValue]:
        booked, asked = await agent(rt)
        done = await rt.approve(asked.plan, principal=ANA)
        assert done is not None
        return booked, asked, done

    booked, asked, done = rig.run(answered, *tools)
    assert isinstance(booked, Confirmed)
    assert booked.replayed
    assert (asked.state, done.state) == (PlanState.PROPOSED, PlanState.DONE)
    assert landed_in_order(rig) == ["Fri", "write ben"]
    assert rig.events().count("received") == 1


@pytest.mark.field("B3")
def test_of_a_batch_in_which_one_call_asks_the_others_are_not_made_again(rig: Rig) -> None:
    tools = (booking(rig.far), act(rig.far, "write", risk="confirm"))

    async def batch(rt: Runtime) -> tuple[Value, PlanValue]:
        heard = await hear(rt)
        return await asyncio.gather(
            rt.perform("book", FRIDAY, ask=heard.ask("c1")),
            rt.propose(calls("write", "ben"), ask=heard.ask("c2")),
        )

    async def answer(rt: Runtime) -> tuple[Value, PlanValue]:
        _, asked = await batch(rt)
        await rt.approve(asked.plan, principal=ANA)
        return await batch(rt)

    rig.run(batch, *tools)
    booked, written = rig.run(answer, *tools)
    assert isinstance(booked, Confirmed)
    assert written.state is PlanState.DONE
    assert landed_in_order(rig) == ["Fri", "write ben"]
    assert rig.far.sends == [booked.operation, written.steps[0].operation]


@pytest.mark.field("B5")
@pytest.mark.parametrize("reply", ["none", "yes"])
def test_a_stop_that_is_the_first_input_after_a_crash_wins_over_recovery(
    rig: Rig, reply: str
) -> None:
    """What was out is found out, and nothing after it is begun."""
    rig.far.wire.append(Wire(replies_s=50.0, reply=reply))

    async def slowly(call: Call) -> LookOutcome:
        await asyncio.sleep(1.0)  # virtual time
        return await rig.far.lookup(call)

    tools = office(rig.far, lookup=slowly, on_interrupt="finish", deadline_s=100.0)
    process = rig.start(propose, *tools)
    rig.world.pass_time(1.0)
    rig.kill(process)

    async def resumed(rt: Runtime) -> tuple[PlanValue, PlanValue, list[str]]:
        assert rt.recovered == 1
        await rt.receive("stop", principal=ANA)
        stopped = await rt.stop(await only_plan(rt), principal=ANA)
        at_once = list(rig.far.sends)
        await asyncio.sleep(600.0)  # virtual time
        return stopped, await rt.plan(stopped.plan), at_once

    stopped, later, at_once = rig.run(resumed, *tools)
    assert stopped.state is later.state is PlanState.STOPPED
    assert at_of(later) == ["done", *["waiting"] * 3]
    assert landed_in_order(rig) == ["draft logo"]
    assert rig.far.sends == at_once == [later.steps[0].operation]


@pytest.mark.field("B5")
def test_a_stop_that_came_while_nobody_worked_is_what_the_next_worker_finds(rig: Rig) -> None:
    """It may come to a process that has no tools: the mark is in the store before anybody looks."""
    rig.far.wire.append(Wire(replies_s=50.0))
    tools = office(rig.far, on_interrupt="finish", deadline_s=100.0)
    process = rig.start(propose, *tools)
    rig.world.pass_time(1.0)
    process.kill()  # Nobody can tell yet.

    async def stop(rt: Runtime) -> PlanValue:
        return await rt.stop(await only_plan(rt), principal=ANA, patience_s=0.0)

    assert rig.run(stop, *tools).state is PlanState.STOPPING
    rig.base.worker_died(process.name)

    async def look(rt: Runtime) -> PlanValue:
        await asyncio.sleep(600.0)  # virtual time
        return await rt.plan(await only_plan(rt))

    later = rig.run(look, *tools)
    assert (later.state, at_of(later)) == (PlanState.STOPPED, ["done", *["waiting"] * 3])
    assert landed_in_order(rig) == ["draft logo"]


@pytest.mark.field("B7")
def test_our_own_verbs_inside_a_step_that_is_sent_again_write_once(rig: Rig) -> None:
    """What a step asks for is named by its operation and a number: again it joins what it made."""
    times: list[int] = []
    tools: list[FunctionTool[Any, Any]] = [act(rig.far, "write")]

    @tool(
        effect="irreversible",
        keyed="key",
        compares_payload=True,
        lookup=rig.far.lookup,
        deadline_s=5.0,
    )
    async def host(day: str, key: str, call: Call) -> object:
        """Invite, then book."""
        times.append(call.attempt)
        rt = opened[0]
        own = f"of/{call.operation}"
        await rt.receive("a note of its own", session=own, delivery=f"{call.operation}/1")
        again = Ask(session=own, call_id=f"{call.operation}/2")
        await rt.perform("write", {"what": "ben"}, ask=again, patience_s=2.0)
        return await rig.far.take(call, day)

    opened: list[Runtime] = []

    async def script(rt: Runtime) -> Value:
        opened.append(rt)
        return await rt.perform("host", {"day": "Fri"}, patience_s=100.0)

    rig.far.wire.extend([Wire(), DROPPED])
    value = rig.run(script, host, *tools)
    assert isinstance(value, Confirmed)
    assert times == [1, 2]
    assert landed_in_order(rig) == ["write ben", "Fri"]
    assert rig.events().count("received") == 1
    assert rig.states(f"of/{value.operation}") == [State.CONFIRMED]


@pytest.mark.field("B11")
def test_after_a_crash_the_person_and_the_model_are_told_the_same(rig: Rig) -> None:
    rig.far.wire += [Wire(), Wire(), Wire(reply="none")]
    tools = office(rig.far, close=None, deadline_s=5.0)
    process = rig.start(propose, *tools)
    rig.world.pass_time(1.0)
    assert [state.value for state in rig.states()] == ["confirmed", "confirmed", "sent"]
    rig.kill(process)
    rig.far.silent_questions = 10**6

    async def render(rt: Runtime) -> tuple[list[str], Report]:
        await asyncio.sleep(10.0)  # virtual time
        plan = await rt.plan(await only_plan(rt))
        shown = [item.text for item in await rt.history()]
        (record,) = await rt.driver.store.load(plan.plan)
        return shown, await rt.report(record.frozen["turn"])  # type: ignore[arg-type]

    for _ in range(2):  # Also once more: rendering changes nothing.
        shown, report = rig.run(render, *tools)
        model, person = "\n".join(shown), report.text
        for fact in ("draft(what=logo)", "R1", "issue(what=R1)", "R2", "mail(what=R2)"):
            assert fact in model
            assert fact in person
        for told in (model, person):
            assert "Outcome unknown" in told
    assert rig.far.total == 3
