"""What a call comes to, as values to `match` on: never an exception for time-outs or doubt.

    match await rt.perform("reserve_table", {"day": "Fri"}):
        case Confirmed(result=table): ...
        case Failed(reason=why): ...          # definitely no effect
        case Unknown(operation=op): ...       # may have happened; it is being found out

Each carries `.operation` (the id to look up) and `.text` (the sentence for a model). `replayed`
says that this call joined an operation that an earlier call of the same ask had made.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from landed.core.canonical import Json
from landed.core.contract import Contract
from landed.core.operation import Operation, State
from landed.core.outcome import LookOutcome
from landed.core.plan import PlanState
from landed.core.preview import Changed
from landed.core.sentences import to_model


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmed:
    """It took effect. `complete` is False when it was ended early and may have run in part."""

    operation: str
    text: str
    result: Json
    complete: bool = True
    replayed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """Definitely no effect, and `reason` says how that is known."""

    operation: str
    text: str
    reason: str
    replayed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Withdrawn:
    """Taken back before anything was sent."""

    operation: str
    text: str
    reason: str
    replayed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """The service took it; whether it landed is still to be seen."""

    operation: str
    text: str
    result: Json
    replayed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumed:
    """Treated as landed, because nobody can tell and its contract declares that harmless."""

    operation: str
    text: str
    replayed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """Nobody answered (yet). It may have happened; it goes on being found out."""

    operation: str
    text: str
    replayed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Undecided:
    """It cannot be found out; a person has to."""

    operation: str
    text: str
    replayed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocked:
    """Not sent: operation `by` touches the same thing and is not settled.

    `by` is `incarnation` where the store was restored and is not reconciled yet.
    """

    operation: str
    text: str
    by: str
    replayed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """A call without an effect was answered; `operation` names the observation."""

    operation: str
    text: str
    result: Json
    replayed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Unanswered:
    """A call without an effect got no answer within its bounds; nothing was changed by it."""

    operation: str
    text: str
    reason: str
    replayed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What a service says by itself (a webhook, a delivery receipt), once it is verified.

    It is about an `operation`, or about whatever was sent under `key`. The outcome is `Found` where
    it happened, `Absent` where the service says that it did not and will not, `NotYet` between; a
    `position` in it lets an older receipt that comes later be told apart.
    """

    outcome: LookOutcome
    operation: str = ""
    key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A yes to confirm, retry or undo, or a plan token, good until `answer_by` (UTC seconds).

    The `token` is for code, such as a button; it is shown to nobody, and no model ever sees it. ""
    when it was handed out before: offer it again for a new one.
    """

    purpose: str
    answer_by: float
    token: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepValue:
    """A step as it stands: its summary, `at` (waiting, out, done, broken), what it made, and when.

    `replayed` says that an earlier attempt did it. `type` and `made` are what the tool made,
    `arguments` what it is called with, `targets` the resources it touches.
    """

    tool: str
    summary: str
    at: str
    operation: str = ""
    attempt: int = 1
    replayed: bool = False
    type: str = ""
    made: Json = None
    arguments: Mapping[str, Json] = field(default_factory=dict[str, Json])
    targets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanValue:
    """A plan as it stands: its `state`, what the person is told of its turn, what it did.

    `to_model` is what a model is told. `questions` wait for the person's answer, `offer` is the yes
    that they may give, `changed` are the facts that moved since the preview. `undo_by` is until
    when it may be taken back as a whole, None where it can't be. `again` is the new preview of a
    plan that could not be carried out as it was approved. `fingerprint` covers what was shown:
    calls, figures and the facts they stand on; `version` is one more after each thing that happened
    to the plan, `made_at` when it was made (UTC seconds), `principal` and `session` whose it is,
    `agreed_by` who said yes to a plan that its token begins. `replayed` says that this call joined
    a plan that an earlier call of the same ask, or an earlier yes, had set going.
    """

    plan: str
    turn: str
    state: PlanState
    text: str
    operations: tuple[str, ...]
    questions: tuple[str, ...] = ()
    replayed: bool = False
    attempt: int = 1
    to_model: str = ""
    steps: tuple[StepValue, ...] = ()
    offer: Offer | None = None
    changed: tuple[Changed, ...] = ()
    undo_by: float | None = None
    again: str = ""
    fingerprint: str = ""
    version: int = 0
    made_at: float = 0.0
    principal: str = ""
    session: str = ""
    agreed_by: str = ""


Value = (
    Confirmed
    | Failed
    | Withdrawn
    | Accepted
    | Assumed
    | Unknown
    | Undecided
    | Blocked
    | Answered
    | Unanswered
)


def value_of(operation: Operation, contract: Contract, *, replayed: bool = False) -> Value:
    """Return an operation as the value its caller matches on."""
    id, text = operation.id, to_model(operation, contract)
    reason = operation.evidence[-1].says if operation.evidence else ""
    match operation.state:
        case State.CONFIRMED:
            return Confirmed(
                operation=id,
                text=text,
                result=operation.result,
                complete=operation.complete,
                replayed=replayed,
            )
        case State.FAILED:
            return Failed(operation=id, text=text, reason=reason, replayed=replayed)
        case State.WITHDRAWN:
            return Withdrawn(operation=id, text=text, reason=reason, replayed=replayed)
        case _:
            return _unsettled(operation, text, replayed=replayed)


def _unsettled(operation: Operation, text: str, *, replayed: bool) -> Value:
    id = operation.id
    match operation.state:
        case State.ACCEPTED:
            return Accepted(operation=id, text=text, result=operation.result, replayed=replayed)
        case State.ASSUMED:
            return Assumed(operation=id, text=text, replayed=replayed)
        case State.UNDECIDED:
            return Undecided(operation=id, text=text, replayed=replayed)
        case _ if operation.blocked_by:
            return Blocked(operation=id, text=text, by=operation.blocked_by, replayed=replayed)
        case _:
            return Unknown(operation=id, text=text, replayed=replayed)
