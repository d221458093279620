"""What tests of keeping share: every read that there is, the whole chain, and who has things go."""

from collections.abc import Sequence

from landed.core.changes import Kind, Record
from landed.core.erasing import Erasure
from landed.core.history import View
from landed.core.journal import GENESIS, Entry, verify
from landed.runtime.auditing import Auditor
from landed.runtime.inbox import Inbox
from landed.runtime.keeping import Keeper
from landed.runtime.reader import Reader
from landed.stores.sqlite import SqliteStore
from landed.testing.timeline import replayed

LATER = 4e9  # Long after anything in a test: UTC, seconds since the epoch.
AS_ASKED = Erasure(by="ana", why="she asked for it", at=LATER)


def keeper_of(store: SqliteStore) -> Keeper:
    return Keeper(store=store, keeping=store.keeping())


async def sessions_of(store: SqliteStore) -> list[str]:
    found = await store.keeping().sessions()
    return [session for tenant, session in found if tenant == "default"]


async def records_of(store: SqliteStore) -> list[Record]:
    every: list[Record] = []
    for session in await sessions_of(store):
        every += await store.session_records(tenant="default", session=session)
    return every


async def journal_of(store: SqliteStore) -> list[Entry]:
    """Return the whole journal, after seeing that it is one chain and nothing in it was edited."""
    entries = await store.journal(limit=10_000)
    prev = GENESIS
    for entry in entries:
        verify(entry)
        assert entry.prev == prev
        prev = entry.hash
    return list(entries)


async def said_of(store: SqliteStore, *, now: float = LATER) -> list[str]:
    """Read everything that can be read, and return it as texts; nothing may be missing or raise."""
    reader = Reader(store=store)
    auditor = Auditor(reader=reader)
    said: list[str] = [repr(case) for case in await Inbox(reader=reader, tenant="default").cases()]
    for session in await sessions_of(store):
        for view in View:
            said += map(repr, await reader.history(session, tenant="default", view=view))
        timeline = await replayed(store, tenant="default", session=session)
        said += map(str, timeline.lines)
        for record in await store.session_records(tenant="default", session=session):
            said += await _said_of_one(record, reader, auditor, now)
    return said


async def _said_of_one(
    record: Record, reader: Reader, auditor: Auditor, now: float
) -> Sequence[str]:
    (found,) = await auditor.find(record.id)
    said = [repr(await auditor.trace(found, now=now))]
    if record.kind in (Kind.TURN, Kind.OPERATION, Kind.PLAN):
        for language in ("en", "es"):
            said.append(repr(await reader.report(record.id, language=language, now=now)))
    if record.kind is Kind.PLAN:
        said.append(repr(await auditor.audit(record.id, now=now)))
    if record.kind is Kind.OPERATION:
        said.append(repr(reader.value(await reader.operation(record.id))))
    return said
