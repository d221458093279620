"""Measures what telemetry costs: one durable perform with and without it, as a ratio of CPU.

    python -m bench.telemetry

Spans go to an exporter that throws them away, metrics to a reader that is never read, so that what
is measured is ours and the SDK's own. Both sides run in turns, and the medians are compared.
"""

import asyncio
import statistics
import tempfile
import time
from collections.abc import Sequence

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

import landed
from landed.core.onlooker import Onlooker
from landed.telemetry.otel import OpenTelemetry

PERFORMS = {1: 300, 64: 1920}
ROUNDS = 7


class Nowhere(SpanExporter):
    """Throws away what it is handed."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Say that all went well."""
        return SpanExportResult.SUCCESS


@landed.tool(effect="reversible")
async def nothing(n: int) -> dict[str, int]:
    """Do nothing, and say so."""
    return {"n": n}


async def performs(path: str, *, at_once: int, telemetry: Onlooker | None) -> tuple[float, float]:
    """Perform a no-op tool many times; return the wall time and the CPU it took, in seconds."""
    count = PERFORMS[at_once]
    url = f"sqlite:///{path}"
    async with landed.open(url, tools=[nothing], telemetry=telemetry) as rt:

        async def lane(number: int, calls: int) -> None:
            ask = landed.Ask(session=f"s{number}")
            for n in range(calls):
                await rt.perform(nothing, {"n": n}, ask=ask)

        await lane(0, 20)
        wall, cpu = time.perf_counter(), time.process_time()
        await asyncio.gather(*(lane(number, count // at_once) for number in range(at_once)))
        if isinstance(telemetry, OpenTelemetry):
            telemetry.flush(30.0)
        return time.perf_counter() - wall, time.process_time() - cpu


def watched(metering: MeterProvider, tracing: TracerProvider) -> OpenTelemetry:
    """Return telemetry as an application would have it."""
    return OpenTelemetry(tracer_provider=tracing, meter_provider=metering)


async def compare(directory: str, *, at_once: int) -> None:
    """Print the ratio of with to without, and what it adds to one perform."""
    tracing, metering = TracerProvider(), MeterProvider([InMemoryMetricReader()])
    tracing.add_span_processor(BatchSpanProcessor(Nowhere()))
    sides: dict[str, list[tuple[float, float]]] = {"without": [], "with": []}
    for n in range(ROUNDS):
        for side, taken in sides.items():
            telemetry = watched(metering, tracing) if side == "with" else None
            path = f"{directory}/{side}-{at_once}-{n}.db"
            taken.append(await performs(path, at_once=at_once, telemetry=telemetry))
    wall, cpu = (
        statistics.median(w[part] / o[part] for w, o in zip(*_pair(sides), strict=True))
        for part in (0, 1)
    )
    added = [w[1] - o[1] for w, o in zip(*_pair(sides), strict=True)]
    print(
        f"telemetry, {at_once:2} at once: {wall:.2f} of the time without it, {cpu:.2f} of the CPU;"
        f" {statistics.median(added) / PERFORMS[at_once] * 1e6:.0f} µs of CPU for one perform"
    )


def _pair(
    sides: dict[str, list[tuple[float, float]]],
) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
    return sides["with"], sides["without"]


def main() -> None:
    """Run it, in a directory that is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="landed-bench-") as directory:
        for at_once in PERFORMS:
            asyncio.run(compare(directory, at_once=at_once))


if __name__ == "__main__":
    main()
