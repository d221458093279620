"""The lookout for a store that went back in time: at the start, at each heartbeat, at the end.

It compares the mark outside the store with the journal before this process acts on anything, writes
down a restore that it notices, and carries the mark on with what this process commits. What was
committed after the mark was last written is the window in which a restore can't be noticed: a
heartbeat's length, and none for what this process itself remembers.

No send is guarded by the one record of restores: on Postgres every worker would queue for that row.
So what another process noticed, or a person declared, is heard of at the next heartbeat.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from landed.core.errors import RestoredError, StaleWriteError, StoreError
from landed.core.incarnation import (
    INCARNATION,
    NEVER_RESTORED,
    Incarnation,
    Mark,
    Marks,
    declared,
    incarnation_from,
    is_intact,
    mark_of,
    reconciled,
    writing,
)
from landed.core.journal import Entry
from landed.core.store import Fact, Store
from landed.runtime.clock import Clock
from landed.runtime.remembering import Remembering

log = logging.getLogger("landed")

NOTICED = "the journal does not hold entry {position}, which was durable before"
UNMARKED = (
    "there is no mark at %s of a store that has entries: if it was restored from a backup, nobody"
    " can tell; say so by `landed restored`"
)
ENDED = "this process had written entry {position}, and the journal does not hold it any more"


def nothing_changed(incarnation: Incarnation) -> None:
    """Tell nobody of a restore."""


@dataclass(slots=True, eq=False)
class Lookout:
    """What one process knows of the store's incarnation. `marks` is None where no mark is kept.

    `changed` is called with each incarnation that is news here, before anything is done under it;
    `reconciling` is set while nothing may be sent.
    """

    store: Remembering
    clock: Clock
    by: str
    marks: Marks | None = None
    incarnation: Incarnation = NEVER_RESTORED
    changed: Callable[[Incarnation], None] = nothing_changed
    reconciling: asyncio.Event = field(default_factory=asyncio.Event)
    _written: Mark | None = field(default=None, init=False)

    async def begin(self) -> None:
        """See whether the store is the one that is known here; if not, write its restore down.

        Raises `StoreError` where the mark cannot be read or written: then nothing may be sent.
        """
        if self.marks is None:
            await self.look()
            return
        mark = await self.marks.read()
        if mark is not None and not is_intact(mark, await page_at(self.store, mark)):
            self._written = await self._declare(mark, NOTICED.format(position=mark.position))
            await self.marks.write(self._written)
        else:
            self._written = mark
        if mark is None and await newest_entry(self.store):
            log.warning(UNMARKED, self.marks.place)
        await self.look()
        await self.carry_on()

    async def look(self) -> Incarnation:
        """Read the incarnation as it stands now."""
        found = await current(self.store)
        if found != self.incarnation:
            self.incarnation = found
            (self.reconciling.set if found.reconciling else self.reconciling.clear)()
            self.changed(found)
        return found

    async def beat(self) -> None:
        """See that the store has not gone back meanwhile, and carry the mark on.

        Raises `RestoredError` when it has.
        """
        await self.look()
        await self._try_to_carry_on()

    async def carry_on(self) -> None:
        """Write the newest entry of this process outside, where that is news."""
        newest = await self.store.seen()
        if self.marks is None:
            return
        if newest is None and self._written is None:
            newest = await _last(self.store)
        if newest is not None and (self._written is None or is_later(newest, self._written)):
            await self.marks.write(newest)
            self._written = newest

    async def _try_to_carry_on(self) -> None:
        try:
            await self.carry_on()
        except RestoredError:
            raise
        except StoreError as error:
            log.warning("a restore would be noticed less well from now on: %s", error)

    async def end(self) -> None:
        """Carry the mark on for the last time; whatever goes wrong is left to the next start."""
        try:
            await self._try_to_carry_on()
        except RestoredError:
            with suppress(StoreError):
                await self.gone()

    async def gone(self) -> None:
        """Write down that the store went back under this process; it does nothing after that."""
        newest = self.store.newest
        position = newest.last if newest is not None else 0
        mark = await declare(
            self.store.inner,
            missed=None,
            by=self.by,
            why=ENDED.format(position=position),
            at=self.clock.now(),
        )
        if self.marks is not None:
            await self.marks.write(mark)

    async def close(self, why: str) -> None:
        """Say that all is found out; somebody else may have said so already."""
        found = await self.look()
        if not found.reconciling:
            return
        after = reconciled(found, by=self.by, why=why, at=self.clock.now())
        with suppress(StaleWriteError):
            await self.store.commit(writing(after))
        await self.look()

    async def _declare(self, missed: Mark, why: str) -> Mark:
        return await declare(self.store, missed=missed, by=self.by, why=why, at=self.clock.now())


def is_later(mark: Mark, than: Mark) -> bool:
    """Whether a mark is of a later entry than another."""
    return mark.position > than.position


async def current(store: Store) -> Incarnation:
    """Return the incarnation of a store, `NEVER_RESTORED` where nothing was ever written of one."""
    found = await store.load(INCARNATION)
    return incarnation_from(found[0]) if found else NEVER_RESTORED


async def page_at(store: Store, mark: Mark) -> tuple[Entry, ...]:
    """Return what the journal has at a mark's position, or after it."""
    return await store.journal(after=mark.position - 1, limit=1)


