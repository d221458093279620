"""`landed timeline`: the same lines and the same picture from a demo's JSON and from a store."""

import asyncio
import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from click.testing import CliRunner

import landed
from landed.cli.main import landed as command_line
from landed.cli.picture import spans, svg
from landed.stores.sqlite import open_sqlite
from landed.testing.scenario import run
from landed.testing.scenarios import BY_NAME
from landed.testing.timeline import Line

SVG = "{http://www.w3.org/2000/svg}"


def lines_of(name: str) -> list[Line]:
    return run(BY_NAME[name]).timeline.lines


def test_the_picture_is_a_document_with_a_lane_for_each_who_acts() -> None:
    picture = ElementTree.fromstring(svg(lines_of("revise-in-flight"), title="<a & b>"))
    texts = ["".join(text.itertext()) for text in picture.iter(f"{SVG}text")]
    assert {"user", "agent", "restaurant", "texts", "<a & b>"} <= set(texts)


def test_what_was_in_doubt_is_a_bar_from_the_doubt_to_its_end() -> None:
    lines = lines_of("revise-in-flight")
    (doubt,) = [span for span in spans(lines) if span.kind == "doubt"]
    assert lines[doubt.first].type == "tool.unknown"
    assert lines[doubt.last].text == "s1:op-a2: R1; key closed"


def test_what_was_owed_is_a_bar_from_its_record_to_the_undo() -> None:
    lines = lines_of("revise-in-flight")
    (owed,) = [span for span in spans(lines) if span.kind == "owed"]
    assert "owed if it landed" in lines[owed.first].text
    assert lines[owed.last].text == "T2 R1: done"


def test_a_look_that_found_nothing_does_not_end_the_doubt() -> None:
    lines = lines_of("refused-resend")
    (doubt,) = [span for span in spans(lines) if span.kind == "doubt"]
    assert lines[doubt.last].text.endswith("key closed")


def test_a_file_of_a_demo_is_printed_and_drawn(tmp_path: Path) -> None:
    ran = run(BY_NAME["reply-lost"])
    file = tmp_path / "ran.json"
    file.write_text(json.dumps(ran.plain()))
    printed = CliRunner().invoke(command_line, ["timeline", str(file)])
    assert printed.output.splitlines() == [str(line) for line in ran.timeline.lines]
    drawn = CliRunner().invoke(command_line, ["timeline", str(file), "--svg"])
    assert drawn.output == svg(ran.timeline.lines, title="reply-lost")


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
