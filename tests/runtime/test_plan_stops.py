"""Plans are stopped halfway: from any process, by who may, and what is out is told as it is."""

import asyncio
from collections.abc import Callable

import pytest

from landed.core.changes import Kind
from landed.core.errors import ProposalError
from landed.core.operation import State
from landed.core.outcome import Acknowledged
from landed.core.plan import PlanState, Wanted
from landed.core.tool import Call
from landed.core.value import PlanValue
from landed.runtime.runtime import Runtime
from landed.tools.function import tool
from tests.runtime.plan_rig import (
    ANA,
    Rights,
    at_of,
    calls,
    give,
    landed_in_order,
    office,
    propose,
)
from tests.runtime.rig import FINE, Rig, Wire, no_word

SLOW = Wire(replies_s=10.0)
LONG = {"deadline_s": 100.0}


def plan_of(rig: Rig, session: str = "main") -> str:
    """The plan that the operations of a session belong to."""
    (plan,) = {one.plan for one in rig.operations(session)}
    return plan


async def running_plan(rt: Runtime) -> str:
    """The same, as code of a process finds it: by what the ask of the request holds."""
    held = await rt.driver.store.session_records(tenant="default", session="main")
    return next(record.id for record in held if record.kind is Kind.PLAN)


async def journal(rt: Runtime) -> list[str]:
    """Every event so far."""
    return [entry.event for entry in await rt.driver.store.journal()]


def stopping(rig: Rig, **asked: object) -> "Callable[[Runtime], object]":
    async def stop(rt: Runtime) -> PlanValue:
        return await rt.stop(await running_plan(rt), principal=ANA, **asked)

    return stop


@pytest.mark.req("S1-51", "S1-52", "S1-53", "K2")
@pytest.mark.field("D3", "D4")
def test_a_stop_from_another_process_holds_before_the_next_step(rig: Rig) -> None:
    rig.far.wire += [Wire(replies_s=10.0)]
    tools = office(rig.far, on_interrupt="finish", **LONG)
    runs = rig.start(propose, *tools)
    rig.world.pass_time(1.0)
    plan = plan_of(rig)

    async def stop(rt: Runtime) -> tuple[PlanValue, PlanValue]:
        at_once = await rt.stop(plan, principal=ANA, patience_s=1.0)
        return at_once, await rt.stop(plan, principal=ANA)

    stops = rig.start(stop, *tools)
    rig.world.wait(runs, stops)
    rig.check()
    at_once, later = stops.result()

    assert (at_once.state, at_of(at_once)) == (PlanState.STOPPING, ["out", *["waiting"] * 3])
    for value in (later, runs.result()):
        assert (value.state, at_of(value)) == (PlanState.STOPPED, ["done", *["waiting"] * 3])
    assert "Stopped: 1 of 4 done." in later.text
    assert landed_in_order(rig) == ["draft logo"]


@pytest.mark.req("S1-53", "K2")
def test_a_stop_between_two_steps_here_lets_the_one_in_flight_finish(rig: Rig) -> None:
    rig.far.wire += [FINE, Wire(replies_s=10.0)]

    async def script(rt: Runtime) -> tuple[PlanValue, PlanValue]:
        running = asyncio.ensure_future(propose(rt))
        await asyncio.sleep(1.0)  # virtual time
        stopped = await rt.stop(await running_plan(rt), principal=ANA)
        return stopped, await running

    tools = office(rig.far, on_interrupt="finish", **LONG)
    stopped, proposed = rig.run(script, *tools)
    assert (stopped.state, stopped.text) == (proposed.state, proposed.text)
    assert at_of(stopped) == ["done", "done", "waiting", "waiting"]
    assert landed_in_order(rig) == ["draft logo", "issue R1"]


@pytest.mark.req("K2", "K20")
@pytest.mark.parametrize(("waits_s", "ends_s"), [(20.0, 10.0), (3.0, 4.0)])
def test_a_stop_waits_for_the_step_in_flight_as_long_as_its_contract_says(
    rig: Rig, waits_s: float, ends_s: float
) -> None:
    rig.far.wire += [Wire(replies_s=10.0)]

    async def script(rt: Runtime) -> tuple[PlanValue, float]:
        running = asyncio.ensure_future(propose(rt))
        await asyncio.sleep(1.0)  # virtual time
        value = await rt.stop(await running_plan(rt), principal=ANA)
        await running
        return value, rig.world.timeline.now_s

    tools = office(rig.far, on_interrupt="wait", wait_s=waits_s, **LONG)
    value, now_s = rig.run(script, *tools)
    assert value.state is PlanState.STOPPED
    assert now_s == pytest.approx(ends_s, abs=0.5)
    assert at_of(value) == ["done", "waiting", "waiting", "waiting"]


