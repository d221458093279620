"""Plans end to end, over the invoicing service and a mailbox: one preview, one yes, each step once.

Each test plays a script of its own in the simulated world of the invoice demo.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from landed.core.approval import Purpose
from landed.core.canonical import Json
from landed.core.errors import ApprovalError
from landed.core.operation_record import from_record
from landed.core.plan import At, PlanState, plan_from
from landed.core.session import Input, input_of
from landed.core.value import PlanValue
from landed.runtime.acting import ModelTools
from landed.stores.sqlite import open_sqlite
from landed.testing.invoices.clerk import Clerk, Steps
from landed.testing.invoices.scenarios import (
    CANCEL,
    INVOICE,
    INVOICES,
    MAIL_FAILS,
    OTHER_DATE,
    REDEPLOY,
    RETRY,
)
from landed.testing.invoices.stage import START, InvoiceStage, play, run
from landed.testing.invoices.switches import switched
from landed.testing.invoices.words import EVE, LANGUAGES, READ, WORDS
from landed.testing.models import Wanted
from landed.testing.sim import World
from landed.testing.worlds.mail_faults import MailFault
from landed.tools.letters import operation_of
from tests.reading import held, texts

Script = Callable[[Clerk, InvoiceStage], Awaitable[None]]
WORDS_EN = WORDS["en"]
ORDER, DRAFT = READ[WORDS_EN.order], READ[WORDS_EN.draft]
HOUR_S = 3600.0


def played(script: Script, **changed: Any) -> InvoiceStage:
    """Play a script of one's own; what it asserts is asserted."""
    scenario = replace(INVOICE, **changed)
    with World(None, START) as world:
        stage = InvoiceStage(scenario, world, open_sqlite(":memory:"))
        stage.scenario = replace(scenario, script=lambda clerk: script(clerk, stage))
        try:
            stage.play(scenario.kill)
        finally:
            stage.close()
        assert not stage.unwitnessed
    return stage


def rows(stage: InvoiceStage) -> dict[str, int]:
    """How many rows each table of the service has."""
    sql = stage.books.ledger.sql
    named = sql.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    tables = [name for (name,) in named if not name.startswith("sqlite_")]
    return {name: sql.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in tables}


async def ordered(clerk: Clerk, delivery: str = "d1") -> tuple[Input, PlanValue]:
    return await clerk.order(WORDS_EN.order, delivery=delivery)


async def told(clerk: Clerk, heard: Input, plan: Json) -> str:
    """What a model is told that sends this as the argument of `act`."""
    return await ModelTools(rt=clerk.rt, heard=heard).call("act", json.dumps(plan).encode())


def sent(stage: InvoiceStage) -> list[str]:
    return [line.text for line in stage.timeline.lines if line.type == "tool.sent"]


def for_contact(steps: Steps, contact: str, to: str) -> Steps:
    first, issue, mail, remind = steps
    return (
        Wanted(tool=first.tool, arguments={**first.arguments, "contact": contact}),
        issue,
        Wanted(tool=mail.tool, arguments={**mail.arguments, "to": to}),
        remind,
    )


# The plan and its preview.


@pytest.mark.req("S1-01", "S1-02", "S1-11", "S1-61")
def test_one_call_of_one_tool_is_four_steps_that_build_on_one_another() -> None:
    async def script(clerk: Clerk, stage: InvoiceStage) -> None:
        heard, plan = await ordered(clerk)
        acting = [spec["name"] for spec in ModelTools(rt=clerk.rt, heard=heard).specs()]
        assert acting == ["act", "status", "ask", "revise"]
        assert [step.tool for step in plan.steps] == [one.tool for one in ORDER]
        over = await clerk.agree(plan, delivery="d2")
        assert over.state is PlanState.DONE

    stage = played(script)

    _, issued, mailed, reminded = sent(stage)
    assert "draft=D1" in issued
    assert "invoice=F-2026-0001" in mailed
    assert "invoice=F-2026-0001" in reminded
    assert len([line for line in stage.timeline.lines if line.type == "plan.ask"]) == 1


