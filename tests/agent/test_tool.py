"""A call becomes one result, on every path, and a result has a bounded size."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from landed.agent.budget import RESULT_BYTES, Tail, head, tail
from landed.agent.tool import AgentTool, integer_argument, run_tool, text_argument, tool_specs
from landed.testing.scripted import call
from tests.agent.simulated import simulated
from tests.agent.tools import tool


class Signal:
    """A signal that knows one method, and nothing of any provider."""

    def is_cancelled(self) -> bool:
        return False


def ran(one: AgentTool, arguments=None, **given):
    return simulated(run_tool(call("c1", one.name, **(arguments or {})), [one], **given))


@pytest.mark.req("S2-06")
def test_the_model_is_told_nothing_that_can_be_called() -> None:
    one = AgentTool(
        name="read",
        description="Read.",
        parameters={"type": "object"},
        execute=tool("read", len).execute,
        snippet="read: read",
        guidelines=("Read first.",),
    )

    assert tool_specs([one]) == [
        {"name": "read", "description": "Read.", "parameters": {"type": "object"}}
    ]


@pytest.mark.req("S2-08")
@pytest.mark.parametrize("given", [{}, {"path": 5}, {"path": None}, {"path": ["a.py"]}])
def test_a_text_must_be_given_as_one(given) -> None:
    result = ran(tool("read", lambda arguments: text_argument(arguments, "path")), given)

    assert (result["content"], result["is_error"]) == ("path must be a string", True)


@pytest.mark.req("S2-08")
@pytest.mark.parametrize("given", ["5", 5.5, True, [5]])
def test_a_number_may_be_left_out_and_is_whole(given) -> None:
    assert integer_argument({}, "offset") is None
    assert integer_argument({"offset": 7}, "offset") == 7
    result = ran(tool("read", lambda a: integer_argument(a, "offset")), {"offset": given})

    assert (result["content"], result["is_error"]) == ("offset must be an integer", True)


@pytest.mark.req("S2-09")
def test_an_unknown_tool_is_a_result() -> None:
    result = simulated(run_tool(call("c1", "fly"), []))

    assert (result["content"], result["is_error"]) == ("Tool fly not found", True)


class OddError(Exception):
    def __str__(self) -> str:
        return ""


FAILURES = [
    (ValueError("no such day"), "no such day"),
    (OddError(), "the tool failed (OddError)"),
    (TimeoutError("the service gave no answer"), "the service gave no answer"),
    (asyncio.InvalidStateError("x"), "x"),
    (StopAsyncIteration("over"), "over"),
    (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"), "can't decode byte"),
]


@pytest.mark.req("S2-09", "S2-110")
@pytest.mark.parametrize(("error", "told"), FAILURES, ids=lambda one: type(one).__name__)
def test_a_tool_that_raises_is_a_result(error, told) -> None:
    def act(arguments):
        raise error

    result = ran(tool("act", act), deadline_s=60.0)

    assert result["is_error"]
    assert told in result["content"]


@pytest.mark.req("S2-09")
@settings(max_examples=30)
@given(st.one_of(st.none(), st.integers(), st.binary(), st.lists(st.text()), st.text()))
def test_whatever_a_tool_returns_there_is_one_result(returned) -> None:
    result = ran(tool("act", lambda arguments: returned))

    assert result["is_error"] is not isinstance(returned, str)
    assert result["content"].encode("utf-8") is not None


def test_half_a_surrogate_pair_can_be_sent() -> None:
    assert ran(tool("act", lambda arguments: "a\ud800b"))["content"] == "a?b"


@pytest.mark.fault("X70")
@pytest.mark.req("S2-10")
def test_a_tool_without_a_budget_is_cut_and_so_is_its_error() -> None:
    def fails(arguments):
        raise ValueError("no\n" * 1_000_000)

    for act in (lambda arguments: "yes\n" * 1_000_000, fails):
        content = ran(tool("act", act))["content"]
        assert content.endswith("\n[Cut: 4000 of 1000000 lines.]")
        assert len(content) < 3 * RESULT_BYTES


@pytest.mark.req("S2-36", "S2-101")
def test_any_object_with_one_method_is_a_signal() -> None:
    async def execute(arguments, signal=None):
        return str(type(signal).__name__)

    one = AgentTool(name="look", description="", parameters={}, execute=execute)

    assert ran(one, signal=Signal())["content"] == "Signal"
    assert ran(one)["content"] == "NoneType"


@pytest.mark.req("S2-10", "S2-11")
def test_a_file_keeps_its_head_and_a_command_its_tail() -> None:
    text = "".join(f"line {number}\n" for number in range(1, 5_001))

    first, last = head(text), tail(text)

    assert (first.shown, first.total, first.is_whole) == (2_000, 5_000, False)
    assert first.text.split("\n")[0::1999] == ["line 1", "line 2000"]
    assert (last.shown, last.total) == (2_000, 5_000)
    assert last.text.split("\n")[0::1999] == ["line 3001", "line 5000"]


@pytest.mark.req("S2-10")
def test_bytes_are_counted_and_not_characters() -> None:
    assert head("é" * 25_000).is_whole
    assert head("é" * 25_001).text == ""
    assert head(f"{'é' * 24_999}\na").is_whole
    assert head(f"{'é' * 24_999}\naé").shown == 1


@pytest.mark.req("S2-10")
@pytest.mark.parametrize("cut", [head, tail])
@given(text=st.text(alphabet="aé\n", max_size=60), lines=st.integers(1, 9), size=st.integers(1, 40))
def test_what_is_kept_is_whole_lines_within_the_budget(cut, text, lines, size) -> None:
    kept = cut(text, lines=lines, size=size)
    every = text.removesuffix("\n").split("\n") if text else []
    left = kept.text.split("\n") if kept.shown else []

    assert kept.total == len(every)
    assert left == (every[: kept.shown] if cut is head else every[len(every) - kept.shown :])
    assert kept.shown <= lines
    assert len(kept.text.encode()) <= size
    if not kept.is_whole and kept.shown < lines:
        more = every[kept.shown] if cut is head else every[-kept.shown - 1]
        assert len("\n".join([*left, more]).encode()) > size


@pytest.mark.req("S2-11")
@given(
    chunks=st.lists(st.text(alphabet="aé\n", max_size=30).map(str.encode), max_size=20),
    size=st.integers(4, 40),
)
def test_a_tail_that_comes_in_pieces_is_that_of_the_whole(chunks, size) -> None:
    collected = Tail(lines=5, size=size)
    for chunk in chunks:
        collected.feed(chunk)

    assert collected.kept() == tail(b"".join(chunks).decode(), lines=5, size=size)
