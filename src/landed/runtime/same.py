"""Holds an ask to its word: the same call id with another call is refused, and said what moved."""

from collections.abc import Iterator, Mapping, Sequence

from landed.core.canonical import Json
from landed.core.erased import erased_on, is_same
from landed.core.errors import UsedBeforeError
from landed.core.operation import Operation
from landed.core.plan import Plan

SAID_MAX = 60  # characters of a value in the text of an error


def check_same(held: Operation | Plan, wanted: Operation | Plan) -> None:
    """One ask is one call, or one plan: raise `ProposalError` when it comes again as another."""
    before, now = _calls(held), _calls(wanted)
    if _are_same(before, now):
        return
    call_id = held.call_id if isinstance(held, Plan) else held.ask.call_id
    what = "another plan" if isinstance(held, Plan) else f"{held.tool} with other arguments"
    moved = ", ".join(_differing(before, now))
    raise UsedBeforeError(
        f"the call id {call_id!r} was used before, for {what} ({held.id}; {moved}); give a new call"
        " a call id of its own"
    )


def _calls(one: Operation | Plan) -> list[tuple[str, Mapping[str, Json]]]:
    if isinstance(one, Plan):
        return [(step.tool, step.arguments) for step in one.steps]
    return [(one.tool, one.arguments)]


Calling = Sequence[tuple[str, Mapping[str, Json]]]


def _are_same(before: Calling, now: Calling) -> bool:
    return len(before) == len(now) and all(
        tool == other and is_same(old, new)
        for (tool, old), (other, new) in zip(before, now, strict=True)
    )


def _differing(before: Calling, now: Calling) -> Iterator[str]:
    """Yield what is not the same: a number of steps, a tool, a field with both its values."""
    if len(before) != len(now):
        yield f"{len(before)} steps, now {len(now)}"
        return
    for number, ((tool, old), (other, new)) in enumerate(zip(before, now, strict=True), 1):
        where = f"step {number} " if len(now) > 1 else ""
        if tool != other:
            yield f"{where}{tool}, now {other}"
        if day := erased_on(old):
            yield f"{where}with arguments that were erased on {day}"
            continue
        for name in (name for name in {**old, **new} if old.get(name) != new.get(name)):
            yield f"{where}{name} {_said(old.get(name))}, now {_said(new.get(name))}"


def _said(value: Json) -> str:
    return repr(value)[:SAID_MAX]
