"""The two schemas agree in tables, columns, keys and conditions, but for what is said here."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from landed.stores.driver import driver
from landed.stores.migrate import migrations
from landed.stores.sqlite import open_sqlite
from tests.stores.postgres.embedded import Server

pytestmark = [pytest.mark.anyio, pytest.mark.services]

TYPES = {"TEXT": "text", "INTEGER": "bigint", "REAL": "double precision", "BLOB": "bytea"}
# SQLite keeps the last epoch in a row; Postgres in a sequence.
ONLY_SQLITE = {"epoch"}


@pytest.fixture
async def sqlite(tmp_path: Path) -> "driver.Connection":
    path = str(tmp_path / "agent.db")
    await open_sqlite(path).close()
    return driver.connect(path)


async def test_tables_and_columns_agree(
    sqlite: "driver.Connection", url: str, opened: Callable, server: Server
) -> None:
    await opened()
    ours = {}
    for (table,) in sqlite.execute("SELECT name FROM sqlite_master WHERE type = 'table'"):
        if table not in ONLY_SQLITE and not table.startswith("sqlite_"):
            columns = sqlite.execute(f"SELECT * FROM pragma_table_info('{table}')").fetchall()
            ours[table] = [
                (name, TYPES[kind], bool(required), bool(key))
                for _, name, kind, required, _, key in columns
            ]
    theirs: dict[str, list] = {}
    found = server.execute(
        url,
        """
        SELECT c.table_name, c.column_name, c.data_type, c.is_nullable = 'NO',
            EXISTS (
                SELECT 1 FROM information_schema.key_column_usage AS k
                WHERE k.table_schema = 'landed' AND k.table_name = c.table_name
                    AND k.column_name = c.column_name
            )
        FROM information_schema.columns AS c JOIN information_schema.tables AS t
            USING (table_schema, table_name)
        WHERE c.table_schema = 'landed' AND t.table_type = 'BASE TABLE'
        ORDER BY c.table_name, c.ordinal_position
        """,
    )
    for table, *column in found:
        theirs.setdefault(table, []).append(tuple(column))
    assert theirs == ours
    assert set(theirs) == {"record", "journal", "name", "worker", "migration"}


async def test_the_view_has_the_same_columns_in_the_same_order(
    sqlite: "driver.Connection", url: str, opened: Callable, server: Server
) -> None:
    await opened()
    columns = sqlite.execute("SELECT name FROM pragma_table_info('loaded')").fetchall()
    found = server.execute(
        url,
        "SELECT column_name FROM information_schema.columns WHERE table_schema = 'landed'"
        " AND table_name = 'loaded' ORDER BY ordinal_position",
    )
    assert found == columns


def test_conditions_indexes_and_triggers_are_the_same() -> None:
    ours, theirs = (_said(database) for database in ("sqlite", "postgres"))
    assert theirs["CHECK"] == [one for one in ours["CHECK"] if one != "(one = 1)"]
    assert theirs["INDEX"] == ours["INDEX"]
    assert set(ours["TRIGGER"]) == set(theirs["TRIGGER"]) - {"record_whole", "journal_whole"}
    assert [one.name for one in migrations("postgres")] == [one.name for one in migrations()]
    assert [one.min_writer for one in migrations("postgres")] == [
        one.min_writer for one in migrations()
    ]


def _said(database: str) -> dict[str, list[str]]:
    text = "\n".join(one.sql for one in migrations(database)).replace("landed.", "")
    text = " ".join(text.split())
    return {
        "CHECK": re.findall(r"CHECK (\((?:[^()]|\([^()]*\))*\))", text),
        "INDEX": re.findall(r"CREATE INDEX ([^;]*);", text),
        "TRIGGER": re.findall(r"CREATE TRIGGER (\w+)", text),
    }


async def test_what_was_written_cannot_be_changed(
    url: str, opened: Callable, server: Server
) -> None:
    from landed.testing.store_checks.suite import inserted

    await inserted(await opened(), "op-1")
    for query, said in (
        ("UPDATE landed.record SET tenant = 'x'", "what a record is never changes"),
        ("DELETE FROM landed.record", "a record is never deleted"),
        ("TRUNCATE landed.record", "a record is never deleted"),
        ("UPDATE landed.journal SET state = 'x'", "a journal entry never changes"),
        ("UPDATE landed.journal SET body = 'x'", "can only be erased"),
        ("DELETE FROM landed.journal", "a journal entry is never deleted"),
        ("TRUNCATE landed.journal", "a journal entry is never deleted"),
    ):
        with pytest.raises(Exception, match=said):
            server.execute(url, query)
    server.execute(url, "UPDATE landed.journal SET body = NULL")
