"""Stopping a plan: a mark in its record, after which nothing more starts, and done stays done."""

from dataclasses import replace

import pytest

from landed.core.approval import Problem, Purpose, approval_id
from landed.core.changes import Guard
from landed.core.contract import Interrupt
from landed.core.outcome import (
    Absent,
    Acknowledged,
    AnswerLost,
    Found,
    NotSent,
    Refused,
)
from landed.core.plan import PlanState
from landed.core.undo import undoable
from tests.core.build import events
from tests.core.conversation import RESERVE, TOOLS, book, text
from tests.core.plans import DRAFT, OFFICE, WHOLE, Office, draft, find, issue, mail, note

LOST = AnswerLost(reason="timed out")
FULL = Refused(reason="the series is closed")
# The order goes out whatever happens: a stop waits for its answer.
FINISHES = replace(OFFICE["note"], on_interrupt=Interrupt.FINISH)
HURRIES = replace(OFFICE["note"], stops_midway=True)
FOUR = (note("a"), note("b"), note("c"), note("d"))


def under_way(*calls, **tools) -> Office:
    """A plan of these calls, the first of which was just sent."""
    office = Office(tools={**OFFICE, "note": FINISHES, **tools})
    office.ask(*(calls or FOUR))
    return office


# A mark, and nothing more of it starts.


@pytest.mark.req("S1-52")
def test_a_stop_is_written_on_the_plan_and_tells_the_runner_nothing():
    office = under_way()
    written = office.stop()
    assert written == ["plan-T1 stop_asked", "op-1 unwanted"]
    assert (office.leaves, office.plan.by) == ([], "ann")
    assert (office.states("plan-T1"), office.lap()) == (["stopping"], [])


@pytest.mark.req("S1-53")
@pytest.mark.field("H1")
def test_the_step_in_flight_finishes_and_what_is_after_it_is_not_done():
    office = under_way()
    office.stop()
    written = office.lands("op-1", "N1")
    assert written == ["op-1 acknowledged", "plan-T1 stepped", "plan-T1 stopped"]
    assert (office.leaves, office.at) == ([], ["done", "waiting", "waiting", "waiting"])
    assert (office.plan.done, office.plan.ended_at, len(office.operations)) == (1, office.now, 1)
    assert office.lap(after_s=1e4) == []


@pytest.mark.req("S1-52")
def test_the_mark_is_read_before_each_step_whoever_wrote_it():
    office = under_way()
    office.lands("op-1", "N1")
    # The next lap begins from the record, as another process has left it.
    office.stop()
    office.crash()
    assert office.leaves == ["close op-2"]
    office.look("op-2", Found(result={"id": "N2"}))
    assert (office.states("plan-T1"), len(office.operations)) == (["stopped"], 2)


@pytest.mark.req("S1-52")
def test_a_first_send_goes_in_only_with_the_plan_as_it_was_read():
    office = under_way(note=replace(FINISHES, concurrency=1))
    office.lands("op-1", "N1")
    assert office.decided.changes.guards == ()  # The plan moves in the same unit: as good as that.
    late = Office(tools=office.tools)
    late.ask(note("a"))
    late.reply("op-1", NotSent(reason="no route"))
    assert late.states("op-1") == ["recorded"]
    assert late.lap(after_s=1.0) == ["op-1 sent"]
    assert late.decided.changes.guards == (Guard(id="plan-T1", version=late.plan.version),)


@pytest.mark.req("S1-54")
def test_what_ran_before_the_stop_can_be_taken_back_where_all_of_it_can():
    office = under_way(draft(), issue(), draft=replace(DRAFT, on_interrupt=Interrupt.FINISH))
    office.stop()
    office.lands("op-1", "D1")
    assert undoable(office.plan, office.operations, office.contracts, office.now)
    assert office.offer(Purpose.UNDO, "undo") != []
    final = Office()
    final.run(*WHOLE)
    final.carried_out("D1", "F1")
    final.stop()
    final.look("op-3", Absent())
    assert final.states("plan-T1") == ["stopped"]
    assert not undoable(final.plan, final.operations, final.contracts, final.now)
    assert (final.undo(), final.problem) == ([], Problem.OVER)


# What is in flight.


