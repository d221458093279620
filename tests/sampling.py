"""A sample of many cases for `make test`; the others are left to `make test-services`."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest


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
