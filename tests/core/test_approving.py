"""A person's word about a plan: yes, no, something else, too late; each once, and only theirs."""

from dataclasses import replace
from typing import Any

import pytest

from landed.core.approval import (
    ApprovalState,
    Problem,
    Purpose,
    approval_id,
    approval_record,
    is_sealed,
    sealed,
    sealing_key,
    token_digest,
    token_name,
)
from landed.core.arrival import Offering, Planned
from landed.core.changes import Record
from landed.core.key import ask_name
from landed.core.outcome import Acknowledged, AnswerLost, Refused
from landed.core.plan import PlanEvent, PlanState, plan_record
from landed.core.question import About, QuestionState
from tests.core.build import SENT_AT
from tests.core.conversation import wanting
from tests.core.plans import ANSWER_S, OFFICE, SEND_S, WHOLE, Office, approval, draft, issue, note

FULL = Refused(reason="the series is closed")
YES = "approval/plan-T1/confirm/1"
RETRY = "approval/plan-T1/retry/2"


def proposed(**fields: Any) -> Office:
    office = Office(keys=(sealing_key(b"s3cret"),))
    office.propose(*WHOLE, **fields)
    return office


def partial() -> Office:
    """The plan that broke off at its second step; another attempt is offered."""
    office = Office(keys=(sealing_key(b"s3cret"),))
    office.run(*WHOLE)
    office.carried_out("D1", FULL)
    return office


def edit(office: Office, record: Record) -> None:
    """Somebody writes into the store behind everybody's back."""
    office.store = replace(office.store, records={**office.store.records, record.id: record})


# Proposed.


def test_a_plan_that_needs_a_yes_is_written_with_it_and_its_question_and_nothing_leaves():
    office = Office()
    assert office.propose(*WHOLE) == ["plan-T1 proposed", "q-1 asked", f"{YES} approval_offered"]
    assert office.leaves == []
    held = office.approvals[YES]
    assert (held.state, held.question, office.question.subject) == ("open", "q-1", YES)
    assert (office.question.about, office.question.principal) == (About.PLAN, "ann")
    assert is_sealed(held, office.keys)
    assert office.store.names[token_name(token_digest("tok"))] == YES
    assert office.store.names[ask_name(office.plan.ask)] == "plan-T1"
    assert (office.lap(after_s=1.0), office.leaves) == ([], [])


def test_words_that_have_to_be_typed_are_in_the_approval_and_in_its_question():
    office = proposed(typed=("3", "DELETE"))
    assert office.approvals[YES].typed == office.question.typed == ("3", "DELETE")


def test_a_plan_that_is_previewed_anew_takes_the_place_of_the_one_before():
    office = proposed()
    written = office.propose(*WHOLE, token="tok2", supersedes="plan-T1")
    assert written[:4] == [
        "plan-T2 proposed",
        "plan-T1 superseded",
        f"{YES} approval_lapsed",
        "q-1 lapsed",
    ]
    assert office.plans["plan-T1"].why == "plan-T2"
    assert office.press("tok", of=YES)[0] == f"{YES} approval_refused"
    assert office.problem is Problem.OVER
    assert office.states("plan-T1", "plan-T2") == ["superseded", "proposed"]


def test_a_plan_that_is_over_is_not_superseded_by_a_new_preview_of_it():
    office = proposed()
    office.answer(None, said="what was it about?")
    written = office.propose(*WHOLE, token="tok2", supersedes="plan-T1")
    assert "plan-T1 superseded" not in written
    assert office.states("plan-T1") == ["expired"]


def test_an_offer_without_a_token_takes_no_name():
    office = Office()
    plan = wanting([draft()], OFFICE, state=PlanState.PROPOSED, answer_by=SENT_AT + ANSWER_S)
    office.lap(Planned(plan=plan, approval=approval(plan), question="Shall I?"))
    assert not [name for name in office.store.names if name.startswith("approval/")]
    assert office.answer(True, said="yes")[-1] == "op-1 sent"


# Yes.


