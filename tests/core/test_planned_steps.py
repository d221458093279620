"""Steps that refer to one another, are checked before they start, or depend on nothing but that."""

from dataclasses import replace
from typing import Any

import pytest

from landed.core.arrival import Checked, Planned
from landed.core.contract import Freshness
from landed.core.draft import Draft
from landed.core.key import unique_names
from landed.core.operation import Happened, Operation, State
from landed.core.outcome import Absent, Acknowledged, AnswerLost, Found, NotSent, Refused
from landed.core.plan import At, Place, PlanEvent, Wanted
from landed.core.preview import Changed, Preview
from landed.core.rules import RULES
from landed.core.scope import Check, Watch
from tests.core.build import SENT_AT, TABLE, operation, scope
from tests.core.conversation import TOOLS, Conversation, book, wanting
from tests.core.plans import (
    DRAFT,
    ISSUE,
    OFFICE,
    WHOLE,
    Office,
    draft,
    find,
    issue,
    note,
    shown,
)

LOST = AnswerLost(reason="timed out")
FULL = Refused(reason="the series is closed")
MOVED = (Changed(step=2, field="rate", was=21, now=10),)


def sent(office: Office) -> list[tuple[str, dict[str, object]]]:
    """Each call that left for the first time, with its arguments as they left."""
    ids = [move.after.id for move in office.moves if move.event.name == "sent"]
    return [(office.operations[id].tool, dict(office.operations[id].arguments)) for id in ids]


# What a preview kept for the send.


def test_what_the_preview_kept_is_what_the_send_uses():
    office = Conversation(tools={**TOOLS, "reserve": replace(TOOLS["reserve"], prepare=True)})
    kept = Preview(summary="a table", held={"token": "pt_1"})
    office.lap(Planned(plan=wanting([book()], office.tools, previews=(kept,))))
    assert office.leaves == ["send op-1 1"]
    assert office.operations["op-1"].prepared == {"token": "pt_1"}


# What a step refers to.


@pytest.mark.req("S4-44")
def test_what_a_step_refers_to_is_filled_in_when_it_starts():
    office = Office()
    office.run(*WHOLE)
    office.carried_out("D1", "F1", "M1")
    assert office.done()
    assert sent(office) == [
        ("draft", {"client": "C7", "text": "logo"}),
        ("issue", {"draft": "D1"}),
        ("mail", {"invoice": "F1", "to": "ada@example.com"}),
    ]
    assert [place.made for place in office.plan.places] == ["D1", "F1", "M1"]


def test_the_plan_keeps_the_reference_as_it_was_shown():
    office = Office()
    office.run(*WHOLE)
    before = office.plan.hash
    office.carried_out("D1", "F1", "M1")
    assert dict(office.plan.steps[1].arguments) == {"draft": "$1"}
    assert office.plan.hash == before


def test_a_read_that_makes_something_fills_what_refers_to_it():
    office = Office()
    office.ask(find("Ada"), draft("$1"))
    office.finds("C42")
    assert sent(office) == [("draft", {"client": "C42", "text": "logo"})]
    assert office.plan.places[0] == Place(at=At.DONE, record="ob-1", made="C42")


def test_a_read_may_itself_refer_to_what_another_read_found():
    reads = {"find": replace(OFFICE["find"], accepts={"name": "client"})}
    office = Office(tools={**OFFICE, **reads})
    office.ask(find("Ada"), find("$1"))
    office.finds("C1")
    (watch,) = [each for each in office.decided.commands if isinstance(each, Watch)]
    assert (watch.index, dict(watch.arguments)) == (1, {"name": "C1"})
    office.finds("C2")
    assert office.done()
    assert [
        record.frozen["arguments"]
        for record in office.store.records.values()
        if record.kind == "observation"
    ] == [{"name": "Ada"}, {"name": "C1"}]


@pytest.mark.parametrize("result", [None, {"number": 1}, "D1", {"id": None}])
def test_where_a_step_made_nothing_that_has_an_id_the_plan_ends_at_what_refers_to_it(result):
    office = Office()
    office.run(*WHOLE)
    office.reply("op-1", Acknowledged(result=result))
    assert (office.states("plan-T1"), office.at) == (["partial"], ["done", "broken", "waiting"])
    assert office.plan.why == "step 1 made nothing that draft could refer to"
    assert sent(office) == [("draft", {"client": "C7", "text": "logo"})]


