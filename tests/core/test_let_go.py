"""A change of mind, before a call was sent, while it is in flight, and when it is in doubt."""

from dataclasses import replace

import pytest

from landed.core.arrival import LetGo, Proposed
from landed.core.contract import Interrupt
from landed.core.operation import State
from landed.core.outcome import Acknowledged, NotSent
from landed.core.scope import Sending
from tests.core.build import (
    BARE,
    FULL,
    LOOKUP_ONLY,
    SENT_AT,
    commands,
    events,
    lap,
    operation,
    replied,
)

NEW = operation(version=1, epoch=0, worker="")
SENT = operation(State.SENT)
UNKNOWN = operation(State.UNKNOWN)
IN_FLIGHT = frozenset({Sending(operation="op-a1", attempt=1)})
YES = Acknowledged(result={"id": "R1"})
SOON = SENT_AT + 2.0
LET_GO = LetGo(operation="op-a1", reason="the user changed their mind", at=SENT_AT + 1.0)


def test_what_was_not_sent_yet_is_taken_back_with_the_reason():
    decided = lap(operation(State.RECORDED), arrivals=(LET_GO,))
    assert events(decided) == ["op-a1 withdrawn"]
    assert commands(decided) == []
    assert decided.operations["op-a1"].evidence[-1].says == "the user changed their mind"


def test_what_was_proposed_and_let_go_in_one_lap_is_never_sent():
    decided = lap(arrivals=(Proposed(operation=NEW), LET_GO))
    assert events(decided) == ["op-a1 made", "op-a1 withdrawn"]
    assert (commands(decided), decided.changes.takes) == ([], ())


# on_interrupt ▸ what follows at once, and in what state it is left.
IN_FLIGHT_LET_GO = [
    (Interrupt.FINISH, 0.0, ["unwanted"], [], State.SENT, {}),
    (Interrupt.WAIT, 5.0, ["unwanted"], [], State.SENT, {"op-a1": SENT_AT + 6.0}),
    (
        Interrupt.STOP_AND_RESOLVE,
        0.0,
        ["unwanted", "answer_lost", "closing"],
        ["stop op-a1", "close op-a1"],
        State.UNKNOWN,
        {},
    ),
]


@pytest.mark.req("S0-15", "S0-41")
@pytest.mark.parametrize(
    ("interrupt", "wait_s", "written", "leaves", "state", "wakes"), IN_FLIGHT_LET_GO
)
def test_what_a_change_of_mind_does_to_a_call_in_flight_is_a_field_of_its_contract(
    interrupt, wait_s, written, leaves, state, wakes
):
    contract = replace(FULL, on_interrupt=interrupt, wait_s=wait_s)
    decided = lap(SENT, contract=contract, arrivals=(LET_GO,), running=IN_FLIGHT, now=SOON)
    assert events(decided) == [f"op-a1 {each}" for each in written]
    assert commands(decided) == leaves
    assert decided.operations["op-a1"].state is state
    assert dict(decided.wakes) == wakes
    assert not decided.operations["op-a1"].wanted
    assert decided.operations["op-a1"].unwanted_at == LET_GO.at


@pytest.mark.req("S0-41")
def test_a_wait_ends_at_its_bound():
    contract = replace(LOOKUP_ONLY, on_interrupt=Interrupt.WAIT, wait_s=5.0)
    waited = replace(SENT, wanted=False, unwanted_at=SENT_AT + 1.0)
    decided = lap(waited, contract=contract, running=IN_FLIGHT, now=SENT_AT + 6.0)
    assert events(decided) == ["op-a1 answer_lost"]
    assert commands(decided) == ["stop op-a1", "lookup op-a1"]


@pytest.mark.req("S0-41")
@pytest.mark.parametrize("interrupt", Interrupt)
def test_an_answer_that_comes_in_time_settles_it_whatever_was_wanted(interrupt):
    contract = replace(BARE, on_interrupt=interrupt, wait_s=5.0)
    arrivals = (LET_GO, replied(YES))
    decided = lap(SENT, contract=contract, arrivals=arrivals, running=IN_FLIGHT, now=SOON)
    assert events(decided) == ["op-a1 unwanted", "op-a1 acknowledged"]
    assert decided.commands == ()


@pytest.mark.req("S0-15")
def test_the_late_answer_to_a_wait_that_was_stopped_still_settles_it():
    stopped = lap(SENT, contract=BARE, arrivals=(LET_GO,), running=IN_FLIGHT, now=SOON)
    assert stopped.operations["op-a1"].state is State.UNKNOWN
    late = replied(YES, at=SENT_AT + 20.0)
    decided = lap(*stopped.operations.values(), contract=BARE, arrivals=(late,))
    assert decided.operations["op-a1"].state is State.CONFIRMED


def test_a_call_in_flight_that_is_let_go_and_did_not_leave_is_never_sent_again():
    contract = replace(BARE, on_interrupt=Interrupt.FINISH)
    arrivals = (LET_GO, replied(NotSent(reason="no route")))
    decided = lap(SENT, contract=contract, arrivals=arrivals, running=IN_FLIGHT, now=SOON)
    assert events(decided) == ["op-a1 unwanted", "op-a1 never_sent"]
    assert decided.operations["op-a1"].state is State.FAILED


def test_what_is_let_go_twice_is_written_once():
    decided = lap(UNKNOWN, contract=BARE, arrivals=(LET_GO, LET_GO))
    assert events(decided) == ["op-a1 unwanted"]


@pytest.mark.parametrize(
    "state", [State.ASSUMED, State.UNDECIDED, State.CONFIRMED, State.FAILED, State.WITHDRAWN]
)
def test_what_is_no_longer_in_the_loops_hands_is_not_let_go(state):
    assert not lap(operation(state), arrivals=(LET_GO,)).changes
