"""The rows of an audit, as values: the plan, its events, its steps, the yes that were given.

What they are read from, and how, is in `landed.core.audit`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from landed.core.canonical import Json
from landed.core.operation import Evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRow:
    """A plan: who it is for, how it stands, and the very bytes that its hash is over.

    `shown` is the canonical JSON of each call and its preview; its fingerprint in the domain `plan`
    is `hash`. `basis` is the fingerprint of the facts behind the previews. Times are UTC, seconds
    since the epoch, 0.0 where there is none.
    """

    plan: str
    tenant: str
    session: str
    principal: str
    origin: str
    turn: str
    input: str
    asked: str
    state: str
    attempt: int
    made_at: float
    answer_by: float
    ended_at: float
    hash: str
    basis: str
    supersedes: str
    shown: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRow:
    """One event: when, what, by whom, why, and of which attempt.

    `actor` is a person, `agent`, `clock` or `runtime`. `reason` of a `rejected` yes is its problem.
    `seq` is its position in the journal; 0 for an expiry that the clock brought and that nobody has
    come across yet.
    """

    seq: int
    at: float
    event: str
    actor: str
    reason: str
    attempt: int
    purpose: str = ""
    record: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Authorised:
    """One yes that was given: to what, by whom, when, in which words, to which question."""

    purpose: str
    attempt: int
    by: str
    at: float
    hash: str
    approval: str
    question: str
    asked: str
    said: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRow:
    """What was asked again before a step started: `passed`, `refused`, `changed`, `not asked`."""

    check: str
    about: str
    came: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectRow:
    """One thing that a step made: its type, and the id that the service gave it."""

    type: str
    id: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRow:
    """One step in one attempt.

    `status` is `done`, `replayed` (an earlier attempt did it), `kept` (an earlier plan did),
    `assumed`, `failed`, `unknown`, `under way` or `not done`. Only what an attempt did itself has
    effects. `undone_by` is the operation that took it back.
    """

    attempt: int
    step: int
    tool: str
    summary: str
    arguments: Mapping[str, Json]
    status: str
    operation: str = ""
    observation: str = ""
    key: str = ""
    sends: int = 0
    retries: str = ""
    undone_by: str = ""
    reason: str = ""
    effects: tuple[EffectRow, ...] = ()
    checks: tuple[CheckRow, ...] = ()
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """The audit of one plan."""

    plan: PlanRow
    events: tuple[EventRow, ...]
    steps: tuple[StepRow, ...]
    authorised: tuple[Authorised, ...]
