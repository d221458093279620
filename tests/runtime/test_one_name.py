"""Two workers with one name: the later registration stands, and the earlier one stops.

Who acts is decided by epochs, never by the name. Only of a name whose process is surely alive can a
second worker be refused at once: SQLite can tell, by the file that a process keeps locked, and
Postgres cannot.
"""

import asyncio
from typing import Any

import pytest

from landed.core.errors import LeaseLostError, StoreError
from landed.core.value import Confirmed
from landed.runtime.runtime import Runtime
from landed.testing.sim import Process
from tests.runtime.rig import Rig, Wire, booking

FRIDAY = {"day": "Fri"}
LATE = Wire(replies_s=80.0)


def start_again(rig: Rig, script: Any, *tools: Any) -> Process[Any]:
    """Start another process whose worker has the name of the last one."""
    rig.workers -= 1
    return rig.start(script, *tools)


async def settle(rt: Runtime):
    """Find out what the earlier one left, and go on for long after that."""
    before = await rt.resolve("op-a1", patience_s=300.0)
    await asyncio.sleep(100.0)  # virtual time
    return rt.recovered, before, await rt.perform("book", {"day": "Sat"})


async def serve_and_be_told(rt: Runtime) -> list[str]:
    """Send, and go on until it is told that it is not the one any more; returns of whom it was."""
    call = asyncio.ensure_future(rt.perform("book", FRIDAY, patience_s=200.0))
    told: list[str] = []
    with pytest.raises(LeaseLostError) as lost:
        await rt.serve(asyncio.Event())
    told.append(lost.value.record)
    for verb in (rt.perform("book", {"day": "Sun"}), rt.receive("hello")):
        with pytest.raises(LeaseLostError) as lost:
            await verb
        told.append(lost.value.record)
    assert isinstance(await call, Confirmed), "what the later one found out"
    return told


@pytest.mark.req("S4-24", "S4-25")
@pytest.mark.field("F1", "F2")
@pytest.mark.fault("X20")
def test_the_later_one_stands_and_the_earlier_one_stops(rig: Rig) -> None:
    """The earlier one was taken for dead, and lives on; both say that they are `w1`."""
    rig.far.wire.append(LATE)
    mine = booking(rig.far, deadline_s=100.0)
    one = rig.start(serve_and_be_told, mine)
    rig.world.pass_time(1.0)
    (left,) = rig.operations()
    rig.base.worker_died("w1")
    two = start_again(rig, settle, mine)
    rig.world.wait(one, two)
    rig.check()

    assert one.result() == ["worker w1"] * 3
    recovered, found, later = two.result()
    assert recovered == 1
    assert isinstance(found, Confirmed)
    assert isinstance(later, Confirmed)
    assert rig.far.effects == {"op-a1": 1, "op-a2": 1}
    settled, _ = rig.operations()
    assert settled.worker == left.worker == "w1"
    assert settled.epoch > left.epoch
    # The reply that the earlier one got after 80 s is in nobody's record.
    assert rig.events("op-a1") == ["made", "sent", "answer_lost", "found"]


@pytest.mark.field("F1")
def test_the_earlier_one_ends_no_registration_but_its_own(rig: Rig) -> None:
    """It drains before a heartbeat could tell it that it has been followed."""
    rig.far.wire.append(LATE)
    mine = booking(rig.far, deadline_s=100.0)

    async def leave(rt: Runtime) -> None:
        await asyncio.sleep(2.0)  # virtual time

    async def work(rt: Runtime):
        return await rt.perform("book", FRIDAY, patience_s=200.0)

    async def look(rt: Runtime) -> int:
        return rt.recovered

    one = rig.start(leave)
    rig.world.pass_time(1.0)
    rig.base.worker_died("w1")
    two = start_again(rig, work, mine)
    rig.world.wait(one)
    assert rig.run(look, mine) == 0
    rig.world.wait(two)
    assert isinstance(two.result(), Confirmed)
    assert rig.events("op-a1") == ["made", "sent", "acknowledged"]


@pytest.mark.fault("X20")
def test_the_name_of_a_living_worker(rig: Rig, on_store: str) -> None:
    rig.far.wire.append(LATE)
    mine = booking(rig.far, deadline_s=100.0)
    one = rig.start(serve_and_be_told if on_store == "postgres" else work_alone, mine)
    rig.world.pass_time(1.0)
    two = start_again(rig, settle, mine)
    if on_store == "sqlite":
        with pytest.raises(StoreError, match="w1 is alive; start each under a new name"):
            rig.world.wait(two)
        rig.world.wait(one)
        assert isinstance(one.result(), Confirmed)
    else:
        rig.world.wait(one, two)
        assert one.result() == ["worker w1"] * 3
        assert two.result()[0] == 1
    assert rig.far.effects["op-a1"] == 1


async def work_alone(rt: Runtime):
    """Send, and hear the answer."""
    return await rt.perform("book", FRIDAY, patience_s=200.0)
