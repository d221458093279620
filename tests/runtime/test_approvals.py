"""A yes that is taken: by a button or in words, once, for exactly what was shown."""

import asyncio
import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest

from landed.core.approval import Purpose, approval_id
from landed.core.changes import Kind
from landed.core.errors import ApprovalError
from landed.core.plan import PlanState, Wanted
from landed.core.value import PlanValue
from landed.runtime.acting import ModelTools
from landed.runtime.runtime import Runtime
from landed.testing.sim import World
from tests.runtime.office import (
    DRAFT,
    INVOICE,
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


def deleting(count: int) -> Wanted:
    return Wanted(tool="delete_expenses", arguments={"ids": [f"E{n}" for n in range(count)]})


@pytest.mark.req("S1-13", "K14", "S1-14")
@pytest.mark.fault("X86")
def test_no_byte_that_a_model_is_shown_holds_a_token(rig: OfficeRig) -> None:
    async def script(rt: Runtime) -> Any:
        heard = await rt.receive("invoice the logo", principal="ana")
        plans: list[PlanValue] = []
        tools = ModelTools(rt=rt, heard=heard, seen=plans.append)
        steps: list[Any] = [
            {"tool": each.tool, "arguments": dict(each.arguments)} for each in INVOICE
        ]
        shown = [json.dumps(tools.specs()), await tools.call("act", {"steps": steps})]
        (plan,) = plans
        shown.append(await tools.call("status", {"id": plan.plan}))
        rig.office.refuses = {"issue"}
        partial = await rt.approve(token=token_of(plan), principal="ana")
        assert partial is not None
        rig.office.refuses = set()
        tokens = [token_of(plan), token_of(partial)]
        done = await rt.approve(token=tokens[1], purpose=Purpose.RETRY, principal="ana")
        shown += [value.to_model for value in (plan, partial, done) if value is not None]
        shown += [repr(value) for value in (plan, partial, done)]
        shown += [item.text for item in await rt.history()]
        shown.append((await rt.report(heard.turn)).text)
        return tokens, "\n".join(shown), done

    tokens, shown, done = rig.run(script)
    assert done.state is PlanState.DONE
    assert "ada@example.org" in shown
    for token in tokens:
        assert len(base64.urlsafe_b64decode(token)) == 24
        assert token not in shown
        assert token not in rig.bodies()
    assert len(set(tokens)) == 2


@pytest.mark.req("S1-14")
@pytest.mark.field("H4", "C19")
@pytest.mark.parametrize(("after_s", "state"), [(599.5, PlanState.DONE), (600.0, None)])
def test_a_yes_may_come_for_ten_minutes(
    rig: OfficeRig, after_s: float, state: PlanState | None
) -> None:
    async def script(rt: Runtime) -> Any:
        value = await proposed(rt)
        assert value.offer is not None
        assert value.offer.answer_by == rt.driver.clock.now() + 600.0
        await asyncio.sleep(after_s)  # virtual time
        try:
            done = await rt.approve(token=token_of(value), principal="ana")
        except ApprovalError as error:
            return error.problem
        return done.state if done else None

    assert rig.run(script) == (state or "expired")
    assert rig.office.done == (["pay"] if state else [])


@pytest.mark.field("H4")
@pytest.mark.parametrize(("after_s", "state"), [(3599.5, "undone"), (3600.0, "expired")])
def test_an_undo_may_come_for_an_hour(rig: OfficeRig, after_s: float, state: str) -> None:
    async def script(rt: Runtime) -> Any:
        done = await proposed(rt, [DRAFT])
        offer = await rt.offer(done.plan, Purpose.UNDO)
        assert offer is not None
        assert offer.answer_by == done.undo_by is not None
        ended_at = offer.answer_by - 3600.0
        await asyncio.sleep(ended_at - rt.driver.clock.now() + after_s)  # virtual time
        late = await rt.plan(done.plan)
        assert (late.undo_by is None) == (state == "expired")
        undo = rt.approve(token=offer.token, purpose=Purpose.UNDO, principal="ana")
        if late.undo_by is None:
            assert await rt.offer(done.plan, Purpose.UNDO) is None
            return (await refused(undo)).problem
        undone = await undo
        return str(undone.state) if undone else ""

    assert rig.run(script) == state


@pytest.mark.req("S1-15")
def test_the_record_holds_what_the_yes_is_bound_to_and_the_token_only_as_a_digest(
    rig: OfficeRig,
) -> None:
    async def script(rt: Runtime) -> Any:
        return await proposed(rt)

    value = rig.run(script)
    (record,) = rig.records(Kind.APPROVAL)
    assert record.id == approval_id(value.plan, Purpose.CONFIRM, 1)
    assert (record.tenant, record.session) == ("default", "main")
    frozen = record.frozen
    assert (frozen["plan"], frozen["principal"]) == (value.plan, "ana")
    assert (frozen["purpose"], frozen["attempt"]) == ("confirm", 1)
    assert str(frozen["hash"]).startswith("sha256:")
    assert len(str(record.changing["token"])) == len(str(record.changing["seal"])) == 64
    assert token_of(value) not in json.dumps([dict(frozen), dict(record.changing)])


@pytest.mark.req("S1-19", "S1-20", "K4")
@pytest.mark.field("C1", "C3")
@pytest.mark.fault("X80")
def test_of_fifty_yeses_at_once_one_runs_and_all_get_its_outcome(rig: OfficeRig) -> None:
    async def script(rt: Runtime) -> Any:
        value = await proposed(rt, INVOICE)
        token = token_of(value)
        yes = [rt.approve(token=token, principal="ana") for _ in range(50)]
        return await asyncio.gather(*yes)

    values = rig.run(script)
    assert rig.office.done == ["draft", "issue", "mail", "remind"]
    assert {value.state for value in values} == {PlanState.DONE}
    assert sorted(value.replayed for value in values) == [False] + [True] * 49
    assert len({(value.plan, value.text, value.operations) for value in values}) == 1
    assert rig.events().count("approval_taken") == 1


@pytest.mark.services
@pytest.mark.fault("X80")
def test_eight_at_a_time_press_each_of_two_hundred_buttons(rig: OfficeRig) -> None:
    async def script(rt: Runtime) -> Any:
        for number in range(200):
            session = f"s{number}"
            value = await proposed(rt, [paying(f"p{number}")], session=session)
            token = token_of(value)
            yes = (rt.approve(token=token, principal="ana", session=session) for _ in range(8))
            values = await asyncio.gather(*yes)
            assert sum(not each.replayed for each in values if each) == 1

    rig.run(script)
    assert len(rig.office.effects) == len({str(effect) for effect in rig.office.effects}) == 200


@pytest.mark.req("S1-23")
@pytest.mark.fault("X86")
def test_words_confirm_while_no_model_is_running_and_only_the_users_own_do(rig: OfficeRig) -> None:
    async def script(rt: Runtime) -> Any:
        value = await proposed(rt)
        for origin in ("tool", "timer", "model", "email"):
            await rt.receive("yes", principal="ana", origin=origin)
        waits = await rt.plan(value.plan)
        heard = await rt.receive("Sí, por favor", principal="ana")
        done = await at_rest(rt, value.plan)
        return waits, done, await rt.report(heard.turn)

    waits, done, report = rig.run(script)
    assert (waits.state, done.state) == (PlanState.PROPOSED, PlanState.DONE)
    assert "Pay ada 100 cents" in report.text
    assert report.operations == done.operations
    assert rig.office.done == ["pay"]


@pytest.mark.req("S1-25")
@pytest.mark.field("C22", "C23")
@pytest.mark.parametrize(
    "words",
    [
        "Sí, pero cambia la fecha",
        "disallow",
        "no, don't approve",
        "yes?",
        "“yes”",
        "ok",
        "1",
        "> yes",
    ],
)
def test_other_words_cancel_the_plan_and_kill_its_token(rig: OfficeRig, words: str) -> None:
    async def script(rt: Runtime) -> Any:
        old = await proposed(rt)
        heard = await rt.receive(words, principal="ana")
        new = await rt.propose([paying("ben")], ask=heard.ask("act"))
        with pytest.raises(ApprovalError) as refused:
            await rt.approve(token=token_of(old), principal="ana")
        done = await rt.approve(token=token_of(new), principal="ana")
        return await rt.plan(old.plan), refused.value, done, await rt.history()

    old, refused, done, history = rig.run(script)
    assert old.state is PlanState.EXPIRED
    assert (refused.problem, refused.again) == ("expired", "")
    assert done.state is PlanState.DONE
    assert [str(effect) for effect in rig.office.effects] == ["('pay', ['ben', 100])"]
    assert words in [item.text for item in history if item.role == "user"]
    assert any("it was no yes" in item.text for item in history)


@pytest.mark.field("C17", "C23")
def test_a_no_in_words_declines_it_and_is_told(rig: OfficeRig) -> None:
    async def script(rt: Runtime) -> Any:
        value = await proposed(rt)
        heard = await rt.receive("no", principal="ana")
        with pytest.raises(ApprovalError, match="declined already"):
            await rt.approve(token=token_of(value), principal="ana")
        again = await rt.decline(token=token_of(value), principal="ana")
        return await rt.plan(value.plan), again, await rt.report(heard.turn)

    value, again, report = rig.run(script)
    assert value.state is again.state is PlanState.DECLINED
    assert report.text.startswith("You said no. Nothing was done.")
    assert rig.office.effects == []


@pytest.mark.req("S1-26")
@pytest.mark.fault("X98")
@pytest.mark.parametrize(
    ("said", "runs"),
    [
        ("sí", False),
        ("yes 1", False),
        ("3", True),
        ("BORRAR", True),
        ("delete", True),
        ("4", False),
        ("BORRAR 3", False),
    ],
)
def test_to_delete_three_takes_their_number_or_the_word(
    rig: OfficeRig, said: str, runs: bool
) -> None:
    async def script(rt: Runtime) -> Any:
        value = await proposed(rt, [deleting(3)])
        await rt.receive(said, principal="ana")
        return value, await at_rest(rt, value.plan)

    value, after = rig.run(script)
    assert "Type 3 or DELETE to go ahead." in value.text
    assert after.state is (PlanState.DONE if runs else PlanState.EXPIRED)
    assert rig.office.done == (["expenses"] if runs else [])


@pytest.mark.req("S1-26")
@pytest.mark.field("C24")
def test_a_numbered_yes_is_no_way_around_words_that_have_to_be_typed(rig: OfficeRig) -> None:
    async def script(rt: Runtime) -> Any:
        first, typed, last = await proposed_at_once(rt, [PAY], [deleting(3)], [paying("ben")])
        await rt.receive("yes 2", principal="ana")
        return first, typed, last, [await rt.plan(v.plan) for v in (first, typed, last)]

    _, typed, last, after = rig.run(script)
    assert "yes 2" not in typed.text
    assert "yes 3" in last.text
    states = [value.state for value in after]
    assert states == [PlanState.PROPOSED, PlanState.EXPIRED, PlanState.PROPOSED]
    assert rig.office.effects == []


@pytest.mark.field("B4", "C7", "C25", "C27")
def test_numbered_answers_in_reverse_order_reach_each_its_own_plan(rig: OfficeRig) -> None:
    async def script(rt: Runtime) -> Any:
        amounts = {"ada": 100, "ben": 200, "cy": 300, "dan": 400}
        plans = await proposed_at_once(rt, *[[paying(*each)] for each in amounts.items()])
        await rt.receive("yes 4", principal="ana")
        await rt.receive("no 3", principal="ana")
        await rt.receive("confirmo 2", principal="ana")
        await rt.receive("yes 2", principal="ana")  # It is over: these are words for the model.
        return [(await at_rest(rt, each.plan)).state for each in plans]

    states = rig.run(script)
    done, no, waits = PlanState.DONE, PlanState.DECLINED, PlanState.PROPOSED
    assert states == [waits, done, no, done]
    assert rig.office.effects == [("pay", ["dan", 400]), ("pay", ["ben", 200])]


@pytest.mark.field("C24", "C25")
def test_a_number_that_no_question_has_is_no_answer_and_closes_the_last(rig: OfficeRig) -> None:
    async def script(rt: Runtime) -> Any:
        value = await proposed(rt)
        await rt.receive("yes, 2", principal="ana")
        await rt.receive("yes", principal="ana")
        return await at_rest(rt, value.plan)

    assert rig.run(script).state is PlanState.EXPIRED
    assert rig.office.effects == []


@pytest.mark.field("C24")
def test_a_yes_to_another_question_runs_nothing(rig: OfficeRig) -> None:
    async def script(rt: Runtime) -> Any:
        value = await proposed(rt)
        heard = await rt.receive("go on", principal="ana", origin="timer")
        await rt.ask(heard, "Do you want the newsletter?")
        await rt.receive("yes", principal="ana")
        return await rt.plan(value.plan)

    assert rig.run(script).state is PlanState.PROPOSED
    assert rig.office.effects == []


@pytest.mark.field("C1", "C12", "C13")
def test_a_yes_is_for_this_plan_and_for_no_later_one_of_the_same_tool(rig: OfficeRig) -> None:
    async def script(rt: Runtime) -> Any:
        first = await proposed(rt)
        await rt.receive("yes", principal="ana")
        await at_rest(rt, first.plan)
        later = await proposed_at_once(rt, [paying("ben")], [PAY])
        for value in later:
            with pytest.raises(ApprovalError):
                await rt.approve(token=token_of(first) + "x", principal="ana")
            replayed = await rt.approve(token=token_of(first), principal="ana")
            assert replayed is not None
            assert (replayed.plan, replayed.replayed) == (first.plan, True)
            assert (await rt.plan(value.plan)).state is PlanState.PROPOSED
        return later

    rig.run(script)
    assert rig.office.done == ["pay"]


@pytest.mark.field("C5")
def test_an_approved_plan_never_asks_again_however_the_yes_was_given(rig: OfficeRig) -> None:
    async def script(rt: Runtime) -> Any:
        plans = await proposed_at_once(rt, *[[paying(f"p{n}")] for n in range(5)])
        question = plans[3].questions[0]
        values = [
            await rt.approve(token=token_of(plans[0]), principal="ana"),
            await rt.approve(token=token_of(plans[1]), principal="ana", patience_s=0.0),
            await rt.approve(plans[2].plan, principal="ana"),
            await rt.approve(question, principal="ana"),
            await rt.approve(
                "",
                token=token_of(plans[4]),
                principal="ana",
                purpose=Purpose.CONFIRM,
                tenant="default",
                session="main",
                patience_s=1.0,
            ),
        ]
        return [(await at_rest(rt, value.plan)).state for value in values if value]

    assert rig.run(script) == [PlanState.DONE] * 5
    assert rig.events().count("asked") == 5


@pytest.mark.req("S1-58")
@pytest.mark.field("H4", "C24")
@pytest.mark.parametrize("after_s", [1.0, 601.0])
def test_who_first_asks_why_it_did_not_work_may_still_try_it_again(
    rig: OfficeRig, after_s: float
) -> None:
    rig.office.refuses = {"issue"}

    async def script(rt: Runtime) -> Any:
        value = await proposed(rt, INVOICE)
        partial = await rt.approve(token=token_of(value), principal="ana")
        assert partial is not None
        await rt.receive("why?", principal="ana")
        await asyncio.sleep(after_s)  # virtual time
        dead = await refused(
            rt.approve(token=token_of(partial), purpose=Purpose.RETRY, principal="ana")
        )
        rig.office.refuses = set()
        offer = await rt.offer(value.plan, Purpose.RETRY)
        assert offer is not None
        assert offer.answer_by == rt.driver.clock.now() + 600.0
        asked = await rt.plan(value.plan)
        await asyncio.sleep(599.5)  # virtual time
        await rt.receive("yes", principal="ana")
        return partial, dead, asked, await at_rest(rt, value.plan)

    partial, dead, asked, done = rig.run(script)
    assert partial.text.endswith("Shall I retry?")
    assert (dead.problem, dead.again) == ("expired", "")
    assert asked.text.endswith("Shall I retry?")
    assert (done.state, done.attempt) == (PlanState.DONE, 2)
    assert rig.office.done == ["draft", "issue", "mail", "remind"]


@pytest.mark.req("S1-40")
def test_to_try_again_as_the_person_needs_no_question_to_be_open(rig: OfficeRig) -> None:
    rig.office.refuses = {"issue"}

    async def script(rt: Runtime) -> Any:
        value = await proposed(rt, INVOICE)
        await rt.approve(token=token_of(value), principal="ana")
        await rt.receive("why?", principal="ana")
        rig.office.refuses = set()
        done = await rt.retry(value.plan, principal="ana")
        return done, await rt.approve(token=token_of(value), principal="ana")

    done, first = rig.run(script)
    assert (done.state, done.attempt) == (PlanState.DONE, 2)
    assert (first.state, first.attempt, first.replayed) == (PlanState.PARTIAL, 1, True)
    assert "Couldn't: Issue the draft" in first.text
    assert (len(first.operations), len(done.operations)) == (2, 5)
    assert rig.office.done == ["draft", "issue", "mail", "remind"]


@pytest.mark.req("S1-58")
@pytest.mark.parametrize("by_token", [True, False])
def test_who_takes_a_half_done_plan_back_is_not_asked_any_more_whether_to_go_on(
    rig: OfficeRig, by_token: bool
) -> None:
    rig.office.refuses = {"issue"}

    async def script(rt: Runtime) -> Any:
        value = await proposed(rt, INVOICE)
        partial = await rt.approve(token=token_of(value), principal="ana")
        if by_token:
            offer = await rt.offer(value.plan, Purpose.UNDO)
            assert offer is not None
            undone = await rt.approve(token=offer.token, purpose=Purpose.UNDO, principal="ana")
        else:
            undone = await rt.undo(value.plan, principal="ana")
        await rt.receive("yes", principal="ana")
        await asyncio.sleep(5.0)  # virtual time
        return partial, undone, await rt.plan(value.plan)

    partial, undone, after = rig.run(script)
    assert partial.text.endswith("Shall I retry?")
    assert (undone.state, undone.questions) == (PlanState.UNDONE, ())
    assert "retry" not in undone.text
    assert after.state is PlanState.UNDONE
    assert rig.office.done == ["draft", "delete"]
