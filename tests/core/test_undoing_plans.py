"""Taking a whole plan back: strict, last to first, each step once, and told as far as it came."""

from dataclasses import replace

import pytest

from landed.core.approval import Problem, Purpose, sealing_key
from landed.core.contract import Risk
from landed.core.outcome import Absent, Acknowledged, AnswerLost, Found, Refused
from landed.core.plan import At, PlanEvent, PlanState
from landed.core.scope import Check
from landed.core.undo import UNDO_WITHIN_S, undoable
from tests.core.conversation import RESERVE, TOOLS, Conversation, book
from tests.core.plans import DELETE, DRAFT, OFFICE, Office, draft, find, issue, mail, note

LOST = AnswerLost(reason="timed out")
NO = Refused(reason="it is locked")
TWO, THREE = (note("a"), note("b")), (note("a"), note("b"), note("c"))


def done(*calls, **tools) -> Office:
    """A plan of these calls that ran to its end; op-1 made M1, and so on."""
    office = Office(tools={**OFFICE, **tools}, keys=(sealing_key(b"s3cret"),))
    office.ask(*calls)
    while not office.done():
        if office.reads_out():
            office.finds()
        place = next(each for each in office.plan.places if each.at is At.OUT)
        office.lands(place.record, f"M{place.record[3:]}")
    return office


def can(office: Office, after_s: float = 0.0) -> bool:
    return undoable(office.plan, office.operations, office.contracts, office.now + after_s)


def order(office: Office) -> list[str]:
    """What each undo takes back, in the order in which they were sent."""
    sent = [m.after.id for m in office.moves if m.event.name == "sent"]
    return [office.operations[id].undoes for id in sent if office.operations[id].undoes]


# What may be taken back.


@pytest.mark.req("S1-48", "K22")
def test_only_a_plan_whose_every_step_is_safe_can_be_taken_back():
    assert can(done(*TWO))
    office = Office()
    office.run(draft(), issue())
    office.carried_out("D1", "F1")
    assert office.done()
    assert not can(office)
    assert office.undo() == []
    assert (office.problem, office.states("plan-T1")) == (Problem.OVER, ["done"])


@pytest.mark.req("S1-48")
def test_one_step_that_needed_a_yes_is_enough_that_none_of_it_can():
    assert not can(done(*TWO, note=replace(OFFICE["note"], risk=Risk.CONFIRM)))


@pytest.mark.req("S1-48")
def test_a_safe_step_that_has_no_undo_is_enough_that_none_of_it_can():
    assert not can(done(note(), draft(), draft=replace(DRAFT, undo="")))


@pytest.mark.req("S1-48")
def test_what_the_service_says_cannot_be_undone_cannot():
    says_so = {"note": replace(OFFICE["note"], undo_where="free")}
    office = Office(tools={**OFFICE, **says_so})
    office.ask(note())
    office.reply("op-1", Acknowledged(result={"id": "N1", "free": False}))
    assert not can(office)
    office.ask(note("b"))
    office.reply("op-2", Acknowledged(result={"id": "N2", "free": True}))
    assert can(office)


def test_a_plan_of_reads_alone_has_nothing_to_take_back():
    office = Office()
    office.ask(find())
    office.finds()
    assert office.done()
    assert not can(office)


@pytest.mark.parametrize(
    ("after_s", "may"), [(UNDO_WITHIN_S - 0.001, True), (UNDO_WITHIN_S, False), (-1.0, False)]
)
def test_it_can_be_taken_back_within_an_hour_of_its_end(after_s, may):
    office = done(*TWO)
    assert can(office, after_s) is may
    office.now += after_s
    assert bool(office.undo()) is may


def test_a_cut_off_of_one_tool_is_sooner_than_the_hour():
    office = done(*TWO, note=replace(OFFICE["note"], undo_within_s=60.0))
    assert can(office, 60.0)
    assert not can(office, 60.5)


