"""A case: an operation, or an effect that nobody recorded, waiting for a person.

An operation that cannot be found out is a case by its state (`undecided`). What is settled and yet
needs somebody is a record of its own: late evidence that says otherwise, a find that nothing
explains, an effect that no record speaks of. A ruling has a name and a note, and is evidence.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from landed.core.canonical import Json
from landed.core.changes import Kind, Record
from landed.core.contract import Contract
from landed.core.errors import IllegalEventError
from landed.core.key import name_of
from landed.core.operation import Evidence, Operation, Source, State


class Why(StrEnum):
    """Why somebody has to look."""

    UNDECIDED = "undecided"  # nobody could find out whether it took effect
    CONTRADICTED = "contradicted"  # it was settled, and a later answer says otherwise
    UNEXPLAINED = "unexplained"  # it is there, after looks that had to see it and did not
    UNRECORDED = "unrecorded"  # the service holds an effect that no record here speaks of


class Ruling(StrEnum):
    """What a person says about a case."""

    LANDED = "landed"  # it took effect
    ABSENT = "absent"  # it did not, and will not
    HOLD = "hold"  # nobody knows yet; it stays open
    LIFT = "lift"  # it stays open, but what it holds is let go of
    SIGN_OFF = "sign_off"  # seen, and it may stay as it is


class CaseState(StrEnum):
    """Where a case that is a record of its own is."""

    OPEN = "open"
    CLOSED = "closed"


class CaseEvent(StrEnum):
    """Its events."""

    OPENED = "case_opened"
    NOTED = "case_noted"
    CLOSED = "case_closed"


CASE_MOVES: Mapping[CaseState, Mapping[CaseEvent, CaseState]] = {
    CaseState.OPEN: {CaseEvent.NOTED: CaseState.OPEN, CaseEvent.CLOSED: CaseState.CLOSED},
    CaseState.CLOSED: {},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """The record of a case. `subject` is the operation, or the effect's id at the service.

    `says` is what is known; `ruling`, `by` and `note` are a person's last word, `at` when they said
    it. Times are UTC, seconds since the epoch.
    """

    why: Why
    subject: str
    tenant: str
    session: str
    tool: str
    says: str
    opened_at: float

    state: CaseState = CaseState.OPEN
    version: int = 0
    epoch: int = 0
    ruling: str = ""
    by: str = ""
    note: str = ""
    at: float = 0.0

    @property
    def id(self) -> str:
        """Return its one id: the same thing is one case, however often it is noticed."""
        return case_id(self.why, self.tool, self.subject)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A case as a person is shown it: enough to decide from this alone.

    `state` is where the operation is, or the case that is a record of its own; `since` when it was
    first sent, or noticed (UTC seconds). `arguments` are as they were authorised, by `principal` in
    `turn`, where the user's `words` were; `key` is what to search for at the service, which surely
    knows it until `known_until` (UTC seconds, 0.0 where it never forgets); `retries`, `undoes` and
    `plan` its lineage; `may` the rulings that can be given, none where it is over.
    """

    id: str
    why: Why
    state: str
    says: str
    since: float
    tenant: str
    session: str
    tool: str
    operation: str = ""
    key: str = ""
    known_until: float = 0.0
    arguments: Mapping[str, Json] | None = None
    principal: str = ""
    turn: str = ""
    words: str = ""
    plan: str = ""
    retries: str = ""
    undoes: str = ""
    evidence: tuple[Evidence, ...] = ()
    may: tuple[Ruling, ...] = ()


def case_id(why: Why, tool: str, subject: str) -> str:
    """Return the id of a case."""
    return name_of("case", why, tool, subject)


def case_moved(case: Case, event: CaseEvent, **changed: object) -> Case:
    """Return the case after `event`; raises `IllegalEventError` where it is closed."""
    after = CASE_MOVES[case.state].get(event)
    if after is None:
        raise IllegalEventError(f"{case.id} is {case.state}: it cannot be {event}")
    return replace(
        case,
        state=after,
        version=case.version + 1,
        **changed,  # type: ignore[arg-type]
    )


