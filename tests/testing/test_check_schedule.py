"""The schedule of a process keeps the contract of the seam; the suite sees if one does not."""

import asyncio
from dataclasses import dataclass, field

import pytest

from landed.core.schedule import AT_ONCE, WHEN_RUNG, Laps, Place, Schedule
from landed.runtime.schedule import LocalSchedule
from landed.testing.check_schedule import CHECKS, check_schedule, run_check
from landed.testing.clock import VirtualClock
from landed.testing.sim import run


def clock() -> VirtualClock:
    return VirtualClock(asyncio.get_running_loop(), 1.8e9)


@pytest.mark.parametrize("name", CHECKS)
@pytest.mark.parametrize("seed", [None, 1, 2, 3])
def test_the_schedule_of_a_process_keeps_its_contract(
    name: str, seed: int | None, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        await run_check(name, LocalSchedule(clock=clock()), clock=clock())

    run(main(), seed=seed)
    assert len(caplog.records) == (name == "a_bug_gives_up_its_own_place_only")


def test_the_suite_names_what_it_ran() -> None:
    async def main() -> tuple[str, ...]:
        return await check_schedule(lambda: LocalSchedule(clock=clock()), clock=clock())

    assert run(main()) == tuple(CHECKS)


# Planted bugs: a suite that finds none of them would prove nothing.


@dataclass(eq=False)
class Broken(LocalSchedule):
    """Breaks one promise; each subclass another."""

    laps: Laps = field(init=False)

    def begin(self, laps: Laps) -> None:
        self.laps = laps
        super().begin(Bent(self, laps))

    async def bent(self, place: Place) -> float | None:
        return await self.laps.lap(place)


@dataclass(eq=False)
class Bent:
    """The laps as a broken schedule calls them."""

    schedule: Broken
    inner: Laps

    async def lap(self, place: Place) -> float | None:
        return await self.schedule.bent(place)

    async def last_lap(self, place: Place) -> None:
        await self.inner.last_lap(place)

    def give_up(self, place: Place) -> None:
        self.inner.give_up(place)


class RingsAll(Broken):
    async def bent(self, place: Place) -> float | None:
        if place == ("t", "here"):
            self.ring(("t", "there"))
        return await super().bent(place)


class NeverDue(Broken):
    async def bent(self, place: Place) -> float | None:
        due = await super().bent(place)
        return due if due in (None, AT_ONCE) else WHEN_RUNG


class DueTooSoon(Broken):
    async def bent(self, place: Place) -> float | None:
        due = await super().bent(place)
        return due if due in (None, AT_ONCE, WHEN_RUNG) else AT_ONCE


class NeverAtOnce(Broken):
    async def bent(self, place: Place) -> float | None:
        due = await super().bent(place)
        return WHEN_RUNG if due == AT_ONCE else due


class Polls(Broken):
    async def bent(self, place: Place) -> float | None:
        due = await super().bent(place)
        return self.clock.now() + 0.05 if due == WHEN_RUNG else due


class DeafDuringALap(Broken):
    async def bent(self, place: Place) -> float | None:
        due = await super().bent(place)
        self._bells[place].clear()
        return due


class Overlaps(Broken):
    async def bent(self, place: Place) -> float | None:
        beside = asyncio.ensure_future(self.laps.lap(place))
        due = await super().bent(place)
        await beside
        return due


class OneAtATime(Broken):
    lock: asyncio.Lock | None = None

    async def bent(self, place: Place) -> float | None:
        self.lock = self.lock or asyncio.Lock()
        async with self.lock:
            return await super().bent(place)


class RingsAfterTheEnd(Broken):
    def ring(self, place: Place) -> bool:
        super().ring(place)
        return True


class GoesOnAfterTheEnd(Broken):
    async def end(self, *, bound_s: float) -> None:
        return


PLANTED: list[tuple[type[Broken], str]] = [
    (RingsAll, "a_ring_leads_to_a_lap"),
    (NeverDue, "what_is_due_comes_then"),
    (DueTooSoon, "what_is_due_comes_then"),
    (NeverAtOnce, "what_is_due_at_once_comes_at_once"),
    (Polls, "at_rest_a_place_waits_for_a_ring"),
    (DeafDuringALap, "a_ring_during_a_lap_is_not_lost"),
    (Overlaps, "laps_of_one_place_never_overlap"),
    (OneAtATime, "places_do_not_wait_for_each_other"),
    (RingsAfterTheEnd, "after_the_end_nothing_begins"),
    (GoesOnAfterTheEnd, "at_the_end_each_place_has_its_last_lap"),
]


@pytest.mark.parametrize(("broken", "finds"), PLANTED)
def test_the_suite_finds_planted_bugs(broken: type[Broken], finds: str) -> None:
    async def main() -> None:
        schedule: Schedule = broken(clock=clock())
        await run_check(finds, schedule, clock=clock())

    with pytest.raises((AssertionError, TimeoutError)):
        run(main())
