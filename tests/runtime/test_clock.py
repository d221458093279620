"""The clock of a process follows the machine's forward, and never back."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from landed.runtime.clock import WallClock

DAY_S = 86_400.0


class Machine:
    """What a machine shows, and how much time has passed."""

    def __init__(self) -> None:
        self.wall, self.passed = 1_800_000_000.0, 500.0

    def go(self, seconds: float) -> None:
        self.wall += seconds
        self.passed += seconds


@pytest.fixture
def machine() -> Machine:
    return Machine()


def clock_of(machine: Machine) -> WallClock:
    return WallClock(lambda: machine.wall, lambda: machine.passed)


def test_it_shows_what_the_machine_shows(machine: Machine) -> None:
    clock = clock_of(machine)
    for _ in range(3):
        assert clock.now() == machine.wall
        machine.go(10.0)
    assert abs(WallClock().now() - time.time()) < 5.0


@pytest.mark.fault("X15")
@pytest.mark.parametrize("back_s", [DAY_S, 3_600.0, 1.0])
def test_set_back_it_goes_on_by_the_time_that_has_passed(machine: Machine, back_s: float) -> None:
    clock = clock_of(machine)
    before = clock.now()
    machine.go(100.0)
    machine.wall -= back_s
    assert clock.now() == before + 100.0
    machine.go(50.0)
    assert clock.now() == before + 150.0


@pytest.mark.fault("X16")
def test_set_forward_it_follows_and_what_is_bounded_ends_early(machine: Machine) -> None:
    clock = clock_of(machine)
    before = clock.now()
    machine.wall += DAY_S
    assert clock.now() == before + DAY_S


@pytest.mark.fault("X15", "X16")
@given(st.lists(st.tuples(st.floats(0, 1e5), st.floats(-1e6, 1e6)), max_size=20))
def test_however_it_jumps_no_bound_becomes_longer(steps: list[tuple[float, float]]) -> None:
    machine = Machine()
    clock = clock_of(machine)
    shown, passed = clock.now(), machine.passed
    for goes_s, jumps_s in steps:
        machine.go(goes_s)
        machine.wall += jumps_s
        # In as much time as has passed, at least as much is seen to pass.
        assert clock.now() - shown >= machine.passed - passed - 1e-3
        shown, passed = clock.now(), machine.passed
