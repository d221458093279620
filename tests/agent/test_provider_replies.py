"""What comes back, in each dialect and with each mishap: a whole reply, or none of its calls."""

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from landed.agent.messages import (
    AssistantMessage,
    assistant_message,
    calls_of,
    text_block,
    text_of,
    tool_result,
)
from landed.testing.provider import Called, Protocol, Reply, ScriptedProvider
from landed.testing.provider_inline import InlineProvider
from landed.testing.provider_streams import body_of
from tests.agent.cutting import Places, every_byte, wherever_it_matters
from tests.agent.simulated import simulated
from tests.agent.speaking import ASKED, BOTH, BOTH_SAID, PROTOCOLS, TALK, model_of, said

every_dialect = pytest.mark.parametrize("protocol", PROTOCOLS)

LETTERS = 'aé🎉\u2028\x00\\"{}[]:,\r\n d'

HARMLESS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "a character at a time": {"piece_chars": 1},
    "split characters": {"piece_chars": 50, "chunk_bytes": 1},
    "CRLF": {"piece_chars": 50, "newline": "\r\n", "chunk_bytes": 3},
    "CR": {"piece_chars": 50, "newline": "\r", "chunk_bytes": 3},
    "comments": {"comments": True},
    "pings": {"pings": True, "comments": True, "chunk_bytes": 11},
    "not streamed": {"whole": True},
}


def once(protocol: Protocol, reply: Reply, **options: Any) -> AssistantMessage:
    """Ask once, without sockets."""
    return simulated(said(protocol, InlineProvider(reply), **options))


@every_dialect
@pytest.mark.parametrize("mishap", HARMLESS)
def test_a_whole_reply_is_its_text_and_its_calls(protocol: Protocol, mishap: str) -> None:
    assert once(protocol, replace(BOTH, **HARMLESS[mishap])) == BOTH_SAID


@every_dialect
@pytest.mark.parametrize("mishap", ["as it is", "pings", "not streamed"])
def test_it_is_over_a_real_connection_too(protocol: Protocol, mishap: str) -> None:
    async def program() -> None:
        async with ScriptedProvider(replace(BOTH, **HARMLESS[mishap])) as there:
            assert await said(protocol, there) == BOTH_SAID

    asyncio.run(program())


@every_dialect
def test_it_is_streamed_with_the_tokens_counted(protocol: Protocol) -> None:
    async def program() -> None:
        async with ScriptedProvider(replace(BOTH, usage=(120, 34))) as there:
            model = model_of(protocol, there)
            *deltas, last = [event async for event in model.stream("", ASKED, [])]
            await model.aclose()

        texts = [str(event["text"]) for event in deltas if event["type"] == "text_delta"]
        pieces = [event for event in deltas if event["type"] == "call_delta"]
        assert (len(texts) > 2, "".join(texts)) == (True, BOTH.text)
        assert {(event["id"], event["name"]) for event in pieces} >= {("c1", "read")}
        assert (last["type"], last["message"]) == ("message", BOTH_SAID)
        assert (last["input_tokens"], last["output_tokens"]) == (120, 34)

    asyncio.run(program())


SHORT: dict[Protocol, list[str]] = {
    "anthropic": [
        '{"type":"content_block_start","content_block":{"type":"tool_use","id":"c","name":"ls"}}',
        '{"type":"content_block_stop"}',
        '{"type":"message_delta","delta":{"stop_reason":"tool_use"}}',
        '{"type":"message_stop"}',
    ],
    "openai-chat": [
        '{"choices":[{"delta":{"tool_calls":[{"id":"c","function":{"name":"ls"}}]}}]}',
        '{"choices":[{"finish_reason":"stop"}]}',
        "[DONE]",
    ],
    "openai-responses": [
        '{"type":"response.output_item.added","item":{"type":"function_call","call_id":"c"}}',
        '{"type":"response.output_item.done","item":{"type":"function_call","name":"ls"}}',
        '{"type":"response.completed","response":{"status":"completed"}}',
    ],
}


