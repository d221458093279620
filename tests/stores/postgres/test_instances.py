"""Two real processes on one Postgres: what one does, the other sees, stops and goes on with."""

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import pytest

from landed.core.changes import Kind, Record
from landed.core.contract import Risk
from landed.core.plan import At, PlanState
from landed.core.value import Confirmed, Undecided
from landed.runtime.runtime import Runtime
from tests.stores.postgres.outside import PRINCIPAL, Outside, at_work, deliver

pytestmark = [pytest.mark.anyio, pytest.mark.services, pytest.mark.timeout(120)]

CHECKOUT = Path(__file__).parents[3]
ENDS_S = 60.0


@pytest.fixture
def outside(tmp_path: Path) -> Outside:
    return Outside(tmp_path)


@pytest.fixture
def other(url: str, tmp_path: Path) -> Callable:
    """Start the other process; it is killed in the end."""

    @asynccontextmanager
    async def start(verb: str) -> AsyncIterator[Process]:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.stores.postgres.outside", url, str(tmp_path), verb),
            cwd=CHECKOUT,
            env=os.environ | {"PYTHONPATH": f"{CHECKOUT / 'src'}:{CHECKOUT}"},
            stdout=PIPE,
        )
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()
            await process.communicate()

    return start


async def said(process: Process) -> str:
    out, _ = await asyncio.wait_for(process.communicate(), ENDS_S)
    assert process.returncode == 0
    return out.decode()


@asynccontextmanager
async def reached(gate: Path) -> AsyncIterator[Callable[[], None]]:
    """Wait until a step of the other process is out; yield what lets it go on."""
    pipe = await asyncio.to_thread(gate.open, "w")
    try:
        yield pipe.close
    finally:
        pipe.close()


async def only(rt: Runtime, kind: Kind) -> Record:
    records = await rt.driver.store.session_records(tenant="default", session="main")
    (record,) = (record for record in records if record.kind is kind)
    return record


@pytest.mark.req("S1-51", "S1-52", "S1-53")
@pytest.mark.field("D3")
async def test_a_cancel_at_one_instance_stops_the_plan_that_another_runs(
    url: str, outside: Outside, other: Callable
) -> None:
    gate = outside.gate("issue")
    working = at_work(url, outside, "w2")
    async with working as rt, other("propose") as process, reached(gate) as go_on:
        plan = (await only(rt, Kind.PLAN)).id
        async with aclosing(rt.progress(plan)) as watching:
            seen = await anext(watching)
        assert (seen.step, seen.of, seen.at) == (2, 4, At.OUT)
        assert seen.text == "Step 2 of 4: issue(what=logo)"
        at_once = await rt.stop(plan, principal=PRINCIPAL, patience_s=1.0)
        assert at_once.state is PlanState.STOPPING
        assert [step.at for step in at_once.steps] == [At.DONE, At.OUT, At.WAITING, At.WAITING]
        go_on()
        later = await rt.stop(plan, principal=PRINCIPAL, patience_s=ENDS_S)
        assert await said(process) == "stopped"
    assert later.state is PlanState.STOPPED
    assert [step.at for step in later.steps] == [At.DONE, At.DONE, At.WAITING, At.WAITING]
    assert outside.effects() == ["draft logo", "issue logo"]


@pytest.mark.req("S1-52")
@pytest.mark.field("D1")
async def test_a_cancel_before_the_yes_is_found_by_the_process_that_says_it(
    url: str, outside: Outside, other: Callable
) -> None:
    go = outside.gate("go")
    working = at_work(url, outside, "w2", risk=Risk.CONFIRM)
    async with working as rt, other("agree") as process, reached(go) as go_on:
        plan = (await only(rt, Kind.PLAN)).id
        stopped = await rt.stop(plan, principal=PRINCIPAL)
        assert stopped.state is PlanState.DECLINED
        go_on()
        assert await said(process) == "refused: declined"
    assert outside.effects() == []


