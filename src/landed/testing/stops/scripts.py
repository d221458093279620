"""What happens in the scenarios of a stop: who is asked for what, and when the button is pressed.

A right design and the wrong ones beside it are played with one script.
"""

import asyncio
import io
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from landed.agent.guard import Arguments
from landed.agent.harness import Run
from landed.agent.log_lines import LogError
from landed.agent.loop import Event
from landed.agent.messages import AssistantMessage, Message
from landed.agent.render import show
from landed.agent.repair import INTERRUPTED
from landed.agent.session_log import repair_tail
from landed.agent.signal import Signal
from landed.agent.tool import AgentTool, Telling
from landed.testing.scripted import (
    Reply,
    Request,
    answers_when_stopped,
    asks,
    call,
    never_answers,
    says,
)
from landed.testing.shapes import PowerCut, shape
from landed.testing.stops.stage import SETTLES_IN, Stage
from landed.testing.stops.tools import (
    building,
    cutting_the_power,
    deaf,
    dies_slowly,
    reading,
    tidying,
)
from landed.testing.ticks import ticks
from landed.testing.workspace import FakeShell, FakeWorkspace

WAIT = asks(call("c1", "wait"))
SLEEP = asks(call("c1", "bash", command="sleep inf"))
THREE = asks(*(call(f"c{n}", "read", path=f"{name}.py") for n, name in enumerate("abc", 1)))
BUILD_TURNS = 600
KEPT_TOKENS = 20


def passes(name: str, arguments: Arguments) -> None:
    """Let every call through."""


async def pressed_in_a_build(stage: Stage) -> None:
    """A frontend only looks; the button is pressed as soon as somebody else has the floor."""
    build = asks(call("c1", "build"))
    harness = stage.open(build, says("Built."), tools=[building(BUILD_TURNS)])
    looks: list[Event] = []
    pressed_after: list[int] = []

    def press() -> None:
        pressed_after.append(len(looks))
        stage.press()

    def begun(event: Event) -> None:
        if event["type"] == "tool_execution_start":
            asyncio.get_running_loop().call_soon(press)

    harness.observe(begun)
    async for event in harness.prompt("Build."):
        looks.append(event)
    await ticks(1)
    stage.ended_as_recorded()
    stage.ended(f"pressed after look {pressed_after[0]} of {len(looks)}")


async def three_files(stage: Stage) -> None:
    """A reply asks for three files; the button is pressed while the first is being read."""

    def press(path: str) -> None:
        if path == "a.py":
            stage.press()

    stage.open(THREE, tools=[reading(before=press)])
    await stage.prompt("Read them.")
    stage.ended_as_recorded()


async def sleeping_command(stage: Stage) -> None:
    """A command that never ends is stopped, with a grace of nine turns."""
    stage.open(SLEEP, tools=[stage.design.bash(stage.shell)])
    await stage.busy()
    await stage.stop(9)


async def sleeping_command_without_grace(stage: Stage) -> None:
    """The same, with no grace at all."""
    stage.open(SLEEP, tools=[stage.design.bash(stage.shell)])
    await stage.busy()
    await stage.stop(0)


async def deaf_tool(stage: Stage) -> None:
    """A tool that never looks at its signal is stopped, with a grace of 200 turns."""
    stage.open(WAIT, tools=[deaf()])
    await stage.busy()
    await stage.stop(200)


async def deaf_tool_behind_a_guard(stage: Stage) -> None:
    """The same behind a guard, with a shorter grace."""
    stage.open(WAIT, tools=[stage.design.guard(deaf(), passes)])
    await stage.busy()
    await stage.stop(3)


async def cancelled(stage: Stage) -> None:
    """Whoever drives the run is cancelled, as by Ctrl-C: there was no stop before."""
    stage.open(WAIT, says("It failed. I go on."), tools=[deaf()])
    await _cancel(stage)


async def cancelled_behind_a_guard(stage: Stage) -> None:
    """The same, with a guard before the tool."""
    guarded = stage.design.guard(deaf(), passes)
    stage.open(WAIT, says("Blocked. I go on."), tools=[guarded])
    await _cancel(stage)


