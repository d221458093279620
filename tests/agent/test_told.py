"""What the model and the log are told of each cause, and an experiment with the test kit."""

import asyncio
import json

import jsonschema_rs
import pytest

from landed.agent.bash import bash_tool
from landed.agent.files import file_tools
from landed.agent.guard import guard
from landed.agent.harness import Harness
from landed.agent.loop import Limits
from landed.agent.messages import ABORTED, error_message
from landed.agent.repair import INTERRUPTED
from landed.agent.session_log import SessionLog, persist_to
from landed.testing.scripted import ScriptedReplies, asks, call, never_answers, says
from landed.testing.shapes import PowerCut, shape, show
from landed.testing.ticks import Background, driven, tick, ticks
from landed.testing.workspace import FakeShell, FakeWorkspace
from tests.agent.simulated import simulated
from tests.agent.tools import deaf, reading, tool

ONE_MESSAGE = {
    "oneOf": [
        {
            "type": "object",
            "properties": {"role": {"const": "user"}, "content": {"type": "string"}},
            "required": ["role", "content"],
            "additionalProperties": False,
        },
        {
            "type": "object",
            "properties": {
                "role": {"const": "assistant"},
                "content": {"type": "array", "items": {"$ref": "#/$defs/block"}},
                "stop_reason": {"enum": ["stop", "toolUse", "length", "error", "aborted"]},
                "error_message": {"type": "string"},
            },
            "required": ["role", "content", "stop_reason"],
            "additionalProperties": False,
        },
        {
            "type": "object",
            "properties": {
                "role": {"const": "toolResult"},
                "tool_call_id": {"type": "string"},
                "tool_name": {"type": "string"},
                "content": {"type": "string"},
                "is_error": {"type": "boolean"},
                "synthetic": {"type": "boolean"},
            },
            "required": ["role", "tool_call_id", "tool_name", "content", "is_error"],
            "additionalProperties": False,
        },
    ],
    "$defs": {
        "block": {
            "oneOf": [
                {
                    "type": "object",
                    "properties": {"type": {"const": "text"}, "text": {"type": "string"}},
                    "required": ["type", "text"],
                    "additionalProperties": False,
                },
                {
                    "type": "object",
                    "properties": {
                        "type": {"const": "toolCall"},
                        "id": {"type": "string"},
                        "name": {"type": "string"},
                        "arguments": {"type": "object"},
                    },
                    "required": ["type", "id", "name", "arguments"],
                    "additionalProperties": False,
                },
            ]
        }
    },
}


@pytest.mark.req("S2-01", "S2-96")
def test_each_line_of_the_log_is_a_message_as_described(tmp_path) -> None:
    log = SessionLog(tmp_path / "session.jsonl", sync="system")
    valid = jsonschema_rs.validator_for(ONE_MESSAGE)

    async def program() -> None:
        model = ScriptedReplies(
            asks(call("c1", "read", path="a.py"), call("c2", "read"), text="Let me look."),
            error_message("overloaded"),
            asks(call("c3", "wait")),
        )
        harness = Harness(model=model, tools=[reading(), deaf()], repair="durable")
        harness.subscribe(persist_to(log))
        await driven(harness.prompt("Read."))
        background = Background(harness.prompt("Wait."))
        await background.until("tool_execution_start")
        await tick()
        background.running.cancel()
        await asyncio.wait({background.running})
        run = harness.prompt("Never mind.")
        harness.cancel()
        await driven(run)

    simulated(program())

    lines = [json.loads(line) for line in log.path.read_text().splitlines()]
    messages = [line["message"] for line in lines]
    assert shape(messages) == ("U A[c1,c2] R(c1) R(c2) A(error) U A[c3] R(c3) U A(aborted)")
    assert all(map(valid.is_valid, messages))
    assert not valid.is_valid({"role": "user", "content": ["text"]})
    reasons = [m["stop_reason"] for m in messages if m["role"] == "assistant"]
    assert reasons == ["toolUse", "error", "toolUse", "aborted"]


def fails(arguments):
    raise ValueError("no such day")


def cut(arguments):
    raise PowerCut


def refuse(name, arguments):
    return "not on a Friday"


def broken(name, arguments):
    raise KeyError("friday")


