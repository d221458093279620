"""The invoice demo with nothing simulated away: processes, HTTP, SMTP, a store, a real SIGKILL.

The invoicing service, the mailbox and the agent are processes of their own. What ends it are the
service's own books, fetched over HTTP, and what is in the mailbox.
"""

import asyncio
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from landed.core.history import Item, View
from landed.core.operation import Operation, State
from landed.stores.urls import open_store
from landed.testing.beside import store_beside
from landed.testing.invoices.scenario import InvoiceScenario, held, made
from landed.testing.invoicing import CONTACTS
from landed.testing.scenario import Ran, pair_up, read_session
from landed.testing.story import AGENT_MAX_S, ANSWER_MAX_S, LEASE_S, Gone, shortened
from landed.testing.timeline import Line, Timeline
from landed.testing.worlds import mailbox, serve
from landed.testing.worlds.invoicing import Invoicing
from landed.testing.worlds.mailbox import Mailbox
from landed.testing.worlds.serve import ServedWorld

TODAY = "2026-10-19"
REAL = ("invoice", "invoice-redeploy")
"""The scenarios that are played for real unless a simulation is asked for."""


def tell(scenario: InvoiceScenario, say: Callable[[Line], None], *, store: str = "") -> Ran:
    """Let a scenario happen, handing each line to `say` as it does, and return how it ended.

    A kill that did not happen, or at which the mail was not durably `sent`, is not as described.
    With the URL of a `store` it is told on one of its own beside that. Raises `WorldStartError`
    where a process does not start, and as `store_beside` does.
    """
    with _place(scenario, say, store) as place:
        return place.play()


@dataclass(slots=True, eq=False)
class Place:
    """The processes of one run, while it is told."""

    scenario: InvoiceScenario
    store: str
    mailbox: Path
    invoicing: ServedWorld
    mails: ServedWorld
    desk: httpx2.Client
    box: Mailbox
    say: Callable[[Line], None]
    began: float = field(default_factory=time.time)
    heard: dict[str, int] = field(default_factory=lambda: {"invoicing": 0, "mailbox": 0})
    timeline: Timeline = field(init=False)

    def __post_init__(self) -> None:
        self.timeline = Timeline(now=lambda: time.time() - self.began, listener=self.say)

    def play(self) -> Ran:
        """Tell it from the first process to the last."""
        self._add(f"invoicing: process {self.invoicing.pid} at {self.invoicing.url}")
        self._add(f"mailbox: process {self.mails.pid} at {self.mails.url}")
        for contact in CONTACTS:
            self.desk.post("/contacts", json=dict(contact)).raise_for_status()
        self._services(until=time.time())
        killed = [self._killed(point) for point in self.scenario.kill]
        last = self._agent(again=bool(killed))
        self._add(f"agent {last.pid} has answered and ends with exit status {last.status}")
        self._services(until=time.time())
        books, mails = self.desk.get("/books").raise_for_status().json(), self.box.mails()
        (items, operations), (story, _) = self._records(View.CACHE), self._records(View.STORY)
        return Ran(
            scenario=self.scenario,
            timeline=self.timeline,
            world=held(books, mails),
            reconciled=pair_up(operations, [{"id": id} for id in made(books, mails)]),
            history=items,
            story=story,
            message=str(last.report.get("message", "")),
            points=(),
            kill=self.scenario.kill if all(killed) else (),
        )

    def _killed(self, point: str) -> bool:
        """Run an agent process that is killed; whether it was, with its last call in doubt."""
        agent = self._agent(point)
        self._services(until=time.time())
        how = "killed by SIGKILL" if agent.was_killed else f"gone with status {agent.status}"
        self._add(f"agent {agent.pid} is {how}; nobody has told the user anything")
        _, operations = self._records(View.CACHE)
        if not operations:
            return False
        last = operations[-1]
        doubt = ", no answer written down: in doubt" if last.state is State.SENT else ""
        self.timeline.add("store", f"{last.tool} is `{last.state}`{doubt}", operation=last.id)
        return agent.was_killed and last.state is State.SENT

    def _agent(self, kill: str = "", *, again: bool = False) -> Gone:
        """Run an agent process to its end, repeating its lines as they come."""
        command = [sys.executable, "-m", "landed.testing.invoices.process"]
        command += ["--store", self.store, "--invoicing", self.invoicing.url]
        command += ["--smtp", self.mails.url.rpartition(":")[2], "--mailbox", str(self.mailbox)]
        command += ["--scenario", self.scenario.name, "--lang", self.scenario.language]
        command += ["--kill", kill] if kill else []
        command += ["--again"] if again else []
        # Where only a lease says who is alive, a short one keeps the story short.
        command += [] if self.store.startswith("sqlite:") else ["--lease", str(LEASE_S)]
        report: dict[str, Any] = {}
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            bound = threading.Timer(AGENT_MAX_S, process.kill)
            bound.start()
            what = f"will be killed at {kill}" if kill else "goes to the end"
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

    def _services(self, *, until: float) -> None:
        """Add what the services did up to a moment (UTC, seconds)."""
        path = f"/log?after={self.heard['invoicing']}"
        booked = self.desk.get(path).raise_for_status().json()["log"]
        logs = [("invoicing", int(one["n"]), float(one["at"]), str(one["text"])) for one in booked]
        for one in self.box.log(after=self.heard["mailbox"]):
            logs.append(("mailbox", one.number, one.at, one.text))
        for name, number, at, text in sorted(logs, key=lambda one: one[2]):
            if at > until:
                break
            self.heard[name] = number
            self.timeline.append(name, shortened(text), at_s=at - self.began)

    def _records(self, view: View) -> tuple[tuple[Item, ...], list[Operation]]:
        return asyncio.run(_read(self.store, view))

    def _add(self, text: str) -> None:
        self.timeline.add("process", text)


@contextmanager
def _place(scenario: InvoiceScenario, say: Callable[[Line], None], store: str) -> Generator[Place]:
    """Start the services as processes, in a directory that is removed afterwards."""
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="landed-invoice-")))
        books, mails = _started(scenario, place, stack)
        own = stack.enter_context(store_beside(store)) if store else ""
        desk = httpx2.Client(base_url=books.url, timeout=ANSWER_MAX_S)
        yield Place(
            scenario=scenario,
            store=own or f"sqlite:///{place}/agent.db",
            mailbox=place / "mailbox.db",
            invoicing=books,
            mails=mails,
            desk=stack.enter_context(desk),
            box=stack.enter_context(Mailbox(str(place / "mailbox.db"))),
            say=say,
        )


def _started(
    scenario: InvoiceScenario, place: Path, stack: ExitStack
) -> tuple[ServedWorld, ServedWorld]:
    """Start both services at the same time; each is stopped also where the other fails."""
    with ThreadPoolExecutor(2) as pool:
        coming = (
            pool.submit(
                serve.start,
                "invoicing",
                db=str(place / "invoicing.db"),
                faults=scenario.faults,
                settings=Invoicing(today=TODAY),
            ),
            pool.submit(mailbox.start, db=str(place / "mailbox.db"), faults=scenario.mail_faults),
        )
    for each in coming:
        if each.exception() is None:
            stack.enter_context(each.result())
    return coming[0].result(), coming[1].result()


async def _read(url: str, view: View) -> tuple[tuple[Item, ...], list[Operation]]:
    store = await open_store(url)
    try:
        return await read_session(store, view=view)
    finally:
        await store.close()