async def _cancel(stage: Stage) -> None:
    await stage.busy()
    stage.say("stop", "the task of the run is cancelled")
    stage.running.cancel()
    await asyncio.wait({stage.running})
    stage.ended("cancelled" if stage.running.cancelled() else "not at all: it went on")


async def before_the_first_step(stage: Stage) -> None:
    """The button is pressed when the run has begun, and nobody has taken an event yet."""
    harness = stage.open(says("Deleted 4,000 files. You are welcome."))
    run = harness.prompt("Tidy up.")
    stage.press()
    await _taken(run)
    stage.ended_as_recorded()


async def _taken(run: Run) -> None:
    async for _ in run:
        pass


async def stopped_then_again(stage: Stage) -> None:
    """One run is stopped, and the user goes on."""
    harness = stage.open(forever=says("Here."))
    run = harness.prompt("Go.")
    stage.press()
    await _taken(run)
    stage.ended_as_recorded()
    await stage.prompt("Again.")
    stage.ended_as_recorded()


async def failing_check(stage: Stage) -> None:
    """A check knows `ls` and nothing else, and the model wants to remove a folder."""

    def by_table(name: str, arguments: Arguments) -> str | None:
        return {"ls": None}[arguments["command"].split()[0]]

    stage.shell = FakeShell(FakeWorkspace({"build/out.txt": "built"}))
    stage.looks_at_files = True
    remove = asks(call("c1", "bash", command="rm -r build"))
    guarded = stage.design.guard(stage.design.bash(stage.shell), by_table)
    stage.open(remove, says("Very well."), tools=[guarded])
    await stage.prompt("Clean up.")


async def endless_model(stage: Stage) -> None:
    """A model never stops asking for tools, and the run is bounded to two turns."""
    reads = [asks(call(f"c{n}", "read", path="a.py")) for n in (1, 2)]
    stage.open(*reads, tools=[reading()], max_turns=2)
    await stage.prompt("Go.")


async def stopper_is_stopped(stage: Stage) -> None:
    """A run takes its time to end, and whoever waits for that is cancelled; then one stops it."""
    stage.open(WAIT, tools=[dies_slowly()])
    await stage.busy()
    stopping = asyncio.ensure_future(stage.stop(1))
    await ticks(SETTLES_IN)
    stage.say("stop", "whoever stops is cancelled")
    stopping.cancel()
    await asyncio.wait({stopping})
    if stopping.cancelled():
        stage.ended("cancelled")
    await stage.stop(0)


async def exit_status(stage: Stage) -> None:
    """A script runs an agent for its last words and its exit status, and the run is stopped."""

    def press(path: str) -> None:
        stage.press()

    harness = stage.open(asks(call("c1", "read", path="a.py")), tools=[reading(before=press)])
    out = io.StringIO()
    went_well = await show(harness.prompt("Read it."), stage.design.renderer(out))
    stage.ended_as_recorded()
    stage.ended(f"exit {0 if went_well else 1}")
    stage.words = out.getvalue().strip()


async def long_conversation(stage: Stage) -> None:
    """A summary takes the place of a conversation's older part: the room ends behind a call."""
    log = stage.new_log()
    reads = [asks(call(f"c{n}", "read", path="a.py"), text="I look.") for n in (1, 2)]
    harness = stage.open(
        *(reads[0], says("One.")),
        *(reads[1], says("Two.")),
        says("Three."),
        tools=[reading()],
        log=log,
    )
    await stage.prompt("First?")
    await stage.prompt("Second?")
    await stage.prompt("Third?")

    async def summarizer(*request: object) -> AssistantMessage:
        return says("The file was read twice.")

    await stage.design.compact(log, summarizer, keep_recent_tokens=KEPT_TOKENS)
    harness.replace_messages(log.replay())
    stage.say("compaction", f"the record is {shape(harness.messages)}")


async def torn_line(stage: Stage) -> None:
    """The power fails while the last line is written; the next process resumes, and is told more.

    Where the torn line is refused, it is cut, as `repair_tail` does, and kept beside the log.
    """
    log = stage.new_log()
    stage.open(says("One."), log=log)
    await stage.prompt("First?")
    os.truncate(log.path, log.path.stat().st_size - 5)
    stage.say("power.cut", "the last line of the log is torn")
    try:
        messages = log.replay()
    except LogError as error:
        stage.ended(f"line {error.line} is refused")
        repair_tail(log.path)
        log = stage.design.log(log.path, log.sync)
        messages = log.replay()
    stage.open(says("Two."), messages=messages, log=log)
    await stage.prompt("Second?")