async def cut(protocol: Protocol, body: bytes, replies: Iterable[tuple[int, Reply]]) -> None:
    """Require that none of these cut replies leaves a call, and none raises; then take the body."""
    there = InlineProvider()
    model = model_of(protocol, there)
    for at, reply in replies:
        there.say(reply)
        message = await model("", ASKED, [])
        assert (message["stop_reason"], calls_of(message)) == ("error", []), at
        assert BOTH.text.startswith(text_of(message)), at
    there.say(Reply(raw=body))
    whole = await model("", ASKED, [])
    assert (whole["stop_reason"], len(calls_of(whole)) > 0) == ("toolUse", True)


@pytest.mark.req("S2-102")
@every_dialect
@wherever_it_matters
def test_cut_anywhere_no_call_is_left_and_nothing_is_raised(
    protocol: Protocol, places: Places
) -> None:
    body = b"".join(body_of(protocol, BOTH))

    cuts = ((at, Reply(raw=body, cut_at=at)) for at in places(body))
    simulated(cut(protocol, body, cuts))


@pytest.mark.req("S2-102")
@every_dialect
@wherever_it_matters
def test_nor_when_the_connection_ends_there_as_if_that_were_all(
    protocol: Protocol, places: Places
) -> None:
    body = b"".join(body_of(protocol, BOTH))

    simulated(cut(protocol, body, ((at, Reply(raw=body[:at])) for at in places(body))))


@pytest.mark.req("S2-102")
@every_dialect
def test_nor_at_any_byte_of_a_short_one(protocol: Protocol) -> None:
    body = "".join(f"data: {said}\n\n" for said in SHORT[protocol]).encode()

    cuts = ((at, Reply(raw=body, cut_at=at)) for at in every_byte(body))
    simulated(cut(protocol, body, cuts))


@pytest.mark.req("S2-102")
@every_dialect
def test_nor_over_a_real_connection(protocol: Protocol) -> None:
    events = body_of(protocol, BOTH)
    ends = [sum(map(len, events[:count])) for count in range(len(events))]

    async def program() -> None:
        async with ScriptedProvider() as there:
            model = model_of(protocol, there)
            for at in sorted({*ends, *(end + 9 for end in ends[1:])}):
                there.say(replace(BOTH, cut_at=at))
                reply = await model("", ASKED, [])
                assert (reply["stop_reason"], calls_of(reply)) == ("error", []), at
                assert "cut off" in reply.get("error_message", "")
            await model.aclose()

    asyncio.run(program())


@every_dialect
@settings(max_examples=20)
@given(drawn=st.data())
def test_however_it_is_cut_up_it_is_the_same_message(protocol: Protocol, drawn: Any) -> None:
    text = drawn.draw(st.text(LETTERS, max_size=12))
    keys = st.text(LETTERS, max_size=8)
    values = st.recursive(st.none() | st.booleans() | st.integers(-999, 999) | keys, st.lists)
    arguments = drawn.draw(st.lists(st.dictionaries(keys, values, max_size=2), max_size=2))
    calls = [Called(id=f"c{n}", name="do", arguments=one) for n, one in enumerate(arguments)]
    reply = Reply(
        text="." + text,
        calls=calls,
        piece_chars=drawn.draw(st.integers(1, 50)),
        chunk_bytes=drawn.draw(st.integers(20, 300)),
        newline=drawn.draw(st.sampled_from(["\n", "\r\n", "\r"])),
        comments=drawn.draw(st.booleans()),
        pings=drawn.draw(st.booleans()),
    )

    message = once(protocol, reply)

    assert text_of(message) == "." + text
    assert [(call["id"], call["arguments"]) for call in calls_of(message)] == [
        (f"c{n}", one) for n, one in enumerate(arguments)
    ]


BAD_ARGUMENTS = {
    "half a string": '{"path": "na',
    "no object": '["a.py"]',
    "two values": "{} {}",
    "a key twice": '{"path": "a.py", "path": "b.py"}',
    "not a number": '{"cents": NaN}',
    "deeper than the border": '{"a":' * 100 + "1" + "}" * 100,
}


