"""Judges a transcript, as a record or as a request.

A record may have holes (a call without a result), empty replies of a stop, and results that came
late. A request may have none of them: providers refuse it. `messages_for_model` makes the second
out of the first, and a test of an agent checks both.
"""

from collections.abc import Iterator, Sequence
from typing import Literal, cast, get_args

from landed.agent.messages import FAILED, Message, StopReason, ToolCall, calls_of, is_empty

Mode = Literal["record", "request"]
Problem = tuple[int, str]
"""The place of a message, and what is wrong with it."""

BLOCKS = ("text", "toolCall", "thinking")

_FIELDS: dict[str, dict[str, type]] = {
    "user": {"content": str},
    "assistant": {"content": list, "stop_reason": str},
    "toolResult": {"tool_call_id": str, "tool_name": str, "content": str, "is_error": bool},
    "text": {"text": str},
    "toolCall": {"id": str, "name": str, "arguments": dict},
    "thinking": {"text": str, "opaque": dict},
}
_OPTIONAL: dict[str, dict[str, type]] = {
    "user": {"input": str, "tells": dict},
    "assistant": {"error_message": str, "tells": dict},
    "toolResult": {"synthetic": bool, "tells": dict},
}


def transcript_problems(messages: Sequence[Message], mode: Mode = "record") -> list[str]:
    """Return what is wrong with a transcript, a sentence for each; nothing if it is valid."""
    found = problems_by_place(messages, mode)
    return [f"message {place}: {problem}" for place, problem in found]


def problems_by_place(messages: Sequence[Message], mode: Mode = "record") -> list[Problem]:
    """Return the same, each with the place of its message, counted from 0."""
    misshapen = [
        (place, problem)
        for place, message in enumerate(messages)
        for problem in _misshapen(message)
    ]
    if misshapen:
        return misshapen
    return [*_unpaired(messages)] if mode == "record" else [*_refused(messages)]


def reply_problems(reply: object) -> list[str]:
    """Return why this cannot be written down as a reply of a model; nothing if it can."""
    return [*_fields(reply, "role", ("assistant",))] or [*_misshapen(cast(Message, reply))]


def _misshapen(message: Message) -> Iterator[str]:
    wrong = [*_fields(message, "role", ("user", "assistant", "toolResult"))]
    yield from wrong
    if wrong or message["role"] != "assistant":
        return
    reason, blocks = message["stop_reason"], message["content"]
    if reason not in get_args(StopReason):
        yield f"stop_reason is {reason!r}"
    if (reason in FAILED) is not ("error_message" in message):
        yield "error_message belongs to stop_reason error and aborted, and to no other"
    unlike = [problem for block in blocks for problem in _fields(block, "type", BLOCKS)]
    yield from unlike
    ids = [] if unlike else [call["id"] for call in calls_of(message)]
    if len(set(ids)) < len(ids):
        yield "two of its calls have one id"


def _fields(value: object, tag: str, kinds: tuple[str, ...]) -> Iterator[str]:
    fields = cast("dict[str, object]", value) if isinstance(value, dict) else {}
    kind = fields.get(tag)
    if not isinstance(kind, str) or kind not in kinds:
        yield f"{tag} is {kind!r}, not one of {', '.join(kinds)}"
        return
    wanted = _FIELDS[kind] | {tag: str}
    allowed = wanted | _OPTIONAL.get(kind, {})
    for name in sorted(wanted.keys() - fields.keys()):
        yield f"{kind} has no {name}"
    for name, found in fields.items():
        if name not in allowed:
            yield f"{kind} has a field {name!r}"
        elif not isinstance(found, allowed[name]):
            yield f"{name} is not {allowed[name].__name__}"


def _unpaired(messages: Sequence[Message]) -> Iterator[Problem]:
    """Yield the results that answer nothing: each belongs to a call before it, and is its only."""
    unanswered: list[str] = []
    for place, message in enumerate(messages):
        unanswered += [call["id"] for call in calls_of(message)]
        if message["role"] == "toolResult":
            id = message["tool_call_id"]
            if id in unanswered:
                unanswered.remove(id)
            else:
                yield place, f"a result of {id}, which is no call before it, or answered"


def _refused(messages: Sequence[Message]) -> Iterator[Problem]:
    """Yield what a provider refuses."""
    awaited: list[ToolCall] = []
    for place, message in enumerate(messages):
        if message["role"] == "toolResult":
            if not awaited or awaited[0]["id"] != message["tool_call_id"]:
                yield place, f"a result of {message['tool_call_id']} out of its place"
            awaited = awaited[1:]
            continue
        yield from _left_open(place, awaited)
        awaited = calls_of(message)
        if is_empty(message):
            yield place, "an empty assistant message"
    yield from _left_open(len(messages), awaited)


def _left_open(place: int, awaited: Sequence[ToolCall]) -> Iterator[Problem]:
    for call in awaited:
        yield place, f"no result of {call['id']} before it"
