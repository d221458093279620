"""What is older than a restore of the store does not go on as if nothing had happened."""

from dataclasses import replace
from typing import Any

import pytest

from landed.core.approval import Problem, sealing_key
from landed.core.arrival import AskedAgain, Proposed
from landed.core.incarnation import INCARNATION, RESTORED, IncarnationState
from landed.core.operation import Operation, State
from landed.core.outcome import Absent, Acknowledged, AnswerLost, Found, Refused
from landed.core.restoring import OWED, RESTORE
from landed.core.sentences import to_model, to_person
from tests.core.conversation import (
    PRICED,
    RESERVE,
    TOOLS,
    Conversation,
    book,
    check,
    friday,
)
from tests.core.plans import WHOLE, Office

LOST = AnswerLost(reason="timed out")
FULL = Refused(reason="fully booked")
CONFIRM = "approval/plan-T1/confirm/1"
RETRY = "approval/plan-T1/retry/2"

pytestmark = pytest.mark.fault("X38")


def underway(*calls, **tools) -> Conversation:
    """A plan whose first call was just sent."""
    talk = Conversation(tools={**TOOLS, **tools})
    talk.ask(*(calls or (book("Fri"), book("Sat"))))
    return talk


# Operations.


def test_one_that_was_sent_is_in_doubt_and_its_key_is_closed_and_never_used_again():
    talk = underway()
    assert talk.restored() == ["op-1 restored", "plan-T1 doubted"]
    assert talk.leaves == ["close op-1"]
    held = talk.operations["op-1"]
    assert (held.state, held.closing, held.tries, held.restored) == (
        "unknown",
        True,
        2,
        talk.incarnation.horizon,
    )
    assert held.evidence[-1].says.startswith(RESTORED)
    assert talk.look("op-1", Absent(position=None))[0] == "op-1 closed_empty"


def test_it_goes_through_a_restore_once_and_through_the_next_one_again():
    talk = underway()
    talk.restored()
    assert talk.lap() == []
    assert talk.restored()[0] == "op-1 restored"
    assert talk.operations["op-1"].tries == 3


def test_a_refusal_that_comes_late_says_nothing_of_the_send_that_nobody_remembers():
    talk = underway()
    talk.restored()
    assert talk.reply("op-1", FULL, attempt=1) == []


def test_a_yes_that_comes_late_settles_it():
    talk = underway()
    talk.restored()
    assert talk.reply("op-1", Acknowledged(result={"id": "R1"}), attempt=1)[0] == (
        "op-1 acknowledged"
    )


def test_what_was_settled_stays_settled():
    talk = friday()
    assert talk.restored() == []
    assert talk.states("op-1", "plan-T1") == ["confirmed", "done"]


def test_what_another_worker_holds_is_left_to_it():
    talk = friday()
    talk.revise(book("Sat"))
    theirs = {id: replace(held, worker="w2") for id, held in talk.store.records.items()}
    talk.store = replace(talk.store, records=theirs)
    assert talk.restored() == []


def alone(talk: Conversation, id: str) -> Operation:
    """A lone call for the table that the first step of the plan wants."""
    wanted: dict[str, Any] = {
        "id": id,
        "plan": "",
        "key": id,
        "state": State.RECORDED,
        "version": 1,
        "epoch": 0,
    }
    unsent: dict[str, Any] = {"tries": 0, "first_sent_at": 0.0, "last_sent_at": 0.0, "worker": "w1"}
    return replace(talk.operations["op-1"], **wanted, **unsent)


def test_a_name_that_another_holds_is_not_taken_from_it():
    """It was blocked in the backup, and may have been sent since; both are in doubt."""
    talk = underway()
    talk.lap(Proposed(operation=alone(talk, "op-9")))
    assert talk.operations["op-9"].blocked_by == "op-1"
    talk.restored()
    held = talk.operations["op-9"]
    assert (held.state, held.blocked_by, held.first_sent_at) == ("unknown", "", held.made_at)
    assert talk.store.names[held.names[0]] == "op-1"
    assert talk.look("op-9", Absent(position=None))[0] == "op-9 closed_empty"
    assert talk.store.names[held.names[0]] == "op-1"


def test_a_person_is_asked_when_the_time_for_that_is_over_since_the_restore():
    talk = underway(book("Fri"), reserve=replace(RESERVE, close=False, lookup=False))
    talk.now += 10 * RESERVE.escalate_after_s
    assert talk.restored() == ["op-1 restored", "plan-T1 doubted"]
    assert talk.lap(after_s=RESERVE.escalate_after_s - 1.0) == []
    assert talk.lap(after_s=1.0) == ["op-1 gave_up"]


# While it is reconciled.


def test_no_step_of_a_new_plan_starts_before_it_is_reconciled():
    talk = Conversation()
    talk.restored()
    assert talk.ask(book("Fri"), check("Sat")) == ["plan-T1 planned"]
    assert talk.leaves == []
    assert talk.reconciled()[-2:] == ["op-1 made", "op-1 sent"]


