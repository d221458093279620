"""What arrives at a loop: somebody's wish or word, and what came back from outside; values only.

Arrivals stay in the loop's inbox until the commit that absorbed them succeeded.
"""

from dataclasses import dataclass

from landed.core.absorb import CameBack, Looked
from landed.core.approval import Approval, Presented
from landed.core.case import Ruling
from landed.core.operation import Operation
from landed.core.outcome import NoAnswer, Prepared, SendOutcome
from landed.core.plan import Place, Plan, PlanEvent
from landed.core.preview import Changed
from landed.core.question import About
from landed.core.session import Input


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
    `token` is the plan token of one that nothing else begins.
    """

    plan: Plan
    ask_name: str = ""
    approval: Approval | None = None
    question: str = ""
    token: Approval | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Revised:
    """A change of mind: `plan` is the new one, its steps as they are wanted now.

    `operations` are those done for the revised turn so far, `old_plan` its plan ("" for none),
    `releases` the releases that exist of those operations, `drop` the operations given up in so
    many words, `seen` the reads made already (tool, identity, place), `unbegun` the other plans of
    the turn that wait to be begun.
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
    unbegun: tuple[str, ...] = ()


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
    """A yes or a no to an approval, by a button, or a plan token.

    `loads` are records it touches besides; `ask_name` is the name that a commit takes for ever.
    """

    approval: str
    presented: Presented
    yes: bool
    at: float
    loads: tuple[str, ...] = ()
    ask_name: str = ""


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
