"""The stop button: a flag first, then a moment, then the task; and the conversation goes on."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from landed.agent.bash import bash_tool
from landed.agent.guard import guard
from landed.agent.harness import Harness
from landed.agent.messages import ABORTED, assistant_message, text_block, text_of, tool_result
from landed.agent.repair import INTERRUPTED
from landed.agent.session_log import SessionLog, persist_to
from landed.agent.signal import StoppedError, unless_cancelled
from landed.agent.stop import stop_run
from landed.agent.tool import AgentTool, run_tool
from landed.agent.validate import transcript_problems
from landed.testing.scripted import (
    ScriptedReplies,
    answers_when_stopped,
    asks,
    call,
    never_answers,
    says,
)
from landed.testing.shapes import PowerCut, shape
from landed.testing.ticks import Background, driven, tick, ticks
from landed.testing.workspace import FakeShell
from tests.agent.simulated import simulated
from tests.agent.tools import deaf, tool

WAIT = asks(call("c1", "wait"))
SLEEP = asks(call("c1", "bash", command="sleep inf"))


def passes(name, arguments) -> None:
    """Let every call through."""


def started(harness: Harness) -> Background:
    return Background(harness.prompt("Go."))


async def stopped(harness: Harness, grace: int | None = None, **given) -> str:
    """Begin a run, stop it while its first tool or its first request is going on."""
    background = started(harness)
    await ticks(5)
    ending = await stop_run(harness, background.running, grace, **given)
    assert background.running.done()
    assert not harness.is_running
    return ending


@pytest.mark.req("S2-46")
def test_yesterdays_stop_does_not_stop_todays_run() -> None:
    async def program() -> None:
        harness = Harness(model=ScriptedReplies(WAIT, says("Here.")), tools=[deaf()])
        assert await stopped(harness, grace=2) == "hard"
        await driven(harness.prompt("Again."))
        assert shape(harness.messages) == "U A[c1] U A"

    simulated(program())


@pytest.mark.req("S2-47", "S2-98")
def test_a_stop_before_the_first_event_is_not_lost() -> None:
    model = ScriptedReplies(says("Deleted 4,000 files. You are welcome."))
    harness = Harness(model=model)
    run = harness.prompt("Tidy up.")
    harness.cancel()

    simulated(driven(run))

    assert (shape(harness.messages), model.calls) == ("U A(aborted)", [])


@pytest.mark.fault("X14")
@pytest.mark.req("S2-48")
def test_a_stop_of_nothing_does_nothing() -> None:
    harness = Harness(model=ScriptedReplies(says("Hello."), says("Hello again.")))
    harness.cancel()
    simulated(driven(harness.prompt("Hello.")))
    harness.cancel()
    harness.cancel()
    simulated(harness.aclose())
    simulated(driven(harness.prompt("Hello?")))

    assert shape(harness.messages) == "U A U A"


@pytest.mark.req("S2-94")
def test_the_record_says_who_stopped_it_and_why() -> None:
    async def program() -> None:
        shell = FakeShell()
        harness = Harness(model=ScriptedReplies(SLEEP), tools=[bash_tool(shell)])
        assert await stopped(harness, grace=9, by="owner", reason="wrong branch") == "clean"
        assert harness.messages[-1] == {
            "role": "assistant",
            "content": [],
            "stop_reason": "aborted",
            "error_message": "Operation aborted by owner: wrong branch",
        }
        hung = Harness(model=ScriptedReplies(answers_when_stopped))
        await stopped(hung, grace=9, reason="too slow")
        assert hung.messages[-1].get("error_message") == "Operation aborted: too slow"

    simulated(program())


@pytest.mark.req("S2-50")
def test_a_tool_is_not_run_under_a_cancelled_signal() -> None:
    class Signal:
        def __init__(self, cancelled: bool) -> None:
            self.cancelled = cancelled

        def is_cancelled(self) -> bool:
            return self.cancelled

    acted: list = []

    def act(arguments):
        acted.append("act")
        return "did"

    one, tools = call("c1", "act"), [tool("act", act)]

    refused = simulated(run_tool(one, tools, Signal(True)))
    assert (refused, acted) == (tool_result(one, ABORTED, is_error=True), [])
    clear = simulated(run_tool(one, tools, Signal(False)))
    assert (clear, acted) == (tool_result(one, "did"), ["act"])
    assert simulated(run_tool(one, tools)) == tool_result(one, "did")


@pytest.mark.req("S2-51", "S2-58")
@pytest.mark.parametrize("through", [lambda one: one, lambda one: guard(one, passes)])
def test_a_command_is_killed_within_five_turns(through) -> None:
    async def program() -> None:
        shell = FakeShell()
        harness = Harness(model=ScriptedReplies(SLEEP), tools=[through(bash_tool(shell))])
        background = started(harness)
        await background.until("tool_execution_start")
        await ticks(5)
        assert len(shell.alive) == 1

        harness.cancel()
        await ticks(5)

        assert (shell.alive, shell.started[0].killed) == ([], True)
        await background.running
        assert shape(harness.messages) == "U A[c1] R(c1) A(aborted)"
        assert harness.messages[2]["content"] == (
            "[It was running and may have done part of its work.]\nCommand cancelled"
        )
        assert await stop_run(harness, background.running) == "clean"

    simulated(program())


@pytest.mark.req("S2-55", "S2-56")
def test_the_next_request_holds_all_but_the_empty_end() -> None:
    async def partly(request) -> Any:
        await answers_when_stopped(request)
        partial = assistant_message(text_block("So far, so"), stop_reason="aborted")
        return {**partial, "error_message": ABORTED}

    async def program() -> None:
        model = ScriptedReplies(SLEEP, says("Yes?"), partly, says("Good."))
        harness = Harness(model=model, tools=[bash_tool(FakeShell())])
        await stopped(harness, grace=9)
        await driven(harness.prompt("Hello?"))
        assert shape(harness.messages) == "U A[c1] R(c1) A(aborted) U A"
        assert model.calls[-1].messages == [m for m in harness.messages[:5] if m.get("content")]

        assert await stopped(harness, grace=9) == "clean"
        await driven(harness.prompt("Go on."))
        assert "So far, so" in str(model.calls[-1].messages[-2])

    simulated(program())


def tidying(turns: int) -> AgentTool:
    """Return a tool that is cooperative, and needs some turns to tidy up."""

    async def execute(arguments, signal=None):
        try:
            await unless_cancelled(asyncio.Event().wait(), signal)
        except StoppedError:
            await ticks(turns)
        return "tidied up"

    return replace(deaf(), execute=execute)


@pytest.mark.req("S2-59", "K19")
@pytest.mark.parametrize(
    ("grace", "ending", "expected"),
    [(50, "clean", "U A[c1] R(c1) A(aborted)"), (2, "hard", "U A[c1]")],
)
def test_a_tool_has_as_long_as_the_grace_to_tidy_up(grace, ending, expected) -> None:
    async def program() -> None:
        harness = Harness(model=ScriptedReplies(WAIT), tools=[tidying(10)])
        assert await stopped(harness, grace) == ending
        assert shape(harness.messages) == expected
        if ending == "clean":
            assert harness.messages[2]["content"] == "tidied up"

    simulated(program())


@pytest.mark.req("S2-89", "K19")
def test_the_grace_is_seconds_unless_told_otherwise() -> None:
    async def program() -> list[float]:
        took = []
        cases: list[tuple[AgentTool, dict[str, Any]]] = [
            (deaf(), {}),
            (deaf(), {"grace_s": 7.5}),
            (tidying(0), {}),
        ]
        for one, given in cases:
            harness = Harness(model=ScriptedReplies(WAIT), tools=[one])
            begun = asyncio.get_running_loop().time()
            await stopped(harness, **given)
            took.append(asyncio.get_running_loop().time() - begun)
        return took

    assert simulated(program()) == [2.0, 7.5, 0.0]


@pytest.mark.req("S2-60")
def test_without_any_grace_the_command_is_killed_all_the_same() -> None:
    async def program() -> None:
        shell = FakeShell()
        harness = Harness(model=ScriptedReplies(SLEEP), tools=[bash_tool(shell)])
        background = started(harness)
        await background.until("tool_execution_start")
        await ticks(5)
        assert await stop_run(harness, background.running, 0) == "hard"
        assert shape(harness.messages) == "U A[c1]"
        assert shell.started[0].killed

    simulated(program())


@pytest.mark.req("S2-61", "S2-21", "S2-58")
def test_a_hard_stop_goes_through_tool_and_guard() -> None:
    async def program() -> None:
        model = ScriptedReplies(WAIT, says("Never."))
        harness = Harness(model=model, tools=[guard(deaf(), passes)])
        assert await stopped(harness, grace=3) == "hard"
        assert (shape(harness.messages), len(model.calls)) == ("U A[c1]", 1)

    simulated(program())


@pytest.mark.req("S2-62")
def test_whoever_stops_can_be_stopped() -> None:
    async def dies_slowly(arguments):
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.Event().wait()

    async def program() -> None:
        harness = Harness(model=ScriptedReplies(WAIT), tools=[tool("wait", dies_slowly)])
        background = started(harness)
        await ticks(5)
        stopping = asyncio.ensure_future(stop_run(harness, background.running, 1))
        await ticks(5)
        stopping.cancel()
        with pytest.raises(asyncio.CancelledError):
            await stopping
        assert stopping.cancelled()
        assert not background.running.done()
        background.running.cancel()

    simulated(program())


def test_what_the_run_died_of_is_raised() -> None:
    async def program() -> None:
        def broken(event) -> None:
            raise OSError("disk full")

        harness = Harness(model=ScriptedReplies(WAIT), tools=[deaf()])
        harness.subscribe(broken)
        background = started(harness)
        await ticks(5)
        with pytest.raises(OSError, match="disk full"):
            await stop_run(harness, background.running)

    simulated(program())


def test_two_who_stop_one_run_are_told_the_same() -> None:
    async def program() -> None:
        harness = Harness(model=ScriptedReplies(WAIT), tools=[deaf()])
        background = started(harness)
        await ticks(5)
        endings: tuple[str, str] = await asyncio.gather(
            stop_run(harness, background.running, grace_s=60),
            stop_run(harness, background.running, 0),
        )
        assert sorted(endings) == ["hard", "hard"]

    simulated(program())


@pytest.mark.req("S2-63", "S2-108")
def test_two_builds_are_stopped_and_the_conversation_goes_on(tmp_path) -> None:
    def answers(request):
        return says(f"Answer {len(model.calls)}.")

    build = asks(call("c1", "bash", command="sleep inf"))
    again = asks(call("c2", "wait"))
    model = ScriptedReplies(build, again, forever=answers)
    log = SessionLog(tmp_path / "session.jsonl", sync="system")

    async def program() -> None:
        harness = Harness(model=model, tools=[bash_tool(FakeShell()), deaf()])
        harness.subscribe(persist_to(log))
        endings: list[str] = [await stopped(harness, grace=9) for _ in range(2)]
        assert endings == ["clean", "hard"]
        assert shape(harness.messages) == "U A[c1] R(c1) A(aborted) U A[c2]"

        begun = asyncio.get_running_loop().time()
        for question in ("What did you do?", "And then?"):
            await driven(harness.prompt(question))
        assert asyncio.get_running_loop().time() - begun < 1.0
        assert [text_of(message) for message in harness.messages[7::2]] == [
            "Answer 3.",
            "Answer 4.",
        ]
        assert log.replay() == list(harness.messages)
        assert len(harness.messages) == len(log.path.read_text().splitlines()) == 10
        shown = model.calls[2].messages
        assert shape(shown) == "U A[c1] R(c1) U A[c2] R(c2) U"
        assert shown[5]["content"] == INTERRUPTED
        assert transcript_problems(shown, "request") == []

    simulated(program())


@pytest.mark.req("S2-65", "S2-110")
@pytest.mark.parametrize("through", [lambda one: one, lambda one: guard(one, passes)])
def test_what_ends_the_program_is_no_tool_failure(through) -> None:
    def cut(arguments):
        raise PowerCut

    async def program() -> None:
        harness = Harness(model=ScriptedReplies(WAIT), tools=[through(tool("wait", cut))])
        with pytest.raises(PowerCut):
            await driven(harness.prompt("Go."))
        assert (shape(harness.messages), harness.is_running) == ("U A[c1]", False)

    simulated(program())


@pytest.mark.req("S2-66", "S2-31", "S2-67")
@pytest.mark.parametrize(
    ("model", "ending", "expected"),
    [
        (answers_when_stopped, "clean", "U A(aborted)"),
        (never_answers, "hard", "U"),
    ],
)
def test_a_request_that_hangs(model, ending, expected) -> None:
    async def program() -> None:
        harness = Harness(model=ScriptedReplies(model, says("Here.")))
        seen: list[str] = [harness.request_status]
        assert await stopped(harness, grace=9) == ending
        assert shape(harness.messages) == expected
        seen.append(harness.request_status)
        await driven(harness.prompt("Hello?"))
        assert [*seen, harness.request_status] == ["none", "abandoned", "answered"]

    simulated(program())


@pytest.mark.req("S2-31")
def test_a_model_may_raise_that_it_was_stopped() -> None:
    async def waits(request):
        return await unless_cancelled(never_answers(request), request.signal)

    async def program() -> None:
        harness = Harness(model=ScriptedReplies(waits))
        assert await stopped(harness, grace=9) == "clean"
        assert shape(harness.messages) == "U A(aborted)"
        assert harness.request_status == "abandoned"

    simulated(program())


@pytest.mark.req("S2-31")
def test_nothing_is_acted_on_in_a_reply_that_comes_after_the_stop() -> None:
    acted: list = []

    async def late(request):
        await ticks(20)
        return asks(call("c1", "act"), call("c2", "act"))

    async def program() -> None:
        harness = Harness(model=ScriptedReplies(late), tools=[tool("act", acted.append)])
        assert await stopped(harness, grace=99) == "clean"
        assert shape(harness.messages) == "U A[c1,c2] R(c1) R(c2) A(aborted)"
        assert acted == []

    simulated(program())


@pytest.mark.field("D8")
@pytest.mark.req("S2-54")
def test_a_follow_up_is_not_swallowed_by_the_run_that_is_stopped() -> None:
    async def program() -> None:
        harness = Harness(
            model=ScriptedReplies(SLEEP, forever=says("Yes.")), tools=[bash_tool(FakeShell())]
        )
        harness.follow_up("Actually Saturday.")
        await stopped(harness, grace=9)
        assert shape(harness.messages) == "U A[c1] R(c1) A(aborted)"
        await driven(harness.prompt("Hello?"))
        assert shape(harness.messages[4:]) == "U A U A"
        assert harness.messages[6]["content"] == "Actually Saturday."

    simulated(program())


@pytest.mark.field("D8")
@pytest.mark.req("S2-54")
@pytest.mark.parametrize("queue", ["steer", "follow_up"])
def test_what_is_said_to_a_run_that_is_stopped_is_answered_by_the_next(queue) -> None:
    async def late(request):
        await ticks(20)
        return says("Done, all the same.")

    async def program(*replies) -> str:
        model = ScriptedReplies(*replies, forever=says("Saturday it is."))
        harness = Harness(model=model, tools=[bash_tool(FakeShell())])
        background = started(harness)
        await ticks(5)
        getattr(harness, queue)("Actually Saturday.")
        assert await stop_run(harness, background.running, 99) == "clean"
        stopped_at = shape(harness.messages)
        await driven(harness.prompt("Hello?"))
        words = [m["content"] for m in model.calls[-1].messages if m["role"] == "user"]
        assert words == ["Go.", "Hello?", "Actually Saturday."]
        return stopped_at

    assert simulated(program(SLEEP)) == "U A[c1] R(c1) A(aborted)"
    assert simulated(program(late)) == "U A"


@pytest.mark.req("S2-99", "K26")
def test_a_broken_listener_does_not_swallow_a_cancellation() -> None:
    reported: list = []

    async def program() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, found: reported.append(str(found["exception"])))
        harness = Harness(model=ScriptedReplies(WAIT), tools=[deaf()])

        def broken(event) -> None:
            if event["type"] in ("tool_execution_end", "agent_end"):
                raise OSError(event["type"])

        harness.subscribe(broken)
        background = started(harness)
        await background.until("tool_execution_start")
        await tick()
        background.running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await background.running
        assert reported == ["tool_execution_end", "agent_end"]
        assert not harness.is_running

    simulated(program())


@pytest.mark.req("S2-103")
def test_the_button_can_be_pressed_from_a_frontend_that_only_looks() -> None:
    async def program() -> None:
        shell = FakeShell()
        harness = Harness(model=ScriptedReplies(SLEEP), tools=[bash_tool(shell)])
        background, looks = started(harness), 0
        while not background.running.done():
            looks += 1
            if looks == 12:
                harness.cancel(by="user")
            await tick()
        assert shape(harness.messages) == "U A[c1] R(c1) A(aborted)"
        assert looks < 24

    simulated(program())
