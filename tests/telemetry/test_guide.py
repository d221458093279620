"""The guide's tables are the code's own, and what is recorded is in them."""

import asyncio
import re
from pathlib import Path

from landed.runtime.runtime import Runtime
from landed.telemetry.names import METRICS, SPAN_ATTRIBUTES, SPANS, Instrument
from landed.telemetry.spans import OUTCOMES
from tests.runtime.rig import REPLY_LOST, booking, with_day
from tests.telemetry.watched import Watched, told

GUIDE = (Path(__file__).parents[2] / "docs/guides/telemetry.md").read_text("utf-8")
ROW = re.compile(r"^\| `([^`]+)` \| (.*) \|$", re.MULTILINE)


def rows(head: str) -> dict[str, str]:
    """The rows of the table with this head: the first cell, and the rest as it is written."""
    return dict(ROW.findall(GUIDE.split(f"| {head} |")[1].split("\n\n")[0]))


def test_the_guide_lists_each_span_and_attribute() -> None:
    assert rows("span | is") == dict(SPANS)
    assert rows("attribute | says") == dict(SPAN_ATTRIBUTES)


def test_the_guide_lists_each_metric_with_its_unit() -> None:
    told_of = {
        metric.name: f"{metric.instrument.value} | `{metric.unit}` | "
        + (" ".join(f"`{name}`" for name in metric.attributes) or "–")
        + f" | {metric.says}"
        for metric in METRICS
    }
    assert rows("metric | kind | unit | attributes | says") == told_of


def test_the_alarms_are_about_metrics_that_there_are() -> None:
    """By the names that Prometheus knows them by: with the unit, where it is not there yet."""
    gauges = {m.name.replace(".", "_"): m.unit for m in METRICS if m.instrument is Instrument.GAUGE}
    names = {
        f"{name.removesuffix('_seconds')}_seconds" if unit == "s" else name
        for name, unit in gauges.items()
    }
    rules = GUIDE.split("```yaml")[1].split("```")[0]
    asked = set(re.findall(r"\blanded_\w+", rules))
    assert asked == {"landed_oldest_unknown_seconds", "landed_store_read_at_seconds"}
    assert asked <= names


def test_the_names_of_the_conventions_are_spelled_as_they_are_there() -> None:
    """Of OpenTelemetry's conventions for generative AI, and of errors; all else is ours."""
    theirs = {name for name in SPAN_ATTRIBUTES if not name.startswith("landed.")}
    assert theirs == {
        "gen_ai.operation.name",
        "gen_ai.tool.name",
        "gen_ai.tool.call.id",
        "gen_ai.tool.call.arguments",
        "gen_ai.conversation.id",
        "error.type",
    }
    assert all(metric.name.startswith("landed.") for metric in METRICS)


def test_the_guide_lists_each_outcome() -> None:
    listed = re.findall(r"`(\w+)`", SPAN_ATTRIBUTES["landed.outcome"])
    assert listed == list(OUTCOMES.values())


def test_what_is_recorded_is_in_the_tables(rig: Watched) -> None:
    rig.options = {"reads_every_s": 5.0, "arguments": lambda tool, arguments: arguments}
    rig.far.wire.append(REPLY_LOST)

    async def script(rt: Runtime) -> None:
        await rt.perform("book", with_day("Fri"))
        await asyncio.sleep(10.0)  # virtual time

    rig.run(script, booking(rig.far))

    kinds = {name.split(" ")[0] for name in SPANS}
    assert {span.name.split(" ")[0] for span in rig.spans} <= kinds
    assert {name for span in rig.spans for name in told(span)} <= set(SPAN_ATTRIBUTES)
    allowed = {metric.name: set(metric.attributes) for metric in METRICS}
    points = {name: rig.points(name) for name in allowed}
    assert all(set(has) <= allowed[name] for name, found in points.items() for has, _ in found)
    assert sum(map(bool, points.values())) > len(METRICS) / 2
