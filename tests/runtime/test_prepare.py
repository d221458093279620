"""What every send uses is computed once, stored before the first, and the same for each."""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from landed.core.key import Ask
from landed.core.operation import State
from landed.core.tool import Call
from landed.core.value import Blocked, Confirmed, Undecided, Withdrawn
from landed.runtime.runtime import Runtime
from landed.testing.faults import Point
from landed.tools.function import FunctionTool, tool
from tests.runtime.rig import DROPPED, REPLY_LOST, RESET, SELDOM, UNSENT, FarSide, Rig, never

FRIDAY = {"day": "Fri"}


@dataclass
class Signer:
    """Computes what the sends use: a number that is another each time it is asked."""

    far: FarSide
    calls: list[str] = field(default_factory=list[str])
    used: list[Any] = field(default_factory=list[Any])
    does: "Callable[[Call], object]" = lambda call: {"bytes": "signed"}

    async def __call__(self, call: Call) -> object:
        self.calls.append(call.operation)
        came = self.does(call)
        if asyncio.isfuture(came):
            await came
        if isinstance(came, dict):
            return {**came, "number": len(self.calls)}
        return came


def signing(signer: Signer, **promises: Any) -> FunctionTool[Any, Any]:
    """A tool that broadcasts what was prepared."""
    kept: dict[str, Any] = {
        "effect": "irreversible",
        "keyed": "key",
        "compares_payload": True,
        "lookup": signer.far.lookup,
        "close": signer.far.close,
        "deadline_s": 5.0,
        "prepare": signer,
        **promises,
    }

    @tool(**kept)
    async def broadcast(day: str, key: str, call: Call) -> object:
        """Broadcast it."""
        signer.used.append(call.prepared)
        return await signer.far.take(call, day)

    return broadcast


async def send_friday(rt: Runtime, **asked: Any):
    return await rt.perform("broadcast", FRIDAY, patience_s=60.0, **asked)


@pytest.mark.req("S4-21")
def test_it_is_stored_before_the_first_send(rig: Rig) -> None:
    signer = Signer(rig.far)
    assert isinstance(rig.run(send_friday, signing(signer)), Confirmed)
    assert rig.events("op-a1") == ["made", "prepared", "sent", "acknowledged"]
    assert signer.used == [{"bytes": "signed", "number": 1}]
    assert rig.operation().prepared == signer.used[0]


@pytest.mark.parametrize("wire", [UNSENT, DROPPED, REPLY_LOST, RESET])
def test_each_send_uses_the_same(rig: Rig, wire: Any) -> None:
    signer = Signer(rig.far)
    rig.far.wire.extend([wire, wire])
    assert isinstance(rig.run(send_friday, signing(signer)), Confirmed)
    assert len(signer.calls) == 1
    assert {str(each) for each in signer.used} == {"{'bytes': 'signed', 'number': 1}"}
    assert rig.far.total == 1


@pytest.mark.fault("X01", "X02")
@pytest.mark.parametrize(
    ("side", "event", "prepared"),
    [
        ("after", "made", 1),
        ("before", "prepared", 2),
        ("after", "prepared", 1),
        ("before", "sent", 2),
        ("after", "sent", 1),
        ("before", "acknowledged", 1),
    ],
)
def test_a_crash_at_any_point_sends_nothing_else_than_what_was_stored(
    rig: Rig, side: str, event: str, prepared: int
) -> None:
    """What was computed and not stored is lost, and was not used either."""
    rig.lease = SELDOM
    rig.kill_at = Point(side=side, name=event)
    signer = Signer(rig.far)
    process = rig.start(send_friday, signing(signer))
    rig.world.pass_time(1.0)
    assert not process.alive
    rig.base.worker_died(process.name)
    rig.kill_at = None

    async def recover(rt: Runtime) -> None:
        await asyncio.sleep(60.0)  # virtual time

    rig.run(recover, signing(signer))
    assert (rig.states(), rig.far.total) == ([State.CONFIRMED], 1)
    assert len(signer.calls) == prepared
    stored = rig.operation().prepared
    assert signer.used
    assert all(each == stored for each in signer.used)


def _raises(call: Call) -> object:
    raise ValueError("no such account")


def _hangs(call: Call) -> object:
    return asyncio.get_running_loop().create_future()


