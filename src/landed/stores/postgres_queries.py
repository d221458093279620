"""The queries of the Postgres store: the shared ones in its dialect, and its own by name."""

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from landed.stores.queries import Queries, split

_LIST = re.compile(r"\bIN :([a-z_]+)")
_EACH = re.compile(r"\bEACH :([a-z_]+)")
_PARAMETER = re.compile(r"(?<!:):([a-z_]+)")
_ROWS = re.compile(r"unnest\(([^()]*)\)")
_TABLE = re.compile(
    r"\b(FROM|JOIN|INTO|UPDATE)(\s+)(record|journal|name|worker|migration|loaded)\b"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresQueries:
    """Every query of `postgres.sql`; a name too few or too many is a `TypeError` at import."""

    lock: str
    draw: str
    newest: str
    lock_gone: str
    lock_claimable: str
    remove_idle: str
    renew: str
    retire: str
    outcome: str
    is_written: str
    end_transaction: str
    time: str
    facts: str


def read(text: str) -> dict[str, str]:
    """Split a file of queries into name → SQL in the dialect of Postgres.

    A parameter becomes `$1`, `$2` in the order of first appearance; one after IN or EACH is an
    array. Tables are named with their schema, because a search path would be a state of the
    session, and behind PgBouncer a session is nobody's own.
    """
    return {name: _for_postgres(sql) for name, sql in split(text).items()}


def _for_postgres(sql: str) -> str:
    sql = _TABLE.sub(r"\1\2landed.\3", _LIST.sub(r"= ANY(:\1)", sql))
    sql = _EACH.sub(r"unnest(:\1::text[]) AS \1 (value)", sql)
    order: list[str] = []

    def numbered(match: re.Match[str]) -> str:
        if match[1] not in order:
            order.append(match[1])
        return f"${order.index(match[1]) + 1}"

    return _PARAMETER.sub(numbered, sql)


@cache
def joined(parts: tuple[tuple[str, bool], ...]) -> str:
    """Join parts of `postgres_write.sql` into one statement that says how much each wrote.

    Each part is named, and said to write many rows, from arrays, or one, from plain values; the
    parameters are those of the parts in their order.
    """
    counts = ", ".join(f"(SELECT count(*) FROM {name})" for name, _ in parts)
    return _for_postgres(f"{_written(parts)} SELECT {counts}")


@cache
def demanding(parts: tuple[tuple[str, bool], ...], counted: tuple[str, ...]) -> str:
    """Join the same into one that fails (22012) where a counted part wrote less than it should.

    So that COMMIT can go with it in one message: after a failure that rolls back. How much each
    counted part should write are further parameters.
    """
    held = " AND ".join(f"(SELECT count(*) FROM {name}) = :n_{name}::bigint" for name in counted)
    return _for_postgres(f"{_written(parts)} SELECT 1 / ({held or 'true'})::int")


def _written(parts: tuple[tuple[str, bool], ...]) -> str:
    return "WITH " + ", ".join(f"{name} AS ({_part(name, is_many)})" for name, is_many in parts)


def _part(name: str, is_many: bool) -> str:
    if is_many:
        return _PARTS[name]
    return _ROWS.sub(lambda rows: f"(VALUES ({rows[1].replace('[]', '')}))", _PARTS[name])


def _text(name: str) -> str:
    return files("landed.stores").joinpath(name).read_text("utf-8")


SHARED = Queries(**read(_text("queries.sql")))
POSTGRES = PostgresQueries(**read(_text("postgres.sql")))
_PARTS = split(_text("postgres_write.sql"))
