"""A yes that is not taken: what was wrong, who hears it, and that nothing is used up by it."""

import asyncio
import itertools
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from landed.core.approval import Purpose
from landed.core.changes import Kind
from landed.core.errors import ProposalError
from landed.core.key import Ask
from landed.core.plan import PlanState, Wanted
from landed.core.preview import Similar
from landed.runtime.opened import Settings
from landed.runtime.runtime import Runtime
from landed.testing.sim import World
from tests.runtime.office import (
    DRAFT,
    INVOICE,
    ISSUE,
    PAY,
    OfficeRig,
    at_rest,
    paying,
    proposed,
    proposed_at_once,
    refused,
    token_of,
)


@pytest.fixture
def rig() -> Iterator[OfficeRig]:
    with World() as world:
        yield OfficeRig(world)


BINDINGS: dict[str, dict[str, object]] = {
    "principal": {"principal": "eve"},
    "tenant": {"tenant": "other"},
    "session": {"session": "elsewhere"},
    "purpose": {"purpose": Purpose.UNDO},
}
EVERY = [
    wrong
    for count in range(1, len(BINDINGS) + 1)
    for wrong in itertools.combinations(sorted(BINDINGS), count)
]


@pytest.mark.req("S1-16", "S1-18", "S1-22", "K12")
@pytest.mark.field("C14")
@pytest.mark.fault("X82")
def test_every_wrong_binding_is_refused_alike_and_uses_nothing_up(rig: OfficeRig) -> None:
    async def script(rt: Runtime) -> Any:
        value = await proposed(rt)
        heard: list[tuple[str, str]] = []
        for wrong in EVERY:
            how: dict[str, Any] = {"principal": "ana"}
            for name in wrong:
                how |= BINDINGS[name]
            error = await refused(rt.approve(token=token_of(value), **how))
            heard.append((str(error), error.problem))
            error = await refused(rt.decline(token=token_of(value), **how))
            heard.append((str(error), error.problem))
        unknown = await refused(rt.approve(token="never", principal="eve"))
        done = await rt.approve(token=token_of(value), principal="ana")
        return heard, (str(unknown), unknown.problem), done

    heard, unknown, done = rig.run(script)
    assert len(heard) == 2 * 15
    assert set(heard) == {unknown}
    assert unknown[1] == "absent"
    assert done.state is PlanState.DONE
    assert rig.office.done == ["pay"]
    assert rig.problems() == ["mismatch"] * 30


@pytest.mark.req("S1-21", "K12")
@pytest.mark.fault("X81")
def test_a_stranger_hears_one_answer_and_the_log_has_three_reasons(
    rig: OfficeRig, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="landed")

    async def script(rt: Runtime) -> Any:
        used, late = await proposed_at_once(rt, [PAY], [paying("ben")])
        await rt.approve(token=token_of(used), principal="ana")
        await asyncio.sleep(601.0)  # virtual time
        caplog.clear()
        heard = set[tuple[str, str, str]]()
        for token in (token_of(used), token_of(late), "A" * 32):
            error = await refused(rt.approve(token=token, principal="eve"))
            heard.add((str(error), error.problem, error.again))
        for what in (used.plan, late.plan, "plan-999", late.questions[-1]):
            error = await refused(rt.approve(what, principal="eve"))
            heard.add((str(error), error.problem, error.again))
        return heard

    heard = rig.run(script)
    assert len(heard) == 1
    reasons = [record.getMessage().rpartition("refused: ")[2] for record in caplog.records]
    assert reasons[:3] == ["mismatch (it was taken)", "mismatch (it was expired)", "absent"]


