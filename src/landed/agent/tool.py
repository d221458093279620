"""What a model may call, and the one place where a call becomes a result.

`run_tool` takes one call and returns one result, on every path: a tool that fails, that is not
there, that answers too late or that was stopped is a result which the model can act on. Two things
are not results and pass through untouched: the cancellation of the run, and what ends the program.
"""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypedDict

from landed.agent.budget import RESULT_BYTES, RESULT_LINES, head
from landed.agent.messages import ABORTED, ToolCall, ToolResultMessage, tool_result
from landed.agent.signal import Signal

WHATEVER_FACTOR = 2
"""A tool bounds its own results; one that doesn't is cut at this many budgets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Telling:
    """Text for the model, with the plans that it tells of: id ▸ the state it says they are in."""

    text: str
    plans: Mapping[str, str]


class Execute(Protocol):
    """What a tool does: text for the model, or an exception whose text the model is shown."""

    async def __call__(
        self, arguments: Mapping[str, Any], signal: Signal | None = None
    ) -> str | Telling:
        """Do it. Whoever waits long in here waits for the signal too."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentTool:
    """Something the model may call: what it is told of it, and what is done.

    `parameters` is a JSON schema. `snippet` is one line for the briefing, `guidelines` are what the
    briefing says about its use.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    execute: Execute
    snippet: str = ""
    guidelines: tuple[str, ...] = ()


class ToolSpec(TypedDict):
    """What of a tool goes to the model."""

    name: str
    description: str
    parameters: Mapping[str, Any]


def tool_specs(tools: Iterable[AgentTool]) -> list[ToolSpec]:
    """Return what the model is told of these tools: nothing that can be called."""
    return [
        {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
        for tool in tools
    ]


def text_argument(arguments: Mapping[str, Any], name: str) -> str:
    """Return a text that the model must have given; raise `ValueError` if it did not."""
    value = arguments.get(name)
    if not isinstance(value, str):
        raise ValueError(f"{name} must be a string")
    return value


def integer_argument(arguments: Mapping[str, Any], name: str) -> int | None:
    """Return a whole number that the model may have given; raise `ValueError` on another thing."""
    value = arguments.get(name)
    if isinstance(value, bool) or not isinstance(value, int | None):
        raise ValueError(f"{name} must be an integer")
    return value


async def run_tool(
    call: ToolCall,
    tools: Iterable[AgentTool],
    signal: Signal | None = None,
    *,
    deadline_s: float | None = None,
) -> ToolResultMessage:
    """Run one call and return its one result; never raise an `Exception`.

    Under a cancelled signal the tool is not run. After `deadline_s` seconds it is cancelled, and
    the result says that nobody knows what it did.
    """
    tool = next((one for one in tools if one.name == call["name"]), None)
    if signal is not None and signal.is_cancelled():
        return tool_result(call, ABORTED, is_error=True)
    if tool is None:
        return tool_result(call, f"Tool {call['name']} not found", is_error=True)
    deadline = asyncio.timeout(deadline_s)
    try:
        async with deadline:
            content = await tool.execute(call["arguments"], signal)
        return _told(call, content)
    except asyncio.CancelledError:
        raise
    except Exception as error:
        told = _too_late(deadline_s) if deadline.expired() else failure_text(error)
        return tool_result(call, bounded(told), is_error=True)


def failure_text(error: BaseException) -> str:
    """Return what the model is told of an exception: its text, or its type where it has none."""
    return str(error) or f"the tool failed ({type(error).__name__})"


def _too_late(deadline_s: float | None) -> str:
    return (
        f"No answer within {deadline_s:g} s, so it was stopped. "
        "It may have run partly; check before repeating it."
    )


def _told(call: ToolCall, content: object) -> ToolResultMessage:
    if isinstance(content, Telling):
        tells = dict(content.plans)
        return {**tool_result(call, bounded(_text(content.text))), "tells": tells}
    return tool_result(call, bounded(_text(content)))


def _text(content: object) -> str:
    if not isinstance(content, str):
        raise TypeError(f"the tool returned {type(content).__name__}, not text")
    return content


def bounded(text: str) -> str:
    """Return a result as a model is shown it at most, whatever a tool has made of it."""
    whole = text.encode("utf-8", "replace").decode("utf-8")
    kept = head(whole, lines=WHATEVER_FACTOR * RESULT_LINES, size=WHATEVER_FACTOR * RESULT_BYTES)
    return whole if kept.is_whole else f"{kept.text}\n[Cut: {kept.shown} of {kept.total} lines.]"
