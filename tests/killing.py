"""Agent processes that are killed by SIGKILL, for the tests that look at the world afterwards."""

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
from click.testing import CliRunner

from landed.cli.main import landed
from landed.core.history import Item
from landed.core.operation import Operation
from landed.stores.sqlite import open_sqlite
from landed.testing.faults import COMMANDS, parse_point
from landed.testing.scenario import Scenario, read_session
from landed.testing.worlds.faults import Fault
from landed.testing.worlds.serve import start

AGENT_MAX_S = 60.0
# The receipt of a text comes late enough for the user to change their mind before it: a process
# that goes on after a kill must come back to where they speak while the turn still runs.
RECEIPT_LATE = (Fault(path="/texts", kind="delay_reply", nth=None, seconds=2.0),)


def points_of(scenario: str, *kills: str) -> list[str]:
    """Return the points of the process that follows the killed ones, in simulation."""
    asked = ["demo", scenario, "--points", *(f"--kill={kill}" for kill in kills)]
    listed = CliRunner().invoke(landed, asked, catch_exceptions=False)
    assert listed.exit_code == 0
    return listed.output.split()


def boundaries(points: Iterable[str]) -> list[str]:
    """Return the points that differ in what is durable, or in what is out.

    The points before one commit are passed with nothing happening between them, and those after it
    likewise: the first stands for all of them.
    """
    kept: list[str] = []
    last = ""
    for text in points:
        point = parse_point(text)
        side = "" if point.name in COMMANDS else point.side
        if not side or side != last:
            kept.append(text)
        last = side
    return kept


@dataclass(eq=False)
class Run:
    """One user, served by one agent process after the other. `urls` are those of the services.

    With `hears` the processes read the services' logs, for scripts that wait for what they say.
    """

    scenario: str
    store: Path
    session: str
    urls: Mapping[str, str]
    hears: bool = False

    def arguments(self) -> Sequence[str]:
        """Return what Python is started with."""
        given = {"store": self.store, "session": self.session, "scenario": self.scenario}
        named = (f"--{name}={value}" for name, value in {**given, **self.urls}.items())
        return ["-m", "landed.testing.agent", *named, *(["--follow"] if self.hears else [])]

    def agent(self, kill: str = "") -> subprocess.CompletedProcess[str]:
        """Run a process until it dies at the point, or to its end."""
        command = [sys.executable, *self.arguments(), *(["--kill", kill] if kill else [])]
        return subprocess.run(command, capture_output=True, text=True, timeout=AGENT_MAX_S)

    def kill_at(self, point: str) -> bool:
        """Whether the process came to the point, and died there; else it got to the end."""
        ended = self.agent(point)
        assert ended.returncode in (-signal.SIGKILL, 0), (point, ended.stderr)
        return ended.returncode == -signal.SIGKILL

    def finish(self) -> dict[str, Any]:
        """Run a process to its end, and return what it reports."""
        ended = self.agent()
        assert ended.returncode == 0, ended.stderr
        report: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
        return report

    def listed(self, service: str, path: str) -> list[dict[str, Any]]:
        """Return the list that a service answers with."""
        answer = httpx2.get(f"{self.urls[service]}/{path}", timeout=AGENT_MAX_S)
        found: list[dict[str, Any]] = answer.raise_for_status().json()[path]
        return found

    def records(self) -> tuple[tuple[Item, ...], list[Operation]]:
        """Return what the model is shown and the operations, as the file has them."""
        return asyncio.run(self._read())

    async def _read(self) -> tuple[tuple[Item, ...], list[Operation]]:
        store = open_sqlite(str(self.store))
        try:
            return await read_session(store, self.session)
        finally:
            await store.close()


@contextmanager
def fresh_world(scenario: Scenario, place: Path) -> Iterator[Run]:
    """Serve restaurant and texts of a scenario to one run, each as a process; `place` is made."""
    place.mkdir()
    with ExitStack() as stack:
        booked = start(
            "restaurant",
            db=str(place / "restaurant.db"),
            faults=scenario.faults,
            settings=scenario.restaurant,
        )
        stack.enter_context(booked)
        texts = start("texts", db=str(place / "texts.db"), faults=RECEIPT_LATE)
        stack.enter_context(texts)
        yield Run(
            scenario=scenario.name,
            store=place / "agent.db",
            session=place.name,
            urls={"restaurant": booked.url, "texts": texts.url},
            hears=True,
        )
