"""A change of mind in one unit: superseded, planned, owed, let go; and a word on a claim."""

from dataclasses import replace

import pytest

from landed.core.arrival import AskPerson, LetGo
from landed.core.changes import apply
from landed.core.contract import Contract, Interrupt, WhileUnknown
from landed.core.errors import StaleWriteError
from landed.core.next import what_next
from landed.core.operation import Source, State
from landed.core.outcome import Absent, Acknowledged, AnswerLost, Found, NotSent, Refused
from landed.core.plan import At, Place
from landed.core.question import About
from landed.core.rules import RULES
from tests.core.conversation import (
    PRICED,
    RESERVE,
    TEXT,
    TOOLS,
    Conversation,
    book,
    check,
    text,
)

LOST = AnswerLost(reason="timed out")
FULL = Refused(reason="fully booked")
SEEN = Acknowledged(result={"free": True})
RELEASE = "release/op-1"
# Nobody can be asked what became of it.
DEAF = replace(RESERVE, keyed="", compares_payload=False, lookup=False, close=False)


def in_flight(contract: Contract = RESERVE, **more: Contract) -> Conversation:
    """A conversation in which Friday's table was asked for, and nobody answered yet."""
    talk = Conversation(tools={**TOOLS, "reserve": contract, **more})
    talk.ask(book("Fri"))
    return talk


# One unit.


@pytest.mark.req("S0-43", "S0-52", "S0-15")
def test_a_change_of_mind_is_written_in_one_unit_before_anything_depends_on_it():
    talk = in_flight()
    written = talk.revise(book("Sat"))
    assert written == [
        "plan-T1 superseded",
        "plan-T2 planned",
        "release/op-1 release_owed",
        "op-1 unwanted",
        "op-1 answer_lost",
        "op-1 closing",
    ]
    assert talk.leaves == ["stop op-1", "close op-1"]
    assert talk.plans["plan-T1"].why == "T2"
    release = talk.release()
    assert (release.turn, release.plan, release.step) == ("T2", "plan-T2", 0)
    assert (release.principal, release.origin, release.worker) == ("ann", "user", "w1")
    assert (release.made_at, release.left_out) == (talk.now, False)


@pytest.mark.req("S0-52")
def test_the_running_turn_is_recorded_with_all_that_a_restart_needs():
    talk = in_flight()
    talk.revise(check("Sat"), book("Sat"), intent={"day": "Sat", "party": 4}, origin="timer")
    kept = talk.store.records["plan-T2"].frozen
    assert (kept["turn"], kept["origin"], kept["revises"]) == ("T2", "timer", "T1")
    assert kept["intent"] == {"day": "Sat", "party": 4}
    assert [step.replaces for step in talk.plan.steps] == ["", "op-1"]
    assert talk.store.records[RELEASE].changing["plan"] == "plan-T2"


def test_a_plan_that_was_superseded_starts_nothing_any_more():
    talk = Conversation()
    talk.ask(check(), book("Fri"))
    talk.revise(text())
    assert talk.see(SEEN, late=True) == []
    assert talk.states("plan-T1") == ["superseded"]
    assert [each.tool for each in talk.operations.values()] == ["text"]


def test_a_second_revision_of_one_turn_is_refused_by_the_store():
    talk = in_flight()
    one, other = talk.revising(book("Sat")), talk.revising(book("Sun"))
    talk.lap(one)
    decided = what_next(talk.scope(other), RULES, talk.now)
    with pytest.raises(StaleWriteError, match="revised/default/T1 is held by plan-T2"):
        apply(talk.store, decided.changes)


def test_a_turn_of_lone_calls_is_revised_too():
    talk = in_flight()
    talk.lands("op-1", "R1")
    revised = replace(talk.revising(book("Sat")), old_plan="")
    assert talk.lap(revised)[:2] == ["plan-T2 planned", "release/op-1 release_owed"]


# What was being done.


