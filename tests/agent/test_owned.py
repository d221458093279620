"""An agent's own tools as operations: recorded first, asked about, stopped midway, never twice."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

import landed
from landed.agent.bash import PARTLY, LocalShell
from landed.agent.button import Button
from landed.agent.guard import guard
from landed.agent.ledger import CUT_OFF
from landed.agent.messages import calls_of
from landed.agent.owned import (
    TOO_LONG,
    as_tool,
    bash_operation,
    value_errors_refuse,
    write_operation,
)
from landed.agent.session import AgentSession
from landed.agent.signal import StoppedError, unless_cancelled
from landed.agent.stop import stop_run
from landed.agent.tool import AgentTool
from landed.core.operation import Operation, State
from landed.core.outcome import Refused
from landed.core.plan import PlanState
from landed.runtime.runtime import Runtime
from landed.testing.scripted import ScriptedReplies, asks, call, says
from landed.testing.ticks import Background
from landed.testing.workspace import FakeShell
from tests.agent.far import account_of, asked, hears, result_of
from tests.agent.test_bash import ENDLESS, begun, is_alive

PARAMETERS = {
    "type": "object",
    "properties": {"day": {"type": "string"}, "seats": {"type": "integer"}},
    "required": ["day"],
}


@asynccontextmanager
async def agent(
    model: Any, *tools: object, store: str = "sqlite://:memory:"
) -> AsyncGenerator[AgentSession]:
    async with landed.open(store, tools=tools) as rt:
        yield await AgentSession.begin(rt, model=model, session="s1", principal="ana")


def bash(id: str, command: str) -> Any:
    return call(id, "bash", command=command)


def tells(execute: Any) -> AgentTool:
    """Return an agent's tool over a function of the arguments and the signal."""

    async def run(arguments: Any, signal: Any = None) -> str:
        found = execute(arguments, signal)
        return await found if asyncio.iscoroutine(found) else found

    return AgentTool(name="tell", description="Tells.", parameters=PARAMETERS, execute=run)


def keeping(ran: list[Any]) -> Any:
    """Return what a tool does that keeps the arguments that it is run with."""

    def execute(arguments: Any, signal: Any) -> str:
        ran.append(dict(arguments))
        return "told"

    return execute


async def plans_of(session: AgentSession) -> Sequence[landed.PlanValue]:
    """Return the plans that the transcript's calls have made."""
    calls = [one for message in session.harness.messages for one in calls_of(message)]
    heard = session.effects.whose()
    ids = [await session.effects.plan_of(one, heard) for one in calls]
    return [await session.rt.plan(id) for id in ids if id]


async def operation_of(rt: Runtime, plan: str) -> Operation:
    """Return the operation of a plan's first step."""
    held = await rt.driver.reader.plan(plan, tenant="default")
    return await rt.driver.reader.operation(held.places[0].record)


def test_a_command_goes_through_the_record_and_its_whole_output_reaches_the_model() -> None:
    shell = FakeShell()

    async def told() -> None:
        model = ScriptedReplies(asks(bash("c1", "seq 900")), says("Nine hundred."))
        async with agent(model, bash_operation(shell, allow=("seq",))) as session:
            account = account_of(await hears(session, "Count."))
            shown = result_of(asked(model), "c1")
            assert "Step 1: Ran seq 900." in shown
            assert [line for line in shown.splitlines() if line.isdigit()] == [
                str(n) for n in range(1, 901)
            ]
            assert account["report"].startswith("Done: ran seq 900.")
            (id,) = account["operations"]
            assert isinstance(await session.rt.status(id), landed.Confirmed)

    asyncio.run(told())
    assert len(shell.started) == 1


def test_a_code_other_than_0_is_a_result_and_no_error() -> None:
    async def told() -> None:
        model = ScriptedReplies(asks(bash("c1", "exit 7")), says("Seven."))
        async with agent(model, bash_operation(FakeShell(), allow=("exit",))) as session:
            await hears(session, "Leave.")
            assert result_of(asked(model), "c1").endswith("\nCommand exited with code 7")
            assert [plan.state for plan in await plans_of(session)] == [PlanState.DONE]

    asyncio.run(told())


