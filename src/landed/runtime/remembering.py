"""A store around another that remembers the newest entry it wrote, and looks for it after trouble.

A standby that takes over has not always heard of the last commits, and a connection that breaks is
how a process gets to know of it, if at all. So after any trouble nothing is read or written until
the newest entry of this process was seen again: what the process has in memory is of the same time
as the store, or it must not act on either.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from landed.core.changes import Changes, Record
from landed.core.errors import LeaseLostError, RestoredError, StaleWriteError, StoreError
from landed.core.incarnation import Mark, mark_of
from landed.core.journal import Entry
from landed.core.store import Fact, Page, Selection, Store

T = TypeVar("T")

NOT_TROUBLE = (StaleWriteError, LeaseLostError)


class Remembering:
    """A `landed.core.store.Store` that does what `inner` does, as long as it has not gone back.

    Once it has, every method raises `RestoredError`, but for `facts` and `close`.
    """

    def __init__(self, inner: Store) -> None:
        self.inner = inner
        self.gone: RestoredError | None = None
        self.newest: Record | None = None
        self._in_doubt = False

    async def commit(self, changes: Changes) -> tuple[Record, ...]:
        """Write the unit, and remember the newest record of it."""
        if self.gone is not None or self._in_doubt:
            await self._look()
        try:
            stored = await self.inner.commit(changes)
        except StoreError as error:
            self._was(error)
            raise
        for record in stored:
            if self.newest is None or record.last > self.newest.last:
                self.newest = record
        return stored

    async def load(self, *ids: str) -> tuple[Record, ...]:
        """Return those of the records that exist, in the order asked for."""
        return await self._done(lambda: self.inner.load(*ids))

    async def open_records(self, *, tenant: str, session: str, worker: str) -> tuple[Record, ...]:
        """Return the open records of a session that `worker` holds, oldest first."""
        return await self._done(
            lambda: self.inner.open_records(tenant=tenant, session=session, worker=worker)
        )

    async def session_records(
        self, *, tenant: str, session: str, after: int = 0, limit: int = 1000
    ) -> tuple[Record, ...]:
        """Return a page of the records of a session, oldest first."""
        return await self._done(
            lambda: self.inner.session_records(
                tenant=tenant, session=session, after=after, limit=limit
            )
        )

    async def listed(
        self, *, tenant: str, of: Selection, after: int = 0, limit: int = 1000
    ) -> Page:
        """Return a page of a tenant's records, in the order that `of` says."""
        return await self._done(
            lambda: self.inner.listed(tenant=tenant, of=of, after=after, limit=limit)
        )

    async def journal(
        self, *, after: int = 0, limit: int = 1000, record: str = ""
    ) -> tuple[Entry, ...]:
        """Return a page of the journal, or of one record's entries in it."""
        return await self._done(lambda: self.inner.journal(after=after, limit=limit, record=record))

    async def holders(self, *names: str) -> Mapping[str, str]:
        """Return which record holds each of those names that are held."""
        return await self._done(lambda: self.inner.holders(*names))

    async def claim(self, *, worker: str, now: float, limit: int = 100) -> tuple[Record, ...]:
        """Take over open records that no living worker holds."""
        return await self._done(lambda: self.inner.claim(worker=worker, now=now, limit=limit))

    async def renew(self, *, worker: str, until: float) -> None:
        """Register the worker, or extend its lease."""
        await self._done(lambda: self.inner.renew(worker=worker, until=until))

    async def retire(self, *, worker: str) -> None:
        """End the worker's registration."""
        await self._done(lambda: self.inner.retire(worker=worker))

    async def facts(self) -> tuple[Fact, ...]:
        """Return what the store found out about itself."""
        return await self.inner.facts()

    async def close(self) -> None:
        """Let go of the inner store."""
        await self.inner.close()

    async def seen(self) -> Mark | None:
        """Return the mark of the newest entry of this process, None where it wrote none.

        Raises `RestoredError` when the journal does not hold that entry any more.
        """
        newest = self.newest
        if newest is None:
            return None
        page = await self.inner.journal(after=newest.last - 1, limit=1)
        there = [(one.seq, one.id, one.version) for one in page]
        if there != [(newest.last, newest.id, newest.version)]:
            self.gone = RestoredError(
                f"the store went back to an earlier time: its journal does not hold entry"
                f" {newest.last}, which this process wrote. It does nothing more; open it again,"
                " and what was open then is found out before anything is sent"
            )
            raise self.gone
        return mark_of(page[0])

    async def _done(self, act: Callable[[], Awaitable[T]]) -> T:
        if self.gone is not None or self._in_doubt:
            await self._look()
        try:
            return await act()
        except StoreError as error:
            self._was(error)
            raise

    async def _look(self) -> None:
        """See once, after trouble, that the store is still the one that this process wrote to."""
        if self.gone is not None:
            raise self.gone
        await self.seen()
        self._in_doubt = False

    def _was(self, error: StoreError) -> None:
        self._in_doubt = self._in_doubt or not isinstance(error, NOT_TROUBLE)
