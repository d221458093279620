"""An agent's conversation that is long, cut off, or badly told: what a model has of it then."""

import asyncio
import re
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

import landed
from landed.agent.compaction import SYSTEM
from landed.agent.effects import Effects
from landed.agent.ledger import CUT_OFF, DECIDED, NOTE, PINNED, is_unanswered, told_states
from landed.agent.loop import SteerMode
from landed.agent.messages import (
    AssistantMessage,
    Message,
    assistant_message,
    text_of,
    tool_call,
    user_message,
)
from landed.agent.session import AgentSession, Setting
from landed.agent.stop import stop_run
from landed.agent.tool import AgentTool
from landed.core.changes import Record
from landed.core.errors import ContractError
from landed.runtime.clock import WallClock
from landed.testing.scripted import Request, ScriptedReplies, asks, call, says
from landed.testing.shapes import shape
from landed.testing.ticks import Background, driven, tick
from tests.agent.far import (
    Far,
    account_of,
    asked,
    conversation,
    hears,
    operation_in,
    result_of,
)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.services)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Name a store that outlives its process: a file, or a database of a server."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/a.db"
    url: str = request.getfixturevalue("url")
    return url


FRIDAY = asks(call("c1", "reserve", day="Fri"))


def forgetful(*replies: AssistantMessage) -> ScriptedReplies:
    """A model whose summaries keep the request and drop the action."""
    script = list(replies)

    def reply(request: Request) -> AssistantMessage:
        if request.system == SYSTEM:
            return says("The user wants a table on Friday.")
        return script.pop(0)

    return ScriptedReplies(forever=reply)


@pytest.mark.req("K23", "S0-62")
@pytest.mark.field("E4")
def test_a_summary_that_drops_an_effect_has_it_pinned_beside_it() -> None:
    async def told() -> None:
        far = Far()
        talk = [says("x" * 2_000) for _ in range(12)]
        model = forgetful(FRIDAY, says("Booked."), *talk, says("It is booked already: R1."))
        setting = Setting(window_tokens=17_400)
        async with conversation(far, model, setting=setting) as session:
            await hears(session, "Book Friday.")
            for _ in talk:
                await hears(session, "Tell me something.")
            await hears(session, "Go on with the booking.")
            shown = [text_of(message) for message in asked(model)]
            assert "The user wants a table on Friday." in shown[0]
            assert PINNED in shown[0]
            assert "Booked R1 (Fri)" in shown[0]
            assert FRIDAY not in asked(model)
            assert list(far.tables.values()) == ["Fri"]
            assert await session.log.replay() == list(session.harness.messages)

    asyncio.run(told())


@pytest.mark.req("K23")
def test_what_becomes_known_after_a_summary_is_still_told() -> None:
    async def told() -> None:
        far = Far(can_look=False, reply=asyncio.Event())
        talk = [says("x" * 2_000) for _ in range(12)]
        model = forgetful(FRIDAY, says("Not known."), *talk, says("Good."))
        setting = Setting(window_tokens=17_400)
        async with conversation(far, model, setting=setting) as session:
            session.effects.patience_s = 0.05
            await hears(session, "Book Friday.")
            for _ in talk:
                await hears(session, "Tell me something.")
            assert PINNED in text_of(asked(model)[0])
            far.can_look = True
            assert far.reply is not None
            far.reply.set()
            plans = [id for m in session.harness.messages for id in m.get("tells", {})]
            async for _ in session.rt.progress(plans[0]):
                pass
            await hears(session, "And?")
            assert "Booked R1 (Fri)" in str(asked(model))

    asyncio.run(told())


@pytest.mark.req("S0-55", "S2-73")
def test_words_that_were_received_and_never_acted_on_are_heard_by_the_next_process(
    store: str,
) -> None:
    async def first() -> None:
        async with landed.open(store, tools=Far().tools()) as rt:
            await rt.receive("Book Friday.", session="s1", principal="ana")

    async def second() -> None:
        far = Far()
        model = ScriptedReplies(FRIDAY, says("Booked."))
        async with conversation(far, model, store=store) as session:
            assert await session.unfinished()
            events = await driven(await session.resume())
            assert account_of(events)["report"] == "Booked R1 (Fri)."
            assert not await session.unfinished()
            assert await driven(await session.resume()) == []
            assert shape(session.harness.messages) == "U A[c1] R(c1) A"

    asyncio.run(first())
    asyncio.run(second())


