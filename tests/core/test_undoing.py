"""An undo at a price that was agreed, resolved like every operation, or in front of a person."""

from dataclasses import replace

import pytest

from landed.core.contract import Effect, Risk
from landed.core.erased import erased_arguments
from landed.core.outcome import Absent, Acknowledged, AnswerLost, Found, Refused
from landed.core.scope import AskPrice
from landed.core.undo import UNDO_TRIES_MAX
from tests.core.conversation import (
    CANCEL,
    PRICED,
    RESERVE,
    TOOLS,
    Conversation,
    book,
    friday,
    saturday,
    sent_arguments,
    text,
)

LOST = AnswerLost(reason="timed out")
FULL = Refused(reason="fully booked")
RELEASE = "release/op-1"


# What it costs.


@pytest.mark.req("S0-47")
@pytest.mark.field("H7")
def test_the_price_is_asked_of_who_knows_it_and_a_person_is_asked_to_pay_it():
    talk = saturday(PRICED)
    assert talk.leaves == [f"price {RELEASE}"]
    (asks,) = [each for each in talk.decided.commands if isinstance(each, AskPrice)]
    assert (asks.tool, asks.arguments, asks.ask.turn) == ("fee", {"id": "R1"}, "T2")
    written = talk.price(2000)
    assert written[1:] == [f"{RELEASE} release_priced", "q-1 asked", f"{RELEASE} release_asked"]
    assert (talk.states(RELEASE), talk.leaves) == (["asked"], [])
    assert (talk.question.amount_cents, talk.question.principal) == (2000, "ann")
    assert talk.question.text == "Taking back reserve(day=Fri) costs 20.00. Shall I?"
    assert talk.observed() == [("fee", "answered", {"fee_cents": 2000})]


@pytest.mark.req("S0-48")
@pytest.mark.fault("X68")
def test_a_yes_runs_the_undo_once_at_the_amount_that_was_agreed():
    talk = saturday(PRICED)
    talk.price(2000)
    written = talk.answer(True, said="yes")
    assert written == [
        "in-T3 received",
        "T3 opened",
        "q-1 approved",
        f"{RELEASE} release_approved",
        f"{RELEASE} release_started",
        "op-3 made",
        "op-3 sent",
    ]
    assert sent_arguments(talk) == {"id": "R1", "fee_cents": 2000}
    assert (talk.operations["op-3"].turn, talk.release().turn) == ("T3", "T3")
    assert talk.answer(True, question="q-1", said="yes") == ["in-T4 received", "T4 opened"]
    talk.lands("op-3")
    assert talk.states(RELEASE) == ["done"]


def test_a_button_answers_without_a_word_and_the_turn_stays():
    talk = saturday(PRICED)
    talk.price(2000)
    assert talk.answer(True)[0] == "q-1 approved"
    assert talk.release().turn == "T2"
    assert (talk.question.answered_by, talk.question.input) == ("ann", "")


@pytest.mark.req("S0-49")
@pytest.mark.fault("X68")
def test_an_undo_that_is_refused_because_the_price_changed_is_asked_about_anew():
    talk = saturday(PRICED)
    talk.price(2000)
    talk.answer(True, said="yes")
    written = talk.reply("op-3", Refused(reason="the fee is 30.00 now"))
    assert written == ["op-3 refused", f"{RELEASE} release_not_done"]
    assert talk.leaves == [f"price {RELEASE}"]
    assert (talk.release().agreed, talk.release().price_cents) == (False, None)
    talk.price(3000)
    assert (talk.question.id, talk.question.amount_cents) == ("q-2", 3000)
    assert (talk.states(RELEASE), talk.leaves) == (["asked"], [])
    talk.answer(True, said="yes")
    assert sent_arguments(talk) == {"id": "R1", "fee_cents": 3000}
    assert talk.release().tries == 2


@pytest.mark.req("S0-50")
def test_a_no_to_the_price_waives_the_release_and_nothing_is_sent():
    talk = saturday(PRICED)
    talk.price(2000)
    talk.answer(False, said="no")
    assert (talk.states(RELEASE, "q-1"), talk.leaves) == (["waived", "no"], [])
    assert talk.release().why == "declined by ann"
    assert talk.lap(after_s=1e4) == []


def test_anything_else_than_a_yes_or_a_no_leaves_it_owed_and_the_price_is_asked_anew():
    talk = saturday(PRICED)
    talk.price(2000)
    talk.answer(None, said="what was it about?")
    assert talk.states(RELEASE, "q-1") == ["due", "lapsed"]
    assert (talk.release().price_cents, talk.leaves) == (None, [f"price {RELEASE}"])


@pytest.mark.req("S0-51")
def test_what_costs_nothing_is_undone_without_a_question_where_the_user_asked_for_the_turn():
    talk = saturday(PRICED)
    talk.price(0)
    assert talk.states(RELEASE) == ["undoing"]
    assert sent_arguments(talk) == {"id": "R1", "fee_cents": 0}