def test_where_a_read_found_nothing_a_read_that_refers_to_it_is_not_made():
    reads = {"find": replace(OFFICE["find"], accepts={"name": "client"})}
    office = Office(tools={**OFFICE, **reads})
    office.ask(find("Ada"), find("$1"))
    office.see(Acknowledged(result={"found": 0}))
    assert (office.states("plan-T1"), office.leaves) == (["partial"], [])
    assert office.plan.why == "step 1 made nothing that name could refer to"


def test_a_step_that_refers_to_another_takes_its_names_only_when_it_starts():
    tools = {**OFFICE, "issue": replace(ISSUE, target=("draft/{draft}",))}
    plan = wanting(WHOLE, tools)
    assert plan.steps[1].names == ()
    assert plan.steps[1].needs == (0,)
    office = Office(tools=tools)
    office.run(*WHOLE)
    office.carried_out("D1")
    assert office.store.names["target/default/office/draft%2FD1"] == "op-2"


def test_two_steps_that_say_the_same_of_different_things_are_not_the_same():
    plan = wanting([draft(), note(), issue("$1")], OFFICE)
    other = wanting([draft("C8"), note(), issue("$1")], OFFICE)
    again = wanting([draft(), note("b"), issue("$1")], OFFICE)
    assert plan.steps[2].identity != other.steps[2].identity
    assert plan.steps[2].identity == again.steps[2].identity


@pytest.mark.req("S4-44")
def test_what_refers_to_a_step_that_nobody_can_tell_about_waits_until_that_is_known():
    office = Office()
    office.run(*WHOLE)
    office.reply("op-1", LOST)
    assert (office.states("plan-T1"), office.leaves) == (["in_doubt"], ["lookup op-1"])
    assert office.lap(after_s=0.1) == []
    office.look("op-1", Found(result={"id": "D1"}))
    assert office.leaves == ["send op-2 1"]
    assert sent(office)[1] == ("issue", {"draft": "D1"})


# Whether it may still be carried out as it was approved.


def guarded(*, permission: str = "", **contract: Any) -> Office:
    return Office(tools={**OFFICE, "issue": replace(ISSUE, permission=permission, **contract)})


def test_a_step_with_a_permission_asks_just_before_it_starts():
    office = guarded(permission="invoice.issue")
    office.run(*WHOLE)
    office.carried_out("D1")
    assert office.leaves == ["check plan-T1 1"]
    (check,) = [each for each in office.decided.commands if isinstance(each, Check)]
    assert (check.permission, check.tool, check.plan) == ("invoice.issue", "issue", office.plan)
    assert (dict(check.arguments), check.ask) == ({"draft": "$1"}, office.plan.ask)
    assert (office.lap(), office.leaves) == ([], [])
    assert office.may()[-1] == "op-2 sent"
    office.carried_out("F1", "M1")
    assert office.done()


def test_what_is_not_allowed_any_more_ends_the_plan_there():
    office = guarded(permission="invoice.issue")
    office.run(*WHOLE)
    office.carried_out("D1")
    written = office.may(refused="ann may not issue invoices any more")
    assert written[0] == "plan-T1 broke_off"
    assert (office.at, office.leaves) == (["done", "broken", "waiting"], [])
    assert office.plan.why == "ann may not issue invoices any more"
    assert len(sent(office)) == 1


@pytest.mark.req("S3-36")
def test_what_was_agreed_to_is_checked_against_the_facts_and_no_retry_is_offered_once_they_moved():
    office = guarded(preview=True)
    office.run(*WHOLE, previews=shown(*WHOLE, rate=21))
    office.carried_out("D1")
    assert office.leaves == ["check plan-T1 1"]
    before = office.store.records["plan-T1"].frozen
    written = office.may(changed=MOVED)
    assert written == ["plan-T1 broke_off"]
    assert (office.plan.changed, office.plan.why) == (MOVED, "rate has changed")
    assert [each for each in office.approvals if "retry" in each] == []
    assert office.retry() == []
    # The plan is never changed: the new preview is another plan.
    assert office.store.records["plan-T1"].frozen == before
    office.propose(*WHOLE, token="tok2", supersedes="plan-T1")
    assert office.states("plan-T1", "plan-T3") == ["superseded", "proposed"]
    assert office.plans["plan-T3"].supersedes == "plan-T1"


