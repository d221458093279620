"""The seam for whoever watches: told of what happened and how long it took, and never asked.

An onlooker hears of units that are durable, of calls as they leave and come back, and of the store.
It decides nothing and changes nothing: the runtime does the same with it as without. This base
hears everything and does nothing about it; `landed.telemetry` has the one for OpenTelemetry.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum

from landed.core.absorb import Question
from landed.core.changes import Move
from landed.core.operation import Operation
from landed.core.outcome import LookOutcome, SendOutcome
from landed.core.store import Fact

Wrote = Callable[[int, float], None]
"""Is told of each batch that a store wrote: how many units, and how many seconds it took."""

NO_HEADERS: Mapping[str, str] = {}


class Noticed(StrEnum):
    """What a worker met that no record tells of."""

    RENEWED = "renewed"  # It renewed its lease.
    LEASE_LOST = "lease_lost"  # It was taken for dead, and stops.
    CLAIM_LOST = "claim_lost"  # One record had been taken over by another worker.
    STALE_WRITE = "stale_write"  # Another writer was quicker; the lap is decided again.


class Onlooker:
    """Somebody who watches. Override what you want to hear; each method must return at once.

    All but `wrote` are called on the event loop. What raises is logged once, and the onlooker hears
    nothing more; no operation is ever harmed by it. Times are UTC, seconds since the epoch.
    `reads_every_s` is how often the store is read for `counted`; 0 for never.
    """

    reads_every_s: float = 0.0

    def asked(self, id: str) -> None:
        """Hear that somebody wants this operation or plan, in that caller's own context."""

    def stored(self, moves: Sequence[Move]) -> None:
        """Hear the moves of a unit, once it is durable."""

    def leaves(
        self, operation: Operation, question: Question | None, *, at: float
    ) -> Mapping[str, str]:
        """Hear that a send, or a question, leaves; return headers that are to go with it.

        It is called in the asyncio task that carries the call, and nothing else.
        """
        return NO_HEADERS

    def came_back(
        self,
        operation: Operation,
        question: Question | None,
        outcome: SendOutcome | LookOutcome,
        *,
        at: float,
        bug: str = "",
    ) -> None:
        """Hear what it came back with; `bug` names the error where code of ours or a tool's broke.

        A call that came back in time and one whose answer is late, after it was given up, are both
        heard; a send that never left is heard without having left.
        """

    def noticed(self, what: Noticed) -> None:
        """Hear what a worker met."""

    def wrote(self, units: int, seconds: float) -> None:
        """Hear of a batch that the store wrote; called from any thread."""

    def counted(self, facts: Sequence[Fact], *, at: float) -> None:
        """Hear what the store says about itself, with its census, as it was read at `at`."""

    def end(self) -> None:
        """Hear that the runtime is over."""


NOBODY = Onlooker()
