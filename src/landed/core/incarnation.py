"""A store that went back in time: the mark outside it that tells, and the record of its restores.

A backup that is put back, or a standby that had not heard of everything, is a store that is whole
and that has forgotten. Nothing inside it can tell. So a process keeps a mark outside: a journal
entry that it knows to have been durable. Where the journal does not hold that very entry, the store
is older than what was known, or a fork of it. That is a new *incarnation*, and it is written down
in the one record of this file: while it is `reconciling`, nothing is sent by anybody.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Protocol

from landed.core.changes import Changes, Kind, Move, Record
from landed.core.errors import IllegalEventError
from landed.core.event import Event
from landed.core.journal import Entry

INCARNATION = "incarnation"  # The id of the one record.
RESTORED = "the store was restored from an earlier time"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A journal entry that was durable: its position and its link."""

    position: int
    hash: str


class Marks(Protocol):
    """Where a mark is kept: outside the store, so that no restore of the store takes it along."""

    @property
    def place(self) -> str:
        """Where that is, for a person to read."""
        ...

    async def read(self) -> Mark | None:
        """Return the mark, None where none was ever written; raises `StoreError` for a bad one."""
        ...

    async def write(self, mark: Mark) -> None:
        """Replace the mark, durably and whole; raises `StoreError` where that cannot be done."""
        ...


def is_intact(mark: Mark, page: Sequence[Entry]) -> bool:
    """Whether the journal holds the marked entry; `page` is what it has from that position on."""
    return bool(page) and mark_of(page[0]) == mark


def mark_of(entry: Entry) -> Mark:
    """Return the mark that a journal entry is."""
    return Mark(position=entry.seq, hash=entry.hash)


class IncarnationState(StrEnum):
    """Whether what a restore left open has been found out."""

    RECONCILING = "reconciling"
    RECONCILED = "reconciled"


class IncarnationEvent(StrEnum):
    """Its events."""

    RESTORED = "store_restored"
    RECONCILED = "store_reconciled"


_S, _E = IncarnationState, IncarnationEvent

# A restore may come while the one before it is not reconciled: it begins anew.
INCARNATION_MOVES: Mapping[IncarnationState, Mapping[IncarnationEvent, IncarnationState]] = {
    _S.RECONCILING: {_E.RESTORED: _S.RECONCILING, _E.RECONCILED: _S.RECONCILED},
    _S.RECONCILED: {_E.RESTORED: _S.RECONCILING},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Incarnation:
    """How often the store was restored, and how far the last time is behind it.

    `number` counts the restores, 0 for none. `missed` is the mark that the journal did not hold,
    None where a person declared it. `horizon` is the journal position of that declaration: what
    was made before it may have gone on in a time that nobody remembers. `known_at` is the time of
    the newest entry before it (UTC, seconds since the epoch). `by`, `why` and `at` are of the last
    event, `why` the sentence for whoever asks.
    """

    number: int = 0
    missed: Mark | None = None
    horizon: int = 0
    known_at: float = 0.0
    by: str = ""
    why: str = ""
    at: float = 0.0

    state: IncarnationState = IncarnationState.RECONCILED
    version: int = 0

    @property
    def reconciling(self) -> bool:
        """Whether nothing may be sent yet."""
        return self.state is IncarnationState.RECONCILING


NEVER_RESTORED = Incarnation()


def declared(
    before: Incarnation, *, missed: Mark | None, known_at: float, by: str, why: str, at: float
) -> Incarnation:
    """Return the incarnation that begins with a restore; its horizon is known once it is stored."""
    after = _moved(before, IncarnationEvent.RESTORED, by=by, why=why, at=at)
    if before.reconciling:
        known_at = min(known_at, before.known_at)
    return replace(after, number=before.number + 1, missed=missed, horizon=0, known_at=known_at)


def reconciled(before: Incarnation, *, by: str, why: str, at: float) -> Incarnation:
    """Return the incarnation once all is found out; raises `IllegalEventError` where it was."""
    return _moved(before, IncarnationEvent.RECONCILED, by=by, why=why, at=at)


def _moved(
    before: Incarnation, event: IncarnationEvent, *, by: str, why: str, at: float
) -> Incarnation:
    after = INCARNATION_MOVES[before.state].get(event)
    if after is None:
        raise IllegalEventError(f"the incarnation is {before.state}: it cannot be {event}")
    return replace(before, state=after, version=before.version + 1, by=by, why=why, at=at)


def writing(after: Incarnation) -> Changes:
    """Return the unit that stores an incarnation after its event."""
    event = _E.RESTORED if after.reconciling else _E.RECONCILED
    happened = Event(name=event, record=INCARNATION, at=after.at)
    return Changes(moves=(Move(after=incarnation_record(after), event=happened),))


def incarnation_record(incarnation: Incarnation) -> Record:
    """Return the incarnation as a store holds it; no worker has to hold it."""
    missed = incarnation.missed
    return Record(
        id=INCARNATION,
        kind=Kind.INCARNATION,
        tenant="",
        session="",
        state=incarnation.state,
        version=incarnation.version,
        epoch=0,
        worker="",
        open=False,
        frozen={},
        changing={
            "number": incarnation.number,
            "missed": [missed.position, missed.hash] if missed else None,
            "horizon": incarnation.horizon,
            "known_at": incarnation.known_at,
            "by": incarnation.by,
            "why": incarnation.why,
            "at": incarnation.at,
        },
    )


def incarnation_from(record: Record) -> Incarnation:
    """Read an incarnation back; while it is reconciling, its horizon is where it was declared."""
    held: dict[str, object] = dict(record.changing)
    state = IncarnationState(record.state)
    missed: tuple[int, str] | None = held.pop("missed")  # type: ignore[assignment]
    if state is IncarnationState.RECONCILING:
        held["horizon"] = record.last
    return Incarnation(
        state=state,
        version=record.version,
        missed=Mark(position=missed[0], hash=missed[1]) if missed else None,
        **held,  # type: ignore[arg-type]
    )
