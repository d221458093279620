"""A process that stands still for a while: not dead, and when it goes on, the time has moved."""

import asyncio

import pytest

from landed.testing.loop import StuckError
from landed.testing.sim import Ended, World, current_process

pytestmark = [pytest.mark.usefixtures("quiet"), pytest.mark.fault("X18")]


async def tick(world: World, seen: list[float], times: int = 3) -> str:
    for _ in range(times):
        await asyncio.sleep(1.0)  # virtual time
        seen.append(world.timeline.now_s)
    return "done"


def test_nothing_of_it_runs_and_then_it_goes_on_where_it_was(world: World):
    paused: list[float] = []
    other: list[float] = []
    one = world.start(lambda: tick(world, paused))
    two = world.start(lambda: tick(world, other, times=20))
    world.pass_time(1.5)
    one.pause()
    world.pass_time(10.0)
    assert (paused, other) == ([1.0], [float(n) for n in range(1, 12)])
    one.resume()
    world.wait(one, two)
    assert paused == [1.0, 11.5, 12.5]
    assert one.result() == "done"


def test_it_is_alive_and_its_clock_has_moved(world: World):
    async def main() -> tuple[float, float]:
        process = current_process()
        before = process.clock.now()
        process.pause()
        await asyncio.sleep(0)
        return before, process.clock.now()

    process = world.start(main)
    world.pass_time(60.0)
    assert process.alive
    process.resume()
    world.wait(process)
    before, after = process.result()
    assert after - before == pytest.approx(60.0)


def test_what_it_had_sent_arrives_and_its_reply_waits(world: World):
    landed, heard = [], []

    async def request() -> str:
        await asyncio.sleep(5.0)  # virtual time
        landed.append(world.timeline.now_s)
        return "reply"

    async def main() -> None:
        heard.append((await world.spawn(request()), world.timeline.now_s))

    process = world.start(main)
    world.pass_time(1.0)
    process.pause()
    world.pass_time(30.0)
    assert (landed, heard) == ([5.0], [])
    process.resume()
    world.wait(process)
    assert heard == [("reply", 31.0)]


@pytest.mark.parametrize("seed", [None, 1, 2, 3])
def test_what_came_due_meanwhile_is_due_in_the_order_it_came_on_every_schedule(seed: int | None):
    world = World(seed)
    ran: list[str] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.call_later(3.0, ran.append, "second")
        loop.call_later(2.0, ran.append, "first")
        cancelled = loop.call_later(1.0, ran.append, "cancelled")
        current_process().pause()
        await asyncio.sleep(0)
        cancelled.cancel()
        await asyncio.sleep(5.0)  # virtual time

    process = world.start(main)
    world.pass_time(0.5)
    process.resume()
    world.pass_time(0.1)
    process.pause()
    world.pass_time(8.0)
    assert ran == []
    process.resume()
    world.wait(process)
    assert ran == ["first", "second"]
    world.close()


def test_a_paused_process_can_be_killed_and_does_not_come_back(world: World):
    ran: list[float] = []
    process = world.start(lambda: tick(world, ran))
    world.pass_time(1.5)
    process.pause()
    process.kill()
    process.resume()
    world.pass_time(10.0)
    assert (ran, process.ended()) == ([1.0], Ended(crashed_at="kill"))


def test_whoever_waits_for_a_paused_process_is_told_that_it_does_not_end(world: World):
    process = world.start(lambda: tick(world, []))
    process.pause()
    with pytest.raises(StuckError):
        world.wait(process)
