"""`landed erase`, `landed archive` and `landed backup` as a person types them."""

import asyncio
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import landed as library
from landed.cli.main import landed
from landed.tools.function import tool

SECRET = "4111-1111"


@tool(effect="reversible")
async def note(text: str) -> dict[str, str]:
    """Keep a note."""
    return {"id": f"noted {text}"}


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A store with one thing that is over."""
    place = f"sqlite:///{tmp_path / 'agent.db'}"

    async def fill() -> None:
        async with library.open(place, tools=[note]) as rt:
            heard = await rt.receive(f"note {SECRET}", principal="ana")
            await rt.perform("note", {"text": SECRET}, ask=heard.ask("c"))

    asyncio.run(fill())
    return place


def run(*words: str) -> Result:
    return CliRunner().invoke(landed, list(words))


def line(*words: str, status: int = 0) -> str:
    ran = run(*words)
    assert ran.exit_code == status, ran.output
    return ran.output


def test_the_details_of_a_person_are_erased(url: str, tmp_path: Path) -> None:
    asked = ("--principal", "ana", "--why", "she asked", "--as", "bob")
    assert line("erase", "--store", url, *asked) == "archived 0, erased 2, not at rest 0\n"
    assert SECRET.encode() not in (tmp_path / "agent.db").read_bytes()
    assert line("erase", "--store", url, *asked) == "archived 0, erased 0, not at rest 0\n"


def test_what_is_erased_has_to_be_named_and_why_and_by_whom(url: str) -> None:
    why = ("--why", "x", "--as", "bob")
    assert "name what" in line("erase", "--store", url, *why, status=2)
    assert "--why" in line("erase", "--store", url, "--session", "main", status=2)
    assert "--as" in line("erase", "--store", url, "--session", "s", "--why", "x", status=2)
    assert "no age" in line("erase", "--store", url, "--older-than", "soon", *why, status=2)
    long = ("--why", "x" * 501, "--as", "bob")
    assert "at most 500" in line("erase", "--store", url, "--session", "s", *long, status=1)


def test_nothing_younger_is_erased(url: str) -> None:
    words = ("--older-than", "12h", "--why", "x", "--as", "bob", "--json")
    assert json.loads(line("erase", "--store", url, *words))["erased"] == 0


def test_an_archive_is_written_verified_and_only_then_erased(url: str, tmp_path: Path) -> None:
    to = str(tmp_path / "archive")
    aged = ("--older-than", "0d", "--to", to)
    assert line("archive", "--store", url, *aged).startswith("archived 4, erased 0")
    assert line("archive", "--store", url, "--verify", to) == "it agrees with the store\n"
    assert "--as" in line("archive", "--store", url, *aged, "--erase", status=2)
    said = line("archive", "--store", url, *aged, "--erase", "--as", "cron")
    assert said.startswith("archived 0, erased 2")
    assert line("archive", "--store", url, "--verify", to) == "it agrees with the store\n"
    assert json.loads(line("archive", "--store", url, "--verify", to, "--json"))["ok"]


def test_an_archive_that_differs_ends_in_one(url: str, tmp_path: Path) -> None:
    to = tmp_path / "archive"
    assert "there is no archive" in line("archive", "--store", url, "--verify", str(to), status=1)
    assert "give --older-than" in line("archive", "--store", url, "--to", str(to), status=2)
    line("archive", "--store", url, "--older-than", "0d", "--to", str(to))
    other = f"sqlite:///{tmp_path / 'other.db'}"
    asyncio.run(empty(other))
    ran = line("archive", "--store", other, "--verify", str(to), status=1)
    assert "the store has no entry" in ran


async def empty(place: str) -> None:
    async with library.open(place, tools=[note]):
        pass


def test_a_backup_is_checked_and_replaces_nothing(url: str, tmp_path: Path) -> None:
    copy = str(tmp_path / "copy.db")
    said = line("backup", "--store", url, "--to", copy)
    assert said.endswith("4 records, 6 entries of one chain, all checked\n")
    assert "is there already" in line("backup", "--store", url, "--to", copy, status=1)
    again = json.loads(line("backup", "--store", url, "--to", f"{copy}2", "--json"))
    assert again["records"] == 4


def test_postgres_has_means_of_its_own() -> None:
    words = ("backup", "--store", "postgresql://nobody@nowhere/none", "--to", "x")
    assert "pg_dump" in line(*words, status=1)
