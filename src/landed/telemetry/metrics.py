"""Counts and measures what is heard; runs on telemetry's own thread, never on the event loop."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from opentelemetry.metrics import Counter, Histogram, Meter

from landed.core import census
from landed.core.absorb import Question
from landed.core.case import CaseEvent, CaseState
from landed.core.changes import Kind, Move
from landed.core.onlooker import Noticed
from landed.core.operation import MOVES, Happened, Operation, State
from landed.core.store import Fact
from landed.telemetry import names
from landed.telemetry.names import Instrument, Metric
from landed.telemetry.remembered import keep

NOTICED: Mapping[Noticed, Metric] = {
    Noticed.RENEWED: names.RENEWALS,
    Noticed.LEASE_LOST: names.LOSSES,
    Noticed.CLAIM_LOST: names.CONFLICTS,
    Noticed.STALE_WRITE: names.CONFLICTS,
}

OPENS_CASE = frozenset({Happened.GAVE_UP.value, CaseEvent.OPENED.value})
CASE_NUMBERS = (f"{Kind.OPERATION}/{State.UNDECIDED}", f"{Kind.CASE}/{CaseState.OPEN}")

# Events that leave an operation where it is, wherever that is: no state is reached by them.
STAYS = frozenset(
    event.value
    for event in Happened
    if all(moves.get(event, state) is state for state, moves in MOVES.items())
    and event is not Happened.MADE
)
DOUBTFUL = frozenset({State.UNKNOWN, State.RESENT})
# Events that only happen to what is in doubt: also where another process saw that begin.
FROM_DOUBT = frozenset(
    event.value
    for event in Happened
    if {state for state, moves in MOVES.items() if event in moves} <= DOUBTFUL
    and event is not Happened.MADE
)
SETTLED = frozenset({State.CONFIRMED, State.FAILED, State.ASSUMED, State.UNDECIDED})

Attributes = Mapping[str, str]


@dataclass(slots=True, eq=False)
class Metrics:
    """The metrics of one runtime, in the instruments of one meter."""

    meter: Meter
    _adds: dict[str, Counter] = field(default_factory=dict[str, Counter])
    _records: dict[str, Histogram] = field(default_factory=dict[str, Histogram])
    _sets: dict[str, Callable[[float, Attributes | None], None]] = field(
        default_factory=dict[str, Callable[[float, Attributes | None], None]]
    )
    _doubts: dict[str, None] = field(default_factory=dict[str, None])
    _seen: dict[str, Attributes] = field(default_factory=dict[str, Attributes])

    def __post_init__(self) -> None:
        for metric in names.METRICS:
            name, unit, says = metric.name, metric.unit, metric.says
            match metric.instrument:
                case Instrument.COUNTER:
                    self._adds[name] = self.meter.create_counter(name, unit, says)
                case Instrument.HISTOGRAM:
                    self._records[name] = self.meter.create_histogram(
                        name, unit, says, explicit_bucket_boundaries_advisory=list(metric.bounds)
                    )
                case Instrument.GAUGE:
                    # One that is set, not observed: a callback cannot be taken back, and would be
                    # ignored for the second runtime of a process.
                    self._sets[name] = self.meter.create_gauge(name, unit, says).set

    def stored(self, moves: Sequence[Move]) -> None:
        """Count the states that operations reached and the cases that opened."""
        for move in moves:
            if move.event.name in OPENS_CASE:
                self._adds[names.CASES.name].add(1)
            if move.after.kind is Kind.OPERATION and move.event.name not in STAYS:
                self._reached(move)

    def noticed(self, what: Noticed) -> None:
        """Count what a worker met."""
        metric = NOTICED[what]
        with_kind = {names.CONFLICT: what.value} if metric.attributes else None
        self._adds[metric.name].add(1, with_kind)

    def called(
        self, operation: Operation, question: Question | None, outcome: str, seconds: float
    ) -> None:
        """Measure one send or question."""
        resent = operation.state is State.RESENT
        call = question.value if question is not None else "resend" if resent else "send"
        attributes = {names.TOOL: operation.tool, names.CALL: call, names.OUTCOME: outcome}
        self._records[names.CALLS.name].record(seconds, attributes)

    def wrote(self, units: int, seconds: float) -> None:
        """Measure one group commit."""
        self._records[names.UNITS.name].record(units)
        self._records[names.COMMITS.name].record(seconds)

    def counted(self, facts: Sequence[Fact], at: float) -> None:
        """Set the gauges to what the store says of itself."""
        numbers = {fact.name: fact.numbers for fact in facts}
        held, waiting = numbers.get(census.OPEN, {}), numbers.get(census.WAITING, {})
        oldest = numbers.get(census.OLDEST_UNKNOWN, {}).get(census.FIRST_SENT_AT, at)
        owed = [count for name, count in held.items() if name.startswith(f"{Kind.RELEASE}/")]
        self._open(held)
        self._sets[names.OLDEST_UNKNOWN.name](max(0.0, at - oldest), None)
        self._sets[names.OPEN_CASES.name](sum(waiting.get(n, 0.0) for n in CASE_NUMBERS), None)
        self._sets[names.OWED_RELEASES.name](sum(owed), None)
        self._sets[names.READ_AT.name](at, None)

    def _open(self, held: Mapping[str, float]) -> None:
        """What was there once and is there no more is zero, not left as it was."""
        for name in held:
            kind, _, state = name.partition("/")
            self._seen[name] = {names.KIND: kind, names.STATE: state}
        for name, attributes in self._seen.items():
            self._sets[names.OPEN.name](held.get(name, 0.0), attributes)

    def _reached(self, move: Move) -> None:
        record = move.after
        attributes = {names.TOOL: str(record.frozen["tool"]), names.STATE: record.state}
        self._adds[names.OPERATIONS.name].add(1, attributes)
        if record.state == State.UNKNOWN:
            keep(self._doubts, record.id, None)
        elif record.state in SETTLED and self._was_in_doubt(move):
            since = float(str(record.changing["first_sent_at"]))
            seconds = max(0.0, move.event.at - since)
            self._records[names.DOUBTS.name].record(seconds, attributes)

    def _was_in_doubt(self, move: Move) -> bool:
        """Whether it was seen in doubt here, or is settled by what only settles a doubt."""
        seen = move.after.id in self._doubts
        self._doubts.pop(move.after.id, None)
        return seen or move.event.name in FROM_DOUBT
