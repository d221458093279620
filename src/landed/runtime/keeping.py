"""Archives what is over, and erases its details, a bounded batch at a time, while workers go on.

Nothing is erased that is not at rest, and with an archive nothing that is not durably in it. What
died halfway is gone on with by running it again: each step can be repeated.
"""

import asyncio
import math
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from landed.core.archived import Archived, differing
from landed.core.changes import Changes, Guard, Kind, Move, Record
from landed.core.contract import Contract
from landed.core.erasing import ERASABLE, Erasure, erasing
from landed.core.errors import ProposalError, StaleWriteError, StoreError
from landed.core.journal import Entry
from landed.core.keeping import (
    Glimpse,
    Keeping,
    Selection,
    Strand,
    glimpse,
    is_meant,
    strands,
    why_not,
)
from landed.core.session import contract_id, contracts_of
from landed.core.store import Store
from landed.runtime.archive import Archive
from landed.runtime.reader import Reader

PAGE = 500  # records read at a time
ERASED_AT_ONCE_MAX = 100
"""Records whose details go in one transaction."""

SEGMENT_RECORDS_MAX = 1000
"""Records after which a segment of an archive is closed; a strand is never cut in two."""

ENTRIES_MAX = 100_000
"""Journal entries of one record that an archive takes."""

REFUSED_SHOWN_MAX = 20
"""Of what was not at rest, how many are told."""

