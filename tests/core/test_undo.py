"""A release alone: its table, every way to its end, its record, and what it must never undo."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from landed.core.changes import Kind
from landed.core.errors import IllegalEventError, ProposalError
from landed.core.operation import State
from landed.core.undo import (
    ENDED,
    OPEN,
    RELEASE_MOVES,
    Release,
    ReleaseEvent,
    ReleaseState,
    made_by,
    release_from,
    release_id,
    release_moved,
    release_record,
    returned_the_same,
    undo_arguments,
)
from tests.core.build import operation
from tests.core.conversation import RESERVE

# What becomes of an undo that is owed, line by line: state, event, state after it.
LIFE = """
owed_if_landed  release_landed      > owed
owed_if_landed  release_void        > void
owed_if_landed  release_kept        > kept
owed_if_landed  release_handed_on   > owed_if_landed
owed            release_due         > due
owed            release_questioned  > questioned
owed            release_kept        > kept
owed            release_handed_on   > owed_if_landed
due             release_priced      > due
due             release_asked       > asked
due             release_started     > undoing
due             release_questioned  > questioned
due             release_kept        > kept
due             release_handed_on   > owed_if_landed
asked           release_approved    > due
asked           release_waived      > waived
asked           release_lapsed      > due
asked           release_kept        > kept
asked           release_handed_on   > owed_if_landed
undoing         release_done        > done
undoing         release_not_done    > due
undoing         release_questioned  > questioned
questioned      release_approved    > due
questioned      release_waived      > waived
questioned      release_lapsed      > owed
questioned      release_kept        > kept
questioned      release_handed_on   > owed_if_landed
waived          release_owed        > owed_if_landed
kept            release_owed        > owed_if_landed
"""
TOLD: Mapping[tuple[str, str], str] = {
    (before, event): after
    for before, event, after in (
        line.replace(">", "").split() for line in LIFE.strip().splitlines()
    )
}
PERSON = {ReleaseState.ASKED, ReleaseState.QUESTIONED}

BARE = Release(
    id="release/op-1",
    operation="op-1",
    tenant="default",
    session="s1",
    principal="ann",
    origin="user",
    made_at=1.0,
)


# The table.


def test_the_table_tells_the_story():
    moves = {(s, e): after for s, ways in RELEASE_MOVES.items() for e, after in ways.items()}
    assert moves == TOLD
    assert set(RELEASE_MOVES) == set(ReleaseState)


@pytest.mark.parametrize("state", ReleaseState)
@pytest.mark.parametrize("event", ReleaseEvent)
def test_every_event_either_moves_a_release_as_the_story_says_or_is_illegal(state, event):
    before = replace(BARE, state=state, version=3)
    if (state, event) in TOLD:
        after = release_moved(before, event, why="so it is")
        assert after == replace(
            before, state=ReleaseState(TOLD[state, event]), version=4, why="so it is"
        )
    else:
        with pytest.raises(IllegalEventError, match=f"release/op-1 is {state}: it cannot be"):
            release_moved(before, event)


def _reachable(start: ReleaseState) -> set[ReleaseState]:
    found, rest = {start}, [start]
    while rest:
        new = set(RELEASE_MOVES[rest.pop()].values()) - found
        found |= new
        rest += new
    return found


def test_every_state_can_be_reached():
    assert _reachable(ReleaseState.OWED_IF_LANDED) == set(ReleaseState)


def test_a_state_is_the_loops_or_a_persons_or_an_end():
    assert set(ReleaseState) == OPEN | PERSON | ENDED
    assert len(OPEN) + len(PERSON) + len(ENDED) == len(ReleaseState)


@pytest.mark.parametrize("state", [each for each in ReleaseState if each not in ENDED])
def test_every_release_can_end_and_can_come_before_a_person(state):
    assert _reachable(state) & ENDED
    assert _reachable(state) & PERSON


def test_what_is_undone_or_never_landed_is_never_owed_again():
    assert RELEASE_MOVES[ReleaseState.DONE] == RELEASE_MOVES[ReleaseState.VOID] == {}


def test_only_an_undo_that_was_started_ends_as_done():
    assert [s for (s, _), after in TOLD.items() if after == "done"] == ["undoing"]
    assert [s for (s, _), after in TOLD.items() if after == "undoing"] == ["due"]


def test_only_a_persons_no_waives():
    assert {(s, e) for (s, e), after in TOLD.items() if after == "waived"} == {
        ("asked", "release_waived"),
        ("questioned", "release_waived"),
    }


def test_while_the_undo_is_out_it_is_neither_kept_nor_handed_on():
    assert not {e for s, e in TOLD if s == "undoing"} & {"release_kept", "release_handed_on"}


# Its record.

words = st.text(max_size=4)
releases = st.builds(
    Release,
    id=words,
    operation=words,
    tenant=words,
    session=words,
    principal=words,
    origin=words,
    made_at=st.floats(0, 1e9),
    state=st.sampled_from(ReleaseState),
    version=st.integers(0, 9),
    epoch=st.integers(0, 9),
    worker=words,
    turn=words,
    plan=words,
    step=st.integers(0, 9),
    price_cents=st.none() | st.integers(0, 9_999),
    agreed=st.booleans(),
    question=words,
    undo=words,
    tries=st.integers(0, 9),
    why=words,
    left_out=st.booleans(),
)


@given(releases)
def test_a_release_is_read_back_from_its_record_as_it_was(release):
    record = release_record(release)
    assert release_from(record) == release
    assert record.kind is Kind.RELEASE
    assert record.open is release.open is (release.state in OPEN)


def test_one_operation_has_one_release_whatever_it_made():
    assert release_id("op-1") == BARE.id
    assert release_id("op-1") != release_id("op-2")


# What it undoes, and what it must never undo.

R1, R2 = {"id": "R1"}, {"id": "R2"}


@pytest.mark.req("S0-31")
@pytest.mark.fault("X58")
@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        (R1, R1, True),
        (R1, R2, False),
        (R1, None, False),
        (None, None, False),
        ({"id": None}, {"id": None}, False),
        ("R1", "R1", False),
        ({"no": "R1"}, R1, False),
    ],
)
def test_the_very_thing_that_the_replacement_returned_is_known_again(old, new, same):
    came = returned_the_same(
        operation(State.CONFIRMED, result=old),
        operation(State.CONFIRMED, id="op-2", result=new),
        old_contract=RESERVE,
        new_contract=RESERVE,
    )
    assert came is same


@pytest.mark.fault("X58")
def test_what_was_made_is_found_where_each_contract_says_it_stands():
    nested = replace(RESERVE, makes="booking.number")
    old = operation(State.CONFIRMED, result={"booking": {"number": "R1"}})
    assert made_by(old, nested) == "R1"
    assert made_by(old, RESERVE) is None
    assert made_by(old, replace(RESERVE, makes="booking.number.of")) is None
    new = operation(State.CONFIRMED, id="op-2", result=R1)
    assert returned_the_same(old, new, old_contract=nested, new_contract=RESERVE)


def test_the_arguments_of_the_undo_come_from_the_call_and_its_result():
    contract = replace(RESERVE, undo_arguments={"id": "{result.id}", "was": "for {day}"})
    done = operation(State.CONFIRMED, result=R1)
    assert undo_arguments(done, contract) == {"id": "R1", "was": "for Fri"}
    with pytest.raises(ProposalError, match=r"result\.id"):
        undo_arguments(operation(State.CONFIRMED, result={}), contract)
