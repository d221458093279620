"""A conversation's own records: born closed, and read back as they were."""

from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from landed.core.changes import Kind, Stored, apply
from landed.core.declared import digest_of, from_values
from landed.core.errors import StaleWriteError
from landed.core.key import Ask
from landed.core.operation_record import to_record
from landed.core.plan import plan_record
from landed.core.session import (
    Input,
    Observation,
    contract_id,
    contracts_of,
    delivery_name,
    input_of,
    kept_contract,
    observation_of,
    observing,
    opening,
    saying,
    seeing,
    unacted,
)
from tests.core.build import FULL, operation
from tests.core.conversation import PRICED, TOOLS, Conversation, book, check, wanting

words = st.text(max_size=5)
inputs = st.builds(
    Input, **{each.name: words for each in fields(Input) if each.name != "at"}, at=st.floats(0, 1e9)
)
asks = st.builds(
    Ask, tenant=words, principal=words, session=words, input=words, turn=words, call_id=words
)
observations = st.builds(
    Observation,
    id=words,
    ask=asks,
    tool=words,
    contract=words,
    arguments=st.dictionaries(words, words, max_size=2),
    state=st.sampled_from(["answered", "unanswered", "dropped"]),
    result=st.none() | words,
    why=words,
    at=st.floats(0, 1e9),
)


SEEN = Observation(
    id="ob-1",
    ask=Ask(session="s1"),
    tool="check",
    contract="sha256:check",
    arguments={"day": "Fri"},
    state="answered",
    result={"free": True},
    why="",
    at=1.0,
)


def heard(**more: Any) -> Input:
    made: dict[str, Any] = {
        "id": "in-1",
        "tenant": "default",
        "session": "s1",
        "principal": "ann",
        "text": "book Friday for four",
        "origin": "user",
        "delivery": "d-1",
        "turn": "T1",
        "at": 5.0,
    }
    return Input(**{**made, **more})


@given(inputs)
def test_an_input_is_read_back_as_it_came(received):
    whole, turn = opening(received).moves
    assert input_of(whole.after) == received
    assert (turn.after.id, turn.after.kind) == (received.turn, Kind.TURN)
    assert turn.after.frozen["input"] == received.id


@pytest.mark.req("S0-58")
def test_the_users_own_words_are_kept_as_they_were_said():
    said = "Actually…  make it  Saturday\n"
    _, records = apply(Stored(), opening(heard(text=said)))
    assert input_of(records[0]).text == said


def test_one_delivery_is_one_input_for_ever():
    store, _ = apply(Stored(), opening(heard()))
    assert store.names == {delivery_name(tenant="default", delivery="d-1"): "in-1"}
    with pytest.raises(StaleWriteError, match="held by in-1"):
        apply(store, opening(heard(id="in-2", turn="T2")))
    without, _ = apply(Stored(), opening(heard(delivery="")))
    assert without.names == {}


def test_a_delivery_counts_once_for_each_tenant():
    assert delivery_name(tenant="t1", delivery="d") != delivery_name(tenant="t2", delivery="d")


def test_an_input_says_who_asks_for_what_is_done_for_it():
    ask = heard().ask("c1", send_by=9.0)
    assert ask == Ask(
        tenant="default",
        principal="ann",
        session="s1",
        input="in-1",
        turn="T1",
        call_id="c1",
        send_by=9.0,
    )
    assert (heard().ask().call_id, heard().ask().send_by) == ("", None)


@given(observations)
def test_an_observation_is_read_back_as_it_was(seen):
    (move,) = observing(seen).moves
    assert observation_of(move.after) == seen
    assert (move.event.name, move.event.at) == (seen.state, seen.at)


def test_what_was_said_is_kept_with_its_turn():
    changes = saying(
        id="m-1", tenant="default", session="s1", turn="T1", text="Booked Friday.", at=7.0
    )
    (move,) = changes.moves
    assert (move.after.kind, move.after.state) == (Kind.MESSAGE, "said")
    assert move.after.frozen == {"turn": "T1", "text": "Booked Friday.", "at": 7.0}


def test_a_contract_that_was_seen_can_be_judged_by_for_ever():
    (move,) = seeing(FULL, tool="reserve", at=1.0).moves
    assert move.after.id == contract_id(digest_of(FULL))
    tool, plain = kept_contract(move.after)
    assert (tool, from_values(plain, tool=tool)) == ("reserve", FULL)


def test_what_is_said_heard_or_seen_is_born_closed_and_held_by_nobody():
    units = [
        opening(heard()),
        observing(SEEN),
        saying(id="m-1", tenant="default", session="s1", turn="T1", text="", at=7.0),
        seeing(FULL, tool="t", at=1.0),
    ]
    for unit in units:
        _, records = apply(Stored(), unit)
        for record in records:
            assert (record.open, record.epoch, record.worker, record.version) == (False, 0, "", 1)


def test_a_record_names_the_contracts_it_was_made_under():
    plan = plan_record(wanting([check(), book()], TOOLS))
    assert contracts_of(plan) == {"sha256:check", "sha256:reserve"}
    assert contracts_of(to_record(operation(contract="sha256:x"))) == {"sha256:x"}
    (seen,) = observing(SEEN).moves
    assert contracts_of(seen.after) == {"sha256:check"}
    assert contracts_of(opening(heard()).moves[0].after) == set()


@pytest.mark.req("S0-55")
def test_an_input_is_acted_on_once_a_record_of_its_turn_or_an_answer_says_so():
    talk = Conversation(tools={**TOOLS, "reserve": PRICED})
    for number in (1, 2, 3):
        talk.write(opening(heard(id=f"in-{number}", turn=f"T{number}", delivery="")))
    assert [each.id for each in _unacted(talk)] == ["in-1", "in-2", "in-3"]
    talk.ask(book("Fri"))  # in turn T1
    assert [each.id for each in _unacted(talk)] == ["in-2", "in-3"]
    talk.lands("op-1", "R1")
    talk.turns = 2
    talk.revise(book("Sat"))  # in turn T3
    talk.lands("op-2", "R2")
    talk.price(2000)
    talk.answer(True, said="yes")  # an input of its own
    assert [each.id for each in _unacted(talk)] == ["in-2"]


def test_what_was_said_instead_of_an_answer_is_still_to_be_acted_on():
    talk = Conversation(tools={**TOOLS, "reserve": PRICED})
    talk.ask(book("Fri"))
    talk.lands("op-1", "R1")
    talk.revise(book("Sat"))
    talk.lands("op-2", "R2")
    talk.price(2000)
    talk.answer(None, said="yes, but make it Sunday")
    assert [each.text for each in _unacted(talk)] == ["yes, but make it Sunday"]


def _unacted(talk: Conversation):
    return unacted([*talk.store.records.values()])
