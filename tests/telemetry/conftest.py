"""What the tests of telemetry share: a watched rig in a world of its own."""

from collections.abc import Iterator

import pytest

from landed.testing.sim import World
from tests.telemetry.watched import Watched


@pytest.fixture
def rig() -> Iterator[Watched]:
    """A rig with telemetry whose world is closed at the end."""
    with World() as world:
        yield Watched(world)