@pytest.mark.req("S2-73", "S0-54")
def test_a_run_that_was_closed_in_its_call_goes_on_in_another_process(store: str) -> None:
    far = Far(reply=None)

    async def first() -> None:
        far.reply, far.look = asyncio.Event(), asyncio.Event()
        model, soon = ScriptedReplies(FRIDAY), landed.Settings(drain_s=0.05)
        async with conversation(far, model, store=store, settings=soon) as session:
            running = asyncio.ensure_future(driven(await session.prompt("Book Friday.")))
            await far.arrived.wait()
            running.cancel()
            await asyncio.wait({running})

    async def second() -> None:
        far.reply, far.arrived, far.look = None, asyncio.Event(), asyncio.Event()
        asyncio.get_running_loop().call_later(0.1, far.look.set)
        model = ScriptedReplies(says("Booked: R1."))
        async with conversation(far, model, store=store) as session:
            assert shape(session.harness.messages) == "U A[c1]"
            events = await driven(await session.resume())
            assert "Booked R1 (Fri)" in result_of(asked(model), "c1")
            assert "booked R1 (Fri)" in account_of(events)["report"]
            assert list(far.tables.values()) == ["Fri"]
            assert shape(session.harness.messages) == "U A[c1] R(c1) A"

    asyncio.run(first())
    asyncio.run(second())


@pytest.mark.field("D8")
def test_what_a_person_stopped_hard_is_not_taken_up_by_the_next_process(store: str) -> None:
    async def first() -> None:
        far = Far(reply=asyncio.Event())
        async with conversation(far, ScriptedReplies(FRIDAY), store=store) as session:
            background = Background(await session.prompt("Book Friday."))
            await far.arrived.wait()
            await stop_run(session.harness, background.running, grace=0, by="ana")
            assert shape(session.harness.messages) == "U A[c1]"
            assert not await session.unfinished()

    async def second() -> None:
        model = ScriptedReplies(says("Friday: see the records."))
        async with conversation(Far(), model, store=store) as session:
            assert not await session.unfinished()
            assert await driven(await session.resume()) == []
            assert model.calls == []
            await hears(session, "And?")
            assert shape(session.harness.messages) == "U A[c1] R(c1) U A"
            assert not await session.unfinished()

    asyncio.run(first())
    asyncio.run(second())


def test_a_note_alone_asks_for_no_answer() -> None:
    said: Message = {"role": "user", "content": "Hello.", "input": "in-1"}
    answer = says("Hello.")
    note = user_message(NOTE)
    answered: list[list[Message]] = [[], [note], [said, answer], [said, answer, note]]
    unanswered: list[list[Message]] = [[said], [said, note], [said, FRIDAY]]
    assert not any(map(is_unanswered, answered))
    assert all(map(is_unanswered, unanswered))


@pytest.mark.req("S1-23")
@pytest.mark.field("C24")
def test_a_yes_during_a_run_is_carried_out_by_code_and_the_model_is_told_so() -> None:
    async def told() -> None:
        far = Far()
        waits, goes_on = asyncio.Event(), asyncio.Event()

        async def slow(request: Request) -> AssistantMessage:
            waits.set()
            await goes_on.wait()
            return says("I asked you.")

        model = ScriptedReplies(asks(call("c1", "text", to="Sam")), slow, says("It is sent."))
        async with conversation(far, model) as session:
            running = asyncio.ensure_future(driven(await session.prompt("Text Sam.")))
            await waits.wait()
            assert await session.steer("yes")
            goes_on.set()
            await running
            shown = text_of(asked(model)[-1])
            assert shown.startswith("yes\n\n")
            assert DECIDED in shown
            assert far.texts == ["Sam"]
            assert not await session.steer("Too late.", delivery="d9")
            assert await session.unfinished()

    asyncio.run(told())


@pytest.mark.req("S1-28", "S4-51")
def test_a_call_that_is_sent_again_is_the_same_one() -> None:
    async def told() -> None:
        far = Far()
        again = asks(call("c1", "reserve", day="Fri"), call("c2", "reserve", day="Fri"))
        model = ScriptedReplies(again, asks(call("c3", "reserve", day="Fri")), says("Booked."))
        async with conversation(far, model) as session:
            await hears(session, "Book Friday.")
            record = session.harness.messages
            assert list(far.tables.values()) == ["Fri"]
            assert len({result_of(record, id) for id in ("c1", "c2", "c3")}) == 1

    asyncio.run(told())


@pytest.mark.req("S1-28")
def test_one_delivery_is_acted_on_once() -> None:
    async def told() -> None:
        far = Far()
        model = ScriptedReplies(FRIDAY, says("Booked."))
        async with conversation(far, model) as session:
            first = account_of(await hears(session, "Book Friday.", delivery="d1"))
            again = await hears(session, "Book Friday.", delivery="d1")
            assert [event["type"] for event in again] == ["account"]
            assert account_of(again) == first
            assert len(model.calls) == 2
            assert list(far.tables.values()) == ["Fri"]

    asyncio.run(told())