@pytest.mark.req("S1-21", "S1-62", "K12", "K15")
@pytest.mark.field("C19", "C20")
@pytest.mark.fault("X81")
def test_the_owner_hears_what_is_wrong_and_each_problem_is_in_an_event(
    rig: OfficeRig, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="landed")

    async def script(rt: Runtime) -> Any:
        used, no, over, late = await proposed_at_once(
            rt, [PAY], [paying("ben")], [paying("cy")], [paying("dan")]
        )
        await rt.approve(token=token_of(used), principal="ana")
        await rt.decline(token=token_of(no), principal="ana")
        await rt.abandon(over.plan)
        errors = [
            await refused(rt.decline(token=token_of(used), principal="ana")),
            await refused(rt.approve(token=token_of(no), principal="ana")),
            await refused(rt.approve(token=token_of(over), principal="ana")),
        ]
        await asyncio.sleep(600.0)  # virtual time
        errors.append(await refused(rt.approve(token=token_of(late), principal="ana")))
        errors.append(await refused(rt.approve(token=token_of(late), principal="eve")))
        errors.append(await refused(rt.approve(token="never", principal="ana")))
        return errors, await rt.plan(late.plan), await rt.plan(errors[3].again)

    errors, late, again = rig.run(script)
    told = ["used", "declined", "over", "expired", "absent", "absent"]
    assert [error.problem for error in errors] == told
    assert rig.problems() == ["used", "declined", "over", "expired", "mismatch"]
    assert "absent" in caplog.text
    assert [bool(error.again) for error in errors] == [False, False, False, True, False, False]
    assert late.state is PlanState.EXPIRED
    (record,) = (one for one in rig.records(Kind.PLAN) if one.id == late.plan)
    assert record.changing["by"] == "clock"
    assert again.state is PlanState.PROPOSED
    assert "Pay dan 100 cents" in again.text
    assert rig.office.effects == [("pay", ["ada", 100])]


@pytest.mark.req("S1-22")
def test_a_yes_of_one_kind_is_none_of_another(rig: OfficeRig) -> None:
    async def script(rt: Runtime) -> Any:
        done = await proposed(rt, [DRAFT])
        undo = await rt.offer(done.plan, Purpose.UNDO)
        rig.office.refuses = {"issue"}
        shown = await proposed(rt, [DRAFT, ISSUE])
        partial = await rt.approve(token=token_of(shown), principal="ana")
        assert undo is not None
        assert partial is not None
        other = await proposed(rt, [PAY], origin="timer")
        tokens = {Purpose.UNDO: undo.token, Purpose.RETRY: token_of(partial)}
        tokens[Purpose.CONFIRM] = token_of(other)
        for (kind, token), purpose in itertools.product(tokens.items(), Purpose):
            if kind is not purpose:
                error = await refused(rt.approve(token=token, purpose=purpose, principal="ana"))
                assert error.problem == "absent"
        before = list(rig.office.done)
        rig.office.refuses = set()
        for kind, token in tokens.items():
            await rt.approve(token=token, purpose=kind, principal="ana")
        return before

    assert rig.run(script) == ["draft", "draft"]
    assert rig.problems() == ["mismatch"] * 6
    assert sorted(rig.office.done) == ["delete", "draft", "draft", "issue", "pay"]


@pytest.mark.req("S1-61")
@pytest.mark.field("C4", "C8", "C17", "C27")
@pytest.mark.fault("X86")
def test_what_is_no_yes_runs_nothing(rig: OfficeRig) -> None:
    async def script(rt: Runtime) -> Any:
        value = await proposed(rt)
        (question,) = value.questions
        no_tokens: list[Any] = [None, "", True, 1, b"yes", "true", "\ud800", "x" * 100_000, {}]
        for token in no_tokens:
            error = await refused(rt.approve(token=token, principal="ana"))
            assert error.problem == "absent"
        for what in ("", "plan-999", "approval/x", value.turn, "\ud800", "pay"):
            error = await refused(rt.approve(what, principal="ana"))
            assert error.problem == "absent"
        assert (await refused(rt.approve(question, principal=""))).problem == "absent"
        for name, extra in (("yes", True), ("arguments", {"to": "eve"}), ("tool", "mail")):
            verb: Any = rt.approve
            with pytest.raises(TypeError):
                await verb(token=token_of(value), principal="ana", **{name: extra})
        return await rt.plan(value.plan)

    assert rig.run(script).state is PlanState.PROPOSED
    assert rig.office.effects == []


