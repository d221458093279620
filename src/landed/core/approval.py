"""A person's yes, as a record: bound to one plan and one person, sealed, usable once.

Three kinds, which cannot stand for one another: to run a plan that was shown, to run it once more
after it came to a definite end halfway, to take back what it did. A *plan token* is kept in the
same way, as a fourth kind that is no yes: by it code begins a plan that was only previewed, where
nobody has to agree or somebody has. What is handed out is 24 random
bytes; only their digest is stored. The record is sealed with a key derived for this purpose alone
(HKDF, RFC 5869), and the hash of the plan is computed anew from the stored steps: an edit of the
record or of the plan is seen even by someone who could forge the other.

`problem` holds the checks in their order, and only a full match takes the approval: who presents it
in vain uses nothing up.
"""

import hmac
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from hashlib import sha256

from landed.core.canonical import Json, canonical
from landed.core.changes import Kind, Record
from landed.core.errors import IllegalEventError
from landed.core.key import name_of
from landed.core.plan import CLOCK, Plan, PlanState
from landed.core.preview import Changed

TOKEN_BYTES = 24


class Purpose(StrEnum):
    """What a yes is to."""

    CONFIRM = "confirm"
    RETRY = "retry"
    UNDO = "undo"
    COMMIT = "commit"  # a plan token


class ApprovalState(StrEnum):
    """Where an approval is."""

    OPEN = "open"
    TAKEN = "taken"
    DECLINED = "declined"
    LAPSED = "lapsed"


class ApprovalEvent(StrEnum):
    """The events of an approval."""

    OFFERED = "approval_offered"
    RENEWED = "approval_renewed"
    TAKEN = "approval_taken"
    REFUSED = "approval_refused"
    DECLINED = "approval_declined"
    LAPSED = "approval_lapsed"


_S, _E = ApprovalState, ApprovalEvent

APPROVAL_MOVES: Mapping[ApprovalState, Mapping[ApprovalEvent, ApprovalState]] = {
    _S.OPEN: {
        _E.RENEWED: _S.OPEN,
        _E.TAKEN: _S.TAKEN,
        _E.REFUSED: _S.OPEN,
        _E.DECLINED: _S.DECLINED,
        _E.LAPSED: _S.LAPSED,
    },
    _S.TAKEN: {_E.REFUSED: _S.TAKEN},
    _S.DECLINED: {_E.REFUSED: _S.DECLINED},
    _S.LAPSED: {_E.REFUSED: _S.LAPSED, _E.RENEWED: _S.OPEN},
}


class Problem(StrEnum):
    """Why a yes is not taken. The owner is told which; anybody else hears one answer for all."""

    NONE = ""
    ABSENT = "absent"  # there never was one
    TAMPERED = "tampered"  # the record, or the plan that it is to, is not what was stored
    MISMATCH = "mismatch"  # another person, tenant, conversation or kind
    USED = "used"
    DECLINED = "declined"
    EXPIRED = "expired"  # too late, or something else was answered meanwhile
    OVER = "over"  # the plan went on without it
    FINGERPRINT = "fingerprint"  # a plan token that came with that of something else
    NOT_AGREED = "not_agreed"  # a plan token that came before the yes


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """The record of a yes that may be given.

    `attempt` is the one that it would start; `hash` is the plan's, as it was shown. `answer_by` is
    until when it may be given (UTC, seconds since the epoch), `send_within_s` how long after it a
    first send may leave. `typed` are words of which one has to be typed. `token` is the digest of
    what was handed out, "" where nothing was.
    """

    plan: str
    purpose: Purpose
    attempt: int
    tenant: str
    session: str
    principal: str
    hash: str
    made_at: float
    answer_by: float
    send_within_s: float
    typed: tuple[str, ...] = ()

    state: ApprovalState = ApprovalState.OPEN
    version: int = 0
    epoch: int = 0
    token: str = ""
    seal: str = ""
    question: str = ""
    problem: Problem = Problem.NONE
    by: str = ""
    at: float = 0.0

    @property
    def id(self) -> str:
        """Return its one id: a plan has one approval of a kind for each attempt."""
        return approval_id(self.plan, self.purpose, self.attempt)


@dataclass(frozen=True, slots=True, kw_only=True)
class Presented:
    """Who presents a yes, where, and to what.

    `token` is the digest of what was presented; "" for a yes in words, which answers a question and
    is known by it, or for one given on the spot by somebody whom the application knows.
    """

    purpose: Purpose
    principal: str
    tenant: str
    session: str
    token: str = ""


def approval_id(plan: str, purpose: Purpose, attempt: int) -> str:
    """Return the id of a plan's approval of a kind for an attempt."""
    return name_of("approval", plan, purpose, str(attempt))


def token_of(chance: bytes) -> str:
    """Return what is handed out, from `TOKEN_BYTES` random bytes."""
    return urlsafe_b64encode(chance).decode()


def token_digest(token: str) -> str:
    """Return the digest under which a token is kept."""
    return sha256(b"landed/token/1\n" + token.encode()).hexdigest()


def token_name(digest: str) -> str:
    """Return the name by which an approval is found; it is held for as long as the record is kept.

    So an approval that expired or was used can be told from one that there never was.
    """
    return name_of("approval", digest)


