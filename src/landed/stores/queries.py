"""The queries of the stores by name, read from `queries.sql` in the dialect of each database.

SQL in a file, each query with a name and a sentence, is the way of procrastinate.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files

_HEADING = re.compile(r"^-- ([a-z_]+): .*$", re.MULTILINE)
_LIST = re.compile(r"\bIN :([a-z_]+)")
_TABLE = re.compile(r"\bEACH :([a-z_]+)")
_PARAMETER = re.compile(r":([a-z_]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Queries:
    """Every query of `queries.sql`; a name too few or too many is a `TypeError` at import."""

    head: str
    draw_epoch: str
    insert_record: str
    update_record: str
    insert_entry: str
    take_name: str
    free_name: str
    versions: str
    load: str
    open_records: str
    session_records: str
    waiting: str
    open_workers: str
    open_of: str
    recent: str
    open_counts: str
    waiting_counts: str
    oldest_open: str
    journal_page: str
    journal_of: str
    holders: str
    owners: str
    tenants_left: str
    claimable: str
    claim_records: str
    idle_workers: str
    register_worker: str
    disown: str
    renew_worker: str
    remove_worker: str
    remove_workers: str
    sessions: str
    begin_with_erasure: str
    let_bodies_go: str


def many(values: Iterable[str]) -> str:
    """Return a list as SQLite is handed it: the text of a JSON array."""
    return json.dumps(list(values))


def read(text: str) -> dict[str, str]:
    """Split a file of queries into name → SQL in the dialect of SQLite.

    A parameter becomes `?1`, `?2` in the order of first appearance; one after IN or EACH
    becomes the values of a JSON array (see `many`).
    """
    return {name: _for_sqlite(sql) for name, sql in split(text).items()}


def split(text: str) -> dict[str, str]:
    """Split a file of queries into name → SQL as it is written there, without comments."""
    parts = _HEADING.split(text)
    return {name: _bare(sql) for name, sql in zip(parts[1::2], parts[2::2], strict=True)}


def _bare(sql: str) -> str:
    return "\n".join(line for line in sql.splitlines() if not line.startswith("--")).strip()


def _for_sqlite(sql: str) -> str:
    sql = _LIST.sub(r"IN (SELECT value FROM json_each(:\1))", sql)
    sql = _TABLE.sub(r"json_each(:\1) AS \1", sql)
    order: list[str] = []

    def numbered(match: re.Match[str]) -> str:
        if match[1] not in order:
            order.append(match[1])
        return f"?{order.index(match[1]) + 1}"

    return _PARAMETER.sub(numbered, sql)


SQLITE = Queries(**read(files("landed.stores").joinpath("queries.sql").read_text("utf-8")))
