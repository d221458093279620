"""Loops of an agent that go wrong when they are stopped, as they are often written."""

from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from landed.agent.loop import Agent, Event
from landed.agent.messages import (
    FAILED,
    AssistantMessage,
    Message,
    ToolCall,
    calls_of,
    error_message,
    tool_result,
)
from landed.agent.signal import Signal, stopped_text
from landed.agent.tool import failure_text, run_tool, tool_specs

T = TypeVar("T")


def plainly(work: Coroutine[Any, Any, T]) -> T:
    """Do it here and now, as plain code does: whatever waits in it keeps the floor.

    It may only give turns away; what waits for something else cannot be done so.
    """
    while True:
        try:
            work.send(None)
        except StopIteration as done:
            result: T = done.value
            return result


def plain_loop(events: AsyncGenerator[Event, None]) -> Generator[Event, None, None]:
    """Go through a loop as a plain generator, which gives the floor to nobody."""
    while True:
        try:
            yield plainly(events.__anext__())
        except StopAsyncIteration:
            return


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A reply whose calls are to be run, in the turn of that number, counted from 1."""

    agent: Agent
    messages: list[Message]
    reply: AssistantMessage
    signal: Signal | None
    number: int

    def record(self, message: Message) -> Event:
        """Put a message into the record; return the event that announces it."""
        return _recorded(self.messages, message)


Act = Callable[[Turn], AsyncGenerator[Event, None]]
"""Runs the calls of a reply. A failed message in the record ends the run."""


async def run_naively(
    agent: Agent, said: Sequence[Message], messages: list[Message], signal: Signal | None, act: Act
) -> AsyncGenerator[Event, None]:
    """Ask, act, and again; a request is the record as it stands, whatever holes it has."""
    waiting = list(said)
    yield {"type": "agent_start"}
    for number in range(1, agent.limits.max_turns + 1):
        yield {"type": "turn_start"}
        for message in waiting:
            yield _recorded(messages, message)
        reply = await _reply(agent, messages, signal)
        yield _recorded(messages, reply)
        turn = Turn(agent=agent, messages=messages, reply=reply, signal=signal, number=number)
        async for event in act(turn):
            yield event
        yield {"type": "turn_end"}
        if not calls_of(reply) or _has_failed(messages[-1]):
            break
        waiting = []
    yield {"type": "agent_end"}


async def runs_all(turn: Turn) -> AsyncGenerator[Event, None]:
    """Run each call; what is wrong here is only the request."""
    for call in calls_of(turn.reply):
        yield {"type": "tool_execution_start", "call": call}
        result = await run_tool(call, turn.agent.tools, turn.signal)
        yield turn.record(result)
        yield {"type": "tool_execution_end", "call": call, "result": result}


async def skips_the_rest(turn: Turn) -> AsyncGenerator[Event, None]:
    """Leave the calls alone after a stop, and write no result for them."""
    for call in calls_of(turn.reply):
        if turn.signal is not None and turn.signal.is_cancelled():
            return
        async for event in runs_all(_only(turn, call)):
            yield event


async def catches_all(turn: Turn) -> AsyncGenerator[Event, None]:
    """Take whatever comes out of a tool for its failure, the end of the run too."""
    for call in calls_of(turn.reply):
        yield {"type": "tool_execution_start", "call": call}
        tool = next(one for one in turn.agent.tools if one.name == call["name"])
        try:
            result = tool_result(call, str(await tool.execute(call["arguments"], turn.signal)))
        except BaseException as error:
            result = tool_result(call, failure_text(error), is_error=True)
        yield turn.record(result)
        yield {"type": "tool_execution_end", "call": call, "result": result}


async def is_bounded_between(turn: Turn) -> AsyncGenerator[Event, None]:
    """Look at `max_turns` between a reply and its calls, which then have no result."""
    most = turn.agent.limits.max_turns
    if turn.number >= most and calls_of(turn.reply):
        yield turn.record(error_message(f"Agent stopped after max_turns={most}"))
        return
    async for event in runs_all(turn):
        yield event


def _only(turn: Turn, call: ToolCall) -> Turn:
    return replace(turn, reply={**turn.reply, "content": [call]})


async def _reply(agent: Agent, messages: list[Message], signal: Signal | None) -> AssistantMessage:
    if signal is not None and signal.is_cancelled():
        return error_message(stopped_text(signal), "aborted")
    try:
        return await agent.model(agent.system, messages, tool_specs(agent.tools), signal)
    except Exception as error:
        return error_message(failure_text(error))


def _recorded(messages: list[Message], message: Message) -> Event:
    messages.append(message)
    return {"type": "message_end", "message": message}


def _has_failed(message: Message) -> bool:
    return message["role"] == "assistant" and message["stop_reason"] in FAILED
