"""The main job with nothing simulated away: processes, HTTP, SQLite files and a real SIGKILL.

"Book Friday 19:00 for 4 and tell the group." While the restaurant's answer is still out: "actually,
Saturday". The agent finds out about Friday and books Saturday; and after the restaurant committed
that, before the agent heard of it, the agent is killed. A second agent process opens the same file,
finds out, cancels Friday and tells the group. What ends the story is the restaurant's own ledger,
fetched over HTTP, beside that of a careless agent in the same situation, whom nobody even killed.
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
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2

from landed.core.history import Item, View
from landed.core.operation import Operation, State
from landed.core.sentences import call_text
from landed.stores.urls import open_store
from landed.testing.scenario import SESSION, Ran, Scenario, pair_up, read_session
from landed.testing.scenarios import BY_NAME
from landed.testing.timeline import Line, Timeline
from landed.testing.worlds.serve import ServedWorld, start

POINT = "after:send:reserve_table"
RIGHT, NAIVE = BY_NAME["revise-in-flight"], BY_NAME["revise-in-flight-naive"]
STORY = replace(
    RIGHT,
    name="story",
    line="The main job for real: a change of mind, OS processes, a SIGKILL; one table.",
    kill=(POINT,),
)
AGENT_MAX_S = 30.0
LEASE_S = 3.0
ANSWER_MAX_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """How the story ended: our run, and what the careless agent's restaurant holds."""

    ran: Ran
    naive: list[dict[str, Any]]

    @property
    def as_described(self) -> bool:
        """Whether ours ended with one table, and the careless one with two."""
        held = tuple(str(one["text"]) for one in self.naive)
        return self.ran.as_described is True and held == NAIVE.holds


def tell(say: Callable[[Line], None], *, store: str = "") -> Told:
    """Let the story happen, handing each line to `say` as it does, and return how it ended.

    Ours is as described only if the first agent really died of SIGKILL, and the store called the
    booking of Saturday `sent` then. `store` is the URL of one to tell it on, in a conversation of
    its own; without it that is a SQLite file, removed afterwards.
    """
    with _place(STORY, say, store) as story:
        ran = story.play()
    with _place(NAIVE, lambda line: None, store) as careless:
        naive = careless.play_naively()
    return Told(ran=ran, naive=naive)