def test_what_its_contract_does_not_wait_for_is_found_out_and_never_sent_again():
    office = under_way(note=OFFICE["note"])
    written = office.stop()
    assert written == ["plan-T1 stop_asked", "op-1 unwanted", "op-1 answer_lost", "op-1 closing"]
    assert office.leaves == ["stop op-1", "close op-1"]
    assert office.look("op-1", Absent())[-1] == "plan-T1 stopped"
    assert (office.at[0], office.leaves) == ("broken", [])


def test_what_turns_out_to_have_landed_is_done_although_it_was_stopped():
    office = under_way(note=OFFICE["note"])
    office.stop()
    office.look("op-1", Found(result={"id": "N1"}))
    assert (office.states("plan-T1"), office.at[0]) == (["stopped"], "done")
    assert office.plan.places[0].made == "N1"


def test_what_was_recorded_and_not_sent_is_withdrawn_and_is_as_if_it_had_not_begun():
    office = under_way()
    office.reply("op-1", NotSent(reason="no route"))
    written = office.stop()
    assert written == [
        "plan-T1 stop_asked",
        "op-1 withdrawn",
        "plan-T1 stepped",
        "plan-T1 stopped",
    ]
    assert (office.at[0], office.leaves) == ("waiting", [])


def test_a_call_that_takes_the_stop_token_is_told_and_what_it_says_then_counts():
    office = under_way(note=replace(HURRIES, on_interrupt=Interrupt.FINISH))
    office.stop()
    assert "hurry op-1" in office.leaves
    office.reply("op-1", Acknowledged(result={"id": "N1"}, complete=False))
    assert (office.states("plan-T1"), office.plan.places[0].how) == (["stopped"], "partly")


def test_a_read_that_is_out_is_dropped_and_said_to_be():
    office = under_way(find(), draft("$1"))
    written = office.stop()
    assert written == ["plan-T1 stop_asked", "ob-1 dropped", "plan-T1 stopped"]
    assert office.observed() == [("find", "dropped", None)]
    assert office.finds() == []
    assert office.leaves == []


def test_a_plan_that_is_in_doubt_stops_once_that_is_known():
    office = under_way()
    office.reply("op-1", LOST)
    assert office.states("plan-T1") == ["in_doubt"]
    office.stop()
    assert office.states("plan-T1") == ["stopping"]
    office.look("op-1", Found(result={"id": "N1"}))
    assert office.states("plan-T1") == ["stopped"]


def test_while_nobody_can_tell_it_is_still_stopping_and_a_person_is_asked():
    deaf = replace(FINISHES, keyed="", compares_payload=False, lookup=False, close=False)
    office = under_way(note=deaf)
    office.stop()
    office.reply("op-1", LOST)
    office.lap(after_s=900.0)
    assert office.states("plan-T1", "op-1") == ["stopping", "undecided"]


def test_a_check_that_comes_back_after_the_stop_starts_nothing():
    office = under_way(note=replace(FINISHES, permission="note.write"))
    assert office.leaves == ["check plan-T1 0"]
    assert office.stop() == ["plan-T1 stop_asked", "plan-T1 stopped"]
    assert office.may() == []
    assert (office.leaves, office.operations) == ([], {})


def test_steps_of_a_plan_whose_steps_are_independent_are_all_settled():
    office = under_way(*FOUR[:3], note=FINISHES)
    office = Office(tools=office.tools)
    office.ask(*FOUR[:3], independent=True)
    assert office.leaves == ["send op-1 1", "send op-2 1", "send op-3 1"]
    office.stop()
    office.lands("op-2", "N2")
    office.reply("op-3", FULL)
    assert office.states("plan-T1") == ["stopping"]
    office.lands("op-1", "N1")
    assert (office.states("plan-T1"), office.at) == (["stopped"], ["done", "done", "broken"])


# A hard stop.


@pytest.mark.req("S1-52")
def test_a_hard_stop_waits_for_nobody_and_leaves_it_in_doubt():
    office = under_way()
    written = office.stop(hard=True)
    assert written[:3] == ["plan-T1 stop_asked", "op-1 unwanted", "op-1 answer_lost"]
    assert "stop op-1" in office.leaves
    assert office.states("op-1", "plan-T1") == ["unknown", "stopping"]
    office.look("op-1", Absent())
    assert office.states("plan-T1") == ["stopped"]


def test_a_clean_stop_can_be_made_harder_and_not_the_other_way_round():
    office = under_way()
    office.stop()
    assert office.states("op-1") == ["sent"]
    written = office.stop(hard=True, by="bea")
    assert written[0] == "op-1 answer_lost"
    assert "stop op-1" in office.leaves
    assert office.stop() == []
    assert office.problem is Problem.OVER
    assert office.plan.by == "ann"


