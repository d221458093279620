"""Makes statements in a database a tool: the effect and its key in one transaction.

The key goes into a table of that database, in the same transaction as the effect. So whatever was
lost on the way, the row says whether the effect is there: it is there where the row is. A close
puts its own row there first, and what comes late finds it.

It speaks DB-API 2.0 to SQLite and to PostgreSQL (`ON CONFLICT`), and needs no driver itself. The
statements must not commit by themselves. An outbox or a ledger that is there already can be the
executor: see `outbox`.
"""

import json
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Literal, Protocol, Unpack, cast

from landed.core.canonical import Json, canonical, checked, fingerprint
from landed.core.contract import Effect
from landed.core.errors import ContractError, NotSentError, ProposalError
from landed.core.outcome import (
    Absent,
    Acknowledged,
    Found,
    ListedEffect,
    LookOutcome,
    NotSent,
    NotYet,
    Refused,
    SendOutcome,
)
from landed.core.tool import Call
from landed.tools.blocking import BlockingTool
from landed.tools.classify import described
from landed.tools.promises import Promises

KEY = "landed_key"
"""The parameter that carries the key, in statements and in the table of keys."""

TABLE = "landed_operation"
ROWS_MAX = 100
"""Rows of a statement that returns some; a statement that returns more is refused."""
LISTED_MAX = 1_000

# Every read comes after the commit that it asks about: there is one position before, and one after.
AFTER = 1

_NAME = re.compile(r"(?<![:\w]):([A-Za-z_]\w*)")
_WORD = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)?")

# What a database says, by the names of DB-API 2.0: no for good, or not now.
_NO = frozenset({"IntegrityError", "DataError", "ProgrammingError", "NotSupportedError"})


class Cursor(Protocol):
    """A DB-API 2.0 cursor."""

    @property
    def description(self) -> Sequence[Sequence[object]] | None:
        """One entry for each column of what was returned, its name first."""
        ...

    @property
    def rowcount(self) -> int:
        """How many rows were touched."""
        ...

    def execute(self, statement: str, values: Mapping[str, object], /) -> object:
        """Run one statement."""
        ...

    def fetchmany(self, size: int, /) -> Sequence[Sequence[object]]:
        """Return the next rows."""
        ...


class Connection(Protocol):
    """A DB-API 2.0 connection."""

    def cursor(self) -> Cursor:
        """Return a new cursor."""
        ...

    def commit(self) -> None:
        """Make durable what was done."""
        ...

    def rollback(self) -> None:
        """Take back what was not committed."""
        ...

    def close(self) -> None:
        """End it."""
        ...


Connect = Callable[[], Connection]


