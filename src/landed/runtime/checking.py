"""Reads the journal back from its end for whoever audits it, and checks that it holds together.

A tenant is shown its own entries; the chain is checked over all of them, for it is one of all.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from landed.core.chain import Chain
from landed.core.changes import Record
from landed.core.errors import StoreError
from landed.core.journal import Entry
from landed.core.store import Selection
from landed.runtime.reader import Reader

SPAN = 100  # entries that are read for one page of rows, a few times over
SPANS_MAX = 5
ROWS_MIN = 50  # rows of a page before no more entries are read for it
BITE = 1000  # entries that are checked at a time
CHECKED_MAX = 100_000  # entries of one check
ONE_CHAIN = "sqlite"  # the fact of a store that makes one chain, whoever writes to it


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """An entry, and the record that it is of; None for one that does not agree with its journal."""

    entry: Entry
    record: Record | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Entries of a tenant, newest first; `next` is what `before` is for the page behind this one.

    `chain` is what the check of all entries of that stretch came to; `next` is 0 at the end.
    """

    rows: tuple[Row, ...]
    chain: Chain
    next: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Checker:
    """Reads a journal for one tenant; nothing is claimed and nothing is written."""

    reader: Reader
    tenant: str

    async def rows(self, *, before: int = 0) -> Rows:
        """Return a page of the tenant's entries from before a position back, 0 for the newest."""
        end = before or await self._end()
        low, rows = end - 1, list[Row]()
        read: list[Entry] = []
        for _ in range(SPANS_MAX):
            if low <= 0 or len(rows) >= ROWS_MIN:
                break
            high, low = low, max(0, low - SPAN)
            page = await self.reader.store.journal(after=low, limit=SPAN)
            part = [entry for entry in page if entry.seq <= high]
            read = [*part, *read]
            rows += await self._rows(part[::-1])
        chain = await self._chain(after=low)
        chain.read(read)
        return Rows(rows=tuple(rows), chain=chain, next=low + 1 if low else 0)

    async def check(self, *, after: int, in_time: Callable[[], bool]) -> Chain:
        """Check the journal from after a position on, for as long as that is in time.

        What was checked is in the answer; where it ended before the journal did, `last` is where to
        go on from. Checking is done aside, so that a loop goes on meanwhile.
        """
        chain = await self._chain(after=after)
        while chain.checked < CHECKED_MAX and in_time():
            page = await self.reader.store.journal(after=chain.last or after, limit=BITE)
            await asyncio.to_thread(chain.read, page)
            if len(page) < BITE:
                break
        return chain

    async def is_over(self, after: int) -> bool:
        """Whether no entry stands behind a position."""
        return not await self.reader.store.journal(after=after, limit=1)

    async def _chain(self, *, after: int) -> Chain:
        facts = await self.reader.store.facts()
        is_one = any(fact.name == ONE_CHAIN for fact in facts)
        return Chain(secrets=self.reader.secrets, is_from_beginning=not after, is_one=is_one)

    async def _end(self) -> int:
        newest = await self.reader.store.listed(tenant=self.tenant, of=Selection.RECENT, limit=1)
        return max((record.last for record in newest.records), default=0) + 1

    async def _rows(self, entries: Sequence[Entry]) -> list[Row]:
        """Return the entries that are the tenant's; one that cannot be told is nobody else's."""
        held = await self._held([entry.id for entry in entries])
        rows = [Row(entry=entry, record=held[entry.id]) for entry in entries if entry.id in held]
        return [row for row in rows if row.record is None or row.record.tenant == self.tenant]

    async def _held(self, ids: Sequence[str]) -> dict[str, Record | None]:
        wanted = list(dict.fromkeys(ids))
        try:
            return {record.id: record for record in await self.reader.store.load(*wanted)}
        except StoreError:
            return {id: await self._one(id) for id in wanted}

    async def _one(self, id: str) -> Record | None:
        """Return a record, None for one that was edited: that is for an auditor to see."""
        try:
            found = await self.reader.store.load(id)
        except StoreError:
            return None
        return found[0] if found else None
