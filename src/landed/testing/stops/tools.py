"""The tools of the scenarios: patient ones, deaf ones, and one that ends the program."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from landed.agent.bash import CANCELLED
from landed.agent.signal import Signal, StoppedError, unless_cancelled
from landed.agent.tool import AgentTool, text_argument
from landed.testing.shapes import PowerCut
from landed.testing.ticks import tick, ticks

Act = Callable[[Mapping[str, Any], Signal | None], Awaitable[str]]


def tool(name: str, act: Act) -> AgentTool:
    """Return a tool that does this with its arguments and its signal."""

    async def execute(arguments: Mapping[str, Any], signal: Signal | None = None) -> str:
        return await act(arguments, signal)

    return AgentTool(name=name, description=f"It is {name}.", parameters={}, execute=execute)


def reading(*, before: Callable[[str], None] = lambda path: None) -> AgentTool:
    """Return a tool that reads a file, and does something first."""

    async def act(arguments: Mapping[str, Any], signal: Signal | None) -> str:
        path = text_argument(arguments, "path")
        before(path)
        return f"contents of {path}"

    return tool("read", act)


def deaf() -> AgentTool:
    """Return a tool that never ends and never looks at its signal."""

    async def act(arguments: Mapping[str, Any], signal: Signal | None) -> str:
        await asyncio.Event().wait()
        raise AssertionError("nobody sets this event")

    return tool("wait", act)


def dies_slowly() -> AgentTool:
    """Return a tool that is deaf, and needs a second cancellation to be over."""

    async def act(arguments: Mapping[str, Any], signal: Signal | None) -> str:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.Event().wait()
        raise AssertionError("nobody sets these events")

    return tool("wait", act)


def tidying(turns: int) -> AgentTool:
    """Return a tool that hears of a stop, and then tidies up for some turns."""

    async def act(arguments: Mapping[str, Any], signal: Signal | None) -> str:
        try:
            await unless_cancelled(asyncio.Event().wait(), signal)
        except StoppedError:
            await ticks(turns)
        return "tidied up"

    return tool("wait", act)


def building(turns: int) -> AgentTool:
    """Return a tool that works for so many turns, and looks at its signal in each."""

    async def act(arguments: Mapping[str, Any], signal: Signal | None) -> str:
        for _ in range(turns):
            if signal is not None and signal.is_cancelled():
                return CANCELLED
            await tick()
        return "built"

    return tool("build", act)


def cutting_the_power() -> AgentTool:
    """Return a tool in which the program ends."""

    async def act(arguments: Mapping[str, Any], signal: Signal | None) -> str:
        raise PowerCut

    return tool("wait", act)