async def two_builds(stage: Stage) -> None:
    """One build is stopped cleanly, the next one hard; then two questions are asked."""

    def answers(request: Request) -> AssistantMessage:
        return says(f"Answer {len(stage.provider.asked)}.")

    again = asks(call("c2", "bash", command="sleep inf"))
    bash = stage.design.bash(stage.shell)
    stage.open(SLEEP, again, forever=answers, tools=[bash], log=stage.new_log())
    await stage.busy("Build.")
    await stage.stop(9)
    await stage.busy("Build again.")
    await stage.stop(0)
    await stage.prompt("What did you do?")
    await stage.prompt("And then?")


async def hanging_model(model: Reply, stage: Stage) -> None:
    """The model gives no answer, and the run is stopped with a grace of nine turns."""
    stage.open(model)
    stage.begin()
    await ticks(SETTLES_IN)
    await stage.stop(9)


hanging_patiently = partial(hanging_model, answers_when_stopped)
hanging_deafly = partial(hanging_model, never_answers)


async def tidying_tool(grace: int, stage: Stage) -> None:
    """A tool hears of the stop, and needs ten turns to tidy up."""
    stage.open(WAIT, tools=[tidying(10)])
    await stage.busy()
    await stage.stop(grace)


async def power_cut(stage: Stage) -> None:
    """The program ends inside a tool, behind a guard: that is no failure of the tool."""
    stage.open(WAIT, tools=[stage.design.guard(cutting_the_power(), passes)])
    try:
        await stage.prompt("Go.")
    except PowerCut:
        stage.ended("PowerCut went through")


async def closed_anywhere(stage: Stage) -> None:
    """A run with a slow command is closed after each number of its events, and begun anew."""
    events = 0
    while await _closed_after(events, stage):
        events += 1


async def _closed_after(events: int, stage: Stage) -> bool:
    """Close a run after so many events and prompt twice; say whether it had so many."""
    returned: set[str] = set()
    tools = [_watched(tool, returned) for tool in (reading(), stage.design.bash(stage.shell))]
    look = asks(call("c1", "read", path="a.py"))
    build = asks(call("c2", "bash", command="sleep 3; echo built"))
    harness = stage.open(look, build, says("Built."), tools=tools, log=stage.new_log())
    stage.is_quiet = True
    run = harness.prompt("Build.")
    taken = [await anext(run, None) for _ in range(events)]
    await run.aclose()
    cut = shape(harness.messages)
    stage.require(not harness.is_running, f"after {events}: the run is not over")
    stage.require(not stage.shell.alive, f"after {events}: a command still runs")
    stage.require_whole()
    stage.provider.answers_all = True
    for question in ("First?", "Second?"):
        await stage.prompt(question)
        answered = shape(harness.messages).endswith("U A")
        stage.require(answered, f"after {events}: {question} is not answered")
        stage.require_whole()
    told = _interrupted(stage.provider.asked[-1])
    stage.require(not told & returned, f"after {events}: what ran is told as interrupted")
    stage.records.append(shape(harness.messages))
    stage.is_quiet = False
    stage.say("closed", f"after {events} event(s): {cut or 'nothing'}")
    return None not in taken


def _interrupted(request: Sequence[Message]) -> set[str]:
    """Return the tools whose calls a request tells as interrupted."""
    results = [message for message in request if message["role"] == "toolResult"]
    return {one["tool_name"] for one in results if one["content"] == INTERRUPTED}


def _watched(tool: AgentTool, returned: set[str]) -> AgentTool:
    """Return the same tool; its name is among the `returned` when it came to its end."""

    async def execute(arguments: Mapping[str, Any], signal: Signal | None = None) -> str | Telling:
        said = await tool.execute(arguments, signal)
        returned.add(tool.name)
        return said

    return replace(tool, execute=execute)
