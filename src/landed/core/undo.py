"""Releases: undos that are owed, recorded before the request that makes them due, never forgotten.

A release names the *operation*, never the resource, so that a double undo is impossible: its id is
`release/<operation>`. It begins as *owed if it landed*: void if that did not happen, owed as soon
as it is known that it did. It falls due when what replaces the operation is confirmed (or at once,
where the contract says release first), and then runs as an operation of its own. What costs
something needs a yes bound to the amount.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from landed.core.canonical import Json
from landed.core.changes import Kind, Record
from landed.core.contract import Contract, Risk, filled
from landed.core.erased import erased_on
from landed.core.errors import IllegalEventError
from landed.core.operation import Operation, State
from landed.core.plan import PLAN_MOVES, At, Plan, PlanEvent

UNDO_WITHIN_S = 3600.0  # how long a whole plan can be taken back, from its end
UNDO_TRIES_MAX = 5  # undo operations of one release, before a person is asked


class ReleaseState(StrEnum):
    """Where a release is."""

    OWED_IF_LANDED = "owed_if_landed"
    OWED = "owed"
    DUE = "due"
    ASKED = "asked"
    UNDOING = "undoing"
    QUESTIONED = "questioned"
    DONE = "done"
    VOID = "void"
    WAIVED = "waived"
    KEPT = "kept"


class ReleaseEvent(StrEnum):
    """The events of a release."""

    OWED = "release_owed"
    LANDED = "release_landed"
    NEVER_LANDED = "release_void"
    FELL_DUE = "release_due"
    PRICED = "release_priced"
    ASKED = "release_asked"
    APPROVED = "release_approved"
    DECLINED = "release_waived"
    LAPSED = "release_lapsed"
    STARTED = "release_started"
    UNDONE = "release_done"
    UNDO_FAILED = "release_not_done"
    QUESTIONED = "release_questioned"
    KEPT = "release_kept"
    HANDED_ON = "release_handed_on"


_S, _E = ReleaseState, ReleaseEvent

RELEASE_MOVES: Mapping[ReleaseState, Mapping[ReleaseEvent, ReleaseState]] = {
    _S.OWED_IF_LANDED: {
        _E.LANDED: _S.OWED,
        _E.NEVER_LANDED: _S.VOID,
        _E.KEPT: _S.KEPT,
        _E.HANDED_ON: _S.OWED_IF_LANDED,
    },
    _S.OWED: {
        _E.FELL_DUE: _S.DUE,
        _E.QUESTIONED: _S.QUESTIONED,
        _E.KEPT: _S.KEPT,
        _E.HANDED_ON: _S.OWED_IF_LANDED,
    },
    _S.DUE: {
        _E.PRICED: _S.DUE,
        _E.ASKED: _S.ASKED,
        _E.STARTED: _S.UNDOING,
        _E.QUESTIONED: _S.QUESTIONED,
        _E.KEPT: _S.KEPT,
        _E.HANDED_ON: _S.OWED_IF_LANDED,
    },
    _S.ASKED: {
        _E.APPROVED: _S.DUE,
        _E.DECLINED: _S.WAIVED,
        _E.LAPSED: _S.DUE,
        _E.KEPT: _S.KEPT,
        _E.HANDED_ON: _S.OWED_IF_LANDED,
    },
    _S.UNDOING: {
        _E.UNDONE: _S.DONE,
        _E.UNDO_FAILED: _S.DUE,
        _E.QUESTIONED: _S.QUESTIONED,
    },
    _S.QUESTIONED: {
        _E.APPROVED: _S.DUE,
        _E.DECLINED: _S.WAIVED,
        _E.LAPSED: _S.OWED,
        _E.KEPT: _S.KEPT,
        _E.HANDED_ON: _S.OWED_IF_LANDED,
    },
    _S.DONE: {},
    _S.VOID: {},
    _S.WAIVED: {_E.OWED: _S.OWED_IF_LANDED},
    _S.KEPT: {_E.OWED: _S.OWED_IF_LANDED},
}

# What a loop has something to do for; `asked` and `questioned` wait for a person.
OPEN = frozenset({_S.OWED_IF_LANDED, _S.OWED, _S.DUE, _S.UNDOING})
ENDED = frozenset({_S.DONE, _S.VOID, _S.WAIVED, _S.KEPT})


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """The record of a release.

    `plan` and `step` name what replaces the operation; without a plan it is due at once. `turn` is
    the turn that answers for it now. `price_cents` is what undoing costs, None until that is known;
    `question` the last question put about it, `undo` the operation that undoes, `tries` how many
    there were. `agreed` is true once a person said yes to this price; `left_out` says that nobody
    gave the operation up in so many words, so that a person is asked before anything is undone.
    """

    id: str
    operation: str
    tenant: str
    session: str
    principal: str
    origin: str
    made_at: float

    state: ReleaseState = ReleaseState.OWED_IF_LANDED
    version: int = 0
    epoch: int = 0
    worker: str = ""
    turn: str = ""
    plan: str = ""
    step: int = 0
    price_cents: int | None = None
    agreed: bool = False
    question: str = ""
    undo: str = ""
    tries: int = 0
    why: str = ""
    left_out: bool = False
    undoes: str = ""
    after: str = ""

    @property
    def open(self) -> bool:
        """Whether the loop has something to do for it."""
        return self.state in OPEN


def release_id(operation: str) -> str:
    """Return the one id that a release of an operation can have."""
    return f"release/{operation}"


def release_moved(release: Release, event: ReleaseEvent, **changed: object) -> Release:
    """Return the release after `event`; raises `IllegalEventError` where the table has none."""
    after = RELEASE_MOVES[release.state].get(event)
    if after is None:
        raise IllegalEventError(f"{release.id} is {release.state}: it cannot be {event}")
    return replace(
        release,
        state=after,
        version=release.version + 1,
        **changed,  # type: ignore[arg-type]
    )


def made_by(operation: Operation, contract: Contract) -> Json:
    """Return the id of what an operation made, None where it made nothing that is named."""
    if day := erased_on(operation.result):
        return f"(erased on {day})"
    return named_in(operation.result, contract.makes)


def named_in(result: Json, path: str) -> Json:
    """Return what stands in a result under a dotted name, None where there is no such thing."""
    found = result
    for part in path.split("."):
        if not isinstance(found, Mapping):
            return None
        found = found.get(part)
    return found


def made_result(contract: Contract, id: str) -> Json:
    """Return a result in which `made_by` finds `id`: what a person says that was made."""
    result: Json = id
    for part in reversed(contract.makes.split(".")):
        result = {part: result}
    return result


def returned_the_same(
    old: Operation, new: Operation, *, old_contract: Contract, new_contract: Contract
) -> bool:
    """Whether the replacement returned the very thing that is about to be released."""
    made = made_by(old, old_contract)
    return made is not None and made == made_by(new, new_contract)


def can_undo(operation: Operation, contract: Contract, now: float) -> bool:
    """Whether what an operation did can be taken back by its tool, now."""
    if erased_on(operation.arguments):
        return False  # Nobody knows any more what to take back.
    if not contract.undo or (contract.undo_where and not _says_so(operation, contract)):
        return False
    within_s = contract.undo_within_s
    return within_s is None or now <= operation.settled_at + within_s


def _says_so(operation: Operation, contract: Contract) -> bool:
    return named_in(operation.result, contract.undo_where) is True


def undo_arguments(operation: Operation, contract: Contract) -> dict[str, Json]:
    """Return the arguments of the call that undoes `operation`, but for an agreed price."""
    return filled(contract.undo_arguments, arguments=operation.arguments, result=operation.result)


def undoable(
    plan: Plan,
    operations: Mapping[str, Operation],
    contracts: Mapping[str, Contract],
    now: float,
) -> bool:
    """Whether what a plan did can be taken back as a whole, by pressing one button.

    Only within an hour of its end, only if something ran, and only if every step that ran is safe,
    landed for certain, and can be undone by its tool.
    """
    over = PlanEvent.UNDO_ASKED in PLAN_MOVES[plan.state]
    if not over or not plan.ended_at <= now < plan.ended_at + UNDO_WITHIN_S:
        return False
    pairs = zip(plan.steps, plan.places, strict=True)
    ran = [(step, place) for step, place in pairs if place.at is At.DONE and not step.reads]
    return bool(ran) and all(
        step.risk == Risk.SAFE and _is_there(operations.get(place.record), contracts, now)
        for step, place in ran
    )


def _is_there(operation: Operation | None, contracts: Mapping[str, Contract], now: float) -> bool:
    if operation is None or operation.state is not State.CONFIRMED:
        return False
    return can_undo(operation, contracts[operation.contract], now)


_CHANGING = (
    "turn",
    "plan",
    "step",
    "price_cents",
    "agreed",
    "question",
    "undo",
    "tries",
    "why",
    "left_out",
    "undoes",
    "after",
)


def release_record(release: Release) -> Record:
    """Return the release as a store holds it."""
    return Record(
        id=release.id,
        kind=Kind.RELEASE,
        tenant=release.tenant,
        session=release.session,
        state=release.state,
        version=release.version,
        epoch=release.epoch,
        worker=release.worker,
        open=release.open,
        frozen={
            "operation": release.operation,
            "principal": release.principal,
            "origin": release.origin,
            "made_at": release.made_at,
        },
        changing={name: getattr(release, name) for name in _CHANGING},
    )


def release_from(record: Record) -> Release:
    """Read a release back; the reverse of `release_record`."""
    return Release(
        id=record.id,
        tenant=record.tenant,
        session=record.session,
        state=ReleaseState(record.state),
        version=record.version,
        epoch=record.epoch,
        worker=record.worker,
        **record.frozen,  # type: ignore[arg-type]
        **record.changing,  # type: ignore[arg-type]
    )
