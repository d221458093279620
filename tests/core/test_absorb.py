"""What each reply is an event of, in every state, for this send's and an earlier one's."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from landed.core.absorb import (
    RETENTION_TRUSTED,
    Looked,
    Question,
    Replied,
    absorb,
    nothing_can_arrive,
    remembers,
)
from landed.core.contract import Contract
from landed.core.operation import MOVES, Operation, Source, State
from landed.core.outcome import (
    Absent,
    Acknowledged,
    AnswerLost,
    Found,
    LookOutcome,
    NoAnswer,
    NotSent,
    NotYet,
    Refused,
    SendOutcome,
)
from tests.core.build import (
    BARE,
    CLOSE_ONLY,
    FULL,
    LOOKED_AT,
    LOOKUP_ONLY,
    READ_BACK,
    SENT_AT,
    looked,
    operation,
    replied,
)

R1 = {"id": "R1"}

SENDS: dict[str, SendOutcome] = {
    "yes": Acknowledged(result=R1),
    "receipt": Acknowledged(result=R1, accepted=True),
    "in-part": Acknowledged(result=R1, complete=False),
    "refused": Refused(reason="fully booked"),
    "not-sent": NotSent(reason="connection refused"),
    "lost": AnswerLost(reason="timed out"),
}
LOOKS: dict[str, LookOutcome] = {
    "found": Found(result=R1, position=9),
    "absent": Absent(),
    "absent@6": Absent(position=6),
    "absent@7": Absent(position=7),
    "not-yet": NotYet(reason="still running"),
    "no-answer": NoAnswer(reason="timed out"),
}


def cells(table: str) -> list[tuple[State, str, str | None]]:
    """Read a table of states by outcomes; `-` says that nothing happens."""
    head, *rows = [line.split() for line in table.strip().splitlines()]
    return [
        (State(row[0]), column, None if cell == "-" else cell)
        for row in rows
        for column, cell in zip(head[1:], row[1:], strict=True)
    ]


def becomes(op: Operation, contract: Contract, back: Replied | Looked) -> str | None:
    """The event that `back` is, once the move it comes with was found to be that of the table."""
    came = absorb(op, contract, back)
    if came is None:
        return None
    event, after = came
    assert after.state is MOVES[op.state][event]
    assert after.version == op.version + 1
    return event


# Replies to a send.

# The answer to the last send; in `recorded` it was found not to have left.
LAST_SEND = """
state      yes           receipt       in-part         refused        not-sent  lost
recorded   -             -             -               -              -         -
sent       acknowledged  accepted      stopped_midway  refused        not_sent  answer_lost
resent     acknowledged  accepted      acknowledged    refused_again  not_sent  answer_lost
accepted   acknowledged  looked        acknowledged    -              -         -
unknown    acknowledged  looked        acknowledged    refused        never_sent  -
assumed    acknowledged  looked        acknowledged    refused        never_sent  -
undecided  acknowledged  looked        acknowledged    refused        never_sent  -
confirmed  -             -             -               -              -         -
failed     contradicted  -             contradicted    -              -         -
withdrawn  -             -             -               -              -         -
"""

# The late answer to the first of two sends of one key.
EARLIER_SEND = """
state      yes           receipt       in-part         refused        not-sent  lost
resent     acknowledged  accepted      acknowledged    -              -         -
accepted   acknowledged  looked        acknowledged    -              -         -
unknown    acknowledged  looked        acknowledged    -              -         -
assumed    acknowledged  looked        acknowledged    -              -         -
undecided  acknowledged  looked        acknowledged    -              -         -
confirmed  -             -             -               -              -         -
failed     contradicted  -             contradicted    -              -         -
"""

# Where the contract has a read-back, a yes is a receipt.
TO_BE_READ_BACK = """
state      yes           receipt       refused        not-sent  lost
recorded   -             -             -              -         -
sent       accepted      accepted      refused        not_sent  answer_lost
resent     accepted      accepted      refused_again  not_sent  answer_lost
accepted   looked        looked        -              -         -
unknown    looked        looked        refused        never_sent  -
assumed    looked        looked        refused        never_sent  -
undecided  looked        looked        refused        never_sent  -
confirmed  -             -             -              -         -
failed     -             -             -              -         -
withdrawn  -             -             -              -         -
"""


@pytest.mark.req("S4-01", "S4-06")
@pytest.mark.parametrize(("state", "came", "event"), cells(LAST_SEND))
def test_the_answer_to_the_last_send(state, came, event):
    op = operation(state)
    assert becomes(op, BARE, replied(SENDS[came], attempt=max(op.tries, 1))) == event


@pytest.mark.parametrize(("state", "came", "event"), cells(EARLIER_SEND))
def test_a_late_answer_to_the_first_of_two_sends(state, came, event):
    op = operation(state, tries=2, last_sent_at=SENT_AT + 30.0)
    assert becomes(op, BARE, replied(SENDS[came], attempt=1)) == event


@pytest.mark.req("S4-32")
@pytest.mark.parametrize(("state", "came", "event"), cells(TO_BE_READ_BACK))
def test_an_answer_where_the_result_is_to_be_read_back(state, came, event):
    op = operation(state)
    assert becomes(op, READ_BACK, replied(SENDS[came], attempt=max(op.tries, 1))) == event


# What a reply leaves in the record.


def _absorbed(op: Operation, contract: Contract, back: Replied | Looked) -> Operation:
    came = absorb(op, contract, back)
    assert came is not None
    return came[1]


@pytest.mark.req("S4-52")
def test_a_yes_is_kept_with_its_result_position_and_time():
    yes = Acknowledged(result=R1, position=7)
    after = _absorbed(operation(State.SENT), BARE, replied(yes, at=SENT_AT + 2.0))
    assert after.result == R1
    assert after.position == 7
    assert after.acknowledged_at == after.settled_at == SENT_AT + 2.0
    assert after.complete
    (why,) = after.evidence
    assert (why.source, why.at, why.position) == (Source.REPLY, SENT_AT + 2.0, 7)


def test_a_yes_without_a_position_keeps_the_one_that_is_known():
    after = _absorbed(operation(State.UNKNOWN, position=7), BARE, replied(SENDS["yes"]))
    assert after.position == 7


def test_what_was_ended_early_is_confirmed_and_said_to_be_in_part():
    after = _absorbed(operation(State.SENT), BARE, replied(SENDS["in-part"]))
    assert after.state is State.CONFIRMED
    assert not after.complete


@pytest.mark.parametrize(
    "state", [State.RESENT, State.ACCEPTED, State.UNKNOWN, State.ASSUMED, State.UNDECIDED]
)
def test_what_was_ended_early_is_said_to_be_in_part_whenever_that_is_heard(state):
    op = operation(state)
    after = _absorbed(op, BARE, replied(SENDS["in-part"], attempt=op.tries))
    assert after.state is State.CONFIRMED
    assert not after.complete


def test_its_own_yes_confirms_what_was_accepted():
    op = operation(State.ACCEPTED, tries=2)
    assert _absorbed(op, BARE, replied(SENDS["yes"])).state is State.CONFIRMED


ONE_LEFT = [State.SENT, State.UNKNOWN, State.ASSUMED, State.UNDECIDED]


@pytest.mark.req("S4-01")
@pytest.mark.parametrize("state", ONE_LEFT)
def test_a_refusal_of_the_only_send_that_left_is_a_no_also_after_tries_that_did_not_leave(state):
    refused = replied(SENDS["refused"], attempt=2)
    assert _absorbed(operation(state, tries=2, unsent=(1,)), BARE, refused).state is State.FAILED
    assert absorb(operation(state, tries=2), BARE, refused) is None


def test_that_none_of_its_sends_left_is_only_known_once_all_of_them_said_so():
    first = operation(State.UNKNOWN, tries=2)
    assert absorb(first, BARE, replied(SENDS["not-sent"], attempt=1)) is None
    resent = operation(State.RESENT, tries=2)
    one = _absorbed(resent, BARE, replied(SENDS["not-sent"], attempt=2))
    assert (one.state, one.unsent) == (State.UNKNOWN, (2,))
    both = _absorbed(one, BARE, replied(SENDS["not-sent"], attempt=1))
    assert (both.state, both.unsent) == (State.FAILED, (1, 2))


def test_a_send_that_is_said_twice_not_to_have_left_is_counted_once():
    resent = operation(State.RESENT, tries=2)
    twice = replied(SENDS["not-sent"], attempt=2)
    assert absorb(_absorbed(resent, BARE, twice), BARE, twice) is None


@pytest.mark.parametrize(("contract", "came"), [(BARE, "receipt"), (READ_BACK, "yes")])
def test_a_receipt_does_not_contradict_that_nothing_landed(contract, came):
    assert absorb(operation(State.FAILED), contract, replied(SENDS[came])) is None


@pytest.mark.req("S4-52")
@pytest.mark.parametrize(
    ("came", "source", "says"),
    [
        ("refused", Source.REPLY, "fully booked"),
        ("not-sent", Source.RUNTIME, "connection refused"),
        ("lost", Source.RUNTIME, "timed out"),
    ],
)
def test_a_no_or_no_answer_is_kept_in_its_own_words(came, source, says):
    after = _absorbed(operation(State.SENT), BARE, replied(SENDS[came]))
    assert after.evidence[-1].source is source
    assert says in after.evidence[-1].says


@pytest.mark.parametrize(
    ("tries", "wanted", "event"),
    [
        (1, True, "not_sent"),
        (4, True, "not_sent"),
        (5, True, "never_sent"),
        (1, False, "never_sent"),
    ],
)
def test_what_was_not_sent_is_tried_again_until_the_last_try_or_until_nobody_wants_it(
    tries, wanted, event
):
    op = operation(State.SENT, tries=tries, wanted=wanted)
    assert BARE.max_tries == 5
    assert becomes(op, BARE, replied(SENDS["not-sent"], attempt=tries)) == event


def test_a_resend_that_did_not_leave_still_leaves_the_first_in_doubt():
    op = operation(State.RESENT, tries=5)
    assert _absorbed(op, BARE, replied(SENDS["not-sent"], attempt=5)).state is State.UNKNOWN


@pytest.mark.req("S4-01")
def test_the_refusal_of_a_resend_says_nothing_of_the_first_send():
    after = _absorbed(operation(State.RESENT), BARE, replied(SENDS["refused"], attempt=2))
    assert after.state is State.UNKNOWN
    assert after.resend_refused


@pytest.mark.parametrize("came", ["yes", "in-part"])
def test_a_late_yes_to_what_failed_is_kept_as_a_contradiction_and_rewrites_nothing(came):
    before = operation(State.FAILED)
    back = replied(SENDS[came], at=SENT_AT + 99.0)
    after = _absorbed(before, BARE, back)
    assert after == replace(
        before, version=before.version + 1, contradicted=True, evidence=after.evidence
    )
    assert after.evidence[-1].at == SENT_AT + 99.0
    assert absorb(after, BARE, back) is None


# Answers to a question.

# `absent@7` is read at the position that the service acknowledged, `absent@6` before it.
LOOKUP = """
state      found         absent        absent@6      absent@7      not-yet  no-answer
recorded   -             -             -             -             -        -
sent       -             -             -             -             -        -
resent     -             -             -             -             -        -
accepted   read_back     looked        looked        looked        looked   looked
unknown    found         looked        looked        looked        looked   looked
assumed    found         looked        looked        looked        looked   looked
undecided  found         looked        looked        looked        looked   looked
confirmed  -             -             -             -             -        -
failed     contradicted  -             -             -             -        -
withdrawn  -             -             -             -             -        -
"""
CLOSE = """
state      found         absent        absent@6      absent@7      not-yet  no-answer
recorded   -             -             -             -             -        -
sent       -             -             -             -             -        -
resent     -             -             -             -             -        -
accepted   read_back     looked        looked        looked        looked   looked
unknown    found         closed_empty  closed_empty  closed_empty  looked   looked
undecided  found         closed_empty  closed_empty  closed_empty  looked   looked
confirmed  -             -             -             -             -        -
failed     contradicted  -             -             -             -        -
withdrawn  -             -             -             -             -        -
"""
READ = """
state      found         absent        absent@6      absent@7      not-yet  no-answer
recorded   -             -             -             -             -        -
sent       -             -             -             -             -        -
resent     -             -             -             -             -        -
accepted   read_back     looked        looked        read_absent   looked   looked
unknown    found         looked        looked        looked        looked   looked
undecided  found         looked        looked        looked        looked   looked
confirmed  -             -             -             -             -        -
failed     contradicted  -             -             -             -        -
withdrawn  -             -             -             -             -        -
"""
ANSWERS: list[tuple[Question, State, str, str | None]] = [
    (question, *cell)
    for question, table in (
        (Question.LOOKUP, LOOKUP),
        (Question.CLOSE, CLOSE),
        (Question.READ_BACK, READ),
    )
    for cell in cells(table)
]


@pytest.mark.req("S0-27")
@pytest.mark.fault("X54")
@pytest.mark.parametrize(("question", "state", "came", "event"), ANSWERS)
def test_the_answer_to_a_question(question, state, came, event):
    op = operation(state, position=7)
    assert becomes(op, FULL, looked(LOOKS[came], question=question)) == event


@pytest.mark.req("S4-35", "S4-32")
@pytest.mark.fault("X55")
@pytest.mark.parametrize(
    ("seen", "acknowledged", "state"),
    [
        (Found(result=R1, position=6), 7, State.CONFIRMED),
        (Absent(position=6), 7, State.ACCEPTED),
        (Absent(position=7), 7, State.FAILED),
        (Absent(position=8), 7, State.FAILED),
        (Absent(), 7, State.ACCEPTED),
        (Absent(position=8), None, State.ACCEPTED),
    ],
)
def test_not_visible_yet_is_told_from_did_not_happen_by_the_position(seen, acknowledged, state):
    op = operation(State.ACCEPTED, position=acknowledged)
    back = looked(seen, question=Question.READ_BACK)
    assert _absorbed(op, READ_BACK, back).state is state


@pytest.mark.req("S4-35")
@pytest.mark.fault("X50")
@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({"tries": 2}, State.ACCEPTED),
        ({"tries": 1, "restored": 1}, State.ACCEPTED),
        ({"tries": 2, "unsent": (1,)}, State.FAILED),
    ],
)
def test_a_position_is_that_of_one_send_and_another_may_still_be_on_its_way(changes, state):
    op = operation(State.ACCEPTED, position=7, **changes)
    back = looked(Absent(position=8), question=Question.READ_BACK)
    assert _absorbed(op, READ_BACK, back).state is state


@pytest.mark.req("S4-32")
@pytest.mark.parametrize("question", [Question.LOOKUP, Question.CLOSE])
@pytest.mark.parametrize("state", [State.ACCEPTED, State.UNKNOWN, State.ASSUMED, State.UNDECIDED])
def test_found_by_its_key_is_a_receipt_only_where_the_result_is_to_be_read_back(state, question):
    op = operation(state, acknowledged_at=0.0)
    after = _absorbed(op, READ_BACK, looked(Found(result=R1, position=7), question=question))
    assert (after.state, after.result) == (state, R1)
    assert after.acknowledged_at == LOOKED_AT + 0.5
    assert "still to be seen" in after.evidence[-1].says
    again = _absorbed(after, READ_BACK, looked(Found(result=R1), question=question, late_s=9.0))
    assert again.acknowledged_at == LOOKED_AT + 0.5
    seen = looked(Found(result=R1), question=Question.READ_BACK)
    assert _absorbed(after, READ_BACK, seen).state is State.CONFIRMED


def test_a_position_alone_never_settles_a_lost_answer():
    op = operation(State.UNKNOWN, position=None)
    for question in (Question.LOOKUP, Question.READ_BACK):
        back = looked(Absent(position=10**9), question=question)
        assert _absorbed(op, FULL, back).state is State.UNKNOWN


# When "nothing there" is a no.

TIMED = replace(LOOKUP_ONLY, refuses_after_s=60.0, settlement_lag_s=5.0)


@pytest.mark.req("S0-26", "K11")
@pytest.mark.parametrize(
    ("asked_after_s", "state"),
    [
        (0.0, State.UNKNOWN),
        (60.001, State.UNKNOWN),
        (65.0, State.UNKNOWN),
        (65.001, State.FAILED),
        (1e6, State.FAILED),
    ],
)
def test_absence_is_a_no_once_the_services_deadline_and_its_lag_are_over(asked_after_s, state):
    back = looked(Absent(), asked_at=SENT_AT + asked_after_s)
    assert _absorbed(operation(State.UNKNOWN), TIMED, back).state is state


@pytest.mark.req("S0-26")
def test_what_counts_is_when_the_question_was_put_and_not_when_it_was_answered():
    back = looked(Absent(), asked_at=SENT_AT + 1.0, late_s=500.0)
    assert _absorbed(operation(State.UNKNOWN), TIMED, back).state is State.UNKNOWN


def test_the_deadline_runs_from_the_last_send():
    twice = operation(State.UNKNOWN, tries=2, last_sent_at=SENT_AT + 30.0)
    for asked_after_s, state in ((66.0, State.UNKNOWN), (96.0, State.FAILED)):
        back = looked(Absent(), attempt=2, asked_at=SENT_AT + asked_after_s)
        assert _absorbed(twice, TIMED, back).state is state


@pytest.mark.req("S0-27")
@given(asked_after_s=st.floats(min_value=0, max_value=1e9))
def test_without_a_deadline_of_the_service_absence_is_never_a_no(asked_after_s):
    back = looked(Absent(position=10**9), asked_at=SENT_AT + asked_after_s)
    for state in (State.UNKNOWN, State.ACCEPTED, State.ASSUMED, State.UNDECIDED):
        assert _absorbed(operation(state), LOOKUP_ONLY, back).state is state
    assert not nothing_can_arrive(operation(State.UNKNOWN), LOOKUP_ONLY, at=1e12)


@pytest.mark.parametrize("state", [State.ASSUMED, State.UNDECIDED])
def test_what_was_given_up_is_still_settled_by_a_look_after_the_deadline(state):
    back = looked(Absent(), asked_at=SENT_AT + 65.001)
    assert _absorbed(operation(state), TIMED, back).state is State.FAILED


DAY_S = 86_400.0
FORGETS = replace(CLOSE_ONLY, lookup=True, retention_s=DAY_S, refuses_after_s=60.0)


@pytest.mark.req("S4-38")
@pytest.mark.fault("X56")
@pytest.mark.parametrize("question", [Question.LOOKUP, Question.CLOSE])
@pytest.mark.parametrize(
    ("asked_after_s", "state"),
    [
        (DAY_S * RETENTION_TRUSTED - 1.0, State.FAILED),
        (DAY_S * RETENTION_TRUSTED, State.UNKNOWN),
        (DAY_S * 25 / 24, State.UNKNOWN),
    ],
)
def test_a_key_that_the_service_may_have_forgotten_proves_nothing(question, asked_after_s, state):
    back = looked(Absent(), question=question, asked_at=SENT_AT + asked_after_s, late_s=0.0)
    after = _absorbed(operation(State.UNKNOWN), FORGETS, back)
    assert after.state is state
    assert ("may have forgotten" in after.evidence[-1].says) is (state is State.UNKNOWN)


@pytest.mark.fault("X56")
def test_the_key_is_remembered_from_the_first_send_and_for_less_than_is_promised():
    op = operation(State.UNKNOWN, last_sent_at=SENT_AT + DAY_S)
    assert remembers(op, FORGETS, at=SENT_AT + DAY_S * 0.8)
    assert not remembers(op, FORGETS, at=SENT_AT + DAY_S * 0.99)
    assert remembers(op, FULL, at=SENT_AT + 1e12)


@pytest.mark.fault("X56")
def test_a_key_that_is_found_long_after_its_retention_is_found_all_the_same():
    back = looked(Found(result=R1), asked_at=SENT_AT + 2 * DAY_S)
    assert _absorbed(operation(State.UNKNOWN), FORGETS, back).state is State.CONFIRMED


# What a question leaves in the record.


@pytest.mark.req("S4-52")
@pytest.mark.parametrize(
    ("question", "source"),
    [
        (Question.LOOKUP, Source.LOOKUP),
        (Question.CLOSE, Source.CLOSE),
        (Question.READ_BACK, Source.READ_BACK),
    ],
)
def test_what_was_found_is_kept_with_where_it_was_found(question, source):
    back = looked(LOOKS["found"], question=question)
    after = _absorbed(operation(State.UNKNOWN), FULL, back)
    assert after.state is State.CONFIRMED
    assert after.result == R1
    why = after.evidence[-1]
    assert (why.source, why.at, why.position) == (source, back.at, 9)


@pytest.mark.parametrize(
    ("came", "kept", "says"),
    [
        ("absent", "Absent", "nothing"),
        ("not-yet", "NotYet", "still running"),
        ("no-answer", "NoAnswer", "timed out"),
    ],
)
def test_a_look_that_settles_nothing_is_counted(came, kept, says):
    before = operation(State.UNKNOWN, looks=2)
    back = looked(LOOKS[came])
    after = _absorbed(before, FULL, back)
    assert (after.looks, after.looked, after.looked_at) == (3, kept, back.at)
    assert says in after.evidence[-1].says


@pytest.mark.req("S4-37")
def test_a_look_that_was_asked_before_the_last_send_says_nothing_about_it():
    before = operation(State.UNKNOWN, tries=2, last_sent_at=SENT_AT + 30.0)
    after = _absorbed(before, FULL, looked(Absent(), attempt=1))
    assert after.looked == ""
    assert after.looks == 1


fields: dict[str, Any] = {
    "state": st.sampled_from(State),
    "tries": st.integers(1, 3),
    "wanted": st.booleans(),
    "closing": st.booleans(),
    "position": st.none() | st.integers(0, 9),
}
positions = st.none() | st.integers(0, 9)
looks = st.one_of(
    st.builds(Absent, position=positions),
    st.builds(NotYet),
    st.builds(NoAnswer, reason=st.just("timed out")),
)


@pytest.mark.req("S4-37", "S4-22")
@given(
    st.builds(operation, **fields),
    looks,
    st.sampled_from([Question.LOOKUP, Question.READ_BACK]),
    st.booleans(),
)
def test_no_maybe_settles_what_nobody_acknowledged(op, outcome, question, lookup):
    contract = replace(FULL, lookup=lookup, read_back=True)
    came = absorb(op, contract, looked(outcome, question=question, attempt=op.tries))
    if came is not None and op.state is not State.ACCEPTED:
        assert came[1].state is op.state


settled = st.sampled_from([State.CONFIRMED, State.FAILED, State.WITHDRAWN])
backs = st.one_of(
    st.builds(replied, st.sampled_from([*SENDS.values()]), attempt=st.integers(1, 3)),
    st.builds(looked, st.sampled_from([*LOOKS.values()]), question=st.sampled_from(Question)),
)


@given(st.builds(operation, **{**fields, "state": settled}), backs)
def test_a_settled_operation_is_never_rewritten(op, back):
    came = absorb(op, FULL, back)
    if came is not None:
        after = came[1]
        said = {"contradicted": True, "evidence": after.evidence}
        assert after == replace(op, version=op.version + 1, **said)
