"""What a service says by itself: in every state, out of order, twice, early, against a ruling."""

from dataclasses import replace

import pytest

from landed.core.absorb import Looked, Question
from landed.core.arrival import Heard
from landed.core.contract import Contract
from landed.core.operation import Evidence, Operation, Source, State
from landed.core.outcome import Absent, Acknowledged, AnswerLost, Found, LookOutcome, NotYet
from landed.core.scope import Next, Sending
from landed.core.session import Input
from tests.core.build import (
    BARE,
    FULL,
    LOOKUP_ONLY,
    READ_BACK,
    SENT_AT,
    commands,
    events,
    lap,
    looked,
    operation,
    replied,
)

AT = SENT_AT + 3.0
YES = Found(result={"id": "M1"})
NO = Absent()
OUT = frozenset({Sending(operation="op-a1", attempt=1), Sending(operation="op-a1", attempt=2)})

# state ▸ (after a yes, after a no)
ENDS: dict[State, tuple[State, State]] = {
    State.RECORDED: (State.RECORDED, State.RECORDED),
    State.SENT: (State.CONFIRMED, State.FAILED),
    State.RESENT: (State.CONFIRMED, State.UNKNOWN),
    State.ACCEPTED: (State.CONFIRMED, State.FAILED),
    State.UNKNOWN: (State.CONFIRMED, State.FAILED),
    State.ASSUMED: (State.CONFIRMED, State.FAILED),
    State.UNDECIDED: (State.CONFIRMED, State.FAILED),
    State.CONFIRMED: (State.CONFIRMED, State.CONFIRMED),
    State.FAILED: (State.FAILED, State.FAILED),
    State.WITHDRAWN: (State.WITHDRAWN, State.WITHDRAWN),
}


def receipt(outcome: LookOutcome, *, at: float = AT) -> Looked:
    return looked(outcome, question=Question.RECEIPT, asked_at=at, late_s=0.0)


def hear(
    held: Operation, *outcomes: LookOutcome, contract: Contract = BARE, at: float = AT
) -> Next:
    """Take receipts in, one after the other, while the send is still out."""
    came = tuple(receipt(outcome, at=at) for outcome in outcomes)
    return lap(held, contract=contract, arrivals=came, now=at, running=OUT)


@pytest.mark.req("S4-08")
@pytest.mark.fault("X61")
@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("outcome", [YES, NO], ids=["yes", "no"])
def test_a_receipt_in_each_state_comes_to_what_the_table_says(
    state: State, outcome: LookOutcome
) -> None:
    held = operation(state)
    if state is State.RECORDED:
        held = replace(held, blocked_by="op-a0")  # Nothing of it is sent in this lap.
    after = hear(held, outcome).operations["op-a1"]
    assert after.state is ENDS[state][outcome is NO]
    settled_by_it = after.final and not held.final
    if settled_by_it:
        assert (after.evidence[-1].source, after.evidence[-1].at) == (Source.RECEIPT, AT)
        assert after.result == (YES.result if outcome is YES else None)


@pytest.mark.fault("X61")
@pytest.mark.parametrize("state", [State.SENT, State.RESENT])
def test_a_yes_that_overtakes_the_reply_is_kept_when_the_reply_is_lost(state: State) -> None:
    held = operation(state)
    landed = hear(held, YES).operations["op-a1"]
    lost = replied(AnswerLost(reason="timed out"), attempt=held.tries)
    late = lap(landed, contract=BARE, arrivals=(lost,), now=AT + 30.0)
    assert (events(late), late.operations["op-a1"].state) == ([], State.CONFIRMED)
    again = replied(Acknowledged(result={"id": "M1"}), attempt=held.tries)
    assert events(lap(landed, contract=BARE, arrivals=(again,), now=AT + 30.0)) == []


def test_a_no_to_one_of_two_sends_lets_none_follow_and_settles_nothing() -> None:
    held = operation(State.RESENT)
    after = hear(held, NO, contract=FULL).operations["op-a1"]
    assert (after.state, after.resend_refused) == (State.UNKNOWN, True)
    later = lap(after, contract=FULL, now=AT + 60.0)
    assert commands(later) == ["close op-a1"]


def test_a_later_yes_after_a_no_that_overtook_the_reply_is_put_in_front_of_a_person() -> None:
    failed = hear(operation(State.SENT), NO).operations["op-a1"]
    landed = replied(Acknowledged(result=None))
    decided = lap(failed, contract=BARE, arrivals=(landed,), now=AT + 1.0)
    assert [name.split()[1] for name in events(decided)] == ["contradicted", "case_opened"]


@pytest.mark.parametrize("state", [State.SENT, State.RESENT, State.UNKNOWN, State.UNDECIDED])
def test_what_says_not_yet_settles_nothing(state: State) -> None:
    assert hear(operation(state), NotYet(reason="pending")).operations["op-a1"].state is state


@pytest.mark.fault("X59", "X61")
def test_with_a_read_back_a_yes_is_a_receipt_and_no_more() -> None:
    sent = hear(operation(State.SENT), replace(YES, position=7), contract=READ_BACK)
    after = sent.operations["op-a1"]
    assert (after.state, after.position, after.acknowledged_at) == (State.ACCEPTED, 7, AT)
    doubted = hear(operation(State.UNKNOWN), YES, contract=READ_BACK).operations["op-a1"]
    assert (doubted.state, doubted.acknowledged_at) == (State.UNKNOWN, AT)


