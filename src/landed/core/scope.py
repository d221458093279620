"""What one lap of the loop looks at, and what it decides: values only.

A scope is what this worker holds open of one session, plus what has arrived since the last lap.
Arrivals stay in the loop's inbox until the commit that absorbed them succeeded.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from landed.core import absorb
from landed.core.approval import Approval
from landed.core.arrival import Arrival
from landed.core.canonical import Json
from landed.core.case import Case
from landed.core.changes import Changes
from landed.core.contract import Contract
from landed.core.incarnation import NEVER_RESTORED, Incarnation
from landed.core.key import Ask
from landed.core.operation import Operation
from landed.core.pacing import Leaving
from landed.core.plan import Plan
from landed.core.question import Question
from landed.core.undo import Release

Turn = Callable[[str, Operation, Leaving], float]
"""Says when something may leave for a service: its name, what it is about, and of which kind."""


def at_once(service: str, operation: Operation, kind: Leaving) -> float:
    """Let everything leave at once: where no pace was given."""
    return 0.0


def no_new_id(kind: str) -> str:
    """Stand in where no record is ever made by a lap."""
    raise LookupError(f"this scope makes no records, but a lap wants an id for a {kind}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sending:
    """Send number `attempt` of an operation, which this process is waiting for."""

    operation: str
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """A question about an operation, which this process is waiting for."""

    operation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Watching:
    """The read that is step `index` of a plan, which this process is waiting for."""

    plan: str
    index: int
    observation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pricing:
    """The price of a release, which this process is waiting for."""

    release: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Checking:
    """The check of a plan's step, or of a release's undo, which this process is waiting for."""

    subject: str
    index: int


Running = Sending | Asking | Watching | Pricing | Checking


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """One lap's view of one session.

    `operations`, `plans`, `releases`, `questions`, `approvals`, `cases` are those this worker holds
    open, by id, and the closed ones that they speak of; `contracts` those they were made under, by
    digest; `tools` the digest of each registered tool's contract, by name; `positions` where the
    journal has the first and the latest event of each record; `new_id` where ids come from;
    `last_question` the last one put in this conversation; `worker` who holds all this; `language`
    what the person is spoken to in; `keys` what approvals are sealed with, the first for new ones;
    `holders` which operation of elsewhere holds a name that is wanted here; `running` what this
    process is waiting for; `slots` how many more sends a tool may have at once, for tools that
    bound it. `turn` says when something may leave for a service. While `draining` nothing new is
    started. `incarnation` says whether the store was restored, and what is older than that.
    """

    operations: Mapping[str, Operation]
    contracts: Mapping[str, Contract]
    arrivals: tuple[Arrival, ...] = ()
    plans: Mapping[str, Plan] = field(default_factory=dict[str, Plan])
    releases: Mapping[str, Release] = field(default_factory=dict[str, Release])
    questions: Mapping[str, Question] = field(default_factory=dict[str, Question])
    approvals: Mapping[str, Approval] = field(default_factory=dict[str, Approval])
    cases: Mapping[str, Case] = field(default_factory=dict[str, Case])
    keys: tuple[bytes, ...] = (b"",)
    last_question: str = ""
    tools: Mapping[str, str] = field(default_factory=dict[str, str])
    new_id: Callable[[str], str] = no_new_id
    positions: Mapping[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    worker: str = ""
    language: str = "en"
    holders: Mapping[str, str] = field(default_factory=dict[str, str])
    running: frozenset[Running] = frozenset()
    slots: Mapping[str, int] = field(default_factory=dict[str, int])
    turn: Turn = at_once
    incarnation: Incarnation = NEVER_RESTORED
    draining: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """Command: send it, now that the record says so."""

    operation: Operation


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepare:
    """Command: compute what every send of the operation will use."""

    operation: Operation


@dataclass(frozen=True, slots=True, kw_only=True)
class Put:
    """Command: put `question` to the service about the operation."""

    operation: Operation
    question: absorb.Question


@dataclass(frozen=True, slots=True, kw_only=True)
class StopWaiting:
    """Command: stop waiting for the send in flight; it may still land."""

    operation: Operation


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """Command: make the read that is step `index` of the plan; `observation` is its id.

    `arguments` are the step's, with what earlier steps made.
    """

    plan: Plan
    index: int
    observation: str
    arguments: Mapping[str, Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class AskPrice:
    """Command: ask what an undo costs now; `observation` is the id of what comes back."""

    release: str
    tool: str
    arguments: Mapping[str, Json]
    ask: Ask
    observation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """Command: ask whether a call may still be carried out as it was approved.

    `subject` is the plan it is step `index` of, or the release whose undo it is (`plan` is None).
    """

    subject: str
    index: int
    plan: Plan | None
    tool: str
    permission: str
    arguments: Mapping[str, Json]
    ask: Ask


@dataclass(frozen=True, slots=True, kw_only=True)
class StopMidway:
    """Command: tell a call that takes the stop token that it may end early."""

    operation: Operation


Command = Prepare | Send | Put | StopWaiting | StopMidway | Watch | AskPrice | Check


@dataclass(frozen=True, slots=True, kw_only=True)
class Next:
    """What one lap decides.

    First `changes` is committed; then, and only then, `commands` are started. The records are the
    scope's after that. `wakes` says when each open operation wants the next lap (UTC seconds);
    those that wait only for an answer or for somebody are not in it. `starved` are the tools that
    had no place left for a send of this scope, `queued` the operations that wait for their turn at
    a service. `answers` are what is said to whoever handed an
    arrival in, by the arrival's identity.
    """

    changes: Changes
    commands: tuple[Command, ...]
    operations: Mapping[str, Operation]
    plans: Mapping[str, Plan]
    releases: Mapping[str, Release]
    questions: Mapping[str, Question]
    last_question: str
    wakes: Mapping[str, float]
    starved: frozenset[str] = frozenset()
    queued: frozenset[str] = frozenset()
    approvals: Mapping[str, Approval] = field(default_factory=dict[str, Approval])
    cases: Mapping[str, Case] = field(default_factory=dict[str, Case])
    answers: Mapping[int, str] = field(default_factory=dict[int, str])