class SqlTool(BlockingTool):
    """Statements in one transaction, as a `landed.core.tool.Tool`.

    connect     returns a new DB-API 2.0 connection; one is opened for each send and each question
    statements  one or several, with parameters as `:name`; they may also use `:landed_key`
    arguments   per argument its type, or (type, default)
    rows        how many rows each statement must touch (one number for all, or one for each, None
                for any number); where it is another, nothing is done
    outcome     a query that says what became of it, where the transaction only hands it on: one row
                with one value, 1 for done, 0 for never, and null or no row for not yet
    table       where the keys are; `set_up` makes it
    form        how the driver writes parameters: `:name` or `%(name)s`

    The result is `{rows}`, or `{rows, returned}` where the last statement returns rows (at most
    ROWS_MAX, as objects). A constraint that is broken is a refusal, a lock is *not sent*; a
    connection that is lost at the commit is a lost answer, and the lookup by key is exact. Amounts
    go in as they are stored: text and numbers. The other promises are the fields of
    `landed.core.contract.Contract`.

    Raises `ContractError` where the promises contradict each other, or a statement names what is
    no argument.
    """

    def __init__(
        self,
        *,
        name: str,
        effect: Literal["reversible", "irreversible"],
        connect: Connect,
        statements: str | Sequence[str],
        arguments: Mapping[str, object],
        rows: int | Sequence[int | None] | None = None,
        outcome: str = "",
        table: str = TABLE,
        form: Literal[":name", "%(name)s"] = ":name",
        description: str = "",
        **promises: Unpack[Promises],
    ) -> None:
        self._statements = (statements,) if isinstance(statements, str) else tuple(statements)
        _check(name, [*self._statements, outcome], frozenset(arguments), table)
        given = {
            **promises,
            "keyed": KEY,
            "compares_payload": True,
            "lookup": True,
            "close": True,
            "list_effects": True,
            "read_back": bool(outcome),
            "effect": Effect(effect),
        }
        super().__init__(name, arguments, given, description=description)
        self._connect = connect
        each = [rows] * len(self._statements) if isinstance(rows, int | None) else list(rows)
        if len(each) != len(self._statements):
            raise ContractError(f"contract of {name}: rows has one number for each statement")
        self._rows = each
        self._outcome = outcome
        self._table = table
        self._form = form

    def check(self, arguments: Mapping[str, Json]) -> Mapping[str, Json]:
        """Return the arguments as stored; `ProposalError` for what is no text, number or null."""
        stored = super().check(arguments)
        for name, value in stored.items():
            if isinstance(value, Mapping | list):
                raise ProposalError(f"{self.name}: {name} goes into a column: give a plain value")
        return stored

    def set_up(self) -> None:
        """Make the table of keys where it is missing; blocks, and raises the driver's errors."""
        with self._open() as connection:
            self._run(connection, _MAKE, {})
            connection.commit()

    def forget(self, *, before: float) -> None:
        """Delete the keys of before a time (UTC, seconds); blocks, and raises the driver's errors.

        Declare `retention_s` in the contract where this is done: a forgotten key looks unused.
        """
        with self._open() as connection:
            self._run(connection, _FORGET, {"at": before})
            connection.commit()

    def _send(self, call: Call) -> SendOutcome:
        with self._open() as connection:
            try:
                done = self._within(connection, call)
            except Exception as error:
                # Nothing was committed, and nobody but this connection could.
                return _uncommitted(error)
            if isinstance(done, Refused):
                return done
            connection.commit()
            return self._acknowledged(done)

    def _within(self, connection: Connection, call: Call) -> "Json | Refused":
        """Run the statements; what is returned as a result is still to be committed."""
        _begin(connection)
        if self._taken(connection, call):
            closed, payload, result = self._row(connection, call) or (True, "", None)
            if closed:
                return Refused(reason=f"{call.key} was closed")
            if payload != _payload(call):
                return Refused(reason=f"{call.key} was used with other arguments")
            return result
        did = self._effect(connection, call)
        if isinstance(did, Refused):
            return did
        kept = {KEY: call.key, "result": canonical(did).decode()}
        self._run(connection, _KEEP, kept)
        return did

    def _taken(self, connection: Connection, call: Call, *, closed: int = 0) -> bool:
        """Take the key; whether it was taken already. Whoever comes second waits for the first."""
        row = {"payload": _payload(call), "closed": closed, "at": call.sent_at}
        row |= {KEY: call.key, "tool": self.name}
        return self._run(connection, _TAKE, row).rowcount == 0

    def _effect(self, connection: Connection, call: Call) -> "Json | Refused":
        values, result = {**call.arguments, KEY: call.key}, cast("Json", None)
        for statement, wanted in zip(self._statements, self._rows, strict=True):
            result, touched = _touched(self._run(connection, statement, values))
            if wanted not in (None, touched):
                return Refused(reason=f"{touched} rows would change, not {wanted}")
        return result

    def _row(self, connection: Connection, call: Call) -> tuple[bool, str, Json] | None:
        rows = self._run(connection, _LOOK, {KEY: call.key}).fetchmany(1)
        if not rows:
            return None
        closed, payload, result = rows[0]
        return bool(closed), str(payload), None if closed else json.loads(str(result))

    def _list(self, since: float) -> tuple[ListedEffect, ...]:
        with self._open() as connection:
            found = self._run(connection, _LIST, {"at": since, "tool": self.name})
            rows = found.fetchmany(LISTED_MAX + 1)
        if len(rows) > LISTED_MAX:
            raise LookupError(f"more than {LISTED_MAX} keys: ask for a later time")
        return tuple(
            ListedEffect(id=str(key), key=str(key), result=json.loads(str(result)))
            for key, result in rows
        )

    def _lookup(self, call: Call) -> LookOutcome:
        with self._open() as connection:
            return self._seen(connection, call)

    def _seen(self, connection: Connection, call: Call) -> LookOutcome:
        match self._row(connection, call):
            case (False, _, result):
                return Found(result=result, position=AFTER)
            case _:
                return Absent(position=None)

    def _close(self, call: Call) -> LookOutcome:
        with self._open() as connection:
            _begin(connection)
            if self._taken(connection, call, closed=1):
                return self._seen(connection, call)
            connection.commit()
            return Absent()

    def _read_back(self, call: Call, result: Json) -> LookOutcome:
        """Ask the `outcome` query: a no is one for good, for it is read after our own commit."""
        with self._open() as connection:
            values = {**call.arguments, KEY: call.key}
            rows = self._run(connection, self._outcome, values).fetchmany(1)
        match rows[0][0] if rows else None:
            case None:
                return NotYet(reason="it was handed on, and nothing came of it so far")
            case 0:
                return Absent(position=AFTER)
            case _:
                return Found(result=result, position=AFTER)

    def _acknowledged(self, result: Json) -> Acknowledged:
        return Acknowledged(result=result, position=AFTER if self._outcome else None)

    def _run(self, connection: Connection, statement: str, values: Mapping[str, object]) -> Cursor:
        cursor = connection.cursor()
        text = statement.replace("{table}", self._table)
        used = {name: values[name] for name in _NAME.findall(text)}
        if self._form != ":name":
            text = _NAME.sub(r"%(\1)s", text.replace("%", "%%"))
        cursor.execute(text, used)
        return cursor

    @contextmanager
    def _open(self) -> Generator[Connection]:
        try:
            connection = self._connect()
        except Exception as error:
            raise NotSentError(f"no connection: {described(error)}") from error
        try:
            yield connection
        finally:
            with suppress(Exception):  # It may be the connection that broke.
                connection.rollback()
            with suppress(Exception):
                connection.close()


