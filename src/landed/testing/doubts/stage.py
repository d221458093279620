"""Plays a scenario of doubt in a simulated world: virtual time, processes that can be killed."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

from landed.core.case import CaseState, case_from
from landed.core.changes import Changes, Kind
from landed.core.history import Item, View
from landed.core.lease import Lease
from landed.core.operation import Operation, State
from landed.core.store import Store
from landed.core.tool import Tool
from landed.runtime.inbox import Inbox
from landed.runtime.parts import assemble, register
from landed.runtime.reader import Reader
from landed.runtime.runtime import Runtime
from landed.stores.sqlite import open_sqlite
from landed.testing.acting import TENANT
from landed.testing.designs import RIGHT
from landed.testing.doubts.around import Witnessed
from landed.testing.doubts.places import Held, Place
from landed.testing.doubts.scenario import DoubtScenario
from landed.testing.doubts.scripts import PHRASES
from landed.testing.doubts.teller import Teller
from landed.testing.faults import FaultyStore, FaultyTool, Point, Points, parse_point
from landed.testing.inline import Base
from landed.testing.models import ScriptedModel
from landed.testing.scenario import PROCESSES_MAX, Ran, Witness, read_session
from landed.testing.sim import World, current_process
from landed.testing.timeline import Timeline

SETTLED = frozenset({State.CONFIRMED, State.FAILED, State.WITHDRAWN})
SELDOM = Lease(lease_s=900.0, beat_s=300.0)  # Hours go by here: a heartbeat is not free.


class DoubtStage:
    """The simulated world that a scenario of doubt is played in."""

    lease: Lease | None = SELDOM

    def __init__(self, scenario: DoubtScenario, world: World, base: Base) -> None:
        self.scenario = scenario
        self.world = world
        self.base = base
        self.place: Place = scenario.place(world)
        self.timeline = Timeline(now=lambda: world.timeline.now_s, services=self._services)
        self.messages: list[str] = []
        self.passed: list[tuple[Point, ...]] = []
        self.unwitnessed: list[str] = []
        self._heard = 0
        self._workers = 0

    def play(self, kill: Sequence[str]) -> None:
        """Run one process after the other until one of them gets to the end of the script."""
        kills = [*kill, ""]
        for number in range(PROCESSES_MAX):
            point = kills[number] if number < len(kills) else ""
            count = self.scenario.together if number else 1
            first = self._workers + 1
            started = [
                self.world.start(partial(self._process, point, first + n), name=f"agent-{n}")
                for n in range(count)
            ]
            self.world.wait(*started)
            crashed = [process.ended().crashed_at for process in started]
            if None in crashed:
                break
            for worker in range(first, first + count):
                self.base.worker_died(f"worker-{worker}")
            self.timeline.add("crash", crashed[0] or "")
            self.world.pass_time(self.scenario.away_s)
        self.world.settle()

    async def _process(self, kill: str, worker: int) -> None:
        process = current_process()
        points = Points(die=process.crash, kill=parse_point(kill) if kill else None)
        self._workers = max(worker, self._workers)
        opened = self.base.open_again()
        store = FaultyStore(
            self.scenario.design.reopen(opened) if worker > 1 else opened,
            points=points,
            committed=self._committed,
            fenced=lambda lost: self.timeline.add("fenced", str(lost)),
            alive=process.require_alive,
        )
        witness = Witness(self.base.open_again(), self.unwitnessed)
        try:
            await self._agent(store, points, witness, worker)
        finally:
            self.passed.append(tuple(points.passed))

    async def _agent(self, store: Store, points: Points, witness: Witness, worker: int) -> None:
        kept = self.scenario
        rt = assemble(
            store,
            tools=register(self._tools(points, witness)),
            settings=kept.settings,
            rules=kept.design.rules,
            what_next=kept.design.what_next,
            clock=current_process().clock,
            ids=self.world.ids,
            worker=f"worker-{worker}",
            lease=self.lease,
        )
        async with rt:
            if worker > 1:
                self.timeline.add("restart", f"{rt.recovered} operation(s) in the log")
            await self._act(rt, worker)

    async def _act(self, rt: Runtime, worker: int) -> None:
        """Have one process act, whose worker is the `worker`th."""
        teller = Teller(
            rt=rt,
            model=ScriptedModel(script=PHRASES),
            timeline=self.timeline,
            messages=self.messages,
            place=self.place,
        )
        await self.scenario.script(teller)

    def _tools(self, points: Points, witness: Witness) -> list[Tool]:
        design = self.scenario.design
        tools = [design.wrap(FaultyTool(tool, points)) for tool in self.place.tools()]
        if design is not RIGHT:
            return tools
        effects = [tool for tool in tools if tool.contract.effect != "none"]
        reads = [tool for tool in tools if tool.contract.effect == "none"]
        return [*reads, *(Witnessed(tool, witness.see_operation) for tool in effects)]

    def _committed(self, changes: Changes) -> None:
        """Tell of what became durable, and of the cases that it opens and closes."""
        self.timeline.committed(changes)
        for move in changes.moves:
            if move.after.kind is Kind.CASE:
                case = case_from(move.after)
                stands = "waits for a person" if case.state is CaseState.OPEN else "is closed"
                by = f" by {case.by}" if case.by else ""
                self.timeline.add("case", f"{case.subject} {case.why}: {stands}{by}")

    def _services(self, timeline: Timeline) -> None:
        every = self.place.log()
        new, self._heard = every[self._heard :], len(every)
        for at, text in new:
            timeline.append(self.place.name, text, at_s=at - self.world.start_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """What the store holds in the end."""

    items: tuple[Item, ...]
    story: tuple[Item, ...]
    operations: list[Operation]
    cases: Held


def run(
    scenario: DoubtScenario,
    *,
    kill: Sequence[str] | None = None,
    seed: int | None = None,
    base: Base | None = None,
) -> Ran:
    """Play a scenario and say how it ended; see `landed.testing.scenario.run`."""
    ran, _ = play(scenario, kill=kill, seed=seed, base=base)
    return ran


def play(
    scenario: DoubtScenario,
    *,
    kill: Sequence[str] | None = None,
    seed: int | None = None,
    stage_of: type[DoubtStage] = DoubtStage,
    base: Base | None = None,
) -> tuple[Ran, DoubtStage]:
    """Play a scenario; returns how it ended, and the stage as it was left, its place closed."""
    kills = scenario.kill if kill is None else tuple(kill)
    with ExitStack() as stack:
        world = stack.enter_context(World(seed))
        stage = stage_of(scenario, world, base or open_sqlite(":memory:"))
        stack.callback(stage.place.close)
        stage.play(kills)
        read = world.run(partial(_look, stage.base), name="reader").result
        assert read is not None
        stage.timeline.services(stage.timeline)
        ran = Ran(
            scenario=scenario,
            timeline=stage.timeline,
            world={scenario.service: stage.place.holds(), "cases": read.cases},
            reconciled=agree(read.operations, stage.place),
            history=read.items,
            story=read.story,
            message=stage.messages[-1] if stage.messages else "",
            points=tuple(stage.passed),
            kill=kills,
            unwitnessed=tuple(stage.unwitnessed),
        )
    return ran, stage


def agree(operations: Sequence[Operation], place: Place) -> bool:
    """Whether the records are settled, and say of each effect what there is, and no other."""
    if any(operation.state not in SETTLED for operation in operations):
        return False
    landed = [place.made_by(one) for one in operations if one.state is State.CONFIRMED]
    return sorted(landed) == sorted(place.made())


async def _look(base: Base) -> Read:
    """Read what is recorded; nothing is claimed."""
    store = base.open_again()
    items, operations = await read_session(store)
    story, _ = await read_session(store, view=View.STORY)
    cases = await Inbox(reader=Reader(store=store), tenant=TENANT).cases()
    held: Held = [
        {"id": f"C{n}", "text": f"C{n} {one.tool} {one.why}", "operation": one.operation}
        for n, one in enumerate(cases, 1)
    ]
    return Read(items=items, story=story, operations=operations, cases=held)