@pytest.mark.req("S0-29")
def test_what_is_wanted_as_it_was_is_neither_interrupted_nor_sent_again():
    talk = in_flight()
    assert talk.revise(book("Fri"), text()) == ["plan-T1 superseded", "plan-T2 planned"]
    assert talk.leaves == []
    assert talk.plan.places[0] == Place(at=At.OUT, record="op-1")
    talk.lands("op-1")
    assert talk.leaves == ["send op-2 1"]
    assert talk.operations["op-1"].tries == 1


def test_what_was_kept_and_turns_out_not_to_be_there_is_done_anew():
    talk = in_flight()
    talk.revise(book("Fri"), text())
    written = talk.reply("op-1", FULL)
    assert written[-2:] == ["op-2 made", "op-2 sent"]
    assert talk.operations["op-2"].arguments == {"day": "Fri"}
    assert talk.plan.places[0] == Place(at=At.OUT, record="op-2")


def test_what_was_not_sent_yet_is_taken_back_and_its_release_is_void():
    slow = Conversation()
    slow.ask(book("Fri"))
    slow.reply("op-1", NotSent(reason="no route"))
    written = slow.revise(book("Sat"))
    assert written == [
        "plan-T1 superseded",
        "plan-T2 planned",
        "release/op-1 release_owed",
        "op-1 withdrawn",
        "release/op-1 release_void",
        "plan-T2 stepped",
        "op-2 made",
        "op-2 sent",
    ]


@pytest.mark.req("S0-33", "S0-41")
@pytest.mark.parametrize(
    ("interrupt", "wait_s", "leaves", "later"),
    [
        (Interrupt.FINISH, 0.0, [], []),
        (Interrupt.WAIT, 5.0, [], ["stop op-1", "close op-1"]),
        (Interrupt.STOP_AND_RESOLVE, 0.0, ["stop op-1", "close op-1"], []),
    ],
)
def test_what_becomes_of_a_call_in_flight_is_a_field_of_its_contract(
    interrupt, wait_s, leaves, later
):
    talk = in_flight(replace(RESERVE, on_interrupt=interrupt, wait_s=wait_s))
    talk.revise(book("Sat"))
    assert talk.leaves == leaves
    talk.lap(after_s=5.0)
    assert talk.leaves == later
    assert "op-2" not in talk.operations


@pytest.mark.req("S0-28")
def test_the_replacement_starts_once_it_is_known_what_became_of_the_first():
    talk = in_flight()
    talk.revise(check("Sat"), book("Sat"), text("Sat"))
    talk.see(SEEN)
    assert talk.leaves == []
    talk.look("op-1", Found(result={"id": "R1"}))
    assert talk.leaves == ["send op-2 1"]
    assert talk.operations["op-2"].key != talk.operations["op-1"].key
    talk.lands("op-2", "R2")
    talk.lands("op-3")
    assert talk.leaves == ["send op-4 1"]
    talk.lands("op-4")
    assert talk.states("plan-T2", RELEASE) == ["done", "done"]
    undone = [o.arguments for o in talk.operations.values() if o.undoes]
    assert undone == [{"id": "R1"}]


def test_what_never_landed_is_replaced_and_nothing_is_undone():
    talk = in_flight()
    talk.revise(book("Sat"))
    written = talk.look("op-1", Absent())
    assert written == [
        "op-1 closed_empty",
        "release/op-1 release_void",
        "plan-T2 stepped",
        "op-2 made",
        "op-2 sent",
    ]


@pytest.mark.parametrize("lookup", [Found(result={"id": "R1"}), Absent()])
def test_a_revision_of_what_was_in_doubt_already_waits_for_the_same_answer(lookup):
    talk = in_flight()
    talk.reply("op-1", LOST)
    talk.revise(book("Sat"))
    assert talk.leaves == []
    talk.look("op-1", lookup)
    if isinstance(lookup, Absent):
        # It was only looked up, for it was wanted still; now its key is closed.
        assert talk.leaves == []
        talk.lap(after_s=0.5)
        assert talk.leaves == ["close op-1"]
        talk.look("op-1", Absent())
    assert talk.leaves == ["send op-2 1"]


