"""What the tests of the simulation share: a world, and the demand that nothing is complained of."""

import gc
import logging
from collections.abc import Iterator

import pytest

from landed.testing.sim import World


@pytest.fixture
def quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Fail a test that leaves asyncio something to log when its objects are collected.

    Warnings are errors in this suite, that of a coroutine that was never awaited included.
    """
    yield
    gc.collect()
    records = [*caplog.get_records("call"), *caplog.records]
    assert [one.getMessage() for one in records if one.levelno >= logging.WARNING] == []


@pytest.fixture
def world() -> Iterator[World]:
    """A world without a seed, closed at the end."""
    with World() as one:
        yield one


@pytest.fixture
def anyio_backend() -> str:
    """The worlds run on asyncio."""
    return "asyncio"