@pytest.mark.req("K2", "K20")
def test_a_hard_stop_waits_for_nobody_and_leaves_the_step_in_doubt(rig: Rig) -> None:
    rig.far.wire += [Wire(replies_s=10.0)]

    async def script(rt: Runtime) -> tuple[PlanValue, str, PlanValue]:
        running = asyncio.ensure_future(propose(rt))
        await asyncio.sleep(1.0)  # virtual time
        value = await rt.stop(await running_plan(rt), principal=ANA, hard=True, patience_s=0.5)
        told = value.to_model
        await running
        await asyncio.sleep(60.0)  # virtual time
        return value, told, await rt.plan(value.plan)

    tools = office(rig.far, on_interrupt="finish", lookup=no_word, close=None, **LONG)
    value, told, later = rig.run(script, *tools)
    assert (value.state, at_of(value)) == (PlanState.STOPPING, ["out", *["waiting"] * 3])
    assert value.text.startswith("Outcome unknown: ")
    assert "failed" not in f"{value.text} {told}"
    events = rig.events(rig.operation().id)
    assert events[:4] == ["made", "sent", "unwanted", "answer_lost"]
    assert later.state is PlanState.STOPPING
    assert len(rig.far.sends) == 1


@pytest.mark.req("S1-56")
@pytest.mark.fault("X14")
def test_stopping_twice_or_after_the_end_writes_nothing(rig: Rig) -> None:
    rig.far.wire += [Wire(replies_s=10.0)]

    async def script(rt: Runtime) -> tuple[list[PlanValue], list[int]]:
        running = asyncio.ensure_future(propose(rt))
        await asyncio.sleep(1.0)  # virtual time
        plan = await running_plan(rt)
        await rt.stop(plan, principal=ANA, patience_s=1.0)
        counts = [len(await journal(rt))]
        values = [await rt.stop(plan, principal=ANA, patience_s=1.0)]
        counts.append(len(await journal(rt)))
        await running
        counts.append(len(await journal(rt)))
        values.append(await rt.stop(plan, principal=ANA))
        values.append(await rt.stop(plan, principal=ANA, hard=True))
        counts.append(len(await journal(rt)))
        return values, counts

    tools = office(rig.far, on_interrupt="finish", **LONG)
    values, counts = rig.run(script, *tools)
    assert [value.state for value in values] == [
        PlanState.STOPPING,
        PlanState.STOPPED,
        PlanState.STOPPED,
    ]
    assert counts[0] == counts[1]
    assert counts[2] == counts[3]


@pytest.mark.req("S1-56")
@pytest.mark.fault("X14")
def test_stopping_a_plan_that_is_done_changes_nothing_and_says_how_it_stands(rig: Rig) -> None:
    async def script(rt: Runtime) -> tuple[PlanValue, list[PlanValue]]:
        done = await propose(rt)
        events = await journal(rt)
        stopped = [await rt.stop(done.plan, principal=ANA, hard=hard) for hard in (False, True)]
        assert await journal(rt) == events
        return done, stopped

    done, stopped = rig.run(script, *office(rig.far))
    for value in stopped:
        assert (value.state, value.text, value.steps) == (done.state, done.text, done.steps)


@pytest.mark.req("S1-55")
def test_only_who_started_a_plan_or_administers_may_stop_it(rig: Rig) -> None:
    rig.far.wire += [Wire(replies_s=10.0)]

    async def script(rt: Runtime) -> tuple[str, str, PlanValue]:
        give(rt, Rights(chiefs=("chief",)))
        running = asyncio.ensure_future(propose(rt))
        await asyncio.sleep(1.0)  # virtual time
        plan = await running_plan(rt)
        with pytest.raises(ProposalError) as refused:
            await rt.stop(plan, principal="eve")
        with pytest.raises(ProposalError) as unknown:
            await rt.stop("plan-none", principal="eve")
        value = await rt.stop(plan, principal="chief")
        await running
        return str(refused.value).replace(plan, "…"), str(unknown.value), value

    tools = office(rig.far, on_interrupt="finish", **LONG)
    refused, unknown, value = rig.run(script, *tools)
    assert refused == unknown.replace("plan-none", "…")
    assert value.state is PlanState.STOPPED


