"""What a worker process of a chaos run notes down, line by line, for whoever counts afterwards.

A line that is cut short by a SIGKILL is no line. Nothing here reaches the runtime.
"""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from landed.core.changes import Changes, Record
from landed.core.errors import LeaseLostError, StaleWriteError, StoreError
from landed.core.journal import Entry
from landed.core.store import Fact, Page, Selection, Store


class Noted(StrEnum):
    """What a line is about."""

    BEGAN = "began"
    CLAIMED = "claimed"
    STALE = "stale"
    LEASE_LOST = "lease_lost"
    TROUBLE = "trouble"
    REFUSED = "refused"
    DONE = "done"
    ENDED = "ended"


@dataclass(slots=True, eq=False)
class Notes:
    """The file of one worker number, appended to by one process after the other."""

    path: Path

    def add(self, noted: Noted, **more: Any) -> None:
        """Append one line, with the time (UTC seconds)."""
        line = json.dumps({"at": time.time(), "noted": noted, **more})
        with self.path.open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")

    def lines(self) -> list[dict[str, Any]]:
        """Return what was noted so far, oldest first."""
        if not self.path.exists():
            return []
        return [_read(line) for line in self.path.read_text().splitlines() if line.endswith("}")]


def _read(line: str) -> dict[str, Any]:
    # The next process may have begun its first line behind one that was cut short.
    start = line.rindex('{"at": ')
    read: dict[str, Any] = json.loads(line[start:])
    return read


@dataclass(slots=True, eq=False)
class NotingStore:
    """A store that notes what it claimed, and which writes were refused because of others."""

    inner: Store
    notes: Notes

    async def commit(self, changes: Changes) -> tuple[Record, ...]:
        """Write it; here and below, as the inner store does."""
        try:
            return await self.inner.commit(changes)
        except StaleWriteError as stale:
            self.notes.add(Noted.STALE, record=stale.record, name=stale.name.partition("/")[0])
            raise
        except LeaseLostError as lost:
            self.notes.add(Noted.LEASE_LOST, record=lost.record)
            raise
        except StoreError as error:
            self.notes.add(Noted.TROUBLE, says=str(error))
            raise

    async def claim(self, *, worker: str, now: float, limit: int = 100) -> tuple[Record, ...]:
        """See `commit`."""
        began = time.time()
        claimed = await self.inner.claim(worker=worker, now=now, limit=limit)
        self.notes.add(Noted.CLAIMED, began=began, ids=[record.id for record in claimed])
        return claimed

    async def load(self, *ids: str) -> tuple[Record, ...]:
        """See `commit`."""
        return await self.inner.load(*ids)

    async def open_records(self, *, tenant: str, session: str, worker: str) -> tuple[Record, ...]:
        """See `commit`."""
        return await self.inner.open_records(tenant=tenant, session=session, worker=worker)

    async def session_records(
        self, *, tenant: str, session: str, after: int = 0, limit: int = 1000
    ) -> tuple[Record, ...]:
        """See `commit`."""
        return await self.inner.session_records(
            tenant=tenant, session=session, after=after, limit=limit
        )

    async def listed(
        self, *, tenant: str, of: Selection, after: int = 0, limit: int = 1000
    ) -> Page:
        """See `commit`."""
        return await self.inner.listed(tenant=tenant, of=of, after=after, limit=limit)

    async def journal(
        self, *, after: int = 0, limit: int = 1000, record: str = ""
    ) -> tuple[Entry, ...]:
        """See `commit`."""
        return await self.inner.journal(after=after, limit=limit, record=record)

    async def holders(self, *names: str) -> Mapping[str, str]:
        """See `commit`."""
        return await self.inner.holders(*names)

    async def renew(self, *, worker: str, until: float) -> None:
        """See `commit`."""
        await self.inner.renew(worker=worker, until=until)

    async def retire(self, *, worker: str) -> None:
        """See `commit`."""
        await self.inner.retire(worker=worker)

    async def facts(self) -> tuple[Fact, ...]:
        """See `commit`."""
        return await self.inner.facts()

    async def close(self) -> None:
        """See `commit`."""
        await self.inner.close()
