"""Durable records in Postgres: the `Store` for many workers on many machines.

Opening, group commit, transactions, writing and claims each have a file of their own; here they are
joined into the seam.
"""

import asyncio
import contextlib
import os
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias, TypeVar

import psycopg_pool

from landed.core.census import census
from landed.core.changes import Changes, Record
from landed.core.errors import StoreError, WrongLoopError
from landed.core.journal import Entry
from landed.core.keeping import Keeping
from landed.core.onlooker import NOBODY, Wrote
from landed.core.store import Fact, Page, Selection
from landed.stores.listing import Asked, found
from landed.stores.pages import PAGE_MAX, bounded
from landed.stores.postgres_claims import Claims
from landed.stores.postgres_facts import counts, facts
from landed.stores.postgres_gathering import Gathering
from landed.stores.postgres_keeping import PostgresKeeping
from landed.stores.postgres_line import (
    ANSWER_MAX_S,
    DRIVER_ERRORS,
    RETRYABLE,
    Connection,
    Line,
    Parameters,
    Settings,
    is_loss,
    options,
    rows,
    silent,
    store_error,
)
from landed.stores.postgres_opening import open_line
from landed.stores.postgres_queries import SHARED
from landed.stores.postgres_transaction import Transactions
from landed.stores.postgres_writing import Moved, Writer
from landed.stores.reading import entry, record
from landed.stores.unit import Unit

READERS_MAX = 4
"""Connections that one store reads with; one more writes."""

# After a restart of the server, each connection that is kept to read with may be one to the old.
_READS_MAX = READERS_MAX + 1

R = TypeVar("R")
_Single: TypeAlias = Callable[[], Awaitable[Moved]]  # What needs a transaction for itself.


async def open_postgres(
    url: str,
    *,
    secret: bytes = b"",
    older: tuple[bytes, ...] = (),
    reconnect_max_s: float = 10.0,
    lock_wait_max_s: float = 5.0,
    clock: Callable[[], float] = time.time,
    wrote: Wrote = NOBODY.wrote,
) -> "PostgresStore":
    """Open the store in the schema `landed` of a Postgres database, or make it there.

    `url` is libpq's (`postgresql://user@host/database`). `secret` and `older` are as for SQLite.
    `reconnect_max_s` bounds how long the store tries to come back to a server that is gone, and
    `lock_wait_max_s` how long a write waits for another transaction. `clock` is the caller's, from
    which `until` and `now` come (UTC seconds): what it is off does not matter to leases, which are
    kept in the server's time. `wrote` is told of each batch of commits.

    Raises `StoreError`, with what to do, for a server that is down, full, read-only, that loses
    acknowledged commits, or whose schema is newer; nothing was changed then.
    """
    settings = Settings(
        url=url,
        secret=secret,
        older=older,
        reconnect_max_s=reconnect_max_s,
        lock_wait_max_s=lock_wait_max_s,
        clock=clock,
    )
    return await _opened(settings, wrote=wrote)


