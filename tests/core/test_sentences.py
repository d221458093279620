"""What is said of every state, to the model and to the person, in each language."""

import re
from collections.abc import Mapping
from dataclasses import replace
from string import Formatter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from landed.core.contract import LANGUAGES, SAYABLE, check
from landed.core.errors import ContractError
from landed.core.operation import Evidence, Source, State
from landed.core.outcome import AnswerLost
from landed.core.sentences import (
    CONTRADICTED,
    FACTS,
    NOTHING_DONE,
    QUESTIONS,
    TEXT_MAX,
    TO_MODEL,
    TO_PERSON,
    TURN,
    call_text,
    corrected,
    fact,
    held,
    keep_question,
    money,
    observed,
    of_turn,
    price_question,
    sayable,
    sentence,
    to_model,
    to_person,
)
from tests.core.build import BARE, FULL, lap, operation, replied

WHY = Evidence(source=Source.RUNTIME, at=1.0, says="no answer within 30 s")
SAYS = {
    "confirmed": "booked {id} ({day} for {covers})",
    "held": "{id} ({day} for {covers})",
    "unknown": "I may have booked {day} for {covers}: {why}",
}
RESTAURANT = replace(BARE, says={"en": SAYS})

# What may have happened, and what nobody can say more of than that.
UNSETTLED = [State.SENT, State.RESENT, State.ACCEPTED, State.UNKNOWN, State.UNDECIDED]


def op(state: State, **fields: Any):
    return operation(state, evidence=(WHY,), **fields)


# Complete in each language.


@pytest.mark.req("S0-42")
@pytest.mark.parametrize("language", LANGUAGES)
def test_every_state_has_words_in_each_language(language):
    assert set(FACTS[language]) == SAYABLE
    assert all(FACTS[language].values())


def test_what_follows_for_a_model_is_said_of_every_state_a_call_can_be_in():
    assert set(TO_MODEL) == SAYABLE - {"held", "corrected"}


TABLES: list[Mapping[str, Mapping[str, str]]] = [FACTS, TO_PERSON, QUESTIONS, TURN]


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("language", LANGUAGES)
def test_one_language_says_no_less_than_another(table, language):
    assert set(table) == set(LANGUAGES)
    assert set(table[language]) == set(table["en"])
    for name, words in table[language].items():
        assert _named(words) == _named(table["en"][name]), name


@pytest.mark.parametrize("table", [CONTRADICTED, NOTHING_DONE])
def test_the_single_sentences_are_there_in_each_language(table):
    assert set(table) == set(LANGUAGES)
    assert len({_named(words) for words in table.values()}) == 1


def test_no_sentence_of_one_language_was_left_in_another():
    for table in TABLES:
        for name, words in table["es"].items():
            assert words != table["en"][name] or words == "{call}"


def _named(words: str) -> frozenset[str]:
    return frozenset(name for _, name, _, _ in Formatter().parse(words) if name is not None)


@pytest.mark.parametrize("language", LANGUAGES)
def test_only_what_is_at_hand_stands_in_braces(language):
    known = {"tool", "call", "why", "by", "operation", "key", "result"}
    for words in (*FACTS[language].values(), *TO_MODEL.values(), *TO_PERSON[language].values()):
        assert _named(words) <= known


# Never: it failed, or try again.

FAILED = re.compile(r"fail|error|did not|unsuccess|fall[oó]|error|no se hizo|fracas", re.I)
AGAIN = re.compile(r"try again|retry|once more|call it again|vuelve a|reint[eé]nt|otra vez", re.I)
NOT_AGAIN = re.compile(r"do not call it again", re.I)


@pytest.mark.req("S4-42", "S4-51")
@pytest.mark.parametrize("state", UNSETTLED)
def test_no_sentence_for_what_is_unknown_says_that_it_failed_or_invites_a_retry(state):
    told = [to_model(op(state), BARE), *(to_person(op(state), BARE, language=x) for x in LANGUAGES)]
    for text in told:
        assert not FAILED.search(text), text
        assert not AGAIN.search(NOT_AGAIN.sub("", text)), text


@pytest.mark.req("S4-42")
@pytest.mark.parametrize("state", UNSETTLED)
def test_a_model_is_told_not_to_call_again_what_may_have_happened_and_where_to_look(state):
    text = to_model(op(state), BARE)
    assert "o not call it again" in text
    assert "op-a1" in text