def test_a_lone_call_is_blocked_and_does_not_fire_by_itself():
    talk = underway()
    talk.restored()
    talk.look("op-1", Absent(position=None))
    talk.lap(Proposed(operation=alone(talk, "op-9")))
    assert (talk.operations["op-9"].blocked_by, talk.leaves) == (INCARNATION, [])
    assert (talk.lap(), talk.reconciled()) == ([], [])
    assert talk.lap(AskedAgain(operation="op-9")) == ["op-9 sent"]


def test_nothing_in_doubt_since_is_sent_again_before_it_is_reconciled():
    """A restore that somebody else wrote down is heard of late: a call may be out by then."""
    talk = underway(book("Fri"), reserve=replace(RESERVE, lookup=False, close=False))
    declared = replace(talk.incarnation, number=1, horizon=0, state=IncarnationState.RECONCILING)
    talk.incarnation = declared
    talk.reply("op-1", LOST)
    assert (talk.lap(after_s=60.0), talk.leaves) == ([], [])
    talk.incarnation = replace(declared, state=IncarnationState.RECONCILED)
    assert talk.lap() == ["op-1 resent"]


def test_the_sentences_say_what_a_call_is_waiting_for():
    blocked = replace(friday().operations["op-1"], state=State.RECORDED, blocked_by=INCARNATION)
    told = to_model(blocked, RESERVE)
    assert "the store was restored" in told
    assert told.endswith("Once that is over, the same call may be proposed.")
    assert "el almacén se restauró" in to_person(blocked, RESERVE, language="es")


# Plans.


def test_a_plan_that_ran_starts_no_further_step_and_has_to_be_previewed_again():
    talk = underway()
    talk.restored()
    written = talk.look("op-1", Found(result={"id": "R1"}))
    assert written == ["op-1 found", "plan-T1 stepped", "plan-T1 broke_off"]
    assert (talk.plan.state, talk.plan.why) == ("partial", RESTORED)
    assert [(c.step, c.field, c.now) for c in talk.plan.changed] == [(2, "the store", "restored")]


def test_one_whose_last_step_landed_is_done():
    talk = underway(book("Fri"))
    talk.restored()
    assert talk.look("op-1", Found(result={"id": "R1"}))[-1] == "plan-T1 finished"


def test_one_whose_step_had_no_effect_is_not_offered_for_another_attempt():
    office = Office(keys=(sealing_key(b"s3cret"),))
    office.run(*WHOLE)
    office.restored()
    office.lap(after_s=1.0)
    assert RETRY not in office.approvals
    assert office.plan.state in ("in_doubt", "partial")


def test_a_plan_that_waited_for_a_yes_expires_and_the_yes_is_void():
    office = Office(keys=(sealing_key(b"s3cret"),))
    office.propose(*WHOLE)
    assert office.restored() == ["plan-T1 expired", f"{CONFIRM} approval_lapsed", "q-1 lapsed"]
    assert (office.plan.by, office.plan.why) == (RESTORE, RESTORED)
    assert office.press() == [f"{CONFIRM} approval_refused"]
    assert office.problem is Problem.EXPIRED


def test_a_yes_to_another_attempt_is_void_too():
    office = Office(keys=(sealing_key(b"s3cret"),))
    office.run(*WHOLE)
    office.carried_out("D1", FULL)
    assert f"{RETRY} approval_lapsed" in office.restored()


def test_a_yes_that_is_offered_after_the_restore_is_good():
    office = Office(keys=(sealing_key(b"s3cret"),))
    office.restored()
    office.reconciled()
    office.propose(*WHOLE)
    office.press()
    assert office.problem is Problem.NONE


# Releases.


def test_what_was_to_be_undone_becomes_a_question():
    talk = friday()
    talk.revise(book("Sat"))
    written = talk.restored()
    assert written[:2] == ["op-2 restored", "release/op-1 release_handed_on"]
    assert talk.release().state == "questioned"
    assert OWED in talk.question.text
    assert talk.leaves == ["close op-2"]


def test_a_yes_to_that_question_has_it_undone_once_all_is_reconciled():
    talk = friday()
    talk.revise(book("Sat"))
    talk.restored()
    talk.answer(True, said="yes")
    assert talk.release().state == "undoing"
    assert "send op-3 1" not in talk.leaves
    assert talk.reconciled() == ["op-3 sent"]


def test_a_question_about_the_price_of_an_undo_is_put_anew():
    talk = friday(reserve=PRICED)
    talk.revise(book("Sat"))
    talk.lands("op-2", "R2")
    talk.price(500)
    assert talk.release().state == "asked"
    before = talk.question.id
    talk.restored()
    assert talk.questions[before].state == "lapsed"
    assert talk.release().state == "questioned"
