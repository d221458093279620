"""The loop: ask the model, run the tools it asks for, and again, until it asks for nothing.

It draws nothing and knows no queue: it is a generator of events, and asks two callables whether the
user has said something meanwhile. Four things end a run:

1. The model asks for no tools, and nobody has said anything more.
2. `max_turns`, looked at before a request, never between a reply and its calls.
3. A failed reply: nothing of it is acted on.
4. A cancelled signal, looked at before a request: that request is saved.

The last three are written down as the assistant's last message. Each message is in the record
before its event is out, and nothing can come between a tool's return and its result in the record:
wherever the run is cut off, a tool that returned is never told as interrupted.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NotRequired, Protocol, TypeAlias, TypedDict

from landed.agent.messages import (
    ABORTED,
    FAILED,
    AssistantMessage,
    Message,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    calls_of,
    error_message,
)
from landed.agent.repair import messages_for_model
from landed.agent.signal import Signal, StoppedError, stopped_text
from landed.agent.tool import AgentTool, ToolSpec, failure_text, run_tool, tool_specs
from landed.agent.validate import reply_problems


class Model(Protocol):
    """Whoever answers. A failure may be raised or returned; a stop is returned as "aborted"."""

    async def __call__(
        self,
        system: str,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
        signal: Signal | None = None,
        /,
    ) -> AssistantMessage:
        """Answer; give up when the signal is cancelled."""
        ...


class Event(TypedDict):
    """One thing that happened in a run; starts and ends are balanced.

    `message` comes with `message_end`, `call` with both `tool_execution_…`, and `result` with the
    end of one whose tool returned.
    """

    type: Literal[
        "agent_start",
        "turn_start",
        "message_end",
        "tool_execution_start",
        "tool_execution_end",
        "turn_end",
        "agent_end",
    ]
    message: NotRequired[Message]
    call: NotRequired[ToolCall]
    result: NotRequired[ToolResultMessage]


Asked: TypeAlias = Callable[[], UserMessage | None]
"""Says what the user would say next, None if nothing; said is what is then in the record."""


def nobody() -> None:
    """Say that the user has said nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The bounds of a run: its turns, and how long one request and one tool may take, in seconds.

    A request whose time is over is abandoned, not cancelled: it may go on at the provider, and be
    paid for.
    """

    max_turns: int = 100
    model_s: float = 600.0
    tool_s: float = 3_600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """Who answers, what it is told about itself, what it may call, and within which bounds."""

    model: Model
    system: str = ""
    tools: Sequence[AgentTool] = ()
    limits: Limits = field(default_factory=Limits)


async def run_agent(
    agent: Agent,
    said: Sequence[Message],
    messages: list[Message],
    signal: Signal | None = None,
    *,
    steering: Asked = nobody,
    follow_ups: Asked = nobody,
) -> AsyncGenerator[Event, None]:
    """Add what was `said` to the record `messages`, and go on until the run is over.

    `steering` is asked before each turn, `follow_ups` only where the run would end otherwise.
    """
    turn, is_answered, waiting = 0, False, list(said)
    yield {"type": "agent_start"}
    while True:
        if _ending(agent, signal, turn) is None:
            waiting += _heard(steering, follow_ups if is_answered else nobody)
        if is_answered and not waiting:
            break
        yield {"type": "turn_start"}
        for message in waiting:
            yield _recorded(messages, message)
        reply = _ending(agent, signal, turn) or await _reply(agent, messages, signal)
        yield _recorded(messages, reply)
        failed = reply["stop_reason"] in FAILED
        calls = [] if failed else calls_of(reply)
        for call in calls:
            yield {"type": "tool_execution_start", "call": call}
            result = await run_tool(call, agent.tools, signal, deadline_s=agent.limits.tool_s)
            yield _recorded(messages, result)
            yield {"type": "tool_execution_end", "call": call, "result": result}
        yield {"type": "turn_end"}
        if failed:
            break
        turn, is_answered, waiting = turn + 1, not calls, []
    yield {"type": "agent_end"}


def _ending(agent: Agent, signal: Signal | None, turn: int) -> AssistantMessage | None:
    """Return what stands in place of the reply if the model may not be asked."""
    if signal is not None and signal.is_cancelled():
        return error_message(stopped_text(signal), "aborted")
    if turn >= agent.limits.max_turns:
        return error_message(f"Agent stopped after max_turns={agent.limits.max_turns}")
    return None


def _heard(*askers: Asked) -> list[UserMessage]:
    """Return the first message that one of them has: one at a time."""
    for asked in askers:
        message = asked()
        if message is not None:
            return [message]
    return []


def _recorded(messages: list[Message], message: Message) -> Event:
    """Put a message into the record; return the event that announces it."""
    messages.append(message)
    return {"type": "message_end", "message": message}


async def _reply(
    agent: Agent, messages: Sequence[Message], signal: Signal | None
) -> AssistantMessage:
    """Ask the model; whatever comes of it is a reply that can be written down."""
    deadline = asyncio.timeout(agent.limits.model_s)
    try:
        async with deadline:
            view, specs = messages_for_model(messages), tool_specs(agent.tools)
            return _usable(await agent.model(agent.system, view, specs, signal), signal)
    except asyncio.CancelledError:
        raise
    except StoppedError:
        return error_message(ABORTED if signal is None else stopped_text(signal), "aborted")
    except Exception as error:
        if deadline.expired():
            return error_message(f"The model gave no answer within {agent.limits.model_s:g} s")
        return error_message(failure_text(error))


def _usable(reply: AssistantMessage, signal: Signal | None) -> AssistantMessage:
    """Return the reply, with the reason of a stop; what is no reply becomes a failed one."""
    if problems := reply_problems(reply):
        return error_message(f"The model's reply cannot be used: {'; '.join(problems)}")
    if reply["stop_reason"] == "aborted" and signal is not None and signal.is_cancelled():
        return {**reply, "error_message": stopped_text(signal)}
    return reply
