"""One transaction on Postgres at a time: begun, retried where that is harmless, and resolved.

A transaction's function contains no sends, so it may run again. It does after a deadlock, when the
connection was lost before COMMIT had been sent, and when the server is one that cannot be written,
for the URL may name another. When the connection is lost *while* COMMIT is on its way, nobody knows
yet whether it took effect; then the server is asked, never guessed for: at once, and before
anything else is written or read, until it answers.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import NamedTuple, TypeVar

import psycopg

from landed.core.errors import StoreError
from landed.stores.migrate import migrations, require_writer
from landed.stores.postgres_line import (
    ANSWER_MAX_S,
    DRIVER_ERRORS,
    PAUSE_MAX_S,
    RETRYABLE,
    Connection,
    Cursor,
    Line,
    Parameters,
    is_loss,
    is_read_only,
    rows,
    run,
    silent,
    store_error,
)
from landed.stores.postgres_queries import POSTGRES

R = TypeVar("R")

ATTEMPTS_MAX = 5
"""How often a transaction is tried that runs into others, or loses its connection."""

_PAUSE_S = 0.02


class ShortError(Exception):
    """Fewer rows changed than should have: some condition does not hold."""


class _AgainError(Exception):
    """Nothing was written, and trying again is harmless."""


class Begun(NamedTuple):
    """A transaction: its connection, its number, and the positions and epochs drawn for it."""

    connection: Connection
    xid: str
    entries: list[int]
    epochs: list[int]


class Last(NamedTuple):
    """The statement that goes to the server in one message with COMMIT; it fails or is whole."""

    query: str
    parameters: Parameters


class Mark(NamedTuple):
    """The journal entry by which a transaction's effect is known; 0 where it writes none."""

    seq: int = 0
    hash: str = ""
    last: Last | None = None