def test_what_is_not_known_for_certain_is_not_taken_back_as_a_whole():
    office = done(*TWO, note=replace(OFFICE["note"], keyed="", compares_payload=False))
    assumed = replace(OFFICE["note"], lookup=False, close=False, keyed="", compares_payload=False)
    office = Office(tools={**OFFICE, "note": replace(assumed, assume_after_s=1.0)})
    office.ask(note())
    office.reply("op-1", LOST)
    office.lap(after_s=1.0)
    assert office.states("op-1", "plan-T1") == ["assumed", "done"]
    assert not can(office)


@pytest.mark.parametrize("state", ["running", "in_doubt", "undone"])
def test_a_plan_that_is_not_at_rest_or_was_taken_back_cannot_be(state):
    office = Office()
    office.ask(*TWO)
    office.lands("op-1", "M1")
    if state == "in_doubt":
        office.reply("op-2", LOST)
    if state == "undone":
        office.lands("op-2", "M2")
        office.undo()
        office.lands("op-3")
        office.lands("op-4")
    assert office.states("plan-T1") == [state]
    assert office.undo() == []
    assert office.problem is Problem.OVER


# Last to first.


@pytest.mark.req("S1-49")
def test_the_last_step_is_taken_back_first_and_each_waits_for_the_one_after_it():
    office = done(*THREE)
    written = office.undo(by="bea")
    assert written[0] == "plan-T1 undo_asked"
    assert [each for each in written if each.endswith("release_owed")] == [
        "release/op-3 release_owed",
        "release/op-2 release_owed",
        "release/op-1 release_owed",
    ]
    assert (office.plan.by, office.release("op-3").principal) == ("bea", "bea")
    assert office.leaves == ["send op-4 1"]
    assert dict(office.operations["op-4"].arguments) == {"id": "M3"}
    assert office.lap(after_s=60.0) == []
    office.lands("op-4")
    assert office.at == ["done", "done", "undone"]
    assert office.leaves == ["send op-5 1"]
    office.lands("op-5")
    written = office.lands("op-6")
    assert written[-2:] == ["plan-T1 stepped", "plan-T1 undone"]
    assert order(office) == ["op-3", "op-2", "op-1"]
    assert (office.plan.ended_at, office.at) == (office.now, ["undone"] * 3)
    assert len({each.key for each in office.operations.values()}) == 6


def test_reads_are_no_part_of_what_is_taken_back():
    office = done(find(), draft("$1"))
    office.undo()
    office.lands("op-2")
    assert office.states("plan-T1") == ["undone"]
    assert office.at == ["done", "undone"]


@pytest.mark.req("S1-54")
def test_of_a_plan_that_ended_halfway_what_ran_is_taken_back():
    office = Office()
    office.ask(*THREE)
    office.carried_out("M1", "M2", NO)
    assert office.states("plan-T1") == ["partial"]
    assert can(office)
    office.undo()
    office.lands("op-4")
    office.lands("op-5")
    assert (office.states("plan-T1"), order(office)) == (["undone"], ["op-2", "op-1"])
    assert office.at == ["undone", "undone", "broken"]


@pytest.mark.req("S1-54")
def test_of_a_plan_that_was_stopped_halfway_what_ran_is_taken_back():
    office = Office()
    office.ask(*THREE)
    office.stop()
    office.lands("op-1", "M1")
    assert (office.states("plan-T1"), can(office)) == (["stopped"], True)
    office.undo()
    office.lands("op-2")
    assert office.states("plan-T1") == ["undone"]


@pytest.mark.fault("X05")
def test_after_a_crash_in_the_middle_each_undo_is_found_out_and_none_is_begun_anew():
    office = done(*THREE)
    office.undo()
    office.lands("op-4")
    office.crash()
    assert office.leaves == ["lookup op-5"]
    office.look("op-5", Found(result={"id": "M2"}))
    office.crash()
    office.look("op-6", Absent())
    assert office.leaves == ["send op-6 2"]
    office.lands("op-6")
    assert (office.states("plan-T1"), order(office)) == (["undone"], ["op-3", "op-2", "op-1"])


def test_an_undo_that_nobody_can_tell_about_holds_up_the_rest_and_ends_nothing():
    office = done(*TWO)
    office.undo()
    office.reply("op-3", LOST)
    assert office.states("plan-T1", "release/op-2", "release/op-1") == [
        "undoing",
        "undoing",
        "owed",
    ]
    assert office.leaves == ["lookup op-3"]
    office.look("op-3", Found(result={"id": "M2"}))
    assert office.leaves == ["send op-4 1"]


