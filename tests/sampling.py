"""A sample of many cases for `make test`; the others are left to `make test-services`.

Of what grows with the square of the cases, `make test-services` takes a part as well; `make kills`
takes all.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import pytest

T = TypeVar("T")
STRIDE = int(os.environ.get("LANDED_KILL_STRIDE", "5"))


def part_of(cases: Sequence[T], start: str) -> Sequence[T]:
    """Return one case in `STRIDE`, beginning with another for another `start`."""
    return cases[sum(start.encode()) % STRIDE :: STRIDE] or cases[:1]


def sampled(cases: Iterable[Any], *, every: int) -> list[Any]:
    """Return all cases, of which only one in `every` runs without services."""
    return [
        case if number % every == 0 else pytest.param(case, marks=pytest.mark.services)
        for number, case in enumerate(cases)
    ]


def except_for(cases: Iterable[Any], is_long: Callable[[Any], bool]) -> list[Any]:
    """Return all cases, of which those that take long run with services only."""
    return [
        pytest.param(case, marks=pytest.mark.services) if is_long(case) else case for case in cases
    ]
