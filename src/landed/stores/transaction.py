"""One write transaction on SQLite at a time: whose turn it is, what goes in, what an error means.

A batch of units is tried whole. When some condition does not hold, all is rolled back and each unit
is judged for itself, in a savepoint of its own, by `landed.core.changes.apply` over the records and
names as they are: so a conflict disturbs no neighbour, and its error is the one of the reference.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from typing import TypeAlias, TypeVar

from landed.core.changes import Guard, Record, Stored, apply
from landed.core.errors import LandedError, StoreError
from landed.core.journal import GENESIS
from landed.stores.batch import ContendedError
from landed.stores.driver import (
    BUSY,
    CORRUPT,
    FULL,
    FULL_ADVICE,
    IO_ERROR,
    LOCKED,
    Connection,
    code_of,
    driver,
    store_error,
)
from landed.stores.locks import FileLock
from landed.stores.migrate import require_writer
from landed.stores.queries import SQLITE, many
from landed.stores.reading import record
from landed.stores.reserve import Reserve
from landed.stores.unit import Head, Rows, Unit, are_apart, lay_out

R = TypeVar("R")
Outcome: TypeAlias = tuple[Record, ...] | Exception

_POLL_S = 0.0005


class _ShortError(Exception):
    """Fewer rows changed than should have: some condition does not hold."""


class _FullError(StoreError):
    """The disk is full."""


# What SQLite says of one unit's values, as opposed to what it says of the file.
_UNIT_ERRORS = (
    _ShortError,
    driver.IntegrityError,
    driver.InterfaceError,
    driver.ProgrammingError,
    driver.DataError,
    OverflowError,
    TypeError,
    ValueError,
)


class Writer:
    """The writing connection of one SQLite file; one thread at a time may use it.

    `turn` is the file lock that writers queue at (None in memory): whoever has it waits for
    SQLite's own write lock, and lets it go once that is held. So a process that writes all the time
    has to queue behind the one that waits. A wait is bounded by `wait_max_s`. `schema` is the
    newest schema version that this program knows.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        path: str,
        secrets: tuple[bytes, ...],
        turn: FileLock | None,
        wait_max_s: float,
        schema: int,
        reserve: Reserve | None = None,
    ) -> None:
        self.connection = connection
        self.broken = ""
        self._path = path
        self._secrets = secrets
        self._turn = turn
        self._wait_max_s = wait_max_s
        self._schema = schema
        self._reserve = reserve

    def commit(self, units: list[Unit], *, wait: bool) -> Sequence[Outcome]:
        """Write each unit whole or not at all; return its records as stored, or its error.

        Raises `ContendedError` when another process writes and `wait` is False.
        """
        try:
            self._require_room(units)
            return self._commit(units, wait=wait)
        except _FullError as full:
            return self._commit_under_way(units, full, wait=wait)
        except StoreError as error:
            return [copy(error) for _ in units]

    def _require_room(self, units: list[Unit]) -> None:
        """Begin nothing in the room that was given up for what is under way."""
        reserve = self._reserve
        if reserve is None or not reserve.is_spent or not any(unit.begins for unit in units):
            return
        if not reserve.keep():
            raise _FullError(f"{self._path} {FULL_ADVICE}")

    def _commit(self, units: list[Unit], *, wait: bool) -> Sequence[Outcome]:
        if len(units) == 1 or are_apart(units):
            try:
                return self._transact(partial(self._write_all, units), wait=wait)
            except _UNIT_ERRORS:
                pass
        return self._run(partial(self._judge_each, units), wait=wait)

    def _commit_under_way(
        self, units: list[Unit], full: _FullError, *, wait: bool
    ) -> Sequence[Outcome]:
        under_way = [unit for unit in units if not unit.begins]
        written: Iterator[Outcome] = iter(())
        if under_way and self._reserve is not None:
            self._reserve.spend()
            try:
                written = iter(self._commit(under_way, wait=wait))
            except StoreError as error:
                written = iter([copy(error) for _ in under_way])
        return [copy(full) if unit.begins else next(written, copy(full)) for unit in units]

    def run(self, write: Callable[[Head], R], *, wait: bool) -> R:
        """Run `write` in a transaction; it is rolled back when anything goes wrong.

        Raises `StoreError` for what is wrong with the file, or with a value. After a disk error
        nothing runs any more: what the disk kept is known only when the file is opened again.
        """
        try:
            return self._run(write, wait=wait)
        except _FullError:
            if self._reserve is None:
                raise
            self._reserve.spend()
            return self._run(write, wait=wait)

    def _run(self, write: Callable[[Head], R], *, wait: bool) -> R:
        try:
            return self._transact(write, wait=wait)
        except _UNIT_ERRORS as error:
            raise self.trouble(error) from error

    def require_whole(self) -> None:
        """Raise `StoreError` after a disk error."""
        if self.broken:
            raise StoreError(self.broken)

    def trouble(self, error: Exception) -> StoreError:
        """Return what an error means for the caller, and stop for good after one of the disk."""
        meant = store_error(error, self._path)
        if isinstance(error, driver.Error) and code_of(error) in (IO_ERROR, CORRUPT):
            self.broken = str(meant)
        if isinstance(error, driver.Error) and code_of(error) == FULL:
            return _FullError(str(meant))
        return meant

    def draw_epoch(self, head: Head) -> int:
        """Draw the next epoch, inside the transaction that read `head`."""
        self.connection.execute(SQLITE.draw_epoch, (head.epoch + 1,))
        return head.epoch + 1

    def close(self) -> None:
        """Let the connection and the lock file go."""
        self.connection.close()
        if self._turn is not None:
            self._turn.close()

    def _transact(self, write: Callable[[Head], R], *, wait: bool) -> R:
        self.require_whole()
        try:
            self._begin(wait)
            try:
                written = write(self._head())
                self.connection.execute("COMMIT")
            except BaseException:
                self._roll_back()
                raise
        except _UNIT_ERRORS:
            raise
        except (driver.Error, OSError) as error:
            raise self.trouble(error) from error
        return written

    def _begin(self, wait: bool) -> None:
        deadline_s = time.perf_counter() + self._wait_max_s if wait else None
        if self._turn is None:
            self._begin_now(deadline_s)
            return
        while not self._turn.try_lock():
            self._pause(deadline_s)
        try:
            self._begin_now(deadline_s)
        finally:
            self._turn.unlock()

    def _begin_now(self, deadline_s: float | None) -> None:
        while True:
            try:
                self.connection.execute("BEGIN IMMEDIATE")
                return
            except driver.OperationalError as error:
                if code_of(error) not in (BUSY, LOCKED):
                    raise
            self._pause(deadline_s)

    def _pause(self, deadline_s: float | None) -> None:
        if deadline_s is None:
            raise ContendedError
        if time.perf_counter() >= deadline_s:
            raise StoreError(
                f"{self._path} is locked by another process for more than {self._wait_max_s:g} s; "
                "end what holds it, or wait for it, and try again. Nothing was written"
            )
        time.sleep(_POLL_S)

    def _roll_back(self) -> None:
        try:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
        except driver.Error as error:
            self.broken = self.broken or str(store_error(error, self._path))

    def _head(self) -> Head:
        epoch, min_writer, seq, hash = self.connection.execute(SQLITE.head).fetchone()
        require_writer(min_writer, newest=self._schema, path=self._path)
        return Head(epoch, seq, hash) if seq else Head(epoch, 0, GENESIS)

    def _write_all(self, units: list[Unit], head: Head) -> Sequence[Outcome]:
        if not all(unit.is_plain for unit in units):
            raise _ShortError
        return self._write(units, head)[1]

    def _write(self, units: list[Unit], head: Head) -> tuple[Head, list[tuple[Record, ...]]]:
        rows = Rows()
        outcomes: list[tuple[Record, ...]] = []
        after = head
        for unit in units:
            after, records = lay_out(unit, after, rows, self._secrets[0])
            outcomes.append(records)
        if rows.guards:
            self._check_guards(rows.guards)
        if after.epoch != head.epoch:
            self.connection.execute(SQLITE.draw_epoch, (after.epoch,))
        self._execute(rows)
        return after, outcomes

    def _check_guards(self, guards: list[Guard]) -> None:
        found = dict(
            self.connection.execute(SQLITE.versions, (many(guard.id for guard in guards),))
        )
        if any(found.get(guard.id, 0) != guard.version for guard in guards):
            raise _ShortError

    def _execute(self, rows: Rows) -> None:
        execute = self.connection.executemany
        if rows.inserts:
            execute(SQLITE.insert_record, rows.inserts)
        if rows.updates:
            changed = execute(SQLITE.update_record, rows.updates).rowcount
            if changed != len(rows.updates):
                raise _ShortError
        if rows.entries:
            execute(SQLITE.insert_entry, rows.entries)
        if rows.frees:
            execute(SQLITE.free_name, rows.frees)
        if rows.takes:
            execute(SQLITE.take_name, rows.takes)

    def _judge_each(self, units: list[Unit], head: Head) -> Sequence[Outcome]:
        outcomes: list[Outcome] = []
        for unit in units:
            self.connection.execute("SAVEPOINT unit")
            try:
                head, records = self._judge(unit, head)
                outcomes.append(records)
            except (LandedError, *_UNIT_ERRORS) as error:
                self.connection.execute("ROLLBACK TO unit")
                is_ours = isinstance(error, LandedError)
                outcomes.append(error if is_ours else store_error(error, self._path))
            self.connection.execute("RELEASE unit")
        return outcomes

    def _judge(self, unit: Unit, head: Head) -> tuple[Head, tuple[Record, ...]]:
        stored = self._stored(unit, head)
        _, judged = apply(stored, unit.changes)
        for id, written in unit.written.items():
            written.expect(stored.records.get(id))
        head, (records,) = self._write([unit], head)
        places = zip(judged, records, strict=True)
        return head, tuple(replace(one, made=at.made, last=at.last) for one, at in places)

    def _stored(self, unit: Unit, head: Head) -> Stored:
        ids = many({*unit.written, *(guard.id for guard in unit.changes.guards)})
        rows = self.connection.execute(SQLITE.load, (ids,)).fetchall()
        names = many(hold.name for hold in unit.changes.takes + unit.changes.frees)
        return Stored(
            records={row[0]: record(row, self._secrets) for row in rows},
            names=dict(self.connection.execute(SQLITE.holders, (names,)).fetchall()),
            epoch=head.epoch,
        )
