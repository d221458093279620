"""Wherever a run is closed, cancelled or stopped, the record is whole and the next prompt is taken.

Each test cuts the same run off at every event, or at every turn of the event loop that it takes:
every place where it waits.
"""

import asyncio
import itertools
import time
from contextlib import aclosing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from landed.agent.stop import stop_run
from landed.testing.shapes import shape
from landed.testing.ticks import Background, ticks
from tests.agent.building import Building
from tests.agent.simulated import simulated

WHOLE = "U A[c1,c2,c3] R(c1) R(c2) R(c3) U A[c4] R(c4) A"


@pytest.fixture
def building(tmp_path):
    """Make a building anew, each with a log of its own."""
    numbers = itertools.count()

    def make() -> Building:
        folder = tmp_path / str(next(numbers))
        folder.mkdir()
        return Building(folder)

    return make


def until_over(program) -> int:
    """Run `program(n)` for n = 0, 1, … until it says that the run was over by then; return n."""
    return next(n for n in itertools.count() if simulated(program(n)))


@pytest.mark.req("S2-64", "S2-44", "S2-32", "S2-74")
def test_closed_after_every_event(building) -> None:
    async def program(taken: int) -> bool:
        built = building()
        async with aclosing(built.harness.prompt("Build.")) as run:
            events = [await anext(run, None) for _ in range(taken)]
        await built.is_whole()
        return None in events

    assert until_over(program) == 26


@pytest.mark.fault("X12")
@pytest.mark.req("S2-32", "S2-61", "S2-65")
def test_cancelled_at_every_await(building) -> None:
    shapes = set()

    async def program(turns: int) -> bool:
        built = building()
        background = Background(built.harness.prompt("Build."))
        await ticks(turns)
        over = background.running.done()
        background.running.cancel()
        await asyncio.wait({background.running})
        await built.harness.aclose()
        shapes.add(shape(built.harness.messages))
        await built.is_whole()
        return over

    assert until_over(program) > 20
    assert {"", "U", "U A[c1,c2,c3] R(c1)", "U A[c1,c2,c3] R(c1) R(c2) R(c3) U", WHOLE} <= shapes


@pytest.mark.fault("X13")
def test_cancelled_again_while_it_is_ending(building) -> None:
    async def program(turns: int, later: int) -> bool:
        built = building()
        background = Background(built.harness.prompt("Build."))
        await ticks(turns)
        over = background.running.done()
        background.running.cancel()
        await ticks(later)
        background.running.cancel()
        await asyncio.wait({background.running})
        await built.harness.aclose()
        await ticks(5)
        await built.is_whole()
        return over

    for later in range(5):
        assert until_over(lambda turns, later=later: program(turns, later)) > 20


@pytest.mark.req("S2-47", "S2-54", "S2-55")
def test_asked_to_stop_at_every_turn_of_the_loop(building) -> None:
    endings = set()

    async def program(turns: int) -> bool:
        built = building()
        run = built.harness.prompt("Build.")
        background = Background(run)
        await ticks(turns)
        over = background.running.done()
        built.harness.cancel()
        await background.running
        endings.add(shape(built.harness.messages).split()[-1])
        assert len([e for e in background.events if "start" in e["type"]]) == len(
            [e for e in background.events if e["type"].endswith("end") and "mess" not in e["type"]]
        )
        await built.is_whole()
        return over

    assert until_over(program) > 20
    assert endings == {"A(aborted)", "A"}


@pytest.mark.req("S2-58")
@pytest.mark.parametrize("grace", [0, 1, 50])
def test_stopped_at_every_turn_of_the_loop(building, grace) -> None:
    endings = set()

    async def program(turns: int) -> bool:
        built = building()
        background = Background(built.harness.prompt("Build."))
        await ticks(turns)
        over = background.running.done()
        ending = await stop_run(built.harness, background.running, grace)
        endings.add(ending)
        assert background.running.done()
        if ending == "clean":
            assert shape(built.harness.messages).split()[-1] in ("A(aborted)", "A")
        await built.is_whole()
        return over

    assert until_over(program) > 20
    assert endings == ({"clean"} if grace == 50 else {"clean", "hard"})


@pytest.mark.req("S2-107")
def test_no_real_clock_is_looked_at(building, monkeypatch) -> None:
    for name in ("time", "monotonic", "perf_counter", "time_ns", "monotonic_ns"):
        monkeypatch.delattr(time, name)

    async def program() -> str:
        built = building()
        background = Background(built.harness.prompt("Build."))
        await ticks(12)
        ending = await stop_run(built.harness, background.running, grace_s=60.0)
        await built.is_whole()
        return ending

    ending = simulated(program())
    monkeypatch.undo()
    assert ending == "clean"


CUTS = st.lists(
    st.tuples(st.integers(0, 12), st.sampled_from(["cancel", "flag", "steer", "follow_up"])),
    max_size=6,
)


@settings(max_examples=40)
@given(CUTS)
def test_any_mixture_of_interruptions(tmp_path_factory, cuts) -> None:
    async def program() -> None:
        built = Building(tmp_path_factory.mktemp("cut"))
        background = Background(built.harness.prompt("Build."))
        for turns, cut in cuts:
            await ticks(turns)
            if cut == "cancel":
                background.running.cancel()
            elif cut == "flag":
                built.harness.cancel(by="owner")
            else:
                getattr(built.harness, cut)("And this.")
        await asyncio.wait({background.running})
        await built.harness.aclose()
        await ticks(5)
        await built.is_whole()
        queued = [cut for _, cut in cuts if cut in ("steer", "follow_up")]
        assert built.words().count("And this.") <= len(queued)

    simulated(program())
