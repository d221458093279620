"""The contract of `landed.core.schedule.Schedule` as a test suite: run it over your own.

    async def test_my_schedule() -> None:
        await check_schedule(lambda: MySchedule(…), clock=WallClock())

Each check is named for what it demands and gets a schedule of its own, which is ended afterwards;
`CHECKS` lists them. Nothing is timed but what is due: all else waits for what is to happen, for at
most `PATIENCE_S`. An engine whose timers are coarse says so with `tick_s`.
"""

import asyncio
import math
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from landed.core.schedule import AT_ONCE, WHEN_RUNG, Place, Schedule
from landed.runtime.clock import Clock

PATIENCE_S = 30.0
ROUNDS = 20
HERE, THERE = ("t", "here"), ("t", "there")

Answer = Callable[[], Awaitable[float | None]]


async def _left() -> float | None:
    return None


async def _at_rest() -> float | None:
    return WHEN_RUNG


@dataclass(slots=True, eq=False)
class Seen:
    """Laps that answer as a check tells them to, and what was called.

    `answers` are what the next laps of a place do, in turn; after these it is left.
    """

    schedule: Schedule
    clock: Clock
    tick_s: float
    answers: dict[Place, list[Answer]] = field(default_factory=dict[Place, list[Answer]])
    begun: list[Place] = field(default_factory=list[Place])
    last: list[Place] = field(default_factory=list[Place])
    given_up: list[Place] = field(default_factory=list[Place])
    under_way: set[Place] = field(default_factory=set[Place])
    overlaps: int = 0
    news: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def lap(self, place: Place) -> float | None:
        """Take one lap, as the check wants it."""
        self.overlaps += place in self.under_way
        self.under_way.add(place)
        self.begun.append(place)
        await self._tell()
        answers = self.answers.get(place, [])
        try:
            return await (answers.pop(0) if answers else _left)()
        finally:
            self.under_way.discard(place)

    async def last_lap(self, place: Place) -> None:
        """Note that the last one was asked for."""
        self.last.append(place)
        await self._tell()

    def give_up(self, place: Place) -> None:
        """Note that no other will come."""
        self.given_up.append(place)

    async def until(self, laps: int, place: Place = HERE) -> None:
        """Wait until so many laps of a place began; raises `TimeoutError` if they don't."""
        async with asyncio.timeout(PATIENCE_S), self.news:
            await self.news.wait_for(lambda: self.count(place) >= laps)

    async def pass_by(self) -> None:
        """Let enough time go by for a lap that must not come to come."""
        await asyncio.sleep(3 * self.tick_s)

    def count(self, place: Place = HERE) -> int:
        """Return how many laps of a place began."""
        return self.begun.count(place)

    async def _tell(self) -> None:
        async with self.news:
            self.news.notify_all()


Check = Callable[[Seen], Awaitable[None]]
CHECKS: dict[str, Check] = {}
"""Every check by name, in the order in which they were defined."""


def check(function: Check) -> Check:
    """Enter a check."""
    CHECKS[function.__name__] = function
    return function


async def check_schedule(
    make: Callable[[], Schedule], *, clock: Clock, tick_s: float = 0.05
) -> tuple[str, ...]:
    """Run every check and return their names.

    `make` makes a schedule that has not begun; `clock` is the one it reads, `tick_s` how exact its
    timers are, in seconds. Raises `AssertionError` or `TimeoutError` with a note that names the
    check.
    """
    for name in CHECKS:
        try:
            await run_check(name, make(), clock=clock, tick_s=tick_s)
        except Exception as error:
            error.add_note(f"check_schedule: {name}")
            raise
    return tuple(CHECKS)


async def run_check(name: str, schedule: Schedule, *, clock: Clock, tick_s: float = 0.05) -> None:
    """Run one check over a schedule that has not begun."""
    async with _begun(Seen(schedule=schedule, clock=clock, tick_s=tick_s)) as seen:
        await CHECKS[name](seen)


@asynccontextmanager
async def _begun(seen: Seen) -> AsyncGenerator[Seen]:
    seen.schedule.begin(seen)
    try:
        yield seen
    finally:
        await seen.schedule.end(bound_s=PATIENCE_S)
    assert not seen.overlaps, "laps of one place overlapped"


@check
async def a_ring_leads_to_a_lap(seen: Seen) -> None:
    """And no place that was not rung has one."""
    assert seen.schedule.ring(HERE)
    await seen.until(1)
    await seen.pass_by()
    assert seen.begun == [HERE]


@check
async def a_ring_is_no_call(seen: Seen) -> None:
    """Whoever rings goes on first: no lap begins inside the ring."""
    seen.schedule.ring(HERE)
    assert not seen.begun
    await seen.until(1)


@check
async def a_ring_during_a_lap_is_not_lost(seen: Seen) -> None:
    """Also when that lap says that nothing is open: it had begun before the ring."""
    for answer in (_left, _at_rest):

        async def rung(answer: Answer = answer) -> float | None:
            seen.schedule.ring(HERE)
            await asyncio.sleep(0)
            return await answer()

        before = seen.count()
        seen.answers[HERE] = [rung]
        seen.schedule.ring(HERE)
        await seen.until(before + 2)


@check
async def rings_between_laps_are_not_lost(seen: Seen) -> None:
    """After the last of many rings a lap begins, whatever they met."""
    for number in range(ROUNDS):
        seen.answers[HERE] = [_at_rest] * 3
        for _ in range(number % 4 + 1):
            seen.schedule.ring(HERE)
        before = seen.count()
        await seen.until(before + 1)