@pytest.mark.req("S1-12")
@pytest.mark.field("C6")
@pytest.mark.fault("X97")
@pytest.mark.parametrize(
    ("lost", "done"),
    [("invoice.issue", ["draft"]), ("reminder.schedule", ["draft", "issue", "mail"])],
)
def test_a_right_that_is_lost_after_the_yes_stops_the_step_and_all_after_it(
    rig: OfficeRig, lost: str, done: list[str]
) -> None:
    async def script(rt: Runtime) -> Any:
        value = await proposed(rt, INVOICE)
        rig.office.revoked = {lost}
        return await rt.approve(token=token_of(value), principal="ana")

    value = rig.run(script)
    assert value.state is PlanState.PARTIAL
    assert f"ana is not allowed {lost}" in value.text
    left = ["waiting"] * (3 - len(done))
    assert [step.at for step in value.steps] == ["done"] * len(done) + ["broken", *left]
    assert rig.office.done == done
    asked = [permit for permit in rig.office.permits if permit.permission == lost]
    assert len(asked) == 2


@pytest.mark.req("S1-12")
@pytest.mark.fault("X97")
def test_a_right_that_is_lost_before_the_undo_leaves_it_undone_and_in_front_of_a_person(
    rig: OfficeRig,
) -> None:
    async def script(rt: Runtime) -> Any:
        done = await proposed(rt, [DRAFT])
        rig.office.revoked = {"draft.delete"}
        return await rt.undo(done.plan, principal="ana")

    value = rig.run(script)
    assert value.state is PlanState.UNDO_PARTIAL
    assert rig.office.done == ["draft"]
    assert "not allowed draft.delete" in value.text


@pytest.mark.req("S1-58", "K15")
@pytest.mark.field("C19", "C20")
@pytest.mark.parametrize("language", ["en", "es"])
def test_who_says_yes_too_late_hears_so_and_is_shown_it_as_it_is_now(
    rig: OfficeRig, language: str
) -> None:
    rig.settings = Settings(language=language)

    async def script(rt: Runtime) -> Any:
        value = await proposed(rt)
        await asyncio.sleep(601.0)  # virtual time
        rig.office.price_cents = 120
        late = await rt.plan(value.plan)
        heard = await rt.receive("sí", principal="ana", delivery="d1")
        told = await rt.report(heard.turn)
        assert await rt.receive("sí", principal="ana", delivery="d1") == heard
        unacted = await rt.unacted()
        yes = await rt.receive("yes", principal="ana")
        await asyncio.sleep(1.0)  # virtual time
        return late, told, unacted, await rt.report(yes.turn), await rt.plan(value.plan)

    late, told, unacted, after, old = rig.run(script)
    assert (late.state, late.offer, late.questions) == (PlanState.EXPIRED, None, ())
    too_late = {"en": "Your answer came too late", "es": "Tu respuesta ha llegado tarde"}
    asks = {"en": "Shall I do it?", "es": "¿Lo hago?"}
    assert told.text.startswith(too_late[language])
    assert told.text.endswith(f"1. Pay ada 120 cents\n{asks[language]}")
    assert asks[language] not in late.text
    assert unacted == ()
    assert "Pay ada 120 cents" in after.text
    assert old.state is PlanState.EXPIRED
    assert rig.office.done == ["pay"]


@pytest.mark.req("K15")
def test_where_the_contract_says_stop_a_late_yes_is_only_told(rig: OfficeRig) -> None:
    async def script(rt: Runtime) -> Any:
        first, second = await proposed_at_once(rt, [PAY], [paying("ben")])
        await asyncio.sleep(601.0)  # virtual time
        error = await refused(rt.approve(token=token_of(first), principal="ana"))
        heard = await rt.receive("yes", principal="ana")
        return error, second, await rt.report(heard.turn), await rt.history()

    error, second, told, history = rig.run(script, *rig.office.tools(on_expiry="stop"))
    assert (error.problem, error.again) == ("expired", "")
    said = "came too late, so nothing was done because of it. Ask me for it if you still want it."
    assert told.text == f"Your answer {said}"
    assert sum(item.record == second.plan for item in history) == 1
    assert len(rig.records(Kind.PLAN)) == 2
    assert rig.office.effects == []


