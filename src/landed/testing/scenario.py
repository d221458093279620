"""A scenario as data and a few lines: who says what, what goes wrong, and how it must end.

`run` plays it on the virtual clock: a restaurant, an agent with a scripted model, and faults, in
one simulated world. A crash ends the agent's process; the next one opens the same store and runs
the same script from its start, as any durable program would.

    EXAMPLE = Scenario(
        name="reply-lost",
        line="the reply is lost; the key is looked up",
        script=book,
        faults=(Fault(path="/reservations", kind="lose_reply"),),
        holds=("R1 Fri 19:00 x4",),
    )
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

import httpx2

from landed.core.canonical import Json
from landed.core.history import Item, View
from landed.core.operation import Operation, State
from landed.core.store import Store
from landed.core.tool import Tool
from landed.runtime.parts import assemble, register
from landed.stores.sqlite import open_sqlite
from landed.testing.acting import SESSION, Agent, read_session
from landed.testing.booking import booking_tools, plan_for, text_tools
from landed.testing.designs import RIGHT, Design
from landed.testing.faults import FaultyStore, FaultyTool, Point, Points, parse_point
from landed.testing.inline import Base
from landed.testing.models import Change, ScriptedModel, Wanted
from landed.testing.sim import World, current_process
from landed.testing.timeline import Timeline
from landed.testing.worlds import restaurant, texts
from landed.testing.worlds.faults import Fault
from landed.testing.worlds.restaurant import Restaurant
from landed.testing.worlds.transport import WorldTransport

__all__ = ["SESSION", "Agent", "Ran", "Scenario", "Stage", "pair_up", "read_session", "run"]

PROCESSES_MAX = 4
URL = "http://restaurant.test"
TEXT_URL = "http://texts.test"
STRICT = Restaurant(strict=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """What happens, and how it must end.

    `design` is ours unless a wrong one is to be seen failing. `kill` are the points at which the
    first, the second, … process is killed. `holds` is what the restaurant must hold in the end and
    `texts` what must have gone out, `reconciled` whether records and world must agree, `says` what
    the last message must contain. Where it is not `tabulated`, nothing is said of its end.
    """

    name: str
    line: str
    script: Callable[[Agent], Awaitable[None]]
    phrases: Mapping[str, tuple[Wanted, ...]] = field(default_factory=dict[str, tuple[Wanted, ...]])
    intents: Mapping[str, Mapping[str, Json]] = field(default_factory=dict[str, Mapping[str, Json]])
    changes: Mapping[str, Change] = field(default_factory=dict[str, Change])
    restaurant: Restaurant = STRICT
    faults: tuple[Fault, ...] = ()
    text_faults: tuple[Fault, ...] = ()
    text_promises: dict[str, object] = field(default_factory=dict[str, object])
    promises: dict[str, object] = field(default_factory=dict[str, object])
    design: Design = RIGHT
    kill: tuple[str, ...] = ()
    holds: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    reconciled: bool = True
    says: tuple[str, ...] = ()
    tabulated: bool = True
    asked: int | None = None

    @property
    def wanted(self) -> Mapping[str, tuple[str, ...]]:
        """What must be held in the end, by where."""
        return {"restaurant": self.holds, "texts": self.texts}


class Described(Protocol):
    """What a scenario says of its own end."""

    @property
    def name(self) -> str:
        """What it is called by."""
        ...

    @property
    def kill(self) -> tuple[str, ...]:
        """The points at which its processes are killed."""
        ...

    @property
    def tabulated(self) -> bool:
        """Whether anything is said of its end."""
        ...

    @property
    def wanted(self) -> Mapping[str, tuple[str, ...]]:
        """What must be held in the end, by where."""
        ...

    @property
    def reconciled(self) -> bool:
        """Whether records and world must agree."""
        ...

    @property
    def says(self) -> tuple[str, ...]:
        """What the last message must contain."""
        ...

    @property
    def asked(self) -> int | None:
        """How many plans a person must have been asked about; None for any number."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """How a run ended."""

    scenario: Described
    timeline: Timeline
    world: dict[str, list[dict[str, Json]]]
    reconciled: bool
    history: tuple[Item, ...]
    message: str
    points: tuple[tuple[Point, ...], ...]
    story: tuple[Item, ...] = ()
    kill: tuple[str, ...] = ()
    unwitnessed: tuple[str, ...] = ()

    @property
    def as_described(self) -> bool | None:
        """Whether it ended as its description says; None where that says nothing of such a run."""
        if self.kill != self.scenario.kill or not self.scenario.tabulated:
            return None
        held = {name: tuple(str(one["text"]) for one in held) for name, held in self.world.items()}
        return (
            held == {name: self.scenario.wanted[name] for name in held}
            and self.scenario.asked in (None, self.asked)
            and self.reconciled == self.scenario.reconciled
            and all(words in self.message for words in self.scenario.says)
            and not self.unwitnessed
        )

    @property
    def asked(self) -> int:
        """How often a person was asked about a plan."""
        return sum(line.type == "plan.ask" for line in self.timeline.lines)

    def history_as(self, view: View) -> tuple[Item, ...]:
        """Return what a model is shown, in the order of that view."""
        return self.story if view is View.STORY else self.history

    def plain(self) -> dict[str, Json]:
        """Return it as `landed demo --json` prints it."""
        return {
            "scenario": self.scenario.name,
            "timeline": [line.plain() for line in self.timeline.lines],
            "world": dict(self.world),
            "reconciled": self.reconciled,
            "history": [
                {
                    "role": item.role,
                    "text": item.text,
                    "happened_at": item.happened_at,
                    "recorded_at": item.recorded_at,
                }
                for item in self.history
            ],
            "message": self.message,
            "as_described": self.as_described,
        }


class Stage:
    """The simulated world that a scenario is played in."""

    def __init__(self, scenario: Scenario, world: World, base: Base) -> None:
        self.scenario = scenario
        self.world = world
        self.base = base
        self.timeline = Timeline(now=lambda: world.timeline.now_s, services=self._services)
        self.messages: list[str] = []
        self.passed: list[tuple[Point, ...]] = []
        self.unwitnessed: list[str] = []
        self._logged = 0
        self._app = restaurant.app(
            ":memory:", world.clock, scenario.faults, settings=scenario.restaurant
        )
        self._desk = self._app.state.desk
        self._texts = texts.app(":memory:", world.clock, scenario.text_faults)
        self._texted = 0
        self._workers = 0

    def close(self) -> None:
        """Let go of the services' records."""
        self._desk.ledger.sql.close()
        self._texts.state.desk.ledger.sql.close()

    def play(self, kill: Sequence[str]) -> None:
        """Run one process after the other until one of them gets to the end of the script."""
        kills = [*kill, ""]
        for number in range(PROCESSES_MAX):
            point = kills[number] if number < len(kills) else ""
            ended = self.world.run(partial(self._process, point))
            if ended.crashed_at is None:
                break
            self.base.worker_died(f"worker-{self._workers}")
            self.timeline.add("crash", ended.crashed_at)
        self.world.settle()

    async def look(self) -> "Read":
        """Read history and records once everything has come to rest; nothing is claimed."""
        store = self.base.open_again()
        items, operations = await read_session(store)
        story, _ = await read_session(store, view=View.STORY)
        return Read(items=items, story=story, operations=operations)

    def holds(self) -> list[dict[str, Json]]:
        """Return what the restaurant holds."""
        rows = self._desk.ledger.sql.execute(
            "SELECT 'R' || number, day, time, party FROM reservation WHERE NOT cancelled"
            " ORDER BY number"
        )
        return [
            {"id": id, "text": f"{id} {day} {time} x{party}", "day": day, "time": time}
            for id, day, time, party in rows
        ]

    def texted(self) -> list[dict[str, Json]]:
        """Return what went out as texts."""
        rows = self._texts.state.desk.ledger.sql.execute(
            "SELECT 'M' || number, recipient, said FROM text ORDER BY number"
        )
        return [{"id": id, "text": f"{id} {to}: {said}", "to": to} for id, to, said in rows]

    async def _process(self, kill: str) -> None:
        process = current_process()
        points = Points(die=process.crash, kill=None if not kill else parse_point(kill))
        self._workers += 1
        opened = self.base.open_again()
        again = self._workers > 1
        store = FaultyStore(
            self.scenario.design.reopen(opened) if again else opened,
            points=points,
            committed=self.timeline.committed,
            alive=process.require_alive,
        )
        witness = Witness(self.base.open_again(), self.unwitnessed)
        try:
            await self._agent(store, points, witness)
        finally:
            self.passed.append(tuple(points.passed))

    async def _agent(self, store: Store, points: Points, witness: "Witness") -> None:
        rt = assemble(
            store,
            tools=register(self._tools(points, witness)),
            rules=self.scenario.design.rules,
            what_next=self.scenario.design.what_next,
            clock=current_process().clock,
            ids=self.world.ids,
            worker=f"worker-{self._workers}",
            plan_for=plan_for,
        )
        async with rt:
            if self._workers > 1:
                self.timeline.add("restart", f"{rt.recovered} operation(s) in the log")
            model = ScriptedModel(
                script=self.scenario.phrases,
                intents=self.scenario.intents,
                changes=self.scenario.changes,
            )
            agent = Agent(rt=rt, model=model, timeline=self.timeline, messages=self.messages)
            await self.scenario.script(agent)

    def _tools(self, points: Points, witness: "Witness") -> list[Tool]:
        see = witness.see if self.scenario.design is RIGHT else None
        transport = WorldTransport(self._app, self.world.spawn, witness=see)
        tools = booking_tools(
            URL, self.scenario.restaurant, transport=transport, **self.scenario.promises
        )
        tools += text_tools(
            TEXT_URL,
            transport=WorldTransport(self._texts, self.world.spawn),
            **self.scenario.text_promises,
        )
        return [self.scenario.design.wrap(FaultyTool(tool, points)) for tool in tools]

    def _services(self, timeline: Timeline) -> None:
        booked = self._desk.ledger.log(after=self._logged)
        texted = self._texts.state.desk.ledger.log(after=self._texted)
        self._logged += len(booked)
        self._texted += len(texted)
        logs = [("restaurant", entry) for entry in booked] + [("texts", entry) for entry in texted]
        for name, entry in sorted(logs, key=lambda one: float(one[1]["at"])):
            timeline.append(name, entry["text"], at_s=entry["at"] - self.world.start_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """What there is to read of a session in the end: both orders of its history, its operations."""

    items: tuple[Item, ...]
    story: tuple[Item, ...]
    operations: list[Operation]


class Witness:
    """Sees every send as it leaves, and remembers each whose operation was not durably sent.

    Deterministic keys on a keyed service would hide a send before its record.
    """

    def __init__(self, store: Store, unwitnessed: list[str]) -> None:
        self._store = store
        self._unwitnessed = unwitnessed

    async def see(self, request: httpx2.Request) -> None:
        """Look up the operation that a key names."""
        key = request.headers.get("Idempotency-Key", "")
        if key:
            await self.see_operation(key.split(":")[-1])

    async def see_operation(self, id: str) -> None:
        """Look up an operation that is about to leave."""
        found = await self._store.load(id)
        if not found or found[0].state not in (State.SENT, State.RESENT):
            state = found[0].state if found else "absent"
            self._unwitnessed.append(f"{id} left while it was {state}")


def run(
    scenario: Scenario,
    *,
    kill: Sequence[str] | None = None,
    seed: int | None = None,
    base: Base | None = None,
) -> Ran:
    """Play a scenario and say how it ended.

    `kill` are other points than its own to be killed at, `seed` is the `World`'s. `base` is the
    empty store to play it on; without one that is SQLite in memory.
    """
    kills = scenario.kill if kill is None else tuple(kill)
    with ExitStack() as stack:
        world = stack.enter_context(World(seed))
        stage = Stage(scenario, world, base or open_sqlite(":memory:"))
        stack.callback(stage.close)
        stage.play(kills)
        ended = world.run(stage.look, name="reader")
        assert ended.result is not None
        read = ended.result
        stage.timeline.services(stage.timeline)
        held, texted = stage.holds(), stage.texted()
        return Ran(
            scenario=scenario,
            timeline=stage.timeline,
            world={"restaurant": held, "texts": texted},
            reconciled=pair_up(read.operations, [*held, *texted]),
            history=read.items,
            story=read.story,
            message=stage.messages[-1] if stage.messages else "",
            points=tuple(stage.passed),
            kill=kills,
            unwitnessed=tuple(stage.unwitnessed),
        )


def pair_up(operations: Sequence[Operation], held: Sequence[Mapping[str, Json]]) -> bool:
    """Whether world and confirmed records pair one to one, and nothing is in doubt."""
    settled = (State.CONFIRMED, State.FAILED, State.WITHDRAWN)
    if any(operation.state not in settled for operation in operations):
        return False
    landed = [o for o in operations if o.state is State.CONFIRMED]
    undone = {o.undoes for o in landed}
    confirmed = sorted(_made(o) for o in landed if not o.undoes and o.id not in undone)
    return confirmed == sorted(str(one["id"]) for one in held)


def _made(operation: Operation) -> str:
    result = operation.result
    return str(result["id"]) if isinstance(result, dict) and "id" in result else ""
