"""What happens in each invoice scenario: who says or presses what, and when."""

import asyncio

from landed.core.approval import Purpose
from landed.core.canonical import Json
from landed.core.plan import PlanState
from landed.core.session import Input
from landed.core.value import PlanValue
from landed.testing.invoices.clerk import Clerk, arguments_with
from landed.testing.invoices.words import ANA, EVE, WORDS, Words

DRAFT_SENT = ("tool.sent", "create_draft")
ISSUE_SENT = ("tool.sent", "issue_invoice")
MAIL_SENT = ("tool.sent", "send_invoice")


def _words(clerk: Clerk) -> Words:
    return WORDS[clerk.rt.settings.language]


async def _ordered(clerk: Clerk) -> tuple[Input, PlanValue]:
    """The user asks for all of it, and a preview comes back with one question."""
    return await clerk.order(_words(clerk).order, delivery="d1")


async def invoice(clerk: Clerk) -> None:
    """The user asks, is shown the whole plan, says yes, and hears what was done."""
    if clerk.manner.asks_each:
        await _one_by_one(clerk)
        return
    heard, plan = await _ordered(clerk)
    await clerk.agree(plan, delivery="d2")
    await clerk.answer(heard)


async def _one_by_one(clerk: Clerk) -> None:
    """The same, in plans of one step each."""
    words = _words(clerk)
    heard = await clerk.listen(words.order, delivery="d1")
    steps = clerk.read(heard, words.order)
    made: dict[int, Json] = {}
    for number in range(1, len(steps) + 1):
        step = arguments_with(steps, made)[number - 1]
        plan = await clerk.act(heard, (step,))
        over = await clerk.agree(plan, delivery=f"d{number + 1}")
        made[number] = over.steps[0].made
    await clerk.answer(heard)


async def retried(clerk: Clerk) -> None:
    """One step is refused; the user says yes to the question whether to retry."""
    heard, plan = await _ordered(clerk)
    await clerk.agree(plan, delivery="d2")
    if clerk.manner.plans_anew:
        heard, plan = await clerk.order(_words(clerk).order, delivery="d3")
        await clerk.agree(plan, delivery="d4")
    else:
        await clerk.agree(plan, delivery="d3")
    await clerk.answer(heard)


async def stopped(clerk: Clerk) -> None:
    """The user presses Stop while the first step is out."""
    await _stopped_at(clerk, *DRAFT_SENT)


async def stopped_late(clerk: Clerk) -> None:
    """The user presses Stop while the number is being taken."""
    await _stopped_at(clerk, *ISSUE_SENT)


async def _stopped_at(clerk: Clerk, type: str, words: str) -> None:
    heard, plan = await _ordered(clerk)
    await clerk.listen(clerk.yes, delivery="d2")
    await clerk.until(type, words)
    await clerk.stop(plan)
    await clerk.answer(heard)


async def undone(clerk: Clerk) -> None:
    """The user asks for a draft, which needs no yes, and presses Undo."""
    heard, plan = await clerk.order(_words(clerk).draft, delivery="d1")
    await clerk.press(plan, Purpose.UNDO)
    await clerk.over(plan)
    await clerk.answer(heard)


async def typed_twice(clerk: Clerk) -> None:
    """The user asks for the same draft twice, and means it."""
    await clerk.order(_words(clerk).draft, delivery="d1")
    heard, plan = await clerk.order(_words(clerk).draft, delivery="d2")
    await clerk.agree(plan, delivery="d3")
    await clerk.answer(heard)


async def clicked_twice(clerk: Clerk) -> None:
    """The user presses the button, twice at the same moment."""
    heard, plan = await _ordered(clerk)
    await asyncio.gather(clerk.press(plan), clerk.press(plan))
    await clerk.over(plan)
    await clerk.answer(heard)


async def redeployed(clerk: Clerk) -> None:
    """The process is asked to make room for the next one while the mail is out."""
    heard, plan = await _ordered(clerk)
    await clerk.listen(clerk.yes, delivery="d2")
    await clerk.until(*MAIL_SENT)
    clerk.leave(clerk.manner)
    await clerk.over(plan)
    await clerk.answer(heard)


async def tried_by_a_stranger(clerk: Clerk) -> None:
    """Somebody else gets hold of the button and presses it; then the user does."""
    heard, plan = await _ordered(clerk)
    await clerk.press(plan, by=EVE)
    await clerk.press(plan, by=ANA)
    await clerk.over(plan)
    await clerk.answer(heard)


async def agreed_but(clerk: Clerk) -> None:
    """The user says yes, but changes the date in the same breath; then yes to what that comes to.

    Words that answered the question are not for the model; words that closed it are.
    """
    words = _words(clerk)
    heard, plan = await _ordered(clerk)
    other = await clerk.listen(words.other, delivery="d2")
    if (await clerk.rt.plan(plan.plan)).state is PlanState.EXPIRED:
        heard, plan = other, await clerk.act(other, clerk.read(other, words.other))
        await clerk.agree(plan, delivery="d3")
    await clerk.over(plan)
    await clerk.answer(heard)


async def looped(clerk: Clerk) -> None:
    """The model sends the same plan five times at once, and then once more."""
    words = _words(clerk)
    heard = await clerk.listen(words.draft, delivery="d1")
    steps = clerk.read(heard, words.draft)
    plans = await asyncio.gather(*(clerk.act(heard, steps) for _ in range(5)))
    await asyncio.gather(*map(clerk.over, plans))
    await clerk.over(await clerk.act(heard, steps))
    await clerk.answer(heard)
