"""`landed worker` drains as it promises, with its own 30 s, on Postgres and on SQLite."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from landed.core.plan import Wanted
from tests.cli.shop import Shop, done, world
from tests.cli.test_worker import drained, working

pytestmark = [pytest.mark.services, pytest.mark.req("S1-43"), pytest.mark.timeout(180)]

NAMES = ("x", "y", "z")
STEP_S = 5.0
DRAINING = ["draining, for at most 30 s", "drained"]


@pytest.fixture(params=["postgres", "sqlite"])
def shop(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    monkeypatch.setenv("LANDED_SHOP", str(tmp_path / "world"))
    for name in NAMES:
        os.mkfifo(gate(name))
    place = request.getfixturevalue("url") if request.param == "postgres" else ""
    return Shop(directory=tmp_path, place=place)


def held(shop: Shop) -> list[str]:
    """Approve a plan of one step in each of several sessions; each step waits at the gate."""
    wanted = [(Wanted(tool="hold", arguments={"name": name}),) for name in NAMES]
    # All before the first yes: whoever opens the application carries out what was agreed to.
    plans = [shop.propose(calls, session=str(calls[0].arguments["name"])).plan for calls in wanted]
    for plan in plans:
        assert shop.run("plan", "approve", plan, "--as", "ana").exit_code == 0
    return plans


@contextmanager
def all_begun() -> Iterator[None]:
    """Hold every step at its gate; to open one is to wait until its step is under way."""
    with ExitStack() as gates:
        for name in NAMES:
            gates.enter_context(gate(name).open("w"))
        yield


def gate(name: str) -> Path:
    return world().with_suffix(f".{name}.gate")


def test_steps_of_five_seconds_end_and_are_recorded(shop: Shop) -> None:
    plans = held(shop)
    with working(shop) as process:
        with all_begun():
            process.send_signal(signal.SIGTERM)
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(STEP_S)
        assert drained(process) == DRAINING
    assert sorted(done()) == sorted(f"{did} {name}" for did in ("began", "held") for name in NAMES)
    assert [shop.read("plan", "show", plan)["state"] for plan in plans] == ["done"] * len(NAMES)


def test_steps_of_a_minute_are_in_doubt_after_thirty_seconds_and_not_lost(shop: Shop) -> None:
    plans = held(shop)
    with working(shop) as process, all_begun():
        process.send_signal(signal.SIGTERM)
        assert drained(process, wait_s=100.0) == DRAINING
    states = [shop.read("plan", "show", plan)["state"] for plan in plans]
    assert states == ["in_doubt"] * len(NAMES)
    with working(shop) as process:  # The next worker has them at once, and sends none again.
        process.send_signal(signal.SIGTERM)
        drained(process)
    assert sorted(done()) == [f"began {name}" for name in NAMES]
