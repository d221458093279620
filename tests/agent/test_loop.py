"""The loop: what it announces, when it ends, and what it never does between two events."""

import asyncio
import inspect
from typing import Any

import pytest

from landed.agent import bash, guard, harness, loop, messages, repair, tool, validate
from landed.agent.loop import Agent, Limits, run_agent
from landed.agent.messages import ABORTED, error_message, user_message
from landed.agent.signal import CancelToken
from landed.agent.validate import transcript_problems
from landed.testing.scripted import ScriptedReplies, asks, call, says
from landed.testing.shapes import shape
from landed.testing.ticks import driven
from tests.agent.simulated import simulated
from tests.agent.tools import reading
from tests.agent.tools import tool as made

READ_A = call("c1", "read", path="a.py")
TWO_TURNS = [
    "agent_start",
    "turn_start",
    "message_end",
    "message_end",
    "tool_execution_start",
    "message_end",
    "tool_execution_end",
    "turn_end",
    "turn_start",
    "message_end",
    "turn_end",
    "agent_end",
]
STARTS = {"agent_start", "turn_start", "tool_execution_start"}


def ran(model, *, tools=(), said="Go.", record=None, signal=None, limits=None, **asked):
    """Run the loop over a record; return the record and the events."""
    record = [] if record is None else record
    agent = Agent(model=model, tools=tools, limits=limits or Limits())
    run = run_agent(agent, [user_message(said)], record, signal, **asked)
    return record, simulated(driven(run))


def types(events) -> list[str]:
    return [event["type"] for event in events]


def is_balanced(events) -> bool:
    begun: list[str] = []
    for type in types(events):
        if type in STARTS:
            begun.append(type)
        elif type != "message_end" and begun.pop().replace("start", "end") != type:
            return False
    return not begun


@pytest.mark.req("S2-24", "S2-36")
def test_a_run_of_two_turns_is_twelve_events() -> None:
    record, events = ran(ScriptedReplies(asks(READ_A), says("Done.")), tools=[reading()])

    assert types(events) == TWO_TURNS
    assert shape(record) == "U A[c1] R(c1) A"
    assert [event["message"] for event in events if "message" in event] == record
    assert events[6].get("result") is record[2]


@pytest.mark.req("S2-26", "K28")
def test_a_message_is_in_the_record_when_it_is_announced() -> None:
    record: list = []
    agent = Agent(model=ScriptedReplies(asks(READ_A), says("Done.")), tools=[reading()])

    async def program() -> int:
        announced = 0
        async for event in run_agent(agent, [user_message("Go.")], record):
            if event["type"] == "message_end":
                announced += 1
                assert record[-1] is event.get("message")
                assert len(record) == announced
        return announced

    assert simulated(program()) == 4


@pytest.mark.req("S2-27")
def test_results_go_back_to_the_model_until_it_asks_for_none() -> None:
    model = ScriptedReplies(
        asks(READ_A), asks(call("c2", "read", path="b.py"), text="And"), says("Both read.")
    )
    record, _ = ran(model, tools=[reading()])

    assert shape(record) == "U A[c1] R(c1) A[c2] R(c2) A"
    assert [shape(request.messages) for request in model.calls] == [
        "U",
        "U A[c1] R(c1)",
        "U A[c1] R(c1) A[c2] R(c2)",
    ]
    assert model.calls[1].messages[-1]["content"] == "contents of a.py"


def stopped(act=lambda token: None):
    token = CancelToken()
    act(token)
    return token


EXITS = {
    "done": (lambda: ScriptedReplies(says("Hello.")), None, "U A"),
    "max_turns": (
        lambda: ScriptedReplies(forever=asks(READ_A)),
        None,
        "U A[c1] R(c1) A[c1] R(c1) A(error)",
    ),
    "failed": (lambda: ScriptedReplies(error_message("overloaded")), None, "U A(error)"),
    "raised": (lambda: ScriptedReplies(OSError("no route")), None, "U A(error)"),
    "stopped": (lambda: ScriptedReplies(), stopped(CancelToken.cancel), "U A(aborted)"),
}


@pytest.mark.req("S2-25")
@pytest.mark.parametrize(("model", "signal", "expected"), EXITS.values(), ids=EXITS)
def test_events_are_balanced_at_each_exit(model, signal, expected) -> None:
    record, events = ran(model(), tools=[reading()], signal=signal, limits=Limits(max_turns=2))

    assert shape(record) == expected
    assert is_balanced(events)
    assert types(events)[-2:] == ["turn_end", "agent_end"]
    assert transcript_problems(record) == []


@pytest.mark.req("S2-28")
def test_a_runaway_is_stopped_between_turns() -> None:
    model = ScriptedReplies(forever=asks(READ_A, call("c2", "read", path="b.py")))
    record, _ = ran(model, tools=[reading()], limits=Limits(max_turns=3))

    assert record[-1] == error_message("Agent stopped after max_turns=3")
    assert len(model.calls) == 3
    assert transcript_problems(record[:-1], "request") == []


@pytest.mark.req("S2-29")
@pytest.mark.parametrize("reason", ["error", "aborted"])
def test_nothing_of_a_failed_reply_is_acted_on(reason) -> None:
    acted: list = []
    reply: Any = {**asks(READ_A, text="I will"), "stop_reason": reason, "error_message": "cut off"}
    model = ScriptedReplies(reply, says("Never."))
    record, events = ran(model, tools=[reading(before=acted.append)])

    assert acted == []
    assert len(model.calls) == 1
    assert shape(record) == f"U A[c1]({reason})"
    assert "tool_execution_start" not in types(events)