def test_it_is_taken_back_once_however_often_it_is_asked_for():
    office = done(*TWO)
    office.undo()
    assert office.undo() == []
    assert office.problem is Problem.OVER
    office.lands("op-3")
    office.lands("op-4")
    assert len(order(office)) == 2


# By a button.


@pytest.mark.req("S1-22")
def test_the_yes_to_take_it_back_is_a_button_with_a_token_of_its_own():
    office = done(*TWO)
    assert office.offer(Purpose.UNDO, "undo") == ["approval/plan-T1/undo/1 approval_offered"]
    assert office.questions == {}
    office.press("undo", purpose=Purpose.CONFIRM, of="approval/plan-T1/undo/1")
    assert office.problem is Problem.MISMATCH
    written = office.press("undo", purpose=Purpose.UNDO)
    assert written[0] == "plan-T1 undo_asked"
    assert "approval/plan-T1/undo/1 approval_taken" in written
    assert (office.leaves, office.plan.by) == (["send op-3 1"], "ann")
    office.press("undo", purpose=Purpose.UNDO)
    assert (office.problem, len(order(office))) == (Problem.USED, 1)


def test_a_button_that_is_pressed_when_the_hour_is_over_does_nothing():
    office = done(*TWO)
    office.now += UNDO_WITHIN_S - 1.0
    office.offer(Purpose.UNDO, "undo")
    office.now += 1.0
    assert office.press("undo", purpose=Purpose.UNDO) == [
        "approval/plan-T1/undo/1 approval_refused"
    ]
    assert (office.problem, office.leaves) == (Problem.OVER, [])


# What cannot be.


@pytest.mark.req("S1-50")
def test_where_one_step_cannot_be_taken_back_those_before_it_stay_and_a_person_is_asked():
    office = done(*THREE)
    office.undo()
    office.lands("op-4")
    written = office.reply("op-5", NO)
    assert "plan-T1 undo_broke_off" in written
    assert office.at == ["done", "done", "undone"]
    assert office.plan.why == "the service refused: it is locked"
    assert office.states("release/op-3", "release/op-2", "release/op-1") == [
        "done",
        "questioned",
        "questioned",
    ]
    assert order(office) == ["op-3", "op-2"]
    assert len([q for q in office.questions.values() if q.state == "open"]) == 2


def test_what_a_person_says_yes_to_after_that_is_undone_and_the_plan_stays_as_it_ended():
    office = done(*TWO)
    office.undo()
    office.reply("op-3", NO)
    asked = {q.subject: q.id for q in office.questions.values()}
    office.answer(True, question=asked["release/op-1"])
    assert office.leaves == ["send op-4 1"]
    office.lands("op-4")
    office.answer(False, question=asked["release/op-2"])
    assert office.states("plan-T1", "release/op-1", "release/op-2") == [
        "undo_partial",
        "done",
        "waived",
    ]
    assert order(office) == ["op-2", "op-1"]


@pytest.mark.req("S1-49")
def test_whether_it_is_allowed_is_asked_anew_for_each_undo():
    office = done(*TWO, delete=replace(DELETE, permission="note.delete"))
    office.undo(by="bea")
    assert office.leaves == ["check release/op-2 0"]
    (check,) = [each for each in office.decided.commands if isinstance(each, Check)]
    assert (check.permission, check.tool, check.ask.principal) == ("note.delete", "delete", "bea")
    assert (office.lap(), office.leaves) == ([], [])
    office.may()
    assert office.leaves == ["send op-3 1"]
    office.lands("op-3")
    assert office.leaves == ["check release/op-1 0"]
    office.may(refused="bea may not delete notes any more")
    assert office.states("plan-T1", "release/op-1") == ["undo_partial", "questioned"]
    assert (office.at, order(office)) == (["done", "undone"], ["op-2"])
    assert "bea may not delete notes any more" in office.plan.why


def test_a_check_that_comes_back_after_a_crash_is_asked_for_again():
    office = done(*TWO, delete=replace(DELETE, permission="note.delete"))
    office.undo()
    office.crash()
    assert office.leaves == ["check release/op-2 0"]
    office.may()
    assert office.leaves == ["send op-3 1"]


