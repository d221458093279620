"""The simulated world: processes that die, and an outside that doesn't."""

import asyncio
import contextvars
import gc
from collections.abc import AsyncIterator, Coroutine

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from landed.testing.loop import SimulatedCrash, SimulationError, StuckError
from landed.testing.sim import Ended, Process, World, current_process, run

pytestmark = pytest.mark.usefixtures("quiet")

LONG_S = 10 * 86_400.0
"""Far more than the time-out of a test: whoever really waits this long fails."""


# Crash.


class Ledger:
    """A store as a process holds it: it refuses a process that is over."""

    def __init__(self, rows: list[str]) -> None:
        self._rows = rows
        self._process = current_process()

    def write(self, row: str) -> None:
        self._process.require_alive()
        self._rows.append(row)


def test_a_crash_ends_the_process_where_it_is(world: World):
    rows: list[str] = []

    closed: list[bool] = []

    def crash_point() -> None:
        try:
            current_process().crash("before:send")
        finally:
            closed.append(asyncio.get_running_loop().is_closed())

    async def main() -> None:
        ledger = Ledger(rows)
        ledger.write("before")
        crash_point()
        ledger.write("after")

    assert world.run(main) == Ended(crashed_at="before:send")
    assert (rows, closed) == (["before"], [True])


def test_the_dead_run_their_finally_blocks_and_can_do_nothing_there(world: World):
    rows: list[str] = []
    tried: list[str] = []

    async def worker(name: str, die: asyncio.Event) -> None:
        ledger = Ledger(rows)
        try:
            ledger.write(f"{name} works")
            await die.wait()
            current_process().crash("work")
        finally:
            tried.append(name)
            ledger.write(f"{name} is sorry")

    async def main() -> None:
        die, never = asyncio.Event(), asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(worker("first", never))
            group.create_task(worker("second", die))
            asyncio.get_running_loop().call_later(1.0, die.set)

    assert world.run(main) == Ended(crashed_at="work")
    assert sorted(tried) == ["first", "second"]
    assert rows == ["first works", "second works"]


def test_a_dead_finally_block_that_waits_is_ended_too(world: World):
    reached: list[str] = []

    async def main() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            reached.append("finally")
            try:
                await asyncio.sleep(1.0)  # virtual time
            finally:
                asyncio.get_running_loop().create_task(asyncio.sleep(1.0))  # virtual time
                reached.append("the last one")
            reached.append("a later statement")

    process = world.start(main)
    world.pass_time(1.0)
    process.kill()
    world.pass_time(10.0)
    assert reached == ["finally", "the last one"]


def test_a_process_that_catches_even_its_own_end_is_an_error(world: World):
    mortal = False

    async def immortal() -> None:
        while not mortal:
            try:
                await asyncio.sleep(1.0)  # virtual time
            except BaseException:
                continue

    process = world.start(immortal)
    world.pass_time(1.5)
    with pytest.raises(SimulationError, match="catches everything"):
        process.kill()
    mortal = True  # Or Python complains when it collects the coroutine.


def test_a_crash_that_the_program_catches_is_a_crash_all_the_same(world: World):
    rows: list[str] = []

    async def main() -> str:
        ledger = Ledger(rows)
        try:
            current_process().crash("point")
        except BaseException:
            await asyncio.sleep(0)
            ledger.write("survived")
        return "survived"

    assert world.run(main) == Ended(crashed_at="point")
    assert rows == []


def test_a_bare_raise_kills_too(world: World):
    async def main() -> None:
        asyncio.get_running_loop().create_task(asyncio.Event().wait())
        raise SimulatedCrash("raised")

    assert world.run(main) == Ended(crashed_at="raised")


def test_a_crash_in_a_function_of_a_thread_is_a_crash_of_the_process(world: World):
    async def main() -> None:
        await asyncio.to_thread(lambda: current_process().crash("in a function"))

    assert world.run(main) == Ended(crashed_at="in a function")


def test_a_crash_comes_out_of_run():
    async def main() -> None:
        current_process().crash("point")

    with pytest.raises(SimulatedCrash) as crash:
        run(main())
    assert isinstance(crash.value, SystemExit)
    assert crash.value.point == "point"


