"""`landed doctor` reads back what a store promises, and says in one line what is wrong with one."""

import asyncio
import json
import re
import sqlite3
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import landed
from landed.cli.doctor import examine
from landed.cli.main import landed as program
from landed.core.store import Fact
from landed.stores.locks import FileLock
from landed.stores.sqlite import open_sqlite

CHECKED = {
    *(
        "python",
        "store",
        "sqlite",
        "journal_mode",
        "synchronous",
        "file_system",
        "schema",
        "size",
        "wal_bytes",
        "reserve",
        "lock",
        "open",
        "waiting",
        "oldest_unknown",
        "incarnation",
        "mark",
    ),
}


def doctor(*arguments: str) -> Result:
    return CliRunner().invoke(program, ["doctor", *arguments])


def url_of(path: Path) -> str:
    return f"sqlite:///{path}"


def make(path: Path) -> None:
    asyncio.run(_opened_and_closed(path))


async def _opened_and_closed(path: Path) -> None:
    await open_sqlite(str(path)).close()


def test_without_a_store_it_checks_this_machine() -> None:
    said = doctor()

    rows = [line.split(maxsplit=2) for line in said.output.splitlines()]
    assert said.exit_code == 0
    assert {name for _, name, _ in rows} == CHECKED
    assert {verdict for verdict, _, _ in rows} == {"ok"}


def test_a_store_that_is_there_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    make(path)

    said = doctor("--store", url_of(path), "--json")

    found = json.loads(said.stdout)
    values = {fact["name"]: fact["value"] for fact in found["facts"]}
    assert said.exit_code == 0
    assert found["ok"] is True
    assert set(values) == CHECKED
    assert values["store"] == url_of(path)
    assert (values["journal_mode"], values["synchronous"]) == ("wal", "2")
    assert all(set(fact) == {"name", "value", "ok", "advice", "numbers"} for fact in found["facts"])


async def _leave_in_doubt(path: Path) -> None:
    @landed.tool(effect="irreversible")
    async def pay() -> None:
        raise TimeoutError

    async with landed.open(url_of(path), tools=[pay]) as rt:
        await rt.perform(pay, patience_s=0.0)


@pytest.mark.req("S4-50")
def test_what_is_in_doubt_has_an_age_and_an_owner(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    asyncio.run(_leave_in_doubt(path))

    said = doctor("--store", url_of(path), "--json")

    facts = {fact["name"]: fact for fact in json.loads(said.stdout)["facts"]}
    assert facts["open"]["numbers"] == {"operation/unknown": 1.0}
    assert facts["waiting"]["value"] == "nothing"
    oldest = facts["oldest_unknown"]["value"]
    assert re.fullmatch(r"\d+ s: op-\w+ \(pay\), in the hands of .*", oldest)


def test_a_store_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    said = doctor("--store", url_of(tmp_path / "agent.db"))

    assert said.exit_code == 0
    assert "not there yet" in said.output
    assert list(tmp_path.iterdir()) == []


def test_a_store_in_memory_has_no_lock_and_no_disk() -> None:
    said = doctor("--store", "sqlite://:memory:", "--json")

    assert said.exit_code == 0
    assert {fact["name"] for fact in json.loads(said.stdout)["facts"]} == CHECKED - {
        "lock",
        "size",
        "wal_bytes",
        "reserve",
    }


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://ann:s3cret@db:5432/agent", "postgresql://ann:***@db:5432/agent"),
        (
            "postgresql://db/agent?user=ann&password=s3cret",
            "postgresql://db/agent?user=ann&password=***",
        ),
        ("postgresql://ann@db/agent", "postgresql://ann@db/agent"),
    ],
)
def test_a_password_is_not_printed(monkeypatch: pytest.MonkeyPatch, url: str, shown: str) -> None:
    async def nothing(url: str) -> tuple[Fact, ...]:
        return ()

    monkeypatch.setattr("landed.cli.doctor._facts", nothing)
    (named,) = [fact for fact in examine(url) if fact.name == "store"]
    assert named.value.startswith(shown)
    assert "s3cret" not in named.value


def _garbage(path: Path) -> None:
    path.write_text("this is no database, whatever its name says\n" * 100)


def _damaged(path: Path) -> None:
    make(path)
    whole = path.read_bytes()
    path.write_bytes(whole[:100] + b"\xff" * (len(whole) - 100))


def _newer(path: Path) -> None:
    make(path)
    with sqlite3.connect(path) as connection:
        connection.execute("INSERT INTO migration VALUES (9999, 'later', 'x', 9999)")
    connection.close()


def _anothers(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE theirs (id)")
    connection.close()


def _directory(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (_garbage, "is not a SQLite database"),
        (_damaged, "is damaged"),
        (_newer, "upgrade landed"),
        (_anothers, "another program's tables"),
        (_directory, "cannot be opened"),
    ],
)
def test_a_store_that_cannot_be_opened_is_one_line(tmp_path: Path, spoil, words: str) -> None:
    path = tmp_path / "agent.db"
    spoil(path)

    said = doctor("--store", url_of(path))

    assert (said.exit_code, said.stdout) == (1, "")
    assert words in said.stderr
    assert said.stderr.count("\n") == 1
    assert isinstance(said.exception, SystemExit)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("postgresql:nonsense", "names no store that is known"),
        ("agent.db", "names no store that is known"),
        ("sqlite:///no-such-directory/agent.db", "its directory must exist"),
    ],
)
def test_a_url_that_names_no_store_is_one_line(url: str, words: str) -> None:
    said = doctor("--store", url)

    assert (said.exit_code, said.stdout) == (1, "")
    assert words in said.stderr
    assert said.stderr.count("\n") == 1


def test_a_directory_that_cannot_be_written_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**_: object) -> None:
        raise PermissionError("Permission denied")

    monkeypatch.setattr("landed.cli.doctor.tempfile.TemporaryDirectory", refuse)
    said = doctor("--store", url_of(tmp_path / "agent.db"))

    assert said.exit_code == 1
    assert "cannot be written" in said.stderr


def test_a_sqlite_that_can_damage_the_file_is_advice_and_status_1(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("landed.stores.facts.has_wal_reset_bug", lambda version: True)
    said = doctor()

    (line,) = [line for line in said.output.splitlines() if line.startswith("advice")]
    assert said.exit_code == 1
    assert line.endswith("install pysqlite3")


def test_a_disk_whose_locks_keep_nobody_apart_is_advice_and_status_1(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(FileLock, "try_lock", lambda lock: True)
    said = doctor("--json")

    found = json.loads(said.stdout)
    assert said.exit_code == 1
    assert found["ok"] is False
    assert [fact["name"] for fact in found["facts"] if not fact["ok"]] == ["lock"]
