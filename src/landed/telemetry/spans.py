"""A span for each call that left: a send of an operation, or a question about one.

An operation has none of its own. It may be settled days later by another process, and a span that
waits for that is lost with the process that began it; what all of its spans share is
`landed.operation`. They are children of the span in which somebody asked for it, as long as this
process remembers that one; after a crash they begin a trace of their own. Nothing of a trace is
written into the records: those are kept for years, and traces for days.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from opentelemetry import context as current
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from landed.core.absorb import Question
from landed.core.canonical import Json
from landed.core.operation import Operation
from landed.core.outcome import (
    Absent,
    Acknowledged,
    AnswerLost,
    Found,
    LookOutcome,
    NoAnswer,
    NotSent,
    NotYet,
    Refused,
    SendOutcome,
)
from landed.telemetry import names
from landed.telemetry.aside import Aside
from landed.telemetry.remembered import keep

ARGUMENTS_MAX = 4096
"""Characters of the arguments in one span."""

OUTCOMES: Mapping[type, str] = {
    Acknowledged: "acknowledged",
    Refused: "refused",
    NotSent: "not_sent",
    AnswerLost: "answer_lost",
    Found: "found",
    Absent: "absent",
    NotYet: "not_yet",
    NoAnswer: "no_answer",
}

Redact = Callable[[str, Mapping[str, Json]], Mapping[str, Json]]
"""Is handed a tool's name and a call's arguments, and returns what of them may be seen."""

# The trace alone: what else travels in baggage is the application's, and no matter of a service's.
_PROPAGATOR = TraceContextTextMapPropagator()

_Call = tuple[str, Question | None, int]


@dataclass(slots=True, eq=False)
class Spans:
    """The spans of one runtime. `arguments` is None where no arguments are to be seen."""

    tracer: trace.Tracer
    aside: Aside
    arguments: Redact | None
    _askers: dict[str, trace.SpanContext] = field(default_factory=dict[str, trace.SpanContext])
    _sends: dict[str, trace.SpanContext] = field(default_factory=dict[str, trace.SpanContext])
    _out: dict[_Call, trace.Span] = field(default_factory=dict[_Call, trace.Span])

    def asked(self, id: str) -> None:
        """Remember the span in which somebody asks for an operation or a plan."""
        asker = trace.get_current_span().get_span_context()
        if asker.is_valid:
            keep(self._askers, id, asker)

    def leaves(
        self, operation: Operation, question: Question | None, *, at: float
    ) -> Mapping[str, str]:
        """Begin a span, make it the current one of this asyncio task, and return its headers."""
        name = names.EXECUTE_TOOL if question is None else question.value
        about = self._sends.get(operation.id)
        span = self.tracer.start_span(
            f"{name} {operation.tool}",
            context=self._parent(operation),
            attributes=self._attributes(operation, question),
            links=[trace.Link(about)] if about is not None else None,
            start_time=_nanoseconds(at),
        )
        self._out[operation.id, question, operation.tries] = span
        if question is None:
            keep(self._sends, operation.id, span.get_span_context())
        inside = trace.set_span_in_context(span, Context())
        # Not taken back: the task that it is set in carries this one call, and ends with it.
        current.attach(trace.set_span_in_context(span))
        headers: dict[str, str] = {}
        _PROPAGATOR.inject(headers, inside)
        return headers

    def came_back(
        self,
        operation: Operation,
        question: Question | None,
        outcome: SendOutcome | LookOutcome,
        *,
        at: float,
        bug: str,
    ) -> None:
        """End the span; a late answer, whose span was ended without it, changes nothing."""
        span = self._out.pop((operation.id, question, operation.tries), None)
        if span is not None:
            self.aside.do(partial(_end, span, OUTCOMES[type(outcome)], at, bug))

    def _parent(self, operation: Operation) -> Context:
        """Return who asked for it; else its first send here; else nothing, and no span by chance.

        The context this runs in is that of whoever happened to wake the loop.
        """
        asker = self._askers.get(operation.id) or self._askers.get(operation.plan)
        parent = asker or self._sends.get(operation.id)
        if parent is None:
            return Context()
        return trace.set_span_in_context(trace.NonRecordingSpan(parent), Context())

    def _attributes(self, operation: Operation, question: Question | None) -> dict[str, str | int]:
        kept: dict[str, str | int] = {
            names.OPERATION_NAME: names.EXECUTE_TOOL if question is None else "",
            names.TOOL: operation.tool,
            names.CALL_ID: operation.ask.call_id,
            names.CONVERSATION: operation.session,
            names.OPERATION: operation.id,
            names.TENANT: operation.tenant,
            names.ATTEMPT: operation.tries,
            names.PLAN: operation.plan,
            names.UNDOES: operation.undoes,
            names.RETRIES: operation.retries,
            names.WORKER: operation.worker,
            names.EPOCH: operation.epoch,
        }
        if self.arguments is not None and question is None:
            seen = self.arguments(operation.tool, operation.arguments)
            kept[names.ARGUMENTS] = json.dumps(dict(seen), default=str)[:ARGUMENTS_MAX]
        return {name: value for name, value in kept.items() if value != ""}


def _end(span: trace.Span, outcome: str, at: float, bug: str) -> None:
    """Doubt and refusals are no errors: they are what happened, and are seen to. A bug is one."""
    span.set_attribute(names.OUTCOME, outcome)
    if bug:
        span.set_attribute(names.ERROR, bug)
        span.set_status(trace.Status(trace.StatusCode.ERROR, "a call broke"))
    span.end(end_time=_nanoseconds(at))


def _nanoseconds(at: float) -> int:
    return round(at * 1e9)
