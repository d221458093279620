"""A plan that is previewed and kept begins by its token and by nothing else."""

import asyncio
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from landed.core.approval import Purpose
from landed.core.arrival import Offering
from landed.core.changes import Kind
from landed.core.errors import ProposalError
from landed.core.key import Ask, targets_of
from landed.core.plan import PlanState, Wanted
from landed.core.value import PlanValue
from landed.runtime.runtime import Runtime
from landed.testing.sim import World
from tests.runtime.office import DRAFT, PAY, OfficeRig, paying, refused, token_of

ANA = Ask(principal="ana")


@pytest.fixture
def rig() -> Iterator[OfficeRig]:
    with World() as world:
        yield OfficeRig(world)


async def kept(rt: Runtime, *calls: Wanted, ask: Ask = ANA) -> PlanValue:
    """Preview calls, and have the plan kept."""
    return await rt.preview(calls or (DRAFT,), ask=ask, keep=True)


async def committed(rt: Runtime, plan: PlanValue, **other: Any) -> PlanValue:
    """Commit a plan as Ana."""
    asked: dict[str, Any] = {
        "token": token_of(plan),
        "fingerprint": plan.fingerprint,
        "principal": "ana",
        **other,
    }
    return await rt.commit(plan.plan, **asked)


@pytest.mark.req("S3-01", "S3-18")
def test_a_kept_preview_does_nothing_and_begins_by_its_token(rig: OfficeRig) -> None:
    async def script(rt: Runtime) -> Any:
        plans = [await kept(rt) for _ in range(100)]
        await asyncio.sleep(60.0)  # virtual time
        assert rig.office.done == []
        done = await committed(rt, plans[0])
        return plans[0], done

    plan, done = rig.run(script)
    assert (plan.state, done.state) == (PlanState.PROPOSED, PlanState.DONE)
    assert plan.offer.purpose == Purpose.COMMIT
    assert rig.office.done == ["draft"]


@pytest.mark.req("S3-26", "K14")
def test_a_token_begins_what_needs_a_yes_only_after_the_yes(rig: OfficeRig) -> None:
    async def script(rt: Runtime) -> Any:
        plan = await kept(rt, PAY)
        early = await refused(committed(rt, plan))
        assert early.problem == "not_agreed"
        assert rig.office.done == []
        agreed = await rt.approve(plan.plan, principal="ana")
        assert agreed is not None
        assert (agreed.state, agreed.agreed_by) == (PlanState.PROPOSED, "ana")
        assert "said yes" in agreed.to_model
        assert rig.office.done == []
        return await committed(rt, plan)

    assert rig.run(script).state is PlanState.DONE
    assert rig.office.done == ["pay"]


def test_a_yes_in_words_begins_no_kept_plan(rig: OfficeRig) -> None:
    async def script(rt: Runtime) -> Any:
        heard = await rt.receive("pay ada", principal="ana")
        plan = await kept(rt, PAY, ask=heard.ask(""))
        await rt.receive("yes", principal="ana")
        assert (await rt.plan(plan.plan)).agreed_by == "ana"
        assert rig.office.done == []
        return await committed(rt, plan)

    assert rig.run(script).state is PlanState.DONE


@pytest.mark.req("S3-16", "S3-21")
def test_the_same_commit_again_gets_what_the_first_came_to(rig: OfficeRig) -> None:
    async def script(rt: Runtime) -> Any:
        plan = await kept(rt)
        both = await asyncio.gather(*(committed(rt, plan, call_id="k") for _ in range(2)))
        return [*both, await committed(rt, plan, call_id="k"), await committed(rt, plan)]

    values = rig.run(script)
    assert {value.state for value in values} == {PlanState.DONE}
    assert sorted(value.replayed for value in values) == [False, True, True, True]
    assert rig.office.done == ["draft"]


@pytest.mark.req("S3-16")
@pytest.mark.field("G6")
@pytest.mark.parametrize("at_once", [True, False])
def test_one_call_id_commits_one_plan(rig: OfficeRig, at_once: bool) -> None:
    async def script(rt: Runtime) -> Any:
        one, other = await kept(rt), await kept(rt, paying("bob"))
        await rt.approve(other.plan, principal="ana")
        if not at_once:
            await committed(rt, one, call_id="k")
        asked = [committed(rt, each, call_id="k") for each in (one, other)]
        return await asyncio.gather(*asked, return_exceptions=True)

    done, error = rig.run(script)
    assert done.state is PlanState.DONE
    assert isinstance(error, ProposalError)
    assert "used before" in str(error)
    assert rig.office.done == ["draft"]


@pytest.mark.req("S3-14", "K15", "S3-05")
def test_after_its_time_a_token_begins_nothing(rig: OfficeRig) -> None:
    async def script(rt: Runtime) -> Any:
        plan = await kept(rt)
        assert plan.offer is not None
        await asyncio.sleep(plan.offer.answer_by - rt.driver.clock.now())  # virtual time
        late = await refused(committed(rt, plan))
        return late, await rt.plan(plan.plan)

    late, plan = rig.run(script)
    assert (late.problem, late.again) == ("expired", "")
    assert (plan.state, rig.office.done) == (PlanState.ABANDONED, [])


@pytest.mark.req("S3-15", "S3-13")
@pytest.mark.field("C21")
def test_a_fact_that_moved_is_named_and_nothing_is_begun(rig: OfficeRig) -> None:
    async def script(rt: Runtime) -> Any:
        plan = await kept(rt, PAY)
        await rt.approve(plan.plan, principal="ana")
        rig.office.price_cents = 120
        return await committed(rt, plan)

    value = rig.run(script)
    (moved,) = value.changed
    assert (moved.field, moved.was, moved.now) == ("price", 100, 120)
    assert (value.state, rig.office.done) == (PlanState.PARTIAL, [])


