"""What a model thinks goes back to it as it came, to nobody else, and is no word of the talk."""

import asyncio
import json
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from landed.agent.harness import Harness
from landed.agent.messages import (
    AssistantMessage,
    Message,
    assistant_message,
    calls_of,
    is_empty,
    render,
    text_block,
    text_of,
    tool_result,
)
from landed.agent.providers import draft
from landed.agent.session_log import SessionLog
from landed.agent.validate import transcript_problems
from landed.testing.provider import Called, Protocol, Reply, ScriptedProvider, Thought
from landed.testing.provider_inline import InlineProvider
from landed.testing.provider_streams import body_of
from landed.testing.scripted import ScriptedReplies, says
from landed.testing.shapes import shape
from landed.testing.ticks import driven
from tests.agent.simulated import simulated
from tests.agent.speaking import ASKED, PROTOCOLS, model_of, said
from tests.agent.tools import reading

THOUGHTS = (Thought(text="Hm: é🎉 first a.py."), Thought(text="and quietly", form="omitted"))
LOOKS = Reply(
    text="I look.",
    thoughts=THOUGHTS,
    calls=(Called(id="c1", name="read", arguments={"path": "a.py"}),),
)
THINKERS: tuple[Protocol, ...] = ("anthropic", "openai-responses")
every_thinker = pytest.mark.parametrize("protocol", THINKERS)
ENABLED: dict[Protocol, Any] = {
    "anthropic": {"thinking": {"type": "enabled", "budget_tokens": 1024}},
    "openai-responses": {"reasoning": {"summary": "auto"}},
}
BARRED = (*THOUGHTS, Thought(text="not to be read", form="redacted"))


def thinking(protocol: Protocol) -> Reply:
    """A reply with every kind of thought that the protocol has."""
    return replace(LOOKS, thoughts=BARRED) if protocol == "anthropic" else LOOKS


def thought(protocol: Protocol, **changes: Any) -> AssistantMessage:
    """What comes of such a reply."""
    there = InlineProvider(replace(thinking(protocol), **changes))
    return simulated(said(protocol, there))


def talk(reply: AssistantMessage) -> list[Message]:
    return [*ASKED, reply, *(tool_result(call, "é = 1") for call in calls_of(reply))]


def answered(protocol: Protocol, messages: list[Message], **options: Any) -> tuple[Any, str]:
    """Send a conversation; return the reply, and the request as text."""
    there = InlineProvider(forever=Reply(text="Yes."))
    options = {"more": ENABLED.get(protocol, {}), **options}
    reply = simulated(said(protocol, there, messages=messages, **options))
    return reply, str(there.received[0].body)


def back(protocol: Protocol, body: Any) -> list[Any]:
    """The thoughts of a request."""
    if protocol == "openai-responses":
        return [item for item in body["input"] if item.get("type") == "reasoning"]
    return [one for one in body["messages"][1]["content"] if "thinking" in one["type"]]


BACK: dict[Protocol, list[dict[str, Any]]] = {
    "anthropic": [
        {"type": "thinking", "thinking": THOUGHTS[0].text, "signature": THOUGHTS[0].seal},
        {"type": "thinking", "thinking": "", "signature": THOUGHTS[1].seal},
        {"type": "redacted_thinking", "data": BARRED[2].seal},
    ],
    "openai-responses": [
        {
            "type": "reasoning",
            "id": "rs_0",
            "summary": [{"type": "summary_text", "text": THOUGHTS[0].text}],
            "encrypted_content": THOUGHTS[0].seal,
        },
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [],
            "encrypted_content": THOUGHTS[1].seal,
        },
    ],
}


@every_thinker
def test_in_a_run_with_tools_it_goes_back_with_the_results_as_it_came(protocol: Protocol) -> None:
    async def program() -> None:
        replies = (thinking(protocol), Reply(text="An é."), Reply(text="Still."))
        async with ScriptedProvider(*replies) as there:
            model = model_of(protocol, there, more=ENABLED[protocol])
            harness = Harness(model=model, tools=[reading()])
            await driven(harness.prompt("What is in a.py?"))
            await driven(harness.prompt("And now?"))
            await model.aclose()

        assert shape(harness.messages) == "U A[c1] R(c1) A U A"
        assert [back(protocol, one.body) for one in there.received[1:]] == [BACK[protocol]] * 2

    asyncio.run(program())


