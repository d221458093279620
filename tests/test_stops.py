"""Every scenario of a stop ends as its description says, and so does each wrong design beside it.

The printed form of each is kept in `tests/golden/stops`; `python -m tests.test_stops` refreshes it.
"""

import json
import re
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from landed.cli import stops as shown
from landed.cli.main import landed
from landed.testing.stops import scenarios
from landed.testing.stops.designs import OURS
from landed.testing.stops.ending import End
from landed.testing.stops.scenario import StopScenario, run
from landed.testing.stops.scenarios import PAIRS, STOPS, STOPS_BY_NAME

GOLDEN = Path(__file__).parent / "golden" / "stops"
WRONG_ONES = [scenario for scenario in STOPS if scenario.line.startswith("WRONG: ")]


def _named(scenario: StopScenario) -> str:
    return scenario.name


@pytest.mark.req("S2-107")
@pytest.mark.parametrize("scenario", STOPS, ids=_named)
def test_it_ends_as_described_and_two_runs_are_the_same_in_every_line(
    scenario: StopScenario,
) -> None:
    ran = run(scenario)

    assert not list(ran.differences())
    assert ran.as_described is True
    assert run(scenario) == ran


@pytest.mark.parametrize("scenario", STOPS, ids=_named)
def test_how_it_is_printed_is_what_was_kept(scenario: StopScenario) -> None:
    kept = (GOLDEN / f"{scenario.name}.txt").read_text("utf-8")
    said = CliRunner().invoke(landed, ["demo", scenario.name])

    assert said.exit_code == 0
    assert _without_turns(said.output) == _without_turns(kept), (
        "python -m tests.test_stops refreshes it"
    )


def _without_turns(printed: str) -> str:
    """Leave out how many turns it took: asyncio may need others in another version of Python."""
    return re.sub(r"turn +\d+", "turn", printed)


def test_nothing_is_kept_of_a_scenario_that_is_gone() -> None:
    assert {path.stem for path in GOLDEN.glob("*.txt")} == set(STOPS_BY_NAME)


def test_each_failure_variant_has_a_wrong_design_with_ours_beside_it() -> None:
    assert list(PAIRS) == [f"F2-{n:02}" for n in range(1, 15)]
    assert {wrong.name for wrong, _ in PAIRS.values()} == {one.name for one in WRONG_ONES}
    for wrong, right in PAIRS.values():
        assert wrong.script is right.script
        assert (right.design, wrong.design != OURS) == (OURS, True)
    assert all(one.design == OURS for one in STOPS if one not in WRONG_ONES)
    assert len({one.line for one in STOPS}) == len(STOPS) == len(STOPS_BY_NAME)


@pytest.mark.parametrize("variant", PAIRS)
def test_ours_does_not_end_as_the_wrong_one_does_nor_that_one_as_ours(variant: str) -> None:
    wrong, right = PAIRS[variant]

    assert run(replace(right, end=wrong.end)).as_described is False
    assert run(replace(wrong, end=right.end)).as_described is False


def test_an_end_that_differs_in_anything_is_not_the_described_one() -> None:
    ran = run(STOPS_BY_NAME["stop-two-builds"])
    others: dict[str, Any] = {
        "records": ("U",),
        "shown": "U",
        "words": "Answer 5.",
        "calls": 5,
        "request": "failed",
        "running": ("sleep inf",),
        "endings": ("clean", "clean"),
        "log": None,
        "files": (),
        "refused": "400",
        "broken": ("the log is not the record",),
    }

    assert set(others) == {each.name for each in fields(End)}
    for name, other in others.items():
        changed = replace(ran, end=replace(ran.end, **{name: other}))
        assert changed.as_described is False
        assert [difference[0] for difference in changed.differences()] == [name]


@pytest.mark.req("S2-63")
def test_two_builds_end_to_the_letter() -> None:
    ran = run(STOPS_BY_NAME["stop-two-builds"])

    assert ran.end.endings == ("clean", "hard")
    (record,) = ran.end.records
    assert record == "U A[c1] R(c1) A(aborted) U A[c2] U A U A"
    assert ran.end.log == f"10 lines: {record}"
    assert len(record.split()) == 10
    said = [line.text for line in ran.lines if line.type == "assistant"]
    assert said[-2:] == ["Answer 3.", "Answer 4."]
    asked = [line.text for line in ran.lines if line.type == "model.asked"]
    assert asked[2] == "request 3: U A[c1] R(c1) U A[c2] R(c2 interrupted) U"


