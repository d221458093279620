"""The log beside a harness: resumed, left at any point, cut at any byte, compacted, shown."""

import asyncio
import contextlib
import io
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from landed.agent.compaction import maybe_compact
from landed.agent.harness import Harness
from landed.agent.log_lines import SUMMARY, LogError
from landed.agent.messages import ABORTED, user_message
from landed.agent.render import FinalTextRenderer, JsonRenderer, Renderer, show
from landed.agent.session_log import SessionLog, persist_to, repair_tail
from landed.agent.validate import transcript_problems
from landed.testing.scripted import ScriptedReplies, asks, call, says
from landed.testing.shapes import shape
from landed.testing.ticks import driven, ticks
from tests.agent.cutting import Places, wherever_it_matters
from tests.agent.simulated import simulated
from tests.agent.tools import reading, tool

READS = [call("c1", "read", path="a.py"), call("c2", "slow"), call("c3", "read", path="b.py")]
WHOLE = "U A[c1,c2,c3] R(c1) R(c2) R(c3) A"


@pytest.fixture(autouse=True)
def _disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the disk out: what is durable when is another file's matter."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


def a_harness(log: SessionLog, *replies: Any, **options: Any) -> tuple[Harness, ScriptedReplies]:
    """Return a harness that resumes what the log holds and writes down what comes."""

    async def slowly(arguments: Any) -> str:
        await ticks(3)
        return "slow"

    model = ScriptedReplies(*replies)
    tools = (reading(), tool("slow", slowly))
    harness = Harness(model=model, tools=tools, messages=log.replay(), **options)
    harness.subscribe(persist_to(log))
    return harness, model


def new_log(folder: Path, name: object = "talk") -> SessionLog:
    return SessionLog(folder / f"{name}.jsonl")