@pytest.mark.parametrize("by", ["words", "button"])
def test_a_yes_takes_the_approval_and_starts_the_plan_in_one_unit(by):
    office = proposed()
    office.now += 10.0
    written = office.answer(True, said="yes") if by == "words" else office.press()
    started = ["plan-T1 plan_approved", f"{YES} approval_taken"]
    assert [each for each in written if each in started] == started
    assert written[-3:] == ["plan-T1 stepped", "op-1 made", "op-1 sent"]
    assert ("q-1 approved" in written, office.problem) == (True, Problem.NONE)
    assert office.leaves == ["send op-1 1"]
    assert office.plan.send_by == office.now + SEND_S == office.operations["op-1"].send_by
    assert (office.approvals[YES].by, office.approvals[YES].at) == ("ann", office.now)
    assert office.question.answered_by == "ann"


@pytest.mark.fault("X68")
def test_of_two_clicks_the_second_finds_it_taken_and_starts_nothing():
    office = proposed()
    office.press()
    assert office.press() == [f"{YES} approval_refused"]
    assert (office.problem, office.leaves) == (Problem.USED, [])
    assert office.approvals[YES].problem is Problem.USED
    assert len(office.operations) == 1


@pytest.mark.fault("X68")
def test_two_clicks_that_arrive_in_the_same_lap_are_one_yes():
    office = proposed()
    office.lap(office.pressing(), office.pressing())
    assert office.heard == [Problem.NONE, Problem.USED]
    assert office.leaves == ["send op-1 1"]
    office.carried_out("D1", "F1", "M1")
    assert (office.plan.state, len(office.operations)) == (PlanState.DONE, 3)


def test_a_yes_in_words_after_the_button_answers_nothing():
    office = proposed()
    office.press()
    assert office.answer(True, said="yes") == ["in-T2 received", "T2 opened"]


@pytest.mark.req("S1-16")
@pytest.mark.parametrize("name", ["principal", "tenant", "session"])
def test_a_yes_of_somebody_elses_uses_nothing_up(name):
    office = proposed()
    another: dict[str, Any] = {name: "another"}
    assert office.press(**another) == [f"{YES} approval_refused"]
    assert (office.problem, office.leaves) == (Problem.MISMATCH, [])
    office.press()
    assert (office.problem, office.leaves) == (Problem.NONE, ["send op-1 1"])


@pytest.mark.req("S1-22")
@pytest.mark.parametrize("purpose", [Purpose.RETRY, Purpose.UNDO])
def test_a_yes_to_something_else_does_not_start_a_plan(purpose):
    office = proposed()
    office.press(of=YES, purpose=purpose)
    assert (office.problem, office.leaves) == (Problem.MISMATCH, [])


# Tampered.


@pytest.mark.req("S1-17")
@pytest.mark.fault("X83")
def test_a_plan_that_was_edited_in_the_store_does_not_run():
    office = proposed()
    plan = office.plan
    steps = (replace(plan.steps[0], arguments={"client": "C9", "text": "logo"}), *plan.steps[1:])
    edit(office, plan_record(replace(plan, steps=steps)))
    assert office.press() == [f"{YES} approval_refused"]
    assert (office.problem, office.leaves) == (Problem.TAMPERED, [])
    assert office.approvals[YES].problem is Problem.TAMPERED
    assert office.states("plan-T1") == ["proposed"]


@pytest.mark.req("S1-16")
@pytest.mark.fault("X40")
@pytest.mark.parametrize("wait_s", [1.0, ANSWER_S], ids=["in time", "too late"])
def test_to_be_refused_gives_an_edited_approval_no_right_seal(wait_s):
    office = proposed()
    edit(office, approval_record(replace(office.approvals[YES], principal="eve")))
    for _ in range(3):
        assert office.press(principal="eve") == [f"{YES} approval_refused"]
        assert (office.problem, office.leaves) == (Problem.TAMPERED, [])
        office.now += wait_s
    assert not is_sealed(office.approvals[YES], office.keys)


def test_a_taken_yes_that_is_opened_again_in_the_store_is_good_for_nothing():
    office = proposed()
    office.press()
    edit(office, approval_record(replace(office.approvals[YES], state=ApprovalState.OPEN)))
    office.press()
    assert office.problem is Problem.TAMPERED


