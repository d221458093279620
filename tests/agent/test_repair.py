"""What a model is shown is computed from the record: valid, and the record is left alone."""

import json
from copy import deepcopy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from landed.agent.messages import (
    ABORTED,
    Message,
    assistant_message,
    error_message,
    text_block,
    tool_result,
    user_message,
)
from landed.agent.repair import INTERRUPTED, messages_for_model, repair_tool_history
from landed.agent.validate import transcript_problems
from landed.testing.scripted import asks, call, says
from landed.testing.shapes import shape

C1, C2 = call("c1", "read", path="a.py"), call("c2", "read", path="b.py")
R1, R2 = tool_result(C1, "one"), tool_result(C2, "two")
GO = user_message("Go.")

CASES = {
    "out of order": ([GO, asks(C1, C2), R2, R1], "U A[c1,c2] R(c1) R(c2)", ["one", "two"]),
    "late": ([GO, asks(C1), user_message("?"), R1], "U A[c1] R(c1) U", ["one"]),
    "twice": ([GO, asks(C1), R1, tool_result(C1, "again")], "U A[c1] R(c1)", ["one"]),
    "orphan": ([GO, R2, says("Hm."), R1], "U A", []),
    "missing": ([GO, asks(C1, C2), R2], "U A[c1,c2] R(c1) R(c2)", [INTERRUPTED, "two"]),
    "same id anew": (
        [GO, asks(C1), R1, asks(C1), tool_result(C1, "later")],
        "U A[c1] R(c1) A[c1] R(c1)",
        ["one", "later"],
    ),
    "same id, a hole first": (
        [GO, asks(C1), GO, asks(C1), R1],
        "U A[c1] R(c1) U A[c1] R(c1)",
        [INTERRUPTED, "one"],
    ),
}


@pytest.mark.req("S2-70")
@pytest.mark.parametrize(("record", "expected", "contents"), CASES.values(), ids=CASES)
def test_each_call_is_answered_at_once(record, expected, contents) -> None:
    repaired = repair_tool_history(record)

    assert shape(repaired) == expected
    results = [message for message in repaired if message["role"] == "toolResult"]
    assert [result["content"] for result in results] == contents
    assert [result["is_error"] for result in results] == [one == INTERRUPTED for one in contents]
    assert transcript_problems(repaired, "request") == []


@pytest.mark.req("S2-70")
def test_the_words_of_an_interruption_claim_nothing() -> None:
    assert INTERRUPTED == (
        "Tool call interrupted: no result was recorded. It may not have run, or may have run "
        "partly; check before repeating it."
    )


@pytest.mark.req("S2-69", "S2-56")
def test_what_says_nothing_is_left_out_and_what_says_something_stays() -> None:
    partial = assistant_message(text_block("So far"), stop_reason="aborted")
    partial["error_message"] = ABORTED
    record: list[Message] = [
        GO,
        error_message("overloaded"),
        GO,
        error_message(ABORTED, "aborted"),
        GO,
        partial,
        GO,
        assistant_message(),
    ]

    assert messages_for_model(record) == [GO, GO, GO, partial, GO]
    assert transcript_problems(messages_for_model(record), "request") == []


MESSAGES = st.one_of(
    st.builds(user_message, st.sampled_from(["Go.", ""])),
    st.builds(lambda calls: asks(*calls), st.lists(st.sampled_from([C1, C2]), unique_by=str)),
    st.builds(tool_result, st.sampled_from([C1, C2]), st.sampled_from(["one", "two"])),
    st.sampled_from([error_message("no"), error_message(ABORTED, "aborted"), says("Done.")]),
)


@pytest.mark.req("S2-68", "S2-71", "S2-105")
@given(st.lists(MESSAGES, max_size=12))
def test_any_record_has_a_valid_view_and_stays_as_it_is(record) -> None:
    before = json.dumps(record)
    originals = {id(message) for message in record}

    view = messages_for_model(record)

    assert transcript_problems(view, "request") == []
    assert messages_for_model(view) == view
    assert repair_tool_history(repair_tool_history(record)) == repair_tool_history(record)
    assert all(id(m) in originals or m["content"] == INTERRUPTED for m in view)
    assert json.dumps(record) == before


@pytest.mark.req("S2-71")
def test_a_valid_history_is_returned_as_a_new_list_of_the_same_messages() -> None:
    valid: list[Message] = [GO, asks(C1, C2), R1, R2, says("Done.")]

    view = messages_for_model(valid)

    assert view == valid
    assert view is not valid
    assert all(one is other for one, other in zip(view, valid, strict=True))


@pytest.mark.req("S2-105")
def test_a_hole_is_a_valid_record_and_no_valid_request() -> None:
    record: list[Message] = [GO, asks(C1)]

    assert transcript_problems(record) == []
    assert transcript_problems(record, "request") == ["message 2: no result of c1 before it"]


BROKEN_RECORDS = {
    "an orphan": [GO, R1],
    "two results": [GO, asks(C1), R1, R1],
    "an unknown role": [{"role": "system", "content": "x"}],
    "a field too many": [{**GO, "name": "x"}],
    "a field too few": [{"role": "user"}],
    "a list for text": [{"role": "user", "content": []}],
    "a number for a flag": [GO, asks(C1), {**R1, "is_error": 0}],
    "an unknown block": [{**says("x"), "content": [{"type": "image"}]}],
    "an error without words": [{**says("x"), "stop_reason": "error"}],
    "words of no error": [{**says("x"), "error_message": "x"}],
    "an unknown reason": [{**says("x"), "stop_reason": "tired"}],
    "one id twice": [asks(C1, C1)],
    "no dict at all": ["U"],
}
BROKEN_REQUESTS = {
    "out of order": [GO, asks(C1, C2), R2, R1],
    "late": [GO, asks(C1), GO, R1],
    "empty": [GO, error_message("no")],
    "missing at the end": [GO, asks(C1, C2), R1],
}


@pytest.mark.req("S2-105")
@pytest.mark.parametrize("record", BROKEN_RECORDS.values(), ids=BROKEN_RECORDS)
def test_a_broken_record_is_noticed(record) -> None:
    assert transcript_problems(deepcopy(record))
    assert transcript_problems(deepcopy(record), "request")


@pytest.mark.req("S2-105")
@pytest.mark.parametrize("record", BROKEN_REQUESTS.values(), ids=BROKEN_REQUESTS)
def test_what_a_provider_would_refuse_is_noticed(record) -> None:
    assert transcript_problems(record) == []
    assert transcript_problems(record, "request")
