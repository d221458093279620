"""The Responses dialect of OpenAI; nothing is stored there, each request says everything."""

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
from landed.agent.providers.draft import FILTERED, Draft
from landed.core.canonical import Json, canonical, checked

NAME = "openai-responses"

REASONS: dict[str, StopReason] = {"completed": "stop", "max_output_tokens": "length"}


def body(asked: Asked) -> dict[str, Json]:
    """Write the request. That a result is an error stands in its text only."""
    written: dict[str, Json] = {"model": asked.model, "stream": True, "store": False}
    if asked.system:
        written["instructions"] = asked.system
    written["input"] = [item for message in asked.messages for item in _items(message, asked)]
    if asked.tools:
        # `strict` would rewrite the schema; arguments are checked where they are used.
        written["tools"] = [
            {
                "type": "function",
                "name": tool["name"],
                "description": tool["description"],
                "parameters": checked(tool["parameters"]),
                "strict": False,
            }
            for tool in asked.tools
        ]
    return {**written, **asked.more}


def _items(message: Message, asked: Asked) -> Iterator[Json]:
    if message["role"] == "toolResult":
        yield {
            "type": "function_call_output",
            "call_id": message["tool_call_id"],
            "output": message["content"],
        }
    elif message["role"] == "assistant":
        for block in message["content"]:
            yield from _item(block, asked)
    else:
        yield {"role": "user", "content": message["content"]}


def _item(block: Block, asked: Asked) -> Iterator[Json]:
    if block["type"] == "text":
        yield {"role": "assistant", "content": block["text"]}
    elif block["type"] == "toolCall":
        yield {
            "type": "function_call",
            "call_id": block["id"],
            "name": block["name"],
            "arguments": canonical(checked(block["arguments"])).decode(),
        }
    elif given := given_back(block, NAME, asked):
        yield given


def hear(draft: Draft, event: Fields) -> None:
    """Take one event of the stream; events and items of kinds not known here are passed over."""
    place = (number(event.get("output_index")), number(event.get("content_index")))
    match event.get("type"):
        case "response.output_text.delta" | "response.refusal.delta":
            draft.say(place, text(event.get("delta")))
        case "response.output_item.added":
            _open(draft, place, fields(event.get("item")))
        case "response.function_call_arguments.delta":
            draft.add(place, text(event.get("delta")))
        case "response.output_item.done":
            _closed(draft, place, fields(event.get("item")))
        case "response.completed" | "response.incomplete" | "response.failed":
            _ended(draft, fields(event.get("response")))
        case "error":
            # The reference has the fields on the event itself; some servers nest them.
            raise failed(event.get("error") or {**event, "type": event.get("code")})
        case _:
            pass


def whole(draft: Draft, reply: Fields) -> None:
    """Take a reply that was not streamed."""
    for index, item in enumerate(objects(reply.get("output"))):
        _open(draft, (index, 0), item)
        parts = [] if item.get("type") == "reasoning" else objects(item.get("content"))
        for number_of, part in enumerate(parts):
            draft.say((index, number_of), text(part.get("text")) or text(part.get("refusal")))
        _closed(draft, (index, 0), item)
    _ended(draft, reply)


def _open(draft: Draft, place: tuple[int, int], item: Fields) -> None:
    if item.get("type") == "function_call":
        draft.call(place, call_id=text(item.get("call_id")), name=text(item.get("name")))


def _closed(draft: Draft, place: tuple[int, int], item: Fields) -> None:
    if item.get("status") not in ("completed", None):
        return
    if item.get("type") == "function_call":
        _open(draft, place, item)
        draft.close(place, text(item.get("arguments")))
    elif item.get("type") == "reasoning" and text(item.get("encrypted_content")):
        # Only these four are taken back: `content` is refused, and so was `status`.
        summary = objects(item.get("summary"))
        back = {name: item.get(name) for name in ("type", "id", "encrypted_content")}
        words = "\n\n".join(text(part.get("text")) for part in summary)
        draft.think(place, words, payload=kept({**back, "summary": summary}))
        draft.close(place)


def _ended(draft: Draft, response: Fields) -> None:
    usage = fields(response.get("usage"))
    draft.usage.input_tokens = number(usage.get("input_tokens"))
    draft.usage.output_tokens = number(usage.get("output_tokens"))
    draft.over = True
    status = text(response.get("status"))
    why = text(fields(response.get("incomplete_details")).get("reason"))
    if response.get("error") or status == "failed":
        raise failed(response.get("error"))
    if why == "content_filter":
        draft.refuse(FILTERED)
    else:
        draft.stop(why or status, REASONS)


OPENAI_RESPONSES = Dialect(
    name=NAME,
    path="/responses",
    body=body,
    hear=hear,
    whole=whole,
)
