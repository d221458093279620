"""The switches of `landed demo`: what a reader can turn off, and what happens then."""

import json

import pytest
from click.testing import CliRunner, Result

from landed.cli.main import landed

TWO = ["R1 Fri 19:00 x4", "R2 Sat 19:00 x4"]
KILL = "--kill=after:send:reserve_table"


def demo(*arguments: str) -> Result:
    return CliRunner().invoke(landed, ["demo", "revise-in-flight", *arguments])


@pytest.mark.req("S0-67", "F0-01", "F0-02", "F0-07", "F0-08", "F0-09")
@pytest.mark.parametrize(
    ("switches", "held"),
    [
        ([], ["R2 Sat 19:00 x4"]),
        (["--no-reconcile"], TWO),
        (["--delayed"], ["R1 Sat 19:00 x4"]),
        (["--delayed", "--no-fencing"], ["R1 Sat 19:00 x4", "R2 Fri 19:00 x4"]),
        (["--full=Sat"], ["R1 Fri 19:00 x4"]),
        (["--full=Sat", "--order=release-first"], []),
        (["--fee=20"], TWO),
        (["--key=step"], []),
        (["--key=step", "--strict-keys"], ["R1 Fri 19:00 x4"]),
        (["--lose-ops", KILL], [*TWO, "R3 Sat 19:00 x4"]),
    ],
    ids=" ".join,
)
def test_a_combination_ends_as_tabulated(switches: list[str], held: list[str]) -> None:
    ended = demo(*switches, "--json")
    ran = json.loads(ended.output)
    assert ended.exit_code == 0
    assert ran["as_described"] is True
    assert [one["text"] for one in ran["world"]["restaurant"]] == held


def test_a_combination_of_which_nothing_is_said_is_described_as_null() -> None:
    ended = demo("--delayed", "--fee=20", "--json")
    assert (ended.exit_code, json.loads(ended.output)["as_described"]) == (0, None)


@pytest.mark.parametrize("switch", ["--key=colour", "--order=backwards", "--fee=-1", "--full=Xyz"])
def test_a_switch_that_makes_no_sense_is_a_usage_error(switch: str) -> None:
    assert demo(switch).exit_code == 2


def test_switches_go_with_one_scenario() -> None:
    ended = CliRunner().invoke(landed, ["demo", "--all", "--delayed"])
    assert (ended.exit_code, "NAME of one scenario" in ended.output) == (2, True)


@pytest.mark.req("S0-60")
def test_the_story_view_puts_each_thing_where_it_happened() -> None:
    ended = CliRunner().invoke(landed, ["demo", "revise-after-text", "--history=story"])
    told = ended.output.split("-- history, in the order it happened:\n")[1]
    words = [line.strip() for line in told.splitlines()]
    order = [
        next(n for n, line in enumerate(words) if said in line)
        for said in ("Texted group 'table", "actually, Saturday", "Booked R2", "Cancelled R1")
    ]
    assert order == sorted(order)
