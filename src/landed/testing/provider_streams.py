"""What a scripted provider sends: one reply as each protocol streams it, or says it whole.

The forms were compared with the types of the official SDKs (openai 3.57, anthropic 2.14).
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from landed.core.canonical import Json
from landed.testing.provider_thoughts import Thought

Protocol = Literal["anthropic", "openai-chat", "openai-responses"]

PATHS: Mapping[str, Protocol] = {
    "/v1/messages": "anthropic",
    "/v1/chat/completions": "openai-chat",
    "/v1/responses": "openai-responses",
}

KINDS: Mapping[int, str] = {
    400: "invalid_request_error",
    401: "authentication_error",
    404: "not_found_error",
    429: "rate_limit_error",
    529: "overloaded_error",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """A call of a tool; arguments that are a text are sent as they are, JSON or not."""

    id: str
    name: str
    arguments: Mapping[str, Json] | str = field(default_factory=dict[str, Json])

    @property
    def text(self) -> str:
        """The arguments as they travel."""
        given = self.arguments
        return given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One reply of a script: what the model says, and what the network does to it.

    text, calls   what it says
    thoughts      what it thinks before that
    stop          why it ends, in the protocol's own word; "" for the usual one
    piece_chars   characters of text or arguments in one event
    status        of a refusal, with `says`; `headers` come with any reply
    whole         one JSON object instead of a stream
    raw           this body instead of what the protocol would say, as a stream
    fails_after   after so many events of the stream an event says that the provider is overloaded
    cut_at        after so many bytes of the body the connection is closed
    silent_at     after so many bytes nothing more comes, until the client leaves
    chunk_bytes   bytes sent at a time, so that characters are split; 0 for an event at a time
    newline       what ends a line; `comments` and `pings` stand between the events where asked for
    usage         the tokens counted, in and out
    """

    text: str = ""
    calls: Sequence[Called] = ()
    thoughts: Sequence[Thought] = ()
    stop: str = ""
    piece_chars: int = 7
    status: int = 200
    says: str = "no"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    whole: bool = False
    raw: bytes | None = None
    fails_after: int | None = None
    cut_at: int | None = None
    silent_at: int | None = None
    chunk_bytes: int = 0
    newline: str = "\n"
    comments: bool = False
    pings: bool = False
    usage: tuple[int, int] = (11, 7)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Frame:
    name: str
    says: str


def body_of(protocol: Protocol, reply: Reply) -> list[bytes]:
    """Return the body of a reply, event by event."""
    if reply.raw is not None:
        return [reply.raw]
    if reply.status != 200:
        return [json.dumps(error_of(protocol, reply.status, reply.says)).encode()]
    if reply.whole:
        return [json.dumps(_WHOLES[protocol](reply), ensure_ascii=False).encode()]
    frames = list(_STREAMS[protocol](reply))
    if reply.fails_after is not None:
        frames = [*frames[: reply.fails_after], _failure(protocol)]
    return [_written(protocol, frame, reply) for frame in frames]


def is_json(reply: Reply) -> bool:
    """Whether the body is one JSON object: a refusal, or a reply that is not streamed."""
    return reply.raw is None and (reply.whole or reply.status != 200)


def chunks_of(protocol: Protocol, reply: Reply) -> list[bytes]:
    """Return the body as it is sent, up to where it is cut or falls silent."""
    events = body_of(protocol, reply)
    ends = [end for end in (reply.cut_at, reply.silent_at) if end is not None]
    if not ends and not reply.chunk_bytes:
        return events
    body = b"".join(events)[: min(ends, default=None)]
    size = reply.chunk_bytes or max(len(body), 1)
    return [body[at : at + size] for at in range(0, len(body), size)]


def error_of(protocol: Protocol, status: int, says: str) -> Json:
    """Return how a protocol says that a request is refused."""
    kind = KINDS.get(status, "api_error" if protocol == "anthropic" else "server_error")
    if protocol == "anthropic":
        return {"type": "error", "error": {"type": kind, "message": says}, "request_id": "req_1"}
    return {"error": {"message": says, "type": kind, "param": None, "code": None}}


def _failure(protocol: Protocol) -> _Frame:
    error = {"type": "overloaded_error", "message": "Overloaded"}
    if protocol == "openai-responses":
        return _frame("error", code="server_error", message="Overloaded", param=None)
    name = "error" if protocol == "anthropic" else ""
    return _Frame(name=name, says=json.dumps({"type": "error", "error": error}))


def _written(protocol: Protocol, frame: _Frame, reply: Reply) -> bytes:
    lines = [f"event: {frame.name}"] if frame.name else []
    lines += [f"data: {frame.says}", ""]
    if reply.comments:
        lines = [": keep-alive", *lines]
    if reply.pings:
        ping = (
            ["event: ping", 'data: {"type": "ping"}', ""] if protocol == "anthropic" else [":", ""]
        )
        lines = [*ping, *lines]
    return "".join(line + reply.newline for line in lines).encode()


def _frame(kind: str, **values: Json) -> _Frame:
    return _Frame(name=kind, says=json.dumps({"type": kind, **values}, ensure_ascii=False))