@pytest.mark.req("S1-03")
@pytest.mark.parametrize(
    ("place", "arguments", "named"),
    [
        (1, {"draft": "$3"}, "step 2 (issue_invoice)"),
        (1, {"draft": "$2"}, "step 2 (issue_invoice)"),
        (3, {"invoice": "$1", "days_before": 5}, "step 4 (schedule_reminder)"),
    ],
    ids=["later", "itself", "wrong type"],
)
def test_a_step_builds_only_on_earlier_ones_of_the_right_type(
    place: int, arguments: dict[str, Json], named: str
) -> None:
    steps: list[dict[str, Any]] = [
        {"tool": one.tool, "arguments": dict(one.arguments)} for one in ORDER
    ]
    steps[place]["arguments"] = arguments

    async def script(clerk: Clerk, stage: InvoiceStage) -> None:
        heard = await clerk.listen(WORDS_EN.order, delivery="d1")
        assert named in await told(clerk, heard, {"steps": steps})

    assert sent(played(script)) == []


@pytest.mark.req("S1-04", "S1-06", "S1-08")
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_preview_has_real_figures_and_days_in_the_users_language(language: str) -> None:
    async def script(clerk: Clerk, stage: InvoiceStage) -> None:
        _, plan = await clerk.order(WORDS[language].order, delivery="d1")
        point = "," if language == "es" else "."
        for figure in ("500", "105", "605"):
            assert f"{figure}{point}00" in plan.text
        assert ("el siguiente número" if language == "es" else "the next number") in plan.text
        assert "18/11/2026" in plan.text
        assert "13/11/2026" in plan.text
        assert plan.text.endswith("¿Lo hago?" if language == "es" else "Shall I do it?")

    played(script, language=language)


@pytest.mark.req("S1-04")
def test_no_sum_of_the_models_is_taken() -> None:
    lines: Json = [{"what": "logo", "unit_price": "500.00", "total": "999.00"}]
    plan: Json = {
        "steps": [{"tool": "create_draft", "arguments": {"contact": "C1", "lines": lines}}]
    }

    async def script(clerk: Clerk, stage: InvoiceStage) -> None:
        heard = await clerk.listen(WORDS_EN.draft, delivery="d1")
        assert "total" in await told(clerk, heard, plan)

    assert sent(played(script)) == []


@pytest.mark.req("S1-05")
def test_a_preview_writes_nothing() -> None:
    async def script(clerk: Clerk, stage: InvoiceStage) -> None:
        before = rows(stage)
        _, plan = await ordered(clerk)
        assert "next number" in plan.steps[1].summary
        assert rows(stage) == before
        assert not stage.box.mails()

    assert sent(played(script)) == []


@pytest.mark.req("S1-07")
def test_where_something_is_missing_the_whole_plan_is_invalid_and_asks_for_it() -> None:
    async def script(clerk: Clerk, stage: InvoiceStage) -> None:
        heard = await clerk.listen(WORDS_EN.order, delivery="d1")
        plan = await clerk.act(heard, for_contact(ORDER, "C2", "bruno@example.com"))
        assert plan.state is PlanState.INVALID
        assert "What is the email address of Bruno?" in plan.text
        assert plan.offer is None

    assert sent(played(script)) == []


@pytest.mark.req("S1-09", "S1-10")
def test_one_expense_goes_at_once_and_two_need_a_yes() -> None:
    def spend(what: str) -> Steps:
        return (Wanted(tool="create_expense", arguments={"what": what, "cents": 1200}),)

    def delete(*ids: str) -> Steps:
        return (Wanted(tool="delete_expenses", arguments={"expenses": list(ids)}),)

    async def script(clerk: Clerk, stage: InvoiceStage) -> None:
        heard = await clerk.listen("the receipts", delivery="d1")
        for what in ("paper", "ink", "tea"):
            assert (await clerk.act(heard, spend(what))).state is PlanState.DONE
        assert (await clerk.act(heard, delete("E1"))).state is PlanState.DONE
        several = await clerk.act(heard, delete("E2", "E3"))
        assert several.state is PlanState.PROPOSED
        assert (await clerk.agree(several, delivery="d2")).state is PlanState.DONE

    stage = played(script)

    assert len(sent(stage)) == 5
    assert len([line for line in stage.timeline.lines if line.type == "plan.ask"]) == 1


# The yes.


@pytest.mark.req("S1-13", "K14")
@pytest.mark.fault("X68")
@pytest.mark.parametrize("scenario", INVOICES, ids=lambda one: one.name)
def test_no_byte_that_a_model_is_sent_holds_a_token(scenario: Any) -> None:
    ran, stage = play(scenario)

    shown = [*stage.wire, *(item.text for item in (*ran.history, *ran.story))]
    assert shown
    assert stage.handed or scenario.name == "invoice-loop"
    for token in stage.handed:
        assert len(token) == 32
        assert not [text for text in shown if token in text]
        assert not [line for line in ran.timeline.lines if token in line.text]


