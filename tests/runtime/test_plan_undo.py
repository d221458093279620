"""A whole plan is taken back: last to first, once, by who may, and told as far as it came."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from landed.core.approval import Purpose
from landed.core.changes import Record
from landed.core.errors import ApprovalError, ProposalError
from landed.core.operation import State
from landed.core.plan import PlanState, Wanted
from landed.core.value import PlanValue
from landed.runtime.runtime import Runtime
from landed.testing.faults import Point
from landed.testing.sim import World
from tests.runtime.plan_rig import (
    ANA,
    Rights,
    act,
    at_of,
    calls,
    give,
    journal,
    landed_in_order,
    office,
    only_plan,
    propose,
    shelf,
    undo_token,
)
from tests.runtime.rig import FINE, REFUSED, REPLY_LOST, SELDOM, Rig, Wire
from tests.runtime.stores import Wrapped

HOUR_S = 3600.0
BOXES = calls("put", "a", "b", "c")


@pytest.mark.req("S1-45", "S1-49")
def test_a_plan_is_taken_back_last_to_first(rig: Rig) -> None:
    async def script(rt: Runtime) -> PlanValue:
        done = await propose(rt, BOXES)
        return await rt.undo(done.plan, principal=ANA)

    value = rig.run(script, *shelf(rig.far))
    assert value.state is PlanState.UNDONE
    assert landed_in_order(rig)[3:] == ["take_off R3", "take_off R2", "take_off R1"]
    undos = [one for one in rig.operations() if one.undoes]
    assert all(one.state is State.CONFIRMED for one in undos)


@pytest.mark.req("S1-45")
@pytest.mark.field("H4")
@pytest.mark.parametrize(("after_s", "works"), [(HOUR_S - 0.5, True), (HOUR_S + 60.0, False)])
def test_the_undo_is_there_for_an_hour(rig: Rig, after_s: float, works: bool) -> None:
    rig.lease = SELDOM

    async def script(rt: Runtime) -> tuple[PlanValue, PlanValue | None, str]:
        done = await propose(rt, BOXES)
        token = await undo_token(rt, done.plan)
        await asyncio.sleep(after_s)  # virtual time
        problem = ""
        try:
            undone = await rt.approve(token=token, purpose=Purpose.UNDO, principal=ANA)
        except ApprovalError as error:
            undone, problem = None, str(error.problem)
        if undone is None:
            with pytest.raises(ProposalError, match="cannot be taken back"):
                await rt.undo(done.plan, principal=ANA)
        return done, undone, problem

    done, undone, problem = rig.run(script, *shelf(rig.far))
    assert done.undo_by is not None
    if works:
        assert undone is not None
        assert undone.state is PlanState.UNDONE
    else:
        assert (undone, problem) == (None, "expired")
        assert rig.far.total == 3


@pytest.mark.req("S1-45")
@pytest.mark.field("H3")
def test_of_two_who_present_one_undo_only_one_takes_anything_back(rig: Rig) -> None:
    async def script(rt: Runtime) -> tuple[list[PlanValue | None], PlanValue | None]:
        done = await propose(rt, BOXES)
        token = await undo_token(rt, done.plan)
        both = await asyncio.gather(
            *(rt.approve(token=token, purpose=Purpose.UNDO, principal=ANA) for _ in range(2))
        )
        later = await rt.approve(token=token, purpose=Purpose.UNDO, principal=ANA)
        return both, later

    both, later = rig.run(script, *shelf(rig.far))
    for value in (*both, later):
        assert value is not None
        assert value.state is PlanState.UNDONE
    assert sorted(value.replayed for value in both if value) == [False, True]
    assert rig.far.total == 6


@pytest.mark.field("H3")
def test_two_processes_that_undo_one_plan_take_it_back_once(rig: Rig) -> None:
    tools = shelf(rig.far)
    done = rig.run(lambda rt: propose(rt, BOXES), *tools)

    async def undo(rt: Runtime) -> PlanState:
        try:
            return (await rt.undo(done.plan, principal=ANA)).state
        except ProposalError:
            return (await rt.plan(done.plan)).state

    both = [rig.start(undo, *tools) for _ in range(2)]
    rig.world.wait(*both)
    rig.check()
    assert rig.far.total == 6
    assert {one.result() for one in both} <= {PlanState.UNDONE, PlanState.UNDOING}
    assert PlanState.UNDONE in {one.result() for one in both}


@pytest.mark.req("S1-45")
def test_the_undo_of_another_is_not_there_and_is_not_used_up(rig: Rig) -> None:
    async def script(rt: Runtime) -> PlanValue | None:
        done = await propose(rt, BOXES)
        token = await undo_token(rt, done.plan)
        with pytest.raises(ApprovalError) as refused:
            await rt.approve(token=token, purpose=Purpose.UNDO, principal="eve")
        assert refused.value.problem == "absent"
        with pytest.raises(ProposalError, match="there is no plan"):
            await rt.undo(done.plan, principal="eve")
        return await rt.approve(token=token, purpose=Purpose.UNDO, principal=ANA)

    value = rig.run(script, *shelf(rig.far))
    assert value is not None
    assert value.state is PlanState.UNDONE


@pytest.mark.req("S1-46", "S1-64")
def test_each_step_comes_back_with_what_it_made(rig: Rig) -> None:
    value = rig.run(lambda rt: propose(rt, BOXES), *shelf(rig.far))
    for step, made in zip(value.steps, ("R1", "R2", "R3"), strict=True):
        assert (step.tool, step.type, step.made) == ("put", "box", made)
        assert step.operation in value.operations
        assert step.summary


@pytest.mark.req("S1-47")
def test_a_step_that_says_of_itself_that_it_stays_takes_the_undo_away(rig: Rig) -> None:
    put, off = shelf(rig.far, undo_where="undoable")

    async def script(rt: Runtime) -> PlanValue:
        done = await propose(rt, BOXES)
        with pytest.raises(ProposalError):
            await rt.undo(done.plan, principal=ANA)
        assert await rt.offer(done.plan, Purpose.UNDO) is None
        return done

    assert rig.run(script, put, off).undo_by is None
    assert rig.far.total == 3


@pytest.mark.req("S1-48", "K22")
def test_a_plan_is_undone_only_where_every_step_that_ran_can_be(rig: Rig) -> None:
    mixed = (*calls("put", "a"), Wanted(tool="draft", arguments={"what": "logo"}))

    async def script(rt: Runtime) -> tuple[PlanValue, PlanValue]:
        done = await propose(rt, mixed)
        with pytest.raises(ProposalError, match="as a whole"):
            await rt.undo(done.plan, principal=ANA)
        return done, await propose(rt, BOXES, text="boxes")

    first, second = rig.run(script, *shelf(rig.far), *office(rig.far))
    assert (first.state, first.undo_by) == (PlanState.DONE, None)
    assert second.undo_by is not None
    assert "take_off R1" not in landed_in_order(rig)


@pytest.mark.req("K22")
def test_one_effect_of_a_plan_that_cannot_be_undone_is_released_by_its_own_contract(
    rig: Rig,
) -> None:
    """A change of mind goes step by step: what can be taken back is, and the rest is said."""
    rig.far.wire += [FINE, Wire(replies_s=2.0)]
    mixed = (*calls("put", "a"), Wanted(tool="draft", arguments={"what": "logo"}))

    async def script(rt: Runtime) -> PlanValue:
        running = asyncio.ensure_future(propose(rt, mixed))
        await asyncio.sleep(1.0)  # virtual time
        heard = await rt.receive("b instead", principal=ANA)
        first = await running
        wanted = (*calls("put", "b"), mixed[1])
        return await rt.revise(first.turn, heard, wanted=wanted)

    value = rig.run(script, *shelf(rig.far), *office(rig.far))
    assert value.state is PlanState.DONE
    assert landed_in_order(rig) == ["put a", "draft logo", "put b", "take_off R1"]


@pytest.mark.req("S1-49", "S1-12")
def test_a_right_that_was_taken_away_stops_the_undo_there_and_says_so(rig: Rig) -> None:
    put, _ = shelf(rig.far)
    off = act(rig.far, "take_off", permission="shelf.clear")

    async def script(rt: Runtime) -> tuple[PlanValue, str]:
        give(rt, Rights("shelf.clear"))
        done = await propose(rt, BOXES)
        return await rt.undo(done.plan, principal=ANA), done.turn

    value, _ = rig.run(script, put, off)
    assert value.state is PlanState.UNDO_PARTIAL
    assert "not allowed shelf.clear" in value.text
    assert rig.far.total == 3


@pytest.mark.req("S1-50")
@pytest.mark.field("H1")
def test_where_one_undo_fails_it_is_said_what_was_taken_back_and_what_was_not(rig: Rig) -> None:
    rig.far.wire += [FINE, FINE, FINE, FINE, *[REFUSED] * 10]

    async def script(rt: Runtime) -> PlanValue:
        done = await propose(rt, BOXES)
        return await rt.undo(done.plan, principal=ANA)

    value = rig.run(script, *shelf(rig.far))
    assert value.state is PlanState.UNDO_PARTIAL
    assert landed_in_order(rig)[3:] == ["take_off R3"]
    for part in ("Not all of it could be undone.", "the day is full"):
        assert part in value.text
    assert value.questions, "what is not taken back is in front of a person"
    undos = [one for one in rig.operations() if one.undoes]
    assert State.FAILED in [one.state for one in undos]


@pytest.mark.field("H1")
def test_an_undo_that_nobody_answers_is_in_doubt_and_found_out_like_any_other(rig: Rig) -> None:
    rig.far.wire += [FINE, FINE, FINE, REPLY_LOST]
    rig.far.silent_questions = 0

    async def script(rt: Runtime) -> tuple[PlanValue, PlanValue]:
        done = await propose(rt, BOXES)
        early = await rt.undo(done.plan, principal=ANA, patience_s=4.0)
        return early, await rt.undo(done.plan, principal=ANA)

    early, value = rig.run(script, *shelf(rig.far))
    assert early.state is PlanState.UNDOING
    assert value.state is PlanState.UNDONE
    assert rig.far.total == 6
    (doubted,) = [one for one in rig.operations() if "answer_lost" in rig.events(one.id)]
    assert doubted.undoes


@pytest.mark.fault("X03")
@pytest.mark.field("H1")
def test_a_process_that_dies_while_it_takes_back_is_followed_by_one_that_goes_on(
    rig: Rig,
) -> None:
    rig.far.wire += [FINE, FINE, FINE, FINE, Wire(replies_s=3.0)]
    tools = shelf(rig.far)

    async def undo(rt: Runtime) -> None:
        done = await propose(rt, BOXES)
        await rt.undo(done.plan, principal=ANA)

    first = rig.start(undo, *tools)
    rig.world.pass_time(1.0)
    rig.kill(first)

    async def look(rt: Runtime) -> PlanValue:
        await asyncio.sleep(60.0)  # virtual time
        return await rt.plan(await only_plan(rt))

    value = rig.run(look, *tools)
    assert value.state is PlanState.UNDONE
    assert sorted(map(str, landed_in_order(rig)[3:])) == [f"take_off R{n}" for n in (1, 2, 3)]


class OneByOne(Wrapped):
    """A store of which each claim takes one record, so that workers share what another left."""

    async def claim(self, **asked: Any) -> tuple[Record, ...]:
        return await self.inner.claim(**{**asked, "limit": 1})


@pytest.mark.fault("X03")
@pytest.mark.field("H1")
def test_a_plan_and_what_is_owed_for_it_may_be_adopted_by_two_and_still_come_to_their_end(
    rig: Rig,
) -> None:
    rig.far.wire += [FINE, FINE, FINE, FINE, Wire(replies_s=3.0)]
    rig.wrap = OneByOne
    tools = shelf(rig.far)

    async def undo(rt: Runtime) -> None:
        done = await propose(rt, BOXES)
        await rt.undo(done.plan, principal=ANA)

    first = rig.start(undo, *tools)
    rig.world.pass_time(1.0)
    rig.kill(first)

    async def look(rt: Runtime) -> PlanValue:
        await asyncio.sleep(300.0)  # virtual time
        return await rt.plan(await only_plan(rt))

    both = [rig.start(look, *tools) for _ in range(2)]
    rig.world.wait(*both)
    assert [one.result().state for one in both] == [PlanState.UNDONE] * 2
    assert sorted(map(str, landed_in_order(rig)[3:])) == [f"take_off R{n}" for n in (1, 2, 3)]


def test_an_undo_waits_for_what_else_touches_the_thing_and_is_then_in_front_of_a_person(
    rig: Rig,
) -> None:
    """Somebody else's call on the same box is out: the undo is neither sent nor forgotten."""
    put, _ = shelf(rig.far)
    box: dict[str, Any] = {"service": "shelf", "target": ("box/{what}",)}
    off, paint = act(rig.far, "take_off", **box), act(rig.far, "paint", **box, deadline_s=100.0)
    rig.far.wire += [FINE, Wire(replies_s=50.0)]

    async def script(rt: Runtime) -> tuple[PlanValue, PlanValue]:
        done = await propose(rt, calls("put", "a"))
        painting = asyncio.ensure_future(
            propose(rt, calls("paint", "R1"), text="paint it", session="other")
        )
        await asyncio.sleep(1.0)  # virtual time
        value = await rt.undo(done.plan, principal=ANA, patience_s=10.0)
        await painting
        await asyncio.sleep(60.0)  # virtual time
        return value, await rt.plan(done.plan)

    value, later = rig.run(script, put, off, paint)
    assert value.state is PlanState.UNDO_PARTIAL
    assert "was not settled" in value.text
    assert len(value.questions) == 1
    assert later.state is PlanState.UNDO_PARTIAL
    assert landed_in_order(rig) == ["put a", "paint R1"]