@pytest.mark.req("S1-57")
def test_a_model_is_told_of_the_stop_and_the_same_steps_again_join_what_was_stopped(
    rig: Rig,
) -> None:
    rig.far.wire += [Wire(replies_s=10.0)]

    async def script(rt: Runtime) -> tuple[PlanValue, list[str], PlanValue]:
        running = asyncio.ensure_future(propose(rt))
        await asyncio.sleep(1.0)  # virtual time
        await rt.stop(await running_plan(rt), principal=ANA)
        stopped = await running
        shown = [item.text for item in await rt.history()]
        return stopped, shown, await propose(rt)

    tools = office(rig.far, on_interrupt="finish", **LONG)
    stopped, shown, again = rig.run(script, *tools)
    told = next(text for text in shown if "The person stopped the plan: 1 of 4 done" in text)
    for part in ("Not done: ", "Do not do it on your own"):
        assert part in told
    assert (again.plan, again.state, again.replayed) == (stopped.plan, PlanState.STOPPED, True)
    assert len(rig.far.sends) == 1


# The stop token.


@pytest.mark.req("K17", "K20")
def test_a_tool_that_takes_the_stop_token_ends_early_and_is_told_as_partly_run(rig: Rig) -> None:
    @tool(effect="irreversible", stops_midway=True, on_interrupt="finish", deadline_s=100.0)
    async def copy(files: int, call: Call) -> object:
        assert call.stop is not None
        assert not call.stop.is_cancelled()
        await call.stop.wait()
        assert call.stop.is_cancelled()
        return Acknowledged(result={"id": "C1", "copied": 3}, complete=False)

    async def script(rt: Runtime) -> tuple[PlanValue, list[str]]:
        running = asyncio.ensure_future(
            propose(rt, (Wanted(tool="copy", arguments={"files": 9}), *calls("draft", "logo")))
        )
        await asyncio.sleep(1.0)  # virtual time
        await rt.stop(await running_plan(rt), principal=ANA)
        value = await running
        return value, [item.text for item in await rt.history()]

    value, shown = rig.run(script, copy, *office(rig.far))
    operation = rig.operation()
    assert (operation.state, operation.complete) == (State.CONFIRMED, False)
    assert value.state is PlanState.STOPPED
    ended, stopped = shown[-2:]
    assert "it may have run in part" in ended
    assert "The person stopped the plan: 1 of 2 done" in stopped
    assert "it may have run in part" in stopped
    assert "it may have run in part" in value.text
    assert rig.far.sends == []


@pytest.mark.req("K17")
def test_a_stop_from_another_process_reaches_the_token_of_the_one_that_runs_the_tool(
    rig: Rig,
) -> None:
    @tool(effect="irreversible", stops_midway=True, on_interrupt="finish", deadline_s=100.0)
    async def copy(files: int, call: Call) -> object:
        assert call.stop is not None
        await call.stop.wait()
        return Acknowledged(result={"id": "C1"}, complete=False)

    async def run(rt: Runtime) -> PlanValue:
        return await propose(rt, (Wanted(tool="copy", arguments={"files": 9}),))

    runs = rig.start(run, copy)
    rig.world.pass_time(1.0)
    stops = rig.start(stopping(rig), copy)
    rig.world.wait(runs, stops)
    assert runs.result().state is PlanState.STOPPED
    assert rig.world.timeline.now_s < 10.0


@pytest.mark.req("K17")
def test_no_token_is_handed_to_a_tool_whose_contract_does_not_take_it(rig: Rig) -> None:
    seen: list[object] = []

    @tool(effect="irreversible")
    async def copy(files: int, call: Call) -> object:
        seen.append(call.stop)
        return {"id": "C1"}

    async def script(rt: Runtime) -> PlanValue:
        return await propose(rt, (Wanted(tool="copy", arguments={"files": 9}),))

    assert rig.run(script, copy).state is PlanState.DONE
    assert seen == [None]