@pytest.mark.parametrize(
    ("contract", "asks"),
    [
        ({"preview": True}, True),
        ({"preview": True, "freshness": Freshness.TOLERATE, "tolerates": ("rate",)}, True),
        ({"preview": True, "freshness": Freshness.NONE}, False),
        ({"preview": True, "freshness": Freshness.NONE, "permission": "x"}, True),
        ({}, False),
    ],
)
def test_facts_are_checked_where_there_is_a_preview_whose_facts_must_hold(contract, asks):
    office = guarded(**contract)
    office.run(*WHOLE)
    office.carried_out("D1")
    assert (office.leaves == ["check plan-T1 1"]) is asks


def test_a_plan_that_nobody_had_to_agree_to_was_previewed_just_before_and_is_not_checked():
    office = Office(tools={**OFFICE, "note": replace(OFFICE["note"], preview=True)})
    office.ask(note())
    assert office.leaves == ["send op-1 1"]


@pytest.mark.parametrize("refused", ["", "not any more"])
def test_a_check_that_comes_back_when_the_step_is_past_says_nothing(refused):
    office = guarded(permission="invoice.issue")
    office.run(*WHOLE)
    office.carried_out("D1")
    office.may()
    stale = Checked(subject="plan-T1", index=1, refused=refused)
    office.carried_out("F1")
    assert office.lap(stale) == []
    office.carried_out("M1")
    assert office.lap(stale) == []
    assert office.done()


def test_a_check_that_was_lost_in_a_crash_is_made_again():
    office = guarded(permission="invoice.issue")
    office.run(*WHOLE)
    office.carried_out("D1")
    office.crash()
    assert office.leaves == ["check plan-T1 1"]


def test_while_draining_nothing_is_checked():
    office = guarded(permission="invoice.issue")
    office.run(draft(), issue())
    office.draining = True
    office.carried_out("D1")
    assert office.leaves == []


def test_a_tool_that_promises_something_else_by_now_ends_the_plan_before_it_begins():
    office = Office()
    office.propose(*WHOLE)
    office.deployed = {"issue": "sha256:another"}
    written = office.answer(True, said="yes")
    assert written[-1] == "plan-T1 broke_off"
    assert (office.plan.why, office.leaves) == ("what issue promises has changed", [])
    assert [each.field for each in office.plan.changed] == ["what issue promises"]


# One effect for each business rule.


@pytest.mark.req("S4-39")
def test_of_two_plans_that_come_under_one_rule_the_second_has_no_effect():
    refund = replace(ISSUE, keyed="", compares_payload=False, unique=("refund/{order}/{reason}",))
    office = Office(tools={**OFFICE, "refund": refund})
    call = Wanted(tool="refund", arguments={"order": "4", "reason": "late", "cents": 500})
    more = Wanted(tool="refund", arguments={"order": "4", "reason": "late", "cents": 600})
    other = Wanted(tool="refund", arguments={"order": "4", "reason": "broken", "cents": 600})
    office.ask(call)
    office.lands("op-1", "R1")
    (name,) = unique_names(refund, tenant="default", arguments=call.arguments)
    assert office.store.names[name] == "op-1"
    office.ask(more)
    assert office.states("plan-T2", "op-2") == ["partial", "withdrawn"]
    assert (
        office.plan.why == "there may be one refund/4/late, and op-1 is that, or may turn out to be"
    )
    office.ask(other)
    assert office.states("op-3") == ["sent"]


@pytest.mark.req("S4-39")
def test_what_may_still_turn_out_to_be_the_one_stands_in_the_way_and_what_had_no_effect_does_not():
    refund = replace(ISSUE, unique=("refund/{order}",))
    office = Office(tools={**OFFICE, "refund": refund})
    call = Wanted(tool="refund", arguments={"order": "4", "cents": 500})
    office.ask(call)
    office.reply("op-1", LOST)
    office.ask(replace(call, arguments={"order": "4", "cents": 600}))
    assert office.states("op-2") == ["withdrawn"]
    office.tell(PlanEvent.STOP_ASKED, plan="plan-T1")
    office.look("op-1", Absent())
    office.lap(after_s=60.0)
    assert office.leaves == ["close op-1"]
    office.look("op-1", Absent())
    assert office.operations["op-1"].state is State.FAILED
    office.ask(replace(call, arguments={"order": "4", "cents": 700}))
    assert office.states("op-3") == ["sent"]


def test_a_rule_that_needs_what_was_not_given_ends_the_plan_and_sends_nothing():
    office = Office(tools={**OFFICE, "note": replace(OFFICE["note"], unique=("note/{day}",))})
    office.ask(note())
    assert (office.states("plan-T1"), office.leaves) == (["partial"], [])
    assert "needs an argument that was not given" in office.plan.why


