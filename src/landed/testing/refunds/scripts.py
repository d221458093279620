"""What is said in these scenarios, and what the agent, the reviewer and others do."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from landed.core.canonical import Json
from landed.core.session import Input
from landed.core.value import Answered, PlanValue
from landed.testing.acting import Agent
from landed.testing.models import Wanted
from landed.testing.refunds.places import ORDER, TOKEN

ANA = "ana"
REFUND_ALL = "refund 480.00 of 4412, if it was shipped"
REFUND_SOME = "refund 200.00 of 4412"
REFUND_REST = "then refund what is left of it"
LEAVE_IT = "no, leave it"
AS_BEFORE = "do what we spoke of"
SOON_S, LATER_S, LATE_S = 120.0, 660.0, 1_200.0
ALL, SOME, REST = 48_000, 20_000, 28_000


def _refund(cents: int, call_id: str) -> Wanted:
    arguments: dict[str, Json] = {"order": ORDER, "cents": cents}
    return Wanted(call_id=call_id, tool="refund_order", arguments=arguments)


PHRASES: Mapping[str, tuple[Wanted, ...]] = {
    REFUND_ALL: (
        Wanted(call_id="c1", tool="look_up_shipping", arguments={"order": ORDER}),
        _refund(ALL, "c2"),
    ),
    REFUND_SOME: (_refund(SOME, "c1"),),
    REFUND_REST: (_refund(REST, "c3"),),
    AS_BEFORE: (_refund(SOME, "c4"),),
}


@dataclass(slots=True, eq=False)
class Reviewed(Agent):
    """What a script acts through; a reviewer reads each plan and agrees to it, or does not.

    `by_hand` has another process refund so many cents; the reviewer takes time unless `waits` says
    otherwise.
    """

    by_hand: Callable[[int], None] = field(kw_only=True)
    waits: bool = field(default=True, kw_only=True)

    async def present(self, text: str, *, delivery: str) -> tuple[Input, PlanValue]:
        """Hear what is wanted, plan it, and show the plan to the reviewer."""
        heard, calls = await self.hear(text, delivery=delivery)
        plan = await self.rt.propose(calls, ask=heard.ask("plan"))
        self.show(plan)
        return heard, plan

    def show(self, plan: PlanValue) -> None:
        """Have the timeline say what the reviewer sees."""
        steps = " · ".join(step.summary for step in plan.steps)
        self.timeline.add("shown", f"to the reviewer: {steps}")

    async def agree(self, plan: PlanValue, *, after_s: float) -> PlanValue:
        """Have the reviewer agree after a while, and wait for what comes of it."""
        await asyncio.sleep(after_s if self.waits else 0.0)
        self.timeline.add("yes", f"{ANA} agrees to {plan.plan}")
        done = await self.rt.approve(plan.plan, principal=ANA, session=self.session)
        assert done is not None
        return done

    async def tell(self, heard: Input) -> None:
        """Wait until nothing is open, and tell the user what became of it."""
        await self.quiet()
        await self.answer(heard)


async def agreed(one: Reviewed) -> None:
    """The plan is shown, the reviewer agrees two minutes later, and it is committed."""
    heard, plan = await one.present(REFUND_ALL, delivery="d1")
    await one.agree(plan, after_s=SOON_S)
    await one.tell(heard)


async def agreed_to_some(one: Reviewed) -> None:
    """As `agreed`, for a part of it."""
    heard, plan = await one.present(REFUND_SOME, delivery="d1")
    await one.agree(plan, after_s=SOON_S)
    await one.tell(heard)


async def conflict(one: Reviewed) -> None:
    """Another process refunds 200.00 meanwhile; what is left is planned and shown anew."""
    heard, plan = await one.present(REFUND_ALL, delivery="d1")
    one.by_hand(SOME)
    done = await one.agree(plan, after_s=SOON_S)
    moved = {fact.field: fact.now for fact in done.changed}
    one.timeline.add("model.told", f"{done.to_model}")
    await one.answer(heard)
    if moved.get("left_cents") == REST:
        heard, plan = await one.present(REFUND_REST, delivery="d2")
        await one.agree(plan, after_s=SOON_S)
        await one.tell(heard)


async def meanwhile(one: Reviewed) -> None:
    """Another process makes the very refund meanwhile; nothing is refunded twice."""
    heard, plan = await one.present(REFUND_SOME, delivery="d1")
    one.by_hand(SOME)
    done = await one.agree(plan, after_s=SOON_S)
    if done.again:
        one.show(await one.rt.plan(done.again))
        one.timeline.add("no", f"{ANA} declines {done.again}: that was done already")
        await one.rt.decline(done.again, principal=ANA, session=one.session)
    await one.tell(heard)


async def gives_up(one: Reviewed) -> None:
    """A conflict is taken for a failure: it is tried twice more, and given up."""
    _, plan = await one.present(REFUND_ALL, delivery="d1")
    one.by_hand(SOME)
    await one.agree(plan, after_s=SOON_S)
    for attempt in (2, 3):
        again, _ = await one.hear(REFUND_ALL, delivery=f"d{attempt}")
        await one.rt.propose(PHRASES[REFUND_ALL][1:], ask=again.ask("again"))
    await one.quiet()
    one.messages.append("The refund failed.")


async def planned_again(one: Reviewed) -> None:
    """As an agent that takes silence for a failure: it plans the same once more, and commits."""
    heard, plan = await one.present(REFUND_SOME, delivery="d1")
    done = await one.agree(plan, after_s=SOON_S)
    if done.steps[0].at != "done":
        heard, plan = await one.present(REFUND_SOME, delivery="d2")
        await one.agree(plan, after_s=SOON_S)
    await one.tell(heard)


async def late(one: Reviewed) -> None:
    """The reviewer agrees after the plan's time; what may then be shown is shown and agreed to."""
    heard, plan = await one.present(REFUND_SOME, delivery="d1")
    done = await one.agree(plan, after_s=LATER_S)
    if done.again:
        again = await one.rt.plan(done.again)
        one.show(again)
        await one.agree(again, after_s=SOON_S)
    await one.tell(heard)


