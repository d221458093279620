"""How units are written to Postgres: a batch whole by one statement, or judged one by one.

The statement compares, sets, inserts and appends, and says how much of each went in. When that is
less than it should be, all is rolled back and each unit is judged for itself, in a savepoint of its
own, by `landed.core.changes.apply` over the records and names as they are, locked: so a conflict
disturbs no neighbour, and its error is the one of the reference.

The journal is one chain for each opened store: its first entry is linked to the one that was the
last when the store was opened, each later one to the one before it.
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from typing import TypeAlias

import psycopg

from landed.core.changes import Record, Stored, apply
from landed.core.errors import LandedError, StoreError
from landed.stores.postgres_line import Connection, Parameters, Settings, rows, run, store_error
from landed.stores.postgres_queries import POSTGRES, SHARED, demanding, joined
from landed.stores.postgres_transaction import (
    ATTEMPTS_MAX,
    Begun,
    Last,
    Mark,
    ShortError,
    Transactions,
)
from landed.stores.reading import record
from landed.stores.unit import Head, Rows, Unit, are_apart, lay_out
from landed.stores.unit import Parameters as Columns

Outcome: TypeAlias = tuple[Record, ...] | Exception
Moved: TypeAlias = tuple[Record, ...]

# What Postgres and its driver say of one unit's values, as opposed to what they say of the server.
_UNIT_ERRORS = (
    psycopg.DataError,
    psycopg.IntegrityError,
    psycopg.ProgrammingError,
    psycopg.NotSupportedError,
    psycopg.errors.RaiseException,
    OverflowError,
    TypeError,
    ValueError,
)
_TEXTS = {
    # Which columns of the rows of each part are texts.
    "moved": (0, 3, 6),
    "inserted": (0, 1, 2, 3, 4, 7),
    "appended": (1, 4, 5, 8, 9, 10),
    "freed": (0, 1),
    "taken": (0, 1),
}


class Writer:
    """Writes units through one line, at the end of one chain."""

    def __init__(self, transactions: Transactions, settings: Settings) -> None:
        self._transactions = transactions
        self._settings = settings

    async def commit(self, units: list[Unit]) -> Sequence[Outcome]:
        """Write each unit whole or not at all; return its records as stored, or its error."""
        try:
            if all(unit.is_plain for unit in units) and (len(units) == 1 or are_apart(units)):
                try:
                    return await self._write_together(units)
                except (ShortError, *_UNIT_ERRORS):
                    pass
            return await self._write_each(units)
        except StoreError as error:
            return [copy(error) for _ in units]
        except psycopg.Error as error:
            meant = store_error(error, self._settings.place)
            return [copy(meant) for _ in units]

    async def _write_together(self, units: list[Unit]) -> Sequence[Outcome]:
        return await self._transactions.run(
            partial(self._all_of, units),
            entries=sum(len(unit.drafts) for unit in units),
            epochs=sum(unit.draws for unit in units),
        )

    async def _all_of(self, units: list[Unit], begun: Begun) -> tuple[list[Moved], Mark]:
        for unit in units:
            for written in unit.written.values():
                written.expect(None)  # What an earlier attempt laid out is forgotten.
        positions, epochs = iter(begun.entries), iter(begun.epochs)
        laid = Rows()
        outcomes: list[Moved] = []
        link = self._transactions.link
        for unit in units:
            head = Head(next(epochs) - 1 if unit.draws else 0, 0, link)
            after, records = lay_out(unit, head, laid, self._settings.secret, positions)
            link = after.hash
            outcomes.append(records)
        last = await all_but_last(begun.connection, laid)
        return outcomes, _mark(laid, last)

    async def _write_each(self, units: list[Unit]) -> Sequence[Outcome]:
        for _ in range(ATTEMPTS_MAX):
            try:
                return await self._transactions.run(partial(self._each_of, units))
            except ShortError:
                continue  # Another writer came in between; judge again by what is there now.
        raise StoreError(
            f"{self._settings.place}: other writers move the same records all the time; try again. "
            "Nothing was written"
        )

    async def _each_of(self, units: list[Unit], begun: Begun) -> tuple[list[Outcome], Mark]:
        outcomes: list[Outcome] = []
        link, mark = self._transactions.link, Mark()
        for unit in units:
            try:
                async with begun.connection.transaction():
                    records, link, written = await self._judge(unit, begun.connection, link)
                mark = written if written.seq else mark
                outcomes.append(records)
            except LandedError as error:
                outcomes.append(error)
            except _UNIT_ERRORS as error:
                outcomes.append(store_error(error, self._settings.place))
        return outcomes, mark

    async def _judge(
        self, unit: Unit, connection: Connection, link: str
    ) -> tuple[Moved, str, Mark]:
        stored = await self._stored(unit, connection)
        apply(stored, unit.changes)
        draw = (len(unit.drafts), int(unit.draws))
        ((entries, epochs),) = await rows(connection, POSTGRES.draw, draw)
        epoch = epochs[0] - 1 if epochs else 0
        _, judged = apply(replace(stored, epoch=epoch), unit.changes)
        for id, written in unit.written.items():
            written.expect(stored.records.get(id))
        laid = Rows()
        head = Head(epoch, 0, link)
        after, records = lay_out(unit, head, laid, self._settings.secret, iter(sorted(entries)))
        await write(connection, laid)
        places = zip(judged, records, strict=True)
        moved = tuple(replace(one, made=at.made, last=at.last) for one, at in places)
        return moved, after.hash, _mark(laid)

    async def _stored(self, unit: Unit, connection: Connection) -> Stored:
        ids = sorted({*unit.written, *(guard.id for guard in unit.changes.guards)})
        names = [hold.name for hold in unit.changes.takes + unit.changes.frees]
        await run(connection, POSTGRES.lock, (ids,))
        found = await rows(connection, SHARED.load, (ids,))
        return Stored(
            records={row[0]: record(row, self._settings.secrets) for row in found},
            names=dict(await rows(connection, SHARED.holders, (names,))),
        )


def _mark(laid: Rows, last: Last | None = None) -> Mark:
    if not laid.entries:
        return Mark(last=last)
    seq, *_, hash = laid.entries[-1]
    return Mark(seq, hash, last)  # type: ignore[arg-type]


async def all_but_last(connection: Connection, laid: Rows) -> Last | None:
    """Write what must be written before, and return what is left for COMMIT to go with.

    A guarded record is locked until the transaction ends. One that is guarded as absent cannot be:
    it may appear meanwhile, as if this unit had gone first. Raises `ShortError` where a condition
    does not hold.
    """
    parts = await _first(connection, laid)
    if not parts:
        return None
    shape, parameters = _laid(parts)
    counted = tuple(name for name in parts if name != "freed")
    counts = [len(parts[name]) for name in counted]
    return Last(demanding(shape, counted), (*parameters, *counts))


async def write(connection: Connection, laid: Rows) -> None:
    """Write all of it; raises `ShortError` where some condition does not hold."""
    await _write_parts(connection, await _first(connection, laid))


async def _first(connection: Connection, laid: Rows) -> dict[str, list[Columns]]:
    """Check guards, let go of names that are handed on, and return what is left to be written."""
    if laid.guards:
        await _check_guards(connection, laid)
    frees = laid.frees
    if frees and laid.takes:
        # A name that is handed on must be gone before it is taken.
        await _write_parts(connection, {"freed": frees})
        frees = []
    parts = {
        "moved": laid.updates,
        "inserted": laid.inserts,
        "appended": laid.entries,
        "freed": frees,
        "taken": laid.takes,
    }
    return {name: part for name, part in parts.items() if part}


async def _write_parts(connection: Connection, parts: dict[str, list[Columns]]) -> None:
    if not parts:
        return
    shape, parameters = _laid(parts)
    (counts,) = await rows(connection, joined(shape), parameters)
    for (name, part), count in zip(parts.items(), counts, strict=True):
        if name != "freed" and count != len(part):
            raise ShortError


def _laid(parts: dict[str, list[Columns]]) -> tuple[tuple[tuple[str, bool], ...], Parameters]:
    """Return how the rows are written, one or many of each part, and the parameters of that."""
    parameters: list[object] = []
    for name, part in parts.items():
        parameters += _columns(name, part) if len(part) > 1 else _values(name, part[0])
    return tuple((name, len(part) > 1) for name, part in parts.items()), tuple(parameters)


async def _check_guards(connection: Connection, laid: Rows) -> None:
    ids = {guard.id for guard in laid.guards} | {str(update[6]) for update in laid.updates}
    found = dict(await rows(connection, POSTGRES.lock, (sorted(ids),)))
    if any(found.get(guard.id, 0) != guard.version for guard in laid.guards):
        raise ShortError


def _columns(name: str, part: list[Columns]) -> list[object]:
    columns: list[object] = [list(column) for column in zip(*part, strict=True)]
    for at in _TEXTS[name]:
        columns[at] = [str(row[at]) for row in part]
    return columns


def _values(name: str, row: Columns) -> list[object]:
    values: list[object] = list(row)
    for at in _TEXTS[name]:
        # The driver would write an enumeration by its name.
        values[at] = str(values[at])
    return values
