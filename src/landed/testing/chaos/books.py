"""What a store says after a chaos run: all of its records, and whether its journal is whole."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from landed.core.changes import Kind, Record
from landed.core.errors import StoreError
from landed.core.journal import GENESIS, Entry, verify
from landed.core.operation import Happened, Operation
from landed.core.operation_record import from_record
from landed.core.plan import Plan, plan_from
from landed.core.store import Store
from landed.core.undo import Release, release_from

PAGE = 1000
LOADED = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Books:
    """What is in the records. `held` is which record holds which of the operations' names."""

    operations: tuple[Operation, ...]
    plans: tuple[Plan, ...] = ()
    releases: tuple[Release, ...] = ()
    held: Mapping[str, str] = field(default_factory=dict[str, str])
    resends: int = 0
    events: int = 0
    broken: tuple[str, ...] = ()


async def read_books(store: Store) -> Books:
    """Read all of a store, in which nobody writes any more."""
    chain = Chain()
    after = 0
    while page := await store.journal(after=after, limit=PAGE):
        for entry in page:
            chain.add(entry)
        after = page[-1].seq
    ids = list(chain.newest)
    records: list[Record] = []
    for start in range(0, len(ids), LOADED):
        records += await store.load(*ids[start : start + LOADED])
    operations = tuple(from_record(r) for r in records if r.kind is Kind.OPERATION)
    return Books(
        operations=operations,
        plans=tuple(plan_from(r) for r in records if r.kind is Kind.PLAN),
        releases=tuple(release_from(r) for r in records if r.kind is Kind.RELEASE),
        held=await _holders(store, operations),
        resends=chain.resends,
        events=chain.entries,
        broken=(*chain.complaints(), *chain.differing(records)),
    )


async def _holders(store: Store, operations: Sequence[Operation]) -> dict[str, str]:
    names = list(dict.fromkeys(name for each in operations for name in each.names))
    held: dict[str, str] = {}
    for start in range(0, len(names), LOADED):
        held.update(await store.holders(*names[start : start + LOADED]))
    return held


@dataclass(slots=True, eq=False)
class Chain:
    """Follows the journal: each entry's own link, the entry before it, each record's history.

    On Postgres every opened store has a chain of its own, which begins at an entry of another; so
    what an entry is linked to has to be there, and need not be its neighbour.
    """

    newest: dict[str, Entry] = field(default_factory=dict[str, Entry])
    entries: int = 0
    resends: int = 0
    wrong: list[str] = field(default_factory=list[str])
    _hashes: set[str] = field(default_factory=lambda: {GENESIS})
    _linked: dict[str, int] = field(default_factory=dict[str, int])

    def add(self, entry: Entry) -> None:
        """Take the next entry."""
        self.entries += 1
        self.resends += entry.event == Happened.RESENT and entry.state == "resent"
        self._hashes.add(entry.hash)
        self._linked.setdefault(entry.prev, entry.seq)
        before = self.newest.get(entry.id)
        said = (entry.version - 1, entry.before)
        if said != ((before.version, before.seq) if before else (0, 0)):
            self.wrong.append(f"entry {entry.seq} of {entry.id} does not follow the one before it")
        try:
            verify(entry)
        except StoreError as error:
            self.wrong.append(str(error))
        self.newest[entry.id] = entry

    def complaints(self) -> list[str]:
        """Return what is wrong with the journal by itself."""
        missing = [seq for link, seq in self._linked.items() if link not in self._hashes]
        return [*self.wrong, *(f"entry {seq} is linked to one that is gone" for seq in missing)]

    def differing(self, records: Sequence[Record]) -> list[str]:
        """Return which records are not as their newest entry left them."""
        there = {record.id: record for record in records}
        return [
            f"record {id} is not as its journal says"
            for id, entry in self.newest.items()
            if (r := there.get(id)) is None
            or (r.version, r.last, r.state) != (entry.version, entry.seq, entry.state)
        ]
