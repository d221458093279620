"""The main job on Postgres: real processes, HTTP and a real SIGKILL; the lease says who is dead."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.services, pytest.mark.req("K29")]

ENDS = [
    "-- agent's last message: Booked R2 (Sat 19:00 for 4). Cancelled R1 (Fri 19:00)."
    " Texted group 'table for 4, Sat 19:00'.",
    "-- reconciled: yes",
    "-- the naive agent's restaurant holds: R1 Fri 19:00 x4, R2 Sat 19:00 x4",
    "-- restaurant holds: R2 Sat 19:00 x4",
    "-- texts holds: M1 group: table for 4, Sat 19:00",
]


def told(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [str(Path(sys.executable).with_name("landed")), "demo", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.timeout(300)  # Cut short, its agents would live on and work on the next test's store.
def test_it_ends_with_one_table_also_where_it_was_told_before(url: str) -> None:
    for _ in range(2):
        ended = told("story", "--store", url)
        lines = ended.stdout.splitlines()
        assert ended.returncode == 0, ended.stderr
        assert lines[-5:] == ENDS
        assert any("killed by SIGKILL" in line for line in lines)