def test_a_second_hard_stop_changes_nothing_more():
    office = under_way()
    office.stop(hard=True)
    assert (office.stop(hard=True), office.leaves) == ([], [])


# When there is nothing to stop.


@pytest.mark.parametrize("state", ["done", "partial", "stopped", "undoing"])
def test_what_is_at_rest_is_not_stopped(state):
    office = under_way(note("a"), note("b"))
    if state == "stopped":
        office.stop()
    office.lands("op-1", "N1")
    if state != "stopped":
        office.carried_out(FULL if state == "partial" else "N2")
    if state == "undoing":
        office.undo()
    assert office.states("plan-T1") == [state]
    assert office.stop() == []
    assert (office.problem, office.states("plan-T1")) == (Problem.OVER, [state])


def test_a_stop_before_the_yes_is_a_no_and_that_yes_is_good_no_more():
    office = Office()
    office.propose(*WHOLE)
    written = office.stop()
    yes = approval_id("plan-T1", Purpose.CONFIRM, 1)
    assert written == [f"{yes} approval_declined", "q-1 declined", "plan-T1 plan_declined"]
    assert (office.plan.by, office.question.answered_by) == ("ann", "ann")
    office.press()
    assert (office.problem, office.leaves) == (Problem.DECLINED, [])


def test_a_stop_before_a_yes_that_nobody_is_asked_for_is_a_no_too():
    office = Office()
    office.propose(*WHOLE, question="")
    office.stop()
    assert office.states("plan-T1") == ["declined"]
    assert office.questions == {}


def test_a_stop_leaves_the_yes_to_another_plan_alone():
    office = Office()
    office.propose(*WHOLE)
    office.propose(draft(text="cards"), issue(), mail(), token="tok2")
    office.stop()
    assert office.states("plan-T1", "plan-T2") == ["proposed", "declined"]
    assert office.press("tok", of="approval/plan-T1/confirm/1")[-1] == "op-1 sent"


def test_a_plan_that_was_stopped_is_not_tried_again():
    office = under_way()
    office.stop()
    office.lands("op-1", "N1")
    assert office.retry() == []
    assert office.offer(Purpose.RETRY, "again") == []
    assert (office.problem, office.states("plan-T1")) == (Problem.OVER, ["stopped"])


@pytest.mark.req("S1-52")
def test_a_change_of_mind_takes_over_what_is_stopping():
    office = under_way(note("a"), note("b"))
    office.stop()
    office.revise(note("c"))
    assert office.plans["plan-T1"].state is PlanState.SUPERSEDED
    office.lands("op-1", "N1")
    assert office.operations["op-1"].state == "confirmed"


# What it owes.


@pytest.mark.fault("X05")
def test_what_a_stopped_plan_still_owes_becomes_a_question_and_nothing_more_is_sent():
    office = Office(tools={**TOOLS, "reserve": replace(RESERVE, on_interrupt=Interrupt.FINISH)})
    office.ask(book("Fri"))
    office.lands("op-1", "R1")
    office.revise(book("Sat"), text("Sat"))
    written = office.stop()
    assert "release/op-1 release_handed_on" in written
    assert office.states("release/op-1") == ["questioned"]
    assert "it was stopped" in office.question.text
    office.lands("op-2", "R2")
    assert (office.states("plan-T2"), office.leaves) == (["stopped"], [])
    office.answer(True)
    assert office.leaves == ["send op-3 1"]


def test_what_is_asked_about_already_is_not_asked_about_anew():
    office = Office(tools={**TOOLS, "reserve": replace(RESERVE, on_interrupt=Interrupt.FINISH)})
    office.ask(book("Fri"), text("Fri"))
    office.lands("op-1", "R1")
    office.lands("op-2")
    office.revise(text("Sat"))
    assert office.states("release/op-1") == ["questioned"]
    before = len(office.questions)
    office.stop()
    assert (office.states("release/op-1"), len(office.questions)) == (["questioned"], before)


def test_a_stop_names_who_stopped_it_in_what_is_let_go():
    office = under_way()
    office.stop(by="")
    office.reply("op-1", LOST)
    says = [each.says for each in office.operations["op-1"].evidence]
    assert says[0] == "a person stopped it"
    assert events(office.decided)[0] == "op-1 answer_lost"
