"""The pages that are drawn from core's tables are current, and leave nothing of them out."""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from re import sub
from typing import Any

import pytest

from landed.core.approval import APPROVAL_MOVES, ApprovalEvent, ApprovalState
from landed.core.operation import MOVES, STATES, Happened
from landed.core.plan import PLAN_MOVES, PlanEvent, PlanState
from landed.core.question import QUESTION_MOVES, QuestionEvent, QuestionState
from landed.core.undo import RELEASE_MOVES, ReleaseEvent, ReleaseState
from landed.testing import draw

CHECKOUT = Path(__file__).parents[2]

# page, moves ▸ the states and events that it explains.
MACHINES: list[tuple[str, Mapping[Any, Mapping[Any, Any]], Mapping[Any, Any], Mapping[Any, str]]]
MACHINES = [
    ("docs/operation.md", MOVES, STATES, draw.EVENTS),
    ("docs/plan.md", PLAN_MOVES, draw.PLAN_STATES, draw.PLAN_EVENTS),
    ("docs/plan.md", APPROVAL_MOVES, draw.APPROVAL_STATES, draw.APPROVAL_EVENTS),
    ("docs/plan.md", RELEASE_MOVES, draw.RELEASE_STATES, draw.RELEASE_EVENTS),
    ("docs/plan.md", QUESTION_MOVES, draw.QUESTION_STATES, draw.QUESTION_EVENTS),
]


@pytest.mark.parametrize("name", draw.PAGES)
def test_a_page_is_what_the_tables_say(name):
    drawn = (CHECKOUT / name).read_text(encoding="utf-8")
    assert drawn == draw.PAGES[name](), f"{name} is not what the tables say: run {draw.COMMAND}"


def test_a_picture_begins_with_what_made_the_record_where_that_is_no_move():
    page = draw.plan_page().splitlines()
    begins = [line for line in page if line.startswith("    [*] --> ")]
    assert begins == [
        "    [*] --> drafted",
        "    [*] --> open: offered",
        "    [*] --> owed_if_landed: owed",
        "    [*] --> open: asked",
    ]


@pytest.mark.parametrize(("name", "moves", "states", "events"), MACHINES)
def test_a_page_shows_every_state_and_every_move(name, moves, states, events):
    lines = draw.PAGES[name]().splitlines()
    for state in states:
        assert any(line.startswith(f"| `{state}` |") for line in lines)
    for before, ways in moves.items():
        for event, after in ways.items():
            words = sub(r"^(approval|plan|release)_", "", event).replace("_", " ")
            shown = [line for line in lines if line.startswith(f"    {before} --> {after}: ")]
            if before is not after:
                assert words in {w for line in shown for w in line.split(": ", 1)[1].split(", ")}
            row = next(
                line for line in lines if line.startswith(f"| `{event}` | {events[event]} |")
            )
            assert (f"{before} stays" if before is after else f"{before} ▸ {after}") in row


KINDS: list[tuple[Mapping[Any, str], type[StrEnum]]] = [
    (draw.EVENTS, Happened),
    (draw.PLAN_STATES, PlanState),
    (draw.PLAN_EVENTS, PlanEvent),
    (draw.APPROVAL_STATES, ApprovalState),
    (draw.APPROVAL_EVENTS, ApprovalEvent),
    (draw.RELEASE_STATES, ReleaseState),
    (draw.RELEASE_EVENTS, ReleaseEvent),
    (draw.QUESTION_STATES, QuestionState),
    (draw.QUESTION_EVENTS, QuestionEvent),
]


@pytest.mark.parametrize(("told", "kind"), KINDS, ids=[kind.__name__ for _, kind in KINDS])
def test_everything_is_explained_once(told, kind):
    assert list(told) == list(kind)
    assert len(set(told.values())) == len(told)


def test_the_pages_are_written_where_one_asks(tmp_path, monkeypatch):
    (tmp_path / "docs").mkdir()
    draw.main([str(tmp_path)])
    written = {f"docs/{path.name}": path.read_text("utf-8") for path in tmp_path.rglob("*.md")}
    assert written == {name: page() for name, page in draw.PAGES.items()}
    for name in draw.PAGES:
        (tmp_path / name).unlink()
    monkeypatch.chdir(tmp_path)
    draw.main([])
    assert (tmp_path / "docs/plan.md").read_text("utf-8") == draw.plan_page()