def test_after_a_new_secret_a_yes_that_was_offered_before_it_is_good_while_the_old_one_is_kept():
    office = proposed()
    office.keys = (sealing_key(b"new"), *office.keys)
    office.press()
    assert office.problem is Problem.NONE
    assert office.approvals[YES].seal == sealed(office.approvals[YES], office.keys[:1]).seal
    late = proposed()
    late.keys = (sealing_key(b"new"),)
    late.press()
    assert late.problem is Problem.TAMPERED


# No.


@pytest.mark.parametrize("by", ["words", "button"])
def test_a_no_declines_the_plan_and_nothing_of_it_runs_later(by):
    office = proposed()
    written = office.answer(False, said="no") if by == "words" else office.press(yes=False)
    assert "plan-T1 plan_declined" in written
    assert "q-1 declined" in written
    assert office.states("plan-T1", YES, "q-1") == ["declined", "declined", "no"]
    assert (office.plan.by, office.leaves) == ("ann", [])
    office.press()
    assert (office.problem, office.leaves) == (Problem.DECLINED, [])
    assert office.lap(after_s=1e5) == []


def test_a_strangers_no_declines_nothing():
    office = proposed()
    office.press(yes=False, principal="bob")
    assert (office.problem, office.states("plan-T1")) == (Problem.MISMATCH, ["proposed"])


# Something else, or too late.


def test_other_words_close_the_question_and_the_plan_expires_because_of_them():
    office = proposed()
    written = office.answer(None, said="make it two")
    assert written[-3:] == ["q-1 lapsed", f"{YES} approval_lapsed", "plan-T1 expired"]
    assert (office.plan.why, office.plan.by) == ("something else was answered", "ann")
    office.press()
    assert (office.problem, office.leaves) == (Problem.EXPIRED, [])


def test_other_words_that_come_too_late_are_not_why_it_expired():
    office = proposed()
    office.now += ANSWER_S
    office.answer(None, said="make it two")
    assert (office.plan.why, office.plan.by) == ("nobody answered in time", "clock")


@pytest.mark.parametrize("yes", [True, False])
@pytest.mark.parametrize("by", ["words", "button"])
def test_what_comes_too_late_changes_nothing_but_that_the_plan_has_expired(yes, by):
    office = proposed()
    office.now += ANSWER_S
    assert office.plan.expired(office.now)
    if by == "words":
        office.answer(yes, said="yes" if yes else "no")
    else:
        office.press(yes=yes)
    assert (office.problem, office.leaves) == (Problem.EXPIRED, [])
    assert office.states("plan-T1", YES) == ["expired", "lapsed"]
    assert (office.plan.by, office.plan.why) == ("clock", "nobody answered in time")
    assert office.question.state is not QuestionState.OPEN


def test_the_clock_ends_a_plan_that_nobody_answered():
    office = proposed()
    written = office.tell(PlanEvent.EXPIRED, by="clock", why="nobody answered in time")
    assert written == ["plan-T1 expired", f"{YES} approval_lapsed", "q-1 lapsed"]
    office.tell(PlanEvent.EXPIRED, by="clock")
    assert office.problem is Problem.OVER


def test_a_plan_that_the_agents_side_drops_is_abandoned_and_a_yes_to_it_is_over():
    office = proposed()
    written = office.tell(PlanEvent.ABANDONED, by="agent", why="the client called it off")
    assert written[0] == "plan-T1 abandoned"
    assert (office.plan.by, office.plan.why) == ("agent", "the client called it off")
    office.press()
    assert (office.problem, office.leaves) == (Problem.OVER, [])


@pytest.mark.req("K21")
@pytest.mark.parametrize("event", [PlanEvent.ABANDONED, PlanEvent.EXPIRED])
def test_a_plan_that_has_begun_cannot_be_dropped_any_more(event):
    office = proposed()
    office.press()
    assert office.tell(event) == []
    assert (office.problem, office.states("plan-T1")) == (Problem.OVER, ["running"])


# The same yes, handed out anew.