@pytest.mark.req("S2-73")
def test_a_conversation_is_resumed_from_its_lines(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    first, _ = a_harness(log, asks(*READS), says("Read."))
    simulated(driven(first.prompt("Read them.")))
    second, model = a_harness(SessionLog(log.path), says("Again."))
    assert second.messages == first.messages
    simulated(driven(second.prompt("And?")))
    assert model.calls[0].messages == [*first.messages, user_message("And?")]
    assert SessionLog(log.path).replay() == list(second.messages)
    assert shape(second.messages) == f"{WHOLE} U A"


@pytest.mark.req("S2-74")
def test_a_run_that_is_left_after_any_event_is_in_the_log(tmp_path: Path) -> None:
    async def left_after(events: int) -> bool:
        log = new_log(tmp_path, events)
        harness, _ = a_harness(log, asks(*READS), says("Read."))
        run = harness.prompt("Read them.")
        for taken in range(events):
            try:
                event = await anext(run)
            except StopAsyncIteration:
                assert shape(log.replay()) == WHOLE
                return taken < events
            # And it is there before the consumer hears of it.
            assert log.replay() == list(harness.messages), event
        await run.aclose()
        assert log.replay() == list(harness.messages)
        return False

    assert [simulated(left_after(n)) for n in range(25)].index(True) > 15


@pytest.mark.req("S2-74")
def test_a_run_that_is_cancelled_at_any_turn_of_the_loop_is_in_the_log(tmp_path: Path) -> None:
    async def cancelled_after(turns: int) -> str:
        log = new_log(tmp_path, turns)
        harness, _ = a_harness(log, asks(*READS), says("Read."))
        running = asyncio.ensure_future(driven(harness.prompt("Read them.")))
        await ticks(turns)
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
        assert log.replay() == list(harness.messages)
        return shape(log.replay())

    shapes = [simulated(cancelled_after(turns)) for turns in range(30)]
    assert shapes[-1] == WHOLE
    assert "U A[c1,c2,c3] R(c1)" in shapes  # Killed in the middle of the slow one.


def test_what_cannot_be_saved_ends_the_run(tmp_path: Path) -> None:
    log = new_log(tmp_path)

    def tear(arguments: Any) -> str:
        with log.path.open("a") as file:
            file.write("{")
        return "torn"

    harness = Harness(model=ScriptedReplies(asks(call("c1", "tear"))), tools=(tool("tear", tear),))
    harness.subscribe(persist_to(log))
    with pytest.raises(LogError, match="line 3"):
        simulated(driven(harness.prompt("Tear it.")))
    assert not harness.is_running
    repair_tail(log.path)
    assert shape(log.replay()) == "U A[c1]"
    assert shape(harness.messages) == "U A[c1] R(c1)"


@pytest.mark.req("S2-76")
@wherever_it_matters
def test_after_a_power_cut_at_any_byte_the_next_prompt_is_answered(
    tmp_path: Path, places: Places
) -> None:
    log = new_log(tmp_path)
    harness, _ = a_harness(log, asks(*READS), says("Read."))
    simulated(driven(harness.prompt("Read them.")))
    whole, seen = log.path.read_bytes(), set()
    for size in places(whole):
        log.path.write_bytes(whole[:size])
        done = repair_tail(log.path)
        if done and done.kept_in:
            done.kept_in.unlink()
        resumed, model = a_harness(log, says("Again."))
        before = resumed.messages
        assert before == harness.messages[: len(before)]
        simulated(driven(resumed.prompt("And?")))
        assert not transcript_problems(model.calls[0].messages, "request")
        assert not transcript_problems(resumed.messages, "record")
        assert log.replay() == list(resumed.messages) == [*before, *resumed.messages[-2:]]
        seen.add(shape(before))
    words = WHOLE.split()
    # The last of them too: of its line only the end was missing.
    assert seen == {" ".join(words[:n]) for n in range(len(words) + 1)}


# Compaction in a conversation that goes on.


def long_talk(log: SessionLog) -> Harness:
    harness, _ = a_harness(log, *(part for _ in range(6) for part in (asks(*READS), says("Read."))))
    for number in range(6):
        simulated(driven(harness.prompt(f"Read them, {number}. {'x' * 200}")))
    return harness


@pytest.mark.req("S2-79", "S2-80", "S2-82")
def test_a_conversation_goes_on_after_room_was_made(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    earlier = long_talk(log).messages
    harness, model = a_harness(log, says("They read files."), says("Again."))
    made = maybe_compact(harness, log, model, window_tokens=500, reserve_tokens=100)
    assert simulated(made)
    assert log.replay() == list(harness.messages)
    summary, *kept = harness.messages
    assert summary == user_message(f"{SUMMARY}They read files.")
    assert kept == list(earlier[-len(kept) :])
    assert shape(kept) in (WHOLE, f"{WHOLE} {WHOLE}")
    # The request for the summary was in no transcript, and offered no tools.
    assert model.calls[0].tools == []
    simulated(driven(harness.prompt("And?")))
    assert model.calls[1].messages == [summary, *kept, user_message("And?")]
    assert not transcript_problems(model.calls[1].messages, "request")
    assert SessionLog(log.path).replay() == list(harness.messages)


@pytest.mark.req("S2-82")
def test_room_is_not_made_while_a_run_is_under_way(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    long_talk(log)
    harness, model = a_harness(log, says("Again."))

    async def meanwhile() -> None:
        run = harness.prompt("And?")
        with pytest.raises(RuntimeError, match="a run is under way"):
            await maybe_compact(harness, log, model, window_tokens=500, reserve_tokens=100)
        await driven(run)

    simulated(meanwhile())
    assert len(model.calls) == 1
    assert log.replay() == list(harness.messages)


@pytest.mark.req("S2-81")
def test_a_summary_that_fails_costs_the_user_nothing(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    earlier = long_talk(log).messages
    harness, model = a_harness(log, ConnectionError("overloaded"), says("Again."))
    made = maybe_compact(harness, log, model, window_tokens=500, reserve_tokens=100)
    assert not simulated(made)
    simulated(driven(harness.prompt("And?")))
    assert harness.messages == (*earlier, user_message("And?"), says("Again."))
    assert log.replay() == list(harness.messages)


# Shown.


@pytest.mark.req("S2-88", "S2-96")
@pytest.mark.parametrize("make", [FinalTextRenderer, JsonRenderer])
def test_a_run_that_was_stopped_gives_a_script_another_code(
    tmp_path: Path, make: Callable[[io.StringIO], Renderer]
) -> None:
    log, out = new_log(tmp_path), io.StringIO()
    harness, _ = a_harness(log, asks(*READS), says("Read."))

    def stop(event: Any) -> None:
        if event["type"] == "tool_execution_start":
            harness.cancel()

    harness.subscribe(stop)
    with pytest.raises(SystemExit) as ended:
        sys.exit(0 if simulated(show(harness.prompt("Read."), make(out))) else 1)
    assert ended.value.code == 1
    assert ABORTED in out.getvalue()
    # What was saved says so too, and does not call it an error.
    assert '"stop_reason":"aborted"' in log.path.read_text()
    assert '"stop_reason":"error"' not in log.path.read_text()
