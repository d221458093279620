"""An operation: what it is, how it stands and why, what it leads to, and what happened around."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from starlette.responses import Response

from landed.console.drawn import Drawn, drawn
from landed.console.promises import promises
from landed.console.visit import Page, Visit
from landed.console.where import HELPERS
from landed.core.canonical import Json
from landed.core.changes import Record
from landed.core.operation import Operation, State
from landed.core.plan import plan_from
from landed.core.preview import Preview
from landed.core.undo import made_by
from landed.runtime.auditing import Auditor, known_by
from landed.runtime.nearby import Near, near
from landed.runtime.tracing import Trace
from landed.server.asking import plain
from landed.server.problems import ProblemError
from landed.testing.timeline import retold

PICTURE_MAX = 60  # records whose events are drawn
KNOWN_MAX = 20  # names that it is known by at its service

# What may be an id among the values of an answer: letters with digits, or many digits.
_ID = re.compile(r"(?=.*[0-9])(?=.*[A-Za-z])[^\s]{2,200}|[0-9]{6,200}")

TONES: Mapping[State, str] = {
    State.CONFIRMED: "good",
    State.FAILED: "bad",
    State.UNKNOWN: "doubt",
    State.RESENT: "doubt",
    State.UNDECIDED: "doubt",
    State.ASSUMED: "warn",
    State.ACCEPTED: "warn",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """An operation as its page shows it.

    `figures` is the preview that was agreed to, where there was one; `known_by` what to look for
    at its service and in logs; `is_whole` whether all that speaks of it was looked at.
    """

    operation: Operation
    tone: str
    trace: Trace
    figures: Preview | None
    made: Json
    known_by: tuple[str, ...]
    promises: tuple[str, ...]
    timeline: Drawn
    from_position: int
    is_whole: bool


async def operation(visit: Visit) -> Response:
    """Show an operation that is theirs, or that they administer."""
    held = await visit.here.operation(plain(visit.named("id")))
    found = await visit.rt.driver.store.load(held.id)
    if not found:
        raise ProblemError("absent")
    shown = await _shown(visit, held, found[0])
    return visit.show("operation.html", page="", shown=shown, **HELPERS)


async def _shown(visit: Visit, held: Operation, record: Record) -> Shown:
    reader = visit.rt.driver.reader
    around = await near(reader, record)
    auditor = Auditor(reader=reader, tenant=visit.who.tenant)
    language = visit.console.language
    trace = await auditor.trace_among(
        record, around.records, now=visit.console.now, language=language
    )
    contract = reader.contracts[held.contract]
    part = _part(held, trace, around.records)
    told = await retold(visit.rt.driver.store, part[:PICTURE_MAX])
    return Shown(
        operation=held,
        tone=TONES.get(held.state, ""),
        trace=trace,
        figures=_figures(held, around),
        made=made_by(held, contract),
        known_by=tuple(sorted(filter(_ID.fullmatch, known_by(record) - {held.key})))[:KNOWN_MAX],
        promises=tuple(promises(contract, visit.say)),
        timeline=drawn(told.lines, title=held.id, say=visit.say),
        from_position=min(each.made for each in part) - 1,
        is_whole=around.whole and len(part) <= PICTURE_MAX,
    )


def _part(held: Operation, trace: Trace, records: Iterable[Record]) -> list[Record]:
    """Return the records of a session that belong to an operation: of its turn, or linked to it."""
    linked = {held.id, *(link.id for link in (*trace.up, *trace.down))}
    return [
        each
        for each in records
        if each.id in linked or (held.turn and each.frozen.get("turn") == held.turn)
    ]


def _figures(held: Operation, around: Near) -> Preview | None:
    """Return what its step was previewed as, where it is one of a plan that was."""
    for record in around.records:
        if record.id == held.plan:
            plan = plan_from(record)
            pairs = zip(plan.places, plan.previews, strict=False)
            return next((seen for place, seen in pairs if place.record == held.id), None)
    return None


PAGES = (Page(path="/operations/{id}", answer=operation),)
