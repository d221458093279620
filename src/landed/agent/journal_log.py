"""A conversation in a store's journal: the log of a session that has a runtime.

Each message is a record of its own beside the operations of its session, in one order with them and
under the same chain. It is what `session_log` is for a file, with verbs of the same names that are
waited for. Ids are counted when it is read: the n-th line of the session is "en", whoever wrote it.
"""

from collections.abc import Awaitable, Mapping, Sequence
from pathlib import Path
from typing import Any

from landed.agent.harness import Listener
from landed.agent.log_lines import Entry, LogError, entry_of, kept, line_of
from landed.agent.loop import Event
from landed.agent.messages import Message
from landed.agent.session_log import SessionLog
from landed.core.changes import Kind, Record
from landed.core.session import conversing
from landed.core.store import Store
from landed.runtime.runtime import Runtime

PAGE = 500


class JournalLog:
    """The log of one conversation of an open runtime.

    An append returns once the store has it durably. Every verb may raise `StoreError`; reading
    raises `LogError` for a line that this version cannot read. Lines whose details were erased are
    left out of what is read.
    """

    def __init__(self, rt: Runtime, session: str, *, tenant: str = "default") -> None:
        self.rt = rt
        self.session = session
        self.tenant = tenant

    @property
    def path(self) -> Path:
        """The name that errors use for it: no file is there."""
        return Path(f"session {self.session}")

    async def append(self, message: Message) -> str:
        """Keep a message and return the id of its record."""
        return await self.append_entry({"type": "message", "message": message})

    async def append_entry(self, entry: Mapping[str, Any]) -> str:
        """Keep an entry of any type, given without its id; return the id of its record."""
        try:
            line = line_of({"id": "e1", **entry})
            entry_of(line, number=1)
        except ValueError as error:
            raise LogError(self.path, 0, f"this cannot be an entry: {error}") from error
        unit = conversing(
            id=self.rt.ids.new("line"),
            tenant=self.tenant,
            session=self.session,
            line=line_of(entry).decode().rstrip("\n"),
            at=self.rt.driver.clock.now(),
        )
        (record,) = await self.rt.driver.store.commit(unit)
        return record.id

    async def entries(self) -> list[Entry]:
        """Return every entry of the conversation, in order, but for those that were erased."""
        return await journal_entries(self.rt.driver.store, session=self.session, tenant=self.tenant)

    async def replay(self) -> list[Message]:
        """Return the conversation as it stands: what a harness resumes with."""
        return [message for _, message in kept(self.path, await self.entries())]


async def journal_entries(store: Store, *, session: str, tenant: str) -> list[Entry]:
    """Return the entries of a conversation as a store has it, but for those that were erased.

    Raises `LogError` for a line that this version cannot read.
    """
    read: list[Entry] = []
    for number, record in enumerate(await _lines(store, session=session, tenant=tenant), 1):
        if (line := str(record.frozen["line"])).startswith("{"):
            read.append(_entry(line, number, session))
    return read


def export_to(log: SessionLog, entries: Sequence[Entry]) -> int:
    """Write the entries of a conversation into a new log of JSON lines; return how many.

    They are numbered anew, for a log has no gaps where something was erased. Raises `ValueError`
    where the file is there already, and what the log raises.
    """
    if log.path.exists():
        raise ValueError(f"{log.path} is there already; name a file that is not")
    renamed: dict[str, str] = {}
    for entry in entries:
        kept_from = entry.get("first_kept_id")
        body = {name: value for name, value in entry.items() if name != "id"}
        if kept_from is not None:
            body["first_kept_id"] = renamed.get(str(kept_from), str(kept_from))
        renamed[str(entry["id"])] = log.append_entry(body)
    return len(renamed)


def _entry(line: str, number: int, session: str) -> Entry:
    numbered = f'{{"id":"e{number}",{line[1:]}'
    try:
        return entry_of(numbered.encode("utf-8", "surrogatepass"), number=number)
    except ValueError as error:
        raise LogError(Path(f"session {session}"), number, str(error)) from None


async def _lines(store: Store, *, session: str, tenant: str) -> Sequence[Record]:
    found: list[Record] = []
    after = 0
    while True:
        page = await store.session_records(tenant=tenant, session=session, after=after, limit=PAGE)
        found += [record for record in page if record.kind is Kind.LINE]
        if len(page) < PAGE:
            return found
        after = page[-1].made


def keep_in(log: JournalLog) -> Listener:
    """Return a saver that keeps each message in the journal as it is completed."""

    async def keep(message: Message) -> None:
        await log.append(message)

    def save(event: Event) -> Awaitable[None] | None:
        message = event.get("message") if event["type"] == "message_end" else None
        return keep(message) if message is not None else None

    return save
