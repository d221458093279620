"""Reads what stands near a record in its session, in bounds: a session may be as long as a store.

What a record speaks of is loaded by its ids; what speaks of it was made after that, and is read
from there on, so far and no further.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from landed.core.changes import Record
from landed.core.session import contracts_of
from landed.runtime.reader import Reader
from landed.runtime.tracing import spoken_of

NEAR_MAX = 200  # records of a session that are read from one of them on
UP_MAX = 100  # records that are followed up
UP_DEEP = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Near:
    """The records near another, oldest first, with their contracts learnt by the reader.

    `whole` says that nothing of the session from the first of them on was left out.
    """

    records: tuple[Record, ...]
    whole: bool


async def near(reader: Reader, record: Record) -> Near:
    """Return what a record speaks of, it, and what was made in its session after those."""
    above = await _above(reader, record)
    start = min(each.made for each in (record, *above)) - 1
    page = await _from(reader, record, start)
    late = page if record in page else await _from(reader, record, record.made - 1)
    every = {each.id: each for each in (*above, *page, record, *late)}
    whole = page is late and len(page) <= NEAR_MAX
    return Near(
        records=await learnt(reader, sorted(every.values(), key=lambda each: each.made)),
        whole=whole,
    )


async def learnt(reader: Reader, records: Sequence[Record]) -> tuple[Record, ...]:
    """Return records once the contracts that they name are known to the reader."""
    for record in records:
        for digest in contracts_of(record):
            await reader.contract(digest, of=record.id)
    return tuple(records)


async def _from(reader: Reader, record: Record, after: int) -> tuple[Record, ...]:
    return await reader.store.session_records(
        tenant=record.tenant, session=record.session, after=after, limit=NEAR_MAX + 1
    )


async def _above(reader: Reader, record: Record) -> list[Record]:
    """Return what a record of the same session speaks of, directly or not."""
    found: dict[str, Record] = {record.id: record}
    ahead = [record]
    for _ in range(UP_DEEP):
        wanted = {id for each in ahead for id in spoken_of(each)} - found.keys()
        room = UP_MAX - len(found)
        if not wanted or room <= 0:
            break
        loaded = await reader.store.load(*sorted(wanted)[:room])
        ahead = [
            each
            for each in loaded
            if (each.tenant, each.session) == (record.tenant, record.session)
        ]
        found.update((each.id, each) for each in ahead)
    return [each for each in found.values() if each.id != record.id]
