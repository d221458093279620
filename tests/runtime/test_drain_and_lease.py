"""A drain that takes longer than the lease: what is out stays with the process that goes."""

import asyncio

import pytest

from landed.core.lease import Lease
from landed.core.value import Confirmed
from landed.runtime.runtime import Runtime
from tests.runtime.rig import Rig, Wire, booking

FRIDAY = {"day": "Fri"}


@pytest.mark.req("S1-43")
def test_a_drain_that_outlasts_the_lease_keeps_what_is_out_and_takes_nothing_new(rig: Rig) -> None:
    rig.lease = Lease(lease_s=10.0, beat_s=3.0)
    rig.far.wire.append(Wire(replies_s=28.0))
    mine = booking(rig.far, deadline_s=90.0)

    async def drains(rt: Runtime):
        call = asyncio.ensure_future(rt.perform("book", FRIDAY, patience_s=100.0))
        await asyncio.sleep(1.0)  # virtual time
        await rt.drain()
        return await call, rt.recovered

    async def stays(rt: Runtime) -> int:
        await asyncio.sleep(60.0)  # virtual time
        return rt.recovered

    one = rig.start(drains, mine)
    two = rig.start(stays, mine)
    rig.world.wait(one, two)
    value, recovered = one.result()
    assert isinstance(value, Confirmed)
    assert (recovered, two.result()) == (0, 0)
    assert rig.events("op-a1") == ["made", "sent", "acknowledged"]
