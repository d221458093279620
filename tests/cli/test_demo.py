"""`landed demo`: what it prints, what it takes, and with which status it ends."""

import json
import re
import subprocess
import sys
from dataclasses import replace

import pytest
from click.testing import CliRunner, Result

from landed.cli.main import landed
from landed.testing import scenarios
from landed.testing.deploys import scenarios as deploys
from landed.testing.deploys.scenarios import DEPLOYS_BY_NAME
from landed.testing.doubts import scenarios as doubts
from landed.testing.doubts.scenario import DoubtScenario
from landed.testing.doubts.scenarios import DOUBTS_BY_NAME
from landed.testing.invoices import scenarios as invoices
from landed.testing.invoices.scenario import InvoiceScenario
from landed.testing.invoices.scenarios import INVOICES_BY_NAME
from landed.testing.refunds import scenarios as refunds
from landed.testing.refunds.scenarios import REFUNDS_BY_NAME
from landed.testing.scenario import Scenario
from landed.testing.scenarios import BY_NAME, SCENARIOS
from landed.testing.stops import scenarios as stops
from landed.testing.stops.scenario import StopScenario
from landed.testing.stops.scenarios import STOPS_BY_NAME

MEMBERS = ["scenario", "timeline", "world", "reconciled", "history", "message", "as_described"]
STOP_MEMBERS = ["scenario", "timeline", "end", "as_described"]
AFTER_SEND = "after:send:reserve_table"
EVERY: dict[str, Scenario | InvoiceScenario | DoubtScenario] = {
    **BY_NAME,
    **INVOICES_BY_NAME,
    **DOUBTS_BY_NAME,
    **DEPLOYS_BY_NAME,
    **REFUNDS_BY_NAME,
}


def demo(*arguments: str) -> Result:
    return CliRunner().invoke(landed, ["demo", *arguments])


def test_alone_it_lists_the_scenarios_with_a_line_each() -> None:
    said = demo()

    listed = dict(line.split(maxsplit=1) for line in said.output.splitlines())
    assert said.exit_code == 0
    named: dict[str, Scenario | InvoiceScenario | DoubtScenario | StopScenario]
    named = {**EVERY, **STOPS_BY_NAME}
    assert set(listed) == {"story", *named}
    assert len(named) == len(EVERY) + len(STOPS_BY_NAME)
    assert all(listed[name] == scenario.line for name, scenario in named.items())


def test_the_list_comes_as_an_object_too() -> None:
    listed = json.loads(demo("--json").stdout)

    assert [one["scenario"] for one in listed] == ["story", *EVERY, *STOPS_BY_NAME]
    assert all(one["line"] for one in listed)


def test_a_run_prints_its_numbered_timeline_and_what_there_is_at_the_end() -> None:
    lines = demo("reply-lost").output.splitlines()

    numbers = [int(line.split()[0]) for line in lines if not line.startswith("--")]
    assert numbers == list(range(1, len(numbers) + 1))
    assert lines[-4:] == [
        "-- restaurant holds: R1 Fri 19:00 x4",
        "-- texts holds: nothing",
        "-- reconciled: yes",
        "-- agent's last message: Booked R1 (Fri 19:00 for 4).",
    ]


def test_an_empty_restaurant_holds_nothing() -> None:
    assert "-- restaurant holds: nothing\n" in demo("refused").output


def test_history_adds_what_a_model_would_be_shown() -> None:
    plain = demo("reply-lost").output
    said = demo("reply-lost", "--history").output

    added = [line for line in said.splitlines() if line not in plain.splitlines()]
    assert added[0].startswith("-- history")
    assert added[1].split(maxsplit=1) == ["user", scenarios.BOOK]
    assert [line.split(maxsplit=1) for line in added[-2:]] == [
        ["tool", "Booked R1 (Fri 19:00 for 4)."],
        ["assistant", "Booked R1 (Fri 19:00 for 4)."],
    ]


