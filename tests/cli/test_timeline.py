"""`landed timeline`: the same lines and the same picture from a demo's JSON and from a store."""

import asyncio
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import landed
from landed.cli.main import landed as command_line
from landed.stores.sqlite import open_sqlite
from landed.testing.picture import document
from landed.testing.scenario import run
from landed.testing.scenarios import BY_NAME


def test_a_file_of_a_demo_is_printed_and_drawn(tmp_path: Path) -> None:
    ran = run(BY_NAME["reply-lost"])
    file = tmp_path / "ran.json"
    file.write_text(json.dumps(ran.plain()))
    printed = CliRunner().invoke(command_line, ["timeline", str(file)])
    assert printed.output.splitlines() == [str(line) for line in ran.timeline.lines]
    drawn = CliRunner().invoke(command_line, ["timeline", str(file), "--svg"])
    assert drawn.output == document(ran.timeline.lines, title="reply-lost")


def test_a_file_of_something_else_is_a_clear_error(tmp_path: Path) -> None:
    file = tmp_path / "other.json"
    file.write_text("[]")
    said = CliRunner().invoke(command_line, ["timeline", str(file)])
    assert (said.exit_code, "landed demo NAME --json" in said.output) == (1, True)


def test_a_session_of_a_store_is_told_from_its_journal(tmp_path: Path) -> None:
    @landed.tool(effect="reversible")
    async def book(day: str) -> dict[str, str]:
        if day == "Sun":
            raise landed.RefusedError("closed on Sundays")
        return {"id": "R1"}

    url = f"sqlite:///{tmp_path}/agent.db"

    async def act() -> None:
        async with landed.open(url, tools=[book]) as rt:
            heard = await rt.receive("book something", session="s1")
            for day in ("Fri", "Sun"):
                await rt.perform(book, {"day": day}, ask=heard.ask(day))

    asyncio.run(act())
    told = CliRunner().invoke(command_line, ["timeline", "s1", "--store", url])
    types = [line.split()[2] for line in told.output.splitlines()]
    assert types == ["input", "tool.sent", "tool.result", "tool.sent", "tool.result"]
    assert "closed on Sundays" in told.output


@pytest.mark.parametrize("session", ["nobody", "s1; DROP TABLE record"])
def test_a_session_that_there_is_not_is_a_clear_error(tmp_path: Path, session: str) -> None:
    path = tmp_path / "agent.db"
    asyncio.run(open_sqlite(str(path)).close())
    named = {"LANDED_STORE": f"sqlite:///{path}"}
    said = CliRunner().invoke(command_line, ["timeline", session], env=named)
    assert (said.exit_code, "has no session" in said.output) == (1, True)


def test_a_store_that_there_is_not_is_not_made(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/agent.db"
    said = CliRunner().invoke(command_line, ["timeline", "s1", "--store", url])
    assert (said.exit_code, "there is no store" in said.output) == (1, True)
    assert list(tmp_path.iterdir()) == []
