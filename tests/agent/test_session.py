"""An agent's conversation over a runtime: told from the records, decided by code, stopped."""

import asyncio

import pytest

import landed
from landed.agent.effects import Seen
from landed.agent.ledger import CUT_OFF, NEVER_BEGAN, NOTE
from landed.agent.loop import Limits
from landed.agent.messages import text_of
from landed.agent.repair import INTERRUPTED
from landed.agent.session import AgentSession, Setting
from landed.agent.stop import stop_run
from landed.agent.tool import AgentTool
from landed.core.changes import Record
from landed.testing.scripted import ScriptedReplies, asks, call, says
from landed.testing.shapes import shape
from landed.testing.ticks import Background, ticks
from tests.agent.far import (
    Far,
    account_of,
    asked,
    conversation,
    hears,
    operation_in,
    result_of,
)


@pytest.mark.req("S0-63")
def test_what_a_model_does_is_an_operation_and_the_account_is_of_the_records() -> None:
    async def told() -> None:
        far = Far()
        model = ScriptedReplies(
            asks(call("c1", "free", day="Fri"), call("c2", "reserve", day="Fri")), says("Booked.")
        )
        async with conversation(far, model) as session:
            events = await hears(session, "Book Friday.")
            assert list(far.tables.values()) == ["Fri"]
            account = account_of(events)
            assert account["report"] == "Booked R1 (Fri)."
            assert [await session.rt.status(id) for id in account["operations"]]
            assert shape(session.harness.messages) == "U A[c1,c2] R(c1) R(c2) A"
            assert "Booked R1 (Fri)" in result_of(session.harness.messages, "c2")
            assert '{"free": true}' in result_of(session.harness.messages, "c1")

    asyncio.run(told())


@pytest.mark.req("S1-13", "S1-23")
def test_a_yes_is_carried_out_by_code_and_the_model_is_not_asked() -> None:
    async def told() -> None:
        far = Far()
        model = ScriptedReplies(asks(call("c1", "text", to="Sam")), says("I asked you."))
        async with conversation(far, model) as session:
            plans: list[landed.PlanValue] = []
            session.seen = Seen(plan=plans.append)
            first = account_of(await hears(session, "Text Sam."))
            assert first["questions"]
            assert not far.texts
            events = await hears(session, "yes, please")
            assert far.texts == ["Sam"]
            assert "texted Sam" in account_of(events)["report"]
            assert "texted Sam" in text_of(session.harness.messages[-1])
            assert len(model.calls) == 2
            assert plans[0].offer is not None
            assert plans[0].offer.token
            assert plans[0].offer.token not in str(model.calls)

    asyncio.run(told())


@pytest.mark.req("S1-25")
def test_other_words_let_the_question_lapse_and_go_to_the_model() -> None:
    async def told() -> None:
        far = Far()
        model = ScriptedReplies(
            asks(call("c1", "text", to="Sam")), says("I asked you."), says("Whom then?")
        )
        async with conversation(far, model) as session:
            await hears(session, "Text Sam.")
            await hears(session, "Yes, but not Sam.")
            assert far.texts == []
            assert text_of(asked(model)[-1]) == "Yes, but not Sam."
            assert text_of(asked(model)[-2]).startswith(NOTE)

    asyncio.run(told())


@pytest.mark.req("K1")
@pytest.mark.field("E3")
def test_a_hard_stop_leaves_a_hole_that_the_records_fill_and_the_truth_follows() -> None:
    async def told() -> None:
        far = Far(reply=asyncio.Event(), can_look=False)
        model = ScriptedReplies(
            asks(call("c1", "reserve", day="Fri")), says("Not known yet."), says("It did happen.")
        )
        async with conversation(far, model) as session:
            background = Background(await session.prompt("Book Friday."))
            await far.arrived.wait()
            assert await stop_run(session.harness, background.running, grace_s=0) == "hard"
            assert shape(session.harness.messages) == "U A[c1]"

            await hears(session, "And?")
            shown = result_of(asked(model), "c1")
            assert shown.startswith(CUT_OFF)
            assert "utcome unknown" in shown
            assert "cancelled" not in shown
            before = list(session.harness.messages)

            far.can_look = True
            found = await session.rt.resolve(operation_in(shown))
            assert found.text == "Booked R1 (Fri)."
            await hears(session, "And now?")
            note = text_of(asked(model)[-2])
            assert note.startswith(NOTE)
            assert "Booked R1 (Fri)" in note
            assert "happened at" in note
            assert list(session.harness.messages[: len(before)]) == before
            assert len(far.tables) == 1

    asyncio.run(told())


