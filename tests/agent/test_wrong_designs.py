"""Eleven wrong designs of a stop, planted: each goes wrong in the way that is known of it."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress
from dataclasses import replace

import pytest

from landed.agent.bash import CANCELLED, bash_tool
from landed.agent.guard import guard
from landed.agent.harness import Harness, Run
from landed.agent.loop import Agent, Limits, run_agent
from landed.agent.messages import calls_of, error_message, render, tool_result, user_message
from landed.agent.repair import messages_for_model
from landed.agent.signal import CancelToken
from landed.agent.stop import stop_run
from landed.agent.tool import run_tool
from landed.agent.validate import transcript_problems
from landed.testing.scripted import ScriptedReplies, asks, call, says
from landed.testing.shapes import shape
from landed.testing.ticks import Background, driven, ticks
from landed.testing.workspace import FakeShell, FakeWorkspace
from tests.agent.simulated import simulated
from tests.agent.tools import deaf, reading, tool

WAIT = asks(call("c1", "wait"))
SLEEP = asks(call("c1", "bash", command="sleep inf"))
THREE = asks(*(call(f"c{n}", "read", path=f"{name}.py") for n, name in enumerate("abc", 1)))


@pytest.mark.req("F2-01", "S2-103")
def test_f2_01_a_plain_generator_keeps_the_floor() -> None:
    pressed: list[str] = []

    def plain_loop(frontend):
        for _ in range(12):  # A tool of ten minutes, looked at twelve times.
            frontend.append("look")
            yield "still building"

    async def program() -> None:
        looks: list[str] = []
        asyncio.get_running_loop().call_soon(pressed.append, "stop")
        for _ in plain_loop(looks):
            pass
        assert (len(looks), pressed) == (12, [])
        await ticks(1)
        assert pressed == ["stop"]

    simulated(program())


@pytest.mark.req("F2-02")
def test_f2_02_a_flag_alone_does_not_stop_a_deaf_tool() -> None:
    async def program() -> None:
        harness = Harness(model=ScriptedReplies(WAIT), tools=[deaf()])
        background = Background(harness.prompt("Go."))
        await background.until("tool_execution_start")
        harness.cancel()
        await ticks(200)
        assert (harness.is_running, shape(harness.messages)) == (True, "U A[c1]")

        assert await stop_run(harness, background.running, 0) == "hard"
        assert not harness.is_running

    simulated(program())


@pytest.mark.req("F2-03", "S2-61")
def test_f2_03_a_tool_runner_that_catches_everything_turns_a_stop_into_a_result(
    monkeypatch,
) -> None:
    async def wrong(call, tools, signal=None, *, deadline_s=None):
        try:
            return tool_result(call, await tools[0].execute(call["arguments"], signal))
        except BaseException as error:
            told = f"the tool failed ({type(error).__name__})"
            return tool_result(call, told, is_error=True)

    async def program() -> str:
        model = ScriptedReplies(WAIT, says("It failed. I go on."))
        harness = Harness(model=model, tools=[deaf()])
        background = Background(harness.prompt("Go."))
        await background.until("tool_execution_start")
        await ticks(3)
        background.running.cancel()
        await asyncio.wait({background.running})
        return f"{render(harness.messages[2:])} ({len(model.calls)} requests)"

    assert simulated(program()) == " (1 requests)"
    monkeypatch.setattr("landed.agent.loop.run_tool", wrong)
    assert simulated(program()) == (
        "toolResult: the tool failed (CancelledError)\nassistant: It failed. I go on. (2 requests)"
    )


@pytest.mark.req("F2-04", "S2-21")
def test_f2_04_a_guard_that_catches_everything_turns_a_stop_into_a_refusal() -> None:
    def wrong_guard(one):
        async def execute(arguments, signal=None):
            try:
                return await one.execute(arguments, signal)
            except BaseException as error:
                raise RuntimeError(f"Tool call blocked: {type(error).__name__}") from None

        return replace(one, execute=execute)

    async def program(guarded) -> str:
        model = ScriptedReplies(WAIT, says("Blocked. I go on."))
        harness = Harness(model=model, tools=[guarded])
        background = Background(harness.prompt("Go."))
        await background.until("tool_execution_start")
        await ticks(3)
        background.running.cancel()
        await asyncio.wait({background.running})
        return render(harness.messages[2:])

    assert simulated(program(wrong_guard(deaf()))) == (
        "toolResult: Tool call blocked: CancelledError\nassistant: Blocked. I go on."
    )
    assert simulated(program(guard(deaf(), lambda name, arguments: None))) == ""


class TauOrder(Harness):
    """Makes the token when the first event is taken, not when the run begins."""

    token: CancelToken | None = None

    def prompt(self, text: str) -> Run:
        async def events() -> AsyncGenerator:
            self.token = CancelToken()
            run = run_agent(self._agent, [user_message(text)], self._messages, self.token)
            async for event in run:
                yield event

        return Run(events(), lambda: None)

    def cancel(self, by: str = "", reason: str = "") -> None:
        if self.token is not None:
            self.token.cancel(by, reason)


@pytest.mark.req("F2-05", "S2-98")
def test_f2_05_a_token_made_at_the_first_step_loses_an_early_stop() -> None:
    def pressed_early(kind: type[Harness]) -> tuple[str, int]:
        model = ScriptedReplies(says("Deleted 4,000 files. You are welcome."))
        harness = kind(model=model)
        run = harness.prompt("Tidy up.")
        harness.cancel()
        simulated(driven(run))
        return shape(harness.messages), len(model.calls)

    assert pressed_early(TauOrder) == ("U A", 1)
    assert pressed_early(Harness) == ("U A(aborted)", 0)


@pytest.mark.req("F2-06")
def test_f2_06_calls_that_are_skipped_without_a_result_break_the_next_request() -> None:
    async def program() -> list:
        record: list = [user_message("Read."), THREE]
        token, tools = CancelToken(), [reading(before=lambda path: token.cancel())]
        for one in calls_of(THREE):
            if token.is_cancelled():
                break  # No result for the others.
            record.append(await run_tool(one, tools, token))
        return [*record, user_message("And now?")]

    record = simulated(program())
    assert shape(record) == "U A[c1,c2,c3] R(c1) U"
    assert transcript_problems(record, "request") == [
        "message 3: no result of c2 before it",
        "message 3: no result of c3 before it",
    ]
    assert transcript_problems(messages_for_model(record), "request") == []


@pytest.mark.req("F2-07", "S2-19")
def test_f2_07_a_guard_that_fails_open_lets_the_folder_be_deleted() -> None:
    def by_table(name, arguments):
        return {"ls": None}[arguments["command"].split()[0]]

    def fail_open(one):
        async def execute(arguments, signal=None):
            try:
                if by_table(one.name, arguments):
                    return "blocked"
            except Exception:
                pass
            return await one.execute(arguments, signal)

        return replace(one, execute=execute)

    def left(door) -> list[str]:
        shell = FakeShell(FakeWorkspace({"build/out.txt": "built"}))
        model = ScriptedReplies(asks(call("c1", "bash", command="rm -r build")), says("Done."))
        harness = Harness(model=model, tools=[door(bash_tool(shell))])
        simulated(driven(harness.prompt("Clean up.")))
        return shell.workspace.names()

    assert left(fail_open) == []
    assert left(lambda one: guard(one, by_table)) == ["build/out.txt"]


@pytest.mark.req("F2-08", "S2-28")
def test_f2_08_a_bound_between_reply_and_calls_leaves_a_call_without_result() -> None:
    async def wrong(model, record, max_turns) -> None:
        for turn in range(max_turns + 1):
            reply = await model("", record, [], None)
            record.append(reply)
            if turn + 1 >= max_turns:
                record.append(error_message(f"Agent stopped after max_turns={max_turns}"))
                return
            for one in calls_of(reply):
                record.append(await run_tool(one, [reading()]))

    read = asks(call("c1", "read", path="a.py"))
    record: list = [user_message("Go.")]
    simulated(wrong(ScriptedReplies(forever=read), record, 2))
    assert shape(record) == "U A[c1] R(c1) A[c1] A(error)"
    assert transcript_problems(record[:-1], "request")

    ours: list = []
    agent = Agent(
        model=ScriptedReplies(forever=read), tools=[reading()], limits=Limits(max_turns=2)
    )
    simulated(driven(run_agent(agent, [user_message("Go.")], ours)))
    assert shape(ours) == "U A[c1] R(c1) A[c1] R(c1) A(error)"


@pytest.mark.req("F2-09", "S2-46")
def test_f2_09_one_token_for_life_stops_the_next_run_at_once(monkeypatch) -> None:
    def stopped_then_prompted() -> str:
        harness = Harness(model=ScriptedReplies(forever=says("Here.")))
        stopped = harness.prompt("Go.")
        harness.cancel()
        simulated(driven(stopped))
        simulated(driven(harness.prompt("Again.")))
        return shape(harness.messages)

    assert stopped_then_prompted() == "U A(aborted) U A"
    one = CancelToken()
    monkeypatch.setattr("landed.agent.harness.CancelToken", lambda: one)
    assert stopped_then_prompted() == "U A(aborted) U A(aborted)"


@pytest.mark.req("F2-10", "S2-60")
def test_f2_10_a_command_that_is_killed_only_where_the_flag_is_seen_survives() -> None:
    def wrong_bash(shell):
        async def execute(arguments, signal=None):
            command = shell.start(arguments["command"])
            while not command.done:
                if signal is not None and signal.is_cancelled():
                    command.kill()
                    return CANCELLED
                await asyncio.sleep(0)
            return command.output().text

        return replace(bash_tool(shell), execute=execute)

    async def program(made, grace: int) -> tuple[str, int]:
        shell = FakeShell()
        harness = Harness(model=ScriptedReplies(SLEEP), tools=[made(shell)])
        background = Background(harness.prompt("Go."))
        await background.until("tool_execution_start")
        await ticks(5)
        ending = await stop_run(harness, background.running, grace)
        left = shell.alive
        for command in left:
            command.kill()
        return ending, len(left)

    assert simulated(program(wrong_bash, 9)) == ("clean", 0)
    assert simulated(program(wrong_bash, 0)) == ("hard", 1)
    assert simulated(program(bash_tool, 0)) == ("hard", 0)


@pytest.mark.req("F2-11", "S2-62")
def test_f2_11_a_stop_that_swallows_its_own_cancellation_cannot_be_stopped() -> None:
    async def wrong_stop(harness, running, grace):
        harness.cancel()
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
        return "hard"

    async def dies_slowly(arguments):
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.Event().wait()

    async def program(stop) -> bool:
        harness = Harness(model=ScriptedReplies(WAIT), tools=[tool("wait", dies_slowly)])
        background = Background(harness.prompt("Go."))
        await background.until("tool_execution_start")
        await ticks(3)
        stopping = asyncio.ensure_future(stop(harness, background.running, 0))
        await ticks(5)
        stopping.cancel()
        await asyncio.wait({stopping})
        background.running.cancel()
        return stopping.cancelled()

    assert simulated(program(wrong_stop)) is False
    assert simulated(program(stop_run)) is True
