"""The one unit of writing: what moves, on which conditions, and what that means, purely.

A store has a single writing verb, `commit(changes)`. `apply` below is its meaning: the explorer
runs on it, and `landed.testing.check_store` compares every store with it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from landed.core.canonical import Json
from landed.core.errors import LeaseLostError, StaleWriteError
from landed.core.event import Event

Body = Mapping[str, Json]


class Kind(StrEnum):
    """What a record is of."""

    INPUT = "input"
    TURN = "turn"
    PLAN = "plan"
    OPERATION = "operation"
    RELEASE = "release"
    QUESTION = "question"
    APPROVAL = "approval"
    OBSERVATION = "observation"
    MESSAGE = "message"
    LINE = "line"
    CASE = "case"
    CONTRACT = "contract"
    INCARNATION = "incarnation"


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One thing as a store holds it.

    `frozen` is what never changes after the record was made; `changing` is the whole of the rest,
    written anew with each event. `open` says that something may still have to be done with it.
    `version` counts its events from 1. `epoch` and `worker` name the claim it is held under (0 and
    "" where a record is born closed: nobody needs to own it). `made` and `last` are the journal
    positions of its first and latest event; 0 until it is stored.
    """

    id: str
    kind: Kind
    tenant: str
    session: str
    state: str
    version: int
    epoch: int
    worker: str
    open: bool
    frozen: Body
    changing: Body
    made: int = 0
    last: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One event and the record as it stands after it.

    The condition is in `after` itself: the stored record must be at `after.version - 1` (absent
    for version 1) and under `after.epoch`, which is 0 where no worker has to hold it.
    """

    after: Record
    event: Event


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """The unit goes in only while the record `id` is at `version` (0: while it is absent)."""

    id: str
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """A name that may be held by one record at a time, and the record that takes or frees it."""

    name: str
    record: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """A unit that is written whole or not at all.

    `frees` go before `takes`, so that one unit can hand a name on; freeing a name that the record
    does not hold changes nothing. `epoch` is the claim that records inserted here are made under;
    0 means that inserting them *is* the claim: the store draws the next epoch from its one counter,
    once for the unit, for those that are inserted open. A record may move more than once in one
    unit; the moves of a record that the unit inserts are conditional on no epoch.
    """

    moves: tuple[Move, ...] = ()
    guards: tuple[Guard, ...] = ()
    takes: tuple[Hold, ...] = ()
    frees: tuple[Hold, ...] = ()
    epoch: int = 0

    def __bool__(self) -> bool:
        return bool(self.moves or self.takes or self.frees)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """All that a store holds, as a value: for the explorer and for comparing stores."""

    records: Mapping[str, Record] = field(default_factory=dict[str, Record])
    names: Mapping[str, str] = field(default_factory=dict[str, str])
    events: tuple[Event, ...] = ()
    epoch: int = 0


def apply(stored: Stored, changes: Changes) -> tuple[Stored, tuple[Record, ...]]:
    """Write `changes` and return the new state and the records as stored, one for each moved id.

    Raises `StaleWriteError` or `LeaseLostError` for the first condition that does not hold, in the
    order guards, moves, takes; nothing is written then.
    """
    for guard in changes.guards:
        _check_version(stored.records.get(guard.id), record=guard.id, expected=guard.version)
    draws = changes.epoch == 0 and any(m.after.version == 1 and m.after.open for m in changes.moves)
    epoch = stored.epoch + draws
    claim = epoch if draws else changes.epoch
    records = dict(stored.records)
    moved: dict[str, Record] = {}
    inserted: dict[str, int] = {}
    position = len(stored.events)
    for move in changes.moves:
        position += 1
        after = _moved(records.get(move.after.id), move, inserted, claim=claim, position=position)
        records[after.id] = moved[after.id] = after
    names = dict(stored.names)
    for hold in changes.frees:
        if names.get(hold.name) == hold.record:
            del names[hold.name]
    for hold in changes.takes:
        if hold.name in names:
            raise StaleWriteError(name=hold.name, holder=names[hold.name])
        names[hold.name] = hold.record
    events = stored.events + tuple(move.event for move in changes.moves)
    after_all = Stored(records=records, names=names, events=events, epoch=epoch)
    return after_all, tuple(moved.values())


def _moved(
    before: Record | None, move: Move, inserted: dict[str, int], *, claim: int, position: int
) -> Record:
    after = move.after
    claimed = after.version > 1 and after.id not in inserted
    _check_version(
        before,
        record=after.id,
        expected=after.version - 1,
        epoch=after.epoch if claimed else None,
    )
    if before is None:
        inserted[after.id] = claim if after.open else 0
        return replace(after, epoch=inserted[after.id], made=position, last=position)
    epoch = inserted.get(after.id, after.epoch)
    return replace(after, epoch=epoch, frozen=before.frozen, made=before.made, last=position)


def _check_version(
    found: Record | None, *, record: str, expected: int, epoch: int | None = None
) -> None:
    """A lost claim is named before a stale version: it is the stronger reason to stop."""
    if epoch is not None and found is not None and found.epoch != epoch:
        raise LeaseLostError(record=record, held=epoch, found=found.epoch)
    version = found.version if found is not None else 0
    if version != expected:
        raise StaleWriteError(record=record, expected=expected, found=version)