@pytest.mark.req("S2-59", "S2-60", "S2-61", "S2-65", "S2-66", "S2-67")
@pytest.mark.parametrize(
    ("name", "ending", "record", "request_status"),
    [
        ("stop-grace", "clean", "U A[c1] R(c1) A(aborted)", "answered"),
        ("stop-grace-too-short", "hard", "U A[c1]", "answered"),
        ("stop-bash-hard", "hard", "U A[c1]", "answered"),
        ("stop-guarded", "hard", "U A[c1]", "answered"),
        ("stop-power-cut", "PowerCut went through", "U A[c1]", "answered"),
        ("stop-hanging-model", "clean", "U A(aborted)", "abandoned"),
        ("stop-hanging-model-deaf", "hard", "U", "abandoned"),
    ],
)
def test_a_stop_ends_to_the_letter(
    name: str, ending: str, record: str, request_status: str
) -> None:
    end = run(STOPS_BY_NAME[name]).end

    assert (end.endings, end.records) == ((ending,), (record,))
    assert (end.request, end.calls, end.running) == (request_status, 1, ())


@pytest.mark.req("S2-51")
def test_a_command_is_over_within_five_turns_of_the_button() -> None:
    ran = run(STOPS_BY_NAME["stop-bash"])

    pressed, ended = (
        next(line.turn for line in ran.lines if line.type == type) for type in ("stop", "ended")
    )
    assert ended - pressed <= 5
    assert "Command cancelled" in next(
        line.text for line in ran.lines if line.type == "tool.result"
    )


@pytest.mark.req("S2-64")
def test_a_run_is_closed_after_each_number_of_its_events() -> None:
    ran = run(STOPS_BY_NAME["stop-anywhere"])

    # Events of a run of three turns, with a start and an end of each thing in it, and the run.
    assert [line.text.split(":")[0] for line in ran.lines] == [
        f"after {events} event(s)" for events in range(20)
    ]
    assert ran.end.broken == ()


# On the command line.


@pytest.mark.parametrize(
    "option",
    [
        *("--history", "--points", "--simulated", "--no-reconcile", "--lang=es"),
        *("--kill=before:send", "--seed=1", "--store=sqlite://:memory:"),
    ],
)
def test_what_makes_no_sense_for_a_stop_is_a_usage_error(option: str) -> None:
    said = CliRunner().invoke(landed, ["demo", "stop-batch", option])

    assert (said.exit_code, said.stdout) == (2, "")
    assert "stop-batch has neither world nor store" in said.stderr
    assert option.split("=")[0] in said.stderr or "the switches" in said.stderr


def test_json_is_one_object() -> None:
    said = CliRunner().invoke(landed, ["demo", "stop-unanswered-calls", "--json"])

    ran = json.loads(said.stdout)
    assert said.exit_code == 0
    assert list(ran) == ["scenario", "timeline", "end", "as_described"]
    assert (ran["scenario"], ran["as_described"]) == ("stop-unanswered-calls", True)
    assert [line["n"] for line in ran["timeline"]] == list(range(1, len(ran["timeline"]) + 1))
    assert all(list(line) == ["n", "turn", "type", "text"] for line in ran["timeline"])
    assert list(ran["end"]) == [each.name for each in fields(End)]
    assert ran["end"]["refused"] == "400 message 3: no result of c2 before it"


def test_a_run_that_ends_otherwise_has_status_1_and_says_in_what(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    right = STOPS_BY_NAME["stop-batch"]
    wrong = replace(right, end=replace(right.end, calls=2, words="Done."))
    monkeypatch.setitem(STOPS_BY_NAME, "stop-batch", wrong)
    monkeypatch.setattr(scenarios, "STOPS", (wrong, STOPS_BY_NAME["stop-bash"]))

    said = CliRunner().invoke(landed, ["demo", "stop-batch"])
    rows = shown.rows(shown.every_played())

    assert said.exit_code == 1
    assert "calls should be 2 and is 1" in said.stderr
    assert "words should be 'Done.' and is 'Operation aborted'" in said.stderr
    assert "-- record: U A[c1,c2,c3] R(c1) R(c2) R(c3) A(aborted)\n" in said.stdout
    assert [row[-1] for row in rows] == ["as described", "no", "yes"]


def test_its_timeline_has_no_times_to_be_drawn(tmp_path: Path) -> None:
    played = CliRunner().invoke(landed, ["demo", "stop-bash", "--json"])
    (tmp_path / "played.json").write_text(played.output)
    said = CliRunner().invoke(landed, ["timeline", f"{tmp_path}/played.json"])

    assert said.exit_code == 1
    assert "it counts turns of the event loop" in said.output


def test_it_takes_no_extra() -> None:
    code = (
        "import sys; sys.modules.update(httpx2=None, starlette=None)\n"
        "from landed.cli.main import main; main(['demo', 'stop-two-builds'])"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)

    assert (ended.returncode, ended.stderr) == (0, "")
    assert "-- last words: Answer 4.\n" in ended.stdout


def main() -> None:
    """Keep how each scenario is printed now."""
    GOLDEN.mkdir(parents=True, exist_ok=True)
    for scenario in STOPS:
        said = CliRunner().invoke(landed, ["demo", scenario.name])
        (GOLDEN / f"{scenario.name}.txt").write_text(said.output, "utf-8")


if __name__ == "__main__":
    main()