@pytest.mark.req("S4-44", "S4-42")
def test_what_touches_the_same_thing_waits_while_nobody_knows() -> None:
    async def told() -> None:
        far = Far(can_look=False, reply=asyncio.Event())
        model = ScriptedReplies(
            FRIDAY, says("Not known."), asks(call("c2", "reserve", day="Fri")), says("Blocked.")
        )
        async with conversation(far, model) as session:
            session.effects.patience_s = 0.05
            await hears(session, "Book Friday.")
            first = result_of(asked(model), "c1")
            assert "do not" in first.lower()
            assert "again" not in first.replace("call it again", "").replace("it again", "")
            await hears(session, "Book Friday!")
            assert "was not settled" in result_of(asked(model), "c2")
            assert len(far.tables) == 1
            assert far.reply is not None
            far.reply.set()

    asyncio.run(told())


@pytest.mark.req("S0-65", "S0-64")
def test_what_the_person_says_happened_is_settled_by_their_yes_alone() -> None:
    async def told() -> None:
        far = Far(can_look=False, reply=asyncio.Event())

        def claims(request: Request):
            operation = operation_in(str(request.messages))
            question = "Is Friday booked as R9?"
            return asks(call("c2", "ask", question=question, operation=operation, claim="R9"))

        model = ScriptedReplies(FRIDAY, claims, says("I asked."))
        async with conversation(far, model) as session:
            background = Background(await session.prompt("Book Friday."))
            await far.arrived.wait()
            await stop_run(session.harness, background.running)
            operation = operation_in(result_of(session.harness.messages, "c1"))
            await hears(session, "Friday is confirmed, they say it's R9.")
            assert (await session.rt.status(operation)).__class__.__name__ != "Confirmed"
            await hears(session, "yes")
            settled = await session.rt.status(operation)
            assert isinstance(settled, landed.Confirmed)
            assert settled.result == {"id": "R9"}
            assert len(model.calls) == 3

    asyncio.run(told())


def test_two_tools_of_one_name_are_refused() -> None:
    async def begun(name: str) -> None:
        async def execute(arguments, signal=None) -> str:
            return ""

        tool = AgentTool(name=name, description="", parameters={}, execute=execute)
        async with conversation(Far(), ScriptedReplies(), setting=Setting(tools=[tool])):
            pass

    for name in ("reserve", "act"):
        with pytest.raises(ValueError, match=f"two tools are called '{name}'"):
            asyncio.run(begun(name))


def test_a_registered_tool_may_not_be_called_as_a_verb_is() -> None:
    @landed.tool(effect="reversible")
    async def revise(day: str) -> str:
        """Revise."""
        return day

    async def begun() -> None:
        async with landed.open("sqlite://:memory:", tools=[revise]) as rt:
            await AgentSession.begin(rt, model=ScriptedReplies(), session="s1")

    with pytest.raises(ContractError, match="revise is a verb of the model's"):
        asyncio.run(begun())


def test_a_second_prompt_during_a_run_is_refused_before_anything_is_received() -> None:
    async def program() -> None:
        far = Far(reply=asyncio.Event())
        async with conversation(far, ScriptedReplies(FRIDAY, says("Booked."))) as session:
            running = asyncio.ensure_future(driven(await session.prompt("Book Friday.")))
            await far.arrived.wait()
            with pytest.raises(RuntimeError, match="already running"):
                await session.prompt("And Saturday.")
            assert far.reply is not None
            far.reply.set()
            await running
            assert not await session.unfinished()

    asyncio.run(program())


def test_what_a_prompt_reads_does_not_grow_with_what_is_stored() -> None:
    async def told() -> None:
        far = Far()
        model = ScriptedReplies(FRIDAY, says("Booked."), asks(call("c2", "text", to="Sam")))
        async with conversation(far, model) as session:
            store = session.rt.driver.store
            said = [session.log.append(user_message(str(n))) for n in range(1_000)]
            await asyncio.gather(*said)
            read: list[int] = []
            whole = store.session_records

            async def counted(**asked: Any) -> tuple[Record, ...]:
                page = await whole(**asked)
                read.append(len(page))
                return page

            object.__setattr__(store, "session_records", counted)
            await hears(session, "Book Friday.")
            await hears(session, "Text Sam.")
            await hears(session, "yes")
            assert far.texts == ["Sam"]
            assert read
            assert sum(read) < 200

    asyncio.run(told())


GARBAGE: list[dict[str, Any]] = [
    {"turn": 5, "steps": None, "drop": None},
    {"turn": "turn-1", "steps": [{"tool": "reserve", "arguments": {"day": "Fri"}}], "drop": None},
    {"turn": "turn-1", "steps": [{"tool": "reserve", "arguments": {"day": "Fri"}}], "drop": [1]},
    {"turn": "\ud83d", "steps": "all", "drop": 7},
    {"steps": [None, 3, {"tool": ["reserve"]}]},
    {"day": {"of": 1e308}},
    {"id": None, "question": 2**80},
]