@pytest.mark.req("S4-51")
def test_a_service_that_says_try_again_is_not_quoted_to_the_model():
    lost = replied(AnswerLost(reason="503: payment failed, please try again"))
    unknown = lap(operation(State.SENT), contract=BARE, arrivals=(lost,)).operations["op-a1"]
    assert not AGAIN.search(NOT_AGAIN.sub("", to_model(unknown, BARE)))


def test_that_nobody_answered_yet_is_said_in_the_persons_language():
    assert "nobody answered yet" not in to_person(operation(State.UNKNOWN), BARE, language="es")


# What is said of each state.


@pytest.mark.parametrize(
    ("state", "fields", "says"),
    [
        (State.RECORDED, {}, "recorded"),
        (State.RECORDED, {"blocked_by": "op-a9"}, "blocked"),
        (State.SENT, {}, "sent"),
        (State.RESENT, {}, "unknown"),
        (State.ACCEPTED, {}, "accepted"),
        (State.UNKNOWN, {}, "unknown"),
        (State.ASSUMED, {}, "assumed"),
        (State.UNDECIDED, {}, "undecided"),
        (State.CONFIRMED, {}, "confirmed"),
        (State.CONFIRMED, {"complete": False}, "partly"),
        (State.FAILED, {}, "failed"),
        (State.WITHDRAWN, {"blocked_by": "op-a9"}, "withdrawn"),
    ],
)
def test_each_state_has_its_own_words(state, fields, says):
    assert sayable(operation(state, **fields)) == says
    call = "reserve_table(day=Fri, covers=4)"
    told = fact(op(state, **fields), BARE)
    assert told == FACTS["en"][says].format(
        call=call, why=WHY.says, by=fields.get("blocked_by"), result="nothing more"
    )


@pytest.mark.req("S0-42")
def test_a_contracts_own_words_take_the_place_of_the_fact_and_what_follows_stays():
    done = op(State.CONFIRMED, result={"id": "R1"})
    assert to_model(done, RESTAURANT) == "Booked R1 (Fri for 4)."
    assert to_person(done, RESTAURANT) == "Booked R1 (Fri for 4)."
    assert to_model(op(State.UNKNOWN), RESTAURANT) == (
        "I may have booked Fri for 4: no answer within 30 s. It may have happened. It is being"
        " found out; do not call it again, ask for the status of op-a1."
    )
    assert to_person(op(State.UNKNOWN), RESTAURANT) == (
        "I may have booked Fri for 4: no answer within 30 s. I am finding out; its number is op-a1."
    )


def test_a_state_that_the_contract_has_no_words_for_keeps_the_default():
    assert to_person(op(State.FAILED), RESTAURANT) == (
        "It had no effect: reserve_table(day=Fri, covers=4): no answer within 30 s."
    )
    spanish = to_person(op(State.UNDECIDED), RESTAURANT, language="es")
    assert spanish == (
        "No se pudo averiguar el resultado: reserve_table(day=Fri, covers=4)."
        " Alguien tiene que mirarlo; su número es op-a1."
    )


@pytest.mark.req("S0-35", "S0-42")
def test_what_is_treated_as_sent_is_said_to_be_treated_so():
    words = {"assumed": "I couldn't confirm the text, so I've treated it as sent"}
    texts = replace(BARE, says={"en": words})
    assert to_person(op(State.ASSUMED), texts) == (
        "I couldn't confirm the text, so I've treated it as sent."
    )
    assert to_model(op(State.ASSUMED), texts).endswith("Say that it was not confirmed (op-a1).")
    assert corrected(op(State.ASSUMED), texts) == to_person(op(State.ASSUMED), texts)


@pytest.mark.req("S0-34")
def test_what_had_gone_out_already_is_said_before_what_puts_it_right():
    texts = replace(BARE, says={"en": {"corrected": "the earlier text had already gone out"}})
    assert corrected(op(State.CONFIRMED), texts) == "The earlier text had already gone out."
    assert corrected(op(State.CONFIRMED), BARE, language="es") == (
        "Ya había ocurrido: reserve_table(day=Fri, covers=4)."
    )


def test_a_late_contradiction_is_told_to_the_person():
    late = op(State.FAILED, contradicted=True)
    for language in LANGUAGES:
        told = to_person(late, BARE, language=language)
        assert told.endswith(CONTRADICTED[language].format(operation="op-a1"))


def test_a_late_contradiction_is_told_to_the_model_too():
    late = op(State.FAILED, contradicted=True)
    assert to_model(late, BARE) != to_model(op(State.FAILED), BARE)


