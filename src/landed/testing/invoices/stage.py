"""Plays an invoice scenario in a simulated world: virtual time, processes that can be killed.

The invoicing service is the real one, in the same process; the mail goes by `post`.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial

from landed.core.history import Item, View
from landed.core.operation import Operation
from landed.core.store import Store
from landed.core.tool import Tool
from landed.runtime.opened import Settings
from landed.runtime.parts import assemble, register
from landed.stores.sqlite import open_sqlite
from landed.testing.designs import RIGHT
from landed.testing.faults import FaultyStore, FaultyTool, Point, Points, parse_point
from landed.testing.inline import Base
from landed.testing.invoices.clerk import OURS, Clerk, LeavingError, Manner
from landed.testing.invoices.office import Office, office_tools
from landed.testing.invoices.post import Post, PostedMail
from landed.testing.invoices.scenario import InvoiceScenario, held, made
from landed.testing.invoices.words import READ, WORDS
from landed.testing.invoicing import CONTACTS
from landed.testing.models import ScriptedModel
from landed.testing.scenario import PROCESSES_MAX, Ran, Witness, pair_up, read_session
from landed.testing.sim import World, current_process
from landed.testing.timeline import Timeline
from landed.testing.worlds import invoicing
from landed.testing.worlds.invoicing.books import KINDS, Books
from landed.testing.worlds.mailbox import Mailbox
from landed.testing.worlds.transport import WorldTransport

URL = "http://invoicing.test"
START = "2026-10-19T09:00:00Z"


class InvoiceStage:
    """The simulated world that an invoice scenario is played in."""

    def __init__(self, scenario: InvoiceScenario, world: World, base: Base) -> None:
        self.scenario = scenario
        self.world = world
        self.base = base
        self.timeline = Timeline(now=lambda: world.timeline.now_s, services=self._services)
        self.messages: list[str] = []
        self.passed: list[tuple[Point, ...]] = []
        self.unwitnessed: list[str] = []
        self.wire: list[str] = []
        self.handed: list[str] = []
        self.box = Mailbox(":memory:", now=world.clock.now)
        self._post = Post(self.box, world.spawn, scenario.mail_faults)
        self._app = invoicing.app(":memory:", world.clock, scenario.faults)
        self.books: Books = self._app.state.desk.books
        for contact in CONTACTS:
            self.books.insert("contact", **contact)
        self._heard = {"invoicing": 0, "mailbox": 0}
        self._workers = 0

    def close(self) -> None:
        """Let go of the services' records."""
        self.books.ledger.sql.close()
        self.box.close()

    def play(self, kill: Sequence[str]) -> None:
        """Run one process after the other until one of them gets to the end of the script."""
        kills = [*kill, ""]
        if self.scenario.wrong:
            self.timeline.add("wrong", self.scenario.wrong)
        for number in range(PROCESSES_MAX):
            point = kills[number] if number < len(kills) else ""
            ended = self.world.run(partial(self._process, point))
            if ended.crashed_at is not None:
                self.base.worker_died(f"worker-{self._workers}")
                self.timeline.add("crash", ended.crashed_at)
            elif ended.result:
                break
        self.world.settle()

    def all_books(self) -> dict[str, list[dict[str, object]]]:
        """Return all that the books hold."""
        return {f"{kind}s": self.books.every(kind) for kind in KINDS}

    async def _process(self, kill: str) -> bool:
        """Be one process; return whether it came to the end of the script."""
        process = current_process()
        points = Points(die=process.crash, kill=parse_point(kill) if kill else None)
        self._workers += 1
        opened = self.base.open_again()
        store = FaultyStore(
            self.scenario.design.reopen(opened) if self._workers > 1 else opened,
            points=points,
            committed=self.timeline.committed,
            alive=process.require_alive,
        )
        witness = Witness(self.base.open_again(), self.unwitnessed)
        try:
            return await self._agent(store, points, witness)
        finally:
            self.passed.append(tuple(points.passed))

    async def _agent(self, store: Store, points: Points, witness: Witness) -> bool:
        kept = self.scenario
        rt = assemble(
            store,
            tools=register(self._tools(points, witness)),
            settings=Settings(language=kept.language),
            rules=kept.design.rules,
            what_next=kept.design.what_next,
            clock=current_process().clock,
            ids=self.world.ids,
            worker=f"worker-{self._workers}",
            permissions=Office(),
        )
        first = self._workers == 1
        async with rt:
            if not first:
                self.timeline.add("restart", f"{rt.recovered} operation(s) in the log")
            clerk = Clerk(
                rt=rt,
                model=ScriptedModel(script=READ),
                timeline=self.timeline,
                messages=self.messages,
                manner=kept.manner,
                yes=WORDS[kept.language].yes,
                leave=self._leave if first else _stay,
                wire=self.wire,
                handed=self.handed,
            )
            try:
                await kept.script(clerk)
            except LeavingError:
                self.timeline.add("drain", "asked to end: what is out may come back")
                return False
        return True

    def _leave(self, manner: Manner) -> None:
        """End the first process for the next one, as a deployment does."""
        if manner.drains:
            raise LeavingError
        current_process().crash("ended without waiting for anything")

    def _tools(self, points: Points, witness: Witness) -> list[Tool]:
        kept = self.scenario
        ours = kept.design is RIGHT and kept.manner is OURS
        transport = WorldTransport(
            self._app, self.world.spawn, witness=witness.see if ours else None
        )
        mailing = partial(PostedMail, self._post, witness.see_operation if ours else None)
        tools = office_tools(
            URL,
            mailing,
            self.box,
            language=kept.language,
            looks=kept.looks,
            transport=transport,
            replaced=kept.replaced,
        )
        return [kept.design.wrap(FaultyTool(tool, points)) for tool in tools]

    def _services(self, timeline: Timeline) -> None:
        heard = self._heard
        booked = self.books.ledger.log(after=heard["invoicing"])
        mailed = self.box.log(after=heard["mailbox"])
        logs = [(float(one["at"]), "invoicing", str(one["text"])) for one in booked]
        logs += [(one.at, "mailbox", one.text) for one in mailed]
        heard["invoicing"] += len(booked)
        heard["mailbox"] += len(mailed)
        for at, name, text in sorted(logs, key=lambda one: one[0]):
            timeline.append(name, text, at_s=at - self.world.start_at)


