"""What every test run shares: the plugins, Hypothesis without chance or stopwatch, a Postgres."""

import gc
from collections.abc import Iterator
from pathlib import Path
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


TESTS = Path(__file__).parent
FAR_AND_WIDE = {"test_explorer.py", "test_explored_minds.py"}
# Beside the tests of core: what reaches the parts of it that need a runtime to be reached.
COVERING = {
    *("test_approvals.py", "test_approvals_refused.py", "test_asks.py", "test_busy.py"),
    *("test_erasing.py", "test_lapsing.py", "test_plan_tokens.py", "test_plans.py"),
    *("test_prepare.py", "test_sends.py", "test_spans.py"),
}


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


def pytest_collection_finish() -> None:
    """Keep what was collected out of each later round for garbage: it stays to the end anyway."""
    gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Measure the coverage of core where core is tested: tracing everything doubles all else."""
    for item in items:
        room, name = item.path.relative_to(TESTS).parts[0], item.path.name
        of_core = room == "core" and name not in FAR_AND_WIDE
        if not (of_core or (room in ("runtime", "telemetry") and name in COVERING)):
            item.add_marker(pytest.mark.no_cover)