@pytest.mark.req("S1-20", "S1-19", "S1-28", "K13")
def test_of_fifty_clicks_at_once_one_runs_and_all_hear_the_same() -> None:
    async def script(clerk: Clerk, stage: InvoiceStage) -> None:
        _, plan = await ordered(clerk)
        heard = await asyncio.gather(*(clerk.press(plan) for _ in range(50)))
        values = [value for value in heard if value is not None]
        assert len(values) == 50
        assert {(one.plan, one.state, one.text) for one in values} == {
            (plan.plan, PlanState.DONE, values[0].text)
        }
        assert sum(not one.replayed for one in values) == 1

    assert len(sent(played(script))) == 4


@pytest.mark.req("S1-18", "K12")
def test_a_stranger_hears_nothing_and_uses_nothing_up() -> None:
    async def script(clerk: Clerk, stage: InvoiceStage) -> None:
        _, plan = await ordered(clerk)
        said: list[str] = []
        for token in (stage.handed[-1], "x" * 32):
            with pytest.raises(ApprovalError) as refused:
                await clerk.rt.approve(token=token, principal=EVE, session=clerk.session)
            said.append(str(refused.value))
        assert said[0] == said[1]
        over = await clerk.press(plan)
        assert over is not None
        assert over.state is PlanState.DONE

    played(script)


@pytest.mark.req("S1-25")
@pytest.mark.parametrize("language", LANGUAGES)
def test_yes_but_another_date_is_a_new_plan_and_the_old_token_is_dead(language: str) -> None:
    words = WORDS[language]

    async def script(clerk: Clerk, stage: InvoiceStage) -> None:
        _, first = await clerk.order(words.order, delivery="d1")
        _, second = await clerk.order(words.other, delivery="d2")
        assert (await clerk.rt.plan(first.plan)).state is PlanState.EXPIRED
        assert second.plan != first.plan
        assert "08/11/2026" in second.text
        assert await clerk.press(first) is None
        assert (await clerk.agree(second, delivery="d3")).state is PlanState.DONE

    stage = played(script, language=language)

    assert len(sent(stage)) == 4
    assert run(replace(OTHER_DATE, language=language)).as_described


# Where a second one could come from.


@pytest.mark.req("S1-28")
def test_a_message_delivered_twice_is_one_plan_and_one_draft() -> None:
    async def script(clerk: Clerk, stage: InvoiceStage) -> None:
        both = await asyncio.gather(*(clerk.order(WORDS_EN.draft, delivery="d1") for _ in range(2)))
        assert both[0][0].id == both[1][0].id
        assert both[0][1].plan == both[1][1].plan

    assert len(sent(played(script))) == 1


@pytest.mark.req("S1-28")
def test_a_browser_that_repeats_its_request_gets_the_same_answer() -> None:
    async def script(clerk: Clerk, stage: InvoiceStage) -> None:
        _, plan = await ordered(clerk)
        first = await clerk.press(plan)
        again = await clerk.press(plan)
        assert first is not None
        assert again is not None
        assert (again.state, again.text, again.replayed) == (first.state, first.text, True)

    assert len(sent(played(script))) == 4


@pytest.mark.req("S1-28", "S1-35", "S1-36")
def test_a_person_who_sends_it_again_is_asked_first() -> None:
    async def script(clerk: Clerk, stage: InvoiceStage) -> None:
        await clerk.order(WORDS_EN.draft, delivery="d1")
        _, second = await clerk.order(WORDS_EN.draft, delivery="d2")
        assert second.state is PlanState.PROPOSED
        assert "Possible duplicate: D1 for Marta, 605.00" in second.text
        await clerk.listen("no", delivery="d3")
        assert (await clerk.rt.plan(second.plan)).state is PlanState.DECLINED

    assert len(sent(played(script))) == 1


@pytest.mark.req("S1-35")
def test_ten_minutes_later_the_same_draft_is_another_one() -> None:
    async def script(clerk: Clerk, stage: InvoiceStage) -> None:
        await clerk.order(WORDS_EN.draft, delivery="d1")
        await asyncio.sleep(601.0)  # virtual time
        _, second = await clerk.order(WORDS_EN.draft, delivery="d2")
        assert second.state is PlanState.DONE

    assert len(sent(played(script))) == 2