@pytest.mark.field("E1")
@pytest.mark.parametrize("arguments", GARBAGE)
def test_a_call_of_garbage_that_was_cut_off_bricks_no_conversation(
    arguments: dict[str, Any],
) -> None:
    async def told() -> None:
        names = ("act", "revise", "status", "ask", "reserve", "free", "fly")
        calls = [tool_call(f"c{n}", name, arguments) for n, name in enumerate(names)]
        model = ScriptedReplies(assistant_message(*calls), says("Sorry."))
        async with conversation(Far(), model) as session:
            async with aclosing(await session.prompt("Book Friday.")) as run:
                async for event in run:
                    if event["type"] == "tool_execution_start":
                        break
            await hears(session, "And?")
            assert text_of(session.harness.messages[-1]) == "Sorry."

    asyncio.run(told())


def test_a_change_of_mind_that_was_cut_off_is_told_from_the_records() -> None:
    async def told() -> None:
        far = Far(reply=asyncio.Event())

        def changes(request: Request) -> AssistantMessage:
            found = re.search(r"turn-[0-9a-z]+", str(request.messages))
            assert found is not None
            steps = [{"tool": "reserve", "arguments": {"day": "Sat"}}]
            return asks(call("c2", "revise", turn=found.group(), steps=steps))

        model = ScriptedReplies(FRIDAY, changes, says("Saturday."))
        setting = Setting(steer_mode=SteerMode.INTERRUPT)
        async with conversation(far, model, setting=setting) as session:
            background = Background(await session.prompt("Book Friday."))
            await far.arrived.wait()
            await session.steer("Actually, Saturday.")
            async with asyncio.timeout(20):
                while "Sat" not in far.tables.values():
                    await tick()
            await stop_run(session.harness, background.running, grace=0)
            await hears(session, "And?")
            shown = result_of(asked(model), "c2")
            assert shown.startswith(CUT_OFF)
            assert "Sat" in shown

    asyncio.run(told())


def test_a_plan_that_the_clock_ended_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    now = WallClock.now

    async def told() -> None:
        both = asks(call("c1", "text", to="Sam"), call("c2", "text", to="Bob"))
        model = ScriptedReplies(both, says("I asked."), forever=says("Too late."))
        soon = landed.Settings(answer_within_s=60)
        async with conversation(Far(), model, settings=soon) as session:
            await hears(session, "Text both.")
            first, *_ = told_states(session.harness.messages)
            monkeypatch.setattr(WallClock, "now", lambda clock: now(clock) + 61)
            assert (await session.rt.plan(first)).state == "expired"
            for _ in range(3):
                await hears(session, "And?")
            notes = [m for m in session.harness.messages if text_of(m).startswith(NOTE)]
            assert [list(m.get("tells", {})) for m in notes].count([first]) == 1

    asyncio.run(told())


def test_a_stop_that_nobody_carries_out_is_waited_for_in_bounds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def another_has_it(*_: object) -> bool:
        return True

    monkeypatch.setattr(Effects, "_is_out", another_has_it)

    async def told() -> None:
        far = Far(reply=asyncio.Event())
        soon = landed.Settings(let_go_s=0.05)
        async with conversation(far, ScriptedReplies(FRIDAY), settings=soon) as session:
            background = Background(await session.prompt("Book Friday."))
            await far.arrived.wait()
            async with asyncio.timeout(10):
                assert await stop_run(session.harness, background.running, grace=0) == "hard"

    asyncio.run(told())


@pytest.mark.req("S0-65")
def test_a_yes_about_no_plan_during_a_run_is_told_the_model_as_carried_out() -> None:
    async def told() -> None:
        far = Far(can_look=False, reply=asyncio.Event())
        waits, goes_on = asyncio.Event(), asyncio.Event()

        def claims(request: Request) -> AssistantMessage:
            operation = operation_in(str(request.messages))
            return asks(call("c2", "ask", question="Is it R9?", operation=operation, claim="R9"))

        async def slow(request: Request) -> AssistantMessage:
            waits.set()
            await goes_on.wait()
            return says("I asked.")

        model = ScriptedReplies(FRIDAY, claims, slow, says("Good."))
        async with conversation(far, model) as session:
            background = Background(await session.prompt("Book Friday."))
            await far.arrived.wait()
            await stop_run(session.harness, background.running)
            running = asyncio.ensure_future(driven(await session.prompt("They say it's R9.")))
            await waits.wait()
            assert await session.steer("yes")
            goes_on.set()
            await running
            shown = text_of(asked(model)[-1])
            assert shown.startswith("yes\n\n")
            assert DECIDED in shown

    asyncio.run(told())
