"""What the tests of the runtime share: a rig in a world of its own, and the demand for quiet."""

import gc
import logging
from collections.abc import Iterator

import pytest

from landed.testing.sim import World
from tests.runtime.rig import Rig


@pytest.fixture
def rig() -> Iterator[Rig]:
    """A rig whose world is closed at the end."""
    with World() as world:
        yield Rig(world)


@pytest.fixture
def quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Fail a test that leaves anything to be complained of when its objects are collected."""
    yield
    gc.collect()
    complaints = [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING]
    assert complaints == []
