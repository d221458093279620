"""The machine alone: its table against the story, its states, its record and its picture."""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from landed.core.canonical import Json
from landed.core.changes import Kind, Move
from landed.core.errors import IllegalEventError
from landed.core.event import Event
from landed.core.journal import bodies, body_of
from landed.core.key import Ask
from landed.core.operation import (
    EVIDENCE_MAX,
    MOVES,
    SAYS_MAX,
    STATES,
    Evidence,
    Happened,
    Operation,
    Source,
    State,
    moved,
    under,
)
from landed.core.operation_record import from_record, to_record
from tests.core.build import SENT_AT, operation

LATER = SENT_AT + 5.0
REPLY = Evidence(source=Source.REPLY, at=LATER, says="the service answered")

# DESIGN.md, "Life of an operation", line by line: every way from one state to another.
LIFE = """
recorded   sent            > sent
recorded   withdrawn       > withdrawn
sent       acknowledged    > confirmed
sent       accepted        > accepted
sent       refused         > failed
sent       not_sent        > recorded
sent       never_sent      > failed
sent       answer_lost     > unknown
sent       stopped_midway  > confirmed
accepted   acknowledged    > confirmed
accepted   read_back       > confirmed
accepted   read_absent     > failed
accepted   lag_over        > unknown
unknown    found           > confirmed
unknown    acknowledged    > confirmed
unknown    refused         > failed
unknown    never_sent      > failed
unknown    closed_empty    > failed
unknown    absent_for_good > failed
unknown    assumed         > assumed
unknown    gave_up         > undecided
recorded   restored        > unknown
sent       restored        > unknown
resent     restored        > unknown
accepted   restored        > unknown
unknown    resent          > resent
resent     acknowledged    > confirmed
resent     accepted        > accepted
resent     refused_again   > unknown
resent     not_sent        > unknown
resent     answer_lost     > unknown
assumed    found           > confirmed
assumed    acknowledged    > confirmed
assumed    ruled_landed    > confirmed
assumed    refused         > failed
assumed    never_sent      > failed
assumed    absent_for_good > failed
assumed    ruled_absent    > failed
undecided  found           > confirmed
undecided  acknowledged    > confirmed
undecided  ruled_landed    > confirmed
undecided  refused         > failed
undecided  never_sent      > failed
undecided  closed_empty    > failed
undecided  absent_for_good > failed
undecided  ruled_absent    > failed
"""

# What is written down while the state stays as it is.
STAYS = {
    "prepared": "recorded",
    "blocked": "recorded",
    "looked": "accepted unknown assumed undecided",
    "closing": "unknown undecided",
    "restored": "unknown",
    "unwanted": "sent resent accepted unknown",
    "told": "recorded sent resent accepted unknown assumed undecided",
    "noted": "undecided",
    "lifted": "undecided",
    "contradicted": "failed confirmed",
}


def _life() -> dict[tuple[str, str], str]:
    told = [line.replace(">", "").split() for line in LIFE.strip().splitlines()]
    moves = {(before, event): after for before, event, after in told}
    stays = {(state, event): state for event, states in STAYS.items() for state in states.split()}
    return moves | stays


EDGES = {(state, event): after for state, ways in MOVES.items() for event, after in ways.items()}
PAIRS = [(state, event) for state in State for event in Happened]


# The table.


def test_the_table_tells_the_story_of_the_design():
    assert _life() == EDGES


@pytest.mark.req("S4-06")
@pytest.mark.parametrize(("state", "event"), PAIRS, ids=[f"{s}-{e}" for s, e in PAIRS])
def test_every_event_either_moves_a_state_as_the_story_says_or_is_illegal(state, event):
    after = _life().get((state, event))
    before = operation(state)
    if after is None:
        with pytest.raises(IllegalEventError) as refused:
            moved(before, event, at=LATER)
        assert str(refused.value) == f"op-a1 is {state}: it cannot be {event}"
    else:
        came = moved(before, event, at=LATER, evidence=REPLY)
        assert came.state == after
        assert came.version == before.version + 1


@pytest.mark.req("S4-06")
def test_there_are_states_for_submitted_confirmed_failed_and_unknown():
    assert {"sent", "confirmed", "failed", "unknown"} <= set(State)
    assert set(STATES) == set(MOVES) == set(State)


def _reachable(start: State) -> set[State]:
    found, rest = {start}, [start]
    while rest:
        new = set(MOVES[rest.pop()].values()) - found
        found |= new
        rest += new
    return found