@pytest.mark.req("S0-51")
@pytest.mark.parametrize(
    ("contract", "price"), [(RESERVE, None), (PRICED, 0)], ids=["no-price", "a-price-of-nothing"]
)
def test_what_is_final_needs_a_yes_where_nobody_asked_for_the_turn(contract, price):
    talk = friday(contract)
    talk.revise(book("Sat"), origin="timer")
    talk.lands("op-2", "R2")
    if price is not None:
        talk.price(price)
    assert (talk.states(RELEASE), talk.leaves) == (["asked"], [])
    assert talk.question.text == "Taking back reserve(day=Fri) is final. Shall I?"
    talk.answer(True)
    assert talk.states(RELEASE) == ["undoing"]


@pytest.mark.req("S0-51")
def test_an_undo_that_can_itself_be_undone_needs_no_yes_in_a_turn_of_a_timer():
    talk = friday(cancel=replace(CANCEL, effect=Effect.REVERSIBLE))
    talk.revise(book("Sat"), origin="timer")
    talk.lands("op-2", "R2")
    assert talk.states(RELEASE) == ["undoing"]


def test_an_undo_whose_contract_asks_for_a_yes_always_gets_one():
    talk = saturday(cancel=replace(CANCEL, risk=Risk.CONFIRM))
    assert talk.states(RELEASE) == ["asked"]


@pytest.mark.parametrize(
    "outcome",
    [
        LOST,
        Refused(reason="no such reservation"),
        Acknowledged(result=None),
        Acknowledged(result={"fee_cents": "2000"}),
        Acknowledged(result={"fee_cents": -1}),
        Acknowledged(result={"fee_cents": True}),
        Acknowledged(result={"fee": 2000}),
    ],
)
def test_where_nobody_can_say_what_it_costs_the_person_decides(outcome):
    talk = saturday(PRICED)
    talk.price(outcome)
    assert (talk.states(RELEASE), talk.leaves) == (["questioned"], [])
    assert "what it costs could not be found out" in talk.question.text
    assert talk.observed() == [("fee", "unanswered", None)]


def test_the_price_is_asked_once_while_it_is_waited_for_and_again_after_a_crash():
    talk = saturday(PRICED)
    assert (talk.lap(), talk.leaves) == ([], [])
    talk.crash()
    assert talk.leaves == [f"price {RELEASE}"]


def test_a_price_that_comes_when_it_is_not_due_any_more_says_nothing():
    talk = saturday(PRICED)
    talk.revise(book("Fri"), book("Sat"))
    assert talk.states(RELEASE) == ["kept"]
    assert talk.price(2000) == []


def test_where_the_tool_that_knows_the_price_is_not_registered_the_person_decides():
    talk = friday(PRICED)
    talk.registered = frozenset(TOOLS) - {"fee"}
    talk.revise(book("Sat"))
    talk.lands("op-2", "R2")
    assert (talk.states(RELEASE), talk.leaves) == (["questioned"], [])


# The undo itself.


@pytest.mark.field("H1")
@pytest.mark.fault("X05")
def test_an_undo_that_nobody_answers_is_found_out_like_every_operation():
    talk = saturday()
    talk.reply("op-3", LOST)
    assert talk.states(RELEASE, "op-3") == ["undoing", "unknown"]
    assert talk.leaves == ["lookup op-3"]
    assert talk.look("op-3", Found(result={"id": "R1"})) == [
        "op-3 found",
        f"{RELEASE} release_done",
    ]


@pytest.mark.field("H1")
@pytest.mark.fault("X05")
def test_after_a_crash_an_undo_is_resumed_under_its_own_key_and_not_begun_anew():
    talk = saturday()
    talk.crash()
    assert talk.leaves == ["lookup op-3"]
    talk.look("op-3", Absent())
    assert talk.leaves == ["send op-3 2"]
    assert [o.id for o in talk.operations.values() if o.undoes] == ["op-3"]
    talk.lands("op-3")
    assert talk.states(RELEASE) == ["done"]


@pytest.mark.field("H1")
def test_an_undo_that_was_refused_is_not_done_and_a_person_decides():
    talk = saturday()
    written = talk.reply("op-3", Refused(reason="too late to cancel"))
    assert written[1:] == [
        f"{RELEASE} release_not_done",
        "q-1 asked",
        f"{RELEASE} release_questioned",
    ]
    assert "too late to cancel" in talk.question.text
    talk.answer(True)
    assert (talk.states(RELEASE), talk.leaves) == (["undoing"], ["send op-4 1"])
    assert talk.operations["op-4"].key != talk.operations["op-3"].key