@check
async def laps_of_one_place_never_overlap(seen: Seen) -> None:
    """However often it is rung while one is under way."""
    gate = asyncio.Event()

    async def slow() -> float | None:
        await gate.wait()
        return WHEN_RUNG

    seen.answers[HERE] = [slow]
    seen.schedule.ring(HERE)
    await seen.until(1)
    for _ in range(ROUNDS):
        seen.schedule.ring(HERE)
        await asyncio.sleep(0)
    assert seen.count() == 1
    gate.set()
    await seen.until(2)


@check
async def places_do_not_wait_for_each_other(seen: Seen) -> None:
    """A lap that takes long holds up its own place only."""
    gate = asyncio.Event()

    async def slow() -> float | None:
        await gate.wait()
        return None

    seen.answers[HERE] = [slow]
    seen.schedule.ring(HERE)
    await seen.until(1)
    seen.schedule.ring(THERE)
    await seen.until(1, THERE)
    gate.set()


@check
async def what_is_due_at_once_comes_at_once(seen: Seen) -> None:
    """Lap after lap, without a ring."""

    async def more() -> float | None:
        return AT_ONCE

    seen.answers[HERE] = [more] * ROUNDS
    seen.schedule.ring(HERE)
    await seen.until(ROUNDS + 1)


@check
async def what_is_due_comes_then(seen: Seen) -> None:
    """Not before, and without a ring."""
    due = math.nan

    async def later() -> float | None:
        nonlocal due
        due = seen.clock.now() + 2 * seen.tick_s
        return due

    seen.answers[HERE] = [later]
    seen.schedule.ring(HERE)
    await seen.until(2)
    assert seen.clock.now() >= due - seen.tick_s / 2


@check
async def what_was_due_before_comes_at_once(seen: Seen) -> None:
    """A time that is over is no reason to wait."""

    async def over() -> float | None:
        return seen.clock.now() - 60.0

    seen.answers[HERE] = [over]
    seen.schedule.ring(HERE)
    await seen.until(2)


@check
async def a_ring_comes_before_what_is_due(seen: Seen) -> None:
    """And the time that the earlier lap named counts no more."""

    async def much_later() -> float | None:
        return seen.clock.now() + 3600.0

    seen.answers[HERE] = [much_later]
    seen.schedule.ring(HERE)
    await seen.until(1)
    seen.schedule.ring(HERE)
    await seen.until(2)


@check
async def an_earlier_time_is_forgotten(seen: Seen) -> None:
    """Only what the latest lap named is due."""

    async def soon() -> float | None:
        return seen.clock.now() + seen.tick_s

    seen.answers[HERE] = [soon, _at_rest]
    seen.schedule.ring(HERE)
    await seen.until(1)
    seen.schedule.ring(HERE)
    await seen.until(2)
    await seen.pass_by()
    assert seen.count() == 2


@check
async def at_rest_a_place_waits_for_a_ring(seen: Seen) -> None:
    """No lap comes of itself, and a ring is heard after any time."""
    seen.answers[HERE] = [_at_rest]
    seen.schedule.ring(HERE)
    await seen.until(1)
    await seen.pass_by()
    assert seen.count() == 1
    seen.schedule.ring(HERE)
    await seen.until(2)


@check
async def a_place_that_was_left_can_be_rung_anew(seen: Seen) -> None:
    """Again and again."""
    for number in range(ROUNDS):
        assert seen.schedule.ring(HERE)
        await seen.until(number + 1)
        await asyncio.sleep(0)


@check
async def a_bug_gives_up_its_own_place_only(seen: Seen) -> None:
    """A lap that raises leaves nobody waiting there, and the others go on."""

    async def broken() -> float | None:
        raise ArithmeticError("a bug")

    seen.answers[HERE], seen.answers[THERE] = [broken], [_at_rest]
    seen.schedule.ring(HERE)
    seen.schedule.ring(THERE)
    await seen.until(1)
    await seen.until(1, THERE)
    await seen.pass_by()
    assert seen.given_up == [HERE]
    assert not seen.schedule.over
    for place in (HERE, THERE):
        before = seen.count(place)
        assert seen.schedule.ring(place)
        await seen.until(before + 1, place)


@check
async def at_the_end_each_place_has_its_last_lap(seen: Seen) -> None:
    """Those that are kept: one at rest and one in the middle of a lap; none that was left."""
    gate = asyncio.Event()

    async def long() -> float | None:
        await gate.wait()
        return None

    seen.answers[HERE], seen.answers[THERE] = [long], [_at_rest]
    for place in (HERE, THERE, ("t", "left")):
        seen.schedule.ring(place)
        await seen.until(1, place)
    await seen.pass_by()
    await seen.schedule.end(bound_s=PATIENCE_S)
    assert sorted(seen.last) == [HERE, THERE]
    assert sorted(seen.given_up) == [HERE, THERE]


@check
async def after_the_end_nothing_begins(seen: Seen) -> None:
    """A ring says so, what was due is not, and ending again does nothing."""

    async def soon() -> float | None:
        return seen.clock.now() + seen.tick_s

    seen.answers[HERE] = [soon]
    seen.schedule.ring(HERE)
    await seen.until(1)
    before = seen.schedule.over
    await seen.schedule.end(bound_s=PATIENCE_S)
    assert (before, seen.schedule.over) == (False, True)
    assert not seen.schedule.ring(HERE)
    await seen.pass_by()
    await seen.schedule.end(bound_s=PATIENCE_S)
    assert (seen.begun, seen.last, seen.given_up) == ([HERE], [HERE], [HERE])