def test_a_yes_that_is_handed_out_anew_makes_the_token_before_it_good_no_more():
    office = proposed()
    assert office.offer(Purpose.CONFIRM, "new") == [f"{YES} approval_renewed"]
    assert office.store.names[token_name(token_digest("new"))] == YES
    office.press("tok")
    assert (office.problem, office.leaves) == (Problem.MISMATCH, [])
    office.press("new")
    assert office.leaves == ["send op-1 1"]


def test_to_hand_it_out_anew_does_not_make_it_last_longer():
    office = proposed()
    office.now += ANSWER_S - 1.0
    office.offer(Purpose.CONFIRM, "new")
    office.now += 1.0
    office.press("new")
    assert office.problem is Problem.EXPIRED


@pytest.mark.parametrize(
    ("purpose", "token"), [(Purpose.RETRY, "r"), (Purpose.UNDO, "u"), (Purpose.CONFIRM, "c")]
)
def test_nothing_is_offered_that_could_not_follow(purpose, token):
    office = proposed()
    office.press()
    assert office.offer(purpose, token) == []
    assert office.problem is Problem.OVER


def test_one_that_lapsed_is_offered_anew_and_asked_about_anew_while_the_plan_stands():
    office = partial()
    office.answer(None, said="why?")
    assert office.states(RETRY, "q-2") == ["lapsed", "lapsed"]
    written = office.offer(Purpose.RETRY, "again", question="Shall I retry?")
    assert written == ["q-3 asked", f"{RETRY} approval_renewed"]
    assert (office.approvals[RETRY].question, office.question.subject) == ("q-3", RETRY)
    assert office.answer(True, said="yes")[-1] == "op-3 sent"


def test_other_words_change_nothing_where_the_approval_was_taken_behind_our_back():
    office = proposed()
    edit(office, approval_record(replace(office.approvals[YES], state=ApprovalState.TAKEN)))
    office.answer(None, said="what was it about?")
    assert office.states("plan-T1", YES) == ["proposed", "taken"]


def test_a_yes_that_was_answered_is_not_handed_out_anew():
    office = partial()
    office.answer(False, said="no")
    assert office.offer(Purpose.RETRY, "again") == []
    assert office.problem is Problem.OVER


def test_an_offer_for_another_attempt_than_the_next_is_over():
    office = partial()
    ahead = replace(approval(office.plan, Purpose.RETRY, token="x"), attempt=7)
    assert office.lap(Offering(approval=ahead)) == []
    assert office.problem is Problem.OVER


# Another attempt.


@pytest.mark.req("S1-38")
def test_a_plan_that_broke_off_is_the_same_plan_once_more_with_a_yes_of_its_own():
    office = partial()
    assert office.states("plan-T1", RETRY) == ["partial", "open"]
    assert (office.question.subject, office.question.text) == (RETRY, "Shall I retry?")
    assert office.offer(Purpose.RETRY, "again") == [f"{RETRY} approval_renewed"]
    written = office.press("again", purpose=Purpose.RETRY)
    assert written[:2] == ["plan-T1 retried", f"{RETRY} approval_taken"]
    assert (office.plan.id, office.plan.attempt, len(office.plans)) == ("plan-T1", 2, 1)
    assert office.plan.send_by == office.now + SEND_S
    assert (office.plan.ended_at, office.plan.why) == (0.0, "")


@pytest.mark.req("S1-39", "K7")
def test_what_is_done_is_not_done_again_and_what_had_no_effect_gets_a_key_of_its_own():
    office = partial()
    before = office.operations
    office.answer(True, said="yes")
    assert office.leaves == ["send op-3 1"]
    assert office.at == ["done", "out", "waiting"]
    assert [place.attempt for place in office.plan.places] == [1, 2, 2]
    again = office.operations["op-3"]
    assert (again.tool, again.retries, again.arguments) == ("issue", "op-2", {"draft": "D1"})
    assert again.key not in {each.key for each in before.values()}
    office.carried_out("F1", "M1")
    assert office.states("plan-T1") == ["done"]
    assert [o.tool for o in office.operations.values()] == ["draft", "issue", "issue", "mail"]
    assert office.operations["op-1"] == before["op-1"]


