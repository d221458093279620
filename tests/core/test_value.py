"""An operation as the value its caller matches on, with the sentence for a model in it."""

from typing import Any

import pytest

from landed.core.operation import Evidence, Source, State
from landed.core.plan import PlanState
from landed.core.sentences import to_model
from landed.core.value import (
    Accepted,
    Answered,
    Assumed,
    Blocked,
    Confirmed,
    Failed,
    PlanValue,
    Unanswered,
    Undecided,
    Unknown,
    Withdrawn,
    value_of,
)
from tests.core.build import BARE, operation

R1 = {"id": "R1"}
WHY = Evidence(source=Source.REPLY, at=1.0, says="the service refused: full")

# state, more of it ▸ which value, and what it carries besides the id and the text.
VALUES: list[tuple[State, dict[str, Any], type, dict[str, Any]]] = [
    (State.CONFIRMED, {"result": R1}, Confirmed, {"result": R1, "complete": True}),
    (State.CONFIRMED, {"complete": False}, Confirmed, {"result": None, "complete": False}),
    (State.FAILED, {"evidence": (WHY,)}, Failed, {"reason": WHY.says}),
    (State.FAILED, {}, Failed, {"reason": ""}),
    (State.WITHDRAWN, {"evidence": (WHY,)}, Withdrawn, {"reason": WHY.says}),
    (State.ACCEPTED, {"result": R1}, Accepted, {"result": R1}),
    (State.ASSUMED, {}, Assumed, {}),
    (State.UNDECIDED, {}, Undecided, {}),
    (State.UNKNOWN, {}, Unknown, {}),
    (State.RESENT, {}, Unknown, {}),
    (State.SENT, {}, Unknown, {}),
    (State.RECORDED, {}, Unknown, {}),
    (State.RECORDED, {"blocked_by": "op-a9"}, Blocked, {"by": "op-a9"}),
]


@pytest.mark.parametrize("replayed", [False, True])
@pytest.mark.parametrize(("state", "fields", "kind", "carries"), VALUES)
def test_each_state_is_a_value_of_its_own(state, fields, kind, carries, replayed):
    op = operation(state, **fields)
    value = value_of(op, BARE, replayed=replayed)
    assert value == kind(operation="op-a1", text=to_model(op, BARE), replayed=replayed, **carries)


def test_every_state_is_one_of_them():
    assert {state for state, *_ in VALUES} == set(State)


@pytest.mark.req("S4-42")
@pytest.mark.parametrize(
    "state", [s for s in State if s not in {State.CONFIRMED, State.FAILED, State.WITHDRAWN}]
)
def test_what_is_not_settled_is_never_a_value_that_says_it_is(state):
    value = value_of(operation(state), BARE)
    assert not isinstance(value, Confirmed | Failed | Withdrawn)


def test_a_value_is_matched_by_what_it_is():
    match value_of(operation(State.CONFIRMED, result=R1), BARE):
        case Confirmed(result=made, complete=True):
            assert made == R1
        case _:
            pytest.fail("it was confirmed")


def test_reads_and_plans_are_values_too():
    plan = PlanValue(
        plan="plan-1", turn="T1", state=PlanState.DONE, text="Done.", operations=("op-1",)
    )
    assert (plan.questions, plan.replayed) == ((), False)
    answered = Answered(operation="ob-1", text="Free.", result={"free": True})
    unanswered = Unanswered(operation="ob-1", text="No answer.", reason="timed out")
    assert (answered.replayed, unanswered.replayed) == (False, False)