def test_nothing_of_the_dead_runs_or_moves_the_time(world: World):
    ran: list[str] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.call_later(1.0, ran.append, "timer")
        loop.call_soon(ran.append, "callback")
        loop.create_task(asyncio.sleep(0)).add_done_callback(lambda _: ran.append("step"))
        current_process().crash("now")

    world.run(main)
    world.settle()
    world.pass_time(0.5)
    assert ran == []
    world.pass_time(5.0)
    assert ran == []
    assert world.timeline.now_s == 5.5


def test_what_is_on_the_wire_survives_the_crash_and_its_reply_reaches_nobody(world: World):
    landed: list[float] = []

    async def request() -> str:
        await asyncio.sleep(5.0)  # virtual time
        landed.append(world.timeline.now_s)
        return "reply"

    async def main() -> None:
        asyncio.get_running_loop().call_later(1.0, current_process().kill, "while waiting")
        await world.spawn(request())

    assert world.run(main) == Ended(crashed_at="while waiting")
    assert landed == []
    world.settle()
    assert landed == [5.0]


def test_the_dead_send_nothing(world: World):
    landed: list[str] = []

    async def service(text: str) -> None:
        landed.append(text)

    async def main() -> None:
        try:
            await world.spawn(service("a request"))
            current_process().crash("before:release")
        finally:
            await world.spawn(service("a release"))

    assert world.run(main).crashed_at == "before:release"
    world.settle()
    assert (landed, world.failures) == (["a request"], [])


def test_what_had_not_started_never_does(world: World):
    started: list[str] = []

    async def inner() -> None:
        started.append("inner")

    async def outer(work: Coroutine[None, None, None]) -> None:
        started.append("outer")
        await work

    async def main() -> None:
        asyncio.get_running_loop().create_task(outer(inner()))
        current_process().crash("now")

    world.run(main)
    assert started == []


def test_an_event_of_the_dead_may_still_be_set_from_outside(world: World):
    events: list[asyncio.Event] = []

    async def main() -> None:
        events.append(asyncio.Event())
        await events[0].wait()

    process = world.start(main)
    world.pass_time(1.0)
    process.kill()
    events[0].set()
    world.pass_time(1.0)
    assert process.ended() == Ended(crashed_at="kill")


def test_the_next_process_goes_on_in_the_same_world(world: World):
    async def main() -> tuple[int, str, str]:
        process = current_process()
        made = world.ids.new("operation")
        if process.incarnation == 1:
            process.crash("first")
        return process.incarnation, made, process.clock.iso()

    assert world.run(main).crashed_at == "first"
    world.pass_time(60.0)
    assert world.run(main).result == (2, "op-a2", "2026-11-27T18:01:00Z")


def test_two_processes_share_the_time_and_one_dies_alone(world: World):
    ticks: list[tuple[str, float]] = []

    async def clock(name: str) -> str:
        for _ in range(3):
            await asyncio.sleep(1.0)  # virtual time
            ticks.append((name, asyncio.get_running_loop().time()))
        return name

    a = world.start(lambda: clock("a"), name="a")
    b = world.start(lambda: clock("b"), name="b")
    world.pass_time(1.5)
    b.kill("pulled the plug")
    world.wait(a, b)
    assert ticks == [("a", 1.0), ("b", 1.0), ("a", 2.0), ("a", 3.0)]
    assert (a.ended(), b.ended()) == (Ended(result="a"), Ended(crashed_at="pulled the plug"))


def test_an_asynchronous_generator_of_the_dead_says_nothing(world: World):
    said: list[str] = []
    kept: list[AsyncIterator[int]] = []

    async def numbers() -> AsyncIterator[int]:
        try:
            yield 1
            yield 2
        finally:
            await asyncio.sleep(0)
            said.append("goodbye")

    async def main() -> None:
        abandoned = numbers()
        kept.append(numbers())
        await anext(abandoned)
        await anext(kept[0])
        async for _ in numbers():
            current_process().crash("inside the loop")

    assert world.run(main).crashed_at == "inside the loop"
    kept.clear()
    gc.collect()
    world.pass_time(1.0)
    assert said == []


