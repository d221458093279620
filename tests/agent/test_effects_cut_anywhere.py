"""Wherever an agent's run is cut off, an effect is there at most once, and no model forgets it.

The same run, with a read, an effect, a question and a plan in it, is closed at every event, and
cancelled, stopped or told something at every turn of the event loop, in both dialects that refuse
an unanswered call. Then the conversation goes on, and what the next requests say is compared with
what the far side holds.
"""

import asyncio
import json
from collections.abc import Callable, Coroutine
from contextlib import aclosing
from typing import Any

import pytest

from landed.agent.loop import SteerMode
from landed.agent.messages import text_of
from landed.agent.session import AgentSession, Setting
from landed.agent.stop import stop_run
from landed.agent.validate import transcript_problems
from landed.testing.provider import Called, Protocol, Reply
from landed.testing.provider_inline import InlineProvider
from landed.testing.ticks import Background, driven, ticks
from tests.agent.far import Far, conversation
from tests.agent.speaking import model_of

DIALECTS: tuple[Protocol, ...] = ("anthropic", "openai-chat")
FRIDAY = Reply(
    text="I look, book and ask.",
    calls=(
        Called(id="c1", name="free", arguments={"day": "Fri"}),
        Called(id="c2", name="reserve", arguments={"day": "Fri"}),
        Called(id="c3", name="reserve", arguments={"day": "Fri"}),
        Called(id="c4", name="text", arguments={"to": "Sam"}),
    ),
)
STEPS: Any = [{"tool": "reserve", "arguments": {"day": day}} for day in ("Sat", "Sun")]
PLAN = Reply(text="", calls=(Called(id="c5", name="act", arguments={"steps": STEPS}),))
TURNS_MAX = 10_000

Cut = Callable[[AgentSession, int], Coroutine[Any, Any, bool]]
"""Begins the run, cuts it off after so much of it, and says whether it was over by then."""


async def closed(session: AgentSession, events: int) -> bool:
    async with aclosing(await session.prompt("Book Friday and the weekend.")) as run:
        taken = [await anext(run, None) for _ in range(events)]
    return None in taken


async def cancelled(session: AgentSession, turns: int) -> bool:
    background = Background(await session.prompt("Book Friday and the weekend."))
    await ticks(turns)
    over = background.running.done()
    background.running.cancel()
    await asyncio.wait({background.running})
    await session.harness.aclose()
    return over


async def stopped(session: AgentSession, turns: int) -> bool:
    background = Background(await session.prompt("Book Friday and the weekend."))
    await ticks(turns)
    over = background.running.done()
    await stop_run(session.harness, background.running, grace=turns % 40)
    return over


async def spoken_to(session: AgentSession, turns: int) -> bool:
    background = Background(await session.prompt("Book Friday and the weekend."))
    await ticks(turns)
    over = background.running.done()
    await session.steer("And hurry.")
    await background.running
    return over


async def is_whole(session: AgentSession, far: Far, there: InlineProvider) -> None:
    """Require that nothing is lost or done twice, and that the conversation goes on."""
    assert not session.harness.is_running
    if await session.unfinished():
        await driven(await session.resume())
    for words in ("First?", "Second?"):
        events = await driven(await session.prompt(words))
        assert "account" in events[-1]
        record = list(session.harness.messages)
        assert transcript_problems(record) == []
        assert text_of(record[-1]) == "Yes?", record[-3:]
        assert await session.log.replay() == record
    shown = json.dumps(there.received[-1].body)
    assert len(set(far.tables.values())) == len(far.tables), "a table was booked twice"
    told = {day for day in ("Fri", "Sat", "Sun") if f"({day})" in shown}
    assert told == set(far.tables.values())
    assert far.texts == []
    assert "cancelled" not in shown


async def one(
    cut: Cut, much: int, protocol: Protocol, *, mode: SteerMode, reply_lost: bool
) -> bool:
    far = Far(reply=asyncio.Event() if reply_lost else None)
    there = InlineProvider(FRIDAY, PLAN, forever=Reply(text="Yes?"))
    model = model_of(protocol, there)
    setting = Setting(steer_mode=mode)
    async with conversation(far, model, setting=setting) as session:
        if far.reply is not None:
            asyncio.get_running_loop().call_later(0.02, far.reply.set)
        over = await cut(session, much)
        await is_whole(session, far, there)
    await model.aclose()
    return over


def until_over(cut: Cut, *, step: int, mode: SteerMode = SteerMode.AFTER_BATCH) -> int:
    """Cut one run after another off, each later than the one before; return how many there were."""
    for nth in range(TURNS_MAX):
        protocol = DIALECTS[nth % 2]
        lost = nth % 3 == 2
        if asyncio.run(one(cut, nth * step, protocol, mode=mode, reply_lost=lost)):
            return nth
    raise AssertionError("the run does not end")


@pytest.mark.fault("X12")
@pytest.mark.req("S2-64", "S4-42", "S4-51")
@pytest.mark.parametrize("step", [2, pytest.param(1, marks=pytest.mark.services)])
def test_closed_at_every_event(step: int) -> None:
    assert until_over(closed, step=step) > 20 // step


@pytest.mark.fault("X12")
@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.services)])
def test_cancelled_at_every_turn(step: int) -> None:
    assert until_over(cancelled, step=step) > 5


@pytest.mark.req("S2-58")
@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.services)])
def test_stopped_at_every_turn(step: int) -> None:
    assert until_over(stopped, step=step) > 5


@pytest.mark.req("K18")
@pytest.mark.parametrize("mode", SteerMode)
@pytest.mark.parametrize("step", [17, pytest.param(3, marks=pytest.mark.services)])
def test_told_something_at_every_turn(mode: SteerMode, step: int) -> None:
    assert until_over(spoken_to, step=step, mode=mode) > 3
