"""Bounded queues and fair places: one tenant's flood is refused, and starves nobody else."""

import asyncio

import pytest

import landed
from landed.core.errors import BusyError, LandedError
from landed.core.key import Ask
from landed.core.pacing import Pace, Pacing
from landed.core.plan import Wanted
from landed.core.value import Confirmed, Unknown
from landed.runtime.opened import Settings
from landed.runtime.runtime import Runtime
from landed.runtime.sharing import Line
from tests.runtime.rig import Rig, Wire, booking

SLOW_S = 3.0
SLOW = Wire(replies_s=SLOW_S)


def book(rt: Runtime, n: int, *, tenant: str = "big", session: str = "main"):
    ask = Ask(tenant=tenant, session=session)
    return rt.perform("book", {"day": f"day {n}"}, ask=ask, patience_s=10_000.0)


@pytest.mark.fault("X74")
def test_beyond_its_bound_a_tenants_call_is_refused_before_anything_is_recorded(rig: Rig) -> None:
    rig.settings = Settings(tenant_max=5)
    rig.far.wire.extend([SLOW] * 5)
    mine = booking(rig.far)

    async def script(rt: Runtime) -> BusyError:
        calls = [asyncio.ensure_future(book(rt, n)) for n in range(5)]
        await asyncio.sleep(1.0)  # virtual time
        with pytest.raises(BusyError, match="try again in 1 s") as raised:
            await book(rt, 5)
        plan = [Wanted(tool="book", arguments={"day": "Sun"})]
        with pytest.raises(BusyError):
            await rt.propose(plan, ask=Ask(tenant="big", session="other"))
        assert isinstance(await book(rt, 0, tenant="small"), Confirmed)  # Others are not held up.
        await asyncio.gather(*calls)
        assert isinstance(await book(rt, 5), Confirmed)
        return raised.value

    error = rig.run(script, mine)
    assert isinstance(error, LandedError)
    assert (error.tenant, error.most, error.retry_after_s) == ("big", 5, 1.0)
    assert rig.events().count("made") == 7
    assert rig.far.total == 7


@pytest.mark.fault("X74")
def test_what_nobody_waits_for_any_more_still_counts_while_it_is_open(rig: Rig) -> None:
    rig.settings = Settings(tenant_max=3)
    rig.far.wire.extend([SLOW] * 3)

    async def script(rt: Runtime) -> None:
        asks = [Ask(session=f"s{n}") for n in range(3)]
        for ask in asks:
            value = await rt.perform("book", {"day": "Fri"}, ask=ask, patience_s=0.1)
            assert isinstance(value, Unknown)
        with pytest.raises(BusyError):
            await rt.perform("book", {"day": "Fri"})
        await asyncio.sleep(2 * SLOW_S)  # virtual time
        assert isinstance(await rt.perform("book", {"day": "Fri"}), Confirmed)

    rig.run(script, booking(rig.far))


@pytest.mark.fault("X74")
@pytest.mark.parametrize(
    "offered", [200, pytest.param(4_000, marks=[pytest.mark.services, pytest.mark.timeout(600)])]
)
def test_under_ten_times_its_load_a_process_holds_no_more_than_its_bound(
    rig: Rig, offered: int
) -> None:
    """Whoever is refused comes again later, as it was told to; none is lost, none is done twice."""
    most = 20
    rig.settings = Settings(tenant_max=most)
    rig.far.wire.extend([Wire(replies_s=1.0)] * offered)
    sizes: list[int] = []

    async def caller(rt: Runtime, n: int) -> int:
        await asyncio.sleep(n / (10 * most))  # virtual time
        for refusals in range(10_000):
            try:
                sizes.append(sum(len(loop.memory.operations) for loop in rt.driver.loops.values()))
                assert isinstance(await book(rt, n, session=f"s{n % 50}"), Confirmed)
            except BusyError as busy:
                await asyncio.sleep(busy.retry_after_s * (1.0 + n % 7))  # virtual time
                continue
            return refusals
        raise AssertionError("it never got in")

    async def script(rt: Runtime) -> list[int]:
        refusals = await asyncio.gather(*(caller(rt, n) for n in range(offered)))
        sharing = rt.driver.setting.sharing
        await asyncio.sleep(5.0)  # virtual time
        assert not sharing.calls
        assert not sharing._open
        assert not sharing._in_hand
        return refusals

    refusals = rig.run(script, booking(rig.far))
    assert sum(refusals) > offered
    assert max(sizes) <= most
    assert rig.far.total == offered
    assert set(rig.far.effects.values()) == {1}


@pytest.mark.fault("X77")
@pytest.mark.parametrize("sessions", [1, 40])
def test_one_tenant_that_waits_for_a_tools_places_does_not_starve_another(
    rig: Rig, sessions: int
) -> None:
    rig.far.wire.extend([SLOW] * 100)
    mine = booking(rig.far, concurrency=2)

    async def script(rt: Runtime) -> tuple[float, float]:
        calls = [asyncio.ensure_future(book(rt, n, session=f"s{n % sessions}")) for n in range(40)]
        await asyncio.sleep(1.0)  # virtual time
        asked_at = rig.world.timeline.now_s
        await book(rt, 0, tenant="small")
        waited_s = rig.world.timeline.now_s - asked_at
        await asyncio.gather(*calls)
        return waited_s, rig.world.timeline.now_s

    waited_s, ended_at = rig.run(script, mine)
    assert waited_s <= 3 * SLOW_S  # Two rounds of others at most, then its own.
    assert rig.far.most_at_once == 2
    assert ended_at == pytest.approx(21 * SLOW_S, abs=SLOW_S)  # No place was ever idle.


@pytest.mark.fault("X77")
def test_one_tenant_that_waits_for_a_services_pace_does_not_starve_another(rig: Rig) -> None:
    rig.pacing = Pacing(usual=Pace(per_s=2.0, burst=1))

    async def script(rt: Runtime) -> tuple[float, float]:
        calls = [asyncio.ensure_future(book(rt, n, session=f"s{n % 9}")) for n in range(60)]
        await asyncio.sleep(1.0)  # virtual time
        asked_at = rig.world.timeline.now_s
        await book(rt, 0, tenant="small")
        waited_s = rig.world.timeline.now_s - asked_at
        await asyncio.gather(*calls)
        return waited_s, rig.world.timeline.now_s

    waited_s, ended_at = rig.run(script, booking(rig.far))
    assert waited_s <= 1.5
    assert ended_at >= 30.0


def test_in_a_line_tenants_take_turns() -> None:
    line = Line()
    for key in (("a", "1"), ("a", "2"), ("a", "3"), ("b", "1"), ("a", "1"), ("b", "2")):
        line.join(key)
    line.leave(("a", "2"))
    line.leave(("c", "1"))
    order = [line.next() for _ in range(5)]
    assert order == [("a", "1"), ("b", "1"), ("a", "3"), ("b", "2"), None]


@pytest.mark.parametrize("name", ["adopt_max", "adopt_at_once", "tenant_max"])
def test_a_bound_with_which_nothing_would_be_done_is_none(name: str) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        landed.Settings(**{name: 0})  # type: ignore[arg-type]