@pytest.mark.req("S1-48")
def test_a_partial_plan_may_be_taken_back_as_far_as_it_ran(rig: Rig) -> None:
    rig.far.wire += [FINE, REFUSED]

    async def script(rt: Runtime) -> tuple[PlanValue, PlanValue]:
        broke = await propose(rt, BOXES)
        undone = await rt.undo(broke.plan, principal=ANA)
        with pytest.raises(ProposalError, match="cannot be run again"):
            await rt.retry(broke.plan, principal=ANA)
        return broke, undone

    broke, undone = rig.run(script, *shelf(rig.far))
    assert at_of(broke) == ["done", "broken", "waiting"]
    assert broke.undo_by is not None
    assert undone.state is PlanState.UNDONE
    assert landed_in_order(rig) == ["put a", "take_off R1"]


def test_a_stop_while_a_plan_is_being_taken_back_changes_nothing(rig: Rig) -> None:
    rig.far.wire += [FINE, FINE, Wire(replies_s=3.0)]

    async def script(rt: Runtime) -> tuple[PlanValue, PlanValue]:
        done = await propose(rt, calls("put", "a", "b"))
        undoing = asyncio.ensure_future(rt.undo(done.plan, principal=ANA))
        await asyncio.sleep(1.0)  # virtual time
        events = await journal(rt)
        stopped = await rt.stop(done.plan, principal=ANA, hard=True, patience_s=0.0)
        assert await journal(rt) == events
        return stopped, await undoing

    stopped, undone = rig.run(script, *shelf(rig.far))
    assert (stopped.state, undone.state) == (PlanState.UNDOING, PlanState.UNDONE)