def _pieces(text: str, reply: Reply) -> list[str]:
    size = max(reply.piece_chars, 1)
    return [text[at : at + size] for at in range(0, len(text), size)]


def _anthropic(reply: Reply) -> Iterator[_Frame]:
    usage: Json = {"input_tokens": reply.usage[0], "output_tokens": 1}
    begun: dict[str, Json] = {"content": [], "stop_reason": None, "usage": usage}
    opening: Json = {**_anthropic_head(), **begun}
    yield _frame("message_start", message=opening)
    for index, (block, deltas) in enumerate(_anthropic_blocks(reply)):
        yield _frame("content_block_start", index=index, content_block=block)
        for delta in deltas:
            yield _frame("content_block_delta", index=index, delta=delta)
        yield _frame("content_block_stop", index=index)
    ended: Json = {"stop_reason": _stop(reply, "tool_use", "end_turn"), "stop_sequence": None}
    yield _frame("message_delta", delta=ended, usage={"output_tokens": reply.usage[1]})
    yield _frame("message_stop")


def _anthropic_blocks(reply: Reply) -> Iterator[tuple[Json, list[Json]]]:
    """Yield each block as it opens, and what is added to it."""
    for thought in reply.thoughts:
        if thought.form == "redacted":
            yield _anthropic_thought(thought), []
            continue
        thinks: list[Json] = [
            {"type": "thinking_delta", "thinking": piece} for piece in _pieces(thought.shown, reply)
        ]
        signed: Json = {"type": "signature_delta", "signature": thought.seal}
        yield {"type": "thinking", "thinking": "", "signature": ""}, [*thinks, signed]
    if reply.text:
        pieces = _pieces(reply.text, reply)
        yield (
            {"type": "text", "text": ""},
            [{"type": "text_delta", "text": piece} for piece in pieces],
        )
    for call in reply.calls:
        yield (
            {"type": "tool_use", "id": call.id, "name": call.name, "input": {}},
            [
                {"type": "input_json_delta", "partial_json": piece}
                for piece in ["", *_pieces(call.text, reply)]
            ],
        )


def _anthropic_thought(thought: Thought) -> Json:
    if thought.form == "redacted":
        return {"type": "redacted_thinking", "data": thought.seal}
    return {"type": "thinking", "thinking": thought.shown, "signature": thought.seal}


def _anthropic_head() -> dict[str, Json]:
    return {"id": "msg_1", "type": "message", "role": "assistant", "model": "scripted"}


def _anthropic_whole(reply: Reply) -> Json:
    content = [_anthropic_thought(thought) for thought in reply.thoughts]
    content += [{"type": "text", "text": reply.text}] if reply.text else []
    for call in reply.calls:
        given: Json = json.loads(call.text)
        content.append({"type": "tool_use", "id": call.id, "name": call.name, "input": given})
    usage: Json = {"input_tokens": reply.usage[0], "output_tokens": reply.usage[1]}
    stop = _stop(reply, "tool_use", "end_turn")
    return {**_anthropic_head(), "content": content, "stop_reason": stop, "usage": usage}


def _chat(reply: Reply) -> Iterator[_Frame]:
    yield _chunk({"role": "assistant", "content": ""})
    for thought in reply.thoughts:
        # As servers of open models do; OpenAI's own show nothing here.
        yield _chunk({"reasoning_content": thought.shown})
    for piece in _pieces(reply.text, reply):
        yield _chunk({"content": piece})
    for index, call in enumerate(reply.calls):
        opening: Json = {"name": call.name, "arguments": ""}
        yield _chunk_call(index, {"id": call.id, "type": "function", "function": opening})
        for piece in _pieces(call.text, reply):
            yield _chunk_call(index, {"function": {"arguments": piece}})
    yield _chunk({}, stop=_stop(reply, "tool_calls", "stop"))
    usage = _chat_usage(reply)
    yield _Frame(name="", says=json.dumps({**_CHUNK, "choices": [], "usage": usage}))
    yield _Frame(name="", says="[DONE]")


_CHUNK: dict[str, Json] = {
    "id": "chatcmpl-1",
    "object": "chat.completion.chunk",
    "created": 1_790_000_000,
    "model": "scripted",
}


