"""What the tests of the runtime share: a rig in a world of its own, and the demand for quiet.

The files named in `ON_BOTH_STORES` run once more on Postgres, with `make test-services`.
"""

import gc
import logging
from collections.abc import Iterator

import pytest

from landed.testing.sim import World
from tests.runtime import rig as rigs
from tests.runtime.rig import Rig

ON_BOTH_STORES = frozenset(
    {
        *("test_perform", "test_trouble", "test_same_ask"),
        *("test_workers", "test_one_name", "test_reconciler", "test_cases"),
        *("test_plans", "test_plan_once"),
    }
)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test of those files on both stores."""
    if metafunc.definition.path.stem in ON_BOTH_STORES:
        postgres = pytest.param("postgres", marks=[pytest.mark.services, pytest.mark.req("K29")])
        metafunc.parametrize("on_store", ["sqlite", postgres], indirect=True)


@pytest.fixture(autouse=True)
def on_store(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Have every rig of a test stand on the store that it is told; SQLite in memory unless so."""
    name = getattr(request, "param", "sqlite")
    if name == "sqlite":
        yield name
        return
    from tests.runtime.on_postgres import Bases

    with Bases(request.getfixturevalue("server")) as bases:
        monkeypatch.setattr(rigs, "new_base", bases.new)
        yield name


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