def test_the_undos_of_one_release_are_bounded():
    talk = saturday(PRICED)
    for number in range(UNDO_TRIES_MAX):
        talk.price(0)
        assert talk.release().tries == number + 1
        talk.reply(talk.release().undo, Refused(reason="not now"))
    assert (talk.states(RELEASE), talk.leaves) == (["questioned"], [])
    assert "not now" in talk.question.text
    assert len([o for o in talk.operations.values() if o.undoes]) == UNDO_TRIES_MAX


def test_an_undo_that_nobody_can_find_out_about_is_in_front_of_a_person():
    bare = replace(CANCEL, keyed="", compares_payload=False, lookup=False, close=False)
    talk = saturday(cancel=bare)
    talk.reply("op-3", LOST)
    talk.lap(after_s=900.0)
    assert talk.states(RELEASE, "op-3") == ["undoing", "undecided"]


def test_what_stands_in_the_way_of_the_undo_puts_it_before_a_person():
    talk = friday(cancel=replace(CANCEL, target=("desk",)))
    talk.holders = {"target/default/restaurant/desk": "op-z9"}
    talk.revise(book("Sat"))
    talk.lands("op-2", "R2")
    assert (talk.states(RELEASE), talk.leaves) == (["questioned"], [])
    assert talk.operations["op-3"].blocked_by == "op-z9"


def test_an_undo_that_was_blocked_is_taken_back_before_another_is_made():
    talk = friday(cancel=replace(CANCEL, target=("desk",)))
    talk.holders = {"target/default/restaurant/desk": "op-z9"}
    talk.revise(book("Sat"))
    talk.lands("op-2", "R2")
    talk.holders = {}
    talk.answer(True)
    assert talk.states(RELEASE, "op-4") == ["undoing", "sent"]
    assert talk.states("op-3") == ["withdrawn"]


def test_a_tool_that_is_not_registered_any_more_puts_it_before_a_person():
    talk = friday()
    talk.registered = frozenset(TOOLS) - {"cancel"}
    talk.revise(book("Sat"))
    talk.lands("op-2", "R2")
    assert talk.states(RELEASE) == ["questioned"]
    assert "the tool 'cancel' is not registered here" in talk.question.text


@pytest.mark.req("S0-39")
@pytest.mark.parametrize(("after_s", "state"), [(60.0, "undoing"), (60.1, "questioned")])
def test_past_its_cut_off_nothing_is_undone_without_a_word(after_s, state):
    talk = friday(replace(RESERVE, undo_within_s=60.0))
    talk.now += after_s
    talk.revise(text(), drop=["op-1"])
    assert talk.states(RELEASE) == [state]


def test_while_draining_nothing_is_undone_and_no_price_asked():
    talk = friday()
    talk.revise(book("Sat"))
    talk.draining = True
    talk.lands("op-2", "R2")
    assert (talk.states(RELEASE), talk.leaves) == (["due"], [])
    talk.draining = False
    talk.lap()
    assert (talk.states(RELEASE), talk.leaves) == (["undoing"], ["send op-3 1"])
    other = friday(PRICED)
    other.revise(book("Sat"))
    other.draining = True
    other.lands("op-2", "R2")
    assert (other.states(RELEASE), other.leaves) == (["due"], [])


UNNAMED = Acknowledged(result={"number": 1})


@pytest.mark.parametrize("contract", [RESERVE, PRICED])
def test_an_undo_whose_arguments_are_not_known_puts_it_before_a_person(contract):
    talk = Conversation(tools={**TOOLS, "reserve": contract})
    talk.ask(book("Fri"))
    talk.reply("op-1", UNNAMED)
    talk.revise(book("Sat"))
    talk.lands("op-2", "R2")
    assert talk.states(RELEASE) == ["questioned"]


def test_what_says_of_itself_that_it_cannot_be_undone_puts_it_before_a_person():
    talk = Conversation(tools={**TOOLS, "reserve": replace(RESERVE, undo_where="free")})
    talk.ask(book("Fri"))
    talk.reply("op-1", Acknowledged(result={"id": "R1", "free": False}))
    talk.revise(book("Sat"))
    talk.lands("op-2", "R2")
    assert (talk.states(RELEASE), talk.leaves) == (["questioned"], [])
    assert "it says of itself that it cannot be undone" in talk.question.text


def test_what_was_erased_cannot_be_undone_any_more_and_is_put_before_a_person():
    talk = friday()
    held = talk.store.records["op-1"]
    left = {**held.frozen, "arguments": erased_arguments(held.frozen["arguments"], at=talk.now)}
    records = {**talk.store.records, "op-1": replace(held, frozen=left)}
    talk.store = replace(talk.store, records=records)
    talk.revise(book("Sat"))
    talk.lands("op-2", "R2")
    assert talk.states(RELEASE) == ["questioned"]
    assert "its details were erased on 1970-01-01" in talk.question.text
