"""Plans are stopped halfway: from any process, by who may, and what is out is told as it is."""

import asyncio
import threading
from typing import Any

import pytest

import landed
from landed.core.approval import Purpose
from landed.core.changes import Kind
from landed.core.errors import ApprovalError, ProposalError
from landed.core.operation import State
from landed.core.outcome import Acknowledged
from landed.core.plan import PlanState, Wanted
from landed.core.tool import Call
from landed.core.value import PlanValue
from landed.runtime.permissions import Permit
from landed.runtime.runtime import Runtime
from landed.tools.function import tool
from tests.runtime.plan_rig import (
    ANA,
    Rights,
    at_of,
    calls,
    give,
    journal,
    landed_in_order,
    office,
    only_plan,
    propose,
    shelf,
)
from tests.runtime.rig import FINE, REPLY_LOST, Rig, Wire, no_word

SLOW = Wire(replies_s=10.0)
LONG = {"deadline_s": 100.0}


def plan_of(rig: Rig, session: str = "main") -> str:
    """The plan that the operations of a session belong to."""
    (plan,) = {one.plan for one in rig.operations(session)}
    return plan


async def stop(rt: Runtime) -> PlanValue:
    """Stop the plan of the session, as whoever presses the button elsewhere."""
    return await rt.stop(await only_plan(rt), principal=ANA)


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
    assert "It is being stopped; not done: issue(what=$1)" in at_once.text
    assert "no more of it is begun" in at_once.to_model
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
        stopped = await rt.stop(await only_plan(rt), principal=ANA)
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
        value = await rt.stop(await only_plan(rt), principal=ANA)
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
        value = await rt.stop(await only_plan(rt), principal=ANA, hard=True, patience_s=0.5)
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
        plan = await only_plan(rt)
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
        plan = await only_plan(rt)
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
        await rt.stop(await only_plan(rt), principal=ANA)
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
@pytest.mark.parametrize("promises", [{}, {"on_interrupt": "finish"}])
def test_a_tool_that_takes_the_stop_token_ends_early_and_is_told_as_partly_run(
    rig: Rig, promises: dict[str, Any]
) -> None:
    @tool(effect="irreversible", stops_midway=True, deadline_s=100.0, **promises)
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
        await rt.stop(await only_plan(rt), principal=ANA)
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
    stops = rig.start(stop, copy)
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


@pytest.mark.req("K17", "K20")
@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("promises", [{}, {"on_interrupt": "finish"}])
def test_a_tool_in_a_thread_sees_the_stop_and_ends_early(
    promises: dict[str, Any], hard: bool
) -> None:
    begun = threading.Event()

    @tool(effect="irreversible", stops_midway=True, deadline_s=20.0, **promises)
    def copy(files: int, call: Call) -> object:
        assert call.stop is not None
        begun.set()
        while not call.stop.is_cancelled():
            threading.Event().wait(0.005)  # A thread has nothing else to wait on than a look.
        return Acknowledged(result={"id": "C1", "copied": 3}, complete=False)

    async def script() -> PlanValue:
        async with landed.open("sqlite://:memory:", tools=[copy]) as rt:
            running = asyncio.ensure_future(
                propose(rt, (Wanted(tool="copy", arguments={"files": 9}),))
            )
            await asyncio.to_thread(begun.wait, 10.0)
            stopped = await rt.stop(await only_plan(rt), principal=ANA, hard=hard)
            await running
            return stopped

    value = asyncio.run(script())
    assert value.state is PlanState.STOPPED
    assert "it may have run in part" in value.text


@pytest.mark.req("K2", "K20")
def test_a_hard_stop_of_a_thread_leaves_doubt_until_what_it_returns_late_settles_it() -> None:
    begun, goes_on = threading.Event(), threading.Event()

    @tool(effect="irreversible", on_interrupt="finish", deadline_s=20.0)
    def copy(files: int) -> dict[str, str]:
        begun.set()
        goes_on.wait(10.0)
        return {"id": "C1"}

    async def script() -> tuple[PlanValue, PlanValue]:
        async with landed.open("sqlite://:memory:", tools=[copy]) as rt:
            running = asyncio.ensure_future(
                propose(rt, (Wanted(tool="copy", arguments={"files": 9}),))
            )
            await asyncio.to_thread(begun.wait, 10.0)
            plan = await only_plan(rt)
            doubted = await rt.stop(plan, principal=ANA, hard=True, patience_s=0.0)
            goes_on.set()
            return doubted, await running

    doubted, later = asyncio.run(script())
    assert (doubted.state, at_of(doubted)) == (PlanState.STOPPING, ["out"])
    assert doubted.text.startswith("Outcome unknown: ")
    assert (later.state, at_of(later)) == (PlanState.STOPPED, ["done"])


