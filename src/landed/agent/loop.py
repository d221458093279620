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
from enum import StrEnum
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
    tool_result,
)
from landed.agent.repair import messages_for_model
from landed.agent.signal import AnyOf, Signal, StoppedError, stopped_text
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


class Account(TypedDict):
    """What the records have of a turn, once a run over a runtime has ended.

    `report` is what the person is told, `operations` and `questions` the ids it speaks of.
    `unsupported` are sentences of the model's last words that the records do not bear out, each
    with what is wrong.
    """

    turn: str
    report: str
    operations: list[str]
    questions: list[str]
    unsupported: list[tuple[str, str]]


class Event(TypedDict):
    """One thing that happened in a run; starts and ends are balanced.

    `message` comes with `message_end`, `call` with both `tool_execution_…`, and `result` with the
    end of one whose tool returned. `account` comes last, from an agent's session, once for each
    turn that the run acted on.
    """

    type: Literal[
        "agent_start",
        "turn_start",
        "message_end",
        "tool_execution_start",
        "tool_execution_end",
        "turn_end",
        "agent_end",
        "account",
    ]
    message: NotRequired[Message]
    call: NotRequired[ToolCall]
    result: NotRequired[ToolResultMessage]
    account: NotRequired[Account]


Asked: TypeAlias = Callable[[], UserMessage | None]
"""Says what the user would say next, None if nothing; said is what is then in the record."""


def nobody() -> None:
    """Say that the user has said nothing."""


NOT_RUN = "Not run: the user said something first."
"""The result of a call that was left out for the user's words."""


class SteerMode(StrEnum):
    """What becomes of a batch of calls while the user says something. Each has one result anyway.

    The model is asked again, with the words, as soon as every call of the batch has its result.
    """

    AFTER_BATCH = "after_batch"
    """All of them are run."""

    SKIP_REST = "skip_rest"
    """The one that runs is waited for; the rest is not run, and the model is told so."""

    INTERRUPT = "interrupt"
    """The one that runs is asked to end as by a stop, too."""


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
    steer_mode: SteerMode = SteerMode.AFTER_BATCH


async def run_agent(
    agent: Agent,
    said: Sequence[Message],
    messages: list[Message],
    signal: Signal | None = None,
    *,
    steering: Asked = nobody,
    follow_ups: Asked = nobody,
    spoken: Callable[[], Signal | None] = nobody,
) -> AsyncGenerator[Event, None]:
    """Add what was `said` to the record `messages`, and go on until the run is over.

    `steering` is asked before each turn, `follow_ups` only where the run would end otherwise.
    `spoken` says, for the agent's `steer_mode`, by which signal one hears that there is steering.
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
            result = await _result(agent, call, signal, spoken())
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


async def _result(
    agent: Agent, call: ToolCall, signal: Signal | None, spoken: Signal | None
) -> ToolResultMessage:
    """Run one call of a batch, or leave it out where the user has said something first."""
    is_stopped = signal is not None and signal.is_cancelled()
    if agent.steer_mode is not SteerMode.AFTER_BATCH and spoken is not None:
        if spoken.is_cancelled() and not is_stopped:
            return tool_result(call, NOT_RUN, is_error=True)
        if agent.steer_mode is SteerMode.INTERRUPT:
            signal = AnyOf(signal, spoken)
    return await run_tool(call, agent.tools, signal, deadline_s=agent.limits.tool_s)


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
