"""A rig whose agents are watched, and what the exporters of OpenTelemetry's SDK were handed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanContext

from landed.core.onlooker import Onlooker
from landed.core.tool import Tool
from landed.runtime.parts import assemble, register
from landed.telemetry.otel import OpenTelemetry
from landed.testing.faults import FaultyStore, Points
from landed.testing.sim import World, current_process
from tests.runtime.rig import Rig, Script

T = TypeVar("T")


def tracing(exporter: SpanExporter) -> TracerProvider:
    """A provider that hands each span over as it ends, and is shut down by nobody."""
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider


@dataclass
class Watched(Rig):
    """A rig with telemetry in each of its processes; `options` are those of `OpenTelemetry`."""

    options: dict[str, Any] = field(default_factory=dict[str, Any])
    onlooker: Onlooker | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.exporter = InMemorySpanExporter()
        self.tracing = tracing(self.exporter)
        self.reader = InMemoryMetricReader()
        self.metering = MeterProvider([self.reader], shutdown_on_exit=False)
        self.watching: list[OpenTelemetry] = []

    async def _agent(self, script: Script[T], tools: tuple[Tool, ...], worker: str) -> T:
        process = current_process()
        points = Points(die=process.crash, kill=self.kill_at)
        store = FaultyStore(self.base.open_again(), points=points, alive=process.require_alive)
        rt = assemble(
            self.wrap(store),
            tools=register(tools),
            settings=self.settings,
            clock=process.clock,
            ids=self.world.ids,
            worker=worker,
            lease=self.lease,
            telemetry=self.onlooker or self._telemetry(),
        )
        async with rt:
            return await script(rt)

    def _telemetry(self) -> OpenTelemetry:
        made = OpenTelemetry(
            tracer_provider=self.tracing, meter_provider=self.metering, **self.options
        )
        self.watching.append(made)
        return made

    @property
    def spans(self) -> list[ReadableSpan]:
        """The spans that ended, in that order."""
        assert all(one.flush(10.0) for one in self.watching)
        return list(self.exporter.get_finished_spans())

    def span(self, name: str) -> ReadableSpan:
        """The only span of this name."""
        (found,) = [span for span in self.spans if span.name == name]
        return found

    def points(self, name: str) -> list[tuple[Mapping[str, object], Any]]:
        """The points of a metric: attributes, and its value (of a histogram: the point)."""
        assert all(one.flush(10.0) for one in self.watching)
        read = self.reader.get_metrics_data()
        found = [
            point
            for resource in (read.resource_metrics if read else ())
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == name
            for point in metric.data.data_points
        ]
        return [(dict(p.attributes or {}), getattr(p, "value", p)) for p in found]

    def value(self, name: str, **attributes: str) -> Any:
        """The value of the one point with these attributes, 0 without one."""
        wanted = {f"landed.{key}": value for key, value in attributes.items()}
        values = [v for has, v in self.points(name) if wanted.items() <= has.items()]
        assert len(values) <= 1
        return values[0] if values else 0


def told(span: ReadableSpan) -> Mapping[str, object]:
    """The attributes of a span."""
    return dict(span.attributes or {})


def own(span: ReadableSpan) -> SpanContext:
    """What a span is known by to others."""
    found = span.get_span_context()
    assert found is not None
    return found


def names_of(spans: Sequence[ReadableSpan]) -> list[str]:
    """Their names."""
    return [span.name for span in spans]


def started(world: World, span: ReadableSpan) -> float:
    """When a span began, in seconds since the world did."""
    assert span.start_time is not None
    return round(span.start_time / 1e9 - world.start_at, 3)


def ended(world: World, span: ReadableSpan) -> float:
    """When it ended."""
    assert span.end_time is not None
    return round(span.end_time / 1e9 - world.start_at, 3)