def test_an_undo_at_a_price_waits_for_a_person_and_a_no_ends_it_there():
    priced = replace(OFFICE["note"], undo_priced_by="fee", undo_price="fee_cents")
    office = done(*TWO, note=priced, fee=replace(TOOLS["fee"]))
    office.undo()
    office.price(500, operation="op-2")
    assert office.states("plan-T1", "release/op-2") == ["undoing", "asked"]
    office.crash()
    assert office.states("plan-T1") == ["undoing"]
    office.answer(False)
    assert office.states("plan-T1", "release/op-2", "release/op-1") == [
        "undo_partial",
        "waived",
        "questioned",
    ]
    assert order(office) == []


# Beside a change of mind.


def test_what_a_change_of_mind_has_taken_back_already_is_not_taken_back_twice():
    talk = Conversation(tools=dict(TOOLS))
    office = Office(tools=talk.tools)
    office.ask(book("Fri"), book("Sun"))
    office.carried_out("R1", "R2")
    office.revise(book("Sat"), book("Sun"))
    office.lands("op-3", "R3")
    office.lands("op-4")
    assert office.states("release/op-1", "plan-T1") == ["done", "done"]
    office.tell(PlanEvent.UNDO_ASKED, plan="plan-T1")
    assert office.leaves == ["send op-5 1"]
    assert office.operations["op-5"].undoes == "op-2"
    office.lands("op-5")
    assert office.plans["plan-T1"].state is PlanState.UNDONE


def test_what_is_being_taken_back_at_that_moment_is_waited_for():
    office = Office(tools={**TOOLS, "reserve": RESERVE})
    office.ask(book("Fri"))
    office.carried_out("R1")
    office.revise(book("Sat"))
    office.lands("op-2", "R2")
    assert office.states("release/op-1") == ["undoing"]
    office.tell(PlanEvent.UNDO_ASKED, plan="plan-T1")
    assert office.leaves == []
    assert office.states("plan-T1") == ["undoing"]
    office.lands("op-3")
    assert office.states("plan-T1") == ["undone"]
    assert order(office) == ["op-1"]


def test_what_was_waived_once_is_owed_again_when_the_whole_is_taken_back():
    office = Office(tools={**TOOLS, "cancel": replace(TOOLS["cancel"], risk=Risk.CONFIRM)})
    office.ask(book("Fri"))
    office.carried_out("R1")
    office.revise(book("Sat"))
    office.lands("op-2", "R2")
    office.answer(False)
    assert office.states("release/op-1") == ["waived"]
    office.tell(PlanEvent.UNDO_ASKED, plan="plan-T1")
    assert office.states("release/op-1") == ["asked"]
    office.answer(True)
    office.lands("op-3")
    assert office.plans["plan-T1"].state is PlanState.UNDONE


def test_what_is_asked_about_is_asked_about_no_more_when_the_whole_is_taken_back():
    office = Office(tools=dict(TOOLS))
    office.ask(book("Fri"), book("Sun"))
    office.carried_out("R1", "R2")
    office.revise(book("Fri"))
    assert office.states("release/op-2", "q-1") == ["questioned", "open"]
    written = office.tell(PlanEvent.UNDO_ASKED, plan="plan-T1")
    assert "q-1 lapsed" in written
    assert office.states("release/op-2") == ["undoing"]


def test_what_was_owed_for_a_replacement_is_taken_back_at_once_when_the_whole_is():
    office = Office(tools=dict(TOOLS))
    office.ask(book("Fri"))
    office.carried_out("R1")
    office.revise(book("Sat"))
    assert office.states("release/op-1") == ["owed"]
    written = office.tell(PlanEvent.UNDO_ASKED, plan="plan-T1")
    assert "release/op-1 release_handed_on" in written
    assert office.states("release/op-1") == ["undoing"]


def test_mail_is_final_so_a_plan_with_it_is_corrected_and_not_taken_back():
    office = Office()
    office.run(draft(), issue(), mail())
    office.carried_out("D1", "F1", "M1")
    assert office.done()
    assert not can(office)
