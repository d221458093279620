"""A command is waited for without polling, and is gone however the tool is left."""

import asyncio
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import pytest

from landed.agent.bash import LocalShell, bash_tool
from landed.agent.harness import Harness
from landed.agent.messages import ABORTED
from landed.agent.signal import CancelToken
from landed.agent.stop import stop_run
from landed.agent.tool import run_tool
from landed.testing.scripted import ScriptedReplies, asks, call
from landed.testing.shapes import shape
from landed.testing.ticks import Background
from landed.testing.workspace import FakeShell, FakeWorkspace
from tests.agent.simulated import simulated

BOUND_S = 20.0
SLEEPS = "sleep 600 & echo $! >> pids"
STOPPED = "[It was running and may have done part of its work.]\nCommand cancelled"
ENDLESS = f"echo $$ > pids; {SLEEPS}; {SLEEPS}; mv pids up; wait"


@pytest.fixture(params=["memory", "process"])
def run(request, tmp_path) -> Callable[..., str]:
    """Run a command in a fake shell on virtual time, and in a real one."""

    def run(command, signal=None):
        shell = FakeShell() if request.param == "memory" else LocalShell(tmp_path)
        executed = bash_tool(shell).execute({"command": command}, signal)
        return str(simulated(executed) if request.param == "memory" else asyncio.run(executed))

    return run


@pytest.mark.req("S2-15")
def test_a_command_that_fails_has_still_been_run(run, tmp_path) -> None:
    assert run("false") == "Command exited with code 1"
    assert run("echo no; exit 7") == "no\nCommand exited with code 7"
    assert run("true") == "(no output)"
    for tools, runner in (
        ([bash_tool(FakeShell())], simulated),
        ([bash_tool(LocalShell(tmp_path))], asyncio.run),
    ):
        assert runner(run_tool(call("c1", "bash", command="false"), tools))["is_error"] is False


@pytest.mark.req("S2-16", "S2-11")
def test_long_output_keeps_its_end(run) -> None:
    told = run("seq 3000")

    assert told.startswith("1001\n")
    assert told.endswith(
        "\n3000\n[Showing the last 2000 of 3000 lines. Narrow the command for more.]"
    )


@pytest.mark.req("S2-52")
def test_a_command_that_takes_a_while_is_waited_for(run, tmp_path) -> None:
    shell = FakeShell(FakeWorkspace())

    assert simulated(bash_tool(shell).execute({"command": "sleep 3; echo built"})) == "built"
    assert shell.alive == []
    assert run("sleep 0; echo built", CancelToken()) == "built"


@pytest.mark.req("S2-92")
def test_nothing_is_started_under_a_cancelled_token(tmp_path) -> None:
    shell, token = FakeShell(), CancelToken()
    token.cancel()
    tool = bash_tool(shell)

    assert simulated(tool.execute({"command": "echo x"}, token)) == "Command cancelled"
    result = simulated(run_tool(call("c1", "bash", command="echo x"), [tool], token))
    assert (result["content"], result["is_error"]) == (ABORTED, True)
    assert shell.started == []


def is_alive(pid: int) -> bool:
    with suppress(ProcessLookupError):
        os.kill(pid, 0)
        # A killed orphan is a zombie until the system's first process reaps it.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