def outbox(
    *,
    name: str,
    connect: Connect,
    arguments: Mapping[str, object],
    into: str = "outbox",
    key: str = "id",
    columns: Mapping[str, str] | None = None,
    outcome: str = "",
    effect: Literal["reversible", "irreversible"] = "irreversible",
    **promises: Unpack[Promises],
) -> SqlTool:
    """Return a tool that puts a row into an outbox which somebody else empties.

    The row has the operation's key in the column `key` and each argument in a column of its own
    name, or of the one that `columns` says. With an `outcome` query it is confirmed only when that
    says so; without one, confirmed means that the row is there.

    Raises `ContractError` for a name that is no plain SQL name.
    """
    named = {key: KEY} | {(columns or {}).get(each, each): each for each in arguments}
    for each in (into, *named):
        if not _WORD.fullmatch(each):
            raise ContractError(f"contract of {name}: {each!r} is no plain SQL name")
    values = ", ".join(f":{parameter}" for parameter in named.values())
    return SqlTool(
        name=name,
        effect=effect,
        connect=connect,
        statements=f"INSERT INTO {into} ({', '.join(named)}) VALUES ({values})",
        arguments=arguments,
        rows=1,
        outcome=outcome,
        **promises,
    )


_MAKE = """CREATE TABLE IF NOT EXISTS {table} (
    landed_key TEXT PRIMARY KEY, tool TEXT NOT NULL, payload TEXT NOT NULL, result TEXT,
    closed INTEGER NOT NULL, at DOUBLE PRECISION NOT NULL)"""
_TAKE = """INSERT INTO {table} (landed_key, tool, payload, closed, at)
    VALUES (:landed_key, :tool, :payload, :closed, :at) ON CONFLICT (landed_key) DO NOTHING"""
_KEEP = "UPDATE {table} SET result = :result WHERE landed_key = :landed_key"
_LOOK = "SELECT closed, payload, result FROM {table} WHERE landed_key = :landed_key"
_LIST = """SELECT landed_key, result FROM {table}
    WHERE closed = 0 AND tool = :tool AND at >= :at ORDER BY at"""
_FORGET = "DELETE FROM {table} WHERE at < :at"


def _check(tool: str, statements: Sequence[str], arguments: frozenset[str], table: str) -> None:
    if not _WORD.fullmatch(table):
        raise ContractError(f"contract of {tool}: {table!r} is no plain SQL name")
    if not statements[0]:
        raise ContractError(f"contract of {tool}: give the statement that it runs")
    for statement in statements:
        for named in _NAME.findall(statement):
            if named not in arguments | {KEY}:
                raise ContractError(f"contract of {tool}: :{named} is no argument of it")


def _touched(cursor: Cursor) -> tuple[Json, int]:
    """Return the result of a statement, and how many rows it is about."""
    if cursor.description is None:
        return {"rows": cursor.rowcount}, cursor.rowcount
    names = [str(column[0]) for column in cursor.description]
    rows = cursor.fetchmany(ROWS_MAX + 1)
    if len(rows) > ROWS_MAX:
        raise ProposalError(f"it returns more than {ROWS_MAX} rows")
    returned = checked([dict(zip(names, row, strict=True)) for row in rows])
    return {"rows": len(rows), "returned": returned}, len(rows)


def _payload(call: Call) -> str:
    return fingerprint(dict(call.arguments), domain="sql")


def _begin(connection: Connection) -> None:
    """Have one transaction around all that follows, whatever mode the driver is in."""
    if getattr(connection, "autocommit", False) is True:
        connection.autocommit = False  # type: ignore[attr-defined]
    elif _is_told_to_leave_transactions(connection):
        connection.cursor().execute("BEGIN IMMEDIATE", {})


def _is_told_to_leave_transactions(connection: Connection) -> bool:
    """Whether it is one of SQLite's driver, which then begins none by itself."""
    is_sqlite = hasattr(connection, "in_transaction")
    return is_sqlite and getattr(connection, "isolation_level", "") is None


def _uncommitted(error: Exception) -> SendOutcome:
    names = {each.__name__ for each in type(error).__mro__}
    if names & _NO or isinstance(error, ProposalError):
        return Refused(reason=described(error))
    return NotSent(reason=described(error))
