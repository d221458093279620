"""Cases: what opens one, what a person is shown of it, and that a record of one reads back."""

from dataclasses import replace

import pytest

from landed.core.case import (
    BY_STATE,
    Case,
    CaseEvent,
    CaseState,
    Ruling,
    Why,
    about,
    case_from,
    case_id,
    case_moved,
    case_record,
    may,
    standing,
    standing_alone,
)
from landed.core.changes import Kind
from landed.core.errors import IllegalEventError
from landed.core.operation import Evidence, Source, State
from landed.core.outcome import Absent, Acknowledged, Found
from tests.core.build import FULL, LOOKUP_ONLY, SENT_AT, events, lap, looked, operation, replied

NOTICED_AT = SENT_AT + 100.0
SAID = Evidence(source=Source.LOOKUP, at=SENT_AT, says="no answer: down")


def a_case(why: Why = Why.UNRECORDED, **fields: object) -> Case:
    made: dict[str, object] = {
        "why": why,
        "subject": "pi_7",
        "tenant": "default",
        "session": "s1",
        "tool": "refund",
        "says": "a refund of 10",
        "opened_at": NOTICED_AT,
        **fields,
    }
    return Case(**made)  # type: ignore[arg-type]


# What opens one.


@pytest.mark.req("S4-31")
def test_what_contradicts_a_settled_operation_opens_a_case_in_the_same_unit() -> None:
    failed = operation(State.FAILED)
    decided = lap(failed, arrivals=(looked(Found(result={"id": "R1"})),), now=NOTICED_AT)
    case = "case/contradicted/reserve_table/op-a1"
    assert events(decided) == ["op-a1 contradicted", f"{case} case_opened"]
    assert decided.operations["op-a1"].state is State.FAILED
    made = decided.cases[case]
    assert (made.why, made.subject, made.version) == (Why.CONTRADICTED, "op-a1", 1)
    assert made.says == "it took effect after all: this contradicts what was settled"


def test_a_second_contradiction_of_the_same_operation_opens_no_other_case() -> None:
    before = operation(State.FAILED, contradicted=True)
    assert events(lap(before, arrivals=(looked(Found(result=None)),))) == []


@pytest.mark.req("S4-31")
def test_a_find_after_three_looks_that_had_to_see_it_is_confirmed_and_in_front_of_a_person() -> (
    None
):
    """A probe that fails three times and then passes, with nothing done meanwhile, is a debt."""
    held, at = operation(State.UNKNOWN), SENT_AT + FULL.deadline_s + 1.0
    for n in range(3):
        absent = looked(Absent(), asked_at=at + 10.0 * n)
        held = lap(held, contract=LOOKUP_ONLY, arrivals=(absent,), now=at + 10.0 * n).operations[
            "op-a1"
        ]
        assert (held.state, held.absences, held.unexplained) == (State.UNKNOWN, n + 1, False)
    found = looked(Found(result={"id": "R1"}), asked_at=at + 40.0)
    decided = lap(held, contract=LOOKUP_ONLY, arrivals=(found,), now=at + 41.0)
    case = "case/unexplained/reserve_table/op-a1"
    assert events(decided) == ["op-a1 found", f"{case} case_opened"]
    after = decided.operations["op-a1"]
    assert (after.state, after.unexplained) == (State.CONFIRMED, True)
    assert [one.says for one in after.evidence] == [
        *(["nothing has landed"] * 3),
        "it is there, after 3 looks that had to see it and did not",
    ]


@pytest.mark.req("S4-31")
def test_a_find_that_a_send_in_between_explains_is_no_case() -> None:
    held = operation(State.UNKNOWN, absences=3, looked="Absent", looks=3, looked_at=SENT_AT + 50.0)
    sent = lap(held, now=SENT_AT + 60.0).operations["op-a1"]
    assert (sent.state, sent.absences) == (State.RESENT, 0)
    landed = lap(sent, arrivals=(replied(Acknowledged(result=None), attempt=2),), now=SENT_AT + 61)
    assert events(landed) == ["op-a1 acknowledged"]


def test_a_look_before_it_had_to_be_visible_counts_for_nothing() -> None:
    lagging = replace(LOOKUP_ONLY, settlement_lag_s=60.0)
    early = looked(Absent(), asked_at=SENT_AT + 50.0)
    after = lap(operation(State.UNKNOWN), contract=lagging, arrivals=(early,), now=SENT_AT + 51.0)
    assert after.operations["op-a1"].absences == 0


