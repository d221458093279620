"""Real workers that are killed, paused and cut off: all comes true once, and is said to have."""

from collections.abc import Sequence

import pytest

from landed.testing.chaos.auditor import Wrong
from landed.testing.chaos.places import POSTGRES
from landed.testing.chaos.report import Report
from landed.testing.chaos.run import Chaos, run

pytestmark = [pytest.mark.services, pytest.mark.timeout(1500)]


def came_through(chaos: Chaos, *acts: str) -> Report:
    """Run it; everything is resolved and nothing is wrong, though this was done to it."""
    report = run(chaos)
    told = "\n".join(report.lines())
    assert report.is_clean, told
    assert sum(report.operations.values()) >= 0.8 * chaos.operations, told
    assert set(acts) <= set(report.did), told
    assert report.takeovers, told
    return report


@pytest.mark.req("S4-47")
@pytest.mark.fault("X03", "X06")
def test_on_a_file_three_workers_are_killed_every_second_and_all_comes_true_once() -> None:
    came_through(Chaos(operations=1_000, lanes=24, seconds=120, seed=11), "kill", "pause")


@pytest.mark.req("S4-47", "S4-30")
@pytest.mark.fault("X18", "X30", "X76")
def test_on_postgres_ten_thousand_operations_survive_kills_pauses_and_restarts() -> None:
    """Counted from the services' own ledgers: no double effect, none lost, no release forgotten."""
    report = came_through(
        Chaos(store=POSTGRES, operations=10_000, lanes=64, every_s=3, seconds=420, seed=12),
        "kill",
        "pause",
    )
    assert {"restart immediate", "restart fast"} & set(report.did)
    # After an outage nothing comes in floods: what is sent again is a small part of what is sent.
    assert report.resends <= 0.1 * sum(report.operations.values())


WRONG: Sequence[tuple[str, set[Wrong]]] = [
    ("key-per-attempt", {Wrong.UNRECORDED}),
    ("timeout-is-no", {Wrong.FALSE_NO}),
    ("releases-forgotten", {Wrong.NOT_RELEASED}),
]


@pytest.mark.parametrize(("design", "wrong"), WRONG, ids=[name for name, _ in WRONG])
def test_a_wrong_design_does_not_come_through(design: str, wrong: set[Wrong]) -> None:
    """Nothing is killed here: that the weather is bad is enough to tell them from ours."""
    told = run(Chaos(operations=150, every_s=0, share=0.3, calm_s=20, seed=13, design=design))
    assert wrong <= {complaint.wrong for complaint in told.complaints}, list(told.lines())
