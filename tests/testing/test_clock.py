"""The clock and the ids of a simulation."""

import asyncio
from datetime import UTC, datetime, timedelta, timezone

import pytest

from landed.testing.clock import CountingIds, VirtualClock, parse_utc
from landed.testing.loop import VirtualLoop
from landed.testing.sim import World, current_process

pytestmark = pytest.mark.usefixtures("quiet")


def test_the_clock_is_absolute_and_follows_the_loop(world: World):
    clock = world.clock
    assert clock.iso() == "2026-11-27T18:00:00Z"
    world.pass_time(0.1)
    world.pass_time(0.2)
    assert clock.now() == parse_utc("2026-11-27T18:00:00.3Z")
    assert clock.iso() == "2026-11-27T18:00:00.300000Z"


def test_one_process_may_have_a_wrong_clock(world: World):
    async def main() -> tuple[str, float]:
        current_process().clock.shift(-86_400.0)
        await asyncio.sleep(60.0)  # virtual time
        return current_process().clock.iso(), asyncio.get_running_loop().time()

    assert world.run(main).result == ("2026-11-26T18:01:00Z", 60.0)
    assert world.clock.iso() == "2026-11-27T18:01:00Z"


def test_a_clock_without_a_world_needs_a_loop_and_a_start():
    assert VirtualClock(VirtualLoop(), 0.0).iso() == "1970-01-01T00:00:00Z"


def test_instants_are_read_in_any_zone_and_refused_without_one():
    eastern = datetime(2026, 11, 27, 13, tzinfo=timezone(timedelta(hours=-5)))
    assert parse_utc("2026-11-27T13:00:00-05:00") == eastern.timestamp()
    assert parse_utc("2026-11-27T18:00:00Z") == datetime(2026, 11, 27, 18, tzinfo=UTC).timestamp()
    with pytest.raises(ValueError, match="no offset"):
        parse_utc("2026-11-27T18:00:00")


def test_ids_count_per_kind():
    ids = CountingIds()
    made = [ids.new(kind) for kind in ("operation", "turn", "operation", "input", "plan", "plan")]
    assert made == ["op-a1", "T1", "op-a2", "in-1", "plan-1", "plan-2"]
    assert ids.next("op-a") == "op-a3"