# Its life.


def test_the_same_thing_is_one_case_and_what_stands_in_a_part_is_not_another_part() -> None:
    assert a_case().id == a_case(says="noticed again", opened_at=0.0).id
    assert case_id(Why.UNRECORDED, "a/b", "c") != case_id(Why.UNRECORDED, "a", "b/c")


def test_a_closed_case_is_not_moved_again() -> None:
    closed = case_moved(a_case(), CaseEvent.CLOSED, ruling="sign_off", by="ana", at=NOTICED_AT)
    assert (closed.state, closed.version, closed.by) == (CaseState.CLOSED, 1, "ana")
    for event in (CaseEvent.CLOSED, CaseEvent.NOTED):
        with pytest.raises(IllegalEventError, match="is closed"):
            case_moved(closed, event)


@pytest.mark.parametrize("why", Why)
def test_its_record_reads_back_and_nobody_has_to_hold_it(why: Why) -> None:
    case = a_case(why, version=2, ruling="hold", by="bo", note="asked the bank", at=NOTICED_AT)
    record = case_record(case)
    assert (record.kind, record.open, record.worker) == (Kind.CASE, False, "")
    assert case_from(record) == case


# What a person is shown.


@pytest.mark.req("S4-53")
def test_an_operation_is_shown_with_all_that_there_is_to_decide_by() -> None:
    held = operation(
        State.UNDECIDED, evidence=(SAID,), plan="plan-1", retries="op-a0", undoes="op-u"
    )
    remembered = replace(FULL, retention_s=3_600.0)
    shown = standing(held, remembered, words="Book Friday for four.")
    assert (shown.id, shown.operation, shown.state) == ("op-a1", "op-a1", "undecided")
    assert (shown.key, shown.known_until) == ("op-a1", SENT_AT + 3_600.0)
    assert shown.arguments == {"day": "Fri", "covers": 4}
    assert (shown.words, shown.turn) == ("Book Friday for four.", "T1")
    assert (shown.plan, shown.retries, shown.undoes) == ("plan-1", "op-a0", "op-u")
    assert (shown.evidence, shown.says) == ((SAID,), "no answer: down")
    assert shown.may == (Ruling.LANDED, Ruling.ABSENT, Ruling.HOLD, Ruling.LIFT)


def test_a_key_that_is_never_forgotten_or_was_never_sent_has_no_bound() -> None:
    assert standing(operation(State.UNDECIDED), FULL).known_until == 0.0
    forgetful = replace(FULL, retention_s=60.0)
    unsent = standing(operation(State.WITHDRAWN), forgetful)
    assert (unsent.known_until, unsent.since, unsent.says) == (0.0, SENT_AT, "")


@pytest.mark.parametrize("state", State)
def test_what_may_be_said_of_an_operation_follows_from_its_state(state: State) -> None:
    assert standing(operation(state), FULL).may == BY_STATE.get(state, ())


def test_a_case_about_an_operation_tells_of_both() -> None:
    failed = operation(State.FAILED, evidence=(SAID,))
    case = replace(about(failed, Why.CONTRADICTED, at=NOTICED_AT), ruling="hold", by="bo")
    shown = standing(failed, FULL, case=case)
    assert (shown.id, shown.why, shown.state) == (case.id, Why.CONTRADICTED, "open")
    assert (case.says, shown.evidence[0]) == (SAID.says, SAID)
    assert (shown.evidence[-1].says, shown.evidence[-1].by) == ("hold", "bo")
    assert shown.may == (Ruling.SIGN_OFF, Ruling.HOLD)
    assert about(operation(), Why.CONTRADICTED, at=0.0).says == ""


def test_an_effect_that_nobody_recorded_is_shown_by_the_id_that_its_service_gave() -> None:
    shown = standing_alone(a_case())
    assert (shown.key, shown.operation, shown.arguments, shown.evidence) == ("pi_7", "", None, ())
    noted = standing_alone(a_case(ruling="hold", by="bo", note="asked", at=NOTICED_AT))
    assert [(one.says, one.by, one.at) for one in noted.evidence] == [
        ("hold: asked", "bo", NOTICED_AT)
    ]


def test_a_case_that_is_over_takes_no_ruling() -> None:
    assert may(a_case(state=CaseState.CLOSED)) == ()
