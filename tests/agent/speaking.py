"""What the tests of providers share: a model in each dialect over a script, and a conversation."""

from collections.abc import Callable, Sequence
from typing import Any

from landed.agent.messages import (
    AssistantMessage,
    Message,
    assistant_message,
    text_block,
    tool_call,
    tool_result,
    user_message,
)
from landed.agent.providers.model import ProviderModel, anthropic, openai_chat, openai_responses
from landed.agent.signal import CancelToken
from landed.agent.tool import ToolSpec
from landed.testing.provider import Called, Protocol, Reply, ScriptedProvider
from landed.testing.provider_inline import InlineProvider

PROTOCOLS: tuple[Protocol, ...] = ("anthropic", "openai-chat", "openai-responses")

MAKERS: dict[Protocol, Callable[..., ProviderModel]] = {
    "anthropic": anthropic,
    "openai-chat": openai_chat,
    "openai-responses": openai_responses,
}

READ = tool_call("c1", "read", {"path": "naïve.py", "lines": [1, 2.5, None, True]})
LIST = tool_call("c2", "ls")
BOTH = Reply(
    text="Ich schaue nach: 🎉\nnaïve.",
    calls=(
        Called(id="c1", name="read", arguments=READ["arguments"]),
        Called(id="c2", name="ls"),
    ),
)
BOTH_SAID = assistant_message(text_block(BOTH.text), READ, LIST)

ASKED: list[Message] = [user_message("What is in naïve.py?")]
SPECS: list[ToolSpec] = [
    {"name": "read", "description": "Reads.", "parameters": {"type": "object", "properties": {}}}
]
TALK: list[Message] = [
    *ASKED,
    BOTH_SAID,
    tool_result(READ, "é = 1"),
    tool_result(LIST, "no such directory", is_error=True),
    user_message("Go on."),
]


def model_of(
    protocol: Protocol, there: ScriptedProvider | InlineProvider, **options: Any
) -> ProviderModel:
    if isinstance(there, ScriptedProvider):
        options["url"] = there.url_of(protocol)
    else:
        options["transport"] = there
        options["url"] = "http://scripted" + ("" if protocol == "anthropic" else "/v1")
    return MAKERS[protocol]("scripted-1", **{"key": None, **options})


async def said(
    protocol: Protocol,
    there: ScriptedProvider | InlineProvider,
    *,
    messages: Sequence[Message] = ASKED,
    signal: CancelToken | None = None,
    **options: Any,
) -> AssistantMessage:
    """Ask a model of its own once."""
    model = model_of(protocol, there, **options)
    try:
        return await model("Be brief.", messages, SPECS, signal)
    finally:
        await model.aclose()