async def eventually(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + BOUND_S
    while not holds():
        assert time.monotonic() < deadline
        await asyncio.sleep(0)


async def begun(folder: Path) -> list[int]:
    """Wait until the endless command has its background; return the ids of its processes."""
    await eventually((folder / "up").exists)
    return [int(line) for line in (folder / "up").read_text().split()]


async def flagged(working: asyncio.Task, token: CancelToken) -> None:
    token.cancel()
    assert await working == STOPPED


async def cancelled(working: asyncio.Task, token: CancelToken) -> None:
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working


async def cancelled_twice(working: asyncio.Task, token: CancelToken) -> None:
    token.cancel()
    working.cancel()
    await asyncio.sleep(0)
    await cancelled(working, token)


@pytest.mark.req("S2-53", "S2-91", "S2-60")
@pytest.mark.parametrize("has_waitid", [True, False])
@pytest.mark.parametrize("leave", [flagged, cancelled, cancelled_twice])
def test_no_process_of_the_group_survives(tmp_path, leave, has_waitid, monkeypatch) -> None:
    if not has_waitid:  # As on macOS.
        monkeypatch.delattr(os, "waitid")

    async def program() -> None:
        token = CancelToken()
        execute = bash_tool(LocalShell(tmp_path)).execute({"command": ENDLESS}, token)
        working = asyncio.ensure_future(execute)
        pids = await begun(tmp_path)
        assert len(pids) == 3
        assert all(map(is_alive, pids))

        await leave(working, token)

        assert not is_alive(pids[0])
        await eventually(lambda: not any(map(is_alive, pids)))

    asyncio.run(program())


@pytest.mark.req("S2-53", "S2-91")
def test_what_a_command_leaves_in_the_background_ends_with_it(tmp_path) -> None:
    async def program() -> str:
        return str(
            await bash_tool(LocalShell(tmp_path)).execute(
                {"command": "sleep 600 & echo $!; echo started"}
            )
        )

    pid, started = asyncio.run(program()).split("\n")
    assert started == "started"
    asyncio.run(eventually(lambda: not is_alive(int(pid))))


@pytest.mark.req("S2-53")
def test_a_command_is_gone_when_reading_its_output_fails(tmp_path) -> None:
    class Broken(LocalShell):
        def start(self, command):
            started: Any = super().start(command)

            async def wait() -> int:
                await begun(tmp_path)
                raise OSError("cannot wait")

            started.wait = wait
            return started

    async def program() -> None:
        with pytest.raises(OSError, match="cannot wait"):
            await bash_tool(Broken(tmp_path)).execute({"command": ENDLESS})
        pids = [int(line) for line in (tmp_path / "up").read_text().split()]
        await eventually(lambda: not any(map(is_alive, pids)))

    asyncio.run(program())


@pytest.mark.req("S2-53", "S2-58", "S2-60")
@pytest.mark.parametrize("end", ["clean", "hard", "closed"])
def test_a_run_that_ends_takes_its_command_with_it(tmp_path, end) -> None:
    async def program() -> None:
        model = ScriptedReplies(asks(call("c1", "bash", command=ENDLESS)))
        harness = Harness(model=model, tools=[bash_tool(LocalShell(tmp_path))])
        background = Background(harness.prompt("Go."))
        pids = await begun(tmp_path)
        if end == "closed":
            background.running.cancel()
            await asyncio.wait({background.running})
            await harness.aclose()
        else:
            grace = {"clean": None, "hard": 0}[end]
            assert await stop_run(harness, background.running, grace, grace_s=BOUND_S) == end
        assert not is_alive(pids[0])
        await eventually(lambda: not any(map(is_alive, pids)))
        expected = "U A[c1] R(c1) A(aborted)" if end == "clean" else "U A[c1]"
        assert shape(harness.messages) == expected

    asyncio.run(program())


@pytest.mark.req("S2-90")
def test_waiting_costs_no_turn_of_the_loop_and_no_processor_time(tmp_path) -> None:
    async def program() -> tuple[int, float]:
        token, loop = CancelToken(), cast(Any, asyncio.get_running_loop())
        working = asyncio.ensure_future(
            bash_tool(LocalShell(tmp_path)).execute({"command": ENDLESS}, token)
        )
        await begun(tmp_path)
        turns, run_once = [0], loop._run_once

        def counted() -> None:
            turns[0] += 1
            run_once()

        loop._run_once = counted
        before = time.process_time()
        # Another thread lets the time go by, so that nothing of this loop's own is counted.
        elsewhere = threading.Timer(1.0, loop.call_soon_threadsafe, [token.cancel])
        elsewhere.start()
        assert await working == STOPPED
        return turns[0], time.process_time() - before

    turns, spent_s = asyncio.run(program())
    assert turns < 10
    assert spent_s < 0.05


@pytest.mark.req("S2-90")
def test_a_stop_is_quick(tmp_path) -> None:
    async def program(folder: Path) -> float:
        token = CancelToken()
        working = asyncio.ensure_future(
            bash_tool(LocalShell(folder)).execute({"command": ENDLESS}, token)
        )
        await begun(folder)
        pressed = time.monotonic()
        token.cancel()
        await working
        return time.monotonic() - pressed

    took = []
    for number in range(5):
        folder = tmp_path / str(number)
        folder.mkdir()
        took.append(asyncio.run(program(folder)))
    # The machine may be busy; what polls is never this quick.
    assert min(took) < 0.02


@pytest.mark.fault("X70")
def test_output_without_end_is_bounded(tmp_path) -> None:
    async def program() -> str:
        token = CancelToken()
        command = "yes | head -c 9000000; touch up; yes"
        working = asyncio.ensure_future(
            bash_tool(LocalShell(tmp_path)).execute({"command": command}, token)
        )
        await eventually((tmp_path / "up").exists)
        token.cancel()
        return str(await working)

    told = asyncio.run(program())
    assert len(told) <= 50_000 + 100
    assert told.endswith(f"lines. Narrow the command for more.]\n{STOPPED}")


def test_what_escapes_the_group_is_not_waited_for(tmp_path) -> None:
    async def program() -> str:
        tool = bash_tool(LocalShell(tmp_path))
        command = "setsid sleep 600 & echo $! > escaped; echo done"
        return str(await asyncio.wait_for(tool.execute({"command": command}), BOUND_S))

    try:
        assert asyncio.run(program()) == "done"
    finally:
        with suppress(ProcessLookupError):
            os.kill(int((tmp_path / "escaped").read_text()), 9)


def test_a_shell_that_cannot_start_is_told(tmp_path) -> None:
    tool = bash_tool(LocalShell(tmp_path / "missing"))
    result = asyncio.run(run_tool(call("c1", "bash", command="true"), [tool]))

    assert result["is_error"]
    assert "missing" in result["content"]


def test_a_command_that_cannot_be_watched_is_not_left_running(tmp_path, monkeypatch) -> None:
    def no_more(thread) -> None:
        raise RuntimeError("can't start new thread")

    def killpg(group: int, by: int) -> None:
        started.append(group)
        kill(group, by)

    started: list[int] = []
    kill = os.killpg
    monkeypatch.setattr(os, "killpg", killpg)
    monkeypatch.setattr(threading.Thread, "start", no_more)
    tool = bash_tool(LocalShell(tmp_path))

    result = asyncio.run(run_tool(call("c1", "bash", command="sleep 600"), [tool]))

    assert (result["content"], result["is_error"]) == ("can't start new thread", True)
    assert [is_alive(pid) for pid in started] == [False]


def test_the_environment_is_the_one_given(tmp_path) -> None:
    tool = bash_tool(LocalShell(tmp_path, environment={"ONLY": "this"}))

    assert asyncio.run(tool.execute({"command": "echo $ONLY$HOME; pwd"})) == f"this\n{tmp_path}"


def test_a_finished_command_ends_in_one_turn_with_all_it_printed(tmp_path) -> None:
    tool = bash_tool(LocalShell(tmp_path))

    told = asyncio.run(tool.execute({"command": "seq 1999; echo oops >&2"}))

    assert told == "\n".join([*map(str, range(1, 2_000)), "oops"])
