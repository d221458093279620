"""Erasing: what is left of a record when its details go, and who had them go, when and why.

What was wanted, said and made goes. What an audit rests on stays: ids, times, states, who asked and
who agreed, sources of evidence, contracts, prices, names that must never be free again, and the
hash of what a person was shown. Approvals and turns hold nothing else, so they stay whole.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from landed.core.canonical import Json
from landed.core.changes import Body, Kind, Move, Record
from landed.core.erased import ERASED, erased, erased_arguments
from landed.core.event import Event
from landed.core.journal import Entry
from landed.core.plan import plan_from

WHY_MAX = 500
"""Characters of why something was erased."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure:
    """Who had something erased, when (UTC, seconds since the epoch), and why."""

    by: str
    why: str
    at: float


def erasing(record: Record, erasure: Erasure) -> Move | None:
    """Return the move by which the details of a record go, None where it holds none.

    Its state stays as it is. The store appends it like any event, and then lets go of the bodies of
    the earlier ones.
    """
    left = _LEFT.get(record.kind)
    if left is None:
        return None
    frozen, changing = left(record, erasure.at)
    if record.version == 1 and frozen == record.frozen:
        return None
    after = replace(
        record,
        version=record.version + 1,
        frozen={**frozen, ERASED: {"by": erasure.by, "why": erasure.why[:WHY_MAX]}},
        changing=changing,
    )
    return Move(after=after, event=Event(name=ERASED, record=record.id, at=erasure.at))


def erasure_in(entry: Entry) -> Erasure:
    """Return the erasure that an entry tells of; of one that a later one covers, only when."""
    body: Mapping[str, Mapping[str, str]] = json.loads(entry.body or b"{}")
    said = body.get(ERASED, {})
    return Erasure(by=said.get("by", ""), why=said.get("why", ""), at=entry.at)


Left = tuple[dict[str, Json], dict[str, Json]]


def _without(body: Body, names: tuple[str, ...], at: float) -> dict[str, Json]:
    gone = {name: erased(body[name], at=at) for name in names if name in body}
    return {**body, **gone}


def _fields(frozen: tuple[str, ...], changing: tuple[str, ...] = ()) -> Callable[..., Left]:
    def left(record: Record, at: float) -> Left:
        return _without(record.frozen, frozen, at), _without(record.changing, changing, at)

    return left


def _question(record: Record, at: float) -> Left:
    return {**_without(record.frozen, ("text", "claim"), at), "typed": []}, {**record.changing}


def _operation(record: Record, at: float) -> Left:
    frozen = _call(record.frozen, at)
    changing = _without(record.changing, ("result",), at)
    changing.pop("prepared", None)
    if "evidence" in changing:
        every: list[Mapping[str, Json]] = changing["evidence"]  # type: ignore[assignment]
        changing["evidence"] = [_without(each, ("says",), at) for each in every]
    return frozen, changing


def _plan(record: Record, at: float) -> Left:
    plan = plan_from(record)
    steps: list[Mapping[str, Json]] = record.frozen["steps"]  # type: ignore[assignment]
    places: list[list[Json]] = record.changing["places"]  # type: ignore[assignment]
    frozen: dict[str, Json] = {
        **_without(record.frozen, ("intent",), at),
        "steps": [_call(step, at) for step in steps],
        "previews": [],
        "shown_hash": plan.hash,
        "shown_basis": plan.basis,
    }
    changing: dict[str, Json] = {
        **_without(record.changing, ("why",), at),
        "places": [[*place[:3], _made(place[3], at), *place[4:]] for place in places],
        "changed": [],
    }
    return frozen, changing


def _call(body: Body, at: float) -> dict[str, Json]:
    """Return an operation or a step without what was asked of its tool; it holds no name now."""
    return {**body, "arguments": erased_arguments(body["arguments"], at=at), "names": []}


def _made(made: Json, at: float) -> Json:
    return None if made is None else erased(str(made), at=at)


_LEFT: Mapping[Kind, Callable[[Record, float], Left]] = {
    Kind.INPUT: _fields(("text",)),
    Kind.MESSAGE: _fields(("text",)),
    Kind.LINE: _fields(("line",)),
    Kind.OBSERVATION: _fields(("arguments", "result", "why")),
    Kind.RELEASE: _fields((), ("why",)),
    Kind.CASE: _fields(("says",), ("note",)),
    Kind.QUESTION: _question,
    Kind.OPERATION: _operation,
    Kind.PLAN: _plan,
}

ERASABLE = frozenset(_LEFT)
"""The kinds of records that hold details."""