def test_a_plan_that_broke_off_is_revised_and_its_failed_call_owes_nothing():
    talk = in_flight()
    talk.reply("op-1", FULL)
    assert talk.revise(book("Sat"))[:2] == ["plan-T1 superseded", "plan-T2 planned"]
    assert talk.releases == {}
    assert talk.leaves == ["send op-2 1"]


def test_what_was_taken_and_cannot_be_read_back_is_replaced_without_a_wait():
    talk = in_flight()
    talk.reply("op-1", Acknowledged(result={"id": "R1"}, accepted=True))
    talk.revise(book("Sat"))
    assert talk.leaves == ["send op-2 1"]


# Reads.


@pytest.mark.req("S0-16")
def test_a_read_that_is_waited_for_is_dropped_and_nothing_is_resolved_for_it():
    talk = Conversation()
    talk.ask(check("Fri"), book("Fri"))
    written = talk.revise(check("Sat"), book("Sat"))
    assert written == ["plan-T1 superseded", "plan-T2 planned", "ob-1 dropped"]
    assert talk.leaves == ["watch plan-T2 0"]
    assert talk.observed() == [("check", "dropped", None)]
    assert talk.operations == {}


def test_only_the_reads_of_the_plan_that_is_revised_are_dropped():
    talk = Conversation()
    talk.ask(check("Mon"))
    talk.ask(check("Fri"))
    written = talk.revise(check("Sat"))
    assert [each for each in written if "dropped" in each] == ["ob-2 dropped"]


def test_a_read_that_was_made_already_is_not_made_again():
    talk = Conversation()
    talk.ask(check("Fri"), book("Fri"))
    talk.see(SEEN)
    talk.lands("op-1", "R1")
    talk.revise(check("Fri"), book("Sat"))
    assert talk.plan.places[0] == Place(at=At.DONE, record="ob-1")
    assert talk.leaves == ["send op-2 1"]


# Left out.


def test_what_is_left_out_is_asked_about_and_meanwhile_nothing_is_cancelled():
    talk = in_flight()
    talk.lands("op-1", "R1")
    written = talk.revise(text())
    assert written == [
        "plan-T2 planned",
        "release/op-1 release_owed",
        "release/op-1 release_landed",
        "q-1 asked",
        "release/op-1 release_questioned",
        "plan-T2 stepped",
        "op-2 made",
        "op-2 sent",
    ]
    assert talk.question.text == (
        "You still hold reserve(day=Fri) (it was left out of what is wanted now)."
        " Shall I take it back?"
    )
    assert talk.answer(None, said="what a day")[-2:] == [
        "q-2 asked",
        "release/op-1 release_questioned",
    ]
    talk.answer(False, said="no")
    assert talk.states(RELEASE) == ["waived"]


def test_what_is_left_out_in_flight_goes_on_and_is_asked_about_once_it_landed():
    talk = in_flight()
    assert talk.revise(text())[-1] == "op-2 sent"
    assert talk.operations["op-1"].wanted
    assert talk.states(RELEASE) == ["owed_if_landed"]
    talk.lands("op-1", "R1")
    assert talk.states(RELEASE) == ["questioned"]
    talk.answer(True)
    assert talk.states(RELEASE) == ["undoing"]


def test_what_cannot_be_taken_back_is_not_asked_about():
    talk = Conversation()
    talk.ask(text("Fri"))
    talk.lands("op-1")
    talk.revise(book())
    assert (talk.releases, talk.questions) == ({}, {})


@pytest.mark.req("S0-13")
def test_what_stays_as_it_is_stays_and_only_the_rest_is_done_anew():
    talk = Conversation()
    talk.ask(book("Fri"), text("Fri"))
    talk.lands("op-1", "R1")
    assert talk.revise(book("Fri"), text("Sat")) == [
        "plan-T1 superseded",
        "plan-T2 planned",
        "op-2 unwanted",
        "plan-T2 stepped",
    ]
    assert [each.tool for each in talk.operations.values()] == ["reserve", "text"]


# Corrected.

