"""The life of an operation: its states, the events that move it, and the record of one.

The idea in three sentences. A call that can change the world is a record, written before anything
is sent; it is never edited, only moved by events that are evidence. A lost answer is not a no, so
it has a state of its own, `unknown`, and no event leaves that state without saying why. `failed`
means *definitely no effect*, and there are only four ways to be that sure: the service refused the
only send, the key was closed with nothing landed, a look made after the service's own deadline
found nothing, or nothing ever left this machine.

`MOVES` is the whole machine; `docs/operation.md` is drawn from it. The form, prose first and then
plain tables with so little code that nothing hides, is that of h11's `_state.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from landed.core.canonical import Json
from landed.core.errors import IllegalEventError
from landed.core.key import Ask


class State(StrEnum):
    """Where an operation is; `STATES` says what each means."""

    RECORDED = "recorded"
    SENT = "sent"
    RESENT = "resent"
    ACCEPTED = "accepted"
    UNKNOWN = "unknown"
    ASSUMED = "assumed"
    UNDECIDED = "undecided"
    CONFIRMED = "confirmed"
    FAILED = "failed"
    WITHDRAWN = "withdrawn"


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a state promises. `open`: the loop has work; `holds`: the names it needs are taken."""

    says: str
    open: bool
    holds: bool
    final: bool = False


STATES: Mapping[State, Meaning] = {
    State.RECORDED: Meaning("durable; nothing was sent", open=True, holds=False),
    State.SENT: Meaning("the first send is out, or was when its process died", True, True),
    State.RESENT: Meaning("in doubt, and the same key is out once more", True, True),
    State.ACCEPTED: Meaning("the service took it; the effect is still to be seen", True, True),
    State.UNKNOWN: Meaning("nobody answered; being found out", True, True),
    State.ASSUMED: Meaning("treated as landed, as its contract allows; said so", False, False),
    State.UNDECIDED: Meaning("cannot be found out; in front of a person", False, True),
    State.CONFIRMED: Meaning("it took effect", False, False, final=True),
    State.FAILED: Meaning("definitely no effect", False, False, final=True),
    State.WITHDRAWN: Meaning("taken back before anything was sent", False, False, final=True),
}


class Happened(StrEnum):
    """The events of an operation."""

    MADE = "made"
    PREPARED = "prepared"
    BLOCKED = "blocked"
    SENT = "sent"
    WITHDRAWN = "withdrawn"
    ACKNOWLEDGED = "acknowledged"
    ACCEPTED = "accepted"
    REFUSED = "refused"
    REFUSED_AGAIN = "refused_again"
    NOT_SENT = "not_sent"
    NEVER_SENT = "never_sent"
    ANSWER_LOST = "answer_lost"
    STOPPED_MIDWAY = "stopped_midway"
    READ_BACK = "read_back"
    READ_ABSENT = "read_absent"
    LAG_OVER = "lag_over"
    FOUND = "found"
    CLOSED_EMPTY = "closed_empty"
    ABSENT_FOR_GOOD = "absent_for_good"
    LOOKED = "looked"
    CLOSING = "closing"
    RESENT = "resent"
    ASSUMED = "assumed"
    GAVE_UP = "gave_up"
    RULED_LANDED = "ruled_landed"
    RULED_ABSENT = "ruled_absent"
    NOTED = "noted"
    LIFTED = "lifted"
    UNWANTED = "unwanted"
    TOLD = "told"
    CONTRADICTED = "contradicted"
    RESTORED = "restored"


