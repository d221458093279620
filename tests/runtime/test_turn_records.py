"""What is told of a turn is read from its part of the session, and is what all of it would tell."""

from collections.abc import Iterator
from typing import Any

import pytest

from landed.core.changes import Kind, Record
from landed.core.plan import PlanState, Wanted
from landed.core.report import report
from landed.runtime.runtime import Runtime
from landed.testing.sim import World
from tests.runtime.office import DRAFT, PAY, OfficeRig, paying
from tests.runtime.stores import Wrapped

EARLIER = 60


@pytest.fixture
def rig() -> Iterator[OfficeRig]:
    with World() as world:
        yield OfficeRig(world)


class Counted(Wrapped):
    """Counts the records that pages of a session hold."""

    read = 0

    async def session_records(self, **asked: Any) -> tuple[Record, ...]:
        page = await self.inner.session_records(**asked)
        Counted.read += len(page)
        return page


async def chatter(rt: Runtime, count: int) -> None:
    """Fill the conversation with turns that have nothing to do with what follows."""
    for n in range(count):
        heard = await rt.receive(f"draft {n}", principal="ana")
        await rt.propose([Wanted(tool="draft", arguments={"amount": n})], ask=heard.ask("act"))


@pytest.mark.req("S4-50")
def test_how_a_plan_stands_costs_the_same_however_long_the_conversation_was(rig: OfficeRig) -> None:
    rig.wrap = Counted

    async def script(rt: Runtime) -> list[int]:
        counts: list[int] = []
        for _ in range(2):
            heard = await rt.receive("pay", principal="ana")
            plan = await rt.propose([PAY], ask=heard.ask("act"))
            Counted.read = 0
            assert (await rt.plan(plan.plan)).state is PlanState.PROPOSED
            counts.append(Counted.read)
            await rt.decline(plan.plan, principal="ana")
            await chatter(rt, EARLIER)
        return counts

    first, later = rig.run(script)
    assert later == first


async def long_conversation(rt: Runtime) -> None:
    """Say yes in words to an earlier turn's plan, change one's mind twice, take it back."""
    await chatter(rt, 2)
    asked = await rt.receive("pay ada", principal="ana")
    await rt.propose([PAY], ask=asked.ask("act"))
    yes = await rt.receive("yes", principal="ana")
    await rt.propose([DRAFT], ask=yes.ask("more"))
    await chatter(rt, 1)
    first = await rt.receive("pay bob, no, draft", principal="ana")
    await rt.propose([paying("bob")], ask=first.ask("act"))
    second = await rt.receive("rather draft 1", principal="ana")
    wanted = [Wanted(tool="draft", arguments={"amount": 1})]
    await rt.revise(first.turn, second, wanted=wanted)
    done = await rt.receive("draft 7", principal="ana")
    plan = await rt.propose([Wanted(tool="draft", arguments={"amount": 7})], ask=done.ask("act"))
    await rt.undo(plan.plan, principal="ana")
    await rt.preview([DRAFT], ask=done.ask(""), keep=True)


def test_each_turn_is_told_as_from_the_whole_conversation(rig: OfficeRig) -> None:
    async def script(rt: Runtime) -> list[tuple[object, object]]:
        await long_conversation(rt)
        reader, now = rt.driver.reader, rt.driver.clock.now()
        every = await reader.records(tenant="default", session="main")
        turns = [record.id for record in every if record.kind is Kind.TURN]
        return [
            (
                await reader.report(turn, language="en", now=now),
                report(turn, every, reader.contracts, language="en", now=now),
            )
            for turn in turns
        ]

    told = rig.run(script)
    assert len(told) == 8
    assert all(part == whole for part, whole in told)
    assert len({getattr(part, "text", "") for part, _ in told}) >= 5
