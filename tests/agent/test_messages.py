"""A message is plain JSON, and what can be computed from it is computed each time."""

from copy import deepcopy

import pytest

from landed.agent.messages import (
    ABORTED,
    Message,
    assistant_message,
    calls_of,
    error_message,
    is_empty,
    render,
    text_block,
    text_of,
    tool_call,
    tool_result,
    user_message,
)

READ = tool_call("c1", "read", {"path": "a.py", "limit": 2})
ASKS = assistant_message(text_block("Let me "), READ, text_block("look."))


@pytest.mark.req("S2-02")
def test_words_and_calls_are_read_anew_each_time() -> None:
    message = assistant_message(text_block("Let me "), READ, text_block("look."))
    assert (text_of(message), calls_of(message)) == ("Let me look.", [READ])

    second = tool_call("c2", "read")
    message["content"] = [text_block("No."), second, READ]

    assert (text_of(message), calls_of(message)) == ("No.", [second, READ])


@pytest.mark.req("S2-03")
def test_a_failure_and_a_stop_are_messages() -> None:
    failure: object = error_message("no answer")
    assert failure == {
        "role": "assistant",
        "content": [],
        "stop_reason": "error",
        "error_message": "no answer",
    }
    assert error_message(ABORTED, "aborted")["stop_reason"] == "aborted"
    assert is_empty(error_message(ABORTED, "aborted"))


@pytest.mark.parametrize(
    ("message", "empty"),
    [
        (assistant_message(), True),
        (assistant_message(text_block(" \n")), True),
        (ASKS, False),
        (assistant_message(text_block("Done.")), False),
        (user_message(""), False),
    ],
)
def test_what_counts_as_empty(message, empty) -> None:
    assert is_empty(message) is empty


def test_a_reply_ends_for_its_calls_or_is_done() -> None:
    assert ASKS["stop_reason"] == "toolUse"
    assert assistant_message(text_block("Done."))["stop_reason"] == "stop"
    assert assistant_message(READ, stop_reason="length")["stop_reason"] == "length"


@pytest.mark.req("S2-05")
def test_a_conversation_is_rendered_a_line_for_each_message() -> None:
    messages: list[Message] = [
        user_message("Read\na.py"),
        ASKS,
        tool_result(READ, "one\r\ntwo"),
        error_message(ABORTED, "aborted"),
    ]

    assert render(messages).split("\n") == [
        "user: Read a.py",
        'assistant: Let me look. read({"limit": 2, "path": "a.py"})',
        "toolResult: one two",
        "assistant: Operation aborted",
    ]
    assert render(messages) == render(deepcopy(messages))


def test_only_an_assistant_asks_for_calls() -> None:
    assert calls_of(user_message("read(a.py)")) == []
    assert calls_of(tool_result(READ, "text")) == []
