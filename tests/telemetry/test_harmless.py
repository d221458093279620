"""Telemetry does no harm: what raises, blocks or is too slow costs spans, never an operation."""

import logging
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from landed.core.onlooker import NOBODY, Onlooker
from landed.core.value import Confirmed, Value
from landed.runtime.guarding import Guarded, guarded
from landed.runtime.runtime import Runtime
from landed.telemetry import aside, otel
from landed.telemetry.aside import Aside
from landed.testing.sim import World
from tests.runtime.rig import REPLY_LOST, booking, with_day
from tests.telemetry.watched import Watched, tracing

HEARS = sorted(name for name in vars(Onlooker) if callable(getattr(Onlooker, name)))


async def book(rt: Runtime) -> Value:
    """Two calls, of which one is in doubt for a while."""
    await rt.perform("book", with_day("Fri"))
    return await rt.perform("book", with_day("Sat"))


def raising(name: str) -> Onlooker:
    """An onlooker that raises when it is told this."""

    def fail(*_: Any, **__: Any) -> Any:
        raise RuntimeError(f"no {name}")

    onlooker = Onlooker()
    onlooker.reads_every_s = 5.0
    setattr(onlooker, name, fail)
    return onlooker


def complaints(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING]


@pytest.mark.parametrize("name", HEARS)
def test_an_onlooker_that_raises_is_left_out_and_nothing_else_happens(
    rig: Watched, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    rig.onlooker = raising(name)
    rig.far.wire.append(REPLY_LOST)

    assert isinstance(rig.run(book, booking(rig.far)), Confirmed)

    said = complaints(caplog)
    unheard = {"wrote", "noticed"}  # A store in memory has no clock, and nobody was in the way.
    assert len(said) == (0 if name in unheard else 1)
    assert all("telemetry failed and is left out" in each for each in said)


@pytest.mark.parametrize("name", HEARS)
def test_a_guarded_onlooker_is_asked_once_and_passes_on_what_it_hears(name: str) -> None:
    told: list[str] = []

    def fail(*_: Any, **__: Any) -> Any:
        told.append(name)
        raise RuntimeError(name)

    inner = Onlooker()
    setattr(inner, name, fail)
    kept = Guarded(inner)
    given = {"outcome": None, "at": 0.0} if name == "came_back" else {}
    given |= {"at": 0.0} if name in ("leaves", "counted") else {}
    counts = {"asked": 1, "stored": 1, "noticed": 1, "counted": 1, "leaves": 2, "came_back": 2}
    arguments = [None] * {"wrote": 2, **counts}.get(name, 0)

    for _ in range(3):
        getattr(kept, name)(*arguments, **given)
    assert told == [name]


def test_nobody_needs_no_guard() -> None:
    assert guarded(None) is NOBODY
    assert guarded(NOBODY) is NOBODY
    once = guarded(Onlooker())
    assert guarded(once) is once


class Stuck(SpanExporter):
    """An exporter that takes as long as it likes."""

    def __init__(self) -> None:
        self.go_on = threading.Event()
        self.began = threading.Event()
        self.thread: threading.Thread | None = None

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.thread = threading.current_thread()
        self.began.set()
        self.go_on.wait(30.0)
        return SpanExportResult.SUCCESS


@pytest.fixture
def stuck() -> Iterator[Stuck]:
    exporter = Stuck()
    yield exporter
    exporter.go_on.set()


def test_an_exporter_that_blocks_holds_nothing_up(
    rig: Watched, stuck: Stuck, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(otel, "LAST_WORDS_S", 0.01)
    rig.tracing = tracing(stuck)

    assert isinstance(rig.run(book, booking(rig.far)), Confirmed)

    assert stuck.began.wait(10.0)
    assert stuck.thread is not threading.current_thread()


def test_a_span_that_cannot_end_is_the_last_one(
    rig: Watched, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("no end")

    monkeypatch.setattr("opentelemetry.sdk.trace.Span.end", fail)
    assert isinstance(rig.run(book, booking(rig.far)), Confirmed)

    (said,) = complaints(caplog)
    assert said == "telemetry failed and is left out from now on: RuntimeError('no end')"
    assert rig.exporter.get_finished_spans() == ()


def test_what_telemetry_cannot_keep_up_with_is_dropped_and_said_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(aside, "WAITING_MAX", 3)
    slow, began, done = Aside(), threading.Event(), list[int]()
    go_on = threading.Event()

    def wait() -> None:
        began.set()
        go_on.wait(30.0)

    slow.do(wait)
    assert began.wait(10.0)
    for n in range(6):
        slow.do(partial(done.append, n))
    go_on.set()

    assert slow.flush(10.0)
    assert done == [0, 1, 2]
    assert slow.dropped == 3
    assert [each.startswith("telemetry does not keep up") for each in complaints(caplog)] == [True]


def test_after_a_failure_there_is_nothing_to_wait_for(caplog: pytest.LogCaptureFixture) -> None:
    broken, failed = Aside(), threading.Event()

    def fail() -> None:
        failed.set()
        raise RuntimeError("no")

    assert broken.flush(10.0)
    broken.do(fail)
    assert failed.wait(10.0)
    assert broken.flush(10.0)
    broken.do(failed.clear)

    assert broken.failed
    assert failed.is_set()
    assert len(complaints(caplog)) == 1


ALONE = """
import asyncio, sys
import landed

@landed.tool(effect="reversible")
async def touch() -> str:
    return "done"

async def main() -> None:
    async with landed.open("sqlite://:memory:", tools=[touch]) as rt:
        await rt.perform(touch)

asyncio.run(main())
print([name for name in sys.modules if name.startswith(("opentelemetry", "landed.telemetry"))])
"""


def test_without_telemetry_nothing_of_it_is_imported() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", ALONE], capture_output=True, text=True, timeout=50, check=True
    )
    assert ran.stdout == "[]\n"


def test_watching_changes_nothing_of_what_happens() -> None:
    """The same world, with telemetry and without, writes the same journal."""

    def journal(onlooker: Onlooker | None) -> list[str]:
        with World(seed=3) as world:
            rig = Watched(world, onlooker=onlooker)
            rig.far.wire.append(REPLY_LOST)
            rig.run(book, booking(rig.far))
            return rig.events()

    assert journal(None) == journal(NOBODY) == journal(Onlooker())
