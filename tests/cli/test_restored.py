"""`landed restored` writes down what nobody could notice; `landed doctor` says how it stands."""

import asyncio
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from landed.cli.main import landed
from landed.core.incarnation import Incarnation, Mark
from landed.runtime.lookout import current
from landed.stores.marks import FileMarks
from landed.stores.sqlite import open_sqlite
from tests.cli.test_doctor import make, url_of

pytestmark = pytest.mark.fault("X38")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    make(tmp_path / "agent.db")
    return tmp_path / "agent.db"


def run(command: str, store: Path, *arguments: str) -> Result:
    return CliRunner().invoke(landed, [command, "--store", url_of(store), *arguments])


def incarnation(store: Path) -> Incarnation:
    async def read() -> Incarnation:
        opened = open_sqlite(str(store))
        try:
            return await current(opened)
        finally:
            await opened.close()

    return asyncio.run(read())


def fact(store: Path, name: str) -> dict[str, object]:
    said = json.loads(run("doctor", store, "--json").stdout)
    return next(each for each in said["facts"] if each["name"] == name)


def test_a_person_says_that_it_was_restored_and_that_it_is_found_out(store: Path) -> None:
    at = "2026-11-30T12:00:00+01:00"
    said = run("restored", store, "--as", "ann", "--note", "disk died", "--backup-at", at)
    assert said.output == "restore 1 is reconciling: disk died (ann)\n"
    held = incarnation(store)
    assert (held.by, held.why, held.missed, held.known_at) == ("ann", "disk died", None, 1796036400)
    assert not fact(store, "incarnation")["ok"]

    said = run("restored", store, "--as", "ann", "--done")
    assert said.output.startswith("restore 1 is reconciled: somebody said")
    assert fact(store, "incarnation")["ok"]
    assert fact(store, "incarnation")["value"] == "restored 1 times, reconciled"


def test_there_is_nothing_to_end_where_nothing_was_restored(store: Path) -> None:
    said = run("restored", store, "--as", "ann", "--done")
    assert (said.exit_code, "being reconciled" in said.output) == (1, True)


@pytest.mark.fault("X17")
@pytest.mark.parametrize("at", ["2026-11-30T12:00:00", "noon"])
def test_a_time_without_a_zone_is_refused(store: Path, at: str) -> None:
    said = run("restored", store, "--as", "ann", "--backup-at", at)
    assert said.exit_code == 2
    assert incarnation(store).number == 0


def test_a_store_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    assert run("restored", tmp_path / "no.db", "--as", "ann").exit_code == 1
    assert list(tmp_path.iterdir()) == []


def test_doctor_says_whether_the_journal_holds_the_marked_entry(store: Path) -> None:
    assert "not written yet" in str(fact(store, "mark")["value"])
    marks = FileMarks(store.with_name("agent.db.mark"))
    asyncio.run(marks.write(Mark(position=7, hash="h")))
    told = fact(store, "mark")
    assert (told["ok"], str(told["value"]).startswith("entry 7, ")) == (False, True)
    assert "takes the store for restored" in str(told["advice"])
    marks.path.write_text("")
    assert "cannot be read" in str(fact(store, "mark")["advice"])