@contextmanager
def _place(scenario: Scenario, say: Callable[[Line], None], store: str) -> Generator["Story"]:
    """Start the services of a scenario as processes, in a directory that is removed afterwards."""
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="landed-story-")))
        booked = start(
            "restaurant",
            db=str(place / "restaurant.db"),
            faults=scenario.faults,
            settings=scenario.restaurant,
        )
        stack.enter_context(booked)
        texts = stack.enter_context(start("texts", db=str(place / "texts.db")))
        desks = {
            name: stack.enter_context(httpx2.Client(base_url=world.url, timeout=ANSWER_MAX_S))
            for name, world in (("restaurant", booked), ("texts", texts))
        }
        yield Story(
            scenario=scenario,
            store=store or f"sqlite:///{place}/agent.db",
            session=f"{STORY.name}-{uuid4().hex[:8]}" if store else SESSION,
            served={"restaurant": booked, "texts": texts},
            desks=desks,
            say=say,
        )


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
    """The story while it is told. `desks` ask each service as its owner would."""

    scenario: Scenario
    store: str
    session: str
    served: dict[str, ServedWorld]
    desks: dict[str, httpx2.Client]
    say: Callable[[Line], None]
    began: float = field(default_factory=time.time)
    timeline: Timeline = field(init=False)
    heard: dict[str, int] = field(default_factory=dict[str, int])

    def __post_init__(self) -> None:
        self.timeline = Timeline(now=lambda: time.time() - self.began, listener=self.say)

    def play(self) -> Ran:
        """Tell it from the first process to the last."""
        for name, world in self.served.items():
            self._add(f"{name}: process {world.pid} at {world.url}")
        first = self._agent(POINT)
        sent = self._doubt(first)
        second = self._agent(again=True)
        self._add(f"agent {second.pid} has answered and ends with exit status {second.status}")
        (items, operations), (story, _) = self._records(), self._records(View.STORY)
        held, texts = self.ledger("restaurant"), self.ledger("texts")
        return Ran(
            scenario=self.scenario,
            timeline=self.timeline,
            world={"restaurant": held, "texts": texts},
            reconciled=pair_up(operations, [*held, *texts]),
            history=items,
            story=story,
            message=str(second.report.get("message", "")),
            points=(),
            kill=self.scenario.kill if first.was_killed else (),
            unwitnessed=() if sent else ("at the kill, Saturday was not durably sent",),
        )

    def play_naively(self) -> list[dict[str, Any]]:
        """Let the careless agent do the same, killed by nobody; return the restaurant's ledger."""
        self._agent()
        return self.ledger("restaurant")

    def ledger(self, service: str) -> list[dict[str, Any]]:
        """Return what a service says it holds."""
        path, member = LEDGERS[service]
        return self._ask(service, path, member)

    def _agent(self, kill: str = "", *, again: bool = False) -> Gone:
        """Run an agent process to its end, repeating its lines as they come."""
        command = [sys.executable, "-m", "landed.testing.agent", "--follow"]
        command += ["--store", self.store, "--session", self.session]
        command += ["--restaurant", self.served["restaurant"].url]
        command += ["--texts", self.served["texts"].url, "--scenario", _script_of(self.scenario)]
        command += ["--kill", kill] if kill else []
        command += ["--again"] if again else []
        # Where only a lease says who is alive, a short one keeps the story short.
        command += [] if self.store.startswith("sqlite:") else ["--lease", str(LEASE_S)]
        report: dict[str, Any] = {}
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            bound = threading.Timer(AGENT_MAX_S, process.kill)
            bound.start()
            what = f"will be killed at {kill}" if kill else "goes on from there"
            self._add(f"agent {process.pid} opens the store; it {what}")
            assert process.stdout is not None
            for printed in process.stdout:
                report = json.loads(printed)
                if "type" in report:
                    self._repeat(report)
            bound.cancel()
        return Gone(pid=process.pid, status=process.returncode, report=report)

    def _repeat(self, line: dict[str, Any]) -> None:
        self._services(until=line["at"])
        self.timeline.append(
            line["type"],
            shortened(line["text"]),
            at_s=line["at"] - self.began,
            operation=line.get("operation", ""),
            subject=line.get("subject", ""),
            state=line.get("state", ""),
        )

    def _doubt(self, agent: Gone) -> bool:
        """Say who is dead and what its store knows; whether the last one sent is in doubt."""
        self._services(until=time.time())
        how = "killed by SIGKILL" if agent.was_killed else f"gone with status {agent.status}"
        self._add(f"agent {agent.pid} is {how}; nobody has told the user anything")
        _, operations = self._records()
        for held in operations:
            doubt = ", no answer written down: in doubt" if held.state is State.SENT else ""
            said = f"{call_text(held.tool, held.arguments)} is `{held.state}`{doubt}"
            self.timeline.add("store", said, operation=held.id)
        return bool(operations) and operations[-1].state is State.SENT

    def _services(self, *, until: float) -> None:
        """Add what the services did up to a moment (UTC, seconds)."""
        for name in self.served:
            for entry in self._ask(name, f"/log?after={self.heard.get(name, 0)}", "log"):
                if entry["at"] > until:
                    break
                self.heard[name] = entry["n"]
                text = shortened(entry["text"])
                self.timeline.append(name, text, at_s=entry["at"] - self.began)

    def _ask(self, service: str, path: str, member: str) -> list[dict[str, Any]]:
        answer = self.desks[service].get(path).raise_for_status().json()
        listed: list[dict[str, Any]] = answer[member]
        return listed

    def _records(self, view: View = View.CACHE) -> tuple[tuple[Item, ...], list[Operation]]:
        return asyncio.run(_read(self.store, self.session, view))

    def _add(self, text: str) -> None:
        self.timeline.add("process", text)


LEDGERS = {"restaurant": ("/reservations", "reservations"), "texts": ("/texts", "texts")}

# Real ids are long; in the story their last letters tell them apart.
_LONG_ID = re.compile(r"\b(op|turn|in|plan|question)-[0-9a-z]{20,}([0-9a-z]{6})\b")


def shortened(text: str) -> str:
    """Return a text with each long id as its last letters."""
    return _LONG_ID.sub(lambda match: f"{match[1]}-…{match[2]}", text)


def _script_of(scenario: Scenario) -> str:
    """Return the scenario whose script and design the agent processes have."""
    return NAIVE.name if scenario is NAIVE else RIGHT.name


async def _read(url: str, session: str, view: View) -> tuple[tuple[Item, ...], list[Operation]]:
    store = await open_store(url)
    try:
        return await read_session(store, session, view=view)
    finally:
        await store.close()
