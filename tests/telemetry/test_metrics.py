"""What is counted and measured is what was committed, and what the store says of itself."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

import landed
from landed.core.errors import LeaseLostError
from landed.core.lease import Lease
from landed.core.onlooker import Noticed, Onlooker
from landed.core.value import Undecided
from landed.runtime.runtime import Runtime
from landed.telemetry.metrics import STAYS
from landed.telemetry.otel import OpenTelemetry
from tests.runtime.plan_rig import calls as wanted
from tests.runtime.plan_rig import propose, shelf
from tests.runtime.rig import FINE, REPLY_LOST, RESET, Wire, booking, unkeyed, with_day
from tests.runtime.stores import Wrapped
from tests.telemetry.watched import Watched


def test_operations_are_counted_by_the_state_they_reach(rig: Watched) -> None:
    rig.far.wire.extend([FINE, Wire(refused="full"), REPLY_LOST])
    rig.far.silent_questions = 2  # Each leaves the operation where it is.

    async def script(rt: Runtime) -> None:
        for day in ("Fri", "Sat", "Sun"):
            await rt.perform("book", with_day(day), patience_s=60.0)

    rig.run(script, booking(rig.far))

    assert rig.events().count("looked") == 2
    reached = {str(has["landed.state"]): n for has, n in rig.points("landed.operations")}
    assert reached == {"recorded": 3, "sent": 3, "unknown": 1, "confirmed": 2, "failed": 1}


def test_an_event_that_moves_nothing_reaches_nothing() -> None:
    assert {"looked", "told", "closing", "unwanted", "prepared"} <= STAYS
    assert not STAYS & {"made", "sent", "resent", "found", "answer_lost", "gave_up"}


def test_calls_are_measured_by_what_they_were_and_came_to(rig: Watched) -> None:
    rig.far.wire.extend([Wire(arrives_s=None), Wire(replies_s=2.0)])

    async def script(rt: Runtime) -> None:
        await rt.perform("book", with_day("Fri"))

    rig.run(script, booking(rig.far))

    came = {
        (has["landed.call"], has["landed.outcome"]): round(point.sum, 1)
        for has, point in rig.points("landed.call.duration")
    }
    assert came == {
        ("send", "answer_lost"): 5.0,
        ("lookup", "absent"): 0.0,
        ("resend", "acknowledged"): 2.0,
    }


def test_only_what_was_in_doubt_has_a_time_in_doubt(rig: Watched) -> None:
    rig.far.wire.extend([FINE, REPLY_LOST])

    async def script(rt: Runtime) -> None:
        await rt.perform("book", with_day("Fri"))
        await rt.perform("book", with_day("Sat"))

    rig.run(script, booking(rig.far))

    ((has, point),) = rig.points("landed.doubt.duration")
    assert has == {"gen_ai.tool.name": "book", "landed.state": "confirmed"}
    assert (point.count, point.sum) == (1, pytest.approx(5.0, abs=0.1))


@pytest.mark.req("S4-50")
def test_an_unknown_has_a_visible_age_until_it_is_settled(rig: Watched) -> None:
    rig.options = {"reads_every_s": 10.0}
    rig.far.wire.append(REPLY_LOST)
    rig.far.silent_questions = 1_000
    ages: list[float] = []

    async def script(rt: Runtime) -> None:
        await rt.perform("book", with_day("Fri"), patience_s=6.0)
        for _ in range(3):
            await asyncio.sleep(60.0)  # virtual time
            ages.append(rig.value("landed.oldest_unknown_seconds"))
        assert rig.value("landed.open_records", kind="operation", state="unknown") == 1
        rig.far.silent_questions = 0
        await asyncio.sleep(900.0)  # virtual time

    rig.run(script, booking(rig.far))

    assert ages == pytest.approx([66.0, 126.0, 186.0], abs=10.0)
    assert rig.value("landed.oldest_unknown_seconds") == 0
    assert rig.value("landed.open_records", kind="operation", state="unknown") == 0
    read_at = rig.value("landed.store_read_at")
    assert read_at == pytest.approx(rig.world.clock.now(), abs=20.0)


@pytest.mark.req("S4-50")
def test_a_case_is_counted_as_it_opens_and_while_it_waits(rig: Watched) -> None:
    rig.options = {"reads_every_s": 10.0}
    rig.far.wire.append(RESET)

    async def script(rt: Runtime) -> None:
        assert isinstance(await rt.perform("mail", {"to": "ana"}, patience_s=60.0), Undecided)
        await asyncio.sleep(15.0)  # virtual time

    rig.run(script, unkeyed(rig.far, when_unknown="escalate"))

    assert rig.value("landed.cases") == 1
    assert rig.value("landed.open_cases") == 1
    assert rig.value("landed.oldest_unknown_seconds") == 0


def test_releases_that_are_owed_are_counted(rig: Watched) -> None:
    rig.options = {"reads_every_s": 5.0}

    async def script(rt: Runtime) -> None:
        done = await propose(rt, wanted("put", "a"))
        rig.far.wire.append(REPLY_LOST)
        rig.far.silent_questions = 100
        await rt.undo(done.plan, principal="ana", patience_s=1.0)
        await asyncio.sleep(20.0)  # virtual time

    rig.run(script, *shelf(rig.far))

    assert rig.value("landed.owed_releases") == 1


class TakenOver(Wrapped):
    """A store whose worker is taken for dead after its third heartbeat."""

    renewed = 0

    async def renew(self, **asked: Any) -> None:
        self.renewed += 1
        if self.renewed > 1 + 3:
            raise LeaseLostError(record="w1", held=1, found=2)
        await self.inner.renew(**asked)


def test_renewals_and_losses_of_the_lease_are_counted(rig: Watched) -> None:
    rig.lease = Lease(lease_s=30.0, beat_s=10.0)

    rig.wrap = TakenOver

    async def script(rt: Runtime) -> None:
        await asyncio.sleep(60.0)  # virtual time

    rig.run(script)

    assert rig.value("landed.lease.renewals") == 3
    assert rig.value("landed.lease.losses") == 1


def test_a_lap_that_another_writer_spoiled_is_a_conflict(rig: Watched) -> None:
    async def first(rt: Runtime) -> None:
        await rt.perform("book", with_day("Fri"), ask=landed.Ask(call_id="c1"))

    rig.run(first, booking(rig.far))
    rig.run(first, booking(rig.far))

    assert rig.value("landed.conflicts", conflict="stale_write") == 1
    assert rig.far.total == 1


class Heard(Onlooker):
    """What a store said of its batches."""

    def __init__(self) -> None:
        self.batches: list[tuple[int, float]] = []
        self.met: list[Noticed] = []

    def wrote(self, units: int, seconds: float) -> None:
        self.batches.append((units, seconds))


async def _perform(url: str, count: int, onlooker: Onlooker) -> None:
    @landed.tool(effect="reversible")
    async def touch(n: int) -> int:
        return n

    async with landed.open(url, tools=[touch], telemetry=onlooker) as rt:
        asks = [landed.Ask(session=f"s{n}") for n in range(count)]
        await asyncio.gather(*(rt.perform(touch, {"n": 1}, ask=ask) for ask in asks))


def test_commits_are_measured_and_claims_are_not(tmp_path: Path) -> None:
    heard = Heard()

    asyncio.run(_perform(f"sqlite:///{tmp_path}/a.db", 8, heard))

    # A contract, and two commits for each operation; renewals and claims are not among them.
    assert sum(units for units, _ in heard.batches) == 1 + 2 * 8
    assert max(units for units, _ in heard.batches) > 1
    assert all(seconds > 0 for _, seconds in heard.batches)


def test_the_sizes_of_batches_reach_the_histograms(tmp_path: Path) -> None:
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader], shutdown_on_exit=False)

    asyncio.run(_perform(f"sqlite:///{tmp_path}/a.db", 8, OpenTelemetry(meter_provider=provider)))

    read = reader.get_metrics_data()
    assert read is not None
    sums = {
        metric.name: sum(getattr(point, "sum", 0) for point in metric.data.data_points)
        for metric in read.resource_metrics[0].scope_metrics[0].metrics
        if metric.name.startswith("landed.commit.")
    }
    assert sums["landed.commit.units"] == 17
    assert sums["landed.commit.duration"] > 0
