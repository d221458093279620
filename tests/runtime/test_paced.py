"""What leaves for a service keeps to its pace: no storm after a 429, nor in an outage."""

import asyncio

import pytest

from landed.core.key import Ask
from landed.core.outcome import NotSent
from landed.core.pacing import Pace, Pacing
from landed.core.tool import Call
from landed.core.value import Confirmed
from landed.runtime.parts import assemble, register
from landed.runtime.runtime import Runtime
from landed.stores.sqlite import open_sqlite
from landed.testing.sim import World, current_process
from landed.tools.function import FunctionTool, tool
from tests.runtime.rig import Rig

MANY = 40
DAY_S = 86_400.0


class Service:
    """A service that is down, or asks for time, until `back_at`; it keeps when it was sent what."""

    def __init__(self, world: World, *, back_at: float, wait_s: float = 0.0) -> None:
        self.world = world
        self.back_at = back_at
        self.wait_s = wait_s
        self.sends: list[tuple[float, str, int]] = []

    async def take(self, call: Call) -> object:
        now = self.world.clock.now()
        self.sends.append((now, call.key, call.attempt))
        if now < self.back_at:
            return NotSent(
                reason="429" if self.wait_s else "connection refused", wait_s=self.wait_s
            )
        return {"id": call.key}

    def tool(self) -> FunctionTool:
        @tool(
            effect="reversible", keyed="key", compares_payload=True, max_tries=1000, service="far"
        )
        async def book(day: str, key: str, call: Call) -> object:
            return await self.take(call)

        return book


def carry_out(world: World, service: Service, pacing: Pacing | None) -> list[object]:
    """Perform many calls at once, each in a session of its own, and return what they came to."""

    async def agent() -> list[object]:
        booked = service.tool()
        runtime = assemble(
            open_sqlite(":memory:"),
            tools=register([booked]),
            clock=current_process().clock,
            ids=world.ids,
            worker="w1",
            pacing=pacing,
        )
        async with runtime as rt:
            return list(await asyncio.gather(*(one(rt, n) for n in range(MANY))))

    async def one(rt: Runtime, n: int) -> object:
        ask = Ask(session=f"s{n}", send_by=world.clock.now() + DAY_S)
        return await rt.perform("book", {"day": str(n)}, ask=ask, patience_s=DAY_S)

    process = world.start(agent, name="w1")
    world.wait(process)
    return process.result()


@pytest.mark.fault("X66")
def test_after_a_429_nothing_leaves_before_its_time_and_then_at_the_pace_with_its_key(
    rig: Rig,
):
    began = rig.world.clock.now()
    service = Service(rig.world, back_at=began + 30.0, wait_s=30.0)

    values = carry_out(rig.world, service, Pacing(usual=Pace(per_s=2.0, burst=4, again_floor=MANY)))

    assert all(isinstance(value, Confirmed) for value in values)
    times = [at - began for at, _, _ in service.sends]
    assert not [at for at in times if 0.5 < at < 30.0]
    for at in times:
        assert sum(at <= other < at + 1.0 for other in times) <= 5
    assert len({key for _, key, _ in service.sends}) == MANY


@pytest.mark.fault("X76")
def test_in_an_outage_sends_again_are_a_tenth_of_the_first_ones(rig: Rig):
    began = rig.world.clock.now()
    service = Service(rig.world, back_at=began + 50.0)
    pace = Pace(per_s=1000.0, burst=1000, again_floor=3, window_s=60.0)

    values = carry_out(rig.world, service, Pacing(usual=pace))

    assert all(isinstance(value, Confirmed) for value in values)
    again = [at for at, _, attempt in service.sends if attempt > 1 and at < began + 50.0]
    assert 1 <= len(again) <= MANY // 10


def test_without_a_pace_everything_leaves_at_once(rig: Rig):
    service = Service(rig.world, back_at=0.0)

    carry_out(rig.world, service, None)

    first = service.sends[0][0]
    assert {at for at, _, _ in service.sends} == {first}