def about(operation: Operation, why: Why, *, at: float) -> Case:
    """Return the case that an operation is, which is settled and yet needs somebody."""
    return Case(
        why=why,
        subject=operation.id,
        tenant=operation.tenant,
        session=operation.session,
        tool=operation.tool,
        says=operation.evidence[-1].says if operation.evidence else "",
        opened_at=at,
    )


def standing(
    operation: Operation, contract: Contract, *, case: Case | None = None, words: str = ""
) -> Standing:
    """Return an operation as the case that a person is shown: by its state, or a record's."""
    evidence = operation.evidence
    forgets = operation.first_sent_at and contract.retention_s is not None
    return Standing(
        id=operation.id if case is None else case.id,
        why=Why.UNDECIDED if case is None else case.why,
        state=operation.state if case is None else case.state,
        says=evidence[-1].says if evidence else "",
        since=operation.first_sent_at or operation.made_at,
        tenant=operation.tenant,
        session=operation.session,
        tool=operation.tool,
        operation=operation.id,
        key=operation.key,
        known_until=operation.first_sent_at + (contract.retention_s or 0.0) if forgets else 0.0,
        arguments=operation.arguments,
        principal=operation.ask.principal,
        turn=operation.turn,
        words=words,
        plan=operation.plan,
        retries=operation.retries,
        undoes=operation.undoes,
        evidence=evidence if case is None else (*evidence, *_said(case)),
        may=BY_STATE.get(operation.state, ()) if case is None else may(case),
    )


def standing_alone(case: Case) -> Standing:
    """Return a case about an effect that no operation here speaks of."""
    return Standing(
        id=case.id,
        why=case.why,
        state=case.state,
        says=case.says,
        since=case.opened_at,
        tenant=case.tenant,
        session=case.session,
        tool=case.tool,
        key=case.subject,
        evidence=_said(case),
        may=may(case),
    )


def _said(case: Case) -> tuple[Evidence, ...]:
    """Return the last word of a person about a case that is a record of its own."""
    if not case.ruling:
        return ()
    says = f"{case.ruling}: {case.note}" if case.note else case.ruling
    return (Evidence(source=Source.PERSON, at=case.at, says=says, by=case.by),)


def may(case: Case) -> tuple[Ruling, ...]:
    """Return the rulings that a case takes which is a record of its own."""
    return (Ruling.SIGN_OFF, Ruling.HOLD) if case.state is CaseState.OPEN else ()


# Which rulings an operation takes in which state; in any other there is nothing to rule about.
BY_STATE: Mapping[State, tuple[Ruling, ...]] = {
    State.UNKNOWN: (Ruling.LANDED, Ruling.ABSENT),
    State.ASSUMED: (Ruling.LANDED, Ruling.ABSENT),
    State.UNDECIDED: (Ruling.LANDED, Ruling.ABSENT, Ruling.HOLD, Ruling.LIFT),
}


_FROZEN = ("why", "subject", "tool", "says", "opened_at")
_CHANGING = ("ruling", "by", "note", "at")


def case_record(case: Case) -> Record:
    """Return the case as a store holds it; no worker has to hold it."""
    return Record(
        id=case.id,
        kind=Kind.CASE,
        tenant=case.tenant,
        session=case.session,
        state=case.state,
        version=case.version,
        epoch=case.epoch,
        worker="",
        open=False,
        frozen={name: getattr(case, name) for name in _FROZEN},
        changing={name: getattr(case, name) for name in _CHANGING},
    )


def case_from(record: Record) -> Case:
    """Read a case back; the reverse of `case_record`."""
    frozen: dict[str, object] = {**record.frozen, "why": Why(str(record.frozen["why"]))}
    return Case(
        tenant=record.tenant,
        session=record.session,
        state=CaseState(record.state),
        version=record.version,
        epoch=record.epoch,
        **frozen,  # type: ignore[arg-type]
        **record.changing,  # type: ignore[arg-type]
    )