@pytest.mark.parametrize("name", BY_NAME)
def test_json_is_one_object_of_the_agreed_shape(name: str) -> None:
    said = demo(name, "--json")

    ran = json.loads(said.stdout)
    assert said.exit_code == 0
    assert list(ran) == MEMBERS
    assert (ran["scenario"], ran["as_described"]) == (name, True)
    assert isinstance(ran["reconciled"], bool)
    assert [line["n"] for line in ran["timeline"]] == list(range(1, len(ran["timeline"]) + 1))
    for line in ran["timeline"]:
        assert set(line) - {"operation", "subject", "state"} == {"n", "at_s", "type", "text"}
    held = {service: [one["text"] for one in has] for service, has in ran["world"].items()}
    assert held["restaurant"] == list(BY_NAME[name].holds)
    assert held["texts"] == list(BY_NAME[name].texts)
    assert all(one["text"].startswith(one["id"]) for has in ran["world"].values() for one in has)
    for item in ran["history"]:
        assert set(item) == {"role", "text", "happened_at", "recorded_at"}


def test_a_kill_that_no_description_covers_is_neither_right_nor_wrong() -> None:
    said = demo("reply-lost", f"--kill={AFTER_SEND}", "--json")

    ran = json.loads(said.stdout)
    assert said.exit_code == 0
    assert ran["as_described"] is None
    assert [line["text"] for line in ran["timeline"] if line["type"] == "crash"] == [AFTER_SEND]


def test_a_kill_of_the_scenario_itself_is_covered_by_its_description() -> None:
    (own,) = BY_NAME["crash-after-commit"].kill

    assert json.loads(demo("crash-after-commit", f"--kill={own}", "--json").stdout)["as_described"]


def test_kills_are_of_the_first_process_the_second_and_so_on() -> None:
    kills = [AFTER_SEND, "before:lookup", "before:found:reserve_table"]

    said = demo("reply-lost", *(f"--kill={kill}" for kill in kills), "--json")

    timeline = json.loads(said.stdout)["timeline"]
    assert [line["text"] for line in timeline if line["type"] == "crash"] == kills
    assert sum(line["type"] == "restart" for line in timeline) == 3


def test_points_are_listed_and_each_can_be_given_back() -> None:
    points = demo("crash-after-commit", "--points").output.split()

    # The scenario's own kill is left out: these are all that a whole run passes.
    assert "before:acknowledged:reserve_table" in points
    assert len(set(points)) == len(points)
    for point in points:
        assert demo("crash-after-commit", f"--kill={point}").exit_code == 0


def test_points_with_a_kill_are_those_of_the_next_process() -> None:
    first = demo("reply-lost", "--points", "--json")
    second = demo("reply-lost", "--points", f"--kill={AFTER_SEND}", "--json")

    assert json.loads(first.stdout)["scenario"] == "reply-lost"
    assert AFTER_SEND in json.loads(first.stdout)["points"]
    assert AFTER_SEND not in json.loads(second.stdout)["points"]
    assert "before:lookup:reserve_table" in json.loads(second.stdout)["points"]


def test_a_seed_picks_the_schedule() -> None:
    told = {seed: demo("crash-after-commit", f"--seed={seed}").output for seed in range(1, 9)}

    assert len(set(told.values())) > 1
    assert demo("crash-after-commit", "--seed=3").output == told[3]


