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


@pytest.mark.req("S0-68", "S4-02", "S4-05", "S0-18")
@pytest.mark.fault("X03", "X51")
def test_one_table_and_a_true_message_after_a_kill_and_a_lost_reply() -> None:
    ended = told()

    lines = ended.stdout.splitlines()
    numbered = [line for line in lines if not line.startswith("--")]
    assert ended.returncode == 0, ended.stderr
    assert [int(line.split()[0]) for line in numbered] == list(range(1, len(numbered) + 1))
    assert lines[-3:] == [
        "-- agent's last message: Booked R1 (Fri 19:00 for 4).",
        "-- reconciled: yes",
        "-- restaurant holds: R1 Fri 19:00 x4",
    ]
    order = [
        first(lines, "tool.sent"),
        first(lines, "committed R1 Fri 19:00 x4"),
        first(lines, "killed by SIGKILL"),
        first(lines, "reserve_table is `sent`, no answer written down: in doubt"),
        first(lines, "restart        1 operation(s) in the log"),
        first(lines, "tool.unknown"),
        first(lines, "looked up"),
        first(lines, "exit status 0"),
    ]
    assert order == sorted(order)
    agents = re.findall(r"agent ([0-9]+) opens", ended.stdout)
    assert len(set(agents)) == 2
    assert f"agent {agents[0]} is killed by SIGKILL" in ended.stdout
    assert ended.stdout.count("committed") == 1


def test_it_comes_as_an_object_of_the_agreed_shape_too() -> None:
    ended = told("--json")

    ran = json.loads(ended.stdout)
    assert ended.returncode == 0
    assert (ran["scenario"], ran["reconciled"], ran["as_described"]) == ("story", True, True)
    assert [one["text"] for one in ran["world"]["restaurant"]] == ["R1 Fri 19:00 x4"]
    assert ran["history"][0]["role"] == "user"


def test_a_kill_that_did_not_happen_is_no_story(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(story, "POINT", "before:closed_empty:reserve_table")
    lines: list[Line] = []

    ran = story.tell(lines.append)

    assert lines == ran.timeline.lines
    assert ran.as_described is None
    assert ran.unwitnessed
