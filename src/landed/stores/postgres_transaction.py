"""One transaction on Postgres at a time: begun, retried where that is harmless, and resolved.

A transaction's function contains no sends, so it may run again. It does after a deadlock, and when
the connection was lost before COMMIT had been sent. When it is lost *while* COMMIT is on its way,
nobody knows yet whether it took effect; then the server is asked, never guessed for.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import NamedTuple, TypeVar

import psycopg

from landed.core.errors import StoreError
from landed.stores.migrate import migrations, require_writer
from landed.stores.postgres_line import (
    DRIVER_ERRORS,
    RETRYABLE,
    Connection,
    Line,
    is_loss,
    rows,
    run,
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


class Mark(NamedTuple):
    """The journal entry by which a transaction's effect is known; 0 where it writes none."""

    seq: int = 0
    hash: str = ""


class Transactions:
    """Runs functions in transactions on one line."""

    def __init__(self, line: Line) -> None:
        self.broken = ""
        self._line = line
        self._settings = line.settings
        self._newest = migrations("postgres")[-1].version
        self._unknown = (
            f"{self._settings.place} was lost while it committed, and whether it did is not known; "
            "open the store again when it is back, and read"
        )

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
            self.require_whole()
            connection = await self._line.connected()
            try:
                return await self._once(connection, act, entries=entries, epochs=epochs)
            except _AgainError as again:
                attempt += 1
                if attempt == ATTEMPTS_MAX:
                    raise store_error(again.__cause__ or again, self._settings.place) from again
            await asyncio.sleep(_PAUSE_S * attempt)

    def require_whole(self) -> None:
        """Raise `StoreError` after an outcome that could not be learned."""
        if self.broken:
            raise StoreError(self.broken)

    async def _once(
        self,
        connection: Connection,
        act: Callable[[Begun], Awaitable[tuple[R, Mark]]],
        *,
        entries: int,
        epochs: int,
    ) -> R:
        try:
            begun = await self._begin(connection, entries=entries, epochs=epochs)
            result, mark = await act(begun)
        except BaseException as error:
            await self._roll_back(connection, error)
            if isinstance(error, RETRYABLE) or is_loss(error):
                raise _AgainError from error
            raise
        try:
            done = await run(connection, "COMMIT")
        except BaseException as error:
            await self._roll_back(connection, error)
            if isinstance(error, RETRYABLE):
                raise _AgainError from error
            if not is_loss(error):
                if not isinstance(error, Exception):
                    self.broken = self._unknown  # Nobody is left to wait for the answer.
                raise
            await self._resolve(begun.xid, mark, error)
            return result
        if done.statusmessage != "COMMIT":
            raise _AgainError  # The server rolled back what it could not keep.
        return result

    async def _begin(self, connection: Connection, *, entries: int, epochs: int) -> Begun:
        # All in one message: numbers of our own need no parameters.
        wait_ms = int(self._settings.lock_wait_max_s * 1000)
        cursor = await run(
            connection,
            "BEGIN ISOLATION LEVEL READ COMMITTED;"
            f"SET LOCAL lock_timeout = {wait_ms};"
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
        if is_loss(error) or connection.closed or not isinstance(error, Exception):
            self._line.drop()
            return
        try:
            await run(connection, "ROLLBACK")
        except DRIVER_ERRORS:
            self._line.drop()

    async def _resolve(self, xid: str, mark: Mark, error: BaseException) -> None:
        """Return when the transaction was committed; raise `_AgainError` when it was not."""
        self.broken = self._unknown
        deadline_s = time.monotonic() + self._settings.reconnect_max_s
        while True:
            try:
                written = await was_committed(await self._line.connected(), xid, mark)
            except DRIVER_ERRORS as lost:
                written = None
                self._line.drop()
                if not is_loss(lost):
                    raise StoreError(self.broken) from lost
            except StoreError as lost:
                raise StoreError(self.broken) from lost
            if written is not None:
                break
            if time.monotonic() >= deadline_s:
                raise StoreError(self.broken) from error
            await asyncio.sleep(_PAUSE_S)
        self.broken = ""
        if not written:
            raise _AgainError from error


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
        return bool((await rows(connection, POSTGRES.is_written, mark))[0][0])
    return bool(status == "committed")
