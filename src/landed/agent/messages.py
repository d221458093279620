"""What a conversation is made of: three kinds of message, as plain dicts, and how they are read.

A message is what is written down, so it is JSON and nothing else. What can be computed from it
(an assistant's words, the calls it asks for) is computed each time and stored nowhere.

An assistant message says in `stop_reason` why it ended. "error" and "aborted" are ends too: a
failure and a stop are written into the conversation, never only raised.
"""

import json
from collections.abc import Iterable
from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

ABORTED = "Operation aborted"
"""The one text of a stop: the result of each call that was not run, and the end of the record."""

StopReason: TypeAlias = Literal["stop", "toolUse", "length", "error", "aborted"]
"""Why an assistant message ended: done, calls to be answered, cut off, failed, stopped."""

FAILED: frozenset[str] = frozenset({"error", "aborted"})
"""The stop reasons of a reply that nothing may be done about: none of its calls is run."""


class TextBlock(TypedDict):
    """Words of the assistant."""

    type: Literal["text"]
    text: str


class ToolCall(TypedDict):
    """A tool that the assistant asks for; its result names it by `id`."""

    type: Literal["toolCall"]
    id: str
    name: str
    arguments: dict[str, Any]


class Opaque(TypedDict):
    """What only the model that thought can read; `payload` goes back to it as it came."""

    provider: str
    model: str
    payload: dict[str, Any]


class ThinkingBlock(TypedDict):
    """What the assistant thought, as far as the provider shows it: nothing that it said.

    It is kept for the model that made it, which wants it back; nobody else is shown it.
    """

    type: Literal["thinking"]
    text: str
    opaque: Opaque


Block: TypeAlias = TextBlock | ToolCall | ThinkingBlock


class UserMessage(TypedDict):
    """What the user said, or what is said in the user's place.

    With a runtime, `input` is the id of the durable input; a note from its records has none, and
    `tells` of plans: id ▸ the state that it says they are in.
    """

    role: Literal["user"]
    content: str
    input: NotRequired[str]
    tells: NotRequired[dict[str, str]]


class AssistantMessage(TypedDict):
    """One reply of the model. `error_message` says what went wrong, if it failed or was stopped.

    One that is made from the records `tells` of plans, as the result of a call does.
    """

    role: Literal["assistant"]
    content: list[Block]
    stop_reason: StopReason
    error_message: NotRequired[str]
    tells: NotRequired[dict[str, str]]


class ToolResultMessage(TypedDict):
    """What came back of one call. A `synthetic` one was put in afterwards: nobody saw it happen.

    `tells` are the plans that it tells of: id ▸ the state that it says they are in.
    """

    role: Literal["toolResult"]
    tool_call_id: str
    tool_name: str
    content: str
    is_error: bool
    synthetic: NotRequired[bool]
    tells: NotRequired[dict[str, str]]


Message: TypeAlias = UserMessage | AssistantMessage | ToolResultMessage


def user_message(text: str) -> UserMessage:
    """Return what the user said, as a message."""
    return {"role": "user", "content": text}


def assistant_message(*blocks: Block, stop_reason: StopReason | None = None) -> AssistantMessage:
    """Return a reply of these blocks; without a reason it ended for its calls, or was done."""
    asks = any(block["type"] == "toolCall" for block in blocks)
    reason = stop_reason or ("toolUse" if asks else "stop")
    return {"role": "assistant", "content": list(blocks), "stop_reason": reason}


def error_message(
    text: str, stop_reason: Literal["error", "aborted"] = "error"
) -> AssistantMessage:
    """Return a failure or a stop as it is written down: no content, and why."""
    return {
        "role": "assistant",
        "content": [],
        "stop_reason": stop_reason,
        "error_message": text,
    }


def tool_result(call: ToolCall, content: str, *, is_error: bool = False) -> ToolResultMessage:
    """Return what came back of `call`, as a message."""
    return {
        "role": "toolResult",
        "tool_call_id": call["id"],
        "tool_name": call["name"],
        "content": content,
        "is_error": is_error,
    }


def text_block(text: str) -> TextBlock:
    """Return words as a block of an assistant message."""
    return {"type": "text", "text": text}


def tool_call(id: str, name: str, arguments: dict[str, Any] | None = None) -> ToolCall:
    """Return a call as a block of an assistant message."""
    return {"type": "toolCall", "id": id, "name": name, "arguments": arguments or {}}


def text_of(message: Message) -> str:
    """Return the words of a message; of an assistant's, its text blocks joined."""
    if message["role"] == "assistant":
        return "".join(block["text"] for block in message["content"] if block["type"] == "text")
    return message["content"]


def calls_of(message: Message) -> list[ToolCall]:
    """Return the calls that a message asks for, in order: none, unless it is an assistant's."""
    if message["role"] == "assistant":
        return [block for block in message["content"] if block["type"] == "toolCall"]
    return []


def is_empty(message: Message) -> bool:
    """Whether an assistant message says nothing and asks for nothing."""
    if message["role"] != "assistant":
        return False
    for block in message["content"]:
        if block["type"] == "toolCall" or (block["type"] == "text" and block["text"].strip()):
            return False
    return True


def render(messages: Iterable[Message]) -> str:
    """Return the conversation as text, a line for each message: what summaries are made from."""
    return "\n".join(_line(message) for message in messages)


def _line(message: Message) -> str:
    parts = [text_of(message)]
    parts += [f"{call['name']}({_json(call['arguments'])})" for call in calls_of(message)]
    if message["role"] == "assistant":
        parts.append(message.get("error_message", ""))
    said = " ".join(part for part in parts if part)
    return f"{message['role']}: {' '.join(said.splitlines())}"


def _json(arguments: dict[str, Any]) -> str:
    return json.dumps(arguments, ensure_ascii=False, sort_keys=True)
