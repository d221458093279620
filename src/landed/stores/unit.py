"""One `Changes` made ready to be written: what can be computed outside the transaction.

Inside it, the rows of several units are laid out one after the other (`lay_out`), each event at its
position and linked to the one before it. `Rows` is what the database then gets in few statements.
"""

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from landed.core.changes import Changes, Guard, Kind, Record
from landed.core.journal import body_digest, body_of, link

_WORK = frozenset({Kind.INPUT, Kind.PLAN, Kind.OPERATION})

Parameters: TypeAlias = tuple[str | int | float | bytes | None, ...]


class Head(NamedTuple):
    """The last epoch drawn, and the position and the link of the last journal entry."""

    epoch: int
    seq: int
    hash: str


class Written:
    """What one unit makes of one record: how it was found, how it stands after the unit.

    `inserts` is True when the unit makes the record. `version`, `epoch`, `made` and `last` are
    what is expected to be found, at first by the word of the caller who moves the record on.
    `first_at` and `latest_at` are where its events are laid out.
    """

    __slots__ = (
        *("after", "born_open", "epoch", "first_at", "inserts"),
        *("last", "latest_at", "made", "version"),
    )

    def __init__(self, after: Record) -> None:
        self.after = after
        self.inserts = after.version == 1
        self.born_open = after.open
        self.version = after.version - 1
        self.epoch = after.epoch
        self.made = self.first_at = 0 if self.inserts else after.made
        self.last = self.latest_at = 0 if self.inserts else after.last

    def expect(self, found: Record | None) -> None:
        """Expect the record as it was found, whatever the caller believed, and start again."""
        if found is not None:
            self.version, self.epoch = found.version, found.epoch
            self.made, self.last = found.made, found.last
        self.first_at, self.latest_at = self.made, self.last


# A journal entry without what only the transaction knows: the record it moves; version, event,
# state, time, body and digest of the body.
Draft: TypeAlias = tuple[Written, int, str, str, float, bytes, str]


class Unit:
    """`Changes`, prepared. `is_plain` says that its moves follow from each other by themselves."""

    __slots__ = ("changes", "drafts", "draws", "is_plain", "written")

    def __init__(self, changes: Changes) -> None:
        """Write the bodies; raises as `body_of` does for one that JSON cannot say."""
        self.changes = changes
        self.written: dict[str, Written] = {}
        self.drafts: list[Draft] = []
        self.is_plain = True
        self.draws = False
        for move in changes.moves:
            after = move.after
            event = move.event
            written = self._follow(after)
            body = body_of(move)
            # Times are stored as doubles, so the link must cover a double, too.
            at = event.at + 0.0
            self.drafts.append(
                (written, after.version, event.name, after.state, at, body, body_digest(body))
            )

    def _follow(self, after: Record) -> Written:
        written = self.written.get(after.id)
        if written is None:
            written = self.written[after.id] = Written(after)
            if written.inserts and after.open and not self.changes.epoch:
                self.draws = True
            return written
        if written.inserts:
            follows = after.epoch in (0, self.changes.epoch if written.born_open else 0)
        else:
            follows = after.epoch == written.after.epoch
        if not follows or after.version != written.after.version + 1:
            self.is_plain = False
        written.after = after
        return written

    @property
    def begins(self) -> bool:
        """Whether it makes what work follows from, as opposed to ending what there is."""
        return any(one.inserts and one.after.kind in _WORK for one in self.written.values())

    def touches(self) -> set[str]:
        """Return the records and names that the unit may change."""
        holds = self.changes.takes + self.changes.frees
        return {*self.written, *(hold.name for hold in holds)}


class Rows:
    """The parameters of everything that is written together."""

    __slots__ = ("entries", "frees", "guards", "inserts", "takes", "updates")

    def __init__(self) -> None:
        self.guards: list[Guard] = []
        self.inserts: list[Parameters] = []
        self.updates: list[Parameters] = []
        self.entries: list[Parameters] = []
        self.frees: list[Parameters] = []
        self.takes: list[Parameters] = []


def are_apart(units: list[Unit]) -> bool:
    """Say whether no unit touches what another one touches or guards.

    Only then does it not matter in which order they are written, so that they may be written
    together: all guards first, then all records, then all names.
    """
    touched: set[str] = set()
    guarded: set[str] = set()
    for unit in units:
        own = unit.touches()
        guards = {guard.id for guard in unit.changes.guards}
        if not (touched.isdisjoint(own) and touched.isdisjoint(guards) and guarded.isdisjoint(own)):
            return False
        touched |= own
        guarded |= guards
    return True


def lay_out(
    unit: Unit, head: Head, rows: Rows, secret: bytes, positions: Iterator[int] | None = None
) -> tuple[Head, tuple[Record, ...]]:
    """Put a unit into `rows` after `head`; return the new head and the records as stored.

    `positions` are those that its events get, where they do not just follow on the head's.
    """
    changes = unit.changes
    seq, hash = head.seq, head.hash
    for written, version, event, state, at, body, digest in unit.drafts:
        seq = seq + 1 if positions is None else next(positions)
        prev, before, id = hash, written.latest_at, written.after.id
        hash = link(
            prev=prev,
            seq=seq,
            id=id,
            version=version,
            before=before,
            event=event,
            state=state,
            at=at,
            body_digest=digest,
            secret=secret,
        )
        rows.entries.append((seq, id, version, before, event, state, at, body, digest, prev, hash))
        written.latest_at = seq
        written.first_at = written.first_at or seq
    epoch = head.epoch + unit.draws
    claim = epoch if unit.draws else changes.epoch
    records = tuple([_lay_out_record(written, rows, claim) for written in unit.written.values()])
    rows.guards.extend(changes.guards)
    for hold in changes.frees:
        rows.frees.append((hold.name, hold.record))
    for hold in changes.takes:
        rows.takes.append((hold.name, hold.record))
    return Head(epoch, seq, hash), records


def _lay_out_record(written: Written, rows: Rows, claim: int) -> Record:
    after = written.after
    epoch = after.epoch
    if written.inserts:
        epoch = claim if written.born_open else 0
    stored = Record(
        id=after.id,
        kind=after.kind,
        tenant=after.tenant,
        session=after.session,
        state=after.state,
        version=after.version,
        epoch=epoch,
        worker=after.worker,
        open=after.open,
        frozen=after.frozen,
        changing=after.changing,
        made=written.first_at,
        last=written.latest_at,
    )
    moving = (after.state, after.version, epoch, after.worker, after.open)
    if written.inserts:
        identity = (after.id, after.kind, after.tenant, after.session)
        rows.inserts.append((*identity, *moving, stored.made, stored.last))
    else:
        expected = (after.id, written.version, written.epoch, written.made, written.last)
        rows.updates.append((*moving, stored.last, *expected))
    return stored
