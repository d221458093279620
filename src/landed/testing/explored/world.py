"""The explored world as one value: the store, two workers, what is on its way, and the far side.

Time is a small number of ticks. A tick is longer than every pause of `core.doubt`, so that one tick
ends each of them, and what happens between two ticks happens in no time at all.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from landed.core.absorb import CameBack, Question
from landed.core.arrival import LetGo, LookNow, Proposed
from landed.core.changes import Changes, Record, Stored, apply
from landed.core.contract import Contract
from landed.core.key import Ask, key_for
from landed.core.next import what_next
from landed.core.operation import Operation
from landed.core.rules import RULES, Rules
from landed.core.scope import Asking, Next, Scope, Send, Sending
from landed.testing.explored.ledger import Line

TICK_S = 100.0
START_AT = 1_000_000.0  # Far from 0.0, which means "never" in a record.
NOBODY = -1
WORKERS = ("A", "B")
DIGEST = "sha256:explored"
TARGET = "target/default/explored/table"


def time_of(tick: int) -> float:
    """Return the time of a tick, in seconds since the epoch."""
    return START_AT + tick * TICK_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How much trouble there may be. Crashes, lost messages and adoptions are not bounded.

    troubled_ticks  ticks in which anything may happen
    calm_ticks      ticks after that, in which only what is healthy happens
    send_by_ticks   until when the operation may be sent
    copies          requests that the network delivers twice, unless the first was refused
    let_gos         times that the caller lets go
    looks           times that somebody asks to look now
    inbox           how much may wait in an inbox until its worker takes a lap; with 0, each lap
                    absorbs one arrival, as it comes
    sleepers        a worker whose claim is taken over may sleep on it, and act on what it knew;
                    without it, it hears of that at once (what it has sent, or is just sending,
                    goes on all the same)
    stale_questions a worker may still wait for the answer to a question when its claim is gone,
                    and take it for one to its next claim's
    late_replies    an answer may still come in after its worker stopped waiting (a thread)
    late_closes     a close may still arrive after its worker stopped waiting; without it, it has
                    arrived by then or never will
    proxy           who copies a request also passes on the copy's answer in place of the first, as
                    a proxy does that sends again by itself; no contract survives that
    restores        times that a backup is made and put back later: what happened between is real,
                    and forgotten here
    states_max      where the search gives up, incomplete
    """

    troubled_ticks: int = 4
    calm_ticks: int = 3
    send_by_ticks: int = 2
    copies: int = 1
    let_gos: int = 1
    looks: int = 0
    inbox: int = 0
    sleepers: bool = True
    stale_questions: bool = False
    late_replies: bool = True
    late_closes: bool = False
    proxy: bool = False
    restores: int = 0
    states_max: int = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Driver:
    """What the core relies on the loop around it for; each switch turned over is a wrong design.

    what_next       the core's decision
    commit          the store's one writing verb
    sends_first     commands are started before the unit they belong to is durable
    waits_anew      a send has its whole deadline from the moment it leaves, however late that is,
                    and not from the time that was recorded for it
    stamps_leaving  a send carries the time it left, not the time that was recorded for it
    """

    what_next: Callable[[Scope, Rules, float], Next] = what_next
    commit: Callable[[Stored, Changes], tuple[Stored, tuple[Record, ...]]] = apply
    sends_first: bool = False
    waits_anew: bool = False
    stamps_leaving: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What is explored: the promises of a tool, the rules, the loop around them, the bounds."""

    contract: Contract
    rules: Rules = RULES
    driver: Driver = field(default_factory=Driver)
    bounds: Bounds = field(default_factory=Bounds)


Heard = Proposed | LetGo | LookNow | CameBack
"""What can arrive at a worker here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """One process: what it has in memory, what arrived, what it has still to send.

    `decided` is a unit that is not committed yet: only a wrong design has one between two steps.
    """

    operations: Mapping[str, Operation] = field(default_factory=dict[str, Operation])
    inbox: tuple[Heard, ...] = ()
    outbox: tuple[Send, ...] = ()
    running: frozenset[Sending | Asking] = frozenset()
    decided: Next | None = None

    @property
    def idle(self) -> bool:
        """Whether there is nothing to do a lap for."""
        return not (self.operations or self.inbox or self.outbox or self.decided)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A send (`question` None) or a question on its way; `to` is the worker that waits for it.

    `sent_at` is the time that it carries; `from_at` from when its deadline counts, where that
    matters (the far side forgets keys), else 0.0; `copy` is whether the network made it.
    """

    operation: str
    question: Question | None
    attempt: int
    sent_at: float
    to: int
    from_at: float = 0.0
    copy: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The far side's answer on its way back to the worker `to`; it has no time until it arrives."""

    to: int
    came: CameBack


@dataclass(frozen=True, slots=True, kw_only=True)
class Backup:
    """What the store held when a backup was made, and its records, read."""

    stored: Stored
    known: Mapping[str, Operation]


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Everything there is. `known` are the stored records, read; the counters are what is left.

    `restored` counts how often a backup was put back.
    """

    now: int = 0
    stored: Stored = field(default_factory=Stored)
    known: Mapping[str, Operation] = field(default_factory=dict[str, Operation])
    workers: tuple[Worker, Worker]
    requests: frozenset[Request] = frozenset()
    replies: frozenset[Reply] = frozenset()
    ledger: Mapping[str, Line] = field(default_factory=dict[str, Line])
    copies: int = 0
    let_gos: int = 0
    looks: int = 0
    restores: int = 0
    restored: int = 0
    backup: Backup | None = None

    @property
    def at(self) -> float:
        """The time in seconds since the epoch."""
        return time_of(self.now)

    def line(self, operation: str) -> Line:
        """What the far side holds of an operation."""
        return self.ledger.get(operation, Line())

    def claimed_by(self, worker: Worker) -> bool:
        """Whether the claim under which a worker holds something is the one that stands."""
        return any(h.epoch == self.known[h.id].epoch for h in worker.operations.values())

    def replies_to(self, which: int) -> list[Reply]:
        """Return the answers on their way to a worker."""
        return [reply for reply in self.replies if reply.to == which]

    def with_worker(self, which: int, worker: Worker, **changed: object) -> "World":
        """Return the world with one worker, and perhaps more, in another state."""
        first, second = self.workers
        pair = (worker, second) if which == 0 else (first, worker)
        return replace(self, workers=pair, **changed)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that happens, the world after it, and what is wrong with it ("": nothing).

    `calm` steps are what a healthy world does by itself.
    """

    says: str
    world: World
    calm: bool = False
    wrong: str = ""


def first_world(setup: Setup) -> World:
    """Return the world in which worker A was just handed a call, and nothing is written yet."""
    bounds = setup.bounds
    return World(
        workers=(Worker(inbox=(Proposed(operation=proposed(setup)),)), Worker()),
        copies=bounds.copies if setup.contract.keyed else 0,
        let_gos=bounds.let_gos,
        looks=bounds.looks,
        restores=bounds.restores,
    )


def proposed(setup: Setup) -> Operation:
    """Return the call that the caller wants."""
    send_by = time_of(setup.bounds.send_by_ticks)
    return Operation(
        id="op-a1",
        tenant="default",
        session="s1",
        turn="T1",
        tool="reserve_table",
        arguments={},
        ask=Ask(session="s1", turn="T1", send_by=send_by),
        key=key_for(setup.contract, operation="op-a1", session="s1"),
        contract=DIGEST,
        identity="sha256:explored",
        names=(TARGET,),
        made_at=START_AT,
        send_by=send_by,
        worker=WORKERS[0],
    )
