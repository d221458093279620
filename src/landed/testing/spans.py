"""What was in doubt from when to when in a timeline, and which undo was owed.

It is read from the state that each line carries, and never from what the line says.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from landed.core.operation import State
from landed.core.undo import ReleaseState
from landed.testing.timeline import Line

# Nobody knows: also while it is sent again with its key, and while a person is waited for.
IN_DOUBT = frozenset({State.UNKNOWN, State.RESENT, State.UNDECIDED})
SETTLED = frozenset({ReleaseState.DONE, ReleaseState.VOID, ReleaseState.WAIVED, ReleaseState.KEPT})
CRASH = "crash"


class Open(StrEnum):
    """What a span is of."""

    DOUBT = "doubt"
    OWED = "owed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Lines, by their index, from `first` to `last` in which `what` was in doubt, or owed."""

    first: int
    last: int
    kind: Open
    what: str


def spans(lines: Sequence[Line]) -> list[Span]:
    """Return what was in doubt and what was owed, by where it began; open ends reach the last line.

    `what` is the operation; of one that was owed, the operation that was to be taken back.
    """
    reading = _Reading()
    for index, line in enumerate(lines):
        reading.read(index, line)
    found = [*reading.found, *reading.left(len(lines) - 1)]
    return sorted(found, key=lambda span: (span.first, span.last))


@dataclass(slots=True, eq=False)
class _Reading:
    """What is known on the way: how each operation stood, and what is open since when."""

    found: list[Span] = field(default_factory=list[Span])
    stood: dict[str, str] = field(default_factory=dict[str, str])
    open: dict[tuple[Open, str], int] = field(default_factory=dict[tuple[Open, str], int])

    def read(self, index: int, line: Line) -> None:
        if line.type == CRASH:
            self._crash(index)
        if not line.state:
            return
        if line.subject:
            self._set(Open.OWED, line.subject, index, line.state not in SETTLED)
            return
        self.stood[line.operation] = line.state
        self._set(Open.DOUBT, line.operation, index, line.state in IN_DOUBT)

    def left(self, last: int) -> Iterator[Span]:
        for (kind, what), first in self.open.items():
            yield Span(first=first, last=last, kind=kind, what=what)

    def _crash(self, index: int) -> None:
        """What was out when its process died is in doubt from then on, whoever finds it when."""
        for operation, state in self.stood.items():
            if state == State.SENT:
                self._set(Open.DOUBT, operation, index, True)

    def _set(self, kind: Open, what: str, index: int, is_open: bool) -> None:
        if is_open:
            self.open.setdefault((kind, what), index)
        elif (first := self.open.pop((kind, what), None)) is not None:
            self.found.append(Span(first=first, last=index, kind=kind, what=what))