TEXT: Any = '{"path": "a.py"}'
UNUSABLE = {
    "nothing": None,
    "a user's message": user_message("I am the user"),
    "no reason": {"role": "assistant", "content": []},
    "a reason of its own": {"role": "assistant", "content": [], "stop_reason": ["x"]},
    "text for arguments": asks({**READ_A, "arguments": TEXT}),
    "one id twice": asks(READ_A, READ_A),
    "a block of its own": {
        "role": "assistant",
        "content": [{"type": "image"}],
        "stop_reason": "stop",
    },
}


@pytest.mark.parametrize("reply", UNUSABLE.values(), ids=UNUSABLE)
def test_what_is_no_reply_is_a_failed_one(reply) -> None:
    record, _ = ran(ScriptedReplies(lambda request: reply), tools=[reading()])

    assert shape(record) == "U A(error)"
    assert "cannot be used" in record[-1]["error_message"]
    assert transcript_problems(record) == []


@pytest.mark.req("S2-93")
def test_a_hung_model_and_a_hung_tool_end_by_themselves() -> None:
    async def hangs(_) -> Any:
        await asyncio.Event().wait()

    limits = Limits(model_s=30, tool_s=60)
    model = ScriptedReplies(asks(call("c1", "wait")), hangs)
    record, _ = ran(model, tools=[made("wait", hangs)], limits=limits)

    assert shape(record, errors=True) == "U A[c1] R(c1 error) A(error)"
    assert record[2]["content"] == (
        "No answer within 60 s, so it was stopped. "
        "It may have run partly; check before repeating it."
    )
    assert record[3]["error_message"] == "The model gave no answer within 30 s"


@pytest.mark.req("S2-35")
def test_the_loop_is_given_callables_and_no_queue() -> None:
    heard = iter([None, user_message("And b.py."), None])
    record, _ = ran(
        ScriptedReplies(asks(READ_A), says("Read."), says("Later.")),
        tools=[reading()],
        steering=lambda: next(heard),
    )

    assert shape(record) == "U A[c1] R(c1) U A"
    parameters = inspect.signature(run_agent).parameters
    assert all(parameters[name].default is loop.nobody for name in ("steering", "follow_ups"))


@pytest.mark.req("S2-49", "S2-30", "S2-97", "S2-04")
def test_a_stop_during_the_first_of_three_files() -> None:
    token = CancelToken()
    three = [call(f"c{n}", "read", path=path) for n, path in enumerate(["a.py", "b.py", "c.py"], 1)]
    read: list = []

    def cancels(path):
        read.append(path)
        token.cancel()

    model = ScriptedReplies(asks(*three), says("Never asked for."))
    record, events = ran(model, tools=[reading(before=cancels)], signal=token)

    assert shape(record) == "U A[c1,c2,c3] R(c1) R(c2) R(c3) A(aborted)"
    assert [(m["content"], m["is_error"]) for m in record[2:5]] == [
        ("contents of a.py", False),
        (ABORTED, True),
        (ABORTED, True),
    ]
    assert record[-1] == error_message(ABORTED, "aborted")
    assert (len(model.calls), read) == (1, ["a.py"])
    assert transcript_problems(record) == []
    each = ["tool_execution_start", "message_end", "tool_execution_end"]
    assert types(events)[4:] == [
        *(each * 3),
        "turn_end",
        "turn_start",
        "message_end",
        "turn_end",
        "agent_end",
    ]


@pytest.mark.req("S2-07")
def test_each_tool_is_handed_the_token_of_the_run() -> None:
    token, seen = CancelToken(), []

    async def execute(arguments, signal=None):
        assert signal is not None
        seen.append((signal is token, signal.is_cancelled()))
        token.cancel()
        seen.append((signal is token, signal.is_cancelled()))
        return "done"

    recorder = tool.AgentTool(name="look", description="", parameters={}, execute=execute)
    guarded = guard.guard(recorder, lambda name, arguments: None)
    for one in (recorder, guarded):
        token, before = CancelToken(), len(seen)
        ran(ScriptedReplies(asks(call("c1", "look"))), tools=[one], signal=token)
        assert seen[before:] == [(True, False), (True, True)]


@pytest.mark.req("S2-37", "S2-57")
def test_a_function_waits_only_if_it_waits_for_the_model_or_a_tool() -> None:
    rooms = (bash, guard, harness, loop, messages, repair, tool, validate)
    plain = {"guard", "tool_specs", "messages_for_model", "render", "transcript_problems"}
    waits = {
        name
        for room in rooms
        for name, member in inspect.getmembers(room, inspect.isfunction)
        if member.__module__ == room.__name__
        and (inspect.iscoroutinefunction(member) or inspect.isasyncgenfunction(member))
    }

    assert {"run_tool", "run_agent"} <= waits
    assert not waits & plain
    assert not inspect.iscoroutinefunction(harness.Harness.prompt)
    assert not inspect.iscoroutinefunction(harness.Harness.cancel)
    looks = {
        room.__name__.rpartition(".")[2]
        for room in rooms
        if "is_cancelled()" in inspect.getsource(room)
    }
    assert looks == {"loop", "tool", "bash", "guard"}