CORRECTS = replace(TEXT, correct="amend", correct_arguments={"text": "Change of plan: {text}"})


@pytest.mark.req("S0-34")
def test_what_cannot_be_taken_back_is_waited_for_and_then_corrected():
    talk = Conversation(tools={**TOOLS, "text": CORRECTS, "amend": replace(TEXT, service="a")})
    talk.ask(text("Fri"))
    assert talk.revise(text("Sat"))[-1] == "op-1 unwanted"
    assert talk.leaves == []
    talk.lands("op-1")
    after = talk.operations["op-2"]
    assert (after.tool, after.contract) == ("amend", "sha256:amend")
    assert after.arguments == {"text": "Change of plan: table on Sat"}


@pytest.mark.req("S0-33", "S0-35")
@pytest.mark.fault("X69")
def test_without_a_receipt_in_time_it_is_treated_as_sent_and_corrected_all_the_same():
    talk = Conversation(tools={**TOOLS, "text": replace(CORRECTS, correct="")})
    talk.ask(text("Fri"))
    talk.revise(text("Sat"))
    assert talk.decided.wakes == {"op-1": talk.now + 0.05}
    written = talk.lap(after_s=0.05)
    assert written[:2] == ["op-1 answer_lost", "op-1 assumed"]
    assert talk.operations["op-2"].arguments == {"text": "Change of plan: table on Sat"}
    assert talk.states("op-1") == ["assumed"]


def test_what_did_not_land_is_not_corrected_but_said_as_it_is():
    talk = Conversation(tools={**TOOLS, "text": CORRECTS})
    talk.ask(text("Fri"))
    talk.reply("op-1", FULL)
    talk.revise(text("Sat"))
    assert (talk.operations["op-2"].tool, talk.operations["op-2"].arguments) == (
        "text",
        {"text": "table on Sat"},
    )


def test_a_correction_is_known_by_what_was_wanted_and_stands_for_what_it_put_right():
    talk = Conversation(tools={**TOOLS, "text": replace(CORRECTS, correct="")})
    talk.ask(text("Fri"), book("Fri"))
    talk.lands("op-1")
    talk.revise(text("Sat"), book("Fri"))
    talk.lands("op-3")
    assert talk.operations["op-3"].arguments == {"text": "Change of plan: table on Sat"}
    talk.revise(text("Sat"), book("Mon"))
    assert [step.keeps for step in talk.plan.steps] == ["op-3", ""]
    assert [step.corrects for step in talk.plan.steps] == ["", ""]


LINKS = replace(TEXT, correct_arguments={"reply_to": "{result.id}"})


def test_a_correction_that_cannot_be_filled_in_ends_the_plan_and_not_the_loop():
    talk = Conversation(tools={**TOOLS, "text": LINKS})
    talk.ask(text("Fri"))
    talk.revise(text("Sat"))
    talk.lap(after_s=0.06)
    assert talk.states("op-1", "plan-T2") == ["assumed", "partial"]


# While nobody can tell.


@pytest.mark.req("S4-15")
def test_a_replacement_waits_while_what_it_replaces_is_in_doubt_and_then_for_a_person():
    talk = in_flight(DEAF)
    talk.revise(book("Sat"))
    assert talk.states("op-1", "plan-T2", RELEASE) == ["unknown", "running", "owed_if_landed"]
    written = talk.lap(after_s=900.0)
    assert written == ["op-1 gave_up", "plan-T2 doubted"]
    assert "op-1, which this replaces, could not be found out" in talk.plan.why
    assert talk.lap(after_s=900.0) == []
    assert talk.leaves == []


def test_where_the_contract_says_so_the_replacement_goes_ahead_and_the_release_stays_owed():
    talk = in_flight(replace(DEAF, while_unknown=WhileUnknown.REPLACE))
    talk.revise(book("Sat"), text("Sat"))
    assert talk.leaves == ["stop op-1", "send op-2 1"]
    talk.lands("op-2", "R2")
    assert talk.leaves == ["send op-3 1"]
    talk.lands("op-3")
    assert talk.states("op-1", "plan-T2", RELEASE) == ["unknown", "done", "owed_if_landed"]


