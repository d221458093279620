"""What hangs together, when it is at rest, and what a selection means."""

import math
from dataclasses import replace
from typing import Any

import pytest

from landed.core.approval import Approval, ApprovalState, Purpose, approval_record
from landed.core.case import CaseState, about, case_record
from landed.core.changes import Kind, Record
from landed.core.contract import Contract
from landed.core.keeping import (
    UNACTED_S,
    Glimpse,
    Kept,
    Selection,
    glimpse,
    is_meant,
    strands,
    why_not,
)
from landed.core.operation import State
from landed.core.operation_record import to_record
from landed.core.plan import At, Place, PlanState, plan_record
from landed.core.question import About, Question, QuestionState, question_record
from landed.core.session import Input, opening
from landed.core.undo import UNDO_WITHIN_S, Release, ReleaseState, release_record
from tests.core.build import DIGEST, FULL, SENT_AT, operation
from tests.core.conversation import RESERVE, book, wanting

TOOLS = {book().tool: RESERVE}


def seen(record: Record, contract: Contract = FULL, *, at: float = 5.0) -> Glimpse:
    kept = Kept(record=record, at=at, is_erased=False)
    return glimpse(kept, {DIGEST: contract})


def told(record: Record, now: float, contract: Contract = FULL) -> str:
    return why_not((seen(record, contract),), now)


def heard(id: str = "in-1", *, at: float = 5.0) -> list[Record]:
    said = Input(
        id=id,
        tenant="default",
        session="s1",
        principal="ana",
        text="op-a1",
        origin="user",
        delivery="",
        turn="T1",
        at=at,
    )
    return [move.after for move in opening(said).moves]


# Rest.


@pytest.mark.parametrize("state", State)
def test_an_operation_is_at_rest_when_nothing_can_come_of_it(state: State) -> None:
    rests = state in (State.CONFIRMED, State.FAILED, State.WITHDRAWN, State.ASSUMED)
    said = told(to_record(operation(state)), 9e9)
    assert said == ("" if rests else f"op-a1 is {state}")


def test_what_can_be_taken_back_until_a_time_is_at_rest_from_then_on() -> None:
    undoable = replace(FULL, undo="cancel", undo_within_s=60.0)
    record = to_record(operation(State.CONFIRMED))
    until = SENT_AT + 1.0 + 60.0
    assert told(record, until - 1.0, undoable).startswith(
        "op-a1 can be taken back until 1970-01-01"
    )
    assert told(record, until, undoable) == ""
    assert told(record, until - 1.0, replace(undoable, undo_where="open")) == ""
    assert told(to_record(operation(State.FAILED)), 0.0, undoable) == ""


def test_without_a_cut_off_an_operation_does_not_wait_for_an_undo_for_ever() -> None:
    assert told(to_record(operation(State.CONFIRMED)), 0.0, replace(FULL, undo="cancel")) == ""


@pytest.mark.parametrize("state", PlanState)
def test_a_plan_is_at_rest_when_it_is_over_and_cannot_be_taken_back(state: PlanState) -> None:
    plan = replace(
        wanting([book()], TOOLS), state=state, answer_by=100.0, ended_at=1_000.0, version=2
    )
    record = plan_record(plan)
    if plan.open:
        assert told(record, 9e9) == f"{plan.id} is {state}"
    elif state is PlanState.PROPOSED:
        assert told(record, 99.0) == f"{plan.id} waits for an answer"
    elif state in (PlanState.DONE, PlanState.PARTIAL, PlanState.STOPPED):
        assert told(record, 1_000.0 + UNDO_WITHIN_S - 1.0).startswith(
            f"{plan.id} can be taken back"
        )
    assert plan.open or told(record, 1_000.0 + UNDO_WITHIN_S) == ""


