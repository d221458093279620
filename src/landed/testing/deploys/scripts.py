"""What the two workers of a deployment do, and the words that are said to them."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from landed.core.canonical import Json
from landed.core.case import Ruling
from landed.core.errors import LeaseLostError
from landed.core.session import Input
from landed.core.value import Answered, Blocked
from landed.testing.deploys.fleet import Fleet
from landed.testing.deploys.tools import WANTED, runs
from landed.testing.doubts.teller import Teller
from landed.testing.models import Wanted
from landed.testing.sim import Process

ROLL_OUT = "Roll v2 out: 10 % first, then all."
ROLL_BACK = "v2 fails. Go back to v1."
GO_TO_V3 = "Leave it: v3 is ready, roll that out."
PERSON = "ana"
SLEEPER = "worker-1"


def _deploy(release: str, percent: int, *, call_id: str) -> Wanted:
    arguments: dict[str, Json] = {"name": "web", "release": release, "percent": percent}
    return Wanted(call_id=call_id, tool="deploy", arguments=arguments)


PHRASES: Mapping[str, tuple[Wanted, ...]] = {
    ROLL_OUT: (_deploy("v2", 10, call_id="c1"), _deploy("v2", 100, call_id="c2")),
    ROLL_BACK: (_deploy("v1", 100, call_id="c3"),),
    GO_TO_V3: (_deploy("v3", 100, call_id="c4"),),
}


@dataclass(slots=True, eq=False)
class Operator(Teller):
    """What a script acts through. `sleeper` is the process that stands still."""

    sleeper: Process[Any] = field(kw_only=True)

    @property
    def fleet(self) -> Fleet:
        """The cluster, for what people do there by hand."""
        assert isinstance(self.place, Fleet)
        return self.place

    async def wake(self) -> None:
        """Let the other one go on with what it was about to do, and wait until it has stopped."""
        self.timeline.add("resume", f"{SLEEPER} goes on where it was")
        self.sleeper.resume()
        await self.until("stopped", SLEEPER)

    async def seen(self, heard: Input, name: str, *, call_id: str) -> str:
        """Read what an object is now."""
        look = Wanted(call_id=call_id, tool="read", arguments={"name": name})
        value = await self.do(heard, look)
        assert isinstance(value, Answered)
        assert isinstance(value.result, Mapping)
        return runs(value.result)


async def roll_out(teller: Teller) -> None:
    """The first worker: it rolls out, and goes on until it hears that it was replaced."""
    operator = _operator(teller)
    operator.fleet.decide("v2", 100)
    heard, calls = await operator.hear(ROLL_OUT, delivery="d1")
    try:
        for call in calls:
            await operator.do(heard, call)
        await operator.rt.serve(asyncio.Event())
    except LeaseLostError as lost:
        operator.timeline.add("stopped", f"{SLEEPER}: {lost}")


async def roll_back(teller: Teller) -> None:
    """The second: it finds out what the first one left, rolls back, and then that one wakes."""
    operator = _operator(teller)
    await operator.quiet()
    heard = await _rolled_back(operator)
    await operator.answer(heard)
    await operator.wake()


async def correct(teller: Teller) -> None:
    """Where nothing stops the sleeper: what runs is compared with what is wanted, by reading."""
    operator = _operator(teller)
    heard = await _overwritten(operator)
    plan, token = await _proposed(operator, heard)
    await _agreed(operator, plan, token)
    await operator.answer(heard)


async def moved_on(teller: Teller) -> None:
    """The same, but somebody wants something else by the time that the correction is agreed to."""
    operator = _operator(teller)
    heard = await _overwritten(operator)
    plan, token = await _proposed(operator, heard)
    operator.fleet.decide("v3", 100)
    await _agreed(operator, plan, token)
    later, (call,) = await operator.hear(GO_TO_V3, delivery="d3")
    await operator.do(later, call)
    await operator.answer(later)


def _operator(teller: Teller) -> Operator:
    assert isinstance(teller, Operator)
    return teller


async def _rolled_back(operator: Operator) -> Input:
    """Carry out the newest decision, once it stands in nobody's way; return its input."""
    operator.fleet.decide("v1", 100)
    heard, (call,) = await operator.hear(ROLL_BACK, delivery="d2")
    if isinstance(await operator.do(heard, call), Blocked):
        await _lifted(operator)
        await operator.do(heard, call)
    return heard


async def _lifted(operator: Operator) -> None:
    """Nobody can tell about what the first worker left: a person lets go of what it holds."""
    await operator.until("resolve", "nobody could tell")
    for case in await operator.cases():
        note = "v1 goes first; what is still on its way must be watched"
        await operator.rule(case, Ruling.LIFT, note=note)


async def _overwritten(operator: Operator) -> Input:
    """Roll back, have the sleeper wake, and find what it did; return the roll-back's input."""
    heard = await _rolled_back(operator)
    await operator.wake()
    await operator.sweep("deploy")
    now = await operator.seen(heard, "web", call_id="c5")
    wanted = await operator.seen(heard, WANTED, call_id="c6")
    operator.timeline.add("drift", f"web runs {now}, and {wanted} is wanted")
    return heard


async def _proposed(operator: Operator, heard: Input) -> tuple[str, str]:
    """Put the correction before a person; nothing of it is done."""
    back: dict[str, Json] = {"name": "web", "release": "v1", "percent": 100}
    plan = await operator.rt.propose(
        (Wanted(call_id="c7", tool="correct", arguments=back),),
        ask=heard.ask("correction"),
        origin="reconciler",
    )
    assert plan.offer is not None, plan
    return plan.plan, plan.offer.token


async def _agreed(operator: Operator, plan: str, token: str) -> None:
    """Have the person say yes to what was shown."""
    ended = await operator.rt.approve(plan, principal=PERSON, token=token, session=operator.session)
    assert ended is not None
    operator.timeline.add("correction", f"{ended.state}: {' / '.join(ended.text.splitlines())}")