TABLE = replace(DEAF, while_unknown=WhileUnknown.REPLACE, target=("the-table",))


def test_a_replacement_is_not_blocked_by_what_it_replaces():
    talk = in_flight(TABLE)
    talk.revise(book("Sat"))
    assert talk.states("op-2", "plan-T2") == ["sent", "running"]


# A claim, and a person's word on it.


def claiming(talk: Conversation, claim: str = "R9") -> list[str]:
    return talk.put(
        AskPerson(
            turn="T2",
            tenant="default",
            session="s1",
            principal="ann",
            text=f"You say that Friday is confirmed as {claim}. Is it?",
            about=About.CLAIM,
            subject="op-1",
            claim=claim,
        )
    )


def replaced(contract: Contract = PRICED) -> Conversation:
    """Saturday is booked instead of a Friday that nobody can find out about."""
    deaf = replace(
        contract,
        keyed="",
        compares_payload=False,
        lookup=False,
        close=False,
        while_unknown=WhileUnknown.REPLACE,
    )
    talk = in_flight(deaf)
    talk.revise(book("Sat"))
    talk.lands("op-2", "R2")
    return talk


@pytest.mark.req("S0-65")
@pytest.mark.parametrize("after_s", [1.0, 900.0], ids=["unknown", "undecided"])
def test_a_persons_yes_to_a_claim_settles_it_and_the_release_runs(after_s):
    talk = replaced()
    talk.lap(after_s=after_s)
    claiming(talk)
    assert talk.states("op-1") == ["unknown" if after_s < 900.0 else "undecided"]
    written = talk.answer(True, said="yes")
    assert "op-1 ruled_landed" in written
    after = talk.operations["op-1"]
    assert (after.state, after.result) == (State.CONFIRMED, {"id": "R9"})
    why = after.evidence[-1]
    assert (why.source, why.by, why.says) == (Source.PERSON, "ann", "ann said so: R9")
    assert talk.leaves == [f"price {RELEASE}"]
    talk.price(2000)
    assert talk.question.amount_cents == 2000
    talk.answer(True, said="yes")
    assert talk.operations["op-3"].arguments == {"id": "R9", "fee_cents": 2000}


@pytest.mark.req("S0-65")
@pytest.mark.parametrize("yes", [False, None])
def test_a_claim_that_nobody_says_yes_to_settles_nothing(yes):
    talk = replaced()
    claiming(talk)
    talk.answer(yes, said="hm")
    assert talk.states("op-1", RELEASE) == ["unknown", "owed_if_landed"]
    assert talk.leaves == []


def test_a_claim_about_what_was_settled_meanwhile_changes_nothing():
    talk = replaced()
    claiming(talk)
    talk.reply("op-1", Acknowledged(result={"id": "R1"}), attempt=1)
    assert talk.states("op-1") == ["confirmed"]
    talk.answer(True, said="yes")
    assert talk.operations["op-1"].result == {"id": "R1"}


def test_a_claim_about_what_is_still_in_flight_waits_for_its_own_answer():
    talk = in_flight(DEAF)
    claiming(talk)
    assert talk.answer(True)[-1] == "q-1 approved"
    assert talk.states("op-1") == ["sent"]


def test_a_claim_stands_where_the_contract_says_that_the_id_stands():
    nested = replace(DEAF, makes="booking.id", undo_arguments={"id": "{result.booking.id}"})
    talk = in_flight(nested)
    talk.revise(text(), drop=["op-1"])
    claiming(talk)
    talk.answer(True)
    assert talk.operations["op-1"].result == {"booking": {"id": "R9"}}


# Nothing is written twice.


def test_what_is_let_go_and_revised_in_one_lap_is_written_once():
    talk = in_flight()
    gone = LetGo(operation="op-1", reason="the caller left", at=talk.now)
    written = talk.lap(gone, talk.revising(book("Sat")))
    assert written.count("op-1 unwanted") == 1