@pytest.mark.req("S1-40", "K7")
def test_the_yes_to_the_first_attempt_starts_nothing_after_the_second():
    office = partial()
    office.answer(True, said="yes")
    office.carried_out(FULL)
    assert office.plan.attempt == 2
    office.press("tok", of=YES)
    assert (office.problem, office.leaves) == (Problem.USED, [])
    third = approval_id("plan-T1", Purpose.RETRY, 3)
    assert office.approvals[third].state is ApprovalState.OPEN
    office.press("", purpose=Purpose.RETRY, of=RETRY)
    assert office.problem is Problem.USED
    office.press("", purpose=Purpose.RETRY, of=third)
    assert (office.problem, office.plan.attempt) == (Problem.NONE, 3)
    assert office.operations["op-4"].retries == "op-3"


def test_a_no_to_another_attempt_leaves_the_plan_as_it_ended():
    office = partial()
    office.answer(False, said="no")
    assert office.states("plan-T1", RETRY) == ["partial", "declined"]
    assert office.plan.why == "the service refused: the series is closed"


def test_other_words_to_another_attempt_leave_the_plan_as_it_ended():
    office = partial()
    office.answer(None, said="hm")
    assert office.states("plan-T1", RETRY) == ["partial", "lapsed"]


def test_a_plan_that_needed_no_yes_is_tried_again_without_one_and_says_who_wanted_it():
    office = Office()
    office.ask(note("a"), note("b"))
    office.reply("op-1", FULL)
    assert (office.questions, office.approvals) == ({}, {})
    written = office.retry()
    assert written[0] == "plan-T1 retried"
    assert (office.plan.by, office.plan.attempt) == ("ann", 2)
    assert office.operations["op-2"].retries == "op-1"
    office.carried_out("N1", "N2")
    assert office.states("plan-T1") == ["done"]


def test_what_is_not_partial_is_not_tried_again():
    office = Office()
    office.ask(note())
    assert office.retry() == []
    assert office.problem is Problem.OVER


def test_while_nobody_can_tell_another_attempt_is_not_offered():
    office = Office()
    office.run(*WHOLE)
    office.carried_out("D1", AnswerLost(reason="timed out"))
    assert office.states("plan-T1") == ["in_doubt"]
    office.offer(Purpose.RETRY, "again")
    assert (office.problem, RETRY in office.approvals) == (Problem.OVER, False)


def test_the_time_to_answer_for_another_attempt_is_as_long_as_that_for_the_plan_was():
    office = partial()
    assert office.approvals[RETRY].answer_by == office.now + ANSWER_S
    office.now += ANSWER_S
    office.answer(True, said="yes")
    assert (office.problem, office.states("plan-T1")) == (Problem.EXPIRED, ["partial"])


def test_a_change_of_mind_closes_what_was_offered_for_the_plan_before():
    office = partial()
    office.revise(draft(text="two logos"))
    assert office.states("plan-T1", RETRY) == ["superseded", "lapsed"]
    assert office.questions["q-2"].state is QuestionState.LAPSED


def test_a_question_that_is_answered_first_keeps_its_answer_when_the_plan_goes_on():
    office = proposed()
    office.press()
    office.carried_out("D1", "F1", Acknowledged(result={"id": "M1"}))
    assert office.questions["q-1"].state is QuestionState.YES
    assert office.done()


def test_a_yes_to_a_plan_that_went_on_by_another_way_is_over():
    office = proposed()
    moved = replace(office.plan, state=PlanState.DECLINED, version=office.plan.version + 1)
    edit(office, plan_record(moved))
    assert office.press() == [f"{YES} approval_refused"]
    assert office.problem is Problem.OVER


def test_two_plans_wait_side_by_side_and_each_yes_starts_its_own():
    office = proposed()
    office.propose(draft(text="cards"), issue(), token="tok2")
    assert office.question.number == 2
    office.press("tok", of=YES)
    assert office.states("plan-T1", "plan-T2") == ["running", "proposed"]
    office.answer(True, question="q-2", said="yes 2")
    assert office.states("plan-T2") == ["running"]
