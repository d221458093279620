"""What is given up is undone when its time has come, and never before what replaces it."""

from dataclasses import replace

import pytest

from landed.core.contract import Order
from landed.core.operation import State
from landed.core.outcome import Absent, Acknowledged, AnswerLost, Found, Refused
from landed.core.undo import ReleaseState
from tests.core.conversation import (
    PRICED,
    RESERVE,
    TOOLS,
    Conversation,
    book,
    check,
    digest,
    friday,
    saturday,
    sent_arguments,
    text,
)

LOST = AnswerLost(reason="timed out")
FULL = Refused(reason="fully booked")
RELEASE = "release/op-1"


# Secure first: due once the replacement is confirmed.


@pytest.mark.req("S0-10", "S0-12", "S0-43", "S0-44")
def test_the_release_is_recorded_at_once_and_due_only_when_the_replacement_is_confirmed():
    talk = friday()
    written = talk.revise(book("Sat"))
    assert written == [
        "plan-T2 planned",
        "release/op-1 release_owed",
        "release/op-1 release_landed",
        "plan-T2 stepped",
        "op-2 made",
        "op-2 sent",
    ]
    assert talk.leaves == ["send op-2 1"]
    assert talk.lap(after_s=50.0) == []
    assert talk.lands("op-2", "R2") == [
        "op-2 acknowledged",
        "release/op-1 release_due",
        "release/op-1 release_started",
        "op-3 made",
        "op-3 sent",
        "plan-T2 stepped",
        "plan-T2 finished",
    ]
    assert sent_arguments(talk) == {"id": "R1"}
    assert talk.lands("op-3") == ["op-3 acknowledged", "release/op-1 release_done"]
    assert talk.release().why == "the replacement holds"


def test_the_undo_is_an_operation_of_its_own_for_the_turn_that_answers_for_it():
    talk = saturday()
    undo = talk.operations["op-3"]
    assert (undo.tool, undo.contract, undo.undoes) == ("cancel", digest("cancel"), "op-1")
    assert (undo.turn, undo.key, undo.worker) == ("T2", "op-3", "w1")
    assert (undo.ask.principal, undo.ask.input, undo.ask.session) == ("ann", "in-T1", "s1")
    assert undo.send_by > talk.now
    assert talk.release().undo == "op-3"


def test_what_is_owed_is_undone_before_the_plan_goes_on_to_something_else():
    talk = friday()
    talk.revise(book("Sat"), check("Sat"), text("Sat"))
    talk.lands("op-2", "R2")
    assert (talk.operations["op-3"].tool, talk.leaves) == ("cancel", ["send op-3 1"])
    talk.lands("op-3")
    assert (talk.states(RELEASE), talk.leaves) == (["done"], ["watch plan-T2 1"])


@pytest.mark.parametrize(("outcome", "leaves"), [(LOST, ["lookup op-3", "send op-4 1"])])
def test_an_undo_in_doubt_does_not_keep_the_plan_from_going_on(outcome, leaves):
    talk = friday()
    talk.revise(book("Sat"), text("Sat"))
    talk.lands("op-2", "R2")
    talk.reply("op-3", outcome)
    assert talk.leaves == leaves


def test_while_a_person_is_asked_about_a_price_the_plan_goes_on():
    talk = friday(PRICED)
    talk.revise(book("Sat"), text("Sat"))
    talk.lands("op-2", "R2")
    assert talk.leaves == [f"price {RELEASE}"]
    talk.price(2000)
    assert (talk.states(RELEASE), talk.leaves) == (["asked"], ["send op-3 1"])


@pytest.mark.parametrize("outcome", [LOST, Acknowledged(result=None, complete=True)])
def test_a_replacement_that_nobody_can_tell_about_releases_nothing(outcome):
    talk = friday()
    talk.revise(book("Sat"))
    talk.reply("op-2", LOST)
    assert talk.states(RELEASE, "op-2") == ["owed", "unknown"]
    talk.look("op-2", Found(result={"id": "R2"}))
    assert talk.states(RELEASE, "op-2") == ["undoing", "confirmed"]


def test_a_replacement_that_was_taken_but_is_not_confirmed_releases_nothing():
    talk = friday()
    talk.revise(book("Sat"))
    talk.reply("op-2", Acknowledged(result={"id": "R2"}, accepted=True))
    assert talk.states(RELEASE, "op-2") == ["owed", "accepted"]


# Release first.

FIRST = replace(RESERVE, order=Order.RELEASE_FIRST, order_why="two holds cost twice")


