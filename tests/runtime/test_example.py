"""The example that a newcomer reads first: it runs, says what it should, and stays short."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "book_a_table.py"
LINES_MAX = 60
BOOKED = "Friday, a table for 4"


def run_in(directory: Path) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLE)],
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
        timeout=30.0,
        check=False,
    )


@pytest.mark.req("S4-02")
def test_it_books_one_table_although_the_reply_is_lost(tmp_path: Path) -> None:
    ended = run_in(tmp_path)
    assert (ended.returncode, ended.stderr) == (0, "")
    booked, told, held = ended.stdout.splitlines()
    assert booked == f"booked: {BOOKED}"
    assert BOOKED in told
    assert held == f"the restaurant holds: ['{BOOKED}']"


@pytest.mark.req("S0-32")
def test_run_again_the_same_message_books_nothing_more(tmp_path: Path) -> None:
    """The delivery and the call are those of the first run, so is the operation."""
    first, second = run_in(tmp_path), run_in(tmp_path)
    assert second.stdout.splitlines()[:2] == first.stdout.splitlines()[:2]
    assert second.stdout.splitlines()[2] == "the restaurant holds: []"


def test_it_is_read_in_two_minutes() -> None:
    assert len(EXAMPLE.read_text("utf-8").splitlines()) <= LINES_MAX
