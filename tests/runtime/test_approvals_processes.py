"""A yes between processes: races, crashes around it, restarts, and secrets that change."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import landed
from landed.core.changes import Kind
from landed.core.errors import ApprovalError, LandedError
from landed.core.plan import PlanState
from landed.core.value import PlanValue
from landed.runtime.runtime import Runtime
from landed.testing.faults import Point
from landed.testing.sim import World
from tests.runtime.office import (
    PAY,
    Office,
    OfficeRig,
    at_rest,
    paying,
    proposed,
    proposed_at_once,
    refused,
    token_of,
)
from tests.runtime.stores import Conflicts, SlowStore, TroubledStore


@pytest.fixture
def rig() -> Iterator[OfficeRig]:
    with World() as world:
        yield OfficeRig(world)


@pytest.mark.req("S1-19")
@pytest.mark.field("C31")
@pytest.mark.fault("X80")
def test_two_processes_that_were_told_yes_run_it_once_and_answer_the_same(rig: OfficeRig) -> None:
    value = rig.run(proposed)
    token = token_of(value)

    async def click(rt: Runtime) -> Any:
        return await rt.approve(token=token, principal="ana")

    one, two = rig.start(click), rig.start(click)
    rig.world.wait(one, two)
    first, second = one.result(), two.result()
    assert first is not None
    assert second is not None
    assert {first.state, second.state} == {PlanState.DONE}
    assert sorted([first.replayed, second.replayed]) == [False, True]
    assert first.operations == second.operations
    assert rig.office.done == ["pay"]


@pytest.mark.field("B4")
@pytest.mark.parametrize("by", ["token", "plan"])
def test_two_questions_at_once_with_two_amounts_get_each_its_own_answer_in_any_order(
    rig: OfficeRig, by: str
) -> None:
    """Answered last first, in another process than the one that asked."""
    ada, ben = paying("ada", 100), paying("ben", 25_000)
    first, second = rig.run(lambda rt: proposed_at_once(rt, [ada], [ben]))

    async def script(rt: Runtime) -> list[Any]:
        paid: list[Any] = []
        for value in (second, first):
            if by == "token":
                await rt.approve(token=token_of(value), principal="ana")
            else:
                await rt.approve(value.plan, principal="ana")
            assert (await at_rest(rt, value.plan)).state is PlanState.DONE
            paid.append(list(rig.office.effects))
        return paid

    after_one, after_both = rig.run(script)
    assert after_one == [("pay", ["ben", 25_000])]
    assert after_both == [("pay", ["ben", 25_000]), ("pay", ["ada", 100])]


@pytest.mark.field("B4")
def test_the_answer_to_one_of_two_questions_is_refused_for_the_other(rig: OfficeRig) -> None:
    first, second = rig.run(
        lambda rt: proposed_at_once(rt, [paying("ada", 100)], [paying("ben", 25_000)])
    )

    async def script(rt: Runtime) -> list[str]:
        named = [second.plan, "plan-none"]
        errors = [
            await refused(rt.approve(each, token=token_of(first), principal="ana"))
            for each in named
        ]
        assert rig.office.effects == []
        await rt.approve(second.plan, token=token_of(second), principal="ana")
        await rt.approve(first.plan, token=token_of(first), principal="ana")
        return [error.problem for error in errors]

    assert rig.run(script) == ["absent", "absent"]
    assert rig.office.effects == [("pay", ["ben", 25_000]), ("pay", ["ada", 100])]


@pytest.mark.field("C31", "C16")
@pytest.mark.fault("X80")
def test_two_runtimes_on_one_file_race_for_each_yes(tmp_path: Path) -> None:
    office, url = Office(), f"sqlite:///{tmp_path / 'office.db'}"

    def opened() -> Any:
        return landed.open(url, tools=office.tools(), permissions=office, secret=b"s3cret")

    async def race() -> None:
        async with opened() as one, opened() as two:
            for number in range(8):
                session = f"s{number}"
                value = await proposed(one, [paying(f"p{number}")], session=session)
                token = token_of(value)
                yes = [
                    rt.approve(token=token, principal="ana", session=session)
                    for rt in (one, two, two, one)
                ]
                values = await asyncio.gather(*yes)
                assert {each.state for each in values} == {PlanState.DONE}
                assert sum(not each.replayed for each in values) == 1

    asyncio.run(race())
    assert len(office.effects) == len({str(effect) for effect in office.effects}) == 8


@pytest.mark.field("C10", "C16")
def test_what_waits_for_a_yes_waits_through_a_restart(rig: OfficeRig) -> None:
    value = rig.run(proposed)

    async def look(rt: Runtime) -> Any:
        return await rt.plan(value.plan), await rt.history(), await rt.unacted()

    seen, history, unacted = rig.run(look)
    assert seen.state is PlanState.PROPOSED
    assert history[-1].text == value.text
    assert (rig.office.effects, unacted) == ([], ())

    async def say_yes(rt: Runtime) -> Any:
        await rt.receive("yes", principal="ana")
        return await at_rest(rt, value.plan)

    assert rig.run(say_yes).state is PlanState.DONE
    assert rig.office.done == ["pay"]


@pytest.mark.field("C16")
@pytest.mark.fault("X08")
def test_a_yes_works_on_a_file_after_the_process_is_gone(tmp_path: Path) -> None:
    office, url = Office(), f"sqlite:///{tmp_path / 'office.db'}"

    async def process(act: Any) -> Any:
        opened = landed.open(url, tools=office.tools(), permissions=office, secret=b"s3cret")
        async with opened as rt:
            return await act(rt)

    value = asyncio.run(process(proposed))
    done = asyncio.run(process(lambda rt: rt.approve(token=token_of(value), principal="ana")))
    again = asyncio.run(process(lambda rt: rt.approve(token=token_of(value), principal="ana")))
    assert (done.state, done.replayed) == (PlanState.DONE, False)
    assert (again.state, again.replayed) == (PlanState.DONE, True)
    assert office.done == ["pay"]


@pytest.mark.fault("X08")
@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize("by_words", [True, False])
def test_a_crash_around_the_commit_that_takes_the_yes_leaves_both_or_neither(
    rig: OfficeRig, side: str, by_words: bool
) -> None:
    value = rig.run(proposed)

    async def say_yes(rt: Runtime) -> Any:
        if not by_words:
            return await rt.approve(token=token_of(value), principal="ana")
        await rt.receive("yes", principal="ana", delivery="d1")
        return await at_rest(rt, value.plan)

    rig.kill_at = Point(side=side, name="approval_taken")
    process = rig.start(say_yes)
    rig.world.wait(process)
    assert not process.alive
    rig.base.worker_died(process.name)
    (approval,), (plan,) = rig.records(Kind.APPROVAL), rig.records(Kind.PLAN)
    taken = {"before": ("open", "proposed"), "after": ("taken", "running")}[side]
    assert (approval.state, plan.state) == taken
    assert rig.office.effects == []
    rig.kill_at = None

    async def once_more(rt: Runtime) -> Any:
        await say_yes(rt)
        return await at_rest(rt, value.plan)

    assert rig.run(once_more).state is PlanState.DONE
    assert rig.office.done == ["pay"]


@pytest.mark.fault("X08")
def test_a_yes_is_taken_once_also_where_its_commit_meets_others(rig: OfficeRig) -> None:
    trouble = Conflicts("approval_taken", times=5)
    rig.wrap = lambda store: TroubledStore(store, trouble)

    async def script(rt: Runtime) -> Any:
        value = await proposed(rt)
        return await rt.approve(token=token_of(value), principal="ana")

    assert rig.run(script).state is PlanState.DONE
    assert trouble.seen == 5
    assert rig.office.done == ["pay"]


@pytest.mark.parametrize("after_s", [0.0, 0.05, 0.1, 0.15, 0.2])
def test_a_yes_that_comes_while_the_runtime_ends_is_carried_out_by_the_next(
    rig: OfficeRig, after_s: float
) -> None:
    rig.wrap = SlowStore

    async def leave(rt: Runtime) -> Any:
        value = await proposed(rt)
        yes = asyncio.ensure_future(rt.approve(token=token_of(value), principal="ana"))
        await asyncio.sleep(after_s)  # virtual time
        await rt.drain()
        with pytest.raises(LandedError, match="not open"):
            await rt.approve(token=token_of(value), principal="ana")
        return value, await yes

    value, told = rig.run(leave)
    (approval,) = rig.records(Kind.APPROVAL)
    assert approval.state == "taken"
    assert told.state in (PlanState.RUNNING, PlanState.DONE)
    assert (told.state is PlanState.DONE) == (rig.office.done == ["pay"])

    async def go_on(rt: Runtime) -> Any:
        return await at_rest(rt, value.plan)

    assert rig.run(go_on).state is PlanState.DONE
    assert rig.office.done == ["pay"]


def test_what_was_sealed_with_an_older_secret_is_still_good(tmp_path: Path) -> None:
    office, url = Office(), f"sqlite:///{tmp_path / 'office.db'}"

    async def process(secret: Any, act: Any) -> Any:
        opened = landed.open(url, tools=office.tools(), permissions=office, secret=secret)
        async with opened as rt:
            return await act(rt)

    async def two(rt: Runtime) -> Any:
        return await proposed_at_once(rt, [PAY], [paying("ben")])

    def yes(value: PlanValue) -> Any:
        return lambda rt: rt.approve(token=token_of(value), principal="ana")

    first, second = asyncio.run(process(b"old", two))
    with pytest.raises(landed.StoreError, match="secret"):
        asyncio.run(process(b"new", yes(first)))
    done = asyncio.run(process([b"new", b"old"], yes(first)))
    third = asyncio.run(process([b"new", b"old"], lambda rt: proposed_at_once(rt, [PAY])))[0]
    assert done.state is PlanState.DONE
    with pytest.raises(landed.StoreError, match="edited"):
        asyncio.run(process([b"new"], yes(second)))
    assert asyncio.run(process([b"newer", b"new", b"old"], yes(third))).state is PlanState.DONE
    assert office.done == ["pay", "pay"]


@pytest.mark.req("S1-19", "S1-23")
@pytest.mark.field("C3", "C31")
@pytest.mark.parametrize("head_start_s", [0.0, 0.5])
def test_a_click_in_one_process_and_a_yes_in_another_are_one_yes(
    rig: OfficeRig, head_start_s: float
) -> None:
    value = rig.run(proposed)

    async def click(rt: Runtime) -> Any:
        return await rt.approve(token=token_of(value), principal="ana")

    async def say(rt: Runtime) -> Any:
        await rt.receive("yes", principal="ana", delivery="d1")
        await rt.receive("yes", principal="ana", delivery="d1")
        return await at_rest(rt, value.plan)

    one = rig.start(click)
    if head_start_s:
        rig.world.pass_time(head_start_s)
    two = rig.start(say)
    three = rig.start(say)
    rig.world.wait(one, two, three)
    assert {each.result().state for each in (one, two, three)} == {PlanState.DONE}
    assert rig.office.done == ["pay"]
    assert rig.events().count("approval_taken") == 1
    assert len(rig.records(Kind.INPUT)) == 2


@pytest.mark.field("C17")
@pytest.mark.parametrize("first", ["yes", "no"])
def test_of_a_yes_and_a_no_at_once_one_counts_and_the_other_hears_so(
    rig: OfficeRig, first: str
) -> None:
    async def script(rt: Runtime) -> Any:
        value = await proposed(rt)
        token = token_of(value)
        verbs = [rt.approve, rt.decline] if first == "yes" else [rt.decline, rt.approve]
        both = [verb(token=token, principal="ana") for verb in verbs]
        return await asyncio.gather(*both, return_exceptions=True)

    won, lost = rig.run(script)
    assert won.state is (PlanState.DONE if first == "yes" else PlanState.DECLINED)
    assert isinstance(lost, ApprovalError)
    assert lost.problem == ("used" if first == "yes" else "declined")
    assert rig.office.done == (["pay"] if first == "yes" else [])
