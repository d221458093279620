"""The main job with nothing simulated away: processes, HTTP, SQLite files and a real SIGKILL.

The restaurant and the agent are processes of their own. The restaurant books the table and loses
its reply; the agent is killed before it could write down that no answer came. A second agent
process opens the same file, finds out and answers the user. What ends the story is the restaurant's
own ledger, fetched over HTTP.
"""

import asyncio
import json
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from landed.core.history import Item
from landed.core.operation import Operation, State
from landed.stores.sqlite import open_sqlite
from landed.testing.scenario import Ran, Scenario, pair_up, read_session
from landed.testing.scenarios import FRIDAY, PHRASES, RESERVE, book
from landed.testing.timeline import Line, Timeline
from landed.testing.worlds.faults import Fault
from landed.testing.worlds.serve import ServedWorld, start

POINT = "after:send:reserve_table"
STORY = Scenario(
    name="story",
    line="The main job for real: OS processes, a lost reply and a SIGKILL; one table.",
    script=book,
    phrases=PHRASES,
    faults=(Fault(path=RESERVE, kind="lose_reply"),),
    kill=(POINT,),
    holds=(FRIDAY,),
    says=("Booked R1",),
)
AGENT_MAX_S = 30.0
ANSWER_MAX_S = 10.0
SCENARIO = "reply-lost"  # whose script and tools the agent processes have
_TURN = re.compile(r"^turn-\w+:? ")  # There is only one here, and real ids are long.


def tell(say: Callable[[Line], None]) -> Ran:
    """Let the story happen, handing each line to `say` as it does, and return how it ended.

    It is as described only if the first agent really died of SIGKILL and the store called its
    operation `sent` then.
    """
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="landed-story-")))
        served = stack.enter_context(
            start(
                "restaurant",
                db=str(place / "restaurant.db"),
                faults=STORY.faults,
                settings=STORY.restaurant,
            )
        )
        desk = stack.enter_context(httpx2.Client(base_url=served.url, timeout=ANSWER_MAX_S))
        return Story(store=place / "agent.db", served=served, desk=desk, say=say).play()


@dataclass(frozen=True, slots=True, kw_only=True)
class Gone:
    """An agent process that is over: its report, empty when it was killed."""

    pid: int
    status: int
    report: dict[str, Any]

    @property
    def was_killed(self) -> bool:
        """Whether SIGKILL ended it."""
        return self.status == -signal.SIGKILL


@dataclass(slots=True, eq=False)
class Story:
    """The story while it is told. `desk` asks the restaurant as its owner would."""

    store: Path
    served: ServedWorld
    desk: httpx2.Client
    say: Callable[[Line], None]
    began: float = field(default_factory=time.time)
    timeline: Timeline = field(init=False)
    _heard: int = 0

    def __post_init__(self) -> None:
        self.timeline = Timeline(now=lambda: time.time() - self.began, listener=self.say)

    def play(self) -> Ran:
        """Tell it from the first process to the last."""
        self._add(
            f"the restaurant is process {self.served.pid} at {self.served.url};"
            " its reply to the first booking will be lost"
        )
        first = self._agent(POINT)
        sent = self._doubt(first)
        second = self._agent()
        self._add(f"agent {second.pid} has answered and ends with exit status {second.status}")
        items, operations = self._records()
        held = self._ask("/reservations", "reservations")
        return Ran(
            scenario=STORY,
            timeline=self.timeline,
            world={"restaurant": held},
            reconciled=pair_up(operations, held),
            history=items,
            message=str(second.report.get("message", "")),
            points=(),
            kill=STORY.kill if first.was_killed else (),
            unwitnessed=() if sent else ("at the kill, the operation was not durably sent",),
        )

    def _agent(self, kill: str = "") -> Gone:
        """Run an agent process to its end, repeating its lines as they come."""
        command = [sys.executable, "-m", "landed.testing.agent", "--follow"]
        command += ["--store", str(self.store), "--restaurant", self.served.url]
        command += ["--scenario", SCENARIO, *(["--kill", kill] if kill else [])]
        report: dict[str, Any] = {}
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            bound = threading.Timer(AGENT_MAX_S, process.kill)
            bound.start()
            what = f"will be killed at {kill}" if kill else "finds out what became of it"
            self._add(f"agent {process.pid} opens {self.store.name}; it {what}")
            assert process.stdout is not None
            for printed in process.stdout:
                report = json.loads(printed)
                if "type" in report:
                    self._repeat(report)
            bound.cancel()
        return Gone(pid=process.pid, status=process.returncode, report=report)

    def _repeat(self, line: dict[str, Any]) -> None:
        self._restaurant(until=line["at"])
        self.timeline.append(
            line["type"],
            _TURN.sub("", line["text"]),
            at_s=line["at"] - self.began,
            operation=line.get("operation", ""),
        )

    def _doubt(self, agent: Gone) -> bool:
        """Say who is dead and what its store knows; whether that is one operation, `sent`."""
        self._restaurant(until=time.time())
        how = "killed by SIGKILL" if agent.was_killed else f"gone with status {agent.status}"
        self._add(f"agent {agent.pid} is {how}; nobody has told the user anything")
        _, operations = self._records()
        for held in operations:
            self.timeline.add(
                "store",
                f"{held.tool} is `{held.state}`, no answer written down: in doubt",
                operation=held.id,
            )
        return [held.state for held in operations] == [State.SENT]

    def _restaurant(self, *, until: float) -> None:
        """Add what the restaurant did up to a moment (UTC, seconds)."""
        for entry in self._ask(f"/log?after={self._heard}", "log"):
            if entry["at"] > until:
                break
            self._heard = entry["n"]
            at_s = entry["at"] - self.began
            self.timeline.append("restaurant", entry["text"], at_s=at_s)

    def _ask(self, path: str, member: str) -> list[dict[str, Any]]:
        listed: list[dict[str, Any]] = self.desk.get(path).raise_for_status().json()[member]
        return listed

    def _records(self) -> tuple[tuple[Item, ...], list[Operation]]:
        return asyncio.run(_read(self.store))

    def _add(self, text: str) -> None:
        self.timeline.add("process", text)


async def _read(path: Path) -> tuple[tuple[Item, ...], list[Operation]]:
    store = open_sqlite(str(path))
    try:
        return await read_session(store)
    finally:
        await store.close()