DAY_S = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How long what is over is kept whole, in days since its last event; None for always.

    With `to`, a directory, it is archived there first, and nothing is erased that is not in it.
    Raises `ProposalError` for a value that says nothing, or that would erase before it archives.
    """

    archive_after_days: float | None = None
    erase_after_days: float | None = None
    to: str = ""

    def __post_init__(self) -> None:
        archives, erases = self.archive_after_days, self.erase_after_days
        if min(archives or 0.0, erases or 0.0) < 0:
            raise ProposalError("a retention is counted in days from 0 on")
        if (archives is None) != (not self.to):
            raise ProposalError("an archive needs both archive_after_days and to")
        if archives is None and erases is None:
            raise ProposalError("a retention says when to archive, when to erase, or both")
        if archives is not None and erases is not None and erases < archives:
            raise ProposalError("nothing can be erased before it is archived")


@dataclass(slots=True, kw_only=True)
class Tally:
    """What was done: how many records were archived and erased; what was not at rest, and why.

    `refused` are the first `REFUSED_SHOWN_MAX` of `busy`; `left` is what is still to be done before
    the bytes are gone from the disk, "" for nothing.
    """

    archived: int = 0
    erased: int = 0
    busy: int = 0
    refused: list[str] = field(default_factory=list[str])
    left: str = ""

    def refuse(self, why: str) -> None:
        """Take down that something was not at rest."""
        self.busy += 1
        if len(self.refused) < REFUSED_SHOWN_MAX:
            self.refused.append(why)


@dataclass(slots=True, eq=False)
class Keeper:
    """Archives and erases in one store. Times are UTC, seconds since the epoch."""

    store: Store
    keeping: Keeping
    archive: Archive | None = None

    async def erase(
        self, selection: Selection, erasure: Erasure, *, rewrites: bool = False
    ) -> Tally:
        """Erase the details of what is selected, with all that speaks of it.

        What is not at rest is left alone and told in `refused`. Raises `ProposalError` where a
        record is named that is not at rest, or that there is not.
        """
        tally = Tally()
        found = await self._erase(selection, erasure, tally)
        if selection.record and not found:
            raise ProposalError(f"there is no record {selection.record!r} in {selection.tenant}")
        if selection.record and tally.refused:
            raise ProposalError(
                f"{tally.refused[0]}: its details cannot be erased before it is over"
            )
        tally.left = await self._scrub(tally, rewrites=rewrites)
        return tally

    async def keep(
        self, retention: Retention, *, by: str, now: float, selection: Selection | None = None
    ) -> Tally:
        """Archive and erase what a retention says is due at `now`; of every tenant, or a selection.

        Everything archived was read back from the disk. Raises `StoreError` where that did not
        come about; what is durable by then stays, and is not done again.
        """
        tally = Tally()
        chosen = selection or Selection(tenant="")
        if self.archive is not None:
            await asyncio.to_thread(self.archive.open)
            before = _before(retention.archive_after_days, now)
            await self._archive(replace(chosen, before=before), now, tally)
        erasure = Erasure(by=by, why=_why(retention), at=now)
        before = _before(retention.erase_after_days, now)
        await self._erase(replace(chosen, before=before), erasure, tally)
        tally.left = await self._scrub(tally, rewrites=False)
        return tally

    async def verify(self) -> list[str]:
        """Return how the archive differs from the store; an entry for each record that does.

        Raises `StoreError` for a segment that is not whole, and where there is no archive.
        """
        assert self.archive is not None
        self.archive.require()
        problems: list[str] = []
        for name, archived in self.archive.read():
            for each in archived:
                if why := differing(each, await self._entries(each.record.id)):
                    problems.append(f"{name}: {why}")
        return problems

    # What is there.

    async def _strands(self, selection: Selection) -> AsyncIterator[Strand]:
        """Yield what is selected, a session at a time."""
        if selection.before == -math.inf:
            return
        async for tenant, session in self._sessions(selection):
            for strand in await self._of_session(tenant, session):
                if is_meant(strand, selection):
                    yield strand

    async def _sessions(self, selection: Selection) -> AsyncIterator[tuple[str, str]]:
        if selection.record:
            for record in await self.store.load(selection.record):
                if record.tenant == selection.tenant and record.kind is not Kind.CONTRACT:
                    yield record.tenant, record.session
            return
        if selection.session:
            yield selection.tenant, selection.session
            return
        after = (selection.tenant, "")
        while page := await self.keeping.sessions(after=after, limit=PAGE):
            for tenant, session in page:
                if selection.tenant and tenant != selection.tenant:
                    return
                yield tenant, session
            after = page[-1]

    async def _of_session(self, tenant: str, session: str) -> list[Strand]:
        reader = Reader(store=self.store)
        seen: list[Glimpse] = []
        after = 0
        while page := await self.keeping.kept(
            tenant=tenant, session=session, after=after, limit=PAGE
        ):
            for each in page:
                contracts = await self._contracts(each.record, reader)
                seen.append(glimpse(each, contracts))
            after = page[-1].record.made
            await asyncio.sleep(0)
        return strands(seen)

    async def _contracts(self, record: Record, reader: Reader) -> dict[str, Contract]:
        for digest in contracts_of(record):
            await reader.contract(digest, of=record.id)
        return reader.contracts

    # Archiving.

    async def _archive(self, selection: Selection, now: float, tally: Tally) -> None:
        assert self.archive is not None
        waiting: list[Archived] = []
        async for strand in self._strands(selection):
            if _is_held(strand, self.archive):
                continue
            if why := why_not(strand, now):
                tally.refuse(why)
                continue
            waiting += await self._whole(strand)
            if len(waiting) >= SEGMENT_RECORDS_MAX:
                tally.archived += await self._write(waiting)
                waiting = []
        if waiting:
            tally.archived += await self._write(waiting)

    async def _whole(self, strand: Strand) -> list[Archived]:
        """Return what is not archived yet of a strand, as it was glimpsed; nothing if it moved."""
        assert self.archive is not None
        held = self.archive.held
        wanted = [
            each.id for each in strand if not each.is_erased and held.get(each.id) != each.last
        ]
        versions = {each.id: each.version for each in strand}
        records = await self._load(wanted)
        if any(record.version != versions[record.id] for record in records):
            return []
        return [await self._archived(record) for record in records]

    async def _write(self, waiting: Sequence[Archived]) -> int:
        assert self.archive is not None
        named = {digest for each in waiting for digest in contracts_of(each.record)}
        ids = [id for id in map(contract_id, sorted(named)) if id not in self.archive.held]
        contracts = [await self._archived(record) for record in await self._load(ids)]
        await asyncio.to_thread(self.archive.write, [*contracts, *waiting])
        return len(contracts) + len(waiting)

    async def _archived(self, record: Record) -> Archived:
        entries = await self._entries(record.id)
        await asyncio.sleep(0)  # A read of SQLite lets nobody else run; others of this loop may.
        return Archived(record=record, entries=tuple(e for e in entries if e.seq <= record.last))

    async def _entries(self, record: str) -> list[Entry]:
        entries: list[Entry] = []
        while len(entries) < ENTRIES_MAX:
            after = entries[-1].seq if entries else 0
            page = await self.store.journal(record=record, after=after, limit=PAGE)
            entries += page
            if len(page) < PAGE:
                return entries
        raise StoreError(f"{record} has more than {ENTRIES_MAX} journal entries")

    async def _load(self, ids: Sequence[str]) -> list[Record]:
        records: list[Record] = []
        for start in range(0, len(ids), PAGE):
            records += await self.store.load(*ids[start : start + PAGE])
        return records

    # Erasing.

    async def _erase(self, selection: Selection, erasure: Erasure, tally: Tally) -> int:
        """Erase what is selected and at rest, and return how many strands were selected."""
        waiting: list[Strand] = []
        found = 0
        async for strand in self._strands(selection):
            found += 1
            if not any(_holds_details(each) for each in strand):
                continue
            if self.archive is not None and not _is_held(strand, self.archive):
                continue
            if why := why_not(strand, erasure.at):
                tally.refuse(why)
                continue
            waiting.append(strand)
            if sum(map(len, waiting)) >= ERASED_AT_ONCE_MAX:
                await self._erase_together(waiting, erasure, tally)
                waiting = []
        await self._erase_together(waiting, erasure, tally)
        return found

    async def _erase_together(
        self, waiting: Sequence[Strand], erasure: Erasure, tally: Tally
    ) -> None:
        """Erase strands at once; where one of them moved meanwhile, each for itself."""
        try:
            tally.erased += await self._erase_strand(tuple(chain(*waiting)), erasure)
        except StaleWriteError:
            for strand in waiting:
                try:
                    tally.erased += await self._erase_strand(strand, erasure)
                except StaleWriteError as moved:
                    tally.refuse(f"{moved.record} moved meanwhile")

    async def _erase_strand(self, strand: Strand, erasure: Erasure) -> int:
        """Erase in bounded batches, each only while all of the strand is as it was glimpsed."""
        versions = {each.id: each.version for each in strand}
        ids = [each.id for each in strand if _holds_details(each)]
        count = 0
        for start in range(0, len(ids), ERASED_AT_ONCE_MAX):
            records = await self.store.load(*ids[start : start + ERASED_AT_ONCE_MAX])
            moves = [move for move in (erasing(each, erasure) for each in records) if move]
            if not moves:
                continue
            _require_as_glimpsed(moves, versions)
            moving = {move.after.id for move in moves}
            guards = [Guard(id=i, version=v) for i, v in versions.items() if i not in moving]
            await self.store.commit(Changes(moves=tuple(moves), guards=tuple(guards)))
            versions.update({move.after.id: move.after.version for move in moves})
            await self.keeping.let_go(*moving)
            count += len(moves)
        return count

    async def _scrub(self, tally: Tally, *, rewrites: bool) -> str:
        if not tally.erased and not rewrites:
            return ""
        return await self.keeping.scrub(rewrites=rewrites)


def _holds_details(each: Glimpse) -> bool:
    return each.kind in ERASABLE and not each.is_erased


def _require_as_glimpsed(moves: Iterable[Move], versions: dict[str, int]) -> None:
    for move in moves:
        record, found = move.after.id, move.after.version - 1
        if found != versions[record]:
            raise StaleWriteError(record=record, expected=versions[record], found=found)


def _is_held(strand: Strand, archive: Archive) -> bool:
    """Whether an archive has all of a strand that is not erased, up to its latest event."""
    return all(each.is_erased or archive.held.get(each.id) == each.last for each in strand)


def _before(days: float | None, now: float) -> float:
    return -math.inf if days is None else now - days * DAY_S


def _why(retention: Retention) -> str:
    days = retention.erase_after_days or 0.0
    return f"it was over for {days:g} days{', and is archived' if retention.to else ''}"
