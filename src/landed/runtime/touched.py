"""Remembers what was written to, so that a plan is not carried out over a write it never saw.

A service's own fingerprint is what holds; this is the early word, which costs no request. It knows
of the writes of this process and not of those before its start.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from landed.core.changes import Kind, Move
from landed.core.operation import Happened
from landed.core.operation_record import from_record
from landed.core.plan import Plan
from landed.core.preview import Changed

TOUCHED_MAX = 10_000
"""Targets of which the last write is remembered; the oldest are forgotten first."""

_WRITES = frozenset[str]({Happened.SENT, Happened.RESENT})
_TARGET = "target/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """One write: when it left (UTC seconds), the operation it is of, and that one's plan."""

    at: float
    operation: str
    plan: str


@dataclass(slots=True, eq=False)
class Touched:
    """The last write to each target."""

    writes: dict[str, Write] = field(default_factory=dict[str, Write])

    def stored(self, moves: Sequence[Move]) -> None:
        """Take note of the sends among what was just stored."""
        for move in moves:
            if move.after.kind is not Kind.OPERATION or move.event.name not in _WRITES:
                continue
            sent = from_record(move.after)
            write = Write(at=sent.last_sent_at, operation=sent.id, plan=sent.plan)
            for name in sent.names:
                if name.startswith(_TARGET):
                    self.writes.pop(name, None)  # Latest last, so that the first is the oldest.
                    self.writes[name] = write
        while len(self.writes) > TOUCHED_MAX:
            del self.writes[next(iter(self.writes))]

    def since(self, plan: Plan, index: int) -> tuple[Changed, ...]:
        """Return which targets of a step others have written to since its plan was previewed."""
        found = [(name, self.writes.get(name)) for name in plan.steps[index].names]
        return tuple(
            Changed(
                step=index + 1,
                field=name.split("/", 3)[-1].replace("%2F", "/"),
                was="as it was previewed",
                now=f"stale: {write.operation} has written to it",
            )
            for name, write in found
            if write is not None and write.at >= plan.made_at and write.plan != plan.id
        )