def test_contextvars_can_be_reset_on_the_way_out(world: World):
    """The dead end in the context they lived in."""
    var = contextvars.ContextVar("var", default="outside")
    found: list[str] = []

    async def main() -> None:
        token = var.set("inside")
        try:
            await asyncio.Event().wait()
        finally:
            found.append(var.get())
            var.reset(token)
            found.append(var.get())

    process = world.start(main)
    world.pass_time(1.0)
    process.kill()
    assert found == ["inside", "outside"]


def test_a_dead_process_is_not_among_those_that_wait(world: World):
    async def dies() -> None:
        asyncio.get_running_loop().create_task(asyncio.Event().wait())
        current_process().crash("here")

    async def waits() -> None:
        await asyncio.Event().wait()

    world.run(dies)
    with pytest.raises(StuckError) as stuck:
        world.run(waits, name="second")
    assert [line.split(":")[0] for line in stuck.value.waiting] == ["second#2"]


# The end of a process that isn't killed: as `asyncio.run`.


def test_what_is_left_behind_is_cancelled_and_may_still_act(world: World):
    rows: list[str] = []

    async def background() -> None:
        ledger = Ledger(rows)
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(1.0)  # virtual time
            ledger.write("cleaned up")

    async def main() -> str:
        asyncio.get_running_loop().create_task(background())
        await asyncio.sleep(0)
        return "done"

    process = world.start(main)
    world.wait(process)
    assert process.ended() == Ended(result="done")
    assert rows == ["cleaned up"]
    assert world.timeline.now_s == 1.0
    assert not process.alive
    with pytest.raises(SimulatedCrash):
        process.require_alive()
    with pytest.raises(RuntimeError, match="closed"):
        process.loop.call_soon(print)
    late = asyncio.sleep(0)
    with pytest.raises(RuntimeError, match="closed"):
        process.loop.create_task(late)
    late.close()


def test_a_failure_while_the_process_ends_is_complained_of(
    world: World, caplog: pytest.LogCaptureFixture
):
    async def background() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise KeyError

    async def main() -> None:
        asyncio.get_running_loop().create_task(background())
        await asyncio.sleep(0)

    world.run(main)
    (logged,) = caplog.records
    assert "failed while its process ended" in logged.getMessage()
    caplog.clear()


def test_an_error_that_main_has_seen_is_not_complained_of_at_the_end():
    async def fails() -> None:
        raise KeyError

    async def main() -> None:
        with pytest.raises(KeyError):
            await asyncio.get_running_loop().create_task(fails())

    for seed in range(50):
        run(main(), seed=seed)


def test_generators_are_closed_at_the_end():
    said: list[str] = []
    kept: list[AsyncIterator[int]] = []

    async def numbers(name: str) -> AsyncIterator[int]:
        try:
            yield 1
        finally:
            await asyncio.sleep(0)
            said.append(name)

    async def main() -> None:
        for name in ("first", "second"):
            kept.append(numbers(name))
            await anext(kept[-1])

    run(main())
    assert said == ["first", "second"]


def test_what_main_raises_comes_out_of_the_world(world: World):
    async def main() -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        world.run(main)
    with pytest.raises(KeyError, match="mine"):
        world.wait(world.start(main))


def test_how_a_process_ended_is_not_known_while_it_lives(world: World):
    process = world.start(asyncio.Event().wait, name="agent")
    world.pass_time(1.0)
    with pytest.raises(RuntimeError, match="agent#1 is alive"):
        process.ended()


def test_the_living_are_still_complained_of(world: World, caplog: pytest.LogCaptureFixture):
    async def fails() -> None:
        raise KeyError

    async def main() -> None:
        asyncio.get_running_loop().create_task(fails())

    world.run(main)
    gc.collect()
    (logged,) = caplog.records
    assert "exception was never retrieved" in logged.getMessage()
    caplog.clear()