@pytest.mark.req("S0-41")
def test_where_the_contract_says_release_first_the_replacement_waits_for_the_undo():
    talk = friday(FIRST)
    written = talk.revise(book("Sat"))
    assert written[3:] == [
        "message-1 announced",
        "release/op-1 release_due",
        "release/op-1 release_started",
        "op-2 made",
        "op-2 sent",
    ]
    assert (talk.operations["op-2"].tool, talk.leaves) == ("cancel", ["send op-2 1"])
    assert talk.release().why == "two holds cost twice"
    written = talk.lands("op-2")
    assert written[:2] == ["op-2 acknowledged", "release/op-1 release_done"]
    assert talk.operations["op-3"].arguments == {"day": "Sat"}
    assert talk.leaves == ["send op-3 1"]


@pytest.mark.req("S0-46")
@pytest.mark.parametrize(
    ("language", "says"),
    [
        (
            "en",
            "I give up reserve(day=Fri) before what replaces it is certain: two holds cost twice.",
        ),
        (
            "es",
            "Suelto reserve(day=Fri) antes de tener seguro lo que lo sustituye:"
            " two holds cost twice.",
        ),
    ],
)
def test_release_first_is_told_before_the_undo_is_sent(language, says):
    talk = friday(FIRST)
    talk.language = language
    written = talk.revise(book("Sat"))
    assert written.index("message-1 announced") < written.index("op-2 sent")
    assert talk.store.records["message-1"].frozen["text"] == says
    assert talk.store.records["message-1"].frozen["turn"] == "T2"


def test_what_nothing_replaces_needs_no_such_word():
    talk = friday(FIRST)
    assert "message-1 announced" not in talk.revise(text(), drop=["op-1"])


def test_release_first_waits_for_the_answer_of_a_person_too():
    talk = friday(replace(FIRST, undo_priced_by="fee", undo_price="fee_cents"))
    talk.revise(book("Sat"))
    talk.price(2000)
    assert (talk.states(RELEASE), talk.leaves) == (["asked"], [])
    talk.answer(False, said="no")
    assert talk.operations["op-2"].arguments == {"day": "Sat"}


def test_release_first_changes_nothing_for_what_never_landed():
    talk = Conversation(tools={**TOOLS, "reserve": FIRST})
    talk.ask(book("Fri"))
    talk.revise(book("Sat"))
    assert talk.leaves == ["stop op-1", "close op-1"]
    talk.look("op-1", Absent())
    assert talk.states(RELEASE) == ["void"]
    assert talk.leaves == ["send op-2 1"]


# The replacement did not come about.


@pytest.mark.req("S0-45")
@pytest.mark.parametrize(("yes", "state"), [(True, "undoing"), (False, "waived")])
def test_when_nothing_replaces_it_the_person_is_asked_and_both_answers_work(yes, state):
    talk = friday()
    talk.revise(book("Sat"))
    written = talk.reply("op-2", FULL)
    assert written[-2:] == ["q-1 asked", "release/op-1 release_questioned"]
    assert (talk.states(RELEASE), talk.leaves) == (["questioned"], [])
    assert talk.question.text == (
        "You still hold reserve(day=Fri) (nothing replaces it). Shall I take it back?"
    )
    talk.answer(yes, said="yes" if yes else "no")
    assert talk.states(RELEASE) == [state]
    assert talk.leaves == (["send op-3 1"] if yes else [])


def test_a_step_after_the_replacement_that_breaks_off_does_not_keep_it_from_falling_due():
    talk = friday()
    talk.revise(book("Sat"), check())
    talk.lands("op-2", "R2")
    talk.lands("op-3")
    talk.see(LOST)
    assert talk.states("plan-T2", RELEASE) == ["partial", "done"]


def test_what_no_plan_replaces_is_due_at_once():
    talk = friday()
    talk.revise(text(), drop=["op-1"])
    assert talk.states(RELEASE) == ["undoing"]
    assert talk.release().why == "it is no longer wanted"


# Owed if it landed.


@pytest.mark.req("S4-18")
@pytest.mark.field("H8")
@pytest.mark.parametrize(
    ("look", "state"),
    [(Found(result={"id": "R1"}), "undoing"), (Absent(), "void")],
    ids=["it-landed", "it-did-not"],
)
def test_what_is_in_doubt_is_found_out_first_and_undone_only_if_it_landed(look, state):
    talk = Conversation()
    talk.ask(book("Fri"))
    talk.revise(text(), drop=["op-1"])
    assert talk.states(RELEASE, "op-1") == ["owed_if_landed", "unknown"]
    assert talk.leaves[:2] == ["stop op-1", "close op-1"]
    talk.look("op-1", look)
    assert talk.states(RELEASE) == [state]


