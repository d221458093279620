"""Durable records in one SQLite file: the `Store` for one machine, and the one in memory.

Opening, group commit, transactions and claims each have a file of their own; here they are joined
into the seam.
"""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeAlias, TypeVar

from landed.core.census import COUNTED_MAX, IN_DOUBT, census
from landed.core.changes import Changes, Kind, Record
from landed.core.errors import StoreError, WrongLoopError
from landed.core.journal import Entry
from landed.core.keeping import Keeping
from landed.core.onlooker import NOBODY, Wrote
from landed.core.store import Fact, Page, Selection
from landed.stores.batch import GroupCommit
from landed.stores.claims import Claims
from landed.stores.driver import Row, driver, warn_of_library
from landed.stores.facts import facts
from landed.stores.keeping import SqliteKeeping
from landed.stores.listing import Asked, found
from landed.stores.opening import MEMORY, Opened, Settings, open_file, open_memory
from landed.stores.pages import PAGE_MAX, bounded
from landed.stores.queries import SQLITE, many
from landed.stores.reading import entry, record
from landed.stores.transaction import Writer
from landed.stores.unit import Unit
from landed.stores.wal import WalWatch

R = TypeVar("R")

_Moved: TypeAlias = tuple[Record, ...]
_Single: TypeAlias = Callable[[bool], _Moved]  # What needs the writing connection for itself.


def open_sqlite(
    path: str,
    *,
    secret: bytes = b"",
    older: tuple[bytes, ...] = (),
    lock_wait_max_s: float = 5.0,
    allow_network_fs: bool = False,
    wrote: Wrote = NOBODY.wrote,
) -> "SqliteStore":
    """Open the store in the SQLite file at `path`, or make it; `:memory:` is one in memory.

    With a `secret` the journal's links are HMACs, and the file opens only with that secret,
    or with another of which it is one of the `older` ones: what those linked stays good.
    `lock_wait_max_s` bounds how long a write waits for other processes. Beside the file there will
    be `<path>-lock`, `<path>-reserve` and the directory `<path>-workers`. `wrote` is told of each
    batch of commits.

    Raises `StoreError`, with what to do, for a file that is locked, read-only, damaged, another
    program's, on a network, or of a newer schema; nothing in it was changed then. Warns
    (`RuntimeWarning`) when the SQLite in use can corrupt a file with two writers.
    """
    warn_of_library()
    settings = Settings(
        path=path,
        secret=secret,
        older=older,
        lock_wait_max_s=lock_wait_max_s,
        allow_network_fs=allow_network_fs,
    )
    if path == MEMORY:
        return SqliteStore(open_memory(settings), owns=True)
    return SqliteStore(open_file(settings), owns=True, wrote=wrote)