@pytest.mark.parametrize(
    ("does", "why"),
    [
        (_raises, "it could not be prepared: ValueError: no such account"),
        (_hangs, "it could not be prepared: no answer within 5 s"),
        (lambda call: object(), "it could not be prepared"),
        (lambda call: None, "nothing was prepared"),
    ],
    ids=["raises", "hangs", "is no JSON", "is nothing"],
)
def test_a_call_for_which_nothing_could_be_prepared_is_taken_back_unsent(
    rig: Rig, does: Callable[[Call], object], why: str
) -> None:
    signer = Signer(rig.far, does=does)
    value = rig.run(send_friday, signing(signer))
    assert isinstance(value, Withdrawn)
    assert why in value.reason
    assert (rig.far.sends, len(signer.calls)) == ([], 1)


def test_a_tool_that_is_not_registered_any_more_takes_it_back_unsent(rig: Rig) -> None:
    rig.kill_at = Point(side="after", name="made")
    process = rig.start(send_friday, signing(Signer(rig.far)))
    rig.world.pass_time(1.0)
    rig.base.worker_died(process.name)
    rig.kill_at = None

    async def recover(rt: Runtime) -> None:
        await asyncio.sleep(10.0)  # virtual time

    rig.run(recover)
    assert rig.states() == [State.WITHDRAWN]


def test_nothing_is_prepared_while_something_stands_in_the_way(rig: Rig) -> None:
    signer = Signer(rig.far)
    rig.far.wire.append(DROPPED)
    blocks = signing(signer, when_unknown="escalate")

    async def script(rt: Runtime):
        first = await send_friday(rt, ask=Ask(call_id="c1"))
        assert isinstance(first, Undecided)
        return await send_friday(rt, ask=Ask(call_id="c2"))

    assert isinstance(rig.run(script, blocks), Blocked)
    assert signer.calls == ["op-a1"]


def test_what_was_let_go_while_it_was_prepared_is_not_sent(rig: Rig) -> None:
    started: list[str] = []
    signer = Signer(rig.far)

    async def slow(call: Call) -> dict[str, str]:
        started.append(call.operation)
        await asyncio.sleep(2.0)  # virtual time
        return {"bytes": "signed"}

    async def script(rt: Runtime):
        waiting = asyncio.ensure_future(send_friday(rt))
        while not started:
            await asyncio.sleep(0.1)  # virtual time
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await asyncio.sleep(10.0)  # virtual time
        return await rt.status("op-a1")

    assert isinstance(rig.run(script, signing(signer, prepare=slow)), Withdrawn)
    assert rig.far.sends == []


def test_a_call_whose_time_was_over_while_it_was_prepared_is_not_sent(rig: Rig) -> None:
    async def slow(call: Call) -> dict[str, str]:
        await asyncio.sleep(4.0)  # virtual time
        return {"bytes": "signed"}

    async def script(rt: Runtime):
        send_by = rig.world.clock.now() + 2.0
        return await send_friday(rt, ask=Ask(send_by=send_by))

    value = rig.run(script, signing(Signer(rig.far), prepare=slow))
    assert isinstance(value, Withdrawn)
    assert rig.far.sends == []


def test_a_function_that_blocks_prepares_in_a_thread_of_its_own() -> None:
    """In real time, for a thread is real."""
    import landed

    threads: list[int] = []

    def sign(call: Call) -> dict[str, str]:
        threads.append(threading.get_ident())
        return {"bytes": "signed"}

    @tool(effect="irreversible", prepare=sign)
    async def broadcast(day: str, call: Call) -> object:
        return call.prepared

    async def act() -> object:
        async with landed.open("sqlite://:memory:", tools=[broadcast]) as rt:
            value = await rt.perform(broadcast, FRIDAY)
            assert isinstance(value, Confirmed)
            return value.result

    assert asyncio.run(act()) == {"bytes": "signed"}
    assert threads != [threading.get_ident()]


def test_the_drain_does_not_wait_for_one_that_hangs(rig: Rig) -> None:
    from landed.runtime.opened import Settings

    async def hangs(call: Call) -> object:
        await never()
        return {}

    rig.settings = Settings(drain_s=1.0)

    async def script(rt: Runtime) -> float:
        waiting = asyncio.ensure_future(rt.perform("broadcast", FRIDAY, patience_s=0.5))
        await asyncio.sleep(1.0)  # virtual time
        waiting.cancel()
        return rig.world.clock.now()

    ended_at = rig.run(script, signing(Signer(rig.far), prepare=hangs, deadline_s=500.0))
    assert rig.world.clock.now() - ended_at < 10.0
    assert rig.far.sends == []