# A stop before the first step, and one that comes at an awkward moment.


@pytest.mark.req("S1-52")
@pytest.mark.field("D1")
def test_a_stop_before_the_yes_is_a_no_that_holds_in_every_process(rig: Rig) -> None:
    tools = office(rig.far, risk="confirm")

    async def stop(rt: Runtime) -> tuple[PlanValue, str, PlanValue]:
        planned = await propose(rt)
        assert planned.offer is not None
        stopped = await rt.stop(planned.plan, principal=ANA)
        return stopped, planned.offer.token, await rt.stop(planned.plan, principal=ANA)

    async def agree(rt: Runtime) -> PlanValue:
        with pytest.raises(ApprovalError) as refused:
            await rt.approve(token=token, principal=ANA)
        assert refused.value.problem == "declined"
        assert refused.value.again == ""
        with pytest.raises(ApprovalError):
            await rt.approve(stopped.plan, principal=ANA)
        await rt.receive("yes", principal=ANA)
        return await rt.plan(stopped.plan)

    stopped, token, again = rig.run(stop, *tools)
    after = rig.run(agree, *tools)
    assert stopped.state is again.state is after.state is PlanState.DECLINED
    assert stopped.questions == ()
    assert rig.far.sends == []


class Hesitant(Rights):
    """Says yes after a while, as a slow directory would."""

    async def allows(self, permit: Permit) -> bool:
        await asyncio.sleep(5.0)  # virtual time
        return True


@pytest.mark.req("S1-52")
@pytest.mark.field("D1")
def test_a_stop_after_the_yes_and_before_the_first_step_holds(rig: Rig) -> None:
    tools = office(rig.far, risk="confirm", permission="office")

    async def agree(rt: Runtime) -> PlanValue | None:
        give(rt, Rights())
        planned = await propose(rt)
        give(rt, Hesitant())
        return await rt.approve(planned.plan, principal=ANA)

    runs = rig.start(agree, *tools)
    rig.world.pass_time(1.0)
    stops = rig.start(stop, *tools)
    rig.world.wait(runs, stops)

    for value in (runs.result(), stops.result()):
        assert value is not None
        assert (value.state, at_of(value)) == (PlanState.STOPPED, ["waiting"] * 4)
    assert rig.far.sends == []


@pytest.mark.req("S1-52")
@pytest.mark.field("D1")
@pytest.mark.fault("X04")
def test_a_stop_outlasts_the_death_of_the_process_that_was_to_run_the_plan(rig: Rig) -> None:
    tools = office(rig.far, risk="confirm", permission="office")

    async def agree(rt: Runtime) -> None:
        give(rt, Rights())
        planned = await propose(rt)
        give(rt, Hesitant())
        await rt.approve(planned.plan, principal=ANA)

    async def stop(rt: Runtime) -> PlanValue:
        return await rt.stop(await only_plan(rt), principal=ANA, patience_s=0.0)

    async def take_over(rt: Runtime) -> PlanValue:
        give(rt, Rights())
        await asyncio.sleep(60.0)  # virtual time
        return await rt.plan(await only_plan(rt))

    runs = rig.start(agree, *tools)
    rig.world.pass_time(1.0)
    stops = rig.start(stop, *tools)
    rig.world.wait(stops)
    rig.kill(runs)
    value = rig.run(take_over, *tools)

    assert stops.result().state is PlanState.STOPPING
    assert (value.state, at_of(value)) == (PlanState.STOPPED, ["waiting"] * 4)
    assert rig.far.sends == []


@pytest.mark.req("S1-53", "K20")
def test_a_stop_while_the_plan_is_in_doubt_closes_the_key_and_ends_in_the_truth(
    rig: Rig,
) -> None:
    rig.far.wire += [FINE, REPLY_LOST]
    rig.far.silent_questions = 3

    async def script(rt: Runtime) -> tuple[PlanValue, PlanValue]:
        doubted = await propose(rt, patience_s=6.0)
        return doubted, await rt.stop(doubted.plan, principal=ANA)

    doubted, value = rig.run(script, *office(rig.far))
    assert doubted.state is PlanState.IN_DOUBT
    assert (value.state, at_of(value)) == (
        PlanState.STOPPED,
        ["done", "done", "waiting", "waiting"],
    )
    assert len(rig.far.sends) == 2
    assert "close" in rig.far.questions