class SqliteStore:
    """A `landed.core.store.Store` in SQLite; made by `open_sqlite`.

    It belongs to the event loop and to the process that use it first: from another loop every
    method raises `WrongLoopError`, from a forked process and after `close`, `StoreError`. What each
    method promises is said in full by the seam.
    """

    def __init__(self, opened: Opened, *, owns: bool, wrote: Wrote = NOBODY.wrote) -> None:
        self._opened = opened
        self._owns = owns
        settings = opened.settings
        self._secrets = settings.secrets
        self._writer = Writer(
            opened.writer,
            path=settings.path,
            secrets=settings.secrets,
            turn=opened.turn,
            wait_max_s=settings.lock_wait_max_s,
            schema=opened.schema,
            reserve=opened.reserve,
        )
        self._wal = WalWatch(settings.path)
        self._claims = Claims(self._writer, opened.liveness, secrets=settings.secrets)
        self._group: GroupCommit[Unit | _Single, _Moved] = GroupCommit(
            self._write,
            is_single=callable,
            has_thread=opened.turn is not None,
            wrote=wrote,
        )
        self._process = os.getpid()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_closed = False

    def open_again(self) -> "SqliteStore":
        """Open the same records once more, as another process would.

        In memory, the records live until the store that made them is closed.
        """
        if self._opened.turn is None:
            return SqliteStore(self._opened, owns=False)
        return SqliteStore(open_file(self._opened.settings), owns=True)

    def keeping(self) -> Keeping:
        """Return what the store offers for what is over; it is used, and closed, with the store."""
        return SqliteKeeping(
            self._writer, rows=self._rows, alone=self._alone, secrets=self._secrets
        )

    def worker_died(self, worker: str) -> None:
        """Take the worker for dead, as if its process had been killed; for simulations."""
        self._claims.bury(worker)

    async def commit(self, changes: Changes) -> tuple[Record, ...]:
        """Write the unit whole and return the moved records as stored, once it is durable.

        What never changes in a record (`kind`, `tenant`, `session`, `frozen`, `made`) is written
        with its first event; a later move returns it as the caller handed it in.
        """
        self._require_usable()
        return await self._group.write(Unit(changes))

    async def load(self, *ids: str) -> tuple[Record, ...]:
        """Return those of the records that exist, in the order asked for, each checked."""
        found = {one.id: one for one in self._records(SQLITE.load, _listed(ids))}
        return tuple(found[id] for id in ids if id in found)

    async def open_records(self, *, tenant: str, session: str, worker: str) -> tuple[Record, ...]:
        """Return the open records of a session that `worker` holds, oldest first."""
        parameters = (worker, tenant, session, PAGE_MAX + 1)
        found = self._records(SQLITE.open_records, parameters)
        if len(found) > PAGE_MAX:
            raise StoreError(f"session {session} has more than {PAGE_MAX} open records")
        return found

    async def session_records(
        self, *, tenant: str, session: str, after: int = 0, limit: int = 1000
    ) -> tuple[Record, ...]:
        """Return a page of the records of a session, oldest first."""
        parameters = (tenant, session, after, bounded(limit))
        return self._records(SQLITE.session_records, parameters)

    async def listed(
        self, *, tenant: str, of: Selection, after: int = 0, limit: int = 1000
    ) -> Page:
        """Return a page of a tenant's records, in the order that `of` says."""
        asked = Asked(queries=SQLITE, tenant=tenant, after=after, limit=bounded(limit))
        asking = found(of, asked)
        try:
            query = next(asking)
            while True:
                query = asking.send(self._rows(query.text, query.parameters))
        except StopIteration as over:
            ids, following = over.value
        return Page(records=await self.load(*ids) if ids else (), next=following)

    async def journal(
        self, *, after: int = 0, limit: int = 1000, record: str = ""
    ) -> tuple[Entry, ...]:
        """Return a page of the journal, or of one record's entries in it, as found."""
        if record:
            rows = self._rows(SQLITE.journal_of, (record, after, bounded(limit)))
        else:
            rows = self._rows(SQLITE.journal_page, (after, bounded(limit)))
        return tuple(map(entry, rows))

    async def holders(self, *names: str) -> Mapping[str, str]:
        """Return which record holds each of those names that are held."""
        return dict(self._rows(SQLITE.holders, _listed(names)))

    async def claim(self, *, worker: str, now: float, limit: int = 100) -> tuple[Record, ...]:
        """Take over open records that no living worker holds; their epoch is new."""
        self._require_usable()
        return await self._alone(partial(self._claims.claim, worker, now, bounded(limit)))

    async def renew(self, *, worker: str, until: float) -> None:
        """Register the worker, or extend its lease."""
        self._require_usable()
        await self._alone(partial(self._claims.renew, worker, until))

    async def retire(self, *, worker: str) -> None:
        """End the worker's registration."""
        self._require_usable()
        await self._alone(partial(self._claims.retire, worker))

    async def facts(self) -> tuple[Fact, ...]:
        """Return what the store found out about its own durability, with a census."""
        self._require_usable()
        try:
            own = await self._alone(lambda _: facts(self._opened))
        except driver.Error as error:
            raise self._writer.trouble(error) from error
        doubts = (COUNTED_MAX, Kind.OPERATION, many(IN_DOUBT))
        found = self._rows(SQLITE.oldest_open, doubts)
        return own + census(
            open=self._rows(SQLITE.open_counts, (COUNTED_MAX,)),
            waiting=self._rows(SQLITE.waiting_counts, (COUNTED_MAX,)),
            oldest=await self.load(*(str(id) for (id,) in found)),
        )

    async def close(self) -> None:
        """Finish what was handed to `commit` and let go of files and connections.

        The workers that began here are gone then. Closing twice does nothing. May also be called
        from another loop, once the store's own loop is closed.
        """
        if self._is_closed:
            return
        self._require_own_process()
        if self._loop is not None and self._loop.is_closed():
            self._group.stop()
        else:
            self._require_own_loop()
            self._is_closed = True
            await self._group.close()
        self._is_closed = True
        self._claims.end_all()
        if self._owns:
            self._opened.reader.close()
            self._writer.close()

    async def _alone(self, act: Callable[[bool], R]) -> R:
        answers: list[R] = []

        def run(wait: bool) -> _Moved:
            answers.append(act(wait))
            return ()

        await self._group.write(run)
        return answers[0]

    def _write(self, items: "list[Unit | _Single]", wait: bool) -> Sequence[_Moved | Exception]:
        units = [item for item in items if isinstance(item, Unit)]
        if units:
            outcomes = self._writer.commit(units, wait=wait)
            self._wal.wrote(len(units))
            return outcomes
        return [item(wait) for item in items if not isinstance(item, Unit)]

    def _records(self, query: str, parameters: Row) -> tuple[Record, ...]:
        return tuple([record(row, self._secrets) for row in self._rows(query, parameters)])

    def _rows(self, query: str, parameters: Row) -> list[Row]:
        self._require_usable()
        self._writer.require_whole()
        try:
            return self._opened.reader.execute(query, parameters).fetchall()
        except (driver.Error, OverflowError, ValueError) as error:
            raise self._writer.trouble(error) from error

    def _require_usable(self) -> None:
        self._require_own_process()
        if self._is_closed:
            raise StoreError(f"{self._opened.settings.path} was closed; open it again")
        self._require_own_loop()

    def _require_own_process(self) -> None:
        if os.getpid() != self._process:
            raise StoreError(
                f"{self._opened.settings.path} was opened before this process was forked; "
                "a connection must not cross a fork: open it again in the child"
            )

    def _require_own_loop(self) -> None:
        loop = asyncio.get_running_loop()
        if self._loop is None:
            self._loop = loop
        elif self._loop is not loop:
            raise WrongLoopError(
                f"{self._opened.settings.path} belongs to another event loop; open a store for "
                "each loop"
            )


def _listed(texts: Sequence[str]) -> tuple[str]:
    bounded(len(texts) or 1)
    return (many(texts),)