LONG = tool("act", lambda arguments: "yes\n" * 10_000)
# What happens in the first call, and the last thing that the model is shown of it afterwards.
CAUSES = {
    "the tool fails": (tool("act", fails), "no such day"),
    "there is no such tool": (reading(), "Tool act not found"),
    "the guard refuses": (guard(LONG, refuse), "Tool call blocked: not on a Friday"),
    "the guard fails": (guard(LONG, broken), "Tool call blocked: the check failed: 'friday'"),
    "it is too long": (LONG, "yes\n" * 4_000 + "[Cut: 4000 of 10000 lines.]"),
    "it takes too long": (
        tool("act", deaf().execute),
        "No answer within 60 s, so it was stopped. "
        "It may have run partly; check before repeating it.",
    ),
    "a stop is asked for": (None, ABORTED),
    "the task is cancelled": (tool("act", deaf().execute), INTERRUPTED),
    "the program ends": (tool("act", cut), INTERRUPTED),
}


@pytest.mark.req("S2-110")
@pytest.mark.parametrize(("cause", "told"), CAUSES.items(), ids=CAUSES)
def test_what_the_model_is_shown_of_each_cause(cause, told) -> None:
    one, expected = told
    harness: Harness

    def stops(arguments):
        harness.cancel()
        return "done"

    calls = [call("c1", "act")] if one else [call("c0", "stops"), call("c1", "act")]
    model = ScriptedReplies(asks(*calls), forever=says("I see."))

    async def program() -> None:
        nonlocal harness
        tools = [one] if one else [tool("stops", stops), LONG]
        harness = Harness(model=model, tools=tools, limits=Limits(tool_s=60.0))
        background = Background(harness.prompt("Go."))
        if cause == "the task is cancelled":
            await background.until("tool_execution_start")
            await ticks(2)
            background.running.cancel()
        await asyncio.wait({background.running})
        raised = background.running.cancelled() or background.running.exception() is not None
        assert raised is (expected == INTERRUPTED)
        await driven(harness.prompt("What happened?"))

    simulated(program())
    results = [m for m in model.calls[-1].messages if m["role"] == "toolResult"]
    assert (results[-1]["tool_call_id"], results[-1]["content"]) == ("c1", expected)
    assert results[-1]["is_error"] is (cause != "it is too long")


@pytest.mark.req("S2-67")
def test_a_request_whose_time_is_over_is_abandoned_and_not_cancelled() -> None:
    async def program() -> str:
        harness = Harness(model=ScriptedReplies(never_answers), limits=Limits(model_s=5.0))
        await driven(harness.prompt("Go."))
        return harness.request_status

    assert simulated(program()) == "abandoned"


@pytest.mark.req("S2-106")
def test_a_small_experiment_with_the_kit() -> None:
    async def program() -> None:
        shell = FakeShell(FakeWorkspace({"a.py": "one"}))
        model = ScriptedReplies(
            asks(call("c1", "read", path="a.py"), call("c2", "bash", command="sleep inf")),
            forever=lambda request: says(f"I was shown {len(request.messages)} messages."),
        )
        tools = [*file_tools(shell.workspace), bash_tool(shell)]
        harness = Harness(model=model, tools=tools, system="Be brief.")
        background = Background(harness.prompt("Read, then wait."))
        await background.until("tool_execution_start", nth=2)
        await ticks(3)
        (command,) = shell.alive
        assert (command.line, command.done, command.output().text) == ("sleep inf", False, "")

        command.kill()
        assert (shell.alive, command.done, command.killed) == ([], True, True)
        background.running.cancel()
        await asyncio.wait({background.running})
        await driven(harness.prompt("And now?"))

        assert shape(harness.messages) == "U A[c1,c2] R(c1) U A"
        assert show(harness.messages).splitlines()[-1] == (
            "  5  assistant: I was shown 5 messages."
        )
        first, second = model.calls
        assert (first.system, shape(first.messages)) == ("Be brief.", "U")
        assert shape(second.messages, errors=True) == "U A[c1,c2] R(c1) R(c2 error) U"
        assert [spec["name"] for spec in first.tools] == ["read", "write", "edit", "bash"]
        assert first.signal is not second.signal

    simulated(program())
