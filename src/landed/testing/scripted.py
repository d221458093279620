"""A model for the agent harness that says what it was told to say, and keeps what it was asked."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, TypeAlias

from landed.agent.messages import (
    ABORTED,
    AssistantMessage,
    Message,
    ToolCall,
    assistant_message,
    error_message,
    text_block,
    tool_call,
)
from landed.agent.signal import Signal, cancelled
from landed.agent.tool import ToolSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What the model was asked once: the messages as they were then."""

    system: str
    messages: list[Message]
    tools: Sequence[ToolSpec]
    signal: Signal | None


Reply: TypeAlias = (
    AssistantMessage
    | BaseException
    | Callable[[Request], "AssistantMessage | Awaitable[AssistantMessage]"]
)
"""A message, an exception to be raised, or a function of the request that makes a message."""


class ScriptedReplies:
    """Gives these replies in order, then what `forever` says each time; `calls` is what was asked.

    Where the script has ended it raises, which the conversation records as a failed reply.
    """

    def __init__(self, *replies: Reply, forever: Reply | None = None) -> None:
        self.calls: list[Request] = []
        self._replies = list(replies)
        self._forever = forever

    async def __call__(
        self,
        system: str,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
        signal: Signal | None = None,
        /,
    ) -> AssistantMessage:
        """Give the next reply."""
        request = Request(
            system=system, messages=deepcopy(list(messages)), tools=tools, signal=signal
        )
        self.calls.append(request)
        reply = self._replies.pop(0) if self._replies else self._forever
        if reply is None:
            raise RuntimeError(f"the script has no reply {len(self.calls)}")
        if isinstance(reply, BaseException):
            raise reply
        if callable(reply):
            made = reply(request)
            return await made if inspect.isawaitable(made) else made
        return deepcopy(reply)


def says(text: str) -> AssistantMessage:
    """Return a reply of words."""
    return assistant_message(text_block(text))


def call(id: str, name: str, **arguments: Any) -> ToolCall:
    """Return a call, to be asked for."""
    return tool_call(id, name, arguments)


def asks(*calls: ToolCall, text: str = "") -> AssistantMessage:
    """Return a reply that asks for these calls, after some words if there are any."""
    words = [text_block(text)] if text else []
    return assistant_message(*words, *calls)


async def answers_when_stopped(request: Request) -> AssistantMessage:
    """Hang as a model does that looks at the signal: it gives up when that is cancelled."""
    if request.signal is None:
        return await never_answers(request)
    await cancelled(request.signal)
    return error_message(ABORTED, "aborted")


async def never_answers(request: Request) -> AssistantMessage:
    """Hang as a model does that never looks at the signal."""
    await asyncio.Event().wait()
    raise AssertionError("nobody sets this event")