# Names that go from one operation to the other.


def beside(held: State, **fields: Any) -> tuple[Draft, Operation, Operation]:
    old = operation(held, id="op-old")
    new = operation(State.RECORDED, id="op-new")
    return Draft(scope(old, new, **fields), RULES, SENT_AT), old, new


def test_a_name_that_was_handed_over_is_not_lost_when_the_one_before_settles():
    draft, old, new = beside(State.UNKNOWN)
    draft.hand_over(old, new)
    assert draft.names[TABLE] == new.id
    draft.move(old, Happened.FOUND, "it was found")
    assert draft.names[TABLE] == new.id


def test_a_name_that_is_anothers_by_now_is_not_handed_over():
    draft, old, new = beside(State.FAILED, holders={TABLE: "op-z9"})
    draft.hand_over(old, new)
    assert (draft.names[TABLE], draft.frees) == ("op-z9", [])


# Independent steps.


@pytest.mark.req("K30", "S4-44")
def test_independent_steps_wait_only_for_what_they_refer_to():
    office = Office()
    office.ask(find(), draft("$1"), note("a"), note("b"), independent=True)
    assert office.leaves == ["watch plan-T1 0", "send op-1 1", "send op-2 1"]
    assert office.at == ["waiting", "waiting", "out", "out"]
    office.lands("op-2", "N2")
    assert office.states("plan-T1") == ["running"]
    office.finds("C7")
    assert office.at == ["done", "out", "out", "done"]
    office.lands("op-1", "N1")
    office.lands("op-3", "D1")
    assert office.done()


@pytest.mark.req("K30")
def test_in_sequence_each_step_waits_for_the_one_before_it():
    office = Office()
    office.ask(note("a"), note("b"))
    assert office.leaves == ["send op-1 1"]


@pytest.mark.req("K30", "S4-44")
def test_an_independent_step_that_had_no_effect_blocks_only_what_refers_to_it():
    office = Office()
    office.ask(draft(), note("a"), issue("$1"), independent=True)
    office.reply("op-1", FULL)
    assert (office.states("plan-T1"), office.at) == (["running"], ["broken", "out", "waiting"])
    written = office.lands("op-2", "N1")
    assert written[-1] == "plan-T1 broke_off"
    assert office.at == ["broken", "done", "waiting"]
    assert "the series is closed" in office.plan.why


@pytest.mark.req("K30", "S4-44")
def test_it_is_in_doubt_only_when_nothing_else_can_go_on():
    office = Office()
    office.ask(draft(), note("a"), issue("$1"), independent=True)
    office.reply("op-1", LOST)
    assert office.states("plan-T1") == ["running"]
    office.lands("op-2", "N1")
    assert office.states("plan-T1") == ["in_doubt"]
    office.look("op-1", Found(result={"id": "D1"}))
    assert (office.states("plan-T1"), office.at[2]) == (["running"], "out")
    office.carried_out("F1")
    assert office.done()


@pytest.mark.req("K30")
def test_two_in_doubt_are_found_out_one_by_one():
    office = Office()
    office.ask(note("a"), note("b"), independent=True)
    office.reply("op-1", LOST)
    office.reply("op-2", LOST)
    assert office.states("plan-T1") == ["in_doubt"]
    written = office.look("op-1", Found(result={"id": "N1"}))
    assert written == ["op-1 found", "plan-T1 stepped", "plan-T1 doubted"]
    office.look("op-2", Found(result={"id": "N2"}))
    assert office.done()


@pytest.mark.req("K30")
def test_an_independent_read_without_an_answer_blocks_only_what_refers_to_it():
    office = Office()
    office.ask(find(), note("a"), draft("$1"), independent=True)
    office.see(LOST)
    assert office.at == ["broken", "out", "waiting"]
    office.lands("op-1", "N1")
    assert (office.states("plan-T1"), office.plan.why) == (["partial"], "timed out")


@pytest.mark.req("K30")
def test_an_independent_step_that_may_not_start_lets_the_others_go_on():
    office = Office(tools={**OFFICE, "draft": replace(DRAFT, permission="draft")})
    office.ask(draft(), note("a"), note("b"), independent=True)
    assert office.leaves == ["check plan-T1 0", "send op-1 1", "send op-2 1"]
    office.may(refused="ann may not draft")
    assert office.at == ["broken", "out", "out"]
    office.lands("op-1", "N1")
    office.lands("op-2", "N2")
    assert (office.states("plan-T1"), office.plan.why) == (["partial"], "ann may not draft")


