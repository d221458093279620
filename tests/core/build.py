"""Small builders that the tests of core share: a contract, an operation in any state, a scope."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from landed.core.absorb import Looked, Question, Replied
from landed.core.arrival import Arrival
from landed.core.changes import Kind, Stored, apply
from landed.core.contract import Contract, Effect
from landed.core.key import Ask
from landed.core.next import what_next
from landed.core.operation import Operation, State
from landed.core.operation_record import from_record
from landed.core.outcome import LookOutcome, SendOutcome
from landed.core.rules import RULES, Rules
from landed.core.scope import (
    AskPrice,
    Check,
    Command,
    Next,
    Prepare,
    Put,
    Scope,
    Send,
    StopMidway,
    StopWaiting,
    Watch,
)

SENT_AT = 1_000.0
SEND_BY = SENT_AT + 900.0
LOOKED_AT = SENT_AT + 40.0
DIGEST = "sha256:the-contract"
TABLE = "target/default/restaurant/table"

# What a service may promise: the restaurant's contract, and the same cut down.
BARE = Contract(effect=Effect.REVERSIBLE, service="restaurant")
LOOKUP_ONLY = replace(BARE, lookup=True)
CLOSE_ONLY = replace(BARE, keyed="key", close=True)
RESENDABLE = replace(BARE, keyed="key", compares_payload=True)
FULL = replace(RESENDABLE, lookup=True, close=True)
READ_BACK = replace(BARE, read_back=True, settlement_lag_s=10.0)

_SENT_ONE = {"tries": 1, "first_sent_at": SENT_AT, "last_sent_at": SENT_AT}
_SENT_TWICE = {"tries": 2, "first_sent_at": SENT_AT, "last_sent_at": SENT_AT + 30.0}

# The fields that an operation in each state has at least.
_FIELDS: Mapping[State, Mapping[str, Any]] = {
    State.RECORDED: {},
    State.SENT: _SENT_ONE,
    State.RESENT: _SENT_TWICE,
    State.ACCEPTED: {**_SENT_ONE, "acknowledged_at": SENT_AT + 1.0},
    State.UNKNOWN: _SENT_ONE,
    State.ASSUMED: _SENT_ONE,
    State.UNDECIDED: _SENT_ONE,
    State.CONFIRMED: {**_SENT_ONE, "settled_at": SENT_AT + 1.0},
    State.FAILED: {**_SENT_ONE, "settled_at": SENT_AT + 1.0},
    State.WITHDRAWN: {"settled_at": SENT_AT + 1.0},
}


def operation(state: State = State.RECORDED, **fields: Any) -> Operation:
    """An operation as it may stand in `state`, stored under epoch 1, holding the table."""
    send_by = fields.get("send_by", SEND_BY)
    made: dict[str, Any] = {
        "id": "op-a1",
        "tenant": "default",
        "session": "s1",
        "turn": "T1",
        "tool": "reserve_table",
        "arguments": {"day": "Fri", "covers": 4},
        "ask": Ask(session="s1", input="in-1", turn="T1", call_id="c1", send_by=send_by),
        "key": "op-a1",
        "contract": DIGEST,
        "identity": "sha256:the-identity",
        "names": (TABLE,),
        "made_at": SENT_AT,
        "send_by": send_by,
        "version": 3,
        "epoch": 1,
        "worker": "w1",
    }
    return Operation(state=state, **{**made, **_FIELDS[state], **fields})


def replied(outcome: SendOutcome, *, attempt: int = 1, at: float = SENT_AT + 2.0) -> Replied:
    """What send number `attempt` of the operation came back with."""
    return Replied(operation="op-a1", attempt=attempt, outcome=outcome, at=at)


def looked(
    outcome: LookOutcome,
    *,
    question: Question = Question.LOOKUP,
    attempt: int = 1,
    asked_at: float = LOOKED_AT,
    late_s: float = 0.5,
) -> Looked:
    """What a question put at `asked_at` came back with, `late_s` seconds later."""
    return Looked(
        operation="op-a1",
        question=question,
        attempt=attempt,
        outcome=outcome,
        asked_at=asked_at,
        at=asked_at + late_s,
    )


def scope(
    *operations: Operation,
    contract: Contract = FULL,
    arrivals: tuple[Arrival, ...] = (),
    **fields: Any,
) -> Scope:
    """One lap's view of these operations, all made under `contract`."""
    return Scope(
        operations={each.id: each for each in operations},
        contracts={DIGEST: contract},
        arrivals=arrivals,
        **fields,
    )


def lap(
    *operations: Operation,
    contract: Contract = FULL,
    arrivals: tuple[Arrival, ...] = (),
    now: float = SENT_AT,
    rules: Rules = RULES,
    **fields: Any,
) -> Next:
    """What one lap decides about these operations at `now`."""
    view = scope(*operations, contract=contract, arrivals=arrivals, **fields)
    return what_next(view, rules, now)


def events(decided: Next) -> list[str]:
    """The events of a unit, each with the operation it happened to: `op-a1 sent`."""
    return [f"{move.event.record} {move.event.name}" for move in decided.changes.moves]


def commands(decided: Next) -> list[str]:
    """What leaves after the commit: `send op-a1 2`, `lookup op-a1`, `watch plan-T1 0`."""
    return [_SAID[type(each)](each) for each in decided.commands]


_SAID: Mapping[type[Command], Callable[[Any], str]] = {
    Prepare: lambda c: f"prepare {c.operation.id}",
    Send: lambda c: f"send {c.operation.id} {c.operation.tries}",
    Put: lambda c: f"{c.question} {c.operation.id}",
    StopWaiting: lambda c: f"stop {c.operation.id}",
    StopMidway: lambda c: f"hurry {c.operation.id}",
    Watch: lambda c: f"watch {c.plan.id} {c.index}",
    AskPrice: lambda c: f"price {c.release}",
    Check: lambda c: f"check {c.subject} {c.index}",
}


def stored(decided: Next, before: Stored | None = None) -> tuple[Stored, dict[str, Operation]]:
    """What a store holds after the unit, and the moved operations as they are read back."""
    after, records = apply(before or Stored(), decided.changes)
    moved = (record for record in records if record.kind is Kind.OPERATION)
    return after, {record.id: from_record(record) for record in moved}
