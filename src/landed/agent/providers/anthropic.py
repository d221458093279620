"""The Messages dialect of Anthropic, version 2026-10-21, as requests and as stream."""

from collections.abc import Iterator

from landed.agent.messages import Block, Message, StopReason
from landed.agent.providers.dialect import (
    Asked,
    Dialect,
    Fields,
    failed,
    fields,
    given_back,
    kept,
    number,
    objects,
    text,
)
from landed.agent.providers.draft import Draft
from landed.core.canonical import Json, canonical, checked

NAME = "anthropic"

VERSION = "2026-10-21"
"""The `anthropic-version` that is spoken. It takes no temperature, top_p or top_k."""

MAX_TOKENS = 8192
"""How long a reply may be, unless `more` says `max_tokens`: this dialect wants a number."""

REASONS: dict[str, StopReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
}


def body(asked: Asked) -> dict[str, Json]:
    """Write the request. Neighbours of one role are joined, results before what was said."""
    written: dict[str, Json] = {"model": asked.model, "max_tokens": MAX_TOKENS, "stream": True}
    if asked.system:
        written["system"] = asked.system
    written["messages"] = _joined(asked)
    if asked.tools:
        written["tools"] = [
            {
                "name": tool["name"],
                "description": tool["description"],
                "input_schema": checked(tool["parameters"]),
            }
            for tool in asked.tools
        ]
    return {**written, **asked.more}


def _joined(asked: Asked) -> list[Json]:
    joined: list[tuple[str, list[Json]]] = []
    for message in asked.messages:
        role = "assistant" if message["role"] == "assistant" else "user"
        if not joined or joined[-1][0] != role:
            joined.append((role, []))
        joined[-1][1].extend(_blocks(message, asked))
    return [{"role": role, "content": content} for role, content in joined]


def _blocks(message: Message, asked: Asked) -> Iterator[Json]:
    if message["role"] == "toolResult":
        yield {
            "type": "tool_result",
            "tool_use_id": message["tool_call_id"],
            "content": message["content"],
            "is_error": message["is_error"],
        }
    elif message["role"] == "assistant":
        for block in message["content"]:
            yield from _block(block, asked)
    else:
        yield {"type": "text", "text": message["content"]}


def _block(block: Block, asked: Asked) -> Iterator[Json]:
    if block["type"] == "thinking":
        thought = given_back(block, NAME, asked)
        if thought.get("type") == "thinking":
            yield {"signature": "", **thought, "thinking": block["text"]}
        elif thought:
            yield thought
    elif block["type"] == "toolCall":
        given = checked(block["arguments"])
        yield {"type": "tool_use", "id": block["id"], "name": block["name"], "input": given}
    elif block["text"].strip():
        yield {"type": "text", "text": block["text"]}


def hear(draft: Draft, event: Fields) -> None:
    """Take one event of the stream; events and blocks of kinds not known here are passed over."""
    place = (number(event.get("index")), 0)
    match event.get("type"):
        case "message_start":
            _count(draft, fields(event.get("message")).get("usage"))
        case "content_block_start":
            _open(draft, place, fields(event.get("content_block")))
        case "content_block_delta":
            _add(draft, place, fields(event.get("delta")))
        case "content_block_stop":
            draft.close(place)
        case "message_delta":
            _count(draft, event.get("usage"))
            _stopped(draft, fields(event.get("delta")))
        case "message_stop":
            draft.over = True
        case "error":
            raise failed(event.get("error"))
        case _:
            pass


def whole(draft: Draft, reply: Fields) -> None:
    """Take a reply that was not streamed."""
    if reply.get("type") == "error":
        raise failed(reply.get("error"))
    for index, block in enumerate(objects(reply.get("content"))):
        _open(draft, (index, 0), block)
        draft.close((index, 0))
    _count(draft, reply.get("usage"))
    _stopped(draft, reply)
    draft.over = True


def _open(draft: Draft, place: tuple[int, int], block: Fields) -> None:
    if block.get("type") == "text":
        draft.say(place, text(block.get("text")))
    elif block.get("type") == "tool_use":
        # A stream opens with an empty input; one that is not empty is all there is.
        given = fields(block.get("input"))
        piece = canonical(checked(given)).decode() if given else ""
        call_id, name = text(block.get("id")), text(block.get("name"))
        draft.call(place, call_id=call_id, name=name, piece=piece)
    elif block.get("type") in ("thinking", "redacted_thinking"):
        # The text is kept once, beside what else the block has.
        draft.think(place, text(block.get("thinking")), payload=kept(block, without="thinking"))


def _add(draft: Draft, place: tuple[int, int], delta: Fields) -> None:
    if delta.get("type") == "text_delta":
        draft.say(place, text(delta.get("text")))
    elif delta.get("type") == "input_json_delta":
        draft.add(place, text(delta.get("partial_json")))
    elif delta.get("type") == "thinking_delta":
        draft.think(place, text(delta.get("thinking")))
    elif delta.get("type") == "signature_delta":
        draft.think(place, signature=text(delta.get("signature")))


def _stopped(draft: Draft, said: Fields) -> None:
    reason = text(said.get("stop_reason"))
    if reason == "refusal":
        why = text(fields(said.get("stop_details")).get("explanation"))
        draft.refuse(
            f"the model refused to answer: {why}" if why else "the model refused to answer"
        )
    elif reason:
        draft.stop(reason, REASONS)


def _count(draft: Draft, usage: object) -> None:
    said = fields(usage)
    draft.usage.input_tokens = number(said.get("input_tokens")) or draft.usage.input_tokens
    draft.usage.output_tokens = number(said.get("output_tokens")) or draft.usage.output_tokens


ANTHROPIC = Dialect(
    name=NAME,
    path="/v1/messages",
    body=body,
    hear=hear,
    whole=whole,
    headers={"anthropic-version": VERSION},
)
