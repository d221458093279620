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

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial

import httpx2

from landed.core.canonical import Json
from landed.core.changes import Kind
from landed.core.doubt import pause_s
from landed.core.history import Item, View
from landed.core.operation import Operation, State, from_record
from landed.core.session import Input
from landed.core.store import Store
from landed.core.tool import Tool
from landed.core.value import PlanValue, Unknown, Value
from landed.runtime.parts import assemble, register
from landed.runtime.reader import Reader
from landed.runtime.runtime import Runtime
from landed.stores.sqlite import SqliteStore, open_sqlite
from landed.testing.booking import booking_tools, plan_for, text_tools
from landed.testing.designs import RIGHT, Design
from landed.testing.faults import FaultyStore, FaultyTool, Point, Points, parse_point
from landed.testing.models import Change, ScriptedModel, Wanted
from landed.testing.sim import World, current_process
from landed.testing.timeline import Timeline
from landed.testing.worlds import restaurant, texts
from landed.testing.worlds.faults import Fault
from landed.testing.worlds.restaurant import Restaurant
from landed.testing.worlds.transport import WorldTransport

SESSION = "s1"
TENANT = "default"
PROCESSES_MAX = 4
LOOKS_MAX = 100
URL = "http://restaurant.test"
TEXT_URL = "http://texts.test"
TICK_S = 0.05
STRICT = Restaurant(strict=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """What happens, and how it must end.

    `design` is ours unless a wrong one is to be seen failing. `kill` are the points at which the
    first, the second, … process is killed. `holds` is what the restaurant must hold in the end and
    `texts` what must have gone out, `reconciled` whether records and world must agree, `says` what
    the last message must contain.
    """

    name: str
    line: str
    script: "Callable[[Agent], Awaitable[None]]"
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """How a run ended."""

    scenario: Scenario
    timeline: Timeline
    world: dict[str, list[dict[str, Json]]]
    reconciled: bool
    history: tuple[Item, ...]
    message: str
    points: tuple[tuple[Point, ...], ...]
    kill: tuple[str, ...] = ()
    unwitnessed: tuple[str, ...] = ()

    @property
    def as_described(self) -> bool | None:
        """Whether it ended as its description says; None for kills of which that says nothing."""
        if self.kill != self.scenario.kill:
            return None
        held = {name: tuple(str(one["text"]) for one in held) for name, held in self.world.items()}
        return (
            held == {"restaurant": self.scenario.holds, "texts": self.scenario.texts}
            and self.reconciled == self.scenario.reconciled
            and all(words in self.message for words in self.scenario.says)
            and not self.unwitnessed
        )

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


@dataclass(slots=True, eq=False)
class Agent:
    """What a script acts through: one process of the agent, with its runtime and its model."""

    rt: Runtime
    model: ScriptedModel
    timeline: Timeline
    messages: list[str]
    session: str = SESSION

    async def hear(self, text: str, *, delivery: str) -> tuple[Input, tuple[Wanted, ...]]:
        """Receive the user's words and have the model read them."""
        received = await self.rt.receive(
            text, session=self.session, principal="ana", delivery=delivery
        )
        calls = self.model.read(text)
        asked = ", ".join(map(str, calls))
        self.timeline.add("model.read", f"{received.turn}: {asked}")
        return received, calls

    async def carry_out(self, text: str, *, delivery: str, origin: str = "user") -> PlanValue:
        """Receive words that want something, and carry that out as one plan."""
        heard = await self._listen(text, delivery=delivery, origin=origin)
        intent = self.model.intent(text)
        said = ", ".join(f"{name}={value}" for name, value in intent.items())
        self.timeline.add("model.read", f"{heard.turn}: {said}")
        return await self.rt.propose(ask=heard.ask("plan"), intent=intent, origin=origin)

    async def change(self, turn: str, text: str, *, delivery: str) -> Input:
        """Receive words that change what a turn wants, and carry the change out."""
        heard = await self._listen(text, delivery=delivery)
        change = self.model.change(text)
        self.timeline.add("model.read", f"revises {turn}: {change}")
        if change.unsure:
            await self.rt.ask(heard, change.unsure)
            return heard
        await self.rt.revise(
            turn,
            heard,
            change={**change.change, **({"also": dict(change.also)} if change.also else {})},
            drop=change.drop,
        )
        return heard

    async def _listen(self, text: str, *, delivery: str, origin: str = "user") -> Input:
        return await self.rt.receive(
            text,
            session=self.session,
            principal="ana",
            delivery=delivery,
            origin=origin,
        )

    async def say(self, text: str, *, delivery: str) -> Input:
        """Receive words that answer a question, and wait until what they decide is at rest."""
        heard = await self._listen(text, delivery=delivery)
        await self.quiet()
        return heard

    async def quiet(self) -> None:
        """Wait until nothing of the session is open any more."""
        store, worker = self.rt.driver.store, self.rt.driver.worker
        for looks in range(LOOKS_MAX):
            await asyncio.sleep(pause_s(looks) or TICK_S)
            if not await store.open_records(tenant=TENANT, session=self.session, worker=worker):
                return

    async def do(self, heard: Input, call: Wanted, *, call_id: str = "") -> Value:
        """Perform one call that the model asked for."""
        ask = heard.ask(call_id or call.call_id)
        return await self.rt.perform(call.tool, call.arguments, ask=ask)

    async def rest(self, heard: Input) -> None:
        """Wait until nothing that was done for the turn is in doubt, or nobody can tell."""
        for looks in range(LOOKS_MAX):
            report = await self.rt.report(heard.turn)
            values = [await self.rt.status(id) for id in report.operations]
            unknown = [value for value in values if isinstance(value, Unknown)]
            if not unknown:
                return
            await asyncio.sleep(pause_s(looks))
            for value in unknown:
                await self.rt.resolve(value.operation)

    async def answer(self, heard: Input) -> None:
        """Tell the user what became of the turn, from the records."""
        report = await self.rt.report(heard.turn)
        self.messages.append(report.text)


class Stage:
    """The simulated world that a scenario is played in."""

    def __init__(self, scenario: Scenario, world: World, store: SqliteStore) -> None:
        self.scenario = scenario
        self.world = world
        self.base = store
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

    async def look(self) -> tuple[tuple[Item, ...], list[Operation]]:
        """Read history and records once everything has come to rest; nothing is claimed."""
        return await read_session(self.base.open_again())

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
        store = FaultyStore(
            self.base.open_again(),
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
        if not key:
            return
        found = await self._store.load(key.split(":")[-1])
        if not found or found[0].state not in (State.SENT, State.RESENT):
            state = found[0].state if found else "absent"
            self._unwitnessed.append(f"{key} left while its operation was {state}")


def run(scenario: Scenario, *, kill: Sequence[str] | None = None, seed: int | None = None) -> Ran:
    """Play a scenario and say how it ended."""
    kills = scenario.kill if kill is None else tuple(kill)
    with ExitStack() as stack:
        world = stack.enter_context(World(seed))
        store = open_sqlite(":memory:")
        stage = Stage(scenario, world, store)
        stack.callback(stage.close)
        stage.play(kills)
        ended = world.run(stage.look, name="reader")
        assert ended.result is not None
        items, operations = ended.result
        stage.timeline.services(stage.timeline)
        held, texted = stage.holds(), stage.texted()
        return Ran(
            scenario=scenario,
            timeline=stage.timeline,
            world={"restaurant": held, "texts": texted},
            reconciled=pair_up(operations, [*held, *texted]),
            history=items,
            message=stage.messages[-1] if stage.messages else "",
            points=tuple(stage.passed),
            kill=kills,
            unwitnessed=tuple(stage.unwitnessed),
        )


async def read_session(
    store: Store, session: str = SESSION
) -> tuple[tuple[Item, ...], list[Operation]]:
    """Return what the model is shown of a session, and its operations; nothing is claimed."""
    reader = Reader(store=store)
    items = await reader.history(session, tenant=TENANT, view=View.CACHE)
    records = await reader.records(tenant=TENANT, session=session)
    return items, [from_record(r) for r in records if r.kind is Kind.OPERATION]


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