@pytest.mark.req("K15")
def test_however_often_somebody_comes_too_late_there_is_one_new_preview(rig: OfficeRig) -> None:
    async def script(rt: Runtime) -> Any:
        ask = Ask(tenant="default", principal="ana", session="main")
        value = await rt.propose([PAY], ask=ask)
        await asyncio.sleep(601.0)  # virtual time
        late = [refused(rt.approve(token=token_of(value), principal="ana")) for _ in range(5)]
        errors = [*await asyncio.gather(*late)]
        errors.append(await refused(rt.approve(value.plan, principal="ana")))
        no = await refused(rt.decline(token=token_of(value), principal="ana"))
        return {error.again for error in errors}, no

    again, no = rig.run(script)
    assert len(again) == 1
    assert all(again)
    assert (no.problem, no.again) == ("expired", "")
    assert len(rig.records(Kind.PLAN)) == 2


@pytest.mark.req("K15")
@pytest.mark.parametrize("now", ["safe", "forbidden", "gone"])
def test_what_is_shown_again_asks_in_any_case_or_is_not_shown(rig: OfficeRig, now: str) -> None:
    rig.office.similar = (Similar(id="D1", text="draft D1"),)

    async def script(rt: Runtime) -> Any:
        value = await proposed(rt, [DRAFT])
        await asyncio.sleep(601.0)  # virtual time
        rig.office.similar = ()
        rig.office.revoked = {"draft.create"} if now == "forbidden" else set()
        if now == "gone":
            rt.driver.tools.pop("draft")  # type: ignore[attr-defined]
        error = await refused(rt.approve(token=token_of(value), principal="ana"))
        return error, await rt.plan(error.again) if error.again else None

    error, again = rig.run(script)
    assert error.problem == "expired"
    assert (again is not None) == (now == "safe")
    assert again is None or again.state is PlanState.PROPOSED
    assert rig.office.effects == []


@pytest.mark.field("C20")
def test_other_words_that_come_too_late_let_nothing_lapse_that_the_clock_has_not(
    rig: OfficeRig,
) -> None:
    async def script(rt: Runtime) -> Any:
        value = await proposed(rt)
        await asyncio.sleep(601.0)  # virtual time
        await rt.receive("what is the weather?", principal="ana")
        return await rt.plan(value.plan)

    value = rig.run(script)
    assert value.state is PlanState.EXPIRED
    assert value.text.startswith("Nobody answered in time.")
    (record,) = rig.records(Kind.PLAN)
    assert record.changing["by"] == "clock"


@pytest.mark.req("S1-25", "S3-36")
def test_a_yes_to_what_was_superseded_runs_nothing_and_shows_nothing_anew(rig: OfficeRig) -> None:
    async def script(rt: Runtime) -> Any:
        heard = await rt.receive("pay ada", principal="ana")
        old = await rt.propose([PAY], ask=heard.ask("act"))
        change = await rt.receive("I mean ben", principal="ana", origin="mail")
        new = await rt.revise(heard.turn, change, wanted=[paying("ben")])
        error = await refused(rt.approve(token=token_of(old), principal="ana"))
        done = await rt.approve(token=token_of(new), principal="ana")
        return error, await rt.plan(old.plan), done

    error, old, done = rig.run(script)
    assert (error.problem, error.again) == ("over", "")
    assert (old.state, done.state) == (PlanState.SUPERSEDED, PlanState.DONE)
    assert rig.office.effects == [("pay", ["ben", 100])]
    assert len(rig.records(Kind.PLAN)) == 2


