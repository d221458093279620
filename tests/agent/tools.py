"""Tools for the tests of the harness: from a plain function, from an async one, and deaf ones."""

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

from landed.agent.tool import AgentTool

FILES = {"a.py": "contents of a.py", "b.py": "contents of b.py", "c.py": "contents of c.py"}


def tool(name: str, act: Callable[[dict], Any]) -> AgentTool:
    """Return a tool that does what a function of the arguments does, async or not."""

    async def execute(arguments, signal=None):
        done = act(arguments)
        return await done if inspect.isawaitable(done) else done

    return AgentTool(name=name, description=f"It is {name}.", parameters={}, execute=execute)


def reading(*, before: Callable[[str], None] = lambda path: None) -> AgentTool:
    """Return a tool that reads one of three files, and does something first."""

    def act(arguments):
        before(arguments["path"])
        return FILES[arguments["path"]]

    return tool("read", act)


async def _forever(arguments):
    await asyncio.Event().wait()


def deaf() -> AgentTool:
    """Return a tool that waits for ever and never looks at the signal."""
    return tool("wait", _forever)
