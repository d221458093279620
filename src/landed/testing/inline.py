"""Any store in a simulation: its own event loop lives in a thread, and each verb takes no time.

A loop on virtual time cannot wait for a real socket. So each verb is handed over to a loop that
can, and waited for *synchronously*: to the simulation it is over at once, as on SQLite in memory.

    with inline(partial(open_postgres, url)) as base:
        ran = run(BY_NAME["reply-lost"], base=base)

What comes in one tick of the simulated loop is handed over together, and in the same order as on
SQLite, so that a scenario takes the same course on both.
"""

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from landed.core.changes import Changes, Record
from landed.core.errors import LeaseLostError, StoreError
from landed.core.journal import Entry
from landed.core.store import Fact, Page, Selection, Store
from landed.stores.batch import GroupCommit

ANSWER_MAX_S = 60.0
"""How long, in real seconds, the simulation stands still for one verb of the store."""

OVER = 0.0  # The end of a lease that is over whatever the time is.

T = TypeVar("T")


class Base(Store, Protocol):
    """A store that processes of a simulation open one after the other, and may die on.

    `landed.stores.sqlite.SqliteStore` is one; `inline` makes one of any other store.
    """

    def open_again(self) -> "Base":
        """Open the same records once more, as another process would."""
        ...

    def worker_died(self, worker: str) -> None:
        """Take the worker for dead, as if its process had been killed."""
        ...


class InlineStore:
    """A store behind a thread of its own; made by `inline`.

    It raises what the store raises, and `StoreError` for a store that does not answer within
    `ANSWER_MAX_S`. A caller that is cancelled undoes nothing. It may be used from any simulated
    loop, but by one at a time.
    """

    def __init__(self, home: "_Home", open: Callable[[], Awaitable[Store]]) -> None:
        self._home = home
        self._open = open
        self._inner = home.ask(open)
        self._workers: set[str] = set()
        self._group: GroupCommit[_Verb, Any] = GroupCommit(
            self._hand_over, is_single=lambda verb: not verb.is_unit, has_thread=False
        )
        home.opened.append(self)

    def open_again(self) -> "InlineStore":
        """Open the same records once more, as another process would."""
        return InlineStore(self._home, self._open)

    def worker_died(self, worker: str) -> None:
        """End the worker's lease, wherever it began: what it holds may be claimed at once."""
        for one in self._home.opened:
            one.end_lease(worker)

    def end_lease(self, worker: str) -> None:
        """End the lease of a worker that began here; harmless for any other."""
        if worker in self._workers:
            self._workers.remove(worker)
            # Another worker of that name may stand in its place by now.
            with contextlib.suppress(LeaseLostError):
                self._home.ask(lambda: self._inner.renew(worker=worker, until=OVER))

    async def commit(self, changes: Changes) -> tuple[Record, ...]:
        """Hand over the unit; see `landed.core.store.Store`, here and below."""
        return await self._write(lambda: self._inner.commit(changes), is_unit=True)

    async def load(self, *ids: str) -> tuple[Record, ...]:
        """See `commit`."""
        return self._home.ask(lambda: self._inner.load(*ids))

    async def open_records(self, *, tenant: str, session: str, worker: str) -> tuple[Record, ...]:
        """See `commit`."""
        return self._home.ask(
            lambda: self._inner.open_records(tenant=tenant, session=session, worker=worker)
        )

    async def session_records(
        self, *, tenant: str, session: str, after: int = 0, limit: int = 1000
    ) -> tuple[Record, ...]:
        """See `commit`."""
        return self._home.ask(
            lambda: self._inner.session_records(
                tenant=tenant, session=session, after=after, limit=limit
            )
        )

    async def listed(
        self, *, tenant: str, of: Selection, after: int = 0, limit: int = 1000
    ) -> Page:
        """See `commit`."""
        return self._home.ask(
            lambda: self._inner.listed(tenant=tenant, of=of, after=after, limit=limit)
        )

    async def journal(
        self, *, after: int = 0, limit: int = 1000, record: str = ""
    ) -> tuple[Entry, ...]:
        """See `commit`."""
        return self._home.ask(lambda: self._inner.journal(after=after, limit=limit, record=record))

    async def holders(self, *names: str) -> Mapping[str, str]:
        """See `commit`."""
        return self._home.ask(lambda: self._inner.holders(*names))

    async def claim(self, *, worker: str, now: float, limit: int = 100) -> tuple[Record, ...]:
        """See `commit`."""
        return await self._write(lambda: self._inner.claim(worker=worker, now=now, limit=limit))

    async def renew(self, *, worker: str, until: float) -> None:
        """See `commit`."""
        self._workers.discard(worker)  # One that is refused has no lease that could be ended.
        await self._write(lambda: self._inner.renew(worker=worker, until=until))
        self._workers.add(worker)

    async def retire(self, *, worker: str) -> None:
        """See `commit`."""
        await self._write(lambda: self._inner.retire(worker=worker))
        self._workers.discard(worker)

    async def facts(self) -> tuple[Fact, ...]:
        """See `commit`."""
        return await self._write(self._inner.facts)

    async def close(self) -> None:
        """Close the store behind this one; those that were opened again stay open."""
        await self._group.close()
        self.close_now()

    def close_now(self) -> None:
        """Close the store behind this one, outside of every loop; nothing waits here any more."""
        self._workers.clear()
        self._home.ask(self._inner.close)

    async def _write(self, act: Callable[[], Awaitable[T]], *, is_unit: bool = False) -> T:
        answer: T = await self._group.write(_Verb(act=act, is_unit=is_unit))
        return answer

    def _hand_over(self, verbs: "list[_Verb]", wait: bool) -> Sequence[Any]:
        return self._home.ask(lambda: _together(verbs))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Verb:
    """What waits for the end of its tick; units go together."""

    act: Callable[[], Awaitable[Any]]
    is_unit: bool


class _Home:
    """The thread in which the stores live, and its event loop."""

    def __init__(self) -> None:
        self.opened: list[InlineStore] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="landed-inline", daemon=True
        )
        self._thread.start()

    def ask(self, act: Callable[[], Awaitable[T]]) -> T:
        """Have the loop do something, and stand still until it is done."""
        asked = asyncio.run_coroutine_threadsafe(_call(act), self._loop)
        try:
            return asked.result(ANSWER_MAX_S)
        except TimeoutError as error:
            asked.cancel()
            raise StoreError(f"the store did not answer within {ANSWER_MAX_S:g} s") from error

    def end(self) -> None:
        """Close every store that was opened, and end the thread."""
        try:
            for one in reversed(self.opened):
                one.close_now()
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()


@contextmanager
def inline(open: Callable[[], Awaitable[Store]]) -> Generator[InlineStore]:
    """Offer the store that `open` opens to a simulation, and close it and all opened again after.

    `open` is called once more for each process that opens the same records.
    """
    home = _Home()
    try:
        yield InlineStore(home, open)
    finally:
        home.end()


async def _call(act: Callable[[], Awaitable[T]]) -> T:
    return await act()


async def _together(verbs: "list[_Verb]") -> Sequence[Any]:
    return await asyncio.gather(*(verb.act() for verb in verbs), return_exceptions=True)
