"""What was written to is remembered for a while, and of each target the last write only."""

from dataclasses import replace
from typing import Any

import pytest

from landed.core.changes import Move
from landed.core.contract import Contract, Effect
from landed.core.event import Event
from landed.core.key import Ask
from landed.core.operation import Happened, Operation
from landed.core.operation_record import to_record
from landed.core.plan import Plan, step_of
from landed.runtime import touched
from landed.runtime.touched import Touched

CONTRACT = Contract(effect=Effect.IRREVERSIBLE, service="pay", target=("order/{id}",))
AT = 100.0


def plan_of(order: str, *, made_at: float, id: str = "plan-1") -> Plan:
    step = step_of(
        tool="refund",
        contract=CONTRACT,
        digest="d",
        arguments={"id": order},
        ask=Ask(),
        call_id="",
        reads=False,
    )
    no: dict[str, Any] = dict.fromkeys(("turn", "input", "principal", "call_id", "revises"), "")
    return Plan(
        id=id,
        tenant="default",
        session="main",
        origin="user",
        intent={},
        steps=(step,),
        made_at=made_at,
        send_by=0.0,
        **no,
    )


def sent(order: str, at: float, event: str = Happened.SENT, plan: str = "") -> Move:
    name = plan_of(order, made_at=0.0).steps[0].names
    made: dict[str, Any] = dict.fromkeys(("turn", "key", "contract", "identity"), "")
    operation = Operation(
        id=f"op-{order}",
        tenant="default",
        session="main",
        tool="set_address",
        arguments={"id": order},
        ask=Ask(),
        names=name,
        made_at=at,
        send_by=at,
        plan=plan,
        **made,
    )
    after = to_record(replace(operation, last_sent_at=at))
    return Move(after=after, event=Event(name=event, record=after.id, at=at))


@pytest.mark.req("S3-10")
def test_a_write_since_the_preview_to_the_same_target_is_seen_and_no_other() -> None:
    seen = Touched()
    seen.stored([sent("A/1", AT), sent("B", AT, event=Happened.MADE)])
    (stale,) = seen.since(plan_of("A/1", made_at=AT), 0)
    assert (stale.step, stale.field) == (1, "order/A/1")
    assert stale.now == "stale: op-A/1 has written to it"
    assert seen.since(plan_of("A/1", made_at=AT + 1), 0) == ()
    assert seen.since(plan_of("B", made_at=0.0), 0) == ()
    assert seen.since(plan_of("C", made_at=0.0), 0) == ()


def test_what_a_plan_writes_itself_makes_it_not_stale() -> None:
    seen = Touched()
    seen.stored([sent("A", AT, plan="plan-1")])
    assert seen.since(plan_of("A", made_at=0.0), 0) == ()
    assert len(seen.since(plan_of("A", made_at=0.0, id="plan-2"), 0)) == 1


def test_the_oldest_are_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(touched, "TOUCHED_MAX", 2)
    seen = Touched()
    for order in ("A", "B", "A", "C"):
        seen.stored([sent(order, AT)])
    found = {order: seen.since(plan_of(order, made_at=0.0), 0) for order in "ABC"}
    assert [bool(found[order]) for order in "ABC"] == [True, False, True]