def _stay(_: Manner) -> None:
    """Go on: nothing is deployed a second time."""


def run(
    scenario: InvoiceScenario,
    *,
    kill: Sequence[str] | None = None,
    seed: int | None = None,
    base: Base | None = None,
) -> Ran:
    """Play a scenario and say how it ended; see `landed.testing.scenario.run`."""
    ran, _ = play(scenario, kill=kill, seed=seed, base=base)
    return ran


def play(
    scenario: InvoiceScenario,
    *,
    kill: Sequence[str] | None = None,
    seed: int | None = None,
    base: Base | None = None,
) -> tuple[Ran, InvoiceStage]:
    """Play a scenario; returns how it ended, and the stage as it was left, its services closed."""
    kills = scenario.kill if kill is None else tuple(kill)
    with ExitStack() as stack:
        world = stack.enter_context(World(seed, START))
        stage = InvoiceStage(scenario, world, base or open_sqlite(":memory:"))
        stack.callback(stage.close)
        stage.play(kills)
        read = world.run(partial(_look, stage.base), name="reader").result
        assert read is not None
        items, story, operations = read
        stage.timeline.services(stage.timeline)
        books, mails = stage.all_books(), stage.box.mails()
        ran = Ran(
            scenario=scenario,
            timeline=stage.timeline,
            world=held(books, mails),
            reconciled=pair_up(operations, [{"id": id} for id in made(books, mails)]),
            history=items,
            story=story,
            message=stage.messages[-1] if stage.messages else "",
            points=tuple(stage.passed),
            kill=kills,
            unwitnessed=tuple(stage.unwitnessed),
        )
    return ran, stage


async def _look(base: Base) -> tuple[tuple[Item, ...], tuple[Item, ...], list[Operation]]:
    """Read both orders of the history, and the operations; nothing is claimed."""
    store = base.open_again()
    items, operations = await read_session(store)
    story, _ = await read_session(store, view=View.STORY)
    return items, story, operations
