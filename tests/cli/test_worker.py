"""`landed worker`: it carries out what others decided, and drains when it is told to stop."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from landed.cli.opened import app_of
from landed.core.onlooker import Onlooker
from landed.core.plan import Wanted
from tests.cli.shop import DRAFT, Shop, done, shop, world

__all__ = ["shop"]

HOLD = (Wanted(tool="hold", arguments={"name": "x"}),)
WAIT_S = 30.0


@contextmanager
def working(shop: Shop, **environment: str) -> "Iterator[subprocess.Popen[str]]":
    """A worker in a process of its own, once it says that it works."""
    command = (Path(sys.executable).with_name("landed"), "worker", "--store", shop.url)
    process = subprocess.Popen(
        (*command, "--app", "tests.cli.shop"),
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"} | environment,
    )
    assert process.stdout is not None
    try:
        assert " works; it took over " in process.stdout.readline()
        yield process
    finally:
        process.kill()
        process.communicate()


def drained(process: "subprocess.Popen[str]", *, wait_s: float = WAIT_S) -> list[str]:
    said, _ = process.communicate(timeout=wait_s)
    assert process.returncode == 0
    return said.splitlines()


@pytest.fixture
def gate(shop: Shop) -> Path:
    """A pipe that a held step reads from: to open it is to wait until the step is under way."""
    path = world().with_suffix(".gate")
    os.mkfifo(path)
    return path


def test_an_application_offers_its_telemetry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = "from landed.core.onlooker import Onlooker\ntelemetry = Onlooker()\ntools = []\n"
    (tmp_path / "a_watched_app.py").write_text(watched)
    monkeypatch.syspath_prepend(tmp_path)

    offered = app_of("a_watched_app")

    assert isinstance(offered.telemetry, Onlooker)
    assert app_of("").telemetry is None


def test_without_an_application_there_is_nothing_to_work_with(shop: Shop) -> None:
    said = shop.run("worker")
    assert said.exit_code == 2
    assert "--app" in said.output


@pytest.mark.req("S1-43")
def test_sigterm_lets_the_step_and_its_record_end(shop: Shop, gate: Path) -> None:
    plan = shop.propose(HOLD).plan
    with working(shop) as process:
        # Decided while it works, by a command that has no tools: taken up at its next beat.
        assert shop.run("plan", "approve", plan, "--as", "ana").exit_code == 0
        with gate.open("w") as pipe:
            process.send_signal(signal.SIGTERM)
            assert process.stdout is not None
            assert process.stdout.readline() == "draining, for at most 30 s\n"
            pipe.write("go on")
        assert drained(process) == ["drained"]
    assert done() == ["began x", "held x"]
    assert shop.read("plan", "show", plan)["state"] == "done"


@pytest.mark.req("S1-43")
def test_a_step_that_takes_longer_than_the_drain_is_in_doubt_and_not_lost(
    shop: Shop, gate: Path
) -> None:
    plan = shop.propose(HOLD).plan
    shop.run("plan", "approve", plan, "--as", "ana")
    with working(shop, LANDED_SHOP_DRAIN_S="0.2") as process, gate.open("w"):
        process.send_signal(signal.SIGTERM)
        assert drained(process) == ["draining, for at most 0.2 s", "drained"]
    assert shop.read("plan", "show", plan)["state"] == "in_doubt"
    with working(shop) as process:  # The next worker does not send it again.
        process.send_signal(signal.SIGTERM)
        drained(process)
    assert done() == ["began x"]


def test_a_store_that_is_not_there_is_made(shop: Shop) -> None:
    with working(shop) as process:
        process.send_signal(signal.SIGINT)
        drained(process)
    shop.propose(DRAFT)
    assert done() == ["draft 500"]