@pytest.mark.req("S1-13")
@pytest.mark.parametrize("command", ["rm a.py", "seq 1; rm a.py", "seq 1 > a.py", "seq $(rm a)"])
def test_what_is_not_allowed_asks_and_a_yes_runs_exactly_that(command) -> None:
    shell = FakeShell()
    shell.workspace.files["a.py"] = "one"

    async def told() -> None:
        model = ScriptedReplies(asks(bash("c1", command)), says("I asked."), says("Done."))
        async with agent(model, bash_operation(shell, allow=("seq",))) as session:
            first = account_of(await hears(session, "Tidy up."))
            assert f"run: {command}" in first["report"]
            assert shell.started == []
            await hears(session, "yes")
            assert [one.line for one in shell.started] == [command]
            await hears(session, "yes")
            assert len(shell.started) == 1

    asyncio.run(told())


def test_nobody_is_asked_about_a_command_that_they_cannot_see_whole() -> None:
    shell = FakeShell()

    async def told() -> None:
        model = ScriptedReplies(
            asks(bash("c1", "echo " + "x" * 600 + "; rm a.py")),
            asks(bash("c2", "echo a\nrm b")),
            says("I asked."),
        )
        async with agent(model, bash_operation(shell)) as session:
            account = account_of(await hears(session, "Tidy up."))
            assert TOO_LONG[1:] in result_of(asked(model), "c1")
            assert "run: echo a ⏎ rm b" in account["report"]
            assert shell.started == []

    asyncio.run(told())


def test_the_same_command_is_run_again_and_joined_only_while_it_waits() -> None:
    shell = FakeShell()

    async def told() -> None:
        model = ScriptedReplies(
            asks(bash("c1", "echo one"), bash("c2", "echo one")),
            asks(bash("c3", "echo one"), bash("c4", "true"), bash("c5", "true")),
            says("Done."),
        )
        async with agent(model, bash_operation(shell, allow=("echo",))) as session:
            account = account_of(await hears(session, "Go."))
            assert [one.line for one in shell.started] == ["echo one"] * 3
            assert len(set(account["operations"])) == 3
            assert len(account["questions"]) == 1
            states = [plan.state for plan in await plans_of(session)]
            assert states == [PlanState.DONE] * 3 + [PlanState.PROPOSED]

    asyncio.run(told())


@pytest.mark.req("K1")
def test_a_call_that_was_cut_off_is_told_as_itself_and_not_as_the_equal_one_before_it() -> None:
    async def told() -> None:
        began, hung = asyncio.Event(), asyncio.Event()

        async def hangs(arguments: Any, signal: Any) -> str:
            if began.is_set():
                hung.set()
                await asyncio.Event().wait()
            began.set()
            return "told the first time"

        model = ScriptedReplies(
            asks(call("c1", "tell", day="Fri"), call("c2", "tell", day="Fri")),
            forever=says("I see."),
        )
        async with agent(model, as_tool(tells(hangs), effect="irreversible")) as session:
            background = Background(await session.prompt("Tell them twice."))
            await background.until("tool_execution_start", nth=2)
            await hung.wait()
            assert await stop_run(session.harness, background.running, grace_s=0) == "hard"
            first, second = await plans_of(session)
            assert first.plan != second.plan
            await hears(session, "And?")
            assert "told the first time" in result_of(asked(model), "c1")
            shown = result_of(asked(model), "c2")
            assert shown.startswith(CUT_OFF)
            assert "may have happened" in shown
            assert "the first time" not in shown

    asyncio.run(told())


@pytest.mark.req("S2-53", "K20")
@pytest.mark.parametrize("presses", [1, 2])
def test_a_stop_kills_the_group_and_says_that_it_may_have_run_in_part(tmp_path, presses) -> None:
    async def told() -> None:
        model = ScriptedReplies(asks(bash("c1", ENDLESS)), forever=says("I see."))
        tool = bash_operation(LocalShell(tmp_path), risk="safe")
        async with agent(model, tool) as session:
            button = Button(lambda: session.harness, grace_s=600.0)
            run = await session.prompt("Build.")
            driving = asyncio.ensure_future(button.drive(run, lambda event: None))
            pids = await begun(tmp_path)
            for _ in range(presses):
                button.press("ana", "wrong branch")
            await driving
            assert not any(map(is_alive, pids))
            (plan,) = await plans_of(session)
            assert plan.state is PlanState.STOPPED
            operation = await operation_of(session.rt, plan.plan)
            await session.rt.resolve(operation.id)
            await hears(session, "And?")
            shown = result_of(asked(model), "c1")
            assert "it may have run in part" in shown
            assert PARTLY in shown
            operation = await operation_of(session.rt, plan.plan)
            assert (operation.state, operation.complete) == (State.CONFIRMED, False)
            assert await session.rt.inbox() == ()

    asyncio.run(told())


