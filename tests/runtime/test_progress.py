"""Whoever watches a plan sees each step, wherever it is carried out, and holds nothing up."""

import asyncio
from contextlib import aclosing
from dataclasses import replace

import pytest

from landed.core.errors import ProposalError
from landed.core.plan import At, Plan, PlanState
from landed.runtime.listening import HEARD_MAX, Listeners
from landed.runtime.opened import Settings
from landed.runtime.progress import Progress
from landed.runtime.runtime import Runtime
from tests.runtime.plan_rig import ANA, UnitsCounted, office, only_plan, propose
from tests.runtime.rig import REFUSED, REPLY_LOST, Rig, Wire, no_word

SECOND = Wire(replies_s=1.0)


async def watch(rt: Runtime) -> list[Progress]:
    """Watch the plan of the session to its end."""
    return [seen async for seen in rt.progress(await only_plan(rt))]


async def propose_and_watch(rt: Runtime) -> list[Progress]:
    running = asyncio.ensure_future(propose(rt))
    await asyncio.sleep(0.5)  # virtual time
    seen = await watch(rt)
    await running
    return seen


STEPS = [
    "Step 1 of 4: draft(what=logo)",
    "Step 2 of 4: issue(what=$1)",
    "Step 3 of 4: mail(what=$2)",
    "Step 4 of 4: remind(what=$2)",
]


@pytest.mark.req("S1-51")
def test_each_step_is_shown_as_it_begins_and_the_end_as_it_is(rig: Rig) -> None:
    rig.far.wire += [SECOND] * 4
    seen = rig.run(propose_and_watch, *office(rig.far))

    assert [one.text for one in seen[:-1]] == STEPS
    assert [one.step for one in seen] == [1, 2, 3, 4, 4]
    assert {one.of for one in seen} == {4}
    assert [one.at for one in seen] == [*[At.OUT] * 4, At.DONE]
    assert [one.state for one in seen] == [*[PlanState.RUNNING] * 4, PlanState.DONE]
    assert seen[-1].text.startswith("Done: draft(what=logo) (R1)")
    assert seen[1].summary == "issue(what=$1)"


@pytest.mark.req("S1-51")
def test_a_plan_of_another_process_is_watched_from_here_and_nothing_is_written(rig: Rig) -> None:
    rig.far.wire += [Wire(replies_s=5.0)] * 4
    tools = office(rig.far, deadline_s=100.0)
    runs = rig.start(propose, *tools)
    rig.world.pass_time(0.5)
    counted: list[UnitsCounted] = []

    def wrap(store: object) -> UnitsCounted:
        counted.append(UnitsCounted(store))
        return counted[-1]

    rig.wrap = wrap
    watches = rig.start(watch, *tools)
    rig.world.wait(runs, watches)

    assert [one.text for one in watches.result()[:-1]] == STEPS
    assert watches.result()[-1].state is PlanState.DONE
    assert counted[0].units == []


def test_it_speaks_the_language_of_the_person(rig: Rig) -> None:
    rig.settings = Settings(language="es")
    rig.far.wire += [SECOND] * 4
    seen = rig.run(propose_and_watch, *office(rig.far))
    assert seen[1].text == "Paso 2 de 4: issue(what=$1)"


def test_it_ends_where_the_plan_breaks_off(rig: Rig) -> None:
    rig.far.wire += [SECOND, REFUSED]
    seen = rig.run(propose_and_watch, *office(rig.far))
    assert [one.state for one in seen] == [*[PlanState.RUNNING] * 2, PlanState.PARTIAL]
    assert (seen[-1].step, seen[-1].at) == (2, At.BROKEN)
    assert "the day is full" in seen[-1].text