class PostgresStore:
    """A `landed.core.store.Store` in Postgres; made by `open_postgres`.

    It belongs to the event loop and to the process that opened it: from another loop every method
    raises `WrongLoopError`, from a forked process and after `close`, `StoreError`. What each method
    promises is said in full by the seam. Positions and epochs rise, with gaps; the journal is one
    chain for each opened store, whose first entry is linked to what was the newest at that time.
    """

    def __init__(
        self,
        settings: Settings,
        line: Line,
        pool: "psycopg_pool.AsyncConnectionPool[Connection]",
        *,
        link: str,
        wrote: Wrote = NOBODY.wrote,
    ) -> None:
        self._settings = settings
        self._line = line
        self._pool = pool
        self._transactions = Transactions(line, link=link, left=pool.drain)
        self._writer = Writer(self._transactions, settings)
        self._claims = Claims(self._transactions, settings)
        self._group: Gathering[Unit | _Single, Moved] = Gathering(
            self._write, is_single=lambda item: not isinstance(item, Unit), wrote=wrote
        )
        self._process = os.getpid()
        self._loop = asyncio.get_running_loop()
        self._is_closed = False

    async def open_again(self) -> "PostgresStore":
        """Open the same records once more, as another process would."""
        return await _opened(self._settings)

    def keeping(self) -> Keeping:
        """Return what the store offers for what is over; it is used, and closed, with the store."""
        return PostgresKeeping(
            self._transactions,
            rows=self._rows,
            alone=self._alone,
            secrets=self._settings.secrets,
        )

    async def commit(self, changes: Changes) -> tuple[Record, ...]:
        """Write the unit whole and return the moved records as stored, once it is durable.

        What never changes in a record (`kind`, `tenant`, `session`, `frozen`, `made`) is written
        with its first event; a later move returns it as the caller handed it in. A connection that
        is lost meanwhile is resolved: the unit is written once, or `StoreError` says that it was
        not. Only a server that stays away leaves that open; then the text says so, and nothing is
        read or written any more before it has said how it was.
        """
        self._require_usable()
        return await self._group.write(Unit(changes))

    async def load(self, *ids: str) -> tuple[Record, ...]:
        """Return those of the records that exist, in the order asked for, each checked."""
        found = {one.id: one for one in await self._records(SHARED.load, _listed(ids))}
        return tuple(found[id] for id in ids if id in found)

    async def open_records(self, *, tenant: str, session: str, worker: str) -> tuple[Record, ...]:
        """Return the open records of a session that `worker` holds, oldest first."""
        parameters = (worker, tenant, session, PAGE_MAX + 1)
        found = await self._records(SHARED.open_records, parameters)
        if len(found) > PAGE_MAX:
            raise StoreError(f"session {session} has more than {PAGE_MAX} open records")
        return found

    async def session_records(
        self, *, tenant: str, session: str, after: int = 0, limit: int = 1000
    ) -> tuple[Record, ...]:
        """Return a page of the records of a session, oldest first."""
        parameters = (tenant, session, after, bounded(limit))
        return await self._records(SHARED.session_records, parameters)

    async def listed(
        self, *, tenant: str, of: Selection, after: int = 0, limit: int = 1000
    ) -> Page:
        """Return a page of a tenant's records, in the order that `of` says."""
        asked = Asked(queries=SHARED, tenant=tenant, after=after, limit=bounded(limit))
        asking = found(of, asked)
        try:
            query = next(asking)
            while True:
                query = asking.send(await self._rows(query.text, query.parameters))
        except StopIteration as over:
            ids, following = over.value
        return Page(records=await self.load(*ids) if ids else (), next=following)

    async def journal(
        self, *, after: int = 0, limit: int = 1000, record: str = ""
    ) -> tuple[Entry, ...]:
        """Return a page of the journal, or of one record's entries in it, as found.

        Of two stores that write at once, the later position may be there first: a page shows what
        was committed before it was asked for, and an earlier position may follow.
        """
        if record:
            found = await self._rows(SHARED.journal_of, (record, after, bounded(limit)))
        else:
            found = await self._rows(SHARED.journal_page, (after, bounded(limit)))
        return tuple(map(entry, found))

    async def holders(self, *names: str) -> Mapping[str, str]:
        """Return which record holds each of those names that are held."""
        return dict(await self._rows(SHARED.holders, _listed(names)))

    async def claim(self, *, worker: str, now: float, limit: int = 100) -> tuple[Record, ...]:
        """Take over open records that no living worker holds; their epoch is new."""
        return await self._alone(partial(self._claims.claim, worker, now, bounded(limit)))

    async def renew(self, *, worker: str, until: float) -> None:
        """Register the worker, or extend its lease."""
        await self._alone(partial(self._claims.renew, worker, until))

    async def retire(self, *, worker: str) -> None:
        """End the worker's registration."""
        await self._alone(partial(self._claims.retire, worker))

    async def facts(self) -> tuple[Fact, ...]:
        """Return what the store found out about its own durability, with a census."""
        own = await self._read(facts)
        counted, waiting, found = await self._read(counts)
        return own + census(open=counted, waiting=waiting, oldest=await self.load(*found))

    async def close(self) -> None:
        """Finish what was handed to `commit` and let go of the connections.

        The workers that began here are gone then. Closing twice does nothing. May also be called
        from another loop, once the store's own loop is closed.
        """
        if self._is_closed:
            return
        self._require_own_process()
        if self._loop.is_closed():
            self._is_closed = True
            self._line.drop()
            return
        self._require_own_loop()
        try:
            # A server that is gone holds the registrations until their leases are over.
            with contextlib.suppress(StoreError):
                await self._alone(self._claims.retire_all)
            self._is_closed = True
            await self._group.close()
        finally:
            self._is_closed = True
            await self._group.stop()  # Whoever waits for a socket must not see it closed.
            self._line.drop()
            await self._pool.close()

    async def _alone(self, act: Callable[[], Awaitable[R]]) -> R:
        self._require_usable()
        answers: list[R] = []

        async def run() -> Moved:
            answers.append(await act())
            return ()

        await self._group.write(run)
        return answers[0]

    async def _write(self, items: "list[Unit | _Single]") -> Sequence[Moved | Exception]:
        units = [item for item in items if isinstance(item, Unit)]
        if units:
            return await self._writer.commit(units)
        try:
            return [await item() for item in items if not isinstance(item, Unit)]
        except DRIVER_ERRORS as error:
            raise store_error(error, self._settings.place) from error

    async def _records(self, query: str, parameters: Parameters) -> tuple[Record, ...]:
        found = await self._rows(query, parameters)
        return tuple([record(row, self._settings.secrets) for row in found])

    async def _rows(self, query: str, parameters: Parameters) -> list[Any]:
        return await self._read(lambda connection: rows(connection, query, parameters))

    async def _read(self, ask: Callable[[Connection], Awaitable[R]]) -> R:
        self._require_usable()
        attempt = 0
        while True:
            if self._transactions.in_doubt:
                await self._alone(self._transactions.settle)
            try:
                async with self._pool.connection() as connection, asyncio.timeout(ANSWER_MAX_S):
                    return await ask(connection)
            except TimeoutError as error:
                raise silent(self._settings.place) from error
            except psycopg_pool.PoolTimeout as error:
                raise StoreError(
                    f"{self._settings.place} gave no connection to read with for "
                    f"{self._settings.reconnect_max_s:g} s; it is down, or out of connections: "
                    "raise max_connections, or put PgBouncer in front of it"
                ) from error
            except (*DRIVER_ERRORS, OverflowError, ValueError) as error:
                attempt += 1
                again = is_loss(error) or isinstance(error, RETRYABLE)
                if attempt == _READS_MAX or not again:
                    raise store_error(error, self._settings.place) from error

    def _require_usable(self) -> None:
        self._require_own_process()
        if self._is_closed:
            raise StoreError(f"{self._settings.place} was closed; open it again")
        self._require_own_loop()

    def _require_own_process(self) -> None:
        if os.getpid() != self._process:
            raise StoreError(
                f"{self._settings.place} was opened before this process was forked; "
                "a connection must not cross a fork: open it again in the child"
            )

    def _require_own_loop(self) -> None:
        if self._loop is not asyncio.get_running_loop():
            raise WrongLoopError(
                f"{self._settings.place} belongs to another event loop; open a store for each loop"
            )


async def _opened(settings: Settings, *, wrote: Wrote = NOBODY.wrote) -> PostgresStore:
    line, link = await open_line(settings)
    try:
        pool = await _readers(settings)
    except BaseException:
        line.drop()
        raise
    return PostgresStore(settings, line, pool, link=link, wrote=wrote)


async def _readers(settings: Settings) -> "psycopg_pool.AsyncConnectionPool[Connection]":
    pool: psycopg_pool.AsyncConnectionPool[Connection] = psycopg_pool.AsyncConnectionPool(
        settings.url,
        kwargs=options(settings),
        min_size=0,
        max_size=READERS_MAX,
        open=False,
        timeout=settings.reconnect_max_s,
        reconnect_timeout=settings.reconnect_max_s,
        num_workers=1,
    )
    await pool.open()
    return pool


def _listed(texts: Sequence[str]) -> tuple[list[str]]:
    bounded(len(texts) or 1)
    return (list(texts),)