@pytest.mark.services
def test_all_is_a_table_of_every_scenario() -> None:
    said = demo("--all")

    heading, *rows = said.output.splitlines()
    assert said.exit_code == 0
    assert "what the far side holds" in heading
    cells = {row.split()[0]: re.split(" {2,}", row) for row in rows}
    assert list(cells) == [*EVERY, "scenario", *STOPS_BY_NAME]
    assert cells.pop("scenario")[-1] == "as described"
    assert all(described == "yes" for *_, described in cells.values())
    assert cells["stop-flag-only"][1:3] == ["U A[c1]", "STILL GOING"]
    assert cells["reply-lost-naive"][1:3] == ["R1 Fri 19:00 x4, R2 Fri 19:00 x4", "no"]
    assert cells["refused"][1:3] == ["nothing", "yes"]


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Of each family only the first: what is seen here is how they are shown."""
    names: list[str] = []
    for family, name in (
        (scenarios, "SCENARIOS"),
        (invoices, "INVOICES"),
        (doubts, "DOUBTS"),
        (deploys, "DEPLOYS"),
        (refunds, "REFUNDS"),
        (stops, "STOPS"),
    ):
        first = getattr(family, name)[:1]
        monkeypatch.setattr(family, name, first)
        names += [one.name for one in first]
    return names


def test_all_comes_as_a_list_of_objects_too(few: list[str]) -> None:
    ran = json.loads(demo("--all", "--json").stdout)

    assert [one["scenario"] for one in ran] == few
    assert all(list(one) == MEMBERS for one in ran[:-1])
    assert list(ran[-1]) == STOP_MEMBERS


def test_a_run_that_ends_otherwise_has_status_1_and_says_how_it_should_have(
    few: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = replace(BY_NAME["reply-lost"], holds=("R7 Sun 12:00 x2",))
    monkeypatch.setitem(BY_NAME, "reply-lost", wrong)
    monkeypatch.setattr(scenarios, "SCENARIOS", (wrong, BY_NAME["refused"]))

    alone, table = demo("reply-lost"), demo("--all")

    assert (alone.exit_code, table.exit_code) == (1, 1)
    assert "there should be restaurant: R7 Sun 12:00 x2" in alone.stderr
    assert "R1 Fri 19:00 x4" in alone.stdout
    assert [row.split()[-1] for row in table.output.splitlines()[1:3]] == ["no", "yes"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["reply-lots"], "did you mean reply-lost"),
        (["storey"], "did you mean story"),
        (["stop-btch"], "did you mean stop-batch"),
        (["zzz"], "`landed demo` lists them"),
        (["reply-lost", "--kill=after:nothing-known"], "is no point"),
        (["reply-lost", "--kill=after:closed_empty"], "never comes to after:closed_empty"),
        (["reply-lost", "--points", "--kill=before:close"], "never comes to before:close"),
        (["reply-lost", *["--kill=before:received"] * 4], "at most 3 processes"),
        (["reply-lost", "--seed=x"], "--seed"),
        (["--all", "reply-lost"], "NAME of one scenario"),
        (["--points"], "NAME of one scenario"),
        (["--history"], "NAME of one scenario"),
        (["--kill=before:send"], "NAME of one scenario"),
        (["story", "--kill=before:send"], "the story is real"),
        (["story", "--points"], "the story is real"),
        (["story", "--seed=1"], "the story is real"),
        (["reply-lost", "refused"], "unexpected extra argument"),
    ],
)
def test_what_makes_no_sense_is_a_usage_error(arguments: list[str], words: str) -> None:
    said = demo(*arguments)

    assert (said.exit_code, said.stdout) == (2, "")
    assert words in said.stderr


@pytest.mark.parametrize("package", ["httpx2", "starlette"])
@pytest.mark.parametrize("arguments", [[], ["reply-lost"], ["--all"], ["story"]])
def test_without_the_extra_it_says_which_one_to_install(package: str, arguments: list[str]) -> None:
    code = (
        f"import sys; sys.modules[{package!r}] = None\n"
        f"from landed.cli.main import main; main(['demo', *{arguments!r}])"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)

    assert (ended.returncode, ended.stdout) == (1, "")
    assert f"the demos need {package}" in ended.stderr
    assert "landed[demo]" in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_every_scenario_is_told_apart_by_its_name_and_its_line() -> None:
    assert len({scenario.name for scenario in SCENARIOS}) == len(SCENARIOS)
    assert len({scenario.line for scenario in SCENARIOS}) == len(SCENARIOS)
