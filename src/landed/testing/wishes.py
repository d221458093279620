"""What the user says in the scenarios of a change of mind, when, and how the model reads it."""

import asyncio

from landed.core.canonical import Json
from landed.testing.acting import Agent
from landed.testing.models import Change
from landed.testing.worlds.faults import Fault
from landed.testing.worlds.restaurant import Restaurant

GROUP = "book Friday 19:00 for 4 and tell the group"
SATURDAY = "actually, Saturday"
LATER = "actually, make it 20:00"
SAM_ONLY = "actually, just tell Sam, not the group"
SATURDAY_TOO = "Saturday too?"
FRIDAY_AFTER_ALL = "no, Friday after all"
INSTEAD = "instead"
AS_WELL = "as well"
IT_IS_BOOKED = "Friday confirmed, it's R1"
RAIN = "the forecast for Friday says rain; the garden table moves to Saturday"
YES = "yes"
NO = "no"

INTENTS: dict[str, dict[str, Json]] = {
    GROUP: {"day": "Fri", "time": "19:00", "party": 4, "tell": "group"}
}
CHANGES = {
    SATURDAY: Change(change={"day": "Sat"}),
    LATER: Change(change={"time": "20:00"}),
    SAM_ONLY: Change(change={"tell": "Sam"}),
    SATURDAY_TOO: Change(unsure="Do you mean Saturday instead of Friday, or as well?"),
    FRIDAY_AFTER_ALL: Change(change={"day": "Fri"}),
    INSTEAD: Change(change={"day": "Sat"}),
    AS_WELL: Change(also={"day": "Sat"}),
    IT_IS_BOOKED: Change(
        claim="R1", unsure="Shall I take it that your table for Friday 19:00 is R1?"
    ),
    RAIN: Change(change={"day": "Sat"}),
}

RESERVE = "/reservations"
TEXT = "/texts"
FRIDAY = "R1 Fri 19:00 x4"
SATURDAY_SECOND = "R2 Sat 19:00 x4"
TOLD_FRIDAY = "M1 group: table for 4, Fri 19:00"
TOLD_SATURDAY = "M1 group: table for 4, Sat 19:00"
CORRECTED = "M2 group: Change of plan: table for 4, Sat 19:00"

# The restaurant acts at once; its answer takes longer than the user's change of mind.
ANSWER_SLOW = (Fault(path=RESERVE, kind="delay_reply", seconds=40.0),)
ANSWER_LOST = (Fault(path=RESERVE, kind="lose_reply", hang=True),)
REQUEST_SLOW = (Fault(path=RESERVE, kind="delay_request", seconds=40.0),)
RECEIPT_LATE = (Fault(path=TEXT, kind="delay_reply", seconds=0.02),)
RECEIPT_LOST = (Fault(path=TEXT, kind="lose_reply", hang=True),)

FEE_RISES_S = 10.0  # after the start; by then `CHARGES_MORE_SOON` asks for more
CHARGES = Restaurant(strict=True, fee_cents=2000)
CHARGES_MORE_SOON = Restaurant(strict=True, fee_cents=2000, fee_after_s=5.0, fee_then_cents=3000)
SATURDAY_FULL = Restaurant(strict=True, full=("Sat",))
TELLS_NOTHING = Restaurant(strict=True, can_look_up=False, can_close=False)
LOOKUP_ONLY = Restaurant(strict=True, can_close=False)

COMMITTED = ("restaurant", "committed")
SENT = ("tool.sent", "reserve_table")
TEXT_SENT = ("tool.sent", "text_group")
NOBODY_TELLS = ("resolve", "a person has to find out")


async def changed(
    agent: Agent,
    *words: str,
    when: tuple[str, str] = COMMITTED,
    origin: str = "user",
    rests: tuple[str, str] | None = None,
) -> str:
    """The user asks, and changes their mind at the line `when`; return the last turn.

    They are answered once all is done, or where there is the line `rests`.
    """
    heard, plan = await agent.start(GROUP, delivery="d1")
    await agent.until(*when)
    for n, text in enumerate(words, 2):
        heard = await agent.change(heard.turn, text, delivery=f"d{n}", origin=origin)
    await plan
    if rests is not None:
        await agent.until(*rests)
    await agent.answer(heard)
    return heard.turn