# Twice, and out of order.


@pytest.mark.fault("X61")
@pytest.mark.parametrize("outcome", [YES, NO], ids=["yes", "no"])
def test_the_same_receipt_twice_is_one_event(outcome: LookOutcome) -> None:
    assert len(events(hear(operation(State.UNKNOWN), outcome, outcome))) == 1


@pytest.mark.fault("X61")
def test_an_older_no_that_comes_after_a_newer_yes_changes_nothing() -> None:
    newer, older = replace(YES, position=9), Absent(position=3)
    decided = hear(operation(State.UNKNOWN), newer, older)
    assert [name.split()[1] for name in events(decided)] == ["found"]


@pytest.mark.fault("X61")
def test_an_older_yes_that_comes_after_a_newer_no_changes_nothing() -> None:
    """Taken, then reversed; the first of the two webhooks arrives last."""
    newer, older = Absent(position=9), replace(YES, position=3)
    decided = hear(operation(State.UNKNOWN), newer, older)
    assert [name.split()[1] for name in events(decided)] == ["absent_for_good"]
    assert decided.cases == {}


def test_an_older_one_changes_nothing_before_it_is_settled_either() -> None:
    held = operation(
        State.UNDECIDED,
        evidence=(Evidence(source=Source.RECEIPT, at=SENT_AT, says="not yet", position=9),),
    )
    for older in (replace(YES, position=3), Absent(position=3)):
        assert events(hear(held, older)) == []
    assert [name.split()[1] for name in events(hear(held, replace(YES, position=9)))] == ["found"]


@pytest.mark.req("S4-35")
@pytest.mark.fault("X55")
@pytest.mark.parametrize(
    ("position", "state"),
    [(4, State.UNKNOWN), (5, State.FAILED), (6, State.FAILED), (None, State.FAILED)],
)
def test_a_no_of_before_what_was_acknowledged_is_too_early(
    position: int | None, state: State
) -> None:
    held = operation(State.UNKNOWN, position=5, acknowledged_at=SENT_AT + 1.0)
    assert hear(held, Absent(position=position)).operations["op-a1"].state is state


def test_a_no_of_before_what_was_acknowledged_does_not_end_a_send() -> None:
    held = operation(State.SENT, position=5)
    assert events(hear(held, Absent(position=4))) == []


@pytest.mark.fault("X56")
def test_a_receipt_outlives_the_keys_retention_and_a_look_does_not() -> None:
    """Its service tells of the operation by itself; what a key is remembered for says nothing."""
    forgetful, late = replace(LOOKUP_ONLY, retention_s=60.0), SENT_AT + 600.0
    told = hear(operation(State.UNDECIDED), NO, contract=forgetful, at=late)
    assert told.operations["op-a1"].state is State.FAILED
    by_look = lap(
        operation(State.UNDECIDED),
        contract=forgetful,
        arrivals=(looked(Absent(), asked_at=late),),
        now=late,
    )
    assert by_look.operations["op-a1"].state is State.UNDECIDED


# Against a ruling, and against what was settled.


@pytest.mark.req("S4-52")
@pytest.mark.parametrize(
    ("settled", "outcome", "says"),
    [
        (State.CONFIRMED, NO, "it did not take effect after all"),
        (State.FAILED, YES, "it took effect after all"),
    ],
)
def test_a_receipt_against_a_ruling_rewrites_nothing_and_is_a_case(
    settled: State, outcome: LookOutcome, says: str
) -> None:
    ruling = Evidence(source=Source.PERSON, at=SENT_AT, says="ana said so", by="ana")
    held = operation(settled, evidence=(ruling,))
    decided = hear(held, outcome)
    after = decided.operations["op-a1"]
    assert (after.state, after.contradicted, after.evidence[0]) == (settled, True, ruling)
    assert after.evidence[-1].says.startswith(says)
    (case,) = decided.cases.values()
    assert case.why == "contradicted"
    assert events(hear(after, outcome)) == []


@pytest.mark.parametrize(
    ("settled", "outcome"),
    [(State.CONFIRMED, YES), (State.FAILED, NO), (State.CONFIRMED, NotYet())],
)
def test_a_receipt_that_agrees_with_what_is_settled_is_no_event(
    settled: State, outcome: LookOutcome
) -> None:
    assert events(hear(operation(settled), outcome)) == []


def test_a_find_by_receipt_is_never_unexplained() -> None:
    """The service told of it late, and does not contradict what it was asked."""
    decided = hear(operation(State.UNKNOWN, absences=5), YES)
    assert (decided.operations["op-a1"].unexplained, decided.cases) == (False, {})


# With the input that brought it.


@pytest.mark.req("S4-08", "S4-52")
def test_the_input_and_what_it_settles_are_one_unit() -> None:
    heard = Input(
        id="in-9",
        tenant="default",
        session="s1",
        principal="mailhook",
        text="{delivered}",
        origin="webhook",
        delivery="w1",
        turn="turn-9",
        at=AT,
    )
    arrival = Heard(heard=heard, back=receipt(YES))
    decided = lap(operation(State.UNDECIDED), contract=BARE, arrivals=(arrival,), now=AT)
    assert events(decided) == ["in-9 received", "turn-9 opened", "op-a1 found"]
    assert [hold.name for hold in decided.changes.takes] == ["delivery/default/w1"]
