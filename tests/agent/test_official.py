"""Over the official SDKs the same comes of the same: replies, mishaps, patience, a stop, a thought.

What needs an SDK is marked `services`: only `make test-services` installs them.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from importlib import import_module
from typing import Any

import pytest

from landed.agent.harness import Harness
from landed.agent.messages import AssistantMessage, calls_of, text_of
from landed.agent.providers import official
from landed.agent.providers.draft import ReplyError
from landed.agent.providers.model import ProviderModel
from landed.agent.providers.patience import Backoff, Patience
from landed.agent.signal import CancelToken
from landed.testing.provider import Called, Protocol, Reply, ScriptedProvider, Thought
from landed.testing.provider_streams import body_of
from landed.testing.shapes import shape
from landed.testing.ticks import driven
from tests.agent.cutting import near_line_ends
from tests.agent.speaking import ASKED, BOTH, BOTH_SAID, PROTOCOLS, SPECS, TALK, model_of
from tests.agent.tools import reading

CANARY = "sk-canary-4711-do-not-show"
QUICK = {"backoff": Backoff(first_s=0.001)}

needs_sdks = pytest.mark.services
every_dialect = pytest.mark.parametrize("protocol", PROTOCOLS)

SDKS: dict[Protocol, tuple[str, str, Callable[..., ProviderModel]]] = {
    "anthropic": ("anthropic", "AsyncAnthropic", official.anthropic_sdk),
    "openai-chat": ("openai", "AsyncOpenAI", official.openai_chat_sdk),
    "openai-responses": ("openai", "AsyncOpenAI", official.openai_responses_sdk),
}


@asynccontextmanager
async def over_sdk(
    protocol: Protocol, there: ScriptedProvider, **options: Any
) -> AsyncIterator[ProviderModel]:
    package, maker, model = SDKS[protocol]
    client = getattr(import_module(package), maker)(base_url=there.url_of(protocol), api_key=CANARY)
    try:
        yield model("scripted-1", client=client, **{**QUICK, **options})
    finally:
        await client.close()


def ask(
    protocol: Protocol, *replies: Reply, **options: Any
) -> tuple[list[AssistantMessage], ScriptedProvider, str]:
    """Ask until the script is used up; return the replies, the provider, and the last status."""

    async def program() -> tuple[list[AssistantMessage], ScriptedProvider, str]:
        said: list[AssistantMessage] = []
        async with ScriptedProvider(*replies) as there, over_sdk(protocol, there, **options) as it:
            while len(there.received) < len(replies):
                said.append(await it("Be brief.", ASKED, SPECS))
            return said, there, it.status

    return asyncio.run(program())


HARMLESS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "a character at a time": {"piece_chars": 1},
    "split characters": {"piece_chars": 50, "chunk_bytes": 1},
    "CRLF": {"newline": "\r\n", "chunk_bytes": 30},
    "pings": {"pings": True, "comments": True, "chunk_bytes": 11},
}


@needs_sdks
@every_dialect
@pytest.mark.parametrize("mishap", HARMLESS)
def test_a_whole_reply_is_the_same_message(protocol: Protocol, mishap: str) -> None:
    said, _, status = ask(protocol, replace(BOTH, **HARMLESS[mishap]))

    assert (said, status) == ([BOTH_SAID], "answered")


@needs_sdks
@every_dialect
def test_the_request_is_the_same(protocol: Protocol) -> None:
    async def program() -> None:
        more = {"max_tokens": 5, "of_ones_own": [1]}
        async with ScriptedProvider(forever=BOTH) as there:
            async with over_sdk(protocol, there, more=more, headers={"x-own": "1"}) as theirs:
                await theirs("Be brief.", TALK, SPECS)
            ours = model_of(protocol, there, more=more)
            await ours("Be brief.", TALK, SPECS)
            await ours.aclose()
        first, second = there.received
        assert first.body == second.body
        assert first.headers["x-own"] == "1"
        assert first.headers["authorization"] == f"Bearer {CANARY}"

    asyncio.run(program())


@needs_sdks
@every_dialect
def test_it_is_streamed_with_the_tokens_counted_over_one_connection(protocol: Protocol) -> None:
    async def program() -> None:
        async with ScriptedProvider(forever=replace(BOTH, usage=(120, 34))) as there:
            async with over_sdk(protocol, there) as model:
                for _ in range(3):
                    *deltas, last = [event async for event in model.stream("", ASKED, [])]
                    texts = [str(one["text"]) for one in deltas if one["type"] == "text_delta"]
                    assert (len(texts) > 2, "".join(texts)) == (True, BOTH.text)
                    assert last["message"] == BOTH_SAID
                    assert (last["input_tokens"], last["output_tokens"]) == (120, 34)
            assert there.connections == 1

    asyncio.run(program())


@needs_sdks
@pytest.mark.req("S2-102")
@every_dialect
@pytest.mark.parametrize("how", ["cut", "ended"])
def test_cut_anywhere_no_call_is_left_and_nothing_is_raised(protocol: Protocol, how: str) -> None:
    events = body_of(protocol, BOTH)
    body = b"".join(events)
    # Of Chat, the reply is whole before the `[DONE]`, which the SDK swallows.
    end = len(body) - (len(b"".join(events[-3:])) if protocol == "openai-chat" else 0)
    places = [at for at in near_line_ends(body) if at <= end]
    cuts = {at: Reply(raw=body, cut_at=at) for at in places}
    ends = {at: Reply(raw=body[:at]) for at in places}

    said, _, _ = ask(protocol, *(cuts if how == "cut" else ends).values())

    assert len(said) == len(places)
    for at, reply in zip(places, said, strict=True):
        assert (reply["stop_reason"], calls_of(reply)) == ("error", []), at
        assert BOTH.text.startswith(text_of(reply)), at


REFUSED = {status: Reply(status=status, says=f"Never {CANARY}.") for status in (400, 401, 404, 422)}


@needs_sdks
@every_dialect
def test_what_is_turned_away_is_tried_as_often_as_we_say(protocol: Protocol) -> None:
    for status, refused in REFUSED.items():
        (reply,), there, how = ask(protocol, refused)
        assert (reply["stop_reason"], how, len(there.received)) == ("error", "failed", 1)
        assert f"HTTP {status}" in reply.get("error_message", "")
        assert "Never ***." in reply.get("error_message", "")
    for status in (408, 429, 500, 529):
        said, there, _ = ask(protocol, Reply(status=status), Reply(status=status), BOTH)
        assert (said, len(there.received)) == ([BOTH_SAID], 3)
    (reply,), there, _ = ask(
        protocol, *[Reply(status=503)] * 4, backoff=Backoff(tries=4, first_s=0.001)
    )
    assert "HTTP 503" in reply.get("error_message", "")
    given_up, there, _ = ask(protocol, Reply(status=503, headers={"Retry-After": "3600"}), BOTH)
    assert [reply["stop_reason"] for reply in given_up] == ["error", "toolUse"]


@needs_sdks
@every_dialect
def test_a_failure_in_the_stream_is_asked_again_only_before_the_first_word(
    protocol: Protocol,
) -> None:
    said, _, _ = ask(protocol, replace(BOTH, fails_after=1), BOTH)
    assert said == [BOTH_SAID]

    (reply,), _, status = ask(protocol, replace(BOTH, fails_after=7))
    assert (reply["stop_reason"], calls_of(reply), status) == ("error", [], "failed")
    assert text_of(reply)
    assert "Overloaded" in reply.get("error_message", "")


NONSENSE = [b'data: {"type": "mess\n\n', b"data: [1, 2]\n\n", b"data: \xff\n\n", b"<html>", b""]


@needs_sdks
@every_dialect
def test_nonsense_is_an_error_and_not_an_exception(protocol: Protocol) -> None:
    said, _, status = ask(protocol, *[Reply(raw=raw) for raw in NONSENSE])

    assert [(reply["stop_reason"], reply["content"]) for reply in said] == [("error", [])] * 5
    assert status == "failed"


@needs_sdks
@pytest.mark.req("S2-93")
@every_dialect
@pytest.mark.parametrize(("silent_at", "silent"), [(0, "for 0.4 s"), (1200, "for 0.2 s")])
def test_who_falls_silent_is_given_up(protocol: Protocol, silent_at: int, silent: str) -> None:
    bounds = Patience(first_byte_s=0.4, between_s=0.2)

    async def program() -> None:
        there = ScriptedProvider(replace(BOTH, silent_at=silent_at))
        async with there, over_sdk(protocol, there, patience=bounds) as model:
            reply = await model("", ASKED, [])
            assert (reply["stop_reason"], model.status) == ("error", "abandoned")
            assert f"nothing was heard {silent}" in reply.get("error_message", "")
            await there.received[0].left.wait()

    asyncio.run(program())


@needs_sdks
@pytest.mark.req("S2-31", "S2-66", "S2-67")
@every_dialect
@pytest.mark.parametrize("how", ["stop", "cancel"])
@pytest.mark.parametrize("silent_at", [0, 1200])
def test_a_stop_closes_the_connection(protocol: Protocol, how: str, silent_at: int) -> None:
    async def program() -> None:
        there, signal = ScriptedProvider(replace(BOTH, silent_at=silent_at), BOTH), CancelToken()
        async with there, over_sdk(protocol, there) as model:
            asking = asyncio.ensure_future(model("", ASKED, [], signal))
            received = await there.came()
            (signal.cancel if how == "stop" else asking.cancel)()
            await asyncio.wait({asking})
            assert asking.cancelled() == (how == "cancel")
            if how == "stop":
                assert asking.result()["stop_reason"] == "aborted"
            assert model.status == "abandoned"
            await received.left.wait()
            assert await model("", ASKED, []) == BOTH_SAID

    asyncio.run(program())


@needs_sdks
@every_dialect
def test_a_run_with_tools_and_thoughts(protocol: Protocol) -> None:
    thoughts = [Thought(text="Hm: é🎉"), Thought(text="quietly", form="omitted")]
    calls = [Called(id="c1", name="read", arguments={"path": "a.py"})]
    looks = Reply(text="I look.", thoughts=thoughts, calls=calls)

    async def program() -> None:
        there = ScriptedProvider(looks, Reply(text="An é."))
        async with there, over_sdk(protocol, there) as model:
            harness = Harness(model=model, tools=[reading()])
            await driven(harness.prompt("What is in a.py?"))
        assert shape(harness.messages) == "U A[c1] R(c1) A"
        assert harness.request_status == "answered"
        seals = [one.seal in str(there.received[1].body) for one in thoughts]
        assert seals == [protocol != "openai-chat"] * 2

    asyncio.run(program())


@needs_sdks
@every_dialect
def test_without_a_client_the_sdk_makes_its_own_from_the_environment(
    protocol: Protocol, monkeypatch: pytest.MonkeyPatch
) -> None:
    package, _, model_over = SDKS[protocol]
    monkeypatch.setenv(f"{package.upper()}_API_KEY", CANARY)

    async def program() -> None:
        async with ScriptedProvider(forever=BOTH) as there:
            monkeypatch.setenv(f"{package.upper()}_BASE_URL", there.url_of(protocol))
            model = model_over("scripted-1")
            assert await model("", ASKED, []) == BOTH_SAID
            assert CANARY not in repr(model)
            await model.aclose()
            closed = await model("", ASKED, [])
            assert closed["stop_reason"] == "error"

    asyncio.run(program())


@needs_sdks
def test_nobody_there_is_an_error_message() -> None:
    async def program(protocol: Protocol) -> AssistantMessage:
        async with AsyncExitStack() as stack:
            async with ScriptedProvider() as there:
                model = await stack.enter_async_context(over_sdk(protocol, there))
            return await model("", ASKED, [])

    for protocol in PROTOCOLS:
        reply = asyncio.run(program(protocol))
        assert "nothing answered (ConnectError)" in reply.get("error_message", "")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_without_the_sdk_the_error_names_the_extra(
    protocol: Protocol, monkeypatch: pytest.MonkeyPatch
) -> None:
    package, _, model_over = SDKS[protocol]
    monkeypatch.setitem(sys.modules, package, None)

    with pytest.raises(ModuleNotFoundError, match=rf"install landed\[{package}\]"):
        model_over("scripted-1")


def test_what_an_sdk_itself_is_missing_is_not_called_the_sdk(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    (tmp_path / "anthropic.py").write_text("import no_such_package\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "anthropic", raising=False)

    with pytest.raises(ModuleNotFoundError, match="no_such_package"):
        official.anthropic_sdk("scripted-1")


class Chunks:
    """The bytes of a reply."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for _ in range(3):
            yield b"x" * 10


def test_each_byte_that_comes_is_heard_and_not_more_than_a_reply_may_have(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    heard: list[int] = []

    async def read() -> int:
        watched = official._watched(Chunks(), lambda: heard.append(1))
        return sum([len(chunk) async for chunk in watched])

    assert (asyncio.run(read()), len(heard)) == (30, 3)
    monkeypatch.setattr(official, "REPLY_MAX_BYTES", 25)
    with pytest.raises(ReplyError, match="more than 25 bytes"):
        asyncio.run(read())