async def moved(one: Reviewed) -> None:
    """The agent itself writes to the order between the dry run and the yes."""
    heard, plan = await one.present(REFUND_SOME, delivery="d1")
    change: dict[str, Json] = {"order": ORDER, "address": "Oak 2"}
    await one.rt.perform("set_address", change, ask=heard.ask("address"))
    done = await one.agree(plan, after_s=SOON_S)
    again = await one.rt.plan(done.again)
    one.show(again)
    await one.agree(again, after_s=SOON_S)
    await one.tell(heard)


async def left(one: Reviewed) -> None:
    """The reviewer says no; a later turn that wants it again is shown a plan of its own."""
    _, plan = await one.present(REFUND_SOME, delivery="d1")
    await one.rt.decline(plan.plan, principal=ANA, session=one.session)
    heard, plan = await one.present(AS_BEFORE, delivery="d2")
    await one.rt.abandon(plan.plan, why="nobody answered")
    await one.tell(heard)


async def quoted(one: Reviewed) -> None:
    """The token stands in the transcript: a later turn quotes it, past everybody."""
    heard, _ = await one.hear(REFUND_SOME, delivery="d1")
    look = Wanted(call_id="c1", tool="plan_refund", arguments={"order": ORDER, "cents": SOME})
    seen = await one.do(heard, look)
    assert isinstance(seen, Answered)
    assert isinstance(seen.result, Mapping)
    said = {name: seen.result[name] for name in ("plan_id", TOKEN, "input_fingerprint")}
    one.timeline.add("user", LEAVE_IT)
    await asyncio.sleep(SOON_S)
    heard, _ = await one.hear(AS_BEFORE, delivery="d2")
    await one.do(heard, Wanted(call_id="c2", tool="commit_refund", arguments=said))
    await one.tell(heard)