@pytest.mark.req("S1-52")
@pytest.mark.field("D1")
@pytest.mark.fault("X04")
async def test_a_cancel_outlasts_the_process_that_ran_the_plan(
    url: str, outside: Outside, other: Callable
) -> None:
    """Whoever takes over finds out about what was out, and begins nothing."""
    gate = outside.gate("issue")
    working = at_work(url, outside, "w2")
    async with working as rt, other("propose") as process, reached(gate):
        plan = (await only(rt, Kind.PLAN)).id
        await rt.stop(plan, principal=PRINCIPAL, patience_s=0.0)
        process.kill()
        later = await rt.stop(plan, principal=PRINCIPAL, patience_s=ENDS_S)
        assert (await only(rt, Kind.PLAN)).worker == "w2"
    assert later.state is PlanState.STOPPED
    assert [step.at for step in later.steps] == [At.DONE, At.DONE, At.WAITING, At.WAITING]
    assert outside.effects() == ["draft logo", "issue logo"]


@pytest.mark.field("F6")
async def test_one_delivery_to_two_replicas_is_one_run(
    url: str, outside: Outside, other: Callable
) -> None:
    gate = outside.gate("draft")
    working = at_work(url, outside, "w2")
    async with working as rt, other("deliver") as process, reached(gate) as go_on:
        again = asyncio.ensure_future(deliver(rt))
        await rt.unacted()  # It was received here as well, and joins what is out.
        go_on()
        value = await again
        assert await said(process) == f"Confirmed {value.operation}"
        events = [entry.event for entry in await rt.driver.store.journal()]
    assert isinstance(value, Confirmed)
    assert value.replayed
    assert outside.effects() == ["draft logo"]
    assert (events.count("received"), events.count("made")) == (1, 1)


@pytest.mark.field("F5", "F6")
@pytest.mark.fault("X18")
async def test_one_delivery_that_comes_again_after_a_kill_is_found_out_and_not_run_again(
    url: str, outside: Outside, other: Callable
) -> None:
    """The effect is there; the process died before it knew. Both replicas hear of it again."""
    gate = outside.gate("draft")
    async with other("deliver") as process, reached(gate):
        process.kill()
    async with at_work(url, outside, "w2") as rt, other("deliver") as restarted:
        value = await deliver(rt)
        assert await said(restarted) == f"Confirmed {value.operation}"
        operation = (await only(rt, Kind.OPERATION)).id
        events = [entry.event for entry in await rt.driver.store.journal(record=operation)]
    assert isinstance(value, Confirmed)
    assert outside.effects() == ["draft logo"]
    assert events == ["made", "sent", "answer_lost", "found"]


@pytest.mark.req("S4-50")
async def test_an_unknown_whose_owner_died_has_a_new_one_and_an_age_and_ends_with_a_person(
    url: str, outside: Outside, other: Callable
) -> None:
    gate = outside.gate("draft")
    working = at_work(url, outside, "w2")
    async with working as rt, other("deliver") as process, reached(gate):
        outside.fall_silent()
        process.kill()
        record = await only(rt, Kind.OPERATION)
        assert (record.worker, record.state) == ("w1", "sent")
        while not (doubt := await rt.in_doubt()).unknown:
            await rt.resolve(record.id, patience_s=0.1)
        owner = await only(rt, Kind.OPERATION)
        assert (owner.worker, owner.state) == ("w2", "unknown")
        assert owner.epoch > record.epoch
        assert 0.0 < doubt.oldest_unknown_s < ENDS_S
        value = await deliver(rt)
        (case,) = await rt.inbox()
        doubt = await rt.in_doubt()
    assert isinstance(value, Undecided)
    assert (case.operation, case.why) == (record.id, "undecided")
    assert (doubt.unknown, doubt.cases) == (0, 1)
    assert doubt.oldest_case_s > 0.0
    assert outside.effects() == ["draft logo"]