@pytest.mark.req("K30")
def test_facts_that_moved_for_one_independent_step_are_kept_when_another_breaks_too():
    checked = replace(ISSUE, preview=True, accepts={})
    office = Office(tools={**OFFICE, "issue": checked})
    office.run(issue("D1"), note("a"), previews=shown(issue(), note()), independent=True)
    office.may(changed=MOVED)
    office.reply("op-1", FULL)
    assert (office.states("plan-T1"), office.plan.changed) == (["partial"], MOVED)
    assert [each for each in office.approvals if "retry" in each] == []


@pytest.mark.req("K30")
def test_where_the_first_independent_step_ends_the_plan_nothing_else_is_begun_in_that_lap():
    office = Office()
    office.ask(note("a"), note("a"), independent=True)
    # The second is the same thing as the first, which is not settled.
    assert office.at == ["out", "broken"]
    office.lands("op-1", "N1")
    assert office.states("plan-T1", "op-2") == ["partial", "withdrawn"]


@pytest.mark.req("K30", "S1-39")
def test_another_attempt_at_an_independent_plan_runs_what_broke_and_what_waited_for_it():
    office = Office()
    office.ask(draft(), note("a"), issue("$1"), independent=True)
    office.reply("op-1", FULL)
    office.lands("op-2", "N1")
    office.retry()
    assert (office.leaves, office.at) == (["send op-3 1"], ["out", "done", "waiting"])
    assert office.operations["op-3"].retries == "op-1"
    office.carried_out("D1", "F1")
    assert office.done()


def test_an_independent_read_that_is_late_for_a_plan_that_was_taken_over_writes_nothing():
    office = Office()
    office.ask(find(), draft("$1"), independent=True)
    office.revise(note("a"))
    assert office.leaves == ["send op-1 1"]
    assert office.observed() == [("find", "dropped", None)]


# Once more.


@pytest.mark.req("S1-39", "K7")
def test_a_call_that_never_left_is_sent_under_its_own_key_within_the_attempt():
    office = Office()
    office.ask(note("a"))
    office.reply("op-1", NotSent(reason="no route"))
    office.lap(after_s=1.0)
    assert (office.leaves, len(office.operations)) == (["send op-1 2"], 1)


def test_a_step_that_broke_before_it_had_an_operation_has_none_to_link_to():
    office = guarded(permission="invoice.issue")
    office.run(*WHOLE)
    office.carried_out("D1")
    office.may(refused="not now")
    office.answer(True, said="yes")
    office.may()
    assert office.operations["op-2"].retries == ""
    assert office.plan.places[1].attempt == 2


def test_a_read_that_had_no_answer_is_made_again_in_the_next_attempt():
    office = Office()
    office.ask(find(), draft("$1"))
    office.see(LOST)
    office.retry()
    assert office.leaves == ["watch plan-T1 0"]
    office.finds("C7")
    assert office.at == ["done", "out"]
    assert office.observed() == [("find", "unanswered", None), ("find", "answered", {"id": "C7"})]


def test_the_bound_on_a_first_send_begins_anew_with_the_attempt():
    office = Office()
    office.ask(note("a"), note("b"), send_by=office.now + 5.0)
    office.now += 5.0
    office.lands("op-1", "N1")
    assert office.states("plan-T1", "op-2") == ["partial", "withdrawn"]
    office.retry()
    assert office.states("op-3") == ["sent"]
    assert office.operations["op-3"].retries == "op-2"


@pytest.mark.req("S1-39")
def test_what_a_retry_puts_in_the_place_of_another_is_no_second_effect():
    office = Office()
    office.run(*WHOLE)
    office.carried_out("D1", FULL)
    office.answer(True, said="yes")
    office.reply("op-2", Acknowledged(result={"id": "F0"}), attempt=1)
    assert office.operations["op-2"].contradicted
    assert office.operations["op-2"].state is State.FAILED
    office.carried_out("F1", "M1")
    assert office.done()


def test_a_change_of_mind_about_a_plan_that_is_shown_keeps_what_was_done():
    office = Office(tools=dict(TOOLS))
    office.ask(book("Fri"), book("Sun"))
    office.carried_out("R1", "R2")
    office.revise(book("Fri"), book("Sat"), drop=["op-2"])
    assert [step.keeps for step in office.plan.steps] == ["op-1", ""]
    assert office.at == ["done", "out"]