SENT: dict[str, dict[str, Any]] = {
    "as it is": {},
    "a character at a time": {"piece_chars": 1},
    "split characters": {"piece_chars": 50, "chunk_bytes": 1},
    "not streamed": {"whole": True},
}


@every_thinker
@pytest.mark.parametrize("how", SENT)
def test_however_it_comes_it_is_a_block_before_what_is_said(protocol: Protocol, how: str) -> None:
    message = thought(protocol, **SENT[how])

    kinds = [block["type"] for block in message["content"]]
    assert kinds == ["thinking"] * len(BACK[protocol]) + ["text", "toolCall"]
    first = message["content"][0]
    assert first["type"] == "thinking"
    assert first["text"] == THOUGHTS[0].text
    made = (first["opaque"]["provider"], first["opaque"]["model"])
    assert made == (protocol, "scripted-1")
    assert "thinking" not in first["opaque"]["payload"]  # Its text is kept once.


@every_thinker
def test_it_is_valid_kept_in_a_log_and_no_word_of_the_talk(
    protocol: Protocol, tmp_path: Path
) -> None:
    message = thought(protocol)
    messages = talk(message)

    assert transcript_problems(messages) == transcript_problems(messages, "request") == []
    assert text_of(message) == "I look."
    assert "é🎉" not in render(messages)
    log = SessionLog(tmp_path / "talk.jsonl")
    for each in messages:
        log.append(each)
    assert log.replay() == messages
    alone = assistant_message(*[one for one in message["content"] if one["type"] == "thinking"])
    assert is_empty(alone)


def test_a_listener_hears_what_is_said_and_no_thought() -> None:
    async def program() -> None:
        model = model_of("anthropic", InlineProvider(LOOKS))
        deltas = [event async for event in model.stream("", ASKED, [])]
        assert {event["type"] for event in deltas} == {"text_delta", "call_delta", "message"}
        assert "é🎉" not in str(deltas[:-1])

    simulated(program())


ELSEWHERE: list[tuple[Protocol, Protocol, dict[str, Any]]] = [
    *((made, asked, {}) for made in THINKERS for asked in PROTOCOLS if made != asked),
    *((made, made, {"model": "scripted-2"}) for made in THINKERS),
]


@pytest.mark.parametrize(("made", "asked", "more"), ELSEWHERE)
def test_another_provider_and_another_model_get_nothing_of_it(
    made: Protocol, asked: Protocol, more: dict[str, Any]
) -> None:
    reply, body = answered(asked, talk(thought(made)), more=more)

    assert reply["stop_reason"] == "stop"
    assert "I look." in body
    assert "sealed" not in body
    assert "é🎉" not in body


@every_thinker
def test_the_model_that_made_it_is_the_one_that_the_request_named(protocol: Protocol) -> None:
    more = {**ENABLED[protocol], "model": "scripted-2"}
    reply = simulated(said(protocol, InlineProvider(thinking(protocol)), more=more))

    assert "sealed" in answered(protocol, talk(reply), more=more)[1]
    assert "sealed" not in answered(protocol, talk(reply), more={})[1]


@every_thinker
def test_the_scripted_provider_refuses_one_that_was_changed(protocol: Protocol) -> None:
    messages = talk(thought(protocol))
    assert answered(protocol, deepcopy(messages))[0]["stop_reason"] == "stop"

    block = cast("Any", messages[1]["content"][0])
    name = "signature" if protocol == "anthropic" else "encrypted_content"
    block["opaque"]["payload"][name] += "x"
    reply, _ = answered(protocol, messages)

    assert reply["stop_reason"] == "error"
    assert name.split("_")[0] in reply["error_message"]


def test_and_one_that_is_missing_where_the_model_was_made_to_think() -> None:
    message = thought("anthropic")
    spoken = [one for one in message["content"] if one["type"] != "thinking"]

    reply, _ = answered("anthropic", talk(assistant_message(*spoken)))

    assert "Expected `thinking`" in reply["error_message"]


