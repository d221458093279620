"""Spans and metrics for OpenTelemetry: `landed.open(…, telemetry=OpenTelemetry())`.

Needs `landed[otel]`; nothing else in `landed` imports OpenTelemetry. The providers are the
application's: this speaks to the API, and without an SDK behind it nothing is recorded.
"""

from collections.abc import Mapping, Sequence
from functools import partial

from opentelemetry import metrics, trace

from landed.core.absorb import Question
from landed.core.changes import Move
from landed.core.onlooker import NO_HEADERS, Noticed, Onlooker
from landed.core.operation import Operation
from landed.core.outcome import LookOutcome, SendOutcome
from landed.core.store import Fact
from landed.telemetry.aside import Aside
from landed.telemetry.metrics import Metrics
from landed.telemetry.spans import OUTCOMES, Redact, Spans

LAST_WORDS_S = 1.0  # How long the end of a runtime waits for what is still to be handed over.


class OpenTelemetry(Onlooker):
    """Makes spans and metrics of what it hears; one for each runtime.

    `tracer_provider` and `meter_provider` are the global ones unless given. No arguments are in the
    spans, unless `arguments` returns what may be seen of them: it is handed the tool's name and the
    arguments. `reads_every_s` is how often the store is read for the gauges, in seconds.

    Whatever may take long happens on a thread of its own. The times are those of the runtime's
    clock. When anything raises, it is logged once and telemetry ends; the operations do not notice.
    """

    def __init__(
        self,
        *,
        tracer_provider: trace.TracerProvider | None = None,
        meter_provider: metrics.MeterProvider | None = None,
        arguments: Redact | None = None,
        reads_every_s: float = 15.0,
    ) -> None:
        self.reads_every_s = reads_every_s
        self._aside = Aside()
        tracer = trace.get_tracer("landed", tracer_provider=tracer_provider)
        self._spans = Spans(tracer=tracer, aside=self._aside, arguments=arguments)
        self._metrics = Metrics(meter=metrics.get_meter("landed", meter_provider=meter_provider))
        self._left_at: dict[tuple[str, Question | None, int], float] = {}

    def asked(self, id: str) -> None:
        """Remember in which span."""
        self._spans.asked(id)

    def stored(self, moves: Sequence[Move]) -> None:
        """Count what it came to."""
        self._aside.do(partial(self._metrics.stored, moves))

    def leaves(
        self, operation: Operation, question: Question | None, *, at: float
    ) -> Mapping[str, str]:
        """Begin a span and return its `traceparent`."""
        if self._aside.failed:
            return NO_HEADERS
        self._left_at[operation.id, question, operation.tries] = at
        return self._spans.leaves(operation, question, at=at)

    def came_back(
        self,
        operation: Operation,
        question: Question | None,
        outcome: SendOutcome | LookOutcome,
        *,
        at: float,
        bug: str = "",
    ) -> None:
        """End the span, and measure how long it took."""
        left_at = self._left_at.pop((operation.id, question, operation.tries), None)
        if left_at is None:
            return  # It never left, or was given up before.
        self._spans.came_back(operation, question, outcome, at=at, bug=bug)
        kind, seconds = OUTCOMES[type(outcome)], max(0.0, at - left_at)
        self._aside.do(partial(self._metrics.called, operation, question, kind, seconds))

    def noticed(self, what: Noticed) -> None:
        """Count it."""
        self._aside.do(partial(self._metrics.noticed, what))

    def wrote(self, units: int, seconds: float) -> None:
        """Measure it."""
        self._aside.do(partial(self._metrics.wrote, units, seconds))

    def counted(self, facts: Sequence[Fact], *, at: float) -> None:
        """Set the gauges."""
        self._aside.do(partial(self._metrics.counted, facts, at))

    def end(self) -> None:
        """Wait a moment for what is still to be handed over."""
        self.flush(LAST_WORDS_S)

    def flush(self, seconds: float) -> bool:
        """Wait until all that was heard is handed over, at most so many seconds; blocks.

        Returns whether it is. What an SDK does with it afterwards is its own matter.
        """
        return self._aside.flush(seconds)
