"""The scripted provider: what it refuses as the real ones do, and every mishap it can play."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import httpx2
import pytest

from landed.core.canonical import Json
from landed.testing.provider import Called, Protocol, Reply, ScriptedProvider
from landed.testing.provider_streams import PATHS

PATH_OF = {protocol: path for path, protocol in PATHS.items()}
HEAD: dict[str, Json] = {"model": "scripted-1", "max_tokens": 5}
USER: Json = {"role": "user", "content": "Hello."}


def use(*ids: str) -> Json:
    blocks: list[Json] = [{"type": "tool_use", "id": id, "name": "ls", "input": {}} for id in ids]
    return {"role": "assistant", "content": blocks}


def result(*ids: str, text: str = "") -> Json:
    blocks: list[Json] = [{"type": "tool_result", "tool_use_id": id, "content": "1"} for id in ids]
    return {
        "role": "user",
        "content": [*blocks, *([{"type": "text", "text": text}] if text else [])],
    }


def calls(*ids: str) -> Json:
    function: Json = {"name": "ls", "arguments": "{}"}
    made: list[Json] = [{"type": "function", "id": id, "function": function} for id in ids]
    return {"role": "assistant", "content": None, "tool_calls": made}


def tool(id: str) -> Json:
    return {"role": "tool", "tool_call_id": id, "content": "1"}


def call(id: str) -> Json:
    return {"type": "function_call", "call_id": id, "name": "ls", "arguments": "{}"}


def output(id: str) -> Json:
    return {"type": "function_call_output", "call_id": id, "output": "1"}


EMPTY: Json = {"role": "assistant", "content": ""}

TAKEN: list[tuple[Protocol, list[Json]]] = [
    ("anthropic", [USER]),
    ("anthropic", [USER, use("a", "b"), result("b", "a", text="and?")]),
    ("openai-chat", [USER, calls("a", "b"), tool("b"), tool("a"), USER]),
    ("openai-responses", [USER, call("a"), call("b"), output("a"), output("b")]),
]

REFUSED: list[tuple[Protocol, list[Json], str]] = [
    ("anthropic", [], "at least one message"),
    ("anthropic", [USER, use("a", "b"), result("a")], "without `tool_result`"),
    ("anthropic", [USER, use("a"), USER], "without `tool_result`"),
    ("anthropic", [USER, use("a"), USER, result("a")], "without `tool_result`"),
    ("anthropic", [USER, result("a")], "unexpected `tool_use_id`"),
    ("anthropic", [USER, use("a"), result("a", "a")], "a single result"),
    ("anthropic", [USER, use("a"), result("a"), use("a"), result("a")], "must be unique"),
    ("anthropic", [USER, {"role": "assistant", "content": []}, USER], "non-empty content"),
    ("anthropic", [USER, use("a")], "prefill"),
    ("anthropic", [{"role": "user", "content": [{"type": "text", "text": " "}]}], "non-whitespace"),
    ("openai-chat", [USER, calls("a", "b"), tool("a")], "did not have response messages: b"),
    ("openai-chat", [USER, calls("a"), USER, tool("a")], "did not have response messages: a"),
    ("openai-chat", [USER, tool("a")], "must be a response"),
    ("openai-chat", [USER, EMPTY, USER], "needs 'content'"),
    ("openai-responses", [USER, call("a")], "No tool output found for function call a."),
    ("openai-responses", [USER, output("a")], "No tool call found"),
    ("openai-responses", [USER, EMPTY], "empty"),
]


async def post(
    there: ScriptedProvider, protocol: Protocol, messages: Sequence[Json] = (USER,), **more: Any
) -> httpx2.Response:
    name = "input" if protocol == "openai-responses" else "messages"
    body = {**HEAD, name: list(messages), **more}
    async with httpx2.AsyncClient(timeout=None) as client:
        return await client.post(there.url + PATH_OF[protocol], json=body)


def answered(protocol: Protocol, messages: Sequence[Json], **more: Any) -> tuple[int, str]:
    async def program() -> tuple[int, str]:
        async with ScriptedProvider(Reply(text="Yes.")) as there:
            reply = await post(there, protocol, messages, **more)
            return reply.status_code, reply.text

    return asyncio.run(program())


@pytest.mark.parametrize(("protocol", "messages"), TAKEN)
def test_it_takes_what_the_real_ones_take(protocol: Protocol, messages: list[Json]) -> None:
    assert answered(protocol, messages)[0] == 200


@pytest.mark.parametrize(("protocol", "messages", "why"), REFUSED)
def test_it_refuses_what_they_refuse(protocol: Protocol, messages: list[Json], why: str) -> None:
    status, says = answered(protocol, messages)

    assert status == 400
    assert why in json.loads(says)["error"]["message"]


def test_anthropic_takes_no_temperature_any_more() -> None:
    assert answered("anthropic", [USER], temperature=1.0)[0] == 400
    assert answered("openai-chat", [USER], temperature=1.0)[0] == 200


def test_a_script_is_played_in_order_and_then_for_ever_or_not_at_all() -> None:
    async def program() -> None:
        async with ScriptedProvider(Reply(status=429, headers={"retry-after": "3"})) as there:
            there.say(Reply(status=529, says="Overloaded"))
            first, second, third = [await post(there, "anthropic") for _ in range(3)]
            assert (first.status_code, first.headers["retry-after"]) == (429, "3")
            assert second.json()["error"] == {"type": "overloaded_error", "message": "Overloaded"}
            assert (third.status_code, "no reply" in third.text) == (500, True)
        async with ScriptedProvider(forever=Reply(text="Yes.")) as there:
            assert [(await post(there, "openai-chat")).status_code for _ in range(3)] == [200] * 3

    asyncio.run(program())


def test_requests_are_kept_as_they_came_and_another_path_is_none() -> None:
    async def program() -> None:
        async with ScriptedProvider(Reply(text="Yes."), key="sk-1") as there:
            async with httpx2.AsyncClient() as client:
                other = await client.post(f"{there.url}/v1/files", json={})
                refused = await client.post(f"{there.openai_url}/responses", json=HEAD)
                head = {"x-api-key": "sk-1"}
                body = {**HEAD, "messages": [USER]}
                taken = await client.post(f"{there.url}/v1/messages", json=body, headers=head)
            statuses = [each.status_code for each in (other, refused, taken)]
            assert (statuses, there.connections) == ([404, 401, 200], 1)
            assert [each.protocol for each in there.received] == ["openai-responses", "anthropic"]
            assert there.received[1].body == body
            assert there.received[1].headers["x-api-key"] == "sk-1"

    asyncio.run(program())


@pytest.mark.parametrize("protocol", PATH_OF)
def test_a_cut_breaks_the_connection_and_a_silence_ends_when_the_client_leaves(
    protocol: Protocol,
) -> None:
    whole = Reply(text="Yes.", calls=(Called(id="a", name="ls"),))

    async def program() -> None:
        async with ScriptedProvider(whole) as there:
            body = (await post(there, protocol)).content
            there.say(Reply(text="Yes.", calls=whole.calls, cut_at=len(body) - 1))
            with pytest.raises(httpx2.RemoteProtocolError):
                await post(there, protocol)
            there.say(Reply(text="Yes.", silent_at=20))
            asking = asyncio.ensure_future(post(there, protocol))
            received = await there.came(3)
            assert not received.left.is_set()
            asking.cancel()
            await received.left.wait()
            there.say(Reply(text="Yes.", silent_at=0))
            asking = asyncio.ensure_future(post(there, protocol))
            await there.came(4)
        # The provider is closed, so the client that still waited is let go.
        with pytest.raises(httpx2.TransportError):
            await asking

    asyncio.run(program())