@pytest.mark.req("S1-28", "S1-34", "S1-30")
def test_a_model_that_sends_its_plan_five_times_makes_one_draft() -> None:
    async def script(clerk: Clerk, stage: InvoiceStage) -> None:
        heard = await clerk.listen(WORDS_EN.draft, delivery="d1")
        five = await asyncio.gather(*(clerk.act(heard, DRAFT) for _ in range(5)))
        assert {one.plan for one in five} == {five[0].plan}
        assert sum(not one.replayed for one in five) == 1

    assert len(sent(played(script))) == 1


@pytest.mark.req("S1-28")
def test_a_yes_delivered_twice_runs_the_plan_and_nothing_else() -> None:
    async def script(clerk: Clerk, stage: InvoiceStage) -> None:
        _, plan = await ordered(clerk)
        await asyncio.gather(*(clerk.agree(plan, delivery="d2") for _ in range(2)))
        over = await clerk.agree(plan, delivery="d2")
        assert (over.state, over.attempt) == (PlanState.DONE, 1)

    assert len(sent(played(script))) == 4


@pytest.mark.req("S1-30")
def test_a_key_of_the_models_is_refused() -> None:
    async def script(clerk: Clerk, stage: InvoiceStage) -> None:
        heard = await clerk.listen(WORDS_EN.draft, delivery="d1")
        arguments = {**DRAFT[0].arguments, "idempotency_key": "mine"}
        plan: Json = {"steps": [{"tool": "create_draft", "arguments": arguments}]}
        assert "filled by the runtime" in await told(clerk, heard, plan)

    assert sent(played(script)) == []


# Halfway.


@pytest.mark.req("S1-37", "S1-58")
def test_a_plan_that_breaks_off_says_where_in_four_parts() -> None:
    message = run(MAIL_FAILS).message

    parts = ("Done: drafted D1", "Couldn't: Email", "Not done because of that: Remind")
    places = [message.index(part) for part in (*parts, "Shall I retry?")]
    assert places == sorted(places)
    assert "550 5.1.1" in message
    assert message.endswith("Shall I retry?")


@pytest.mark.req("S4-44")
@pytest.mark.parametrize("looks", [True, False], ids=["can look", "nobody can look"])
def test_a_mail_whose_answer_was_lost_is_found_or_what_follows_waits(looks: bool) -> None:
    lost = MailFault(kind="lose_reply")
    ran = run(replace(INVOICE, mail_faults=(lost,), looks=looks))

    assert len(held(ran, "mailbox")) == 1
    assert len([text for text in texts(ran, "tool.sent") if "send_invoice" in text]) == 1
    assert (ran.message == run(INVOICE).message) is looks
    assert ("Not known yet: I may have emailed" in ran.message) is not looks
    assert ("Not done before that is known: Remind Marta" in ran.message) is not looks
    assert "Shall I retry?" not in ran.message


def test_a_greylisted_mail_is_sent_again_by_itself_under_the_same_id() -> None:
    ran = run(replace(INVOICE, mail_faults=(MailFault(kind="greylist", times=2),)))

    assert ran.as_described is True
    refused = [text for text in texts(ran, "mailbox") if "450" in text]
    assert len(refused) == 2
    (mail,) = ran.world["mailbox"]
    assert mail["message_id"] == "<op-a3@studio.example>"


@pytest.mark.req("S1-38", "S1-39", "S1-40", "S1-65", "F1-06")
def test_a_retry_is_the_same_plan_and_takes_no_other_number() -> None:
    async def script(clerk: Clerk, stage: InvoiceStage) -> None:
        _, plan = await ordered(clerk)
        first = await clerk.press(plan)
        assert first is not None
        assert (first.state, first.attempt) == (PlanState.PARTIAL, 1)
        second = await clerk.agree(plan, delivery="d2")
        assert (second.plan, second.state, second.attempt) == (plan.plan, PlanState.DONE, 2)
        assert [step.replayed for step in second.steps] == [True, True, False, False]
        again = await clerk.press(plan)
        assert again is not None
        assert (again.state, again.attempt, again.replayed) == (PlanState.PARTIAL, 1, True)

    stage = played(script, mail_faults=MAIL_FAILS.mail_faults)

    issued = [line for line in stage.timeline.lines if line.text.startswith("issued F-")]
    assert len(issued) == 1
    assert [text.split()[1].split("(")[0] for text in sent(stage)] == [
        *("create_draft", "issue_invoice", "send_invoice", "send_invoice", "schedule_reminder"),
    ]
    went = run(switched(RETRY, retry_new_plan=True))
    assert [one["id"] for one in went.world["invoices"]] == ["F-2026-0001", "F-2026-0002"]


