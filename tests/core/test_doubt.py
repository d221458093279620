"""Contract, age and what was looked at decide the next step towards knowing."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from landed.core.contract import Contract, Effect
from landed.core.doubt import (
    PAUSES_S,
    Ask,
    Assume,
    Close,
    LagOver,
    LookUp,
    ReadBack,
    SendAgain,
    Verdict,
    WaitUntil,
    doubt,
    pause_s,
    still_sendable,
)
from landed.core.operation import Operation, State
from tests.core.build import (
    BARE,
    CLOSE_ONLY,
    FULL,
    LOOKUP_ONLY,
    READ_BACK,
    RESENDABLE,
    SEND_BY,
    SENT_AT,
    operation,
)

UNKNOWN = operation(State.UNKNOWN)
LEFT = replace(UNKNOWN, wanted=False, unwanted_at=SENT_AT + 1.0)
ABSENT = replace(UNKNOWN, looked="Absent", looks=1, looked_at=SENT_AT + 1.0)
OLD = replace(BARE, escalate_after_s=math.inf)

SOON = SENT_AT + 2.0
DAY_S = 86_400.0
ESCALATED = SENT_AT + BARE.escalate_after_s


def after(age_s: float) -> float:
    """The time `age_s` seconds after the first send."""
    return SENT_AT + age_s


# The ways of finding out, in order.

# keyed, compares, lookup, close ▸ the first step: still wanted · given up.
FIRST_STEP: list[tuple[str, bool, bool, bool, Verdict, Verdict]] = [
    ("", False, False, False, WaitUntil(ESCALATED), WaitUntil(ESCALATED)),
    ("", False, True, False, LookUp(), LookUp()),
    ("key", False, False, False, WaitUntil(ESCALATED), WaitUntil(ESCALATED)),
    ("key", False, True, False, LookUp(), LookUp()),
    ("key", False, False, True, WaitUntil(SEND_BY), Close()),
    ("key", False, True, True, LookUp(), Close()),
    ("key", True, False, False, SendAgain(), WaitUntil(ESCALATED)),
    ("key", True, True, False, LookUp(), LookUp()),
    ("key", True, False, True, SendAgain(), Close()),
    ("key", True, True, True, LookUp(), Close()),
]


@pytest.mark.req("S0-21", "S4-12")
@pytest.mark.fault("X02")
@pytest.mark.parametrize(("keyed", "compares", "lookup", "close", "wanted", "left"), FIRST_STEP)
def test_the_first_step_follows_from_what_the_service_offers_and_whether_it_is_wanted(
    keyed, compares, lookup, close, wanted, left
):
    contract = replace(BARE, keyed=keyed, compares_payload=compares, lookup=lookup, close=close)
    assert doubt(UNKNOWN, contract, SOON) == wanted
    assert doubt(LEFT, contract, SOON) == left


@pytest.mark.req("K9", "S4-37")
@pytest.mark.fault("X02")
@pytest.mark.parametrize(
    ("seen", "verdict"),
    [
        ("", LookUp()),
        ("Absent", SendAgain()),
        ("NotYet", LookUp()),
        ("NoAnswer", LookUp()),
    ],
)
def test_where_the_service_can_be_asked_the_key_is_sent_again_only_after_a_no(seen, verdict):
    op = replace(UNKNOWN, looked=seen, looked_at=SENT_AT)
    assert doubt(op, FULL, SOON) == verdict


@pytest.mark.req("K9")
@pytest.mark.parametrize(
    ("why", "op", "contract"),
    [
        ("not keyed", ABSENT, LOOKUP_ONLY),
        ("payloads are not compared", ABSENT, replace(LOOKUP_ONLY, keyed="key")),
        ("nobody wants it", replace(ABSENT, wanted=False), FULL),
        ("its time is over", replace(ABSENT, send_by=SOON), FULL),
        ("the key was closed", replace(ABSENT, closing=True), FULL),
        ("a resend was refused", replace(ABSENT, resend_refused=True), FULL),
        ("the last try was used", replace(ABSENT, tries=5), FULL),
        ("the service may forget it", ABSENT, replace(FULL, retention_s=2.0)),
    ],
)
def test_the_same_key_is_not_sent_again_when(why, op, contract):
    assert doubt(ABSENT, FULL, SOON) == SendAgain()
    for age_s in (2.0, 60.0, 3_600.0, DAY_S):
        assert doubt(op, contract, after(age_s)) != SendAgain(), why


@pytest.mark.fault("X02")
@pytest.mark.parametrize(
    "op",
    [
        LEFT,
        replace(UNKNOWN, send_by=SOON),
        replace(UNKNOWN, resend_refused=True, looked="Absent"),
        replace(UNKNOWN, closing=True),
        replace(UNKNOWN, tries=FULL.max_tries, unsent=(2, 3, 4, 5), looked="Absent"),
    ],
    ids=["not-wanted", "past-send-by", "resend-refused", "closing-already", "no-try-left"],
)
def test_what_will_not_be_sent_again_is_closed(op):
    assert doubt(op, FULL, SOON) == Close()


def test_a_close_that_brought_no_answer_is_asked_again_after_a_pause():
    op = replace(LEFT, closing=True, looks=1, looked_at=SOON)
    assert doubt(op, FULL, SOON) == WaitUntil(SOON + 0.5)
    assert doubt(op, FULL, SOON + 0.5) == Close()


@pytest.mark.parametrize(
    ("wanted", "now", "may"),
    [
        (True, SEND_BY - 0.001, True),
        (True, SEND_BY, False),
        (False, SENT_AT, False),
    ],
)
def test_a_send_may_leave_while_it_is_wanted_and_its_time_is_not_over(wanted, now, may):
    assert still_sendable(replace(UNKNOWN, wanted=wanted), now) is may


# Pauses.


def test_pauses_grow_and_the_last_one_repeats():
    assert [pause_s(times) for times in range(len(PAUSES_S))] == sorted(PAUSES_S)
    assert pause_s(0) == 0.0
    assert pause_s(10_000) == PAUSES_S[-1] == 60.0


@pytest.mark.parametrize(
    ("looks", "pause"),
    [(0, 0.0), (1, 0.5), (2, 1.0), (3, 2.0), (4, 5.0), (5, 10.0), (6, 30.0), (7, 60.0), (99, 60.0)],
)
def test_the_service_is_asked_again_after_a_growing_pause(looks, pause):
    op = replace(UNKNOWN, looks=looks, looked_at=SOON)
    assert doubt(op, LOOKUP_ONLY, SOON + pause) == LookUp()
    if pause:
        assert doubt(op, LOOKUP_ONLY, SOON + pause - 0.01) == WaitUntil(SOON + pause)


@pytest.mark.parametrize(("tries", "pause"), [(1, 0.0), (2, 0.5), (3, 1.0), (4, 2.0)])
def test_the_key_is_sent_again_after_a_growing_pause(tries, pause):
    op = replace(ABSENT, tries=tries, last_sent_at=SOON, looked_at=SOON)
    assert doubt(op, RESENDABLE, SOON + pause) == SendAgain()
    if pause:
        assert doubt(op, RESENDABLE, SOON) == WaitUntil(SOON + pause)


# The service's own deadline for requests.

TIMED = replace(OLD, lookup=True, refuses_after_s=60.0, settlement_lag_s=5.0)


@pytest.mark.req("S0-26", "K11")
def test_the_look_that_can_settle_it_is_made_just_after_the_deadline():
    seen = replace(UNKNOWN, looks=7, looked_at=after(30.0))
    verdict = doubt(seen, TIMED, after(40.0))
    assert isinstance(verdict, WaitUntil)
    assert after(65.0) < verdict.at <= after(65.01)
    assert doubt(seen, TIMED, verdict.at) == LookUp()


@pytest.mark.req("S0-26")
def test_a_pause_that_ends_before_the_deadline_is_kept_to():
    seen = replace(UNKNOWN, looks=2, looked_at=after(30.0))
    assert doubt(seen, TIMED, after(30.5)) == WaitUntil(after(31.0))
    assert doubt(seen, TIMED, after(31.0)) == LookUp()


def test_past_the_deadline_a_look_from_before_it_is_made_again_without_a_pause():
    seen = replace(UNKNOWN, looks=7, looked_at=after(65.0))
    assert doubt(seen, TIMED, after(65.002)) == LookUp()


def test_past_the_deadline_looks_that_settled_nothing_pause_again():
    seen = replace(UNKNOWN, looks=7, looked_at=after(70.0))
    assert doubt(seen, TIMED, after(71.0)) == WaitUntil(after(130.0))


# What the service remembers.

FORGETS = replace(FULL, retention_s=DAY_S, escalate_after_s=math.inf)
PATIENT = replace(ABSENT, send_by=after(10 * DAY_S))


@pytest.mark.req("S4-38")
@pytest.mark.fault("X56")
@pytest.mark.parametrize(
    ("hours", "verdict"),
    [(1, SendAgain()), (21, SendAgain()), (22, LookUp()), (24, LookUp()), (25, LookUp())],
)
def test_past_its_retention_a_key_is_only_looked_up(hours, verdict):
    assert doubt(PATIENT, FORGETS, after(hours * 3_600.0)) == verdict


@pytest.mark.req("S4-38")
@pytest.mark.fault("X56")
@pytest.mark.parametrize(("hours", "verdict"), [(21, Close()), (22, LookUp()), (25, LookUp())])
def test_past_its_retention_a_key_is_no_longer_closed(hours, verdict):
    assert doubt(replace(PATIENT, wanted=False), FORGETS, after(hours * 3_600.0)) == verdict


@pytest.mark.fault("X56")
def test_a_resend_must_come_back_while_the_key_is_still_remembered():
    tight = replace(RESENDABLE, retention_s=100.0, deadline_s=30.0)
    assert doubt(ABSENT, tight, after(59.0)) == SendAgain()
    assert doubt(ABSENT, tight, after(61.0)) != SendAgain()


# Accepted: the effect is still to be seen.

ACCEPTED = operation(State.ACCEPTED)  # acknowledged a second after it was sent
READ = replace(ACCEPTED, looks=1, looked_at=after(1.5), looked="NotYet")


@pytest.mark.req("S4-32", "S4-35")
@pytest.mark.parametrize(
    ("op", "age_s", "verdict"),
    [
        (ACCEPTED, 1.0, ReadBack()),
        (READ, 1.6, WaitUntil(after(2.0))),
        (READ, 2.0, ReadBack()),
        (replace(READ, looks=7), 2.0, WaitUntil(after(11.0))),
        (READ, 11.0, ReadBack()),
        (replace(READ, looked_at=after(11.0)), 11.0, LagOver()),
        (replace(READ, looked_at=after(12.0)), 500.0, LagOver()),
    ],
)
def test_what_was_accepted_is_read_back_until_its_lag_is_over_and_once_after_it(op, age_s, verdict):
    assert doubt(op, READ_BACK, after(age_s)) == verdict


@pytest.mark.req("S4-33")
@pytest.mark.parametrize(("keyed", "verdict"), [("key", SendAgain()), ("", WaitUntil(after(12.5)))])
def test_what_no_read_back_confirms_is_sent_again_only_under_a_key_that_makes_it_safe(
    keyed, verdict
):
    contract = replace(READ_BACK, keyed=keyed, compares_payload=bool(keyed))
    op = operation(State.UNKNOWN, acknowledged_at=after(1.0), looks=1, looked_at=after(12.0))
    assert doubt(op, contract, after(12.1)) == verdict


def test_what_was_accepted_and_then_unknown_is_still_read_back():
    op = operation(State.UNKNOWN, acknowledged_at=after(1.0))
    assert doubt(op, READ_BACK, after(12.0)) == ReadBack()
    assert doubt(UNKNOWN, READ_BACK, after(12.0)) == WaitUntil(ESCALATED)


SEEN_BY_KEY = replace(FULL, read_back=True, settlement_lag_s=10.0)
TAKEN = operation(State.UNKNOWN, acknowledged_at=after(1.0), looked="Found", wanted=False)


@pytest.mark.req("S4-32")
def test_what_was_found_by_its_key_is_read_back_and_its_key_is_not_closed():
    assert doubt(TAKEN, SEEN_BY_KEY, after(2.0)) == ReadBack()
    assert doubt(replace(TAKEN, acknowledged_at=0.0), SEEN_BY_KEY, after(2.0)) == Close()


def test_what_was_accepted_without_a_read_back_waits_for_its_own_answer_and_then_is_in_doubt():
    assert doubt(ACCEPTED, LOOKUP_ONLY, after(2.0)) == WaitUntil(after(901.0))
    assert doubt(ACCEPTED, LOOKUP_ONLY, after(901.0)) == LagOver()


# Nobody can tell.

TEXT = Contract(effect=Effect.IRREVERSIBLE, service="phone", assume_after_s=5.0)


@pytest.mark.req("K10")
@pytest.mark.parametrize(
    ("contract", "age_s", "verdict"),
    [
        (TEXT, 4.9, WaitUntil(after(5.0))),
        (TEXT, 5.0, Assume()),
        (replace(TEXT, assume_after_s=0.0), 0.0, Assume()),
        (replace(TEXT, assume_after_s=None), 5.0, WaitUntil(ESCALATED)),
        (replace(TEXT, assume_after_s=None), 900.0, Ask()),
    ],
)
def test_only_a_contract_that_allows_it_lets_the_unanswered_pass_for_landed(
    contract, age_s, verdict
):
    assert doubt(UNKNOWN, contract, after(age_s)) == verdict


@pytest.mark.req("S4-36", "K11")
@pytest.mark.parametrize("contract", [BARE, LOOKUP_ONLY, CLOSE_ONLY, RESENDABLE, FULL, TIMED])
@pytest.mark.parametrize("wanted", [True, False])
def test_past_the_age_of_escalation_and_asked_once_more_a_person_is_asked(contract, wanted):
    limited = replace(contract, escalate_after_s=900.0)
    asked_since = replace(UNKNOWN, wanted=wanted, looks=9, looked_at=ESCALATED)
    assert doubt(asked_since, limited, ESCALATED) == Ask()
    assert doubt(asked_since, limited, ESCALATED + 1e6) == Ask()


@pytest.mark.req("S4-36")
def test_what_can_be_asked_is_asked_once_more_before_a_person_is():
    before = replace(UNKNOWN, looks=9, looked_at=ESCALATED - 61.0)
    assert doubt(before, LOOKUP_ONLY, ESCALATED) == LookUp()
    assert doubt(UNKNOWN, BARE, ESCALATED) == Ask()


@pytest.mark.req("S4-36")
@pytest.mark.parametrize("contract", [BARE, LOOKUP_ONLY, RESENDABLE, FULL])
def test_at_the_age_of_escalation_no_second_send_leaves(contract):
    aged = replace(UNKNOWN, send_by=ESCALATED, looked="Absent", looked_at=ESCALATED)
    assert doubt(aged, contract, ESCALATED) == Ask()


@pytest.mark.parametrize(
    ("contract", "op", "verdict"),
    [
        (FULL, operation(State.UNDECIDED), LookUp()),
        (FULL, operation(State.UNDECIDED, wanted=False), Close()),
        (LOOKUP_ONLY, operation(State.UNDECIDED), LookUp()),
        (READ_BACK, operation(State.UNDECIDED, acknowledged_at=SENT_AT), ReadBack()),
        (BARE, operation(State.UNDECIDED), WaitUntil(math.inf)),
        (RESENDABLE, operation(State.UNDECIDED, looked="Absent"), WaitUntil(math.inf)),
    ],
)
def test_what_is_before_a_person_can_be_asked_about_and_is_never_sent(contract, op, verdict):
    assert doubt(op, contract, SOON) == verdict


@pytest.mark.parametrize("state", [State.RECORDED, State.SENT, State.RESENT, State.CONFIRMED])
def test_what_is_not_in_doubt_waits_for_an_answer_only(state):
    assert doubt(operation(state), FULL, SENT_AT + 1e9) == WaitUntil(math.inf)


# For every contract and every age.

ages = st.floats(min_value=0.0, max_value=2_000.0)
maybe_s = st.none() | st.floats(min_value=0.0, max_value=1_500.0)
contracts = st.builds(
    replace,
    st.just(BARE),
    keyed=st.sampled_from(["", "key"]),
    compares_payload=st.booleans(),
    retention_s=maybe_s,
    lookup=st.booleans(),
    close=st.booleans(),
    read_back=st.booleans(),
    refuses_after_s=maybe_s,
    settlement_lag_s=st.sampled_from([0.0, 5.0]),
    assume_after_s=maybe_s,
)
unknowns = st.builds(
    operation,
    st.sampled_from([State.UNKNOWN, State.ACCEPTED, State.UNDECIDED]),
    tries=st.integers(1, 6),
    wanted=st.booleans(),
    send_by=ages.map(after),
    looks=st.integers(0, 9),
    looked_at=st.just(0.0) | ages.map(after),
    looked=st.sampled_from(["", "Absent", "NotYet", "NoAnswer"]),
    closing=st.booleans(),
    resend_refused=st.booleans(),
    acknowledged_at=st.sampled_from([0.0, after(1.0)]),
)


@given(unknowns, contracts, ages.map(after))
def test_a_verdict_is_to_act_now_or_to_wait_for_a_later_moment(op, contract, now):
    verdict = doubt(op, contract, now)
    assert not isinstance(verdict, WaitUntil) or verdict.at > now
    assert doubt(op, contract, now) == verdict


@pytest.mark.req("S4-37", "K9")
@given(unknowns, contracts, ages.map(after))
def test_no_send_follows_a_maybe(op, contract, now):
    if doubt(op, contract, now) == SendAgain():
        assert op.state is State.UNKNOWN
        assert op.looked == "Absent" or not contract.lookup
        assert contract.keyed
        assert contract.compares_payload
        assert not op.closing
        assert not op.resend_refused
        assert op.wanted
        assert now < op.send_by
        assert contract.retention_s is None or now < SENT_AT + contract.retention_s


@given(unknowns, contracts, ages.map(after))
def test_only_what_the_contract_offers_is_asked_of_the_service(op, contract, now):
    match doubt(op, contract, now):
        case LookUp():
            assert contract.lookup
        case Close():
            assert contract.close
        case ReadBack():
            assert contract.read_back
            assert op.acknowledged_at
        case Assume():
            assert contract.assume_after_s is not None
            assert now >= SENT_AT + contract.assume_after_s


def _unanswered(op: Operation, verdict: Verdict, now: float) -> Operation:
    """The operation after a step that brought no answer."""
    if verdict == SendAgain():
        return replace(op, tries=op.tries + 1, last_sent_at=now, looks=0, looked="")
    return replace(
        op,
        looks=op.looks + 1,
        looked="NoAnswer",
        looked_at=now,
        closing=op.closing or verdict == Close(),
    )


@pytest.mark.req("S4-22", "S4-36")
@given(contracts, st.booleans())
def test_nothing_stays_unknown_for_ever_and_silence_never_settles_it(contract, wanted):
    op, now = replace(UNKNOWN, wanted=wanted), SENT_AT
    for _ in range(200):
        verdict = doubt(op, contract, now)
        match verdict:
            case Ask():
                break
            case Assume():
                assert contract.assume_after_s is not None
                break
            case WaitUntil(at=at):
                now = at
            case _:
                op = _unanswered(op, verdict, now)
    else:
        pytest.fail("it was neither put before a person nor assumed")
    assert now <= ESCALATED + PAUSES_S[-1]