def test_a_command_that_takes_too_long_is_killed_and_nobody_is_in_doubt(tmp_path) -> None:
    async def told() -> None:
        operation = bash_operation(LocalShell(tmp_path), risk="safe", deadline_s=0.2)
        async with landed.open("sqlite://:memory:", tools=[operation]) as rt:
            value = await rt.perform("bash", {"command": "sleep 600"})
            assert isinstance(value, landed.Confirmed)
            assert value.complete is False

    asyncio.run(told())


def refuses(arguments: Any, signal: Any) -> str:
    raise ValueError("there is no such day")


def breaks(arguments: Any, signal: Any) -> str:
    raise OSError("the disk is full")


async def stops(arguments: Any, signal: Any) -> str:
    await unless_cancelled(asyncio.Event().wait(), signal)
    raise AssertionError


@pytest.mark.parametrize(
    ("execute", "raises", "state"),
    [
        (refuses, value_errors_refuse, landed.Failed),
        (refuses, None, landed.Unknown),
        (breaks, value_errors_refuse, landed.Unknown),
    ],
)
def test_what_a_tool_raises_proves_only_what_it_says_it_does(execute, raises, state) -> None:
    async def told() -> None:
        more = {"raises": raises} if raises else {}
        tool = as_tool(tells(execute), effect="irreversible", **more)
        async with landed.open("sqlite://:memory:", tools=[tool]) as rt:
            assert isinstance(await rt.perform("tell", {"day": "Fri"}), state)

    asyncio.run(told())


def test_a_refusal_at_the_door_is_a_refusal_and_the_model_is_told_why() -> None:
    ran: list[object] = []

    async def told() -> None:
        guarded = guard(tells(keeping(ran)), lambda *_: "not today")
        model = ScriptedReplies(asks(call("c1", "tell", day="Fri")), says("No."))
        async with agent(model, as_tool(guarded, effect="reversible")) as session:
            account = account_of(await hears(session, "Tell."))
            assert "Tool call blocked: not today" in result_of(asked(model), "c1")
            (id,) = account["operations"]
            assert isinstance(await session.rt.status(id), landed.Failed)
        assert ran == []

    asyncio.run(told())


def test_arguments_that_do_not_fit_are_told_and_nothing_is_recorded() -> None:
    ran: list[Any] = []
    tool = as_tool(tells(keeping(ran)), effect="irreversible")
    with pytest.raises(landed.ProposalError, match="day"):
        tool.check({"seats": 4})
    with pytest.raises(landed.ProposalError, match="seats"):
        tool.check({"day": "Fri", "seats": "many"})
    with pytest.raises(landed.ProposalError, match="extra"):
        tool.check({"day": "Fri", "extra": 1})

    async def told() -> None:
        model = ScriptedReplies(
            asks(call("c1", "tell", seats=4), call("c2", "tell", day="Fri")), says("Told.")
        )
        async with agent(model, tool) as session:
            account = account_of(await hears(session, "Tell."))
            assert "day" in result_of(asked(model), "c1")
            assert len(account["operations"]) == 1
            assert ran == [{"day": "Fri"}]

    asyncio.run(told())


def test_a_promise_about_a_key_is_refused() -> None:
    with pytest.raises(landed.ContractError, match="keyed"):
        as_tool(tells(refuses), effect="irreversible", keyed="key")


