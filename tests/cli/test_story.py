"""`landed demo story`: real processes, a lost reply, a real SIGKILL, and one table at the end."""

import json
import re
import subprocess
import sys
from collections.abc import Sequence

import pytest

from landed.testing import story
from landed.testing.timeline import Line

LANDED = [sys.executable, "-c", "from landed.cli.main import main; main()"]


def told(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [*LANDED, "demo", "story", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=50)


def first(lines: Sequence[str], words: str) -> int:
    return next(n for n, line in enumerate(lines) if words in line)


@pytest.mark.req("S0-54", "S0-57", "S0-68", "S4-02", "S4-05", "S0-18")
@pytest.mark.fault("X03", "X06")
def test_one_table_and_a_true_message_after_a_change_of_mind_and_a_kill() -> None:
    ended = told()

    lines = ended.stdout.splitlines()
    numbered = [line for line in lines if not line.startswith("--")]
    assert ended.returncode == 0, ended.stderr
    assert [int(line.split()[0]) for line in numbered] == list(range(1, len(numbered) + 1))
    assert lines[-5:] == [
        "-- agent's last message: Booked R2 (Sat 19:00 for 4). Cancelled R1 (Fri 19:00)."
        " Texted group 'table for 4, Sat 19:00'.",
        "-- reconciled: yes",
        "-- the naive agent's restaurant holds: R1 Fri 19:00 x4, R2 Sat 19:00 x4",
        "-- restaurant holds: R2 Sat 19:00 x4",
        "-- texts holds: M1 group: table for 4, Sat 19:00",
    ]
    order = [
        first(lines, "committed R1 Fri 19:00 x4"),
        first(lines, "actually, Saturday"),
        first(lines, "committed R2 Sat 19:00 x4"),
        first(lines, "killed by SIGKILL"),
        first(lines, "is `sent`, no answer written down: in doubt"),
        first(lines, "restart        1 operation(s) in the log"),
        first(lines, "compensate     R1: the replacement holds"),
        first(lines, "cancelled R1"),
        first(lines, "texted group"),
        first(lines, "exit status 0"),
    ]
    assert order == sorted(order)
    agents = re.findall(r"agent ([0-9]+) opens", ended.stdout)
    assert len(set(agents)) == 2
    assert f"agent {agents[0]} is killed by SIGKILL" in ended.stdout
    assert ended.stdout.count("committed") == 2


@pytest.mark.services
def test_it_comes_as_an_object_of_the_agreed_shape_too() -> None:
    ended = told("--json")

    ran = json.loads(ended.stdout)
    assert ended.returncode == 0
    assert (ran["scenario"], ran["reconciled"], ran["as_described"]) == ("story", True, True)
    assert [one["text"] for one in ran["world"]["restaurant"]] == ["R2 Sat 19:00 x4"]
    assert [one["text"] for one in ran["naive"]["restaurant"]] == [
        "R1 Fri 19:00 x4",
        "R2 Sat 19:00 x4",
    ]
    assert ran["history"][0]["role"] == "user"


@pytest.mark.services
def test_a_kill_that_did_not_happen_is_no_story(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(story, "POINT", "before:closed_empty:reserve_table")
    lines: list[Line] = []

    told = story.tell(lines.append)

    assert lines == told.ran.timeline.lines
    assert told.ran.as_described is None
    assert told.ran.unwitnessed
    assert not told.as_described