def passed_points(script: Callable[[Runtime], Awaitable[PlanValue]]) -> list[Point]:
    """The first point of each side of every commit of a run."""
    kept: list[list[Point]] = []

    def wrap(store: Any) -> Any:
        kept.append(store.points.passed)
        return store

    with World() as world:
        rig = Rig(world, wrap=wrap)
        rig.run(script, *shelf(rig.far))
    passed = kept[0]
    return [point for n, point in enumerate(passed) if not n or passed[n - 1].side != point.side]


async def propose_and_undo(rt: Runtime) -> PlanValue:
    """Have three boxes put and taken off again: as a person does who asks until it is so."""
    value = await propose(rt, BOXES)
    for _ in range(5):
        if value.state is PlanState.DONE:
            with suppress(ProposalError):
                return await rt.undo(value.plan, principal=ANA)
        await asyncio.sleep(10.0)  # virtual time
        value = await propose(rt, BOXES)
        if value.state is PlanState.UNDONE:
            break
    return value


@pytest.mark.req("S1-49")
@pytest.mark.field("H1", "H3")
@pytest.mark.fault("X03", "X04")
@pytest.mark.parametrize("point", passed_points(propose_and_undo), ids=str)
def test_killed_at_any_point_each_step_is_taken_back_once(point: Point) -> None:
    with World() as world:
        rig = Rig(world, kill_at=point)
        tools = shelf(rig.far)
        first = rig.start(propose_and_undo, *tools)
        world.wait(first)
        rig.base.worker_died(first.name)
        rig.kill_at = None
        value = rig.run(propose_and_undo, *tools)

        assert first.ended().crashed_at == str(point)
        assert value.state is PlanState.UNDONE
        assert landed_in_order(rig)[3:] == ["take_off R3", "take_off R2", "take_off R1"]
        assert set(rig.far.effects.values()) == {1}