class Transactions:
    """Runs functions in transactions on one line, one at a time, and knows the end of its chain.

    `link` is that of the last entry that is known to be written. `left` is called when the server
    turned out to be one that cannot be written, so that nothing is read from it either.
    """

    def __init__(
        self, line: Line, *, link: str = "", left: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        self.link = link
        self._line = line
        self._left = left
        self._settings = line.settings
        self._newest = migrations("postgres")[-1].version
        self._in_doubt: tuple[str, Mark] | None = None

    @property
    def in_doubt(self) -> bool:
        """Whether it is open what became of the last transaction; `settle` finds out."""
        return self._in_doubt is not None

    async def run(
        self,
        act: Callable[[Begun], Awaitable[tuple[R, Mark]]],
        *,
        entries: int = 0,
        epochs: int = 0,
    ) -> R:
        """Run `act` in a transaction and return what it returned, once that is durable.

        `entries` and `epochs` are drawn at its beginning. What `act` raises rolls it back and is
        raised. Raises `StoreError` for what is wrong with the server.
        """
        attempt = 0
        while True:
            await self.settle()
            connection = await self._line.connected()
            try:
                return await self._once(connection, act, entries=entries, epochs=epochs)
            except _AgainError as again:
                attempt += 1
                if attempt == ATTEMPTS_MAX:
                    raise store_error(again.__cause__ or again, self._settings.place) from again
            await asyncio.sleep(_PAUSE_S * attempt)

    async def settle(self) -> bool:
        """Find out about a COMMIT that nobody answered; return whether it took effect.

        Also when there is none. Raises `StoreError` while the server does not say; the next
        transaction, and the next read, ask again.
        """
        deadline_s = time.monotonic() + self._settings.reconnect_max_s
        while self._in_doubt is not None:
            written = await self._look(*self._in_doubt)
            if written is None and time.monotonic() >= deadline_s:
                raise self._unknown()
            if written is None:
                await asyncio.sleep(_PAUSE_S)
                continue
            mark = self._in_doubt[1]
            self._in_doubt = None
            if written:
                self._committed(mark)
            return written
        return True

    async def _once(
        self,
        connection: Connection,
        act: Callable[[Begun], Awaitable[tuple[R, Mark]]],
        *,
        entries: int,
        epochs: int,
    ) -> R:
        try:
            async with asyncio.timeout(ANSWER_MAX_S):
                begun = await self._begin(connection, entries=entries, epochs=epochs)
                result, mark = await act(begun)
        except BaseException as error:
            await self._roll_back(connection, error)
            if isinstance(error, TimeoutError):
                raise silent(self._settings.place) from error
            if isinstance(error, RETRYABLE) or is_loss(error) or is_read_only(error):
                raise _AgainError from error
            raise
        await self._commit(connection, begun.xid, mark)
        return result

    async def _commit(self, connection: Connection, xid: str, mark: Mark) -> None:
        try:
            async with asyncio.timeout(ANSWER_MAX_S):
                done = await _end(connection, mark.last)
        except BaseException as error:
            await self._roll_back(connection, error)
            if isinstance(error, RETRYABLE) or is_read_only(error):
                raise _AgainError from error
            if is_loss(error) or not isinstance(error, Exception):
                self._in_doubt = (xid, mark)
            if not is_loss(error):
                raise
            if not await self.settle():
                raise _AgainError from error
            return
        if done.statusmessage != "COMMIT":
            raise _AgainError  # The server rolled back what it could not keep.
        self._committed(mark)

    async def _begin(self, connection: Connection, *, entries: int, epochs: int) -> Begun:
        # All in one message: numbers of our own need no parameters. Reading who may write keeps a
        # migration waiting until this transaction is over.
        wait_ms = int(self._settings.lock_wait_max_s * 1000)
        cursor = await run(
            connection,
            "BEGIN ISOLATION LEVEL READ COMMITTED;"
            f"SET LOCAL lock_timeout = {wait_ms};"
            f"SET LOCAL idle_in_transaction_session_timeout = {int(PAUSE_MAX_S * 1000)};"
            "SELECT pg_current_xact_id()::text, (SELECT max(min_writer) FROM landed.migration),"
            f"ARRAY(SELECT nextval('landed.journal_seq') FROM generate_series(1, {entries})),"
            f"ARRAY(SELECT nextval('landed.epoch_drawn') FROM generate_series(1, {epochs}))",
        )
        while cursor.nextset():
            pass
        found = await cursor.fetchone()
        assert found is not None
        xid, min_writer, drawn_entries, drawn_epochs = found
        require_writer(min_writer, newest=self._newest, path=self._settings.place)
        return Begun(connection, xid, sorted(drawn_entries), sorted(drawn_epochs))

    async def _roll_back(self, connection: Connection, error: BaseException) -> None:
        if is_read_only(error):
            self._line.drop()  # Another host of the URL may be the one that can be written.
            if self._left is not None:
                await self._left()
            return
        if is_loss(error) or connection.closed or not isinstance(error, Exception):
            self._line.drop()
            return
        try:
            async with asyncio.timeout(ANSWER_MAX_S):
                await run(connection, "ROLLBACK")
        except DRIVER_ERRORS:
            self._line.drop()

    async def _look(self, xid: str, mark: Mark) -> bool | None:
        try:
            connection = await self._line.connected()
            async with asyncio.timeout(ANSWER_MAX_S):
                return await was_committed(connection, xid, mark)
        except DRIVER_ERRORS as lost:
            self._line.drop()
            if not is_loss(lost):
                raise self._unknown() from lost
            return None
        except StoreError as lost:
            raise self._unknown() from lost

    def _committed(self, mark: Mark) -> None:
        if mark.seq:
            self.link = mark.hash

    def _unknown(self) -> StoreError:
        return StoreError(
            f"{self._settings.place} was lost while it committed, and whether it did is not known "
            "yet; read when it is back"
        )


async def _end(connection: Connection, last: Last | None) -> Cursor:
    """Run what is left and COMMIT; what fails leaves the transaction to be rolled back."""
    if last is None:
        return await run(connection, "COMMIT")
    failed: psycopg.Error | None = None
    try:
        async with connection.pipeline():
            try:
                await run(connection, *last)
                return await run(connection, "COMMIT")
            except psycopg.Error as error:
                failed = error
    except psycopg.Error as error:
        failed = failed or error  # Its end tells only that something failed before.
    assert failed is not None
    raise failed


async def was_committed(connection: Connection, xid: str, mark: Mark) -> bool | None:
    """Say what became of a transaction; None while it is open, which this brings to an end.

    Its journal entry decides where it wrote one: after a fail-over the number may be another
    transaction's. But an entry that is absent says something only when the transaction is over.
    """
    try:
        status = (await rows(connection, POSTGRES.outcome, (xid,)))[0][0]
    except psycopg.errors.InvalidParameterValue:
        status = "absent"  # This server never came that far: it took over from the one that did.
    if status == "in progress":
        await run(connection, POSTGRES.end_transaction, (xid,))
        return None
    if mark.seq:
        found = await rows(connection, POSTGRES.is_written, (mark.seq, mark.hash))
        return bool(found[0][0])
    return bool(status == "committed")
