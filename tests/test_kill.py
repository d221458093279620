"""A real agent process is sent SIGKILL at every point of `reply-lost`, and the next one ends well.

The restaurant is a process of its own and loses the reply to every booking. One restaurant serves
all runs of a module: each run has its own store file and its own session, so that its keys, and by
them its tables, can be told apart. The points come from `landed demo reply-lost --points`.
"""

import itertools
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from landed.core.operation import State
from landed.testing.scenarios import BOOK, BY_NAME, RESERVE
from landed.testing.worlds.faults import Fault
from landed.testing.worlds.serve import ServedWorld, start
from tests.killing import Run, points_of
from tests.sampling import part_of, sampled

COMMITTED_TRIES_MAX = 2_000
LOST = BY_NAME["reply-lost"]
POINTS = points_of(LOST.name)
SENT_AT = "after:send:reserve_table"

# While one process recovers, its script makes the call again, and that commit is refused: the ask
# has its operation already. In real time the call comes before the answer is found (`blocked`),
# after it (`sent`), or in the same lap: then `found` is refused with it, and tried a second time.
# Of 32 real recoveries each came up several times; all other points were passed every time.
RACES = {
    "before:sent:reserve_table",
    "before:blocked:reserve_table",
    "before:found:reserve_table#2",
}


@dataclass(eq=False)
class Booking(Run):
    """The run of a user who books a table, at a restaurant that has other users too."""

    def is_killed_twice(self, first: str, second: str) -> None:
        assert self.kill_at(first)
        assert self.kill_at(second) or second in RACES
        self.ends_well()

    def ends_well(self) -> dict[str, Any]:
        """Run a last process; there is one table of this run, and the message names it."""
        report = self.finish()
        (table,) = self.tables()
        assert table["text"].endswith("Fri 19:00 x4")
        assert report["message"] == f"Booked {table['id']} (Fri 19:00 for 4)."
        assert set(report["operations"].values()) == {State.CONFIRMED}
        assert table["key"] == f"{self.session}:{next(iter(report['operations']))}"
        return report

    def tables(self) -> list[dict[str, Any]]:
        held = self.listed("restaurant", "reservations")
        return [one for one in held if one["key"].startswith(f"{self.session}:")]


def booking(restaurant: ServedWorld, store: Path, session: str) -> Booking:
    urls = {"restaurant": restaurant.url}
    return Booking(scenario=LOST.name, store=store, session=session, urls=urls)


@pytest.fixture(scope="module")
def restaurant(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedWorld]:
    db = tmp_path_factory.mktemp("restaurant") / "restaurant.db"
    lost = (Fault(path=RESERVE, kind="lose_reply", nth=None),)
    with start("restaurant", db=str(db), faults=lost, settings=LOST.restaurant) as served:
        yield served


@pytest.fixture
def runs(restaurant: ServedWorld, tmp_path: Path) -> Iterator[Booking]:
    """Give one run after the other, each with a session that no other has."""
    names = (f"{tmp_path.name}-{number}" for number in itertools.count(1))
    return (booking(restaurant, tmp_path / f"{name}.db", name) for name in names)


def known_at(point: str) -> tuple[bool, State | None]:
    """Return whether the input was durable at a point, and in which state the operation was."""
    passed = set(POINTS[: POINTS.index(point) + 1])
    state = None
    for after, then in (
        ("after:made:reserve_table", State.SENT),
        ("after:answer_lost:reserve_table", State.UNKNOWN),
        ("after:found:reserve_table", State.CONFIRMED),
    ):
        state = then if after in passed else state
    return "after:received" in passed, state


@pytest.mark.req("S0-18", "S0-52", "S0-68", "S4-05", "S4-40", "S0-43")
@pytest.mark.field("B9", "B12")
@pytest.mark.fault("X01", "X02", "X04", "X09")
@pytest.mark.parametrize("point", sampled(POINTS, every=16))
def test_killed_anywhere_it_leaves_the_truth_and_the_next_one_ends_well(
    point: str, runs: Iterator[Booking]
) -> None:
    run = next(runs)
    was_heard, state = known_at(point)

    assert run.kill_at(point)
    items, operations = run.records()
    report = run.ends_well()

    assert [item.text for item in items if item.role == "user"] == [BOOK] * was_heard
    assert [operation.state for operation in operations] == ([state] if state else [])
    for operation in operations:
        assert operation.key == f"{run.session}:{operation.id}"
        assert [*report["operations"]] == [operation.id]


@pytest.mark.req("S0-56")
@pytest.mark.fault("X07")
@pytest.mark.parametrize("second", sampled(points_of(LOST.name, SENT_AT)[::6], every=4))
def test_killed_again_while_it_recovers_it_still_ends_well(
    second: str, runs: Iterator[Booking]
) -> None:
    """A sample; `make test-services` takes more, after every first one, and `make kills` all."""
    run = next(runs)

    run.is_killed_twice(SENT_AT, second)


@pytest.mark.services
@pytest.mark.timeout(900)
@pytest.mark.fault("X07")
@pytest.mark.parametrize("first", POINTS)
def test_killed_twice_anywhere_it_still_ends_well(first: str, runs: Iterator[Booking]) -> None:
    with ThreadPoolExecutor(max_workers=2) as both:
        seconds = part_of(points_of(LOST.name, first), first)
        over = both.map(Booking.is_killed_twice, runs, [first] * len(seconds), seconds)

        assert len(list(over)) == len(seconds) > 0


def test_the_real_process_passes_the_points_of_the_simulation(runs: Iterator[Booking]) -> None:
    assert next(runs).ends_well()["points"] == POINTS


@pytest.mark.req("S0-18")
@pytest.mark.fault("X03")
def test_killed_from_outside_while_the_answer_is_awaited(tmp_path: Path) -> None:
    hang = (Fault(path=RESERVE, kind="lose_reply", nth=None, hang=True),)
    db = str(tmp_path / "restaurant.db")
    with start("restaurant", db=db, faults=hang, settings=LOST.restaurant) as served:
        run = booking(served, tmp_path / "agent.db", "outside")
        with subprocess.Popen([sys.executable, *run.arguments()]) as agent:
            _until_committed(served)
            agent.kill()
        _, (operation,) = run.records()

        assert agent.returncode == -signal.SIGKILL
        assert operation.state is State.SENT
        run.ends_well()


def _until_committed(served: ServedWorld) -> None:
    with httpx2.Client(base_url=served.url) as desk:
        for _ in range(COMMITTED_TRIES_MAX):
            if any(one["kind"] == "committed" for one in desk.get("/log").json()["log"]):
                return
    raise AssertionError("the restaurant was never asked for a table")