@pytest.mark.req("K2")
@pytest.mark.parametrize("bound_s", [2.0, None])
def test_a_stop_from_another_process_reaches_the_wait_of_the_one_that_runs_it(
    rig: Rig, bound_s: float | None
) -> None:
    rig.far.wire += [Wire(replies_s=60.0)]
    waits = {"on_interrupt": "wait", "wait_s": bound_s} if bound_s else {}
    tools = office(rig.far, **waits, **LONG)
    runs = rig.start(propose, *tools)
    rig.world.pass_time(1.0)
    stops = rig.start(stop, *tools)
    rig.world.wait(runs, stops)

    assert runs.result().state is PlanState.STOPPED
    assert rig.world.timeline.now_s < 10.0
    assert len(rig.far.sends) == 1


@pytest.mark.req("K2", "K20")
def test_a_hard_stop_from_another_process_is_not_held_up_by_the_one_that_waits(rig: Rig) -> None:
    rig.far.wire += [Wire(replies_s=60.0)]
    tools = office(rig.far, on_interrupt="finish", **LONG)
    runs = rig.start(propose, *tools)
    rig.world.pass_time(1.0)

    async def stop(rt: Runtime) -> PlanValue:
        plan = await only_plan(rt)
        await rt.stop(plan, principal=ANA, patience_s=1.0)
        return await rt.stop(plan, principal=ANA, hard=True)

    stops = rig.start(stop, *tools)
    rig.world.wait(runs, stops)
    assert stops.result().state is PlanState.STOPPED
    assert rig.world.timeline.now_s < 20.0
    assert len(rig.far.sends) == 1


def test_a_plan_that_was_stopped_is_not_retried(rig: Rig) -> None:
    """What was stopped is begun anew only by a new plan, so that the person sees it again."""
    rig.far.wire += [Wire(replies_s=10.0)]

    async def script(rt: Runtime) -> PlanValue:
        running = asyncio.ensure_future(propose(rt))
        await asyncio.sleep(1.0)  # virtual time
        await rt.stop(await only_plan(rt), principal=ANA)
        stopped = await running
        with pytest.raises(ProposalError, match="is stopped: it cannot be run again"):
            await rt.retry(stopped.plan, principal=ANA)
        assert await rt.offer(stopped.plan, Purpose.RETRY) is None
        return stopped

    stopped = rig.run(script, *office(rig.far, on_interrupt="finish", **LONG))
    assert (stopped.state, stopped.offer) == (PlanState.STOPPED, None)


# What a stop leaves owed.


@pytest.mark.req("S1-54")
def test_the_undo_of_what_ran_before_the_stop_comes_with_it(rig: Rig) -> None:
    rig.far.wire += [Wire(replies_s=10.0)]

    async def script(rt: Runtime) -> tuple[PlanValue, PlanValue]:
        running = asyncio.ensure_future(propose(rt, calls("put", "a", "b")))
        await asyncio.sleep(1.0)  # virtual time
        await rt.stop(await only_plan(rt), principal=ANA)
        stopped = await running
        return stopped, await rt.undo(stopped.plan, principal=ANA)

    stopped, undone = rig.run(script, *shelf(rig.far, on_interrupt="finish", **LONG))
    assert (stopped.state, at_of(stopped)) == (PlanState.STOPPED, ["done", "waiting"])
    assert stopped.undo_by is not None
    assert undone.state is PlanState.UNDONE
    assert landed_in_order(rig) == ["put a", "take_off R1"]


@pytest.mark.field("H6")
def test_a_stop_of_a_changed_mind_says_what_is_still_owed(rig: Rig) -> None:
    """The new plan is stopped while its step is out: the old table is neither kept nor let go."""
    rig.far.wire += [Wire(replies_s=2.0), Wire(replies_s=10.0)]
    put, off = shelf(rig.far, on_interrupt="finish", **LONG)

    async def script(rt: Runtime) -> tuple[PlanValue, str]:
        running = asyncio.ensure_future(propose(rt, calls("put", "a")))
        await asyncio.sleep(1.0)  # virtual time
        heard = await rt.receive("b instead", principal=ANA)
        first = await running
        changing = asyncio.ensure_future(
            rt.revise(first.turn, heard, wanted=calls("put", "b"), patience_s=100.0)
        )
        await asyncio.sleep(1.0)  # virtual time
        held = await rt.driver.store.session_records(tenant="default", session="main")
        new = [record.id for record in held if record.kind is Kind.PLAN][-1]
        stopped = await rt.stop(new, principal=ANA)
        await changing
        return stopped, (await rt.report(heard.turn)).text

    stopped, told = rig.run(script, put, off)
    assert stopped.state is PlanState.STOPPED
    assert len(stopped.questions) == 1
    assert told.endswith("?")
    assert landed_in_order(rig) == ["put a", "put b"]