@pytest.mark.parametrize(
    ("execute", "complete"), [(stops, False), (lambda *_: "told", True)], ids=["heard", "deaf"]
)
def test_only_a_tool_that_heard_of_the_stop_may_have_run_in_part(execute, complete) -> None:
    async def told() -> None:
        begins, ends = asyncio.Event(), asyncio.Event()

        async def run(arguments: Any, signal: Any) -> str:
            begins.set()
            if complete:
                await ends.wait()
            result = execute(arguments, signal)
            return await result if asyncio.iscoroutine(result) else result

        tool = as_tool(tells(run), effect="irreversible")
        async with landed.open("sqlite://:memory:", tools=[tool]) as rt:
            ask = landed.Ask(principal="ana", session="s", call_id="c")
            calls = [landed.Wanted(tool="tell", arguments={"day": "Fri"})]
            plan = await rt.propose(calls, ask=ask, patience_s=0.0)
            await begins.wait()
            stopping = asyncio.ensure_future(rt.stop(plan.plan, principal="ana"))
            await asyncio.sleep(0)
            ends.set()
            await stopping
            operation = await operation_of(rt, plan.plan)
            assert (operation.state, operation.complete) == (State.CONFIRMED, complete)

    asyncio.run(told())


def test_a_stop_before_it_began_has_no_effect() -> None:
    class Stopped:
        def is_cancelled(self) -> bool:
            return True

        async def wait(self) -> None:
            raise StoppedError

    async def sent() -> None:
        ran: list[object] = []
        tool = as_tool(tells(keeping(ran)), effect="irreversible")
        call = landed.Call(
            operation="op-1",
            tool="tell",
            key="",
            arguments={"day": "Fri"},
            ask=landed.Ask(),
            epoch=1,
            attempt=1,
            sent_at=0.0,
            deadline_at=1.0,
            stop=Stopped(),
        )
        assert await tool.send(call) == Refused(reason="it was stopped before it began")
        assert ran == []

    asyncio.run(sent())


def test_a_file_is_written_as_often_as_it_is_asked_for_and_can_be_taken_back(tmp_path) -> None:
    def write(id: str, content: str) -> Any:
        return call(id, "write", path="a.py", content=content)

    async def told() -> None:
        model = ScriptedReplies(
            asks(write("c1", "one"), write("c2", "two"), write("c3", "one")), says("Written.")
        )
        async with agent(model, *write_operation(tmp_path)) as session:
            await hears(session, "Write.")
            assert (tmp_path / "a.py").read_text() == "one"
            plans = await plans_of(session)
            assert [plan.state for plan in plans] == [PlanState.DONE] * 3
            await session.rt.undo(plans[-1].plan, principal="ana")
            assert (tmp_path / "a.py").read_text() == "two"

    asyncio.run(told())


DIES = """
import asyncio, sys
from pathlib import Path
import landed
from landed.agent.bash import LocalShell
from landed.agent.owned import bash_operation
from landed.agent.session import AgentSession
from landed.testing.scripted import ScriptedReplies, asks, call

async def main(folder):
    tool = bash_operation(LocalShell(Path(folder)), risk="safe")
    model = ScriptedReplies(asks(call("c1", "bash", command=sys.argv[2])))
    async with landed.open(f"sqlite:///{folder}/a.db", tools=[tool]) as rt:
        session = await AgentSession.begin(rt, model=model, session="s1", principal="ana")
        async for event in await session.prompt("Deploy."):
            pass

asyncio.run(main(sys.argv[1]))
"""


@pytest.mark.services
def test_a_process_killed_under_a_command_leaves_a_question_and_no_second_run(tmp_path) -> None:
    line = "echo ran >> runs; sleep 600 & echo $! >> pids; mv pids up; wait"

    async def told() -> None:
        with subprocess.Popen([sys.executable, "-c", DIES, str(tmp_path), line]) as dying:
            pids = await begun(tmp_path)
            dying.kill()
        for pid in pids:
            if is_alive(pid):
                subprocess.run(["kill", "-9", str(pid)], check=False)
        model = ScriptedReplies(
            says("I don't know."), asks(bash("c2", line)), forever=says("Somebody has to look.")
        )
        operation = bash_operation(LocalShell(tmp_path), risk="safe")
        async with agent(model, operation, store=f"sqlite:///{tmp_path}/a.db") as session:
            assert await session.unfinished()
            async for _ in await session.resume():
                pass
            shown = result_of(model.calls[0].messages, "c1")
            assert shown.startswith(CUT_OFF)
            assert "It may have happened" in shown
            (case,) = await session.rt.inbox()
            assert case.operation
            await hears(session, "Deploy again.")
            assert "was not settled" in result_of(asked(model), "c2")
        assert (tmp_path / "runs").read_text() == "ran\n"

    asyncio.run(told())