@pytest.mark.req("S2-102")
@every_dialect
@pytest.mark.parametrize("bad", BAD_ARGUMENTS)
def test_arguments_that_cannot_be_read_are_no_call(protocol: Protocol, bad: str) -> None:
    calls = (Called(id="c0", name="ls"), Called(id="c1", name="read", arguments=BAD_ARGUMENTS[bad]))

    reply = once(protocol, Reply(text="I look.", calls=calls, piece_chars=40))

    assert (reply["stop_reason"], calls_of(reply)) == ("error", [])
    assert text_of(reply) == "I look."
    assert "the arguments of read" in reply.get("error_message", "")


@every_dialect
def test_no_arguments_at_all_are_an_empty_object(protocol: Protocol) -> None:
    reply = once(protocol, Reply(calls=(Called(id="c1", name="ls", arguments=""),)))

    assert calls_of(reply)[0]["arguments"] == {}


ENDS: dict[Protocol, dict[str, str]] = {
    "anthropic": {"max_tokens": "length", "stop_sequence": "stop", "refusal": "error"},
    "openai-chat": {"length": "length", "content_filter": "error"},
    "openai-responses": {"max_output_tokens": "length", "content_filter": "error"},
}


@every_dialect
def test_why_it_ended_is_said_in_our_words(protocol: Protocol) -> None:
    for theirs, ours in ENDS[protocol].items():
        reply = once(protocol, Reply(text="So far", stop=theirs))

        assert reply["stop_reason"] == ours, theirs
        assert text_of(reply) == ("" if ours == "error" else "So far")


@every_dialect
def test_a_reason_that_nobody_knows_is_an_error_with_its_name(protocol: Protocol) -> None:
    reply = once(protocol, replace(BOTH, stop="tea_break"))

    assert (reply["stop_reason"], calls_of(reply)) == ("error", [])
    assert "tea_break" in reply.get("error_message", "")


@pytest.mark.req("S2-102")
@every_dialect
def test_a_call_in_a_reply_that_reached_its_length_is_not_made(protocol: Protocol) -> None:
    stop = next(theirs for theirs, ours in ENDS[protocol].items() if ours == "length")

    reply = once(protocol, replace(BOTH, stop=stop))

    assert (reply["stop_reason"], calls_of(reply)) == ("error", [])
    assert "length limit" in reply.get("error_message", "")


@every_dialect
@pytest.mark.parametrize("text", ["", " \n"])
def test_a_reply_without_a_word_is_an_error(protocol: Protocol, text: str) -> None:
    reply = once(protocol, Reply(text=text))

    assert (reply["stop_reason"], reply["content"]) == ("error", [])


@every_dialect
def test_two_calls_with_one_id_are_none(protocol: Protocol) -> None:
    twice = Called(id="c1", name="ls")

    reply = once(protocol, Reply(calls=(twice, replace(twice, name="rm"))))

    assert (reply["stop_reason"], calls_of(reply)) == ("error", [])


@every_dialect
def test_a_call_that_is_counted_anew_or_has_no_id_gets_one_of_its_own(protocol: Protocol) -> None:
    calls = (Called(id="c1", name="ls"), Called(id="", name="rm"), Called(id="", name="cp"))
    there = InlineProvider(Reply(text="More.", calls=calls), Reply(text="Yes."))

    async def program() -> None:
        reply = await said(protocol, there, messages=TALK)
        assert [call["id"] for call in calls_of(reply)] == ["c1-2", "call", "call-2"]
        answers = [tool_result(call, "done") for call in calls_of(reply)]
        after = await said(protocol, there, messages=[*TALK, reply, *answers])
        assert after["stop_reason"] == "stop"

    simulated(program())


NONSENSE = {
    "half of JSON": b'data: {"type": "mess\n\n',
    "no object": b"data: [1, 2]\n\n",
    "wrong types": b'data: {"type": 7, "choices": {"a": 1}, "index": "x", "error": false}\n\n',
    "not UTF-8": b"data: \xff\xfe\n\n",
    "a page": b"<html>proxy error</html>",
    "nothing": b"",
}


@every_dialect
@pytest.mark.parametrize("nonsense", NONSENSE)
def test_nonsense_is_an_error_and_not_an_exception(protocol: Protocol, nonsense: str) -> None:
    reply = once(protocol, Reply(raw=NONSENSE[nonsense]))

    assert (reply["stop_reason"], reply["content"]) == ("error", [])


