"""What every test run shares: the plugins, Hypothesis without chance or stopwatch, a Postgres."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from tests.stores.postgres.embedded import Server

pytest_plugins = ["pytester", "tests.coverage_ids"]

# Derandomised: a red run stays red until somebody mends it. `--hypothesis-profile=deep` looks
# further, with another seed each time.
settings.register_profile("house", deadline=None, derandomize=True, database=None)
settings.register_profile("deep", deadline=None, max_examples=5_000)
settings.load_profile("house")


@pytest.fixture(scope="session")
def server() -> "Iterator[Server]":
    """A Postgres server, started for the first test that asks for it."""
    from tests.stores.postgres.embedded import serving

    with serving() as running:
        yield running


@pytest.fixture
def url(server: "Server") -> Iterator[str]:
    """The URL of an empty database on it."""
    place = server.database()
    yield place
    server.give_back(place)