def test_a_question_waits_for_ever_and_one_about_a_plan_as_long_as_its_approval() -> None:
    asked = Question(
        id="q1",
        tenant="default",
        session="s1",
        turn="T1",
        principal="ana",
        about=About.PRICE,
        subject="release/op-a1",
        text="shall I?",
        amount_cents=1,
        claim="",
        made_at=1.0,
    )
    assert told(question_record(asked), 9e9) == "q1 waits for an answer"
    assert told(question_record(replace(asked, state=QuestionState.LAPSED)), 0.0) == ""
    assert told(question_record(replace(asked, about=About.PLAN)), 0.0) == ""


def test_an_approval_waits_until_nobody_can_give_it() -> None:
    offered: dict[str, Any] = {
        "plan": "plan-1",
        "purpose": Purpose.CONFIRM,
        "attempt": 1,
        "principal": "ana",
        "tenant": "default",
        "session": "s1",
        "hash": "h",
        "made_at": 1.0,
        "send_within_s": 9.0,
        "answer_by": 50.0,
        "token": "t",
    }
    record = approval_record(Approval(**offered))
    assert told(record, 49.0).endswith("waits for an answer")
    assert told(record, 50.0) == ""
    assert told(approval_record(Approval(**offered, state=ApprovalState.TAKEN)), 0.0) == ""


def test_a_release_and_a_case_are_at_rest_when_they_have_ended() -> None:
    owed = Release(
        id="release/op-a1",
        operation="op-a1",
        tenant="default",
        session="s1",
        principal="ana",
        origin="user",
        made_at=1.0,
        state=ReleaseState.ASKED,
    )
    assert told(release_record(owed), 9e9) == "release/op-a1 is asked"
    assert told(release_record(replace(owed, state=ReleaseState.WAIVED)), 0.0) == ""
    case = about(operation(), why="contradicted", at=1.0)  # type: ignore[arg-type]
    assert told(case_record(case), 9e9).endswith("is open")
    assert told(case_record(replace(case, state=CaseState.CLOSED)), 0.0) == ""


def test_an_input_on_which_nobody_acted_is_kept_for_a_day() -> None:
    alone = tuple(map(seen, heard()))
    assert why_not(alone, 5.0 + UNACTED_S - 1.0) == "in-1 was not acted on yet"
    assert why_not(alone, 5.0 + UNACTED_S) == ""
    acted = (*alone, seen(to_record(operation(State.CONFIRMED))))
    assert why_not(acted, 6.0) == ""


# Strands.


def test_what_speaks_of_each_other_stands_together_and_the_rest_apart() -> None:
    plan = replace(wanting([book()], TOOLS), places=(Place(at=At.DONE, record="op-a1"),), version=2)
    linked = [*heard(), to_record(operation(State.CONFIRMED)), plan_record(plan)]
    other = to_record(
        operation(
            State.CONFIRMED,
            id="op-b1",
            key="op-b1",
            turn="",
            arguments={"day": "op-a1"},
            ask=plan.ask,
        )
    )
    other = replace(other, frozen={**other.frozen, "ask": {"input": "", "turn": ""}})
    found = strands(map(seen, [other, *linked]))
    assert sorted(tuple(each.id for each in strand) for strand in found) == sorted(
        [("op-b1",), tuple(record.id for record in linked)]
    )


def test_a_selection_takes_whole_strands() -> None:
    records = [*heard(), to_record(operation(State.CONFIRMED))]
    strand = tuple(seen(record, at=5.0 + n) for n, record in enumerate(records))
    assert is_meant(strand, Selection())
    assert is_meant(strand, Selection(record="T1"))
    assert not is_meant(strand, Selection(record="T2"))
    assert is_meant(strand, Selection(principal="ana"))
    assert not is_meant(strand, Selection(principal="bob"))
    assert not is_meant(strand, Selection(before=7.0))
    assert is_meant(strand, Selection(before=7.1))
    assert Selection().before == math.inf
    assert {each.kind for each in strand} == {Kind.INPUT, Kind.TURN, Kind.OPERATION}