@pytest.mark.parametrize(
    ("state", "result", "why", "says"),
    [
        ("answered", {"free": True}, "", "the answer to check(day=Fri): free yes"),
        ("unanswered", None, "timed out", "no answer to check(day=Fri): timed out"),
        ("dropped", None, "", "not waited for, and it changes nothing: check(day=Fri)"),
    ],
)
def test_a_call_without_an_effect_is_said_to_be_one(state, result, why, says):
    told = observed(
        BARE, tool="check", arguments={"day": "Fri"}, state=state, result=result, why=why
    )
    assert told == says


# Questions, and what a turn's report says beside its operations.


def test_the_questions_name_what_is_held_and_what_it_costs():
    done = op(State.CONFIRMED, result={"id": "R1"})
    assert held(done, RESTAURANT) == "R1 (Fri for 4)"
    assert price_question(done, RESTAURANT, price_cents=2005, language="en") == (
        "Taking back R1 (Fri for 4) costs 20.05. Shall I?"
    )
    assert price_question(done, RESTAURANT, price_cents=0, language="en") == (
        "Taking back R1 (Fri for 4) is final. Shall I?"
    )
    assert keep_question(done, RESTAURANT, why="nothing replaces it", language="en") == (
        "You still hold R1 (Fri for 4) (nothing replaces it). Shall I take it back?"
    )


@pytest.mark.parametrize(
    ("cents", "says"), [(0, "0.00"), (5, "0.05"), (2000, "20.00"), (123456, "1234.56")]
)
def test_money_keeps_its_two_decimals(cents, says):
    assert money(cents) == says


@given(st.integers(0, 10**18))
def test_money_is_exact(cents):
    assert int(money(cents).replace(".", "")) == cents


def test_what_stays_is_said_with_what_it_stays_beside():
    assert of_turn("stays_beside", held="r1 (Fri)", beside="R2 (Sat)") == (
        "R1 (Fri) stays, beside R2 (Sat)."
    )
    assert of_turn("not_done", language="es", calls="text()") == "Sin hacer: text()."


# How a sentence is made.


@pytest.mark.parametrize(
    ("said", "made"),
    [
        ("", ""),
        (" \n ", ""),
        ("done", "Done."),
        ("done!", "Done!"),
        ("is it?", "Is it?"),
        ("so.", "So."),
        ("two\nlines\t here", "Two lines here."),
        ("élan", "Élan."),
    ],
)
def test_a_sentence_has_a_capital_a_full_stop_and_one_line(said, made):
    assert sentence(said) == made


@given(st.text(max_size=50), st.integers(1, 200))
def test_a_sentence_is_bounded_and_stays_in_one_line(text, times):
    made = sentence(text * times)
    assert len(made) <= TEXT_MAX + 2
    assert len(made.splitlines()) <= 1


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "nothing more"),
        (True, "yes"),
        (False, "no"),
        ("x", "x"),
        (4, "4"),
        (0.5, "0.5"),
        (["a", 1, None], "a, 1, nothing more"),
        ({"id": "R1", "at": {"day": "Fri"}}, "id R1, at day Fri"),
    ],
)
def test_a_value_is_shown_in_words(value, shown):
    assert call_text("t", {"v": value}) == f"t(v={shown})"


def test_what_a_service_did_not_say_reads_as_a_question_mark():
    assert to_model(op(State.CONFIRMED, result={"number": 7}), RESTAURANT) == (
        "Booked ? (Fri for 4)."
    )


def test_the_fields_of_the_result_stand_beside_the_arguments_and_take_none_of_ours():
    words = {"confirmed": "{tool} {operation} {day} {note}"}
    done = op(State.CONFIRMED, result={"tool": "evil", "operation": "op-x", "note": "{why}"})
    assert fact(done, replace(BARE, says={"en": words})) == "reserve_table op-a1 Fri {why}"


@pytest.mark.parametrize("words", ["booked {0}", "booked {id.number}", "{id:d}", "{id"])
def test_words_that_do_not_fit_what_came_back_hide_nothing(words):
    done = op(State.CONFIRMED, result={"id": "R1"})
    told = to_model(done, replace(BARE, says={"en": {"confirmed": words}}))
    assert told == "Done: reserve_table(day=Fri, covers=4): id R1."


@pytest.mark.parametrize("words", ["booked {id", "booked {0}", "booked {id.number}", "{id:d}"])
def test_words_that_cannot_be_filled_in_are_refused_when_they_are_registered(words):
    with pytest.raises(ContractError):
        check(replace(FULL, says={"en": {"confirmed": words}}), tool="t")
