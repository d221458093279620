"""What providers refuse about a request, so that a test meets the refusal and not a user.

Each check looks at the outgoing body as the real service does, and says why it refuses it.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from landed.testing.provider_streams import Protocol
from landed.testing.provider_thoughts import unsealed

Body = Mapping[str, object]

_REMOVED = ("temperature", "top_p", "top_k")


def refusal_of(protocol: Protocol, body: Body) -> str:
    """Return why the service refuses this request, "" where it takes it."""
    if not isinstance(body.get("model"), str):
        return "model: Field required"
    return next(_CHECKS[protocol](body), "")


def _listed(value: object) -> list[Body]:
    if not isinstance(value, Sequence) or isinstance(value, str):
        return []
    return [
        cast("Body", one) for one in cast("Sequence[object]", value) if isinstance(one, Mapping)
    ]


def _anthropic(body: Body) -> Iterator[str]:
    yield from (f"{name}: Extra inputs are not permitted" for name in _REMOVED if name in body)
    if not isinstance(body.get("max_tokens"), int):
        yield "max_tokens: Field required"
    messages = _listed(body.get("messages"))
    if not messages:
        yield "messages: at least one message is required"
    elif messages[-1].get("role") == "assistant":
        yield "This model does not support assistant message prefill."
    owed: list[str] = []
    every: list[str] = []
    for number, message in enumerate(messages):
        blocks = _listed(message.get("content"))
        yield from _anthropic_blocks(number, message, blocks)
        results = [str(one["tool_use_id"]) for one in blocks if one.get("type") == "tool_result"]
        yield from _answered(number, owed, results)
        owed = [str(one["id"]) for one in blocks if one.get("type") == "tool_use"]
        every += owed
    yield from _answered(len(messages), owed, [])
    yield from _thinks_first(body, messages)
    if len(set(every)) < len(every):
        yield "messages: `tool_use` ids must be unique"


def _anthropic_blocks(number: int, message: Body, blocks: list[Body]) -> Iterator[str]:
    if not blocks and not message.get("content"):
        yield f"messages.{number}: all messages must have non-empty content"
    kinds = [str(one.get("type")) for one in blocks]
    if "tool_result" in kinds and kinds != sorted(kinds, key=lambda kind: kind != "tool_result"):
        yield f"messages.{number}: `tool_result` blocks must come first in the content"
    for place, one in enumerate(blocks):
        if one.get("type") == "text" and not str(one.get("text", "")).strip():
            yield f"messages.{number}: text content blocks must contain non-whitespace text"
        if not _is_sealed(one):
            seal = "signature" if one["type"] == "thinking" else "data"
            yield f"messages.{number}.content.{place}: Invalid `{seal}` in `{one['type']}` block"


def _is_sealed(block: Body) -> bool:
    """Whether a block is no thought, or one that is as it was."""
    match block.get("type"):
        case "thinking":
            thought = unsealed(block.get("signature"))
            return thought is not None and block.get("thinking") in ("", thought)
        case "redacted_thinking":
            return unsealed(block.get("data")) is not None
        case _:
            return True


def _thinks_first(body: Body, messages: list[Body]) -> Iterator[str]:
    """Yield where the last turn of a model that was made to think has lost its thoughts."""
    thinking = body.get("thinking")
    enabled = isinstance(thinking, Mapping) and cast("Body", thinking).get("type") == "enabled"
    if not enabled or len(messages) < 2:
        return
    last, before = (_listed(message.get("content")) for message in (messages[-1], messages[-2]))
    first = str(before[0].get("type")) if before else ""
    has_results = any(one.get("type") == "tool_result" for one in last)
    if has_results and first not in ("thinking", "redacted_thinking"):
        yield (
            f"messages.{len(messages) - 2}.content.0.type: Expected `thinking` or "
            f"`redacted_thinking`, but found `{first}`. When `thinking` is enabled, a final "
            "`assistant` message must start with a thinking block"
        )


def _answered(number: int, owed: list[str], results: list[str]) -> Iterator[str]:
    missing = [one for one in owed if one not in results]
    if missing:
        yield (
            f"messages.{number - 1}: `tool_use` ids were found without `tool_result` blocks "
            f"immediately after: {', '.join(missing)}"
        )
    for one in results:
        if one not in owed:
            yield f"messages.{number}: unexpected `tool_use_id` in `tool_result`: {one}"
    if len(set(results)) < len(results):
        yield f"messages.{number}: each tool_use must have a single result"


def _chat(body: Body) -> Iterator[str]:
    owed: list[str] = []
    for number, message in enumerate(_listed(body.get("messages"))):
        role = message.get("role")
        if role == "tool":
            call_id = str(message.get("tool_call_id"))
            if call_id not in owed:
                yield "messages with role 'tool' must be a response to a preceding 'tool_calls'"
            else:
                owed.remove(call_id)
            continue
        yield from _unanswered(owed)
        calls = _listed(message.get("tool_calls"))
        owed = [str(call.get("id")) for call in calls]
        if role == "assistant" and not message.get("content") and not calls:
            yield f"messages.{number}: an assistant message needs 'content' or 'tool_calls'"
    yield from _unanswered(owed)


def _unanswered(owed: list[str]) -> Iterator[str]:
    if owed:
        yield (
            "An assistant message with 'tool_calls' must be followed by tool messages responding "
            "to each 'tool_call_id'. The following tool_call_ids did not have response messages: "
            + ", ".join(owed)
        )


def _responses(body: Body) -> Iterator[str]:
    items = _listed(body.get("input"))
    outputs = [one.get("call_id") for one in items if one.get("type") == "function_call_output"]
    calls = [one.get("call_id") for one in items if one.get("type") == "function_call"]
    for call_id in calls:
        if call_id not in outputs:
            yield f"No tool output found for function call {call_id}."
    for call_id in outputs:
        if call_id not in calls:
            yield f"No tool call found for function call output with call_id {call_id}."
    for number, one in enumerate(items):
        if one.get("role") == "assistant" and not one.get("content"):
            yield f"Invalid 'input[{number}].content': empty"
        if one.get("type") == "reasoning":
            yield from _reasoning(number, one, items[number + 1 :])


def _reasoning(number: int, item: Body, after: list[Body]) -> Iterator[str]:
    if "summary" not in item:
        yield f"Missing required parameter: 'input[{number}].summary'."
    if item.get("content"):
        yield f"Invalid 'input[{number}].content': array too long."
    if unsealed(item.get("encrypted_content")) is None:
        yield f"The encrypted content for item {item.get('id')} could not be verified."
    kinds = [(one.get("type"), one.get("role")) for one in after]
    said = next((kind for kind in kinds if kind[0] != "reasoning"), None)
    if said is None or (said[0] != "function_call" and said[1] != "assistant"):
        yield (
            f"Item '{item.get('id')}' of type 'reasoning' was provided without its required "
            "following item."
        )


_CHECKS = {"anthropic": _anthropic, "openai-chat": _chat, "openai-responses": _responses}
