"""A conversation becomes a request that each provider takes, and one it refuses is never sent."""

import asyncio
from typing import Any

import pytest

from landed.agent.messages import (
    Message,
    assistant_message,
    error_message,
    text_block,
    tool_result,
    user_message,
)
from landed.testing.provider import Protocol, Reply, ScriptedProvider
from tests.agent.speaking import ASKED, BOTH_SAID, LIST, PROTOCOLS, READ, TALK, model_of, said

READ_TEXT = '{"lines":[1,2.5,null,true],"path":"naïve.py"}'


async def sent(protocol: Protocol, messages: list[Message], **options: Any) -> dict[str, Any]:
    async with ScriptedProvider(Reply(text="Yes.")) as there:
        reply = await said(protocol, there, messages=messages, **options)
        assert reply == assistant_message(text_block("Yes."))
        return {**there.received[0].body, "headers": there.received[0].headers}


def test_anthropic_gets_results_first_in_the_turn_behind_their_calls() -> None:
    body = asyncio.run(sent("anthropic", TALK))

    assert body["headers"]["anthropic-version"] == "2026-10-21"
    assert (body["system"], body["stream"], body["max_tokens"]) == ("Be brief.", True, 8192)
    assert [tool["name"] for tool in body["tools"]] == ["read"]
    assert body["tools"][0]["input_schema"] == {"type": "object", "properties": {}}
    assert body["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "What is in naïve.py?"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "Ich schaue nach: 🎉\nnaïve."},
                {"type": "tool_use", "id": "c1", "name": "read", "input": READ["arguments"]},
                {"type": "tool_use", "id": "c2", "name": "ls", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": "é = 1", "is_error": False},
                {
                    "type": "tool_result",
                    "tool_use_id": "c2",
                    "content": "no such directory",
                    "is_error": True,
                },
                {"type": "text", "text": "Go on."},
            ],
        },
    ]


def test_chat_completions_gets_each_result_as_a_message_behind_the_calls() -> None:
    body = asyncio.run(sent("openai-chat", TALK))

    assert (body["stream"], body["stream_options"]) == (True, {"include_usage": True})
    assert body["tools"][0]["function"]["name"] == "read"
    system, user, assistant, *results, last = body["messages"]
    assert system == {"role": "system", "content": "Be brief."}
    assert (user["role"], last) == ("user", {"role": "user", "content": "Go on."})
    assert assistant["content"] == "Ich schaue nach: 🎉\nnaïve."
    assert assistant["tool_calls"] == [
        {"type": "function", "id": "c1", "function": {"name": "read", "arguments": READ_TEXT}},
        {"type": "function", "id": "c2", "function": {"name": "ls", "arguments": "{}"}},
    ]
    assert results == [
        {"role": "tool", "tool_call_id": "c1", "content": "é = 1"},
        {"role": "tool", "tool_call_id": "c2", "content": "no such directory"},
    ]


def test_responses_gets_items_and_stores_nothing() -> None:
    body = asyncio.run(sent("openai-responses", TALK))

    assert (body["instructions"], body["store"], body["stream"]) == ("Be brief.", False, True)
    assert (body["tools"][0]["name"], body["tools"][0]["strict"]) == ("read", False)
    assert body["input"] == [
        {"role": "user", "content": "What is in naïve.py?"},
        {"role": "assistant", "content": "Ich schaue nach: 🎉\nnaïve."},
        {"type": "function_call", "call_id": "c1", "name": "read", "arguments": READ_TEXT},
        {"type": "function_call", "call_id": "c2", "name": "ls", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "é = 1"},
        {"type": "function_call_output", "call_id": "c2", "output": "no such directory"},
        {"role": "user", "content": "Go on."},
    ]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_more_adds_to_the_request_or_replaces_what_it_has(protocol: Protocol) -> None:
    body = asyncio.run(sent(protocol, ASKED, more={"model": "other", "max_tokens": 5}))

    assert (body["model"], body["max_tokens"]) == ("other", 5)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_half_a_character_in_a_result_does_not_block_the_conversation(protocol: Protocol) -> None:
    results = [tool_result(READ, "caf\udce9.txt"), tool_result(LIST, "")]

    body = asyncio.run(sent(protocol, [*ASKED, BOTH_SAID, *results]))

    assert "caf?.txt" in str(body)


BAD: dict[str, list[Message]] = {
    "a call without its result": [*ASKED, BOTH_SAID, tool_result(READ, "1"), user_message("?")],
    "a result too late": [*ASKED, assistant_message(READ), *ASKED, tool_result(READ, "1")],
    "a result of nothing": [*ASKED, tool_result(READ, "1")],
    "an empty assistant message": [*ASKED, error_message("no"), *ASKED],
}


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("bad", BAD)
def test_a_request_that_providers_refuse_is_not_even_sent(protocol: Protocol, bad: str) -> None:
    async def program() -> None:
        async with ScriptedProvider(forever=Reply(text="Yes.")) as there:
            reply = await said(protocol, there, messages=BAD[bad])

            assert reply["stop_reason"] == "error"
            assert "this conversation can't be sent" in reply.get("error_message", "")
            assert there.received == []

    asyncio.run(program())


def test_a_model_shows_neither_key_nor_path() -> None:
    async def program() -> str:
        async with ScriptedProvider() as there:
            return repr(model_of("anthropic", there, key=lambda: "sk-canary"))

    assert asyncio.run(program()) == "<anthropic 'scripted-1' at 127.0.0.1>"