def test_every_state_can_be_reached():
    assert _reachable(State.RECORDED) == set(State)


@pytest.mark.parametrize("state", [each for each in State if not STATES[each].final])
def test_every_state_that_is_not_final_can_end_landed_or_not(state):
    ends = {each for each in _reachable(state) if STATES[each].final}
    assert {State.CONFIRMED, State.FAILED} <= ends


@pytest.mark.parametrize("state", [State.CONFIRMED, State.FAILED, State.WITHDRAWN])
def test_a_final_state_is_never_left(state):
    assert STATES[state].final
    assert set(MOVES[state].values()) <= {state}


# Which events are evidence of what, from outside or from a person.
LANDED = {"found", "acknowledged", "read_back", "ruled_landed", "stopped_midway"}
NOT_LANDED = {
    *("refused", "closed_empty", "absent_for_good", "read_absent", "never_sent"),
    "ruled_absent",
}


@pytest.mark.req("S0-19")
def test_only_evidence_leads_to_confirmed_or_failed():
    leads = {
        after: {e for (s, e), a in EDGES.items() if a is after and s is not a} for after in State
    }
    assert leads[State.CONFIRMED] == LANDED
    assert leads[State.FAILED] == NOT_LANDED


@pytest.mark.req("S0-19")
def test_unknown_is_left_by_evidence_or_by_an_assumption_or_a_case_that_is_said():
    leaves = {event for event, after in MOVES[State.UNKNOWN].items() if after is not State.UNKNOWN}
    assert leaves - LANDED - NOT_LANDED == {"resent", "assumed", "gave_up"}
    assert State.FAILED not in MOVES[State.RESENT].values()


def test_what_may_have_left_never_comes_to_be_withdrawn():
    assert [s for (s, _), a in EDGES.items() if a is State.WITHDRAWN] == [State.RECORDED]


HOLDING = {State.SENT, State.RESENT, State.ACCEPTED, State.UNKNOWN, State.UNDECIDED}


@pytest.mark.parametrize("state", State)
def test_an_operation_holds_its_names_while_it_may_have_an_effect_nobody_knows_of(state):
    assert operation(state).holds is STATES[state].holds is (state in HOLDING)


@pytest.mark.parametrize("state", State)
def test_the_loop_has_work_for_what_neither_ended_nor_waits_for_a_person(state):
    resting = {State.ASSUMED, State.UNDECIDED, State.CONFIRMED, State.FAILED, State.WITHDRAWN}
    assert operation(state).open is STATES[state].open is (state not in resting)


@pytest.mark.parametrize("state", State)
def test_three_states_are_final(state):
    final = {State.CONFIRMED, State.FAILED, State.WITHDRAWN}
    assert operation(state).final is STATES[state].final is (state in final)


# What a move does to the record.


def test_a_move_says_when_it_was_settled_and_changes_only_what_it_names():
    before = operation(State.SENT)
    after = moved(before, Happened.ACKNOWLEDGED, at=LATER, evidence=REPLY, result={"id": "R1"})
    assert after == replace(
        before,
        state=State.CONFIRMED,
        version=4,
        result={"id": "R1"},
        settled_at=LATER,
        evidence=(REPLY,),
    )
    assert before == operation(State.SENT)


def test_what_was_settled_keeps_its_time():
    before = operation(State.FAILED)
    assert moved(before, Happened.CONTRADICTED, at=LATER + 9.0).settled_at == before.settled_at


def test_a_move_that_settles_nothing_leaves_no_time():
    assert moved(operation(State.SENT), Happened.ANSWER_LOST, at=LATER).settled_at == 0.0


@pytest.mark.req("S0-19")
@pytest.mark.parametrize(
    ("state", "event"),
    [(s, e) for (s, e), after in EDGES.items() if STATES[after].final and s is not after],
)
def test_nothing_is_settled_without_evidence(state, event):
    with pytest.raises(IllegalEventError, match=f"cannot be {EDGES[state, event]} without"):
        moved(operation(state), event, at=LATER)


@pytest.mark.parametrize("name", [each.name for each in fields(Operation)][:15])
def test_what_was_fixed_when_it_was_made_cannot_be_moved(name):
    before: Any = operation(State.RECORDED)
    changed: dict[str, Any] = {name: getattr(before, name)}
    with pytest.raises(IllegalEventError, match=f"op-a1: {name} never changes"):
        moved(before, Happened.SENT, at=LATER, **changed)


def test_a_claim_changes_the_epoch_and_nothing_else():
    before = operation(State.UNKNOWN)
    assert under(before, epoch=7) == replace(before, epoch=7)
    assert before.epoch == 1