@pytest.mark.req("S2-61", "K2")
def test_a_cancel_while_a_plan_is_waited_for_stops_it_hard_before_it_goes_on() -> None:
    async def told() -> None:
        far = Far(reply=asyncio.Event(), can_look=False, on_interrupt="finish")
        model = ScriptedReplies(asks(call("c1", "reserve", day="Fri")))
        async with conversation(far, model) as session:
            waits = asyncio.Event()
            session.seen = Seen(progress=lambda progress: waits.set())
            background = Background(await session.prompt("Book Friday."))
            await waits.wait()
            await far.arrived.wait()
            await ticks(20)
            assert await stop_run(session.harness, background.running, grace=0) == "hard"
            (plan,) = await records(session, "plan")
            (operation,) = await records(session, "operation")
            assert (plan.state, operation.state) == ("stopping", "unknown")

    asyncio.run(told())


async def records(session: AgentSession, kind: str) -> list[Record]:
    """Return the conversation's records of a kind."""
    every = await session.rt.driver.reader.records(tenant="default", session="s1")
    return [record for record in every if record.kind == kind]


@pytest.mark.req("K2")
def test_a_stop_waits_for_a_call_that_has_to_finish_and_tells_what_came_of_it() -> None:
    async def told() -> None:
        far = Far(reply=asyncio.Event(), on_interrupt="finish")
        assert far.reply is not None
        model = ScriptedReplies(asks(call("c1", "reserve", day="Fri")))
        async with conversation(far, model) as session:
            background = Background(await session.prompt("Book Friday."))
            await far.arrived.wait()
            session.cancel()
            await ticks(50)
            assert not background.running.done()
            far.reply.set()
            await background.running
            assert "Booked R1 (Fri)" in result_of(session.harness.messages, "c1")
            assert shape(session.harness.messages) == "U A[c1] R(c1) A(aborted)"

    asyncio.run(told())


def test_nobody_knows_what_a_tool_without_a_record_did_when_it_was_cut_off() -> None:
    async def told() -> None:
        tool = AgentTool(name="build", description="", parameters={}, execute=deaf)
        model = ScriptedReplies(asks(call("c1", "build")), says("Then not."))
        async with conversation(Far(), model, setting=Setting(tools=[tool])) as session:
            background = Background(await session.prompt("Build."))
            await background.until("tool_execution_start")
            await stop_run(session.harness, background.running, grace=0)
            await hears(session, "And?")
            assert result_of(asked(model), "c1") == INTERRUPTED

    asyncio.run(told())


async def deaf(arguments: object, signal: object = None) -> str:
    await asyncio.Event().wait()
    return "never"


def test_a_call_that_was_cut_off_before_its_record_is_said_not_to_have_begun() -> None:
    async def told() -> None:
        far = Far()
        model = ScriptedReplies(asks(call("c1", "reserve", day="Fri")), says("Then not."))
        async with conversation(far, model) as session:
            run = await session.prompt("Book Friday.")
            async for event in run:
                if event["type"] == "tool_execution_start":
                    break
            await run.aclose()
            await hears(session, "And?")
            assert result_of(asked(model), "c1") == NEVER_BEGAN
            assert not far.tables

    asyncio.run(told())


@pytest.mark.req("S0-63")
def test_what_the_model_says_and_no_record_bears_out_is_shown_and_put_to_it() -> None:
    async def told() -> None:
        model = ScriptedReplies(
            asks(call("c1", "reserve", day="Fri")),
            says("Your table is booked (R1). I have also refunded 480."),
            says("I am sorry: nothing was refunded."),
            says("Your table is booked (R1)."),
        )
        async with conversation(Far(), model) as session:
            account = account_of(await hears(session, "Book Friday."))
            ((sentence, wrong),) = account["unsupported"]
            assert "refunded 480" in sentence
            assert "records" in wrong
            assert account_of(await hears(session, "Really?"))["unsupported"] == []
            note = text_of(asked(model)[-2])
            assert note.startswith(NOTE)
            assert "refunded 480" in note
            await hears(session, "And the table?")
            assert not text_of(asked(model)[-2]).startswith(NOTE)

    asyncio.run(told())


@pytest.mark.req("S4-42")
@pytest.mark.field("A7")
def test_a_call_that_takes_longer_than_a_tool_may_goes_on_and_is_told_so() -> None:
    async def told() -> None:
        far = Far(reply=asyncio.Event())
        assert far.reply is not None
        model = ScriptedReplies(
            asks(call("c1", "reserve", day="Fri")), says("It takes long."), says("It is booked.")
        )
        setting = Setting(limits=Limits(tool_s=0.4))
        async with conversation(far, model, setting=setting) as session:
            await hears(session, "Book Friday.")
            first = result_of(asked(model), "c1")
            assert "being carried out" in first
            assert "stopped" not in first
            far.reply.set()
            (plan,) = await records(session, "plan")
            async for _ in session.rt.progress(plan.id):
                pass
            await hears(session, "And?")
            assert "Booked R1 (Fri)" in text_of(asked(model)[-2])

    asyncio.run(told())
