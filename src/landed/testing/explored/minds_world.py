"""The world in which a mind is changed, as one value: a store, a worker, the wire, a restaurant.

The user wants a table on Friday, then on Saturday, then perhaps on Friday again or on Sunday. One
worker at a time carries that out; when it crashes, another takes over what it held. Time is a small
number of ticks, each longer than every pause of `core.doubt`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from landed.core.changes import Stored
from landed.core.contract import Contract, Effect
from landed.core.next import what_next
from landed.core.operation import Operation
from landed.core.outcome import LookOutcome, SendOutcome
from landed.core.plan import Plan
from landed.core.question import Question
from landed.core.rules import RULES, Rules
from landed.core.scope import Next, Scope
from landed.core.undo import ENDED, Release
from landed.testing.explored.minds_restaurant import House, Restaurant

TICK_S = 61.0
START_AT = 1_000_000.0
TENANT, SESSION, PRINCIPAL = "default", "s1", "ann"
RESERVE, CANCEL, FEE = "reserve", "cancel", "fee"
FEE_CENTS = "fee_cents"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How much trouble there may be on one way through the world.

    revisions      changes of mind: to Saturday, then back to Friday or on to Sunday
    crashes        times that the worker dies, anywhere, and another takes over
    losses         times that a worker hears nothing more of what it waits for, or cannot send
    late_ticks     ticks that pass while something is still on its way
    send_by_ticks  until when what the user wants may be sent
    shrugs         answers of the user that are neither yes nor no
    inbox          how many arrivals one lap may absorb
    ticks          when a world that is still not at rest is given up as stuck
    states_max     where the search gives up, incomplete
    """

    revisions: int = 1
    crashes: int = 1
    losses: int = 1
    late_ticks: int = 1
    send_by_ticks: int = 100
    shrugs: int = 1
    inbox: int = 1
    ticks: int = 10
    states_max: int = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Driver:
    """What the core relies on the loop around it for; each switch turned over is a wrong design.

    what_next         the core's decision
    adopts_releases   who takes over also takes over the releases
    sends_first       commands are started before the unit they belong to is durable
    """

    what_next: Callable[[Scope, Rules, float], Next] = what_next
    adopts_releases: bool = True
    sends_first: bool = False


@dataclass(frozen=True, kw_only=True)
class Setup:
    """What is explored: the promise of `reserve`, the restaurant, the rules, the loop, the bounds.

    `cancel` promises the same ways of finding out as `reserve`.
    """

    reserve: Contract
    house: House
    rules: Rules = RULES
    driver: Driver = field(default_factory=Driver)
    bounds: Bounds = field(default_factory=Bounds)

    @cached_property
    def tools(self) -> Mapping[str, Contract]:
        """Return the contract of each tool."""
        cancel = Contract(
            effect=Effect.IRREVERSIBLE,
            service=self.reserve.service,
            keyed=self.reserve.keyed,
            compares_payload=self.reserve.compares_payload,
            lookup=self.reserve.lookup,
            close=self.reserve.close,
            escalate_after_s=self.reserve.escalate_after_s,
        )
        return {RESERVE: self.reserve, CANCEL: cancel, FEE: READS}

    @cached_property
    def digests(self) -> Mapping[str, str]:
        """Return what names the contract of each tool."""
        return {tool: f"sha256:{tool}" for tool in self.tools}

    @cached_property
    def contracts(self) -> Mapping[str, Contract]:
        """Return the contracts by that name."""
        return {self.digests[tool]: contract for tool, contract in self.tools.items()}


READS = Contract(effect=Effect.NONE, service="restaurant")


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Message:
    """A send (`question` "") or a question on its way, or what was answered, once it arrived.

    `heard` is whether the worker still waits for the answer.
    """

    operation: str
    question: str
    attempt: int
    heard: bool = True
    outcome: SendOutcome | LookOutcome | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """What trouble is left to come."""

    crashes: int
    losses: int
    late_ticks: int
    shrugs: int


@dataclass(frozen=True, kw_only=True)
class World:
    """Everything there is. It has no slots, so that `but` can copy it in one step.

    The four tables are the stored records, read. `worker` counts the workers before this one; `due`
    is whether it has yet to take its first lap, `wake` whether it wants one when time has passed.
    `wire` is sorted; `pricing` are the releases whose price is being asked. `agreed` are the
    operations and amounts to which the user said yes, `allowed` the operations of which they said
    that they need not be kept.
    """

    now: int = 0
    stored: Stored = field(default_factory=Stored)
    operations: Mapping[str, Operation] = field(default_factory=dict[str, Operation])
    plans: Mapping[str, Plan] = field(default_factory=dict[str, Plan])
    releases: Mapping[str, Release] = field(default_factory=dict[str, Release])
    questions: Mapping[str, Question] = field(default_factory=dict[str, Question])
    last_question: str = ""
    worker: int = 0
    due: bool = False
    wake: bool = False
    wire: tuple[Message, ...] = ()
    pricing: frozenset[str] = frozenset()
    restaurant: Restaurant
    agreed: frozenset[tuple[str, int]] = frozenset()
    allowed: frozenset[str] = frozenset()
    left: Left

    @property
    def at(self) -> float:
        """The time in seconds since the epoch."""
        return START_AT + self.now * TICK_S

    @property
    def who(self) -> str:
        """The name of the worker."""
        return "ABCDEFGH"[self.worker]

    @property
    def latest(self) -> Plan | None:
        """The plan of the latest turn."""
        return next(reversed(list(self.plans.values())), None)

    @property
    def quiet(self) -> bool:
        """Whether nothing happens any more by itself."""
        return not (self.due or self.wake or self.wire or self.pricing or not self.plans)

    @property
    def asked(self) -> Iterable[Question]:
        """The questions about what is not done, the last one of those that ask the same."""
        return {
            asks(question): question
            for question in self.questions.values()
            if self.releases[question.subject].state not in ENDED
        }.values()

    def but(self, **changed: object) -> "World":
        """Return the world with these fields changed."""
        copy = object.__new__(World)
        copy.__dict__.update(self.__dict__)
        copy.__dict__.update(changed)
        return copy

    def on_wire(self, *messages: Message, without: Message | None = None) -> "World":
        """Return the world with these messages on the wire, and without that one."""
        rest = (each for each in self.wire if each is not without)
        return self.but(wire=tuple(sorted((*rest, *messages))))


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
    """Return the world in which the user has not said anything yet."""
    bounds = setup.bounds
    return World(
        restaurant=Restaurant(fee_cents=setup.house.fees_cents[0]),
        left=Left(
            crashes=bounds.crashes,
            losses=bounds.losses,
            late_ticks=bounds.late_ticks,
            shrugs=bounds.shrugs,
        ),
    )


def asks(question: Question) -> tuple[str, str, int | None]:
    """Return what a question asks: two that ask the same are alike to whoever answers."""
    return (question.about, question.subject, question.amount_cents)
