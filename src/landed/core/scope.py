"""What one lap of the loop looks at, and what it decides: values only.

A scope is what this worker holds open of one session, plus what has arrived since the last lap.
Arrivals stay in the loop's inbox until the commit that absorbed them succeeded.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from landed.core import absorb
from landed.core.absorb import CameBack, Looked
from landed.core.approval import Approval, Presented
from landed.core.canonical import Json
from landed.core.case import Case, Ruling
from landed.core.changes import Changes
from landed.core.contract import Contract
from landed.core.key import Ask
from landed.core.operation import Operation
from landed.core.outcome import NoAnswer, Prepared, SendOutcome
from landed.core.plan import Place, Plan, PlanEvent
from landed.core.preview import Changed
from landed.core.question import About, Question
from landed.core.session import Input
from landed.core.undo import Release


def no_new_id(kind: str) -> str:
    """Stand in where no record is ever made by a lap."""
    raise LookupError(f"this scope makes no records, but a lap wants an id for a {kind}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposed:
    """A call somebody wants: an operation that is not stored yet.

    `ask_name` is the name its ask takes for ever, "" where it has no call id.
    """

    operation: Operation
    ask_name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedAgain:
    """The same ask came again for a blocked operation: it may try once more."""

    operation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LetGo:
    """The caller no longer waits for it, or no longer wants it (`reason`, `at` UTC seconds)."""

    operation: str
    reason: str
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LookNow:
    """Somebody wants to know now: the next question need not wait its turn."""

    operation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """The caller was handed the operation as it stood, in `state`, before it was settled."""

    operation: str
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Withdraw:
    """Take back what was not sent (recovery and drain do so with blocked ones)."""

    operation: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A plan somebody wants: not stored yet.

    Where a person has to agree first, `approval` is what they can give, `question` how it is asked.
    """

    plan: Plan
    ask_name: str = ""
    approval: Approval | None = None
    question: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Revised:
    """A change of mind: `plan` is the new one, its steps as they are wanted now.

    `operations` are those done for the revised turn so far, `old_plan` its plan ("" for none),
    `releases` the releases that exist of those operations, `drop` the operations given up in so
    many words, `seen` the reads made already (tool, identity, place).
    """

    plan: Plan
    ask_name: str
    old_plan: str
    approval: Approval | None = None
    question: str = ""
    operations: tuple[str, ...] = ()
    releases: tuple[str, ...] = ()
    drop: frozenset[str] = frozenset()
    seen: tuple[tuple[str, str, Place], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """What the read that is step `index` of a plan came back with."""

    plan: str
    index: int
    observation: str
    outcome: SendOutcome
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Priced:
    """What the tool that knows the price of an undo came back with."""

    release: str
    observation: str
    outcome: SendOutcome
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """A person's answer to a question: yes, no, or None when they said something else.

    `heard` is the input it came with, not stored yet; None where it came by a button.
    """

    question: str
    yes: bool | None
    principal: str
    heard: Input | None
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AskPerson:
    """A question to be put to the person: what a turn's words meant, or a claim about a record."""

    turn: str
    tenant: str
    session: str
    principal: str
    text: str
    about: About
    subject: str = ""
    claim: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Presenting:
    """A yes or a no to an approval, by a button. `loads` are records it touches besides."""

    approval: str
    presented: Presented
    yes: bool
    at: float
    loads: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Offering:
    """An approval that somebody may give from now on; `question` asks for it, "" where none does.

    Where the plan has one of that kind for that attempt (`again`), what is handed out is new.
    """

    approval: Approval
    question: str = ""
    again: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanTold:
    """What becomes of a plan by somebody's word: `event` is one of those that need no approval.

    `by` is who said so (`clock` for the time that was over), `why` their reason. `hard` has a stop
    wait for nobody; `send_by` is the new bound of a plan that is tried once more; `loads` are
    records it touches besides.
    """

    plan: str
    event: PlanEvent
    by: str
    at: float
    why: str = ""
    hard: bool = False
    send_by: float = 0.0
    loads: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """Whether a step, or an undo, may still be carried out as it was approved.

    `subject` is the plan or the release. `refused` says why not, "" where it may; `changed` are the
    facts that moved since the preview.
    """

    subject: str
    index: int
    refused: str = ""
    changed: tuple[Changed, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Readied:
    """What a tool computed for all sends of an operation, or why it could not."""

    operation: str
    outcome: Prepared | NoAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruled:
    """A person's ruling on an operation; `made` is the id of what it made, where it landed."""

    operation: str
    ruling: Ruling
    by: str
    note: str = ""
    made: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseRuled:
    """A person's ruling on a case that is a record of its own."""

    case: str
    ruling: Ruling
    by: str
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """An input that brings evidence: not stored yet, and recorded with what it settles."""

    heard: Input
    back: Looked


Arrival = (
    Proposed
    | AskedAgain
    | CameBack
    | LetGo
    | LookNow
    | Told
    | Withdraw
    | Planned
    | Revised
    | Observed
    | Priced
    | Answered
    | AskPerson
    | Presenting
    | Offering
    | PlanTold
    | Checked
    | Readied
    | Ruled
    | CaseRuled
    | Heard
)


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
    bound it. While `draining` nothing new is started.
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
    had no place left for a send of this scope. `answers` are what is said to whoever handed an
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
    approvals: Mapping[str, Approval] = field(default_factory=dict[str, Approval])
    cases: Mapping[str, Case] = field(default_factory=dict[str, Case])
    answers: Mapping[int, str] = field(default_factory=dict[int, str])