async def saturday(agent: Agent) -> None:
    """The booking is in flight when the user says Saturday."""
    await changed(agent, SATURDAY)


async def saturday_before_it_arrives(agent: Agent) -> None:
    """The request for Friday is still on its way when the user says Saturday."""
    await changed(agent, SATURDAY, when=SENT)


async def saturday_after_the_text(agent: Agent) -> None:
    """The text about Friday is out, and no receipt is here yet, when the user says Saturday."""
    await changed(agent, SATURDAY, when=TEXT_SENT)


async def saturday_and_back(agent: Agent) -> None:
    """Saturday, and Friday after all, while Saturday is in flight."""
    heard, plan = await agent.start(GROUP, delivery="d1")
    await agent.until("restaurant", "committed R1")
    second, revised = await agent.begin_change(heard.turn, SATURDAY, delivery="d2")
    await agent.until("restaurant", "committed R2")
    third = await agent.change(second.turn, FRIDAY_AFTER_ALL, delivery="d3")
    await asyncio.gather(plan, revised)
    await agent.answer(third)


async def later(agent: Agent) -> None:
    """The same day, an hour later."""
    await changed(agent, LATER)


async def sam_only(agent: Agent) -> None:
    """The table stays; somebody else is told."""
    await changed(agent, SAM_ONLY)


async def saturday_too(agent: Agent) -> None:
    """Words that the model cannot read for sure: it asks."""
    await changed(agent, SATURDAY_TOO)


async def saturday_instead(agent: Agent) -> None:
    """The same, and the user answers that it is Saturday instead."""
    await _answered(agent, INSTEAD)


async def saturday_as_well(agent: Agent) -> None:
    """The same, and the user answers that it is Saturday as well."""
    await _answered(agent, AS_WELL)


async def _answered(agent: Agent, text: str) -> None:
    heard, plan = await agent.start(GROUP, delivery="d1")
    await agent.until("restaurant", "committed")
    await agent.change(heard.turn, SATURDAY_TOO, delivery="d2")
    await plan
    await agent.answer(await agent.change(heard.turn, text, delivery="d3"))


async def saturday_yes(agent: Agent) -> None:
    """Saturday, and a yes to the question that comes of it."""
    await changed(agent, SATURDAY)
    await agent.answer(await agent.say(YES, delivery="d3"))


async def saturday_no(agent: Agent) -> None:
    """Saturday, and a no to the question that comes of it."""
    await changed(agent, SATURDAY)
    await agent.answer(await agent.say(NO, delivery="d3"))


async def saturday_yes_late(agent: Agent) -> None:
    """Saturday, and a yes that comes when the price has changed."""
    await changed(agent, SATURDAY)
    await asyncio.sleep(max(0.0, FEE_RISES_S - agent.timeline.now()))
    await agent.answer(await agent.say(YES, delivery="d3"))


async def saturday_then_a_confirmation(agent: Agent) -> None:
    """Nobody can tell about Friday; then its confirmation arrives, and the user hands it in."""
    turn = await changed(agent, SATURDAY, rests=NOBODY_TELLS)
    await agent.change(turn, IT_IS_BOOKED, delivery="d3")
    await agent.answer(await agent.say(YES, delivery="d4"))


async def saturday_unknowable(agent: Agent) -> None:
    """Saturday is booked, and nobody can tell about Friday."""
    await changed(agent, SATURDAY, rests=NOBODY_TELLS)


async def rain(agent: Agent) -> None:
    """Not the user but the weather changes the plan: the user is asked about it, and agrees."""
    heard, plan = await agent.start(GROUP, delivery="d1")
    await agent.until(*COMMITTED)
    moved = await agent.change(heard.turn, RAIN, delivery="d2", origin="weather")
    await plan
    await agent.say(YES, delivery="d3")
    await agent.answer(moved)


async def group(agent: Agent) -> None:
    """The user asks once, for a table and a text."""
    heard, plan = await agent.start(GROUP, delivery="d1")
    await plan
    await agent.answer(heard)
