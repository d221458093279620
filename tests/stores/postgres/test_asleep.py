"""Real processes, SIGSTOP past the lease and SIGCONT, on both stores: one effect, counted there."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from landed.testing.worlds import serve
from landed.testing.worlds.cluster import Cluster
from landed.testing.worlds.payments import Payments

pytestmark = [pytest.mark.services, pytest.mark.fault("X18"), pytest.mark.timeout(180)]

SLEEPER = Path(__file__).parents[1] / "sleeper.py"
WAIT_S = 60.0


@pytest.fixture(params=["postgres", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/agent.db"
    url: str = request.getfixturevalue("url")
    return url


@contextmanager
def process(*arguments: str) -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, str(SLEEPER), *arguments]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as started:
        try:
            yield started
        finally:
            started.kill()


def wait_until_stopped(pid: int) -> None:
    """Wait until a child has stopped itself; the time-out of the test bounds that."""
    _, status = os.waitpid(pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status), f"it ended instead, before it came to send: {status}"


def said(started: "subprocess.Popen[str]") -> dict[str, str]:
    assert started.stdout is not None
    line = started.stdout.readline()
    return json.loads(line) if line else {}


def slept_through(store: str, world: str, url: str) -> tuple[list[dict[str, Any]], int]:
    """Have one process sleep past its lease while another takes over; return what it said then."""
    with process(store, world, url, "sleep") as sleeper:
        wait_until_stopped(sleeper.pid)
        with process(store, world, url, "work") as successor:
            assert said(successor) == {"value": "Confirmed"}
            sleeper.send_signal(signal.SIGCONT)
            rest, _ = sleeper.communicate(timeout=WAIT_S)
            successor.communicate("\n", timeout=WAIT_S)
    return [json.loads(line) for line in rest.splitlines()], sleeper.returncode


@pytest.mark.req("S4-25", "S4-26", "S4-27")
@pytest.mark.field("F1", "F4")
def test_what_leaves_late_is_refused_by_a_service_that_checks_epochs(
    store: str, tmp_path: Path
) -> None:
    with serve.start("cluster", db=f"{tmp_path}/c.db", settings=Cluster(checks_epochs=True)) as far:
        spec = {"release": "v1", "percent": 100}
        httpx2.post(f"{far.url}/objects", json={"name": "web", "spec": spec}).raise_for_status()
        heard, code = slept_through(store, "cluster", far.url)
        log = [one["text"] for one in httpx2.get(f"{far.url}/log").json()["log"]]
        history = httpx2.get(f"{far.url}/objects/web/history").json()["versions"]

    assert [one["spec"]["release"] for one in history] == ["v1", "v2", "v1"]
    assert "refused a late update" in log[-1]
    assert heard[0] == {"answered": 412}
    assert code == 3
    assert "another worker goes on with what it held" in heard[-1]["lost"]


@pytest.mark.req("S4-25", "S4-26")
@pytest.mark.field("F1")
def test_what_leaves_late_is_the_same_key_where_the_service_remembers_keys(
    store: str, tmp_path: Path
) -> None:
    with serve.start("payments", db=f"{tmp_path}/p.db", settings=Payments()) as far:
        heard, code = slept_through(store, "payments", far.url)
        refunds = httpx2.get(f"{far.url}/refunds?since=0").json()["refunds"]
        keys = [one["key"] for one in httpx2.get(f"{far.url}/log").json()["log"]]

    assert [one["cents"] for one in refunds] == [4000]
    assert heard[0]["answered"] in (200, 201), "it left, and was answered as the first one was"
    assert len({key for key in keys if key}) == 1
    assert code == 3
    assert "lost" in heard[-1]
