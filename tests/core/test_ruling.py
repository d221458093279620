"""A person's ruling: every ruling in every state, and what it does to what is held."""

from itertools import product

import pytest

from landed.core.arrival import CaseRuled, Proposed, Ruled
from landed.core.case import BY_STATE, Case, CaseState, Ruling, Why
from landed.core.changes import Hold
from landed.core.contract import Effect
from landed.core.operation import STATES, Operation, Source, State, held_by
from landed.core.outcome import Found
from landed.core.ruling import NOT_THAT
from landed.core.scope import Next
from tests.core.build import (
    BARE,
    SENT_AT,
    TABLE,
    commands,
    events,
    lap,
    looked,
    operation,
)

NOW = SENT_AT + 5_000.0
RULE = "unique/default/invoice 7"


def ruled(ruling: Ruling, **fields: str) -> Ruled:
    return Ruled(operation="op-a1", ruling=ruling, **{"by": "ana", **fields})


def rule(held: Operation, arrival: Ruled) -> Next:
    return lap(held, contract=BARE, arrivals=(arrival,), now=NOW)


def said(decided: Next, arrival: object) -> str:
    return decided.answers.get(id(arrival), "")


# Every ruling in every state.


@pytest.mark.req("S4-53", "S4-52")
@pytest.mark.parametrize(("state", "ruling"), list(product(State, Ruling)))
def test_each_ruling_does_in_each_state_what_the_table_says_or_nothing(
    state: State, ruling: Ruling
) -> None:
    arrival = ruled(ruling, note="I looked")
    held = operation(state)
    decided = rule(held, arrival)
    after = decided.operations["op-a1"]
    if ruling not in BY_STATE.get(state, ()):
        assert said(decided, arrival) == NOT_THAT
        assert not [one for one in after.evidence if one.source is Source.PERSON]
        return
    assert said(decided, arrival) == ""
    settles = {Ruling.LANDED: State.CONFIRMED, Ruling.ABSENT: State.FAILED}
    assert after.state is settles.get(ruling, State.UNDECIDED)
    assert (after.evidence[-1].source, after.evidence[-1].by) == (Source.PERSON, "ana")
    assert "I looked" in after.evidence[-1].says


def test_the_table_is_only_about_states_that_are_not_over() -> None:
    assert not [state for state in BY_STATE if STATES[state].final]


@pytest.mark.req("S4-53")
def test_a_ruling_on_what_is_being_found_out_puts_it_in_front_of_the_person_first() -> None:
    decided = rule(operation(State.UNKNOWN), ruled(Ruling.ABSENT))
    assert events(decided) == ["op-a1 gave_up", "op-a1 ruled_absent"]
    assert commands(decided) == []


def test_without_a_note_it_is_said_who_said_so() -> None:
    landed = rule(operation(State.UNDECIDED), ruled(Ruling.LANDED))
    assert landed.operations["op-a1"].evidence[-1].says == "ana said so"
    left = rule(operation(State.UNDECIDED), ruled(Ruling.HOLD))
    assert left.operations["op-a1"].evidence[-1].says == "ana leaves it open"


def test_what_it_made_goes_where_the_contract_says_and_only_where_it_landed() -> None:
    landed = rule(operation(State.UNDECIDED), ruled(Ruling.LANDED, made="R9"))
    assert landed.operations["op-a1"].result == {"id": "R9"}
    absent = rule(operation(State.UNDECIDED), ruled(Ruling.ABSENT, made="R9"))
    assert absent.operations["op-a1"].result is None


def test_the_second_of_two_rulings_is_refused_and_changes_nothing() -> None:
    first, second = ruled(Ruling.ABSENT), ruled(Ruling.LANDED, by="bo")
    decided = lap(operation(State.UNDECIDED), contract=BARE, arrivals=(first, second), now=NOW)
    assert events(decided) == ["op-a1 ruled_absent"]
    assert (said(decided, first), said(decided, second)) == ("", NOT_THAT)


@pytest.mark.req("S4-22")
def test_what_is_left_open_stays_so_however_long_it_waits() -> None:
    held = rule(operation(State.UNDECIDED), ruled(Ruling.HOLD)).operations["op-a1"]
    later = lap(held, contract=BARE, now=NOW + 10.0**9)
    assert (events(later), commands(later), dict(later.wakes)) == ([], [], {})
    assert later.operations["op-a1"].state is State.UNDECIDED