@every_dialect
@settings(max_examples=40)
@given(noise=st.binary(max_size=60), at=st.integers(0, 3000), gap=st.integers(0, 40))
def test_bytes_lost_or_added_raise_nothing(
    protocol: Protocol, noise: bytes, at: int, gap: int
) -> None:
    body = b"".join(body_of(protocol, BOTH))

    reply = once(protocol, Reply(raw=body[:at] + noise + body[at + gap :]))

    if reply["stop_reason"] not in ("toolUse", "stop"):
        assert calls_of(reply) == []


@every_dialect
def test_a_failure_in_the_midst_keeps_the_text_and_says_why(protocol: Protocol) -> None:
    reply = once(protocol, replace(BOTH, fails_after=7))

    assert (reply["stop_reason"], calls_of(reply)) == ("error", [])
    assert text_of(reply)
    assert BOTH.text.startswith(text_of(reply))
    assert "Overloaded" in reply.get("error_message", "")


def test_a_server_that_imitates_chat_without_numbers_is_understood() -> None:
    calls = [
        '{"id":"a","function":{"name":"ls","arguments":"{"}}',
        '{"function":{"arguments":"}"}}',
        '{"id":"b","function":{"name":"rm","arguments":{"p":1}}}',
    ]
    chunks = [f'{{"choices":[{{"delta":{{"tool_calls":[{call}]}}}}]}}' for call in calls]
    chunks += ['{"choices":[{"delta":{},"finish_reason":"stop"}]}', "[DONE]"]
    raw = "".join(f"data: {chunk}\n\n" for chunk in chunks).encode()

    reply = once("openai-chat", Reply(raw=raw))

    assert reply["stop_reason"] == "toolUse"
    named = [(call["id"], call["name"], call["arguments"]) for call in calls_of(reply)]
    assert named == [("a", "ls", {}), ("b", "rm", {"p": 1})]


def test_arguments_that_arrive_in_two_versions_are_no_call() -> None:
    body = b"".join(body_of("openai-responses", BOTH))
    raw = body.replace(b'"arguments": "{\\"path', b'"arguments": "{\\"Path')

    reply = once("openai-responses", Reply(raw=raw))

    assert (reply["stop_reason"], calls_of(reply)) == ("error", [])
    assert "two versions" in reply.get("error_message", "")


UNCLOSED: dict[Protocol, tuple[bytes, bytes]] = {
    "anthropic": (b'"type": "content_block_stop"', b'"type": "ping"'),
    "openai-chat": (b'"finish_reason": "tool_calls"', b'"finish_reason": null'),
    "openai-responses": (b'"type": "response.output_item.done"', b'"type": "response.queued"'),
}


@pytest.mark.req("S2-102")
@every_dialect
def test_a_call_that_was_never_closed_is_none_though_the_reply_is_over(protocol: Protocol) -> None:
    body = b"".join(body_of(protocol, Reply(calls=BOTH.calls)))
    closing, other = UNCLOSED[protocol]
    assert closing in body

    reply = once(protocol, Reply(raw=body.replace(closing, other)))

    assert (reply["stop_reason"], calls_of(reply)) == ("error", [])
    assert "was cut off" in reply.get("error_message", "")


@pytest.mark.req("S2-102")
def test_nor_is_one_that_the_provider_itself_calls_incomplete() -> None:
    body = b"".join(body_of("openai-responses", Reply(calls=BOTH.calls)))
    item = body.index(b'"type": "response.output_item.done"')
    broken = body[:item] + body[item:].replace(b'"completed"', b'"incomplete"', 1)

    reply = once("openai-responses", Reply(raw=broken))

    assert (reply["stop_reason"], calls_of(reply)) == ("error", [])


def test_a_thought_that_was_never_closed_is_passed_over() -> None:
    thinking = (
        b'data: {"type":"content_block_start","index":9,"content_block":{"type":"thinking"}}\n\n'
        b'data: {"type":"content_block_delta","index":9,"delta":'
        b'{"type":"thinking_delta","thinking":"Hm."}}\n\n'
    )
    body = b"".join([thinking, *body_of("anthropic", Reply(text="Yes."))])

    assert once("anthropic", Reply(raw=body)) == assistant_message(text_block("Yes."))
