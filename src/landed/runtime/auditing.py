"""Reads what an audit is made of: the plans of a tenant, whatever an id names, and its links.

Nothing is claimed and nothing is written. What has to be looked for is looked for in bounds, from
the beginning of the journal.
"""

import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

from landed.core.approval import (
    ApprovalEvent,
    ApprovalState,
    approval_from,
    token_digest,
    token_name,
)
from landed.core.audit import approvals_of, audit
from landed.core.audit_rows import Audit
from landed.core.canonical import Json
from landed.core.changes import Kind, Record
from landed.core.errors import ProposalError, StoreError
from landed.core.journal import Entry, as_of
from landed.core.plan import BORN, Plan, plan_from
from landed.core.session import delivery_name
from landed.core.store import Selection
from landed.runtime.reader import Reader
from landed.runtime.tracing import Trace, trace

ENTRIES = 1000  # journal entries read at a time
PAGES_MAX = 5000  # of these, before a search is given up
FOUND_MAX = 100  # records that a search may come to
LOADED = 500  # records loaded at a time
SOUGHT_MAX = 4_000  # entries of one search from the newest back
ID_MAX = 1000  # characters of what may be looked for

_IDS = re.compile(
    r"(?:op|plan|in|input|turn|question|message|observation)-[0-9a-z]+", re.ASCII | re.IGNORECASE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sought:
    """What a search through a part of the journal came to.

    `looked` entries were looked at, `back_to` the time of the oldest (UTC, seconds since the
    epoch); `next` is where to go on from, 0 where nothing is left.
    """

    records: tuple[Record, ...]
    looked: int
    back_to: float
    next: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Auditor:
    """Reads across the sessions of one tenant."""

    reader: Reader
    tenant: str = "default"

    async def plans(self, session: str = "") -> tuple[Plan, ...]:
        """Return the plans of a session, or of all, oldest first."""
        if session:
            records = await self.reader.records(tenant=self.tenant, session=session)
        else:
            ids = [e.id async for e in self._entries() if e.version == 1 and e.event in _BORN]
            records = await self._load(ids)
        return tuple(plan_from(record) for record in records if record.kind is Kind.PLAN)

    async def at_hand(self) -> tuple[Plan, ...]:
        """Return the plans that are under way, or wait for a yes of any kind, oldest first.

        Nothing that is finished is read.
        """
        ids: dict[str, None] = {}
        for of in (Selection.WAITING, Selection.OPEN):
            async for record in self._listed(of):
                if record.kind is Kind.PLAN:
                    ids[record.id] = None
                elif record.kind is Kind.APPROVAL:
                    ids[approval_from(record).plan] = None
        records = sorted(await self._load(ids), key=lambda record: record.made)
        return tuple(plan_from(record) for record in records)

    async def audit(self, plan: str, *, now: float) -> Audit:
        """Return the audit of a plan. Raises `ProposalError` for an id that is none."""
        found = await self.reader.plan(plan, tenant=self.tenant)
        records = await self.reader.records(tenant=self.tenant, session=found.session)
        (record,) = [each for each in records if each.id == plan]
        told = (record, *approvals_of(plan, records))
        entries = {each.id: await self._entries_of(each.id) for each in told}
        return audit(record, records, entries, self.reader.contracts, now=now)

    async def trace(self, record: Record, *, now: float, language: str = "en") -> Trace:
        """Return what a record is, and its links within its session."""
        records = await self.reader.records(tenant=record.tenant, session=record.session)
        return await self.trace_among(record, records, now=now, language=language)

    async def trace_among(
        self, record: Record, records: Sequence[Record], *, now: float, language: str = "en"
    ) -> Trace:
        """Return what a record is, and its links among these records of its session."""
        held = [await self._as_taken(each) for each in records]
        (itself,) = [each for each in held if each.id == record.id] or [record]
        return trace(itself, held, self.reader.contracts, now=now, language=language)

    async def _as_taken(self, record: Record) -> Record:
        """Return a yes as it was when it was given: who presents it later is noted in it, too."""
        refused = record.kind is Kind.APPROVAL and record.changing["problem"]
        if not refused or record.state != ApprovalState.TAKEN:
            return record
        entries = await self._entries_of(record.id)
        taken = [e for e in entries if e.event == ApprovalEvent.TAKEN and e.body is not None]
        return as_of(record, taken[0]) if taken else record

    async def find(self, text: str) -> tuple[Record, ...]:
        """Return what `text` names: an id of ours, a key, a Message-ID, an id that a service gave.

        What made the thing of that id comes before what only speaks of it. Raises `ProposalError`
        where nothing here is known by it, or by more than `ID_MAX` characters.
        """
        if not 0 < len(text) <= ID_MAX or not is_text(text):
            raise ProposalError(f"an id has 1 to {ID_MAX} characters, all of them text")
        if found := await self.known(text) or await self._by_search(text):
            return found
        raise ProposalError(
            "nothing here is known by that id; give an id of a record, a key, a Message-ID, or the"
            " id that a service gave"
        )

    async def known(self, text: str) -> tuple[Record, ...]:
        """Return what `text` names by an index: an id of ours, a token, a delivery, a key."""
        for look in (self._by_id, self._by_name, self._by_part):
            if found := await look(text):
                return found
        return ()

    async def sought(self, text: str, *, before: int = 0) -> Sought:
        """Return what was called by `text` in the newest part of the journal, so far at a time.

        `before` is the `next` of the search to go on from, 0 for the newest. Found is what the
        same part of the journal tells of; what an operation was called later is in a later part.
        """
        end = before or await self._end()
        low = after = max(0, end - 1 - SOUGHT_MAX)
        needle, ids, looked, back_to = _needle(text), dict[str, None](), 0, 0.0
        while after < end - 1:
            limit = min(ENTRIES, end - 1 - after)
            page = await self.reader.store.journal(after=after, limit=limit)
            part = [entry for entry in page if entry.seq < end]
            if not part:
                break
            back_to, looked, after = back_to or part[0].at, looked + len(part), part[-1].seq
            ids.update((e.id, None) for e in part if e.body is not None and needle in e.body)
        records = await self._called(text, ids)
        return Sought(records=records, looked=looked, back_to=back_to, next=low + 1 if low else 0)

    async def _end(self) -> int:
        """Return the position behind the newest entry of the tenant."""
        newest = await self.reader.store.listed(tenant=self.tenant, of=Selection.RECENT, limit=1)
        return max((record.last for record in newest.records), default=0) + 1

    async def _by_id(self, text: str) -> tuple[Record, ...]:
        return self._ours(await self.reader.store.load(text))

    async def _by_name(self, text: str) -> tuple[Record, ...]:
        """A token finds its approval, a delivery its input."""
        names = (token_name(token_digest(text)), delivery_name(tenant=self.tenant, delivery=text))
        holders = await self.reader.store.holders(*names)
        return self._ours(await self.reader.store.load(*holders.values())) if holders else ()

    async def _by_part(self, text: str) -> tuple[Record, ...]:
        """A key or a Message-ID has the id of its operation in it."""
        ids = dict.fromkeys(each.group().lower() for each in _IDS.finditer(unquote(text)))
        return self._ours(await self.reader.store.load(*ids)) if ids else ()

    async def _by_search(self, text: str) -> tuple[Record, ...]:
        needle = _needle(text)
        ids: dict[str, None] = {}
        async for entry in self._entries():
            if entry.body is not None and needle in entry.body:
                ids[entry.id] = None
        return await self._called(text, ids)

    async def _called(self, text: str, ids: Mapping[str, None]) -> tuple[Record, ...]:
        """Return the calls among these that are known by a text, or else that speak of it."""
        records = [record for record in await self._load(ids) if record.kind in _CALLS]
        for where in (known_by, _spoken_of):
            if found := [record for record in records if text in where(record)]:
                return tuple(found[:FOUND_MAX])
        return ()

    def _ours(self, records: Sequence[Record]) -> tuple[Record, ...]:
        return tuple(record for record in records if record.tenant in ("", self.tenant))

    async def _load(self, ids: Sequence[str] | Mapping[str, None]) -> list[Record]:
        loaded: list[Record] = []
        wanted = list(dict.fromkeys(ids))
        for start in range(0, len(wanted), LOADED):
            page = await self.reader.store.load(*wanted[start : start + LOADED])
            loaded += (record for record in page if record.tenant == self.tenant)
        return loaded

    async def _listed(self, of: Selection) -> AsyncIterator[Record]:
        after = 0
        for _ in range(PAGES_MAX):
            page = await self.reader.store.listed(
                tenant=self.tenant, of=of, after=after, limit=LOADED
            )
            for record in page.records:
                yield record
            after = page.next
            if not after:
                return

    async def _entries(self) -> AsyncIterator[Entry]:
        after = 0
        for _ in range(PAGES_MAX):
            page = await self.reader.store.journal(after=after, limit=ENTRIES)
            for entry in page:
                yield entry
            if len(page) < ENTRIES:
                return
            after = page[-1].seq
        raise StoreError(
            f"the journal has more than {ENTRIES * PAGES_MAX} entries; name the session, or an id"
            " of ours"
        )

    async def _entries_of(self, record: str) -> tuple[Entry, ...]:
        entries: list[Entry] = []
        for _ in range(PAGES_MAX):
            after = entries[-1].seq if entries else 0
            page = await self.reader.store.journal(record=record, after=after, limit=ENTRIES)
            entries += page
            if len(page) < ENTRIES:
                break
        return tuple(entries)


_BORN = frozenset(map(str, BORN.values()))
_CALLS = frozenset({Kind.OPERATION, Kind.OBSERVATION})


def _needle(text: str) -> bytes:
    """Return what a text is in the bytes of a body."""
    return json.dumps(text, ensure_ascii=False)[1:-1].encode()


def is_text(text: str) -> bool:
    """Whether it can be written down: half a character, as a shell may hand one over, cannot."""
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def known_by(record: Record) -> set[str]:
    """Return what a call is known by at its service: its key, and whatever its answer says."""
    result = (record.changing if record.kind is Kind.OPERATION else record.frozen).get("result")
    return {str(record.frozen.get("key", "")), *_leaves(result)} - {""}


def _spoken_of(record: Record) -> set[str]:
    return set(_leaves(record.frozen.get("arguments")))


def _leaves(value: Json) -> Iterator[str]:
    """Yield each text and whole number in a value."""
    if isinstance(value, Mapping):
        for each in value.values():
            yield from _leaves(each)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for each in value:
            yield from _leaves(each)
    elif isinstance(value, str | int) and not isinstance(value, bool):
        yield str(value)
