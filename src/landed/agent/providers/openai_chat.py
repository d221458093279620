"""The Chat Completions dialect, as OpenAI and the many servers that imitate it speak it."""

from collections.abc import Mapping

from landed.agent.messages import Message, StopReason, ToolCall, calls_of, text_of
from landed.agent.providers.dialect import (
    Asked,
    Dialect,
    Fields,
    failed,
    fields,
    number,
    objects,
    text,
)
from landed.agent.providers.draft import FILTERED, Draft
from landed.agent.tool import ToolSpec
from landed.core.canonical import Json, canonical, checked

DONE = "[DONE]"

REASONS: dict[str, StopReason] = {
    "stop": "stop",
    "tool_calls": "stop",
    "function_call": "stop",
    "length": "length",
}

TEXT = (-1, 0)
"""The text comes before the calls: this dialect says nothing about their order."""


def body(asked: Asked) -> dict[str, Json]:
    """Write the request. That a result is an error stands in its text only."""
    messages: list[Json] = [{"role": "system", "content": asked.system}] if asked.system else []
    messages += [_message(message) for message in asked.messages]
    written: dict[str, Json] = {
        "model": asked.model,
        "messages": messages,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if asked.tools:
        written["tools"] = [{"type": "function", "function": _spec(tool)} for tool in asked.tools]
    return {**written, **asked.more}


def _spec(tool: ToolSpec) -> Json:
    return {
        "name": tool["name"],
        "description": tool["description"],
        "parameters": checked(tool["parameters"]),
    }


def _message(message: Message) -> Json:
    if message["role"] == "toolResult":
        content = message["content"]
        return {"role": "tool", "tool_call_id": message["tool_call_id"], "content": content}
    if message["role"] == "user":
        return {"role": "user", "content": message["content"]}
    written: dict[str, Json] = {"role": "assistant", "content": text_of(message) or None}
    if calls := [_call(call) for call in calls_of(message)]:
        written["tool_calls"] = calls
    return written


def _call(call: ToolCall) -> Json:
    arguments = canonical(checked(call["arguments"])).decode()
    function: Json = {"name": call["name"], "arguments": arguments}
    return {"type": "function", "id": call["id"], "function": function}


def hear(draft: Draft, chunk: Fields) -> None:
    """Take one chunk of the stream. The end is `[DONE]`; a reason without it is no end."""
    if chunk.get("error"):
        raise failed(chunk["error"])
    _count(draft, chunk.get("usage"))
    for choice in objects(chunk.get("choices"))[:1]:
        _add(draft, fields(choice.get("delta")))
        _stopped(draft, text(choice.get("finish_reason")))


def whole(draft: Draft, reply: Fields) -> None:
    """Take a reply that was not streamed."""
    if reply.get("error"):
        raise failed(reply["error"])
    _count(draft, reply.get("usage"))
    for choice in objects(reply.get("choices"))[:1]:
        _add(draft, fields(choice.get("message")))
        _stopped(draft, text(choice.get("finish_reason")))
    draft.over = True


def _add(draft: Draft, said: Fields) -> None:
    # A refusal in words is what the assistant says, as any other text.
    draft.say(TEXT, text(said.get("content")) or text(said.get("refusal")))
    for call in objects(said.get("tool_calls")):
        function = fields(call.get("function"))
        piece = text(function.get("arguments"))
        # A server that imitates the dialect may send the object itself.
        if isinstance(function.get("arguments"), Mapping):
            piece = canonical(checked(fields(function["arguments"]))).decode()
        call_id = text(call.get("id"))
        draft.call(
            _place(draft, call, call_id),
            call_id=call_id,
            name=text(function.get("name")),
            piece=piece,
        )


def _place(draft: Draft, call: Fields, call_id: str) -> tuple[int, int]:
    """Return where a call stands; without an index an id that is new opens the next."""
    if "index" in call:
        return (number(call["index"]), 0)
    return draft.place_of(call_id)


def _stopped(draft: Draft, reason: str) -> None:
    if not reason:
        return
    draft.close_all()
    if reason == "content_filter":
        draft.refuse(FILTERED)
    else:
        draft.stop(reason, REASONS)


def _count(draft: Draft, usage: object) -> None:
    said = fields(usage)
    draft.usage.input_tokens = number(said.get("prompt_tokens")) or draft.usage.input_tokens
    draft.usage.output_tokens = number(said.get("completion_tokens")) or draft.usage.output_tokens


OPENAI_CHAT = Dialect(
    name="openai-chat",
    path="/chat/completions",
    body=body,
    hear=hear,
    whole=whole,
    done=DONE,
)
