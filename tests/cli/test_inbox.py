"""`landed inbox`: what waits for somebody, and for how long; nothing is claimed by looking."""

import json
import sqlite3
from contextlib import closing

import pytest

from landed.cli.inbox import age
from tests.cli.doubts import Doubts, doubts
from tests.cli.shop import Shop, shop

__all__ = ["doubts", "shop"]

UNSAFE = "\x1b[2J\x1b]0;owned\x07\u202eevil\r\nsecond"


def rows(doubts: Doubts, *words: str) -> list[dict[str, str]]:
    said = doubts.run("inbox", "--json", *words)
    assert said.exit_code == 0, said.output
    listed: list[dict[str, str]] = json.loads(said.stdout)
    return listed


@pytest.mark.req("S4-50")
def test_a_case_is_listed_with_its_age_and_why(doubts: Doubts) -> None:
    operation = doubts.doubt()
    (row,) = rows(doubts)
    assert (row["id"], row["kind"], row["session"]) == (operation, "case: undecided", "main")
    assert row["what"].startswith("mail: its contract puts every doubt in front of a person")
    assert row["since"].endswith(" s")
    printed = doubts.run("inbox").output.splitlines()
    assert printed[0].split() == ["id", "kind", "since", "session", "what"]
    assert printed[1].startswith(operation)


def test_nothing_waits_in_a_store_where_nothing_does(doubts: Doubts) -> None:
    doubts.doubt("known")
    assert doubts.run("inbox").output == "nothing waits for anybody\n"
    assert rows(doubts) == []


def test_a_question_about_a_plan_is_listed_after_the_cases(shop: Shop) -> None:
    proposed = shop.propose()
    (row,) = shop.read("inbox")
    assert (row["id"], row["kind"]) == (proposed.question, "question: plan")
    assert proposed.token not in shop.everything()


def test_cases_come_oldest_first(doubts: Doubts) -> None:
    first = doubts.doubt("ana")
    doubts.hear("pi_7", "{a payment}")
    second = doubts.doubt("bo")
    assert [row["id"] for row in rows(doubts)] == [
        first,
        "case/unrecorded/hook/pi_7",
        second,
    ]


@pytest.mark.req("S1-21")
def test_another_tenants_cases_are_not_there(doubts: Doubts) -> None:
    doubts.doubt(tenant="other")
    assert rows(doubts) == []
    assert len(rows(doubts, "--tenant", "other")) == 1


def test_to_list_claims_and_writes_nothing(doubts: Doubts) -> None:
    doubts.doubt()

    def everything() -> list[list[tuple[object, ...]]]:
        with closing(sqlite3.connect(doubts.directory / "agent.db")) as file:
            tables = ("record", "journal", "worker", "name")
            return [file.execute(f"SELECT * FROM {table}").fetchall() for table in tables]

    before = everything()
    rows(doubts)
    assert everything() == before


def test_what_others_wrote_cannot_steer_the_terminal(doubts: Doubts) -> None:
    doubts.hear(f"pi_7{UNSAFE}", f"{{paid}}{UNSAFE}")
    printed = doubts.run("inbox").output
    assert len(printed.splitlines()) == 2
    for letter in ("\x1b", "\x07", "\u202e", "\r"):
        assert letter not in printed
    assert "\u202e" in rows(doubts)[0]["what"]
    assert "\x1b" not in doubts.run("inbox", "--json").stdout


def test_without_a_store_it_says_so_and_makes_none(doubts: Doubts) -> None:
    said = doubts.run("inbox")
    assert (said.exit_code, "there is no store at" in said.output) == (1, True)
    assert list(doubts.directory.iterdir()) == []


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(-5.0, "0 s"), (0.0, "0 s"), (59.9, "59 s"), (60.0, "1 min"), (7_200.0, "2 h"), (1e6, "11 d")],
)
def test_an_age_is_in_one_unit(seconds: float, shown: str) -> None:
    assert age(seconds) == shown