def _chunk(delta: Json, *, stop: str | None = None) -> _Frame:
    choices: Json = [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": stop}]
    chunk = {**_CHUNK, "choices": choices, "usage": None}
    return _Frame(name="", says=json.dumps(chunk, ensure_ascii=False))


def _chunk_call(index: int, given: dict[str, Json]) -> _Frame:
    return _chunk({"tool_calls": [{"index": index, **given}]})


def _chat_usage(reply: Reply) -> Json:
    given, made = reply.usage
    return {"prompt_tokens": given, "completion_tokens": made, "total_tokens": given + made}


def _chat_whole(reply: Reply) -> Json:
    calls: list[Json] = []
    for call in reply.calls:
        function: Json = {"name": call.name, "arguments": call.text}
        calls.append({"id": call.id, "type": "function", "function": function})
    message: dict[str, Json] = {"role": "assistant", "content": reply.text or None}
    if calls:
        message["tool_calls"] = calls
    stop = _stop(reply, "tool_calls", "stop")
    choice: Json = {"index": 0, "message": message, "logprobs": None, "finish_reason": stop}
    head = {**_CHUNK, "object": "chat.completion"}
    return {**head, "choices": [choice], "usage": _chat_usage(reply)}


def _responses(reply: Reply) -> Iterator[_Frame]:
    for number, (kind, values) in enumerate(_responses_events(reply)):
        yield _frame(kind, sequence_number=number, **values)


def _responses_events(reply: Reply) -> Iterator[tuple[str, dict[str, Json]]]:
    opening: Json = {**_RESPONSE, "status": "in_progress", "output": []}
    yield "response.created", {"response": opening}
    for index, item in enumerate(_items(reply)):
        begun: Json = {**item, **_EMPTIED[str(item["type"])], "status": "in_progress"}
        yield "response.output_item.added", {"output_index": index, "item": begun}
        at: dict[str, Json] = {"output_index": index, "item_id": item["id"]}
        yield from _within(item, at, reply)
        yield "response.output_item.done", {"output_index": index, "item": item}
    ended = _responses_whole(reply)
    yield f"response.{ended['status']}", {"response": ended}


_EMPTIED: dict[str, dict[str, Json]] = {
    "message": {"content": []},
    "function_call": {"arguments": ""},
    # The seal that comes here is not yet the one to send back.
    "reasoning": {"summary": [], "encrypted_content": "sealed:half"},
}


def _within(
    item: Mapping[str, Json], at: dict[str, Json], reply: Reply
) -> Iterator[tuple[str, dict[str, Json]]]:
    match item["type"]:
        case "message":
            yield from _part(reply, at)
        case "function_call":
            yield from _given(str(item["arguments"]), at, reply)
        case _:
            yield from _summarised(reply.thoughts[int(str(item["id"]).removeprefix("rs_"))], at)


def _summarised(thought: Thought, at: dict[str, Json]) -> Iterator[tuple[str, dict[str, Json]]]:
    if thought.shown:
        place: dict[str, Json] = {**at, "summary_index": 0}
        yield "response.reasoning_summary_text.delta", {**place, "delta": thought.shown}
        yield "response.reasoning_summary_text.done", {**place, "text": thought.shown}


def _part(reply: Reply, at: dict[str, Json]) -> Iterator[tuple[str, dict[str, Json]]]:
    place: dict[str, Json] = {**at, "content_index": 0}
    yield "response.content_part.added", {**place, "part": {**_TEXT, "text": ""}}
    for piece in _pieces(reply.text, reply):
        yield "response.output_text.delta", {**place, "delta": piece, "logprobs": []}
    yield "response.output_text.done", {**place, "text": reply.text, "logprobs": []}
    yield "response.content_part.done", {**place, "part": {**_TEXT, "text": reply.text}}


def _given(
    arguments: str, at: dict[str, Json], reply: Reply
) -> Iterator[tuple[str, dict[str, Json]]]:
    for piece in _pieces(arguments, reply):
        yield "response.function_call_arguments.delta", {**at, "delta": piece}
    yield "response.function_call_arguments.done", {**at, "arguments": arguments}


_TEXT: dict[str, Json] = {"type": "output_text", "text": "", "annotations": []}


_RESPONSE: dict[str, Json] = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1_790_000_000,
    "model": "scripted",
    "error": None,
    "incomplete_details": None,
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
}


def _items(reply: Reply) -> list[dict[str, Json]]:
    items: list[dict[str, Json]] = [
        {
            "type": "reasoning",
            "id": f"rs_{number}",
            "summary": [{"type": "summary_text", "text": one.shown}] if one.shown else [],
            "encrypted_content": one.seal,
        }
        for number, one in enumerate(reply.thoughts)
    ]
    if reply.text:
        part: Json = {**_TEXT, "text": reply.text}
        items.append({"type": "message", "id": "msg_0", "role": "assistant", "content": [part]})
    for call in reply.calls:
        named: dict[str, Json] = {"call_id": call.id, "name": call.name, "arguments": call.text}
        items.append({"type": "function_call", "id": f"fc_{len(items)}", **named})
    return [{**item, "status": "completed"} for item in items]


def _responses_whole(reply: Reply) -> dict[str, Json]:
    given, made = reply.usage
    usage: Json = {"input_tokens": given, "output_tokens": made, "total_tokens": given + made}
    status = "incomplete" if reply.stop else "completed"
    why: Json = {"reason": reply.stop} if reply.stop else None
    output: Json = list(_items(reply))
    ended: dict[str, Json] = {"status": status, "incomplete_details": why, "output": output}
    return {**_RESPONSE, **ended, "usage": usage}


def _stop(reply: Reply, with_calls: str, without: str) -> str:
    return reply.stop or (with_calls if reply.calls else without)


_STREAMS = {"anthropic": _anthropic, "openai-chat": _chat, "openai-responses": _responses}
_WHOLES = {
    "anthropic": _anthropic_whole,
    "openai-chat": _chat_whole,
    "openai-responses": _responses_whole,
}