# state ▸ event ▸ the state after it. An event that is not here is a bug in `landed`.
MOVES: Mapping[State, Mapping[Happened, State]] = {
    State.RECORDED: {
        Happened.PREPARED: State.RECORDED,
        Happened.BLOCKED: State.RECORDED,
        Happened.SENT: State.SENT,
        Happened.WITHDRAWN: State.WITHDRAWN,
        Happened.TOLD: State.RECORDED,
        Happened.RESTORED: State.UNKNOWN,
    },
    State.SENT: {
        Happened.ACKNOWLEDGED: State.CONFIRMED,
        Happened.ACCEPTED: State.ACCEPTED,
        Happened.REFUSED: State.FAILED,
        Happened.NOT_SENT: State.RECORDED,
        Happened.NEVER_SENT: State.FAILED,
        Happened.ANSWER_LOST: State.UNKNOWN,
        Happened.STOPPED_MIDWAY: State.CONFIRMED,
        Happened.UNWANTED: State.SENT,
        Happened.TOLD: State.SENT,
        Happened.RESTORED: State.UNKNOWN,
    },
    State.RESENT: {
        Happened.ACKNOWLEDGED: State.CONFIRMED,
        Happened.ACCEPTED: State.ACCEPTED,
        Happened.REFUSED_AGAIN: State.UNKNOWN,
        Happened.NOT_SENT: State.UNKNOWN,
        Happened.ANSWER_LOST: State.UNKNOWN,
        Happened.UNWANTED: State.RESENT,
        Happened.TOLD: State.RESENT,
        Happened.RESTORED: State.UNKNOWN,
    },
    State.ACCEPTED: {
        Happened.ACKNOWLEDGED: State.CONFIRMED,
        Happened.READ_BACK: State.CONFIRMED,
        Happened.READ_ABSENT: State.FAILED,
        Happened.LAG_OVER: State.UNKNOWN,
        Happened.LOOKED: State.ACCEPTED,
        Happened.UNWANTED: State.ACCEPTED,
        Happened.TOLD: State.ACCEPTED,
        Happened.RESTORED: State.UNKNOWN,
    },
    State.UNKNOWN: {
        Happened.FOUND: State.CONFIRMED,
        Happened.ACKNOWLEDGED: State.CONFIRMED,
        Happened.REFUSED: State.FAILED,
        Happened.NEVER_SENT: State.FAILED,
        Happened.CLOSED_EMPTY: State.FAILED,
        Happened.ABSENT_FOR_GOOD: State.FAILED,
        Happened.LOOKED: State.UNKNOWN,
        Happened.CLOSING: State.UNKNOWN,
        Happened.RESENT: State.RESENT,
        Happened.ASSUMED: State.ASSUMED,
        Happened.GAVE_UP: State.UNDECIDED,
        Happened.UNWANTED: State.UNKNOWN,
        Happened.TOLD: State.UNKNOWN,
        Happened.RESTORED: State.UNKNOWN,
    },
    State.ASSUMED: {
        Happened.FOUND: State.CONFIRMED,
        Happened.ACKNOWLEDGED: State.CONFIRMED,
        Happened.REFUSED: State.FAILED,
        Happened.NEVER_SENT: State.FAILED,
        Happened.ABSENT_FOR_GOOD: State.FAILED,
        Happened.RULED_LANDED: State.CONFIRMED,
        Happened.RULED_ABSENT: State.FAILED,
        Happened.LOOKED: State.ASSUMED,
        Happened.TOLD: State.ASSUMED,
    },
    State.UNDECIDED: {
        Happened.FOUND: State.CONFIRMED,
        Happened.ACKNOWLEDGED: State.CONFIRMED,
        Happened.REFUSED: State.FAILED,
        Happened.NEVER_SENT: State.FAILED,
        Happened.CLOSED_EMPTY: State.FAILED,
        Happened.ABSENT_FOR_GOOD: State.FAILED,
        Happened.RULED_LANDED: State.CONFIRMED,
        Happened.RULED_ABSENT: State.FAILED,
        Happened.LOOKED: State.UNDECIDED,
        Happened.NOTED: State.UNDECIDED,
        Happened.LIFTED: State.UNDECIDED,
        Happened.CLOSING: State.UNDECIDED,
        Happened.TOLD: State.UNDECIDED,
    },
    State.CONFIRMED: {Happened.CONTRADICTED: State.CONFIRMED},
    State.FAILED: {Happened.CONTRADICTED: State.FAILED},
    State.WITHDRAWN: {},
}


