"""What becomes of a batch of calls while the user says something, and how each end is told."""

import asyncio

import pytest

from landed.agent.bash import CANCELLED, PARTLY, bash_tool
from landed.agent.harness import Harness
from landed.agent.loop import NOT_RUN, SteerMode
from landed.agent.messages import ABORTED, text_of
from landed.agent.session import Setting
from landed.agent.stop import stop_run
from landed.agent.tool import AgentTool
from landed.agent.validate import transcript_problems
from landed.testing.scripted import ScriptedReplies, asks, call, says
from landed.testing.shapes import shape
from landed.testing.ticks import Background, driven
from landed.testing.workspace import FakeShell
from tests.agent.far import Far, asked, conversation, hears, operation_in, result_of
from tests.agent.simulated import simulated

BATCH = asks(
    call("c1", "bash", command="sleep 9; echo one"),
    call("c2", "bash", command="echo two"),
    call("c3", "bash", command="echo three"),
)


@pytest.mark.req("K18")
@pytest.mark.field("D10")
@pytest.mark.parametrize(
    ("mode", "results"),
    [
        (SteerMode.AFTER_BATCH, ("one", "two", "three")),
        (SteerMode.SKIP_REST, ("one", NOT_RUN, NOT_RUN)),
        (SteerMode.INTERRUPT, (f"{PARTLY}\n{CANCELLED}", NOT_RUN, NOT_RUN)),
    ],
)
def test_each_call_has_one_result_that_says_whether_it_was_run(
    mode: SteerMode, results: tuple[str, ...]
) -> None:
    async def program() -> None:
        model = ScriptedReplies(BATCH, says("Saturday, then."))
        harness = Harness(model=model, tools=[bash_tool(FakeShell())], steer_mode=mode)
        background = Background(harness.prompt("Build."))
        await background.until("tool_execution_start")
        harness.steer("Actually, Saturday.")
        await background.running

        record = harness.messages
        assert shape(record) == "U A[c1,c2,c3] R(c1) R(c2) R(c3) U A"
        assert tuple(result_of(record, id) for id in ("c1", "c2", "c3")) == results
        assert transcript_problems(asked(model), "request") == []
        assert text_of(asked(model)[-1]) == "Actually, Saturday."

    simulated(program())


@pytest.mark.req("K18")
@pytest.mark.parametrize("mode", [SteerMode.SKIP_REST, SteerMode.INTERRUPT])
def test_words_that_are_in_leave_out_nothing_of_the_next_batch(mode: SteerMode) -> None:
    async def program() -> None:
        model = ScriptedReplies(BATCH, BATCH, says("Built."))
        harness = Harness(model=model, tools=[bash_tool(FakeShell())], steer_mode=mode)
        background = Background(harness.prompt("Build."))
        await background.until("tool_execution_start")
        harness.steer("Hurry.")
        await background.running
        assert [text_of(m) for m in harness.messages if m["role"] == "toolResult"][-3:] == [
            "one",
            "two",
            "three",
        ]

    simulated(program())


@pytest.mark.req("K18")
def test_a_stop_is_stronger_than_words() -> None:
    async def program() -> None:
        model = ScriptedReplies(BATCH)
        mode = SteerMode.SKIP_REST
        harness = Harness(model=model, tools=[bash_tool(FakeShell())], steer_mode=mode)
        background = Background(harness.prompt("Build."))
        await background.until("tool_execution_start")
        harness.steer("Hurry.")
        harness.cancel()
        await background.running
        assert result_of(harness.messages, "c2") == ABORTED
        assert shape(harness.messages) == "U A[c1,c2,c3] R(c1) R(c2) R(c3) A(aborted)"
        await driven(harness.prompt("Now."))
        assert shape(harness.messages).endswith("U U A(error)")

    simulated(program())


@pytest.mark.req("K18", "S0-15")
def test_words_end_only_the_wait_for_an_effect_and_it_goes_on() -> None:
    async def program() -> None:
        far = Far(reply=asyncio.Event())
        assert far.reply is not None
        model = ScriptedReplies(
            asks(call("c1", "reserve", day="Fri"), call("c2", "reserve", day="Sat")),
            says("Friday is under way."),
            says("Friday it is."),
        )
        setting = Setting(steer_mode=SteerMode.INTERRUPT)
        async with conversation(far, model, setting=setting) as session:
            background = Background(await session.prompt("Book Friday and Saturday."))
            await far.arrived.wait()
            await session.steer("Wait, only Friday.")
            await background.running
            first = result_of(asked(model), "c1")
            assert "goes on" in first
            assert "stopped" not in first
            assert result_of(asked(model), "c2") == NOT_RUN

            far.reply.set()
            await session.rt.resolve(operation_in(first))
            await hears(session, "And?")
            assert "Booked R1 (Fri)" in text_of(asked(model)[-2])
            assert list(far.tables.values()) == ["Fri"]

    asyncio.run(program())


@pytest.mark.req("K20")
def test_a_call_that_a_stop_ends_is_told_in_one_of_three_ways() -> None:
    async def program() -> tuple[str, str, str]:
        far = Far(reply=asyncio.Event(), can_look=False)

        async def build(arguments, signal=None) -> str:
            return f"{PARTLY}\n{CANCELLED}"

        tool = AgentTool(name="build", description="", parameters={}, execute=build)
        model = ScriptedReplies(
            asks(
                call("c1", "build"),
                call("c2", "reserve", day="Fri"),
                call("c3", "reserve", day="Sat"),
            )
        )
        async with conversation(far, model, setting=Setting(tools=[tool])) as session:
            background = Background(await session.prompt("Build and book."))
            await far.arrived.wait()
            assert await stop_run(session.harness, background.running, by="ana") == "clean"
            record = session.harness.messages
            assert shape(record) == "U A[c1,c2,c3] R(c1) R(c2) R(c3) A(aborted)"
            return (
                result_of(record, "c1"),
                result_of(record, "c2"),
                result_of(record, "c3"),
            )

    partly, unknown, not_run = asyncio.run(program())
    assert "may have done part" in partly
    assert "utcome unknown" in unknown
    assert "op-" in unknown
    assert not_run == ABORTED
    assert "cancel" not in unknown.lower()


@pytest.mark.req("S0-63")
def test_words_during_a_run_are_a_turn_of_their_own_with_an_account_of_its_own() -> None:
    async def program() -> None:
        far = Far(reply=asyncio.Event())
        assert far.reply is not None
        model = ScriptedReplies(
            asks(call("c1", "reserve", day="Fri")),
            asks(call("c2", "reserve", day="Sat")),
            says("Both are booked. I have also refunded 480."),
            says("Yes."),
        )
        async with conversation(far, model) as session:
            background = Background(await session.prompt("Book Friday."))
            await far.arrived.wait()
            await session.steer("And Saturday.")
            far.reply.set()
            await background.running
            told = [e["account"] for e in background.events if "account" in e]
            assert [each["report"] for each in told] == ["Booked R1 (Fri).", "Booked R2 (Sat)."]
            assert [len(each["unsupported"]) for each in told] == [0, 1]
            again = [e for e in await hears(session, "Really?") if "account" in e]
            assert len(again) == 1

    asyncio.run(program())
