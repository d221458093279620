"""Numbered changes of the schema, each applied once and known by its checksum.

A database that a newer `landed` has changed is refused, unless each of those changes says (in its
`min_writer`) that writers of our age still write it correctly.
"""

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files

from landed.core.errors import NewerSchemaError, StoreError
from landed.stores.driver import Connection, driver

_FILE = re.compile(r"(\d{4})_([a-z0-9_]+)\.sql")
_MIN_WRITER = re.compile(r"^-- min_writer: (\d+)$", re.MULTILINE)

_LEDGER = """
CREATE TABLE IF NOT EXISTS migration (
    version INTEGER NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    checksum TEXT NOT NULL,
    min_writer INTEGER NOT NULL
) STRICT
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """One change of the schema; `min_writer` is the oldest schema version that may still write."""

    version: int
    name: str
    sql: str
    min_writer: int

    @property
    def checksum(self) -> str:
        """The fingerprint of the SQL, whatever the line ends of the checkout are."""
        return hashlib.sha256("\n".join(self.sql.splitlines()).encode()).hexdigest()


def migrations(database: str = "sqlite") -> tuple[Migration, ...]:
    """Return the migrations that this `landed` knows, in order."""
    found: list[Migration] = []
    for file in files("landed.stores").joinpath("schema", database).iterdir():
        if match := _FILE.fullmatch(file.name):
            found.append(read(int(match[1]), match[2], file.read_text("utf-8")))
    return tuple(sorted(found, key=lambda migration: migration.version))


def read(version: int, name: str, sql: str) -> Migration:
    """Return the migration in a file; raises `StoreError` when it does not say who may write."""
    writer = _MIN_WRITER.search(sql)
    if writer is None:
        raise StoreError(f"migration {version} ({name}) names no min_writer")
    return Migration(version=version, name=name, sql=sql, min_writer=int(writer[1]))


def migrate(connection: Connection, known: Sequence[Migration], *, path: str) -> int:
    """Bring the schema up to date, whole or not at all, and return its version.

    The caller holds a write transaction, and rolls it back when this raises: `StoreError` when the
    schema is newer than we can write, or a migration was edited after it was applied.
    """
    connection.execute(_LEDGER)
    applied = {
        version: (name, checksum, min_writer)
        for version, name, checksum, min_writer in connection.execute(
            "SELECT version, name, checksum, min_writer FROM migration"
        )
    }
    newest = known[-1].version
    for version, (_, _, min_writer) in applied.items():
        if version > newest:
            require_writer(min_writer, newest=newest, path=path)
    for migration in known:
        if migration.version not in applied:
            _apply(connection, migration)
        elif applied[migration.version][1] != migration.checksum:
            raise StoreError(
                f"migration {migration.version} ({migration.name}) is not the one that was applied "
                f"to {path}; install the release of landed that made the file"
            )
    return max(newest, *applied) if applied else newest


def require_writer(min_writer: int, *, newest: int, path: str) -> None:
    """Raise `NewerSchemaError` when only writers of a newer schema than ours may write."""
    if min_writer > newest:
        raise NewerSchemaError(
            f"{path} has a newer schema: it asks for writers of version {min_writer}, this landed "
            f"writes version {newest}; upgrade landed. Nothing was changed"
        )


def _apply(connection: Connection, migration: Migration) -> None:
    for statement in _statements(migration.sql):
        connection.execute(statement)
    connection.execute(
        "INSERT INTO migration (version, name, checksum, min_writer) VALUES (?, ?, ?, ?)",
        (migration.version, migration.name, migration.checksum, migration.min_writer),
    )


def _statements(sql: str) -> Iterator[str]:
    # Not `executescript`, which commits first.
    statement = ""
    for line in sql.splitlines(keepends=True):
        statement += line
        if driver.complete_statement(statement):
            yield statement
            statement = ""
    if statement.strip():
        yield statement  # A comment at the end; anything else is an error of SQLite's.