@pytest.mark.fault("X81", "X82")
@pytest.mark.req("S1-18", "S1-22")
@pytest.mark.parametrize(
    ("presented", "problem"),
    [
        ({"token": "x"}, "absent"),
        ({"token": ""}, "absent"),
        ({"principal": "eve"}, "absent"),
        ({"tenant": "other"}, "absent"),
        ({"fingerprint": "sha256:other"}, "fingerprint"),
    ],
)
def test_a_wrong_commit_uses_nothing_up(
    rig: OfficeRig, presented: dict[str, str], problem: str
) -> None:
    async def script(rt: Runtime) -> Any:
        plan = await kept(rt)
        error = await refused(committed(rt, plan, **presented))
        assert rig.office.done == []
        return error.problem, await committed(rt, plan)

    was, done = rig.run(script)
    assert (was, done.state) == (problem, PlanState.DONE)


@pytest.mark.req("S1-22")
def test_a_plan_token_is_no_yes_and_a_yes_no_plan_token(rig: OfficeRig) -> None:
    async def script(rt: Runtime) -> Any:
        plan, other = await kept(rt, PAY), await kept(rt)
        yes = await rt.offer(plan.plan, Purpose.CONFIRM)
        assert yes is not None
        assert await rt.offer(other.plan, Purpose.CONFIRM) is None
        assert await rt.offer(plan.plan, Purpose.COMMIT) is None
        problems = [
            await refused(rt.approve(token=token_of(plan), principal="ana")),
            await refused(committed(rt, plan, token=yes.token)),
            await refused(committed(rt, plan, token=token_of(other))),
            await refused(rt.approve(other.plan, principal="ana")),
        ]
        for purpose in (Purpose.COMMIT, Purpose.RETRY):
            asked = rt.approve(token=token_of(plan), purpose=purpose, principal="ana")
            problems.append(await refused(asked))
        return [each.problem for each in problems]

    assert rig.run(script) == ["absent"] * 6
    assert rig.office.done == []


def test_no_yes_is_recorded_for_what_nobody_has_to_agree_to(rig: OfficeRig) -> None:
    async def script(rt: Runtime) -> Any:
        value = await kept(rt)
        plan = await rt.driver.reader.plan(value.plan, tenant="default")
        yes, _ = rt.planner.approval(plan, Purpose.CONFIRM, answer_by=plan.answer_by)
        loop = rt.driver.loop_of(tenant="default", session="main")
        return await loop.hand_in(Offering(approval=yes))

    assert rig.run(script) == "over"
    assert len(rig.records(Kind.APPROVAL)) == 1


@pytest.mark.req("S3-04", "S3-33")
@pytest.mark.fault("X94")
def test_a_plan_token_is_nowhere_but_with_whoever_previewed(
    rig: OfficeRig, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)

    async def script(rt: Runtime) -> Any:
        plan = await kept(rt)
        await refused(committed(rt, plan, principal="eve"))
        await refused(committed(rt, plan, fingerprint=""))
        done = await committed(rt, plan)
        shown = [repr(plan), repr(done), plan.to_model, str(await rt.plan(plan.plan))]
        return token_of(plan), shown, (await rt.history()), await rt.report(plan.plan)

    token, *shown = rig.run(script)
    assert token not in f"{shown} {caplog.text} {rig.bodies()}"


@pytest.mark.req("S3-27")
def test_what_was_abandoned_or_declined_begins_no_more(rig: OfficeRig) -> None:
    async def script(rt: Runtime) -> Any:
        dropped, declined = await kept(rt), await kept(rt, PAY)
        await rt.abandon(dropped.plan, why="not needed any more", principal="ana")
        await rt.decline(declined.plan, principal="ana")
        return [(await refused(committed(rt, each))).problem for each in (dropped, declined)]

    assert rig.run(script) == ["over", "over"]
    assert rig.office.done == []


def test_a_kept_plan_that_broke_off_asks_nobody_who_was_not_asked_before(rig: OfficeRig) -> None:
    async def script(rt: Runtime) -> Any:
        plan = await kept(rt)
        rig.office.refuses = {"draft"}
        partial = await committed(rt, plan)
        assert (partial.state, partial.questions, partial.offer) == (PlanState.PARTIAL, (), None)
        rig.office.refuses = set()
        again = await rt.retry(plan.plan, principal="ana")
        late = await committed(rt, plan)
        return again.state, late.state, late.attempt

    assert rig.run(script) == (PlanState.DONE, PlanState.PARTIAL, 1)
    assert rig.office.done == ["draft"]


def test_an_invalid_preview_is_not_kept(rig: OfficeRig) -> None:
    async def script(rt: Runtime) -> Any:
        rig.office.missing = ("Which rate?",)
        return await kept(rt)

    value = rig.run(script)
    assert (value.state, value.plan, value.offer) == (PlanState.INVALID, "", None)
    assert rig.records(Kind.PLAN) == []


def test_another_process_commits_what_this_one_previewed(rig: OfficeRig) -> None:
    plan = rig.run(kept)
    assert rig.run(lambda rt: committed(rt, plan)).state is PlanState.DONE
    assert rig.office.done == ["draft"]


def test_targets_are_read_from_the_names_that_hold_them() -> None:
    names = ("target/t/svc/invoice%2F4412", "same/t/s/tool/x", "target/t/svc/50%25")
    assert targets_of(names) == ("invoice/4412", "50%")