def test_a_thought_is_refused_without_what_it_led_to() -> None:
    message = thought("openai-responses")
    thoughts = [one for one in message["content"] if one["type"] == "thinking"]
    words = text_block("So.")

    reply, _ = answered("openai-responses", [*ASKED, assistant_message(words, *thoughts), *ASKED])

    assert "required following item" in reply["error_message"]


@every_thinker
@pytest.mark.parametrize("change", [{"cut_at": 2200}, {"fails_after": 12}, {"stop": "tea_break"}])
def test_of_a_reply_that_cannot_be_acted_on_none_is_kept(
    protocol: Protocol, change: dict[str, Any]
) -> None:
    message = thought(protocol, **change)

    assert message["stop_reason"] == "error"
    assert [one for one in message["content"] if one["type"] != "text"] == []


@every_thinker
def test_thoughts_alone_are_no_reply(protocol: Protocol) -> None:
    message = thought(protocol, text="", calls=())

    assert (message["stop_reason"], message["content"]) == ("error", [])


@every_thinker
def test_thoughts_beyond_the_bound_are_left_out_all_together(
    protocol: Protocol, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = sum(
        len(one["text"]) + len(str(one["opaque"]["payload"]))
        for one in thought(protocol)["content"]
        if one["type"] == "thinking"
    )
    for most, expected in ((size, len(BACK[protocol])), (size - 1, 0)):
        monkeypatch.setattr(draft, "THINKING_MAX_CHARS", most)
        kinds = [one["type"] for one in thought(protocol)["content"]]
        assert kinds == ["thinking"] * expected + ["text", "toolCall"]


def test_a_large_thought_is_larger_than_what_is_sent_else_and_is_kept() -> None:
    huge = Thought(text="x" * 300_000)
    message = thought("anthropic", thoughts=[huge], piece_chars=100_000)

    assert message["content"][0].get("text") == huge.text
    assert answered("anthropic", talk(message))[0]["stop_reason"] == "stop"


def test_reasoning_that_nobody_can_open_again_is_not_kept() -> None:
    body = b"".join(body_of("openai-responses", LOOKS))
    seals = [one.seal.encode() for one in THOUGHTS]
    raw = body.replace(b'"%b"' % seals[0], b"null").replace(b'"%b"' % seals[1], b"null")

    message = simulated(said("openai-responses", InlineProvider(Reply(raw=raw))))

    assert [block["type"] for block in message["content"]] == ["text", "toolCall"]


def test_reasoning_in_full_is_no_word_of_the_reply() -> None:
    reply = json.loads(b"".join(body_of("openai-responses", replace(LOOKS, whole=True))))
    reply["output"][0]["content"] = [{"type": "reasoning_text", "text": "loud"}]
    headers = {"content-type": "application/json"}
    there = InlineProvider(Reply(raw=json.dumps(reply).encode(), headers=headers))

    message = simulated(said("openai-responses", there))

    assert text_of(message) == "I look."
    assert "loud" not in answered("openai-responses", talk(message))[1]


def test_chat_completions_passes_over_what_servers_of_open_models_show() -> None:
    message = thought("openai-chat", thoughts=THOUGHTS)

    assert message == assistant_message(text_block("I look."), *calls_of(message))


@pytest.mark.parametrize("opaque", [{}, {"provider": 7}, {"provider": "anthropic", "payload": []}])
def test_a_record_that_somebody_else_wrote_breaks_no_request(opaque: Any) -> None:
    message = thought("anthropic")
    cast("Any", message["content"][0])["opaque"] = opaque

    reply, body = answered("anthropic", talk(message), more={})

    assert reply["stop_reason"] == "stop"
    assert THOUGHTS[0].seal not in body


def test_a_model_of_ones_own_may_think_too() -> None:
    message = thought("anthropic", calls=())
    harness = Harness(model=ScriptedReplies(message, says("Yes.")))

    simulated(driven(harness.prompt("Well?")))

    assert harness.messages[-1] == message