@pytest.mark.req("K4", "S3-36")
@pytest.mark.parametrize("answer", ["yes", "no"])
def test_a_change_of_mind_that_needs_a_yes_releases_nothing_before_it(
    rig: OfficeRig, answer: str
) -> None:
    rig.office.refuses = {"issue"}

    async def script(rt: Runtime) -> Any:
        heard = await rt.receive("invoice it", principal="ana")
        old = await rt.propose([DRAFT, ISSUE], ask=heard.ask("act"))
        await rt.approve(token=token_of(old), principal="ana")
        rig.office.refuses = set()
        change = await rt.receive("make it 600", principal="ana")
        wanted = [Wanted(tool="draft", arguments={"amount": 600}), ISSUE]
        new = await rt.revise(heard.turn, change, wanted=wanted)
        waiting = list(rig.office.done)
        await rt.receive(answer, principal="ana")
        after = await at_rest(rt, new.plan)
        await asyncio.sleep(5.0)  # virtual time
        return new, waiting, after, await rt.report(change.turn)

    new, waiting, after, told = rig.run(script)
    assert new.state is PlanState.PROPOSED
    assert waiting == ["draft"]
    if answer == "yes":
        assert after.state is PlanState.DONE
        assert sorted(rig.office.done) == ["delete", "draft", "draft", "issue"]
        assert rig.office.done.index("delete") > 1
    else:
        assert after.state is PlanState.DECLINED
        assert rig.office.done == ["draft"]
        assert told.questions or "draft" in told.text.lower()


@pytest.mark.req("S1-55")
def test_who_may_not_stop_it_hears_the_same_as_for_no_plan_at_all(rig: OfficeRig) -> None:
    async def script(rt: Runtime) -> Any:
        value = await proposed(rt)
        heard: list[str] = []
        for plan in (value.plan, "plan-999"):
            for verb in (rt.stop, rt.undo, rt.retry):
                with pytest.raises(ProposalError) as caught:
                    await verb(plan, principal="eve")
                heard.append(str(caught.value).replace(plan, "…"))
        with pytest.raises(ProposalError) as caught:
            await rt.stop(value.plan, principal="ana", tenant="other")
        heard.append(str(caught.value).replace(value.plan, "…"))
        by_boss = await rt.stop(value.plan, principal="boss")
        return heard, by_boss

    heard, by_boss = rig.run(script)
    assert set(heard) == {"there is no plan '…'"}
    assert by_boss.state in (PlanState.PROPOSED, PlanState.DECLINED)
    assert rig.office.effects == []


def test_a_retry_by_who_is_in_charge_takes_nothing_from_the_owner(rig: OfficeRig) -> None:
    rig.office.refuses = {"pay"}

    async def script(rt: Runtime) -> Any:
        value = await proposed(rt)
        partial = await rt.approve(token=token_of(value), principal="ana")
        assert partial is not None
        rig.office.refuses = set()
        assert (await refused(rt.retry(value.plan, principal="boss"))).problem == "absent"
        return await rt.approve(token=token_of(partial), purpose=Purpose.RETRY, principal="ana")

    assert rig.run(script).state is PlanState.DONE


@pytest.mark.req("K13")
@pytest.mark.field("C6")
@pytest.mark.parametrize("by_words", [True, False])
def test_a_tool_that_promises_something_else_meanwhile_needs_a_fresh_yes(
    rig: OfficeRig, by_words: bool
) -> None:
    value = rig.run(proposed)

    async def next_deploy(rt: Runtime) -> Any:
        if by_words:
            await rt.receive("yes", principal="ana")
            return await at_rest(rt, value.plan), None
        after = await rt.approve(token=token_of(value), principal="ana")
        assert after is not None
        fresh = await rt.approve(after.again, principal="ana")
        return after, fresh

    after, fresh = rig.run(next_deploy, *rig.office.tools(deadline_s=7.0))
    assert after.state is PlanState.PARTIAL
    assert [moved.field for moved in after.changed] == ["what pay promises"]
    assert rig.office.done == ([] if by_words else ["pay"])
    assert by_words or fresh.state is PlanState.DONE