async def declare(
    store: Store,
    *,
    missed: Mark | None,
    by: str,
    why: str,
    at: float,
    known_at: float | None = None,
) -> Mark:
    """Write down that the store was restored, once for each mark that it does not hold.

    `known_at` is when the backup was made (UTC seconds), None for the time of the newest entry.
    Returns the mark of that entry. Two processes that notice the same restore write it down once.
    """
    before = await current(store)
    if missed is None or before.missed != missed:
        newest = await newest_entry(store)
        newest_at = newest.at if newest is not None else 0.0
        since = newest_at if known_at is None else known_at
        after = declared(before, missed=missed, known_at=since, by=by, why=why, at=at)
        try:
            await store.commit(writing(after))
        except StaleWriteError:
            return await declare(store, missed=missed, by=by, why=why, at=at, known_at=known_at)
    (record,) = await store.load(INCARNATION)
    (entry,) = await store.journal(after=record.last - 1, limit=1)
    return mark_of(entry)


async def facts_of(store: Store, marks: Marks | None) -> tuple[Fact, ...]:
    """Return what `landed doctor` says of a store's incarnation, and of the mark outside it."""
    now = await current(store)
    value = f"restored {now.number} times, {now.state}" if now.number else "never restored"
    advice = "nothing is sent until what was open is found out; see docs/guides/restore.md"
    incarnation = Fact(name=INCARNATION, value=value, ok=not now.reconciling, advice=advice)
    return incarnation, await _mark_fact(store, marks)


async def _mark_fact(store: Store, marks: Marks | None) -> Fact:
    if marks is None:
        return Fact(name="mark", value="none: a restore has to be said by landed restored", ok=True)
    try:
        mark = await marks.read()
    except StoreError as error:
        return Fact(name="mark", value=marks.place, ok=False, advice=str(error))
    if mark is None:
        return Fact(name="mark", value=f"not written yet: {marks.place}", ok=True)
    return Fact(
        name="mark",
        value=f"entry {mark.position}, {marks.place}",
        ok=is_intact(mark, await page_at(store, mark)),
        advice="the journal does not hold it: the next start takes the store for restored",
    )


async def _last(store: Store) -> Mark | None:
    newest = await newest_entry(store)
    return mark_of(newest) if newest is not None else None


async def newest_entry(store: Store) -> Entry | None:
    """Return the newest journal entry, found in a few questions for each bit of its position."""
    found: Entry | None = None
    step = 1
    while step:
        after = found.seq if found is not None else 0
        page = await store.journal(after=after + step - 1, limit=1)
        if page:
            found, step = page[0], step * 2
        else:
            step //= 2
    return found