@pytest.mark.parametrize("name", ["version", "epoch", "worker"])
def test_a_move_says_nothing_of_the_claim_it_is_made_under(name):
    changed: dict[str, Any] = {name: 9}
    with pytest.raises(IllegalEventError, match="never changes"):
        moved(operation(State.RECORDED), Happened.SENT, at=LATER, **changed)


def _look(number: int, says: str = "not there") -> Evidence:
    return Evidence(source=Source.LOOKUP, at=SENT_AT + number, says=says)


@pytest.mark.req("S4-52")
def test_evidence_is_kept_in_order_and_its_words_are_bounded():
    first = moved(operation(State.UNKNOWN), Happened.LOOKED, at=LATER, evidence=_look(1))
    second = moved(first, Happened.FOUND, at=LATER, evidence=_look(2, "x" * 9_999))
    assert second.evidence == (_look(1), _look(2, "x" * SAYS_MAX))


def test_only_the_latest_evidence_stays_in_the_record():
    op = operation(State.UNKNOWN)
    for number in range(EVIDENCE_MAX + 3):
        op = moved(op, Happened.LOOKED, at=LATER, evidence=_look(number))
    assert [each.at - SENT_AT for each in op.evidence] == [*range(3, EVIDENCE_MAX + 3)]


# The record of it.

times = st.floats(min_value=0.0, max_value=1e10)
words = st.text(max_size=6)
numbers = st.integers(0, 9)
values = st.none() | st.booleans() | numbers | words | st.dictionaries(words, numbers, max_size=2)
evidence = st.builds(
    Evidence,
    source=st.sampled_from(Source),
    at=times,
    says=words,
    position=st.none() | numbers,
    by=words,
)

# How a field is drawn, by its type: a new field is drawn without another word.
BY_TYPE: dict[Any, st.SearchStrategy[Any]] = {
    str: words,
    int: numbers,
    float: times,
    bool: st.booleans(),
    int | None: st.none() | numbers,
    Json: values,
    Mapping[str, Json]: st.dictionaries(words, values, max_size=3),
    tuple[str, ...]: st.lists(words, max_size=3).map(tuple),
    tuple[int, ...]: st.lists(st.integers(1, 9), max_size=3).map(tuple),
    tuple[Evidence, ...]: st.lists(evidence, max_size=3).map(tuple),
    State: st.sampled_from(State),
    Ask: st.builds(
        Ask, principal=words, input=words, turn=words, call_id=words, send_by=st.none() | times
    ),
}
drawn = st.builds(Operation, **{each.name: BY_TYPE[each.type] for each in fields(Operation)})


def _with_its_own_ask(op: Operation) -> Operation:
    """An operation as it may be stored: its ask is of its own tenant and session."""
    return replace(op, ask=replace(op.ask, tenant=op.tenant, session=op.session))


operations = drawn.map(_with_its_own_ask)


@given(operations)
def test_an_operation_is_read_back_from_its_record_as_it_was(op):
    assert from_record(to_record(op)) == op


@given(operations)
def test_an_operation_is_read_back_from_its_journal_as_it_was(op):
    record = to_record(op)
    event = Event(name="looked", record=op.id, at=LATER)
    first = body_of(Move(after=replace(record, version=1), event=event))
    last = body_of(Move(after=replace(record, version=2), event=event))
    frozen, changing = bodies(first, last)
    assert from_record(replace(record, frozen=frozen, changing=changing)) == op


def test_an_ask_that_left_its_time_to_the_runtime_is_read_back_as_it_was():
    op = replace(operation(), ask=Ask(session="s1"))
    assert from_record(to_record(op)) == op


def test_a_record_says_whose_it_is_and_leaves_out_what_has_its_default():
    record = to_record(operation(State.RECORDED))
    assert (record.id, record.kind, record.state) == ("op-a1", Kind.OPERATION, "recorded")
    assert (record.tenant, record.session) == ("default", "s1")
    assert (record.version, record.epoch, record.worker) == (3, 1, "w1")
    assert record.open
    assert record.changing == {}
    assert not to_record(operation(State.UNDECIDED)).open


@pytest.mark.parametrize("event", [Happened.SENT, Happened.BLOCKED, Happened.TOLD])
def test_no_move_changes_what_was_fixed_when_it_was_made(event):
    before = operation(State.RECORDED)
    after = moved(before, event, at=LATER, tries=1)
    assert to_record(after).frozen == to_record(before).frozen