def test_a_world_that_ends_drops_what_is_alive_without_a_word():
    async def main() -> None:
        await asyncio.Event().wait()

    with World() as world:
        process = world.start(main)
        world.spawn(asyncio.sleep(1.0))  # virtual time
        unborn = world.start(main)
    assert not process.alive
    assert not unborn.alive


# The outside.


def test_a_reply_comes_back_to_the_caller_and_so_does_an_error(world: World):
    async def service(number: int) -> int:
        await asyncio.sleep(1.0)  # virtual time
        return 10 // number

    async def main() -> tuple[int, str]:
        half = await world.spawn(service(2))
        try:
            await world.spawn(service(0))
        except ZeroDivisionError as error:
            return half, str(error)
        return half, ""

    half, error = world.run(main).result or (0, "")
    assert half == 5
    assert "by zero" in error
    assert [type(one) for one in world.failures] == [ZeroDivisionError]


def test_a_cancelled_wait_takes_nothing_back(world: World):
    landed: list[str] = []

    async def service() -> None:
        await asyncio.sleep(5.0)  # virtual time
        landed.append("landed")

    async def main() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1.0):
                await world.spawn(service())

    world.run(main)
    assert (world.timeline.now_s, landed) == (1.0, [])
    world.settle()
    assert (world.timeline.now_s, landed) == (5.0, ["landed"])


def test_an_error_that_nobody_waits_for_is_kept_for_the_test(world: World):
    async def service() -> None:
        raise KeyError

    world.spawn(service())
    world.settle()
    assert [type(one) for one in world.failures] == [KeyError]


def test_contextvars_do_not_cross_the_wire(world: World):
    var = contextvars.ContextVar("var", default="nothing")
    var.set("the test's")

    async def service() -> str:
        return var.get()

    async def main() -> tuple[str, str]:
        own = var.get()
        var.set("the process's")
        return own, await world.spawn(service())

    assert world.run(main).result == ("nothing", "nothing")


def test_a_service_that_asserts_fails_the_run(world: World):
    async def service() -> None:
        raise AssertionError("sent before it was recorded")

    async def main() -> None:
        with pytest.raises(AssertionError):
            await world.spawn(service())
        await asyncio.sleep(LONG_S)  # virtual time

    with pytest.raises(AssertionError, match="sent before"):
        world.run(main)


def test_the_outside_belongs_to_no_process(world: World):
    async def main() -> None:
        with pytest.raises(RuntimeError, match="no process"):
            await world.spawn(outside())

    async def outside() -> Process[object]:
        return current_process()

    world.run(main)


def test_a_world_is_not_driven_from_inside(world: World):
    async def main() -> None:
        with pytest.raises(RuntimeError, match="inside an event loop"):
            world.pass_time(1.0)

    world.run(main)


def test_a_starlette_app_answers_an_httpx_client_from_outside_the_process(world: World):
    seen: list[object] = []

    async def book(request: Request) -> JSONResponse:
        await asyncio.sleep(2.0)  # virtual time
        seen.append(await request.json())
        return JSONResponse({"table": "R1"}, status_code=201)

    class Wire(httpx2.AsyncBaseTransport):
        app = httpx2.ASGITransport(Starlette(routes=[Route("/book", book, methods=["POST"])]))

        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            await request.aread()
            return await world.spawn(self.carry(request))

        async def carry(self, request: httpx2.Request) -> httpx2.Response:
            answer = await self.app.handle_async_request(request)
            return httpx2.Response(answer.status_code, content=await answer.aread())

    async def main(die_after_s: float) -> object:
        asyncio.get_running_loop().call_later(die_after_s, current_process().kill)
        async with httpx2.AsyncClient(transport=Wire(), base_url="http://restaurant") as client:
            answer = await client.post("/book", json={"party": 4})
            return answer.status_code, answer.json()

    assert world.run(lambda: main(LONG_S)).result == (201, {"table": "R1"})
    assert world.run(lambda: main(1.0)).crashed_at == "kill"
    assert len(seen) == 1
    world.settle()
    assert seen == [{"party": 4}] * 2