# What it holds.


def test_a_hold_keeps_its_names_and_a_lift_frees_them() -> None:
    held = operation(State.UNDECIDED, unique=(RULE,))
    assert rule(held, ruled(Ruling.HOLD)).changes.frees == ()
    lifted = rule(held, ruled(Ruling.LIFT))
    assert {hold.name for hold in lifted.changes.frees} == {TABLE, RULE}
    after = lifted.operations["op-a1"]
    assert (after.lifted, after.holds, held_by(after)) == (True, True, ())


def test_what_was_lifted_stays_lifted_when_it_is_left_open_once_more() -> None:
    held = operation(State.UNDECIDED, lifted=True)
    again = rule(held, ruled(Ruling.HOLD))
    assert (again.operations["op-a1"].lifted, again.changes.takes) == (True, ())


def test_the_same_call_may_be_proposed_again_after_a_lift_and_not_before() -> None:
    wanted = operation(id="op-a2", key="op-a2", version=0)
    stands = operation(State.UNDECIDED)
    blocked = lap(stands, contract=BARE, arrivals=(Proposed(operation=wanted),))
    assert blocked.operations["op-a2"].blocked_by == "op-a1"
    lifted = rule(stands, ruled(Ruling.LIFT)).operations["op-a1"]
    sent = lap(lifted, contract=BARE, arrivals=(Proposed(operation=wanted),))
    assert commands(sent) == ["send op-a2 1"]
    assert Hold(name=TABLE, record="op-a2") in sent.changes.takes


def test_what_was_lifted_and_turns_out_to_have_landed_takes_no_name_that_is_another_s() -> None:
    """A unit that takes it would be refused for ever, and the evidence never written down."""
    lifted = operation(State.UNDECIDED, lifted=True, unique=(RULE,))
    found = looked(Found(result=None), asked_at=NOW)
    theirs = lap(lifted, contract=BARE, arrivals=(found,), now=NOW, holders={RULE: "op-a2"})
    assert events(theirs) == ["op-a1 found"]
    assert theirs.changes.takes == ()
    free = lap(lifted, contract=BARE, arrivals=(found,), now=NOW)
    assert free.changes.takes == (Hold(name=RULE, record="op-a1"),)


# Cases that are records of their own.

CASES = list(product(Why, CaseState, Ruling))


@pytest.mark.req("S4-31", "S4-53")
@pytest.mark.parametrize(("why", "state", "ruling"), CASES)
def test_each_ruling_does_to_each_case_what_it_can(
    why: Why, state: CaseState, ruling: Ruling
) -> None:
    case = Case(
        why=why,
        subject="op-a1",
        tenant="default",
        session="s1",
        tool="refund",
        says="",
        opened_at=SENT_AT,
        state=state,
        version=1,
    )
    arrival = CaseRuled(case=case.id, ruling=ruling, by="ana", note="seen")
    decided = lap(contract=BARE, arrivals=(arrival,), cases={case.id: case}, now=NOW)
    may = state is CaseState.OPEN and ruling in (Ruling.SIGN_OFF, Ruling.HOLD)
    assert said(decided, arrival) == ("" if may else NOT_THAT)
    after = decided.cases[case.id]
    if not may:
        assert (events(decided), after) == ([], case)
        return
    stays = ruling is Ruling.HOLD
    assert events(decided) == [f"{case.id} {'case_noted' if stays else 'case_closed'}"]
    assert after.state is (CaseState.OPEN if stays else CaseState.CLOSED)
    assert (after.ruling, after.by, after.note, after.at) == (ruling, "ana", "seen", NOW)


def test_signing_a_contradiction_off_rewrites_nothing() -> None:
    assert BARE.effect is Effect.REVERSIBLE
    failed = operation(State.FAILED)
    opened = lap(failed, arrivals=(looked(Found(result=None)),), now=NOW)
    (case,) = opened.cases.values()
    arrival = CaseRuled(case=case.id, ruling=Ruling.SIGN_OFF, by="ana")
    signed = lap(
        opened.operations["op-a1"], contract=BARE, arrivals=(arrival,), cases={case.id: case}
    )
    assert signed.operations["op-a1"] == opened.operations["op-a1"]