@pytest.mark.req("S1-53", "S1-54")
def test_a_stop_in_the_first_step_finishes_it_and_offers_to_take_it_back() -> None:
    async def script(clerk: Clerk, stage: InvoiceStage) -> None:
        _, plan = await ordered(clerk)
        await clerk.listen("yes", delivery="d2")
        await clerk.until("tool.sent", "create_draft")
        over = await clerk.stop(plan)
        assert over.state is PlanState.STOPPED
        assert [step.at for step in over.steps] == [At.DONE, *[At.WAITING] * 3]
        assert over.undo_by is not None
        assert over.text.startswith("Stopped: 1 of 4 done.")
        back = await clerk.press(plan, Purpose.UNDO)
        assert back is not None
        assert back.state is PlanState.UNDONE
        assert not [one for one in stage.books.every("draft") if one["state"] == "open"]

    stage = played(script, faults=CANCEL.faults)

    assert [text.split()[1].split("(")[0] for text in sent(stage)] == [
        *("create_draft", "delete_draft")
    ]


@pytest.mark.req("S1-45")
def test_an_undo_is_good_for_an_hour_for_one_person_and_once() -> None:
    async def script(clerk: Clerk, stage: InvoiceStage) -> None:
        _, first = await clerk.order(WORDS_EN.draft, delivery="d1")
        assert await clerk.press(first, Purpose.UNDO, by=EVE) is None
        back = await clerk.press(first, Purpose.UNDO)
        assert back is not None
        assert back.state is PlanState.UNDONE
        again = await clerk.press(first, Purpose.UNDO)
        assert again is None or again.replayed
        _, second = await clerk.order(WORDS_EN.draft, delivery="d2")
        offer = await clerk.rt.offer(second.plan, Purpose.UNDO)
        assert offer is not None
        await asyncio.sleep(HOUR_S + 60.0)  # virtual time
        with pytest.raises(ApprovalError):
            await clerk.rt.approve(
                token=offer.token,
                purpose=Purpose.UNDO,
                principal=clerk.principal,
                session=clerk.session,
            )
        assert await clerk.rt.offer(second.plan, Purpose.UNDO) is None

    stage = played(script)

    assert [text.split()[1].split("(")[0] for text in sent(stage)].count("delete_draft") == 1


@pytest.mark.req("S1-48", "S1-63")
def test_a_plan_with_an_issued_invoice_offers_a_correction_and_no_undo() -> None:
    async def script(clerk: Clerk, stage: InvoiceStage) -> None:
        _, plan = await ordered(clerk)
        over = await clerk.agree(plan, delivery="d2")
        assert over.undo_by is None
        assert "it can be corrected" in over.text
        assert await clerk.rt.offer(plan.plan, Purpose.UNDO) is None

    played(script)


# Read afterwards.


@pytest.mark.req("S1-44")
@pytest.mark.fault("X82")
def test_killed_between_the_mail_and_its_record_there_is_one_mail() -> None:
    ran = run(REDEPLOY)

    assert texts(ran, "crash") == ["after:send:send_invoice"]
    assert len(held(ran, "mailbox")) == 1
    assert ran.reconciled


@pytest.mark.req("S1-60")
def test_a_mail_is_traced_back_to_the_sentence_that_asked_for_it() -> None:
    async def script(clerk: Clerk, stage: InvoiceStage) -> None:
        _, plan = await ordered(clerk)
        await clerk.agree(plan, delivery="d2")
        (mail,) = stage.box.mails()
        load = clerk.rt.driver.store.load
        (record,) = await load(operation_of(mail.message_id))
        operation = from_record(record)
        (plan_record,) = await load(operation.plan)
        kept = plan_from(plan_record)
        (heard,) = await load(kept.input)
        assert operation.tool == "send_invoice"
        assert operation.id in [place.record for place in kept.places]
        assert input_of(heard).text == WORDS_EN.order

    played(script)


@pytest.mark.req("S1-64")
def test_what_a_person_is_told_names_what_each_step_made_and_no_id_of_ours() -> None:
    async def script(clerk: Clerk, stage: InvoiceStage) -> None:
        heard, plan = await ordered(clerk)
        over = await clerk.agree(plan, delivery="d2")
        assert [(step.type, step.made) for step in over.steps[:2]] == [
            ("draft", "D1"),
            ("invoice", "F-2026-0001"),
        ]
        assert "D1" in over.text
        assert "F-2026-0001" in over.text
        for id in (plan.plan, heard.turn, *over.operations):
            assert id not in over.text.split()

    played(script)
