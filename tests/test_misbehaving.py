"""However a service misbehaves within its contract: all is resolved or in front of a person.

Drawn contracts meet drawn mishaps, callers that give up, plans that are stopped and processes that
die; then comes a quiet time, and records and world are compared.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from landed.core.absorb import CameBack, Moved
from landed.core.contract import Contract
from landed.core.doubt import Verdict
from landed.core.errors import LandedError
from landed.core.key import Ask
from landed.core.lease import Lease
from landed.core.operation import Operation, State
from landed.core.operation_record import from_record
from landed.core.plan import Wanted
from landed.core.rules import Rules
from landed.core.value import Confirmed, Failed, Withdrawn
from landed.runtime.opened import Settings
from landed.runtime.parts import assemble, register
from landed.runtime.runtime import Runtime
from landed.testing import designs, variants
from landed.testing.designs import RIGHT, Design
from landed.testing.doubts.designs import never_looks
from landed.testing.sim import World, current_process
from tests.misbehaving import ANYWHERE, FOCI, QUESTIONS, Act, Drawn, Life, Service, drawn
from tests.runtime.rig import SELDOM, Rig

NEVER = frozenset({State.FAILED, State.WITHDRAWN})
SETTLED = frozenset({State.CONFIRMED, State.FAILED, State.WITHDRAWN})
RESOLVED = SETTLED | {State.ASSUMED, State.UNDECIDED}
Absorb = Callable[[Operation, Contract, CameBack], Moved | None]
Doubt = Callable[[Operation, Contract, float], Verdict]
SPENT = frozenset({"unwanted", "closing", "refused_again"})
QUIET_S = 2_400.0
RUNS, FOCUSED_RUNS, MORE_RUNS = 150, 60, 6_000
TRIES = 400  # How many worlds a wrong design may get through before it counts as unnoticed.


@dataclass(eq=False)
class Program:
    """Plays one drawn world, and says what is wrong at its end."""

    world: World
    drawn: Drawn
    design: Design = RIGHT
    values: list[Any] = field(default_factory=list[Any])
    cases: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        self.rig = Rig(self.world)
        self.service = Service(self.world, self.drawn)
        self.workers = 0

    def play(self) -> list[Operation]:
        """Play the lives and the quiet time after them; returns the operations."""
        for life in self.drawn.lives:
            self._live(life)
            self.world.pass_time(life.away_s)
        self.service.wire.clear()
        self.service.questions.clear()
        self._run(self._rest, lease=SELDOM)
        self.world.settle()
        return self.rig.operations()

    def _live(self, life: Life) -> None:
        name = f"w{self.workers + 1}"
        process = self.world.start(lambda: self._agent(lambda rt: self._acts(rt, life), None))
        if life.killed_after_steps is None:
            self.world.wait(process)
            return
        timeline = self.world.timeline
        until = timeline.steps + life.killed_after_steps
        timeline.drive(lambda: timeline.steps >= until or not process.alive)
        process.kill()
        if life.seen_to_die:
            self.rig.base.worker_died(name)

    def _run(self, script: Callable[[Runtime], Any], *, lease: Lease | None) -> None:
        process = self.world.start(lambda: self._agent(script, lease))
        self.world.wait(process)
        process.result()

    async def _rest(self, rt: Runtime) -> None:
        await asyncio.sleep(QUIET_S)  # virtual time
        self.cases = frozenset(one.operation for one in await rt.inbox())

    async def _agent(self, script: Callable[[Runtime], Any], lease: Lease | None) -> None:
        self.workers += 1
        process = current_process()
        witness = self.rig.base.open_again()

        async def see(call: Any) -> None:
            process.require_alive()
            written = [from_record(one) for one in await witness.load(call.operation)]
            # It may have been given up since, but this very send of it has to be on record.
            if not any(one.tries >= call.attempt for one in written):
                self.service.wrongs.append(f"{call.operation} left before its record said so")

        self.service.see = see
        store: Any = Alive(self.rig.base.open_again(), process.require_alive)
        async with assemble(
            store,
            tools=register([self.service.tool()]),
            settings=Settings(drain_s=2.0),
            rules=self.design.rules,
            what_next=self.design.what_next,
            clock=process.clock,
            ids=self.world.ids,
            worker=f"w{self.workers}",
            lease=lease,
        ) as rt:
            await script(rt)

    async def _acts(self, rt: Runtime, life: Life) -> None:
        calls: list[asyncio.Task[Any]] = []
        plans: list[str] = []
        for act in life.acts:
            await self._act(rt, act, calls, plans)
        self.values += await asyncio.gather(*calls, return_exceptions=True)

    async def _act(
        self, rt: Runtime, act: Act, calls: list[asyncio.Task[Any]], plans: list[str]
    ) -> None:
        arguments: Any = {"to": f"account {act.call // 2}", "cents": act.cents}
        ask = Ask(call_id=f"{act.what} {act.call} {act.cents}", principal="ana")
        match act.what:
            case "perform":
                perform = rt.perform("pay", arguments, ask=ask, patience_s=30.0)
                calls.append(asyncio.ensure_future(perform))
                await asyncio.sleep(0)
            case "plan":
                wanted = [Wanted(tool="pay", arguments=arguments)]
                plans.append((await rt.propose(wanted, ask=ask, patience_s=0.05)).plan)
            case "cancel" if calls:
                calls[act.nth % len(calls)].cancel()
            case "stop" if plans:
                plan = plans[act.nth % len(plans)]
                stop = rt.stop(plan, principal="ana", hard=act.hard, patience_s=10.0)
                calls.append(asyncio.ensure_future(stop))
            case "resolve":
                for id in self.service.taken_up[act.nth :][:1]:
                    calls.append(asyncio.ensure_future(rt.resolve(id, patience_s=2.0)))
            case _:
                await asyncio.sleep(act.seconds)  # virtual time

    def wrongs(self, operations: list[Operation]) -> Iterator[str]:
        """Yield what must not be, as sentences."""
        yield from self.service.wrongs
        for one in operations:
            for is_wrong, says in WRONGS:
                if is_wrong(one, self.service.effects[one.id]):
                    yield f"{one.id} is {one.state}: {says}"
            if one.state is State.UNDECIDED and one.id not in self.cases:
                yield f"{one.id} is undecided, and in front of nobody"
            if one.state is State.ASSUMED and not self.drawn.promises.get("assume_after_s"):
                yield f"{one.id} is assumed, and its contract does not allow that"
            yield from self._unwanted(one)
        if self.service.effects.keys() - {one.id for one in operations}:
            yield "an effect has no record"
        yield from self._told()

    def _unwanted(self, one: Operation) -> Iterator[str]:
        """Nothing is sent once nobody wants it, it is to be closed, or a resend was refused."""
        spent = ""
        for event in self.rig.events(one.id):
            if spent and event in ("sent", "resent"):
                yield f"{one.id} was {event} after it was {spent}"
            spent = event if event in SPENT else spent

    def _told(self) -> Iterator[str]:
        """Nobody was ever told anything final that is not so."""
        for value in self.values:
            match value:
                case Confirmed(operation=id) if not self.service.effects[id]:
                    yield f"somebody was told that {id} happened"
                case Failed(operation=id) | Withdrawn(operation=id) if self.service.effects[id]:
                    yield f"somebody was told that {id} did not happen"
                case BaseException() if not isinstance(value, asyncio.CancelledError | LandedError):
                    yield f"a caller got {value!r}"
                case _:
                    continue


# What is wrong with an operation at the end, by itself and how many effects it had.
WRONGS: Sequence[tuple[Callable[[Operation, int], bool], str]] = (
    (lambda one, effects: effects > 1, "it took effect more than once"),
    (lambda one, effects: one.state not in RESOLVED, "it is not resolved"),
    (lambda one, effects: one.state in NEVER and effects > 0, "and it took effect"),
    (lambda one, effects: one.state is State.CONFIRMED and not effects, "and nothing happened"),
    (lambda one, effects: one.state in SETTLED and not one.evidence, "without evidence"),
)


class Alive:
    """A store that a dead process cannot use."""

    def __init__(self, inner: Any, require_alive: Callable[[], None]) -> None:
        self._inner = inner
        self._require_alive = require_alive

    def __getattr__(self, name: str) -> Any:
        self._require_alive()
        return getattr(self._inner, name)


def _absorbing(rule: Absorb) -> Design:
    return Design(rules=Rules(absorb=rule))


def _doubting(rule: Doubt) -> Design:
    return Design(rules=Rules(doubt=rule))


@contextmanager
def played(
    seed: int, design: Design = RIGHT, *, focus: str = ""
) -> Iterator[tuple[Program, list[Operation]]]:
    """Play the world of a seed."""
    with World(seed) as world:
        program = Program(world, drawn(seed, focus), design)
        yield program, program.play()


@dataclass(eq=False)
class Seen:
    """What came up in a sweep: if something never did, the sweep proves less than it says."""

    mishaps: set[str] = field(default_factory=set[str])
    events: set[str] = field(default_factory=set[str])
    states: set[str] = field(default_factory=set[str])
    promises: set[str] = field(default_factory=set[str])

    def add(self, program: Program, operations: list[Operation]) -> None:
        """Take down what one world showed."""
        self.mishaps |= program.service.seen
        self.events.update(program.rig.events())
        self.states.update(one.state for one in operations)
        kept = program.drawn.promises
        self.promises |= {f"{name}={value}" for name, value in kept.items()}


def sweep(seeds: range, *, focus: str = "") -> Seen:
    """Play the worlds of all these seeds; nothing may be wrong in any."""
    seen = Seen()
    for seed in seeds:
        with played(seed, focus=focus) as (program, operations):
            assert [*program.wrongs(operations)] == [], f"seed {seed}: {program.drawn}"
            seen.add(program, operations)
    return seen


# What a sweep has to have met.
MISHAPS = {*ANYWHERE, "copied", "receipt_later", "silent", *(f"asked {one}" for one in QUESTIONS)}
CLOSINGS = {f"close {one}" for one in QUESTIONS}
EVENTS = {
    *("acknowledged", "accepted", "refused", "refused_again", "not_sent", "never_sent"),
    *("answer_lost", "found", "read_back", "read_absent", "lag_over", "looked", "resent"),
    *("closing", "closed_empty", "absent_for_good", "assumed", "gave_up", "unwanted"),
    *("withdrawn", "blocked", "stop_asked", "stopped"),
}
TABLE: Mapping[str, Sequence[object]] = {
    "effect": ("reversible", "irreversible"),
    "when_unknown": ("reconcile", "escalate", "block"),
    "on_interrupt": ("finish", "wait", "stop_and_resolve"),
    "compares_payload": (True, False),
    "lookup": (True, False),
    "close": (True, False),
    "read_back": (True, False),
    "retention_s": (None, 300.0, 86_400.0),
    "refuses_after_s": (None, 30.0, 120.0),
    "settlement_lag_s": (0.0, 20.0),
    "assume_after_s": (None, 200.0),
    "escalate_above": (1_000.0,),
    "max_tries": (1, 2, 5),
}


@pytest.mark.req("S4-36", "S4-37", "S4-22", "S4-50", "S4-52", "S4-47", "S4-12", "S4-20", "S4-49")
@pytest.mark.req("S0-26", "K9", "K10", "K11")
@pytest.mark.fault("X50", "X51", "X53", "X54", "X55", "X56", "X57", "X59", "X60")
def test_whatever_misbehaves_all_is_resolved_or_in_front_of_a_person_and_none_doubled() -> None:
    seen = sweep(range(RUNS))

    assert MISHAPS - seen.mishaps == set()
    assert EVENTS - seen.events == set()
    assert seen.states == RESOLVED
    table = {f"{name}={value}" for name, values in TABLE.items() for value in values}
    assert table - seen.promises == set()


@pytest.mark.req("S4-37", "S4-38", "K11")
@pytest.mark.parametrize("focus", FOCI)
def test_so_it_is_where_drawing_seldom_gets(focus: str) -> None:
    seen = sweep(range(FOCUSED_RUNS), focus=focus)

    assert len(seen.states) > 1
    assert focus != "closing" or CLOSINGS - seen.mishaps == set()


@pytest.mark.req("S4-36", "S4-37")
@pytest.mark.parametrize("seed", [1904, 2849])
def test_so_it_is_in_worlds_that_once_showed_a_fault(seed: int) -> None:
    sweep(range(seed, seed + 1))


@pytest.mark.services
@pytest.mark.timeout(1_800)
@pytest.mark.req("S4-36", "S4-37", "S4-47")
def test_so_it_is_in_thousands_of_worlds() -> None:
    sweep(range(RUNS, MORE_RUNS))
    for focus in FOCI:
        sweep(range(FOCUSED_RUNS, MORE_RUNS // 10), focus=focus)


# Wrong designs: by name, the focus and the seed of a world in which each of them was noticed.

NOTICED: Mapping[str, tuple[Design, str, int]] = {
    "a time-out is a no": (designs.TIMEOUT_IS_NO, "", 0),
    "an absence is a no": (designs.LOOKUP_ONLY, "", 29),
    "a stopped wait is a cancel": (designs.NAIVE_CANCEL, "", 27),
    "a refused resend is a no": (_absorbing(variants.refused_resend_is_no), "", 104),
    "a receipt is a yes": (_absorbing(variants.receipt_is_yes), "", 29),
    "a key is never forgotten": (_absorbing(variants.never_forgets), "", 111),
    "an answer is of when it came": (_absorbing(variants.answered_is_asked), "deadline", 51),
    "a lookup never lags": (_absorbing(variants.never_lags), "deadline", 11),
    "sent again unwanted": (_doubting(variants.resend_unwanted), "", 170),
    "sent again refused": (_doubting(variants.resend_refused), "", 104),
    "sent again uncompared": (_doubting(variants.resend_uncompared), "", 22),
    "sent again on a maybe": (_doubting(variants.resend_on_maybe), "", 111),
    "sent again after closing": (_doubting(variants.resend_after_close), "closing", 11),
    "sent again forgotten": (_doubting(variants.resend_forgotten), "retention", 1),
    "nobody is asked": (_doubting(variants.never_asks), "", 0),
    "nobody looks": (_doubting(never_looks), "", 0),
}


@pytest.mark.req("S4-36", "S4-37", "F4-01", "F4-05", "F4-06", "F4-07", "F4-08", "F4-10")
@pytest.mark.parametrize("name", NOTICED)
def test_a_wrong_design_is_noticed(name: str) -> None:
    design, focus, seed = NOTICED[name]

    assert any(_goes_wrong(design, focus, (seed + n) % TRIES) for n in range(TRIES))


def _goes_wrong(design: Design, focus: str, seed: int) -> bool:
    with played(seed, design, focus=focus) as (program, operations):
        return any(program.wrongs(operations))
