"""Tells the application when a case opens: after the commit, at least once, never in the way.

What was told is a record of its own, written after the telling succeeded. So a process that dies in
between leaves a case without one, and the next process tells it again, under the same id.
"""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

from landed.core.case import CaseEvent, CaseState, Standing
from landed.core.changes import Kind, Move, Record
from landed.core.doubt import pause_s
from landed.core.errors import LandedError, StaleWriteError, StoreError
from landed.core.operation import Happened, State
from landed.core.session import saying
from landed.runtime.clock import Clock
from landed.runtime.inbox import Inbox
from landed.runtime.reader import Reader

log = logging.getLogger("landed")

TRIES_MAX = 8  # tellings of one case that may fail before it is left for the next start
TELLING_MAX_S = 600.0  # seconds that one telling may take
AT_ONCE_MAX = 4  # cases that are told of at once
LAST_WORDS_S = 5.0  # how long the end of a runtime waits for what is being told

OPENS = frozenset({Happened.GAVE_UP.value, CaseEvent.OPENED.value})


class Notify(Protocol):
    """What the application does when a case opens."""

    async def opened(self, standing: Standing) -> None:
        """Tell whoever has to look; return once it is told, and raise when it was not.

        It may be called twice for one case, also by another process: `standing.id` is the same.
        """
        ...


@dataclass(slots=True, eq=False)
class Notifier:
    """Tells of cases, each in its turn. `tenants` are those looked through at the start."""

    notify: Notify
    reader: Reader
    clock: Clock
    tenants: Sequence[str]
    _telling: "set[asyncio.Task[None]]" = field(default_factory=set["asyncio.Task[None]"])
    _known: set[str] = field(default_factory=set[str])
    _seats: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE_MAX))
    _over: bool = False

    def notice(self, moves: Iterable[Move]) -> None:
        """See whether moves that were just stored open a case."""
        for move in moves:
            if move.event.name in OPENS:
                self._begin(move.after)

    async def recall(self) -> None:
        """Tell of all that waits and that nobody was told of yet; the store is only read."""
        for tenant in self.tenants:
            try:
                waiting = await Inbox(reader=self.reader, tenant=tenant).waiting()
                await self._untold([record for record in waiting if is_case(record)])
            except StoreError as error:
                log.warning("what waits in %s could not be told again: %s", tenant, error)

    async def end(self) -> None:
        """Wait a moment for what is being told, and leave the rest for the next start."""
        self._over = True
        telling = [*self._telling]
        if telling:
            await asyncio.wait(telling, timeout=LAST_WORDS_S)
        for each in telling:
            each.cancel()
        await asyncio.gather(*telling, return_exceptions=True)

    async def _untold(self, cases: Sequence[Record]) -> None:
        marks = [mark_of(record.id) for record in cases]
        told = {record.id for record in await self.reader.store.load(*marks)}
        for record in cases:
            if mark_of(record.id) not in told:
                self._begin(record)

    def _begin(self, record: Record) -> None:
        if self._over or record.id in self._known:
            return
        self._known.add(record.id)
        telling = asyncio.ensure_future(self._tell(record))
        self._telling.add(telling)
        telling.add_done_callback(lambda ended: self._ended(record.id, ended))

    def _ended(self, case: str, ended: "asyncio.Task[None]") -> None:
        self._telling.discard(ended)
        self._known.discard(case)

    async def _tell(self, record: Record) -> None:
        """Tell of one case, and keep that it was told; a bounded number of times."""
        for tries in range(TRIES_MAX):
            await asyncio.sleep(pause_s(tries))
            async with self._seats:
                if await self._told(record):
                    return
        said = "nobody could be told of %s; it is tried again at the next start"
        log.error(said, record.id, extra=_about(record))

    async def _told(self, record: Record) -> bool:
        inbox = Inbox(reader=self.reader, tenant=record.tenant)
        try:
            standing = await inbox.case(record.id)
            if not standing.may:
                return True  # It was over before anybody was told.
            async with asyncio.timeout(TELLING_MAX_S):
                await self.notify.opened(standing)
            await self._mark(record)
        except LandedError as error:
            said = "whether %s was told could not be kept: %s"
            log.warning(said, record.id, error, extra=_about(record))
            return False
        except Exception as error:
            log.warning("%s could not be told: %r", record.id, error, extra=_about(record))
            return False
        return True

    async def _mark(self, record: Record) -> None:
        """Keep that it was told; it is not part of what was said in the conversation."""
        unit = saying(
            id=mark_of(record.id),
            tenant=record.tenant,
            session="",
            turn="",
            text="",
            at=self.clock.now(),
            state="notified",
        )
        with suppress(StaleWriteError):  # Another process told of it too.
            await self.reader.store.commit(unit)


def is_case(record: Record) -> bool:
    """Whether a record is a case that waits for a person."""
    if record.kind is Kind.CASE:
        return record.state == CaseState.OPEN
    return record.kind is Kind.OPERATION and record.state == State.UNDECIDED


def _about(record: Record) -> dict[str, str]:
    return {"tenant": record.tenant, "session": record.session, "record": record.id}


def mark_of(case: str) -> str:
    """Return the id of the record that keeps that a case was told."""
    return f"notified/{case}"
