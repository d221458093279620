"""The agent as an operating-system process: a scenario's script over HTTP and a store.

    python -m landed.testing.agent --store agent.db --restaurant http://127.0.0.1:8000 \
        [--texts URL] [--scenario reply-lost] [--session s1] [--kill POINT] [--follow]

prints its report, one JSON object, and ends; with `--kill` it sends itself a real SIGKILL when it
comes to that point, and prints nothing more. With `--follow` each line of its timeline is printed
before that, as an object of its own, as soon as it is durable; `at` is when, in UTC seconds.
"""

import argparse
import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import httpx2

from landed.core.canonical import Json
from landed.core.lease import Lease
from landed.core.store import Store
from landed.core.tool import Tool
from landed.runtime.parts import assemble, register
from landed.stores.urls import open_store
from landed.testing.acting import TENANT
from landed.testing.booking import booking_tools, plan_for, text_tools
from landed.testing.faults import FaultyStore, FaultyTool, Point, Points, parse_point
from landed.testing.models import ScriptedModel
from landed.testing.scenario import SESSION, Agent, Scenario, read_session
from landed.testing.scenarios import BY_NAME
from landed.testing.timeline import Line, Timeline, replayed

SERVICES = frozenset({"restaurant", "texts", "invoicing", "mailbox"})
LOG_MAX_S = 5.0
# Virtual time stands still while a script acts. In real time a process that was killed needs a
# moment to come back to where the user speaks; until then no text is taken for sent.
PATIENCE: dict[str, object] = {"wait_s": 8.0, "assume_after_s": 8.0}
NOWHERE = "http://127.0.0.1:9"  # Nobody listens there, so that no text ever leaves.


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the process is to do; `again` when its store was there before."""

    scenario: Scenario
    store: str
    restaurant: str
    texts: str = NOWHERE
    session: str = SESSION
    lease: Lease = field(default_factory=Lease)
    again: bool = False
    kill: Point | None = None
    follow: bool = False


async def act(asked: Asked) -> dict[str, Json]:
    """Run the script of the scenario, first or again, and return the report of this process."""
    points = Points(die=die, kill=asked.kill)
    timeline = Timeline(
        now=time.time,
        services=Overheard(asked),
        listener=print_line if asked.follow else say_nothing,
    )
    messages: list[str] = []
    store = await _store(asked, points, timeline)
    kept, design = asked.scenario, asked.scenario.design
    tools = [design.wrap(FaultyTool(tool, points)) for tool in _tools(asked)]
    rt = assemble(
        store,
        tools=register(tools),
        rules=design.rules,
        what_next=design.what_next,
        plan_for=plan_for,
        lease=asked.lease,
    )
    async with rt:
        if asked.again:
            await remember(timeline, store, asked.session)
            timeline.add("restart", f"{rt.recovered} operation(s) in the log")
        agent = Agent(
            rt=rt,
            model=ScriptedModel(script=kept.phrases, intents=kept.intents, changes=kept.changes),
            timeline=timeline,
            messages=messages,
            session=asked.session,
        )
        await kept.script(agent)
        _, operations = await read_session(store, asked.session)
    return {
        "pid": os.getpid(),
        "recovered": rt.recovered,
        "operations": {operation.id: operation.state for operation in operations},
        "message": messages[-1] if messages else "",
        "points": [str(point) for point in points.passed],
    }


async def _store(asked: Asked, points: Points, timeline: Timeline) -> FaultyStore:
    opened = await open_store(asked.store)
    return FaultyStore(opened, points=points, committed=timeline.committed)


async def remember(timeline: Timeline, store: Store, session: str) -> None:
    """Bring in what earlier processes did: not printed again, but a script may wait for it."""
    before = await replayed(store, tenant=TENANT, session=session)
    timeline.lines.extend(before.lines)
    timeline.made.update(before.made)


class Overheard:
    """Reads the services' own logs, so that a script can wait for what happened out there.

    Nothing of it reaches the runtime, and it is not printed: whoever watches has the logs too.
    """

    def __init__(self, asked: Asked) -> None:
        urls = {"restaurant": asked.restaurant, "texts": asked.texts}
        self._heard = {
            (name, url): 0 for name, url in urls.items() if asked.follow and url != NOWHERE
        }
        self._client = httpx2.Client(timeout=LOG_MAX_S)

    def __call__(self, timeline: Timeline) -> None:
        """Bring in what the services did since the last time."""
        for (name, url), heard in self._heard.items():
            answer = self._client.get(f"{url}/log?after={heard}").raise_for_status()
            for entry in answer.json()["log"]:
                self._heard[name, url] = entry["n"]
                timeline.append(name, entry["text"], at_s=entry["at"])


def _tools(asked: Asked) -> Iterator[Tool]:
    kept = asked.scenario
    yield from booking_tools(asked.restaurant, kept.restaurant, transport=None, **kept.promises)
    yield from text_tools(asked.texts, transport=None, **{**PATIENCE, **kept.text_promises})


def url_of(store: str) -> str:
    """Return the URL of a store that is named by it, or by the path of a SQLite file."""
    return store if "://" in store else f"sqlite:///{store}"


def die(_: str) -> None:
    """Send this process a real SIGKILL."""
    os.kill(os.getpid(), signal.SIGKILL)


def print_line(line: Line) -> None:
    """Print a line of our own as it happens; whoever watches has the services' logs too."""
    if line.type in SERVICES:
        return
    # The line's own time is rounded; among lines of other processes it needs its exact place.
    print_plain({"at": time.time(), **line.plain()})


def say_nothing(_: Line) -> None:
    """Print nothing of what happens."""


def print_plain(plain: dict[str, Json]) -> None:
    """Print one object on one line, at once."""
    sys.stdout.write(json.dumps(plain) + "\n")
    sys.stdout.flush()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m landed.testing.agent")
    parser.add_argument("--store", required=True, help="its SQLite file, or a URL")
    parser.add_argument("--again", action="store_true", help="the store at that URL knows it")
    parser.add_argument("--lease", type=float, default=30.0, help="seconds that its claims stand")
    parser.add_argument("--restaurant", required=True, help="the restaurant's URL")
    parser.add_argument("--texts", default=NOWHERE, help="the URL of the text service")
    parser.add_argument("--scenario", default="reply-lost", choices=sorted(BY_NAME))
    parser.add_argument("--session", default=SESSION, help="the conversation it speaks in")
    parser.add_argument("--kill", default="", help="the point at which it kills itself")
    parser.add_argument("--follow", action="store_true", help="print what happens as it happens")
    return parser


def main(arguments: Sequence[str] | None = None) -> None:
    """Be the agent that the command line describes; exits with 2 when it makes no sense."""
    parser = _parser()
    given = parser.parse_args(arguments)
    try:
        kill = parse_point(given.kill) if given.kill else None
    except ValueError as error:
        parser.error(str(error))
    asked = Asked(
        scenario=BY_NAME[given.scenario],
        store=url_of(given.store),
        lease=Lease(lease_s=given.lease, beat_s=given.lease / 3),
        restaurant=given.restaurant,
        texts=given.texts,
        session=given.session,
        again=given.again or Path(given.store).exists(),
        kill=kill,
        follow=given.follow,
    )
    print_plain(asyncio.run(act(asked)))


if __name__ == "__main__":
    main()