class Source(StrEnum):
    """Where evidence comes from."""

    REPLY = "reply"
    LOOKUP = "lookup"
    CLOSE = "close"
    READ_BACK = "read-back"
    RECEIPT = "receipt"
    PERSON = "person"
    ASSUMPTION = "assumption"
    RUNTIME = "runtime"


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Why an operation moved: which source said what, when, and at which position of the service.

    `by` names the person of a ruling. `says` is bounded to `SAYS_MAX` characters when it is kept.
    """

    source: Source
    at: float
    says: str
    position: int | None = None
    by: str = ""


SAYS_MAX = 500
EVIDENCE_MAX = 12  # kept in the record; the journal's earlier bodies hold the rest


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One logical call with an effect: frozen arguments, one key, one state.

    It has no slots, unlike the other values here, so that `moved` can copy it in one step: that is
    done for every event, and rebuilding forty fields one by one is what an event would cost most.

    The first block never changes once it is stored, the second only through `moved`. `plan` is the
    plan it is a step of, `undoes` the operation it takes back, `retries` the one that definitely
    had no effect and in whose place it stands; `unique` are names that it keeps once it landed.
    Times are UTC, seconds since the epoch, 0.0 where there is none. `tries` counts sends, `unsent`
    names those of them that never left this machine, or that the service turned away with a request
    to wait; `not_before` is until when it asked for that; `prepared` is what each send uses, where
    the contract says `prepare`; `looks` counts questions since the last send, `looked` is what the
    last of them came back with. `closing` is true from before a close is asked for: the key is
    spent. `wanted` stays true until the caller cancels, a stop or a revision. `told` is the state
    last handed to the caller while it was not final; `contradicted` that a later answer said
    otherwise than what was settled. `absences` counts the looks that found nothing though by then
    it had to be visible; `unexplained` that it was found after several of those, with no send in
    between. `lifted` that a person let go of what it holds before it was decided. `restored` is the
    journal position of the restore of the store that it went through, 0 for none: what was done
    for it between the backup and that is not remembered, and one more send is counted for it.
    `conflict` is what the service, refusing, said has changed since the preview, each
    `{field, was, now}`.
    """

    id: str
    tenant: str
    session: str
    turn: str
    tool: str
    arguments: Mapping[str, Json]
    ask: Ask
    key: str
    contract: str
    identity: str
    names: tuple[str, ...]
    made_at: float
    send_by: float
    plan: str = ""
    undoes: str = ""
    retries: str = ""
    unique: tuple[str, ...] = ()

    state: State = State.RECORDED
    version: int = 1
    epoch: int = 0
    worker: str = ""
    prepared: Json = field(default=None, repr=False)
    tries: int = 0
    unsent: tuple[int, ...] = ()
    not_before: float = 0.0
    first_sent_at: float = 0.0
    last_sent_at: float = 0.0
    wanted: bool = True
    unwanted_at: float = 0.0
    blocked_by: str = ""
    looks: int = 0
    looked_at: float = 0.0
    looked: str = ""
    closing: bool = False
    resend_refused: bool = False
    result: Json = None
    position: int | None = None
    complete: bool = True
    acknowledged_at: float = 0.0
    settled_at: float = 0.0
    told: str = ""
    contradicted: bool = False
    absences: int = 0
    unexplained: bool = False
    lifted: bool = False
    restored: int = 0
    conflict: Json = None
    evidence: tuple[Evidence, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether its names are taken now."""
        return STATES[self.state].holds

    @property
    def open(self) -> bool:
        """Whether the loop has something to do for it."""
        return STATES[self.state].open

    @property
    def final(self) -> bool:
        """Whether it is settled for good."""
        return STATES[self.state].final


def held_by(operation: Operation) -> tuple[str, ...]:
    """Return the names it holds now: its rules' names also for ever after it took effect."""
    if operation.holds and not operation.lifted:
        return operation.names + operation.unique
    return operation.unique if operation.state in _LANDED else ()


def moved(
    operation: Operation,
    event: Happened,
    *,
    at: float,
    evidence: Evidence | None = None,
    **changed: object,
) -> Operation:
    """Return the operation after `event`.

    Raises `IllegalEventError` where `MOVES` has no such move, where something is settled without
    evidence, and for a field that never changes. `changed` are fields of the second block; state,
    version and settled_at follow from the table.
    """
    after = MOVES[operation.state].get(event)
    if after is None:
        raise IllegalEventError(f"{operation.id} is {operation.state}: it cannot be {event}")
    if evidence is not None:
        kept = replace(evidence, says=evidence.says[:SAYS_MAX])
        changed["evidence"] = (*operation.evidence, kept)[-EVIDENCE_MAX:]
    if STATES[after].final and not operation.final:
        changed["settled_at"] = at
        if evidence is None:
            raise IllegalEventError(f"{operation.id} cannot be {after} without evidence")
    if not changed.keys() <= _CHANGEABLE:
        frozen = ", ".join(sorted(changed.keys() - _CHANGEABLE))
        raise IllegalEventError(f"{operation.id}: {frozen} never changes once it is stored")
    changed["state"] = after
    changed["version"] = operation.version + 1
    return _copied(operation, changed)


_LANDED = frozenset({State.CONFIRMED, State.ASSUMED})


def under(operation: Operation, *, epoch: int) -> Operation:
    """Return the operation as it is held under another claim."""
    return _copied(operation, {"epoch": epoch})


def _copied(operation: Operation, changed: Mapping[str, object]) -> Operation:
    copy = object.__new__(Operation)
    copy.__dict__.update(operation.__dict__)
    copy.__dict__.update(changed)
    return copy


CHANGING: Mapping[str, object] = {
    "prepared": None,
    "tries": 0,
    "unsent": (),
    "not_before": 0.0,
    "first_sent_at": 0.0,
    "last_sent_at": 0.0,
    "wanted": True,
    "unwanted_at": 0.0,
    "blocked_by": "",
    "looks": 0,
    "looked_at": 0.0,
    "looked": "",
    "closing": False,
    "resend_refused": False,
    "result": None,
    "position": None,
    "complete": True,
    "acknowledged_at": 0.0,
    "settled_at": 0.0,
    "told": "",
    "contradicted": False,
    "absences": 0,
    "unexplained": False,
    "lifted": False,
    "restored": 0,
    "conflict": None,
}


_CHANGEABLE = {*CHANGING, "evidence"}
