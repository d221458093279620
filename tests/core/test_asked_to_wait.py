"""A 429 is "not now": the same operation goes again, under its key, and not before it may."""

import pytest

from landed.core.operation import Source, State
from landed.core.operation_record import from_record, to_record
from landed.core.outcome import AnswerLost, NotSent, Refused
from tests.core.build import (
    FULL,
    RESENDABLE,
    SENT_AT,
    commands,
    events,
    lap,
    operation,
    replied,
)

ASKED = NotSent(reason="429, asked to wait 30 s: slow down", wait_s=30.0)
BACK_AT = SENT_AT + 0.2
DUE_AT = BACK_AT + 30.0


def turned_away(**fields):
    """The operation after its first send was asked to wait."""
    decided = lap(
        operation(State.SENT, **fields), arrivals=(replied(ASKED, at=BACK_AT),), now=BACK_AT
    )
    assert events(decided) == ["op-a1 not_sent"]
    return decided


@pytest.mark.fault("X66")
def test_a_service_that_asks_to_wait_gets_the_same_key_again_and_not_before():
    decided = turned_away()
    waiting = decided.operations["op-a1"]
    assert (waiting.state, waiting.unsent, waiting.not_before) == (State.RECORDED, (1,), DUE_AT)
    assert decided.wakes == {"op-a1": DUE_AT}
    early = lap(waiting, now=DUE_AT - 0.001)
    assert (commands(early), early.wakes) == ([], {"op-a1": DUE_AT})
    due = lap(waiting, now=DUE_AT)
    assert commands(due) == ["send op-a1 2"]
    assert due.operations["op-a1"].key == waiting.key


def test_until_when_it_was_asked_to_wait_is_stored():
    waiting = turned_away().operations["op-a1"]
    assert from_record(to_record(waiting)).not_before == DUE_AT


def test_the_evidence_is_the_services_own_word_and_does_not_say_that_nothing_left():
    (evidence,) = turned_away().operations["op-a1"].evidence
    assert evidence.source is Source.REPLY
    assert evidence.says == ("the service did not take it up: 429, asked to wait 30 s: slow down")
    sent = replied(NotSent(reason="no route"))
    (other,) = lap(operation(State.SENT), arrivals=(sent,)).operations["op-a1"].evidence
    assert (other.source, other.says) == (
        Source.RUNTIME,
        "nothing left this machine: no route",
    )


@pytest.mark.fault("X66")
def test_a_wait_that_ends_after_the_time_to_send_ends_with_that_time():
    send_by = SENT_AT + 10.0
    decided = turned_away(send_by=send_by)
    assert decided.wakes == {"op-a1": send_by}
    over = lap(*decided.operations.values(), now=send_by)
    assert events(over) == ["op-a1 withdrawn"]


@pytest.mark.fault("X66")
def test_after_the_last_try_it_is_failed_for_nobody_took_it_up():
    asked = operation(State.SENT, tries=FULL.max_tries, unsent=(1, 2, 3, 4))
    back = replied(ASKED, attempt=FULL.max_tries, at=BACK_AT)
    decided = lap(asked, arrivals=(back,), now=BACK_AT)
    assert events(decided) == ["op-a1 never_sent"]
    assert decided.operations["op-a1"].state is State.FAILED


def test_what_nobody_wants_any_more_is_not_sent_again_after_a_wait():
    decided = lap(
        operation(State.SENT, wanted=False), arrivals=(replied(ASKED, at=BACK_AT),), now=BACK_AT
    )
    assert decided.operations["op-a1"].state is State.FAILED


@pytest.mark.fault("X66")
def test_a_resend_that_is_asked_to_wait_leaves_the_doubt_and_goes_again_after_the_wait():
    back = replied(ASKED, attempt=2, at=BACK_AT + 30.0)
    resent = operation(State.RESENT)
    decided = lap(resent, contract=RESENDABLE, arrivals=(back,), now=BACK_AT + 30.0)
    assert events(decided) == ["op-a1 not_sent"]
    doubted = decided.operations["op-a1"]
    assert (doubted.state, doubted.unsent, doubted.resend_refused) == (State.UNKNOWN, (2,), False)
    early = lap(doubted, contract=RESENDABLE, now=BACK_AT + 59.0)
    assert commands(early) == []
    assert commands(lap(doubted, contract=RESENDABLE, now=BACK_AT + 60.0)) == ["send op-a1 3"]


def test_a_wait_never_makes_an_earlier_one_shorter():
    asked = operation(State.SENT, tries=2, unsent=(1,), not_before=SENT_AT + 500.0)
    decided = lap(asked, arrivals=(replied(ASKED, attempt=2, at=BACK_AT),), now=BACK_AT)
    assert decided.operations["op-a1"].not_before == SENT_AT + 500.0


@pytest.mark.parametrize(
    ("then", "state"),
    [(Refused(reason="no"), State.FAILED), (AnswerLost(reason="silence"), State.UNKNOWN)],
)
def test_what_was_turned_away_counts_as_no_send(then, state):
    """The refusal of the second send is that of the only one that anybody looked at."""
    second = operation(State.SENT, tries=2, unsent=(1,))
    decided = lap(second, arrivals=(replied(then, attempt=2, at=BACK_AT),), now=BACK_AT)
    assert decided.operations["op-a1"].state is state