def sealing_key(secret: bytes) -> bytes:
    """Return the key for this one purpose: HKDF-SHA256 (RFC 5869), one block."""
    extracted = hmac.digest(b"landed", secret, "sha256")
    return hmac.digest(extracted, b"landed/approval/1\x01", "sha256")


def sealed(approval: Approval, keys: Sequence[bytes]) -> Approval:
    """Return the approval with its seal; the first key seals."""
    return replace(approval, seal=_seal(approval, keys[0]))


def is_sealed(approval: Approval, keys: Sequence[bytes]) -> bool:
    """Whether one of the keys made its seal: older ones stay good while they are configured."""
    return any(hmac.compare_digest(approval.seal, _seal(approval, key)) for key in keys)


def _seal(approval: Approval, key: bytes) -> str:
    bound: dict[str, Json] = {name: getattr(approval, name) for name in _BOUND}
    bound["typed"] = list(approval.typed)
    return hmac.new(key, canonical(bound), sha256).hexdigest()


def problem(
    approval: Approval, plan: Plan, presented: Presented, *, keys: Sequence[bytes], now: float
) -> Problem:
    """Return why this yes is not taken, or `Problem.NONE`. The order is the order of the checks."""
    if not is_sealed(approval, keys) or plan.hash != approval.hash:
        return Problem.TAMPERED
    if not is_for(approval, presented):
        return Problem.MISMATCH
    if approval.state is ApprovalState.LAPSED and plan.state in _WENT_ON and plan.by != CLOCK:
        return Problem.OVER
    if approval.state is not ApprovalState.OPEN:
        return _CLOSED[approval.state]
    return Problem.EXPIRED if now >= approval.answer_by else Problem.NONE


def is_for(approval: Approval, presented: Presented) -> bool:
    """Whether it was offered to whoever presents it, there, and for that."""
    bound = (approval.purpose, approval.tenant, approval.session)
    if bound != (presented.purpose, presented.tenant, presented.session):
        return False
    if approval.principal not in ("", presented.principal):
        return False
    return not presented.token or hmac.compare_digest(presented.token, approval.token)


_CLOSED: Mapping[ApprovalState, Problem] = {
    _S.TAKEN: Problem.USED,
    _S.DECLINED: Problem.DECLINED,
    _S.LAPSED: Problem.EXPIRED,
}

# Where a yes lapsed for another reason than that its time was over.
_WENT_ON = frozenset({PlanState.ABANDONED, PlanState.SUPERSEDED})


def outdated(plan: Plan, tools: Mapping[str, str]) -> tuple[Changed, ...]:
    """Return which tools promise something else than when a person agreed, before it has begun.

    `tools` has the digest of each registered tool's contract, by name. What has begun goes on under
    the contracts that it began with.
    """
    pairs = list(zip(plan.steps, plan.places, strict=True))
    if not plan.answer_by or any(place.record and not step.reads for step, place in pairs):
        return ()
    return tuple(
        Changed(
            step=number,
            field=f"what {step.tool} promises",
            was=step.contract[:_SHOWN],
            now=tools[step.tool][:_SHOWN],
        )
        for number, (step, _) in enumerate(pairs, 1)
        if tools.get(step.tool, step.contract) != step.contract
    )


_SHOWN = 19  # characters of a digest, enough to tell two apart


def approval_moved(approval: Approval, event: ApprovalEvent, **changed: object) -> Approval:
    """Return the approval after `event`; raises `IllegalEventError` where the table has none."""
    after = APPROVAL_MOVES[approval.state].get(event)
    if after is None:
        raise IllegalEventError(f"{approval.id} is {approval.state}: it cannot be {event}")
    return replace(
        approval,
        state=after,
        version=approval.version + 1,
        **changed,  # type: ignore[arg-type]
    )


_FROZEN = (
    *("plan", "purpose", "attempt", "principal", "hash", "made_at"),
    "send_within_s",
)
_CHANGING = ("answer_by", "token", "seal", "question", "problem", "by", "at")
_BOUND = (*_FROZEN, "tenant", "session", "answer_by", "token", "state")


def approval_record(approval: Approval) -> Record:
    """Return the approval as a store holds it; no worker has to hold it."""
    return Record(
        id=approval.id,
        kind=Kind.APPROVAL,
        tenant=approval.tenant,
        session=approval.session,
        state=approval.state,
        version=approval.version,
        epoch=approval.epoch,
        worker="",
        open=False,
        frozen={
            **{name: getattr(approval, name) for name in _FROZEN},
            "typed": list(approval.typed),
        },
        changing={name: getattr(approval, name) for name in _CHANGING},
    )


def approval_from(record: Record) -> Approval:
    """Read an approval back; the reverse of `approval_record`."""
    frozen: dict[str, object] = dict(record.frozen)
    changing: dict[str, object] = dict(record.changing)
    frozen["purpose"] = Purpose(str(frozen["purpose"]))
    frozen["typed"] = tuple(frozen["typed"])  # type: ignore[arg-type]
    changing["problem"] = Problem(str(changing["problem"]))
    return Approval(
        tenant=record.tenant,
        session=record.session,
        state=ApprovalState(record.state),
        version=record.version,
        epoch=record.epoch,
        **frozen,  # type: ignore[arg-type]
        **changing,  # type: ignore[arg-type]
    )