def test_it_ends_where_a_plan_waits_for_a_yes_and_goes_on_after_it(rig: Rig) -> None:
    async def script(rt: Runtime) -> tuple[list[Progress], list[Progress]]:
        planned = await propose(rt)
        waits = await watch(rt)
        running = asyncio.ensure_future(rt.approve(planned.plan, principal=ANA))
        await asyncio.sleep(0.5)  # virtual time
        seen = await watch(rt)
        await running
        return waits, seen

    rig.far.wire += [SECOND] * 4
    waits, seen = rig.run(script, *office(rig.far, risk="confirm"))
    (only,) = waits
    assert (only.step, only.state) == (0, PlanState.PROPOSED)
    assert [one.step for one in seen] == [1, 2, 3, 4, 4]


def test_it_ends_where_only_a_person_can_find_out(rig: Rig) -> None:
    rig.far.wire += [SECOND, REPLY_LOST]

    async def script(rt: Runtime) -> list[Progress]:
        running = asyncio.ensure_future(propose(rt, patience_s=10_000.0))
        await asyncio.sleep(0.5)  # virtual time
        seen = await watch(rt)
        await running
        return seen

    tools = office(rig.far, lookup=no_word, close=None, keyed="key", escalate_after_s=60.0)
    seen = rig.run(script, *tools)
    assert (seen[-1].step, seen[-1].state) == (2, PlanState.IN_DOUBT)


def test_it_ends_with_the_runtime(rig: Rig) -> None:
    rig.far.wire += [Wire(replies_s=50.0)]
    rig.settings = Settings(drain_s=2.0)

    async def script(rt: Runtime) -> list[Progress]:
        running = asyncio.ensure_future(propose(rt))
        await asyncio.sleep(0.5)  # virtual time
        watching = asyncio.ensure_future(watch(rt))
        await asyncio.sleep(0.5)  # virtual time
        await rt.drain()
        await running
        return await watching

    seen = rig.run(script, *office(rig.far, deadline_s=100.0))
    assert {one.step for one in seen} == {1}
    assert seen[-1].state is PlanState.IN_DOUBT


def test_who_is_slow_or_leaves_holds_nothing_up(rig: Rig) -> None:
    rig.far.wire.append(SECOND)

    async def script(rt: Runtime) -> list[Progress]:
        running = asyncio.ensure_future(propose(rt))
        await asyncio.sleep(0.5)  # virtual time
        seen: list[Progress] = []
        async with aclosing(rt.progress(await only_plan(rt))) as watching:
            async for one in watching:
                seen.append(one)
                await asyncio.sleep(20.0)  # virtual time
                if len(seen) == 2:
                    break
        assert not rt.driver.setting.listeners.of
        await running
        return seen

    seen = rig.run(script, *office(rig.far))
    assert [one.step for one in seen] == [1, 2]
    assert rig.first_at("finished") == pytest.approx(rig.world.start_at + 1.0, abs=0.1)


def test_what_waits_for_a_slow_listener_is_bounded_and_ends_with_the_latest(rig: Rig) -> None:
    async def script(rt: Runtime) -> Plan:
        done = await propose(rt)
        return await rt.driver.reader.plan(done.plan, tenant="default")

    plan = rig.run(script, *office(rig.far))
    listeners = Listeners()
    with listeners.listening(plan.id) as listener:
        for version in range(1, 1000):
            listeners.tell({plan.id: replace(plan, version=version), "plan-other": plan})
            listeners.tell({plan.id: replace(plan, version=version)})
        versions = [one.version for one in listener.heard]
    assert versions == list(range(1000 - HEARD_MAX, 1000))
    assert not listeners.of


def test_who_watches_what_there_is_not_is_told_so(rig: Rig) -> None:
    async def script(rt: Runtime) -> None:
        with pytest.raises(ProposalError, match="there is no plan 'plan-none'"):
            async for _ in rt.progress("plan-none"):
                pass
        done = await propose(rt)
        with pytest.raises(ProposalError, match="there is no plan"):
            async for _ in rt.progress(done.plan, tenant="another"):
                pass

    rig.run(script, *office(rig.far))