def test_what_was_taken_back_before_it_was_sent_is_never_owed():
    talk = Conversation(draining=True)
    talk.ask(book("Fri"))
    talk.draining = False
    talk.revise(text(), drop=[])
    assert talk.releases == {}


# Never the very thing that the replacement returned.


@pytest.mark.req("S0-31")
@pytest.mark.fault("X58")
def test_what_the_replacement_returned_is_not_released_but_asked_about():
    talk = friday()
    talk.revise(book("Sat"))
    talk.lands("op-2", "R1")
    assert (talk.states(RELEASE), talk.leaves) == (["questioned"], [])
    assert talk.question.text == (
        "You still hold reserve(day=Fri) (op-2, which replaces it, returned the same thing)."
        " Shall I take it back?"
    )


# A change of mind about the change of mind.


@pytest.mark.req("S0-14")
def test_a_later_revision_turns_what_was_to_be_released_back_into_kept():
    talk = friday()
    talk.revise(book("Sat"))
    written = talk.revise(book("Fri"))
    assert f"{RELEASE} release_kept" in written
    assert talk.states("plan-T3", RELEASE, "op-1") == ["done", "kept", "confirmed"]
    assert talk.leaves == ["stop op-2", "close op-2"]
    talk.look("op-2", Found(result={"id": "R2"}))
    assert talk.states("op-1", RELEASE, "release/op-2") == ["confirmed", "kept", "undoing"]
    assert [o.arguments for o in talk.operations.values() if o.undoes] == [{"id": "R2"}]
    assert talk.questions == {}


@pytest.mark.req("S0-14")
@pytest.mark.parametrize("state", [ReleaseState.ASKED, ReleaseState.QUESTIONED])
def test_what_is_wanted_after_all_is_asked_about_no_longer(state):
    talk = friday(PRICED)
    talk.revise(book("Sat"))
    if state is ReleaseState.ASKED:
        talk.lands("op-2", "R2")
        talk.price(2000)
    else:
        talk.reply("op-2", FULL)
    assert talk.release().state is state
    talk.revise(book("Fri"))
    assert talk.states(RELEASE, "q-1") == ["kept", "lapsed"]
    assert talk.answer(True, question="q-1") == []


def test_what_is_asked_about_already_is_asked_anew_once_the_next_replacement_holds():
    talk = friday(PRICED)
    talk.revise(book("Sat"))
    talk.lands("op-2", "R2")
    talk.price(2000)
    talk.revise(book("Sun"))
    assert talk.states(RELEASE, "release/op-2", "q-1") == ["owed", "owed", "lapsed"]
    assert talk.states("op-3") == ["sent"]


def test_what_is_owed_is_handed_on_when_it_is_given_up_again():
    talk = friday(PRICED)
    talk.revise(book("Sat"))
    talk.lands("op-2", "R2")
    talk.price(2000)
    written = talk.revise(book("Sat"), drop=["op-1"])
    assert f"{RELEASE} release_handed_on" in written
    assert talk.states(RELEASE, "q-1") == ["due", "lapsed"]
    assert (talk.release().turn, talk.release().price_cents) == ("T3", None)
    assert talk.leaves == [f"price {RELEASE}"]


@pytest.mark.parametrize("sunday", [[book("Sun")], [text()]], ids=["another-day", "no-table"])
def test_what_waits_for_a_replacement_that_is_itself_revised_is_not_forgotten(sunday):
    talk = friday()
    talk.revise(book("Sat"))
    talk.revise(*sunday)
    talk.look("op-2", Absent()) if "close op-2" in talk.leaves else talk.lands("op-2", "R2")
    for id in [op.id for op in talk.operations.values() if op.state is State.SENT]:
        talk.lands(id)
    assert talk.states(RELEASE)[0] in {"undoing", "done", "asked", "questioned"}


def test_what_is_being_undone_at_this_moment_is_done_anew_when_it_is_wanted_again():
    talk = saturday()
    talk.revise(book("Fri"))
    assert talk.states(RELEASE) == ["undoing"]
    assert talk.operations["op-4"].arguments == {"day": "Fri"}


def test_what_was_waived_and_is_given_up_again_is_owed_again():
    talk = friday()
    talk.revise(book("Sat"))
    talk.reply("op-2", FULL)
    talk.answer(False)
    assert talk.states(RELEASE) == ["waived"]
    talk.revise(text(), drop=["op-1"])
    revised = talk.revising(text("Sat"), drop=["op-1"])
    talk.lap(replace(revised, operations=("op-1",)))
    assert talk.states(RELEASE) == ["undoing"]
