"""`landed plan`: what is listed and shown claims nothing; what is decided is carried out once."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest

import landed
from landed.cli import progress
from landed.core.plan import Wanted
from landed.core.visible import line
from tests.cli.shop import DRAFT, Shop, close_series, done, open_series, shop

__all__ = ["shop"]

ALL_DONE = ["draft 500", "issue D-1", "mail F-2 client@example.com"]


def state(shop: Shop, plan: str) -> str:
    found: str = shop.read("plan", "show", plan)["state"]
    return found


# To look is to claim nothing.


def test_to_list_and_to_show_claims_and_writes_nothing(shop: Shop) -> None:
    proposed = shop.propose()
    before = [shop.rows(f"SELECT * FROM {table}") for table in ("record", "journal", "worker")]
    for words in (("list",), ("list", "--all"), ("show", proposed.plan)):
        assert shop.run("plan", *words).exit_code == 0
    shop.read("audit", "show", proposed.plan)
    shop.read("inspect", proposed.plan)
    after = [shop.rows(f"SELECT * FROM {table}") for table in ("record", "journal", "worker")]
    assert after == before
    assert done() == []


def test_a_plan_that_waits_is_listed_with_what_it_waits_for(shop: Shop) -> None:
    proposed = shop.propose()
    shop.propose(DRAFT, session="s2")
    (row,) = shop.read("plan", "list")
    assert (row["plan"], row["state"]) == (proposed.plan, "proposed")
    assert (row["waits for"], row["done"], row["who"]) == ("a yes to confirm", "0/3", "ana")
    assert [row["state"] for row in shop.read("plan", "list", "--all")] == ["proposed", "done"]
    assert [row["session"] for row in shop.read("plan", "list", "--all", "--session", "s2")] == [
        "s2"
    ]


@pytest.mark.field("C19")
def test_a_plan_whose_time_is_over_is_not_listed_as_waiting(shop: Shop) -> None:
    plan = shop.propose(answer_within_s=0.0).plan
    assert shop.read("plan", "list") == []
    (row,) = shop.read("plan", "list", "--all")
    assert (row["state"], row["waits for"]) == ("expired", "")
    shown = shop.read("plan", "show", plan)
    assert (shown["state"], shown["by"], shown["questions"]) == ("expired", "clock", [])
    said = shop.run("plan", "approve", plan, "--as", "ana")
    assert said.exit_code == 1
    assert "the time to answer is over" in said.output


@pytest.mark.field("C19")
def test_a_retry_whose_time_is_over_is_not_listed_either(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = shop.propose().plan
    close_series()
    assert shop.run("plan", "approve", plan, "--as", "ana", app=True).exit_code == 1
    assert [row["plan"] for row in shop.read("plan", "list")] == [plan]
    later = time.time() + 700.0
    monkeypatch.setattr("landed.cli.plan.time", SimpleNamespace(time=lambda: later))
    assert shop.read("plan", "list") == []


def test_an_empty_store_lists_nothing_and_a_missing_one_is_not_made(shop: Shop) -> None:
    missing = shop.run("plan", "list")
    assert (missing.exit_code, "there is no store at" in missing.output) == (1, True)
    assert list(shop.directory.iterdir()) == []
    shop.propose(tenant="acme")
    assert shop.run("plan", "list").output == "no plan waits or is being carried out\n"
    assert len(shop.read("plan", "list", "--tenant", "acme")) == 1


# A decision without the tools.


def test_a_yes_without_the_tools_is_written_down_and_carried_out_by_the_application(
    shop: Shop,
) -> None:
    plan = shop.propose().plan
    said = shop.run("plan", "approve", plan, "--as", "ana")
    assert said.exit_code == 0
    assert "carried out by the application's own worker" in said.output
    assert (done(), state(shop, plan)) == ([], "running")
    assert shop.rows("SELECT * FROM worker") == []

    assert shop.work(plan) == "done"
    assert done() == ALL_DONE


def test_a_runtime_without_tools_leaves_what_others_left_alone(shop: Shop) -> None:
    left, other = shop.propose().plan, shop.propose(session="s2").plan
    shop.run("plan", "approve", left, "--as", "ana")
    before = shop.rows(f"SELECT version, epoch, worker FROM record WHERE id = '{left}'")
    assert shop.run("plan", "decline", other, "--as", "ana").exit_code == 0
    assert shop.rows(f"SELECT version, epoch, worker FROM record WHERE id = '{left}'") == before
    assert shop.work(left) == "done"


def test_two_yeses_without_the_tools_are_one_run(shop: Shop) -> None:
    plan = shop.propose().plan
    for _ in range(2):
        assert shop.run("plan", "approve", plan, "--as", "ana").exit_code == 0
    assert shop.work(plan) == "done"
    assert shop.run("plan", "approve", plan, "--as", "ana").exit_code == 0
    assert done() == ALL_DONE


def test_an_undo_without_the_tools_is_carried_out_by_the_application(shop: Shop) -> None:
    plan = shop.propose(DRAFT).plan
    assert shop.run("plan", "undo", plan, "--as", "ana").exit_code == 0
    assert (done(), state(shop, plan)) == (["draft 500"], "undoing")
    assert shop.work(plan) == "undone"
    assert done() == ["draft 500", "delete D-1"]


def test_a_plan_that_broke_off_waits_for_a_retry_which_runs_the_rest(shop: Shop) -> None:
    plan = shop.propose().plan
    close_series()
    shop.run("plan", "approve", plan, "--as", "ana")
    assert shop.work(plan) == "partial"
    (row,) = shop.read("plan", "list")
    assert row["waits for"] == "a yes to retry"
    open_series()
    assert shop.run("plan", "retry", plan, "--as", "ana").exit_code == 0
    assert done() == ["draft 500"]
    assert shop.work(plan) == "done"
    assert done() == ALL_DONE


def test_a_no_to_a_retry_leaves_the_plan_as_it_is(shop: Shop) -> None:
    plan = shop.propose().plan
    close_series()
    assert shop.run("plan", "approve", plan, "--as", "ana", app=True).exit_code == 1
    assert shop.run("plan", "decline", plan, "--as", "ana").exit_code == 0
    assert (state(shop, plan), shop.read("plan", "list")) == ("partial", [])


def test_a_question_is_answered_by_its_own_id(shop: Shop) -> None:
    proposed = shop.propose()
    assert shop.run("plan", "approve", proposed.question, "--as", "ana", app=True).exit_code == 0
    assert done() == ALL_DONE


@pytest.mark.req("K12")
@pytest.mark.parametrize("verb", ["approve", "decline", "stop", "retry", "undo"])
def test_somebody_else_hears_no_more_than_that_there_is_nothing(shop: Shop, verb: str) -> None:
    plan = shop.propose().plan
    theirs = shop.run("plan", verb, plan, "--as", "mallory")
    nothing = shop.run("plan", verb, plan.replace("plan-", "plan-x"), "--as", "mallory")
    assert theirs.exit_code == nothing.exit_code == 1
    assert theirs.output == nothing.output.replace("plan-x", "plan-")
    assert state(shop, plan) == "proposed"


def test_who_administers_the_application_may_stop_a_plan_of_others(shop: Shop) -> None:
    plan = shop.propose().plan
    assert shop.run("plan", "stop", plan, "--as", "boss").exit_code == 1
    shop.run("plan", "approve", plan, "--as", "ana")
    assert shop.run("plan", "stop", plan, "--as", "boss", app=True).exit_code == 0
    assert state(shop, plan) in ("stopped", "done")


def test_a_stop_from_another_process_reaches_the_one_that_runs_it(shop: Shop) -> None:
    async def act() -> tuple[str, list[str]]:
        begun, goes_on = asyncio.Event(), asyncio.Event()

        @landed.tool(effect="reversible", on_interrupt="finish")
        async def slow(what: str) -> dict[str, str]:
            begun.set()
            await goes_on.wait()
            return {"id": what}

        calls = [Wanted(tool="slow", arguments={"what": what}) for what in ("one", "two")]
        async with landed.open(shop.url, tools=[slow]) as rt:
            heard = await rt.receive("do both", principal="ana")
            running = asyncio.ensure_future(rt.propose(calls, ask=heard.ask("act")))
            await begun.wait()
            try:
                (row,) = await asyncio.to_thread(shop.read, "plan", "list")
                words = ("stop", row["plan"], "--as", "ana", "--why", "enough")
                stopped = await asyncio.to_thread(shop.run, "plan", *words)
                assert stopped.exit_code == 0, stopped.output
                assert (await rt.plan(row["plan"])).state == "stopping"
            finally:
                goes_on.set()
            value = await running
        return value.state, [step.at for step in value.steps]

    assert asyncio.run(act()) == ("stopped", ["done", "waiting"])
    (row,) = shop.read("plan", "list", "--all")
    events = shop.read("audit", "show", row["plan"])["events"]
    told = [(each["event"], each["actor"], each["reason"]) for each in events]
    assert ("stop asked", "ana", "enough") in told
    assert told[-1][:2] == ("stopped", "runtime")


def test_words_that_have_to_be_typed_have_to_be_typed_here_too(shop: Shop) -> None:
    plan = shop.propose([Wanted(tool="purge", arguments={"count": 3})]).plan
    bare = shop.run("plan", "approve", plan, "--as", "ana", app=True)
    wrong = shop.run("plan", "approve", plan, "--as", "ana", "--typed", "4", app=True)
    assert (bare.exit_code, wrong.exit_code, done()) == (1, 1, [])
    assert "--typed" in wrong.output
    right = shop.run("plan", "approve", plan, "--as", "ana", "--typed", "3", app=True)
    assert (right.exit_code, done()) == (0, ["purge 3"])


# With the application.


def test_with_the_application_it_is_carried_out_here_and_each_step_is_a_line(shop: Shop) -> None:
    plan = shop.propose().plan
    said = shop.run("plan", "approve", plan, "--as", "ana", app=True)
    assert said.exit_code == 0
    assert [each for each in said.output.splitlines() if each.startswith("Step ")] == [
        "Step 1 of 3: Draft an invoice over 500",
        "Step 2 of 3: Issue it with the next number",
        "Step 3 of 3: mail(invoice=$2, to=client@example.com)",
    ]
    assert done() == ALL_DONE
    assert "  2  done     Issue it with the next number: F-2" in said.output


def test_an_application_that_cannot_be_had_is_a_usage_error(shop: Shop) -> None:
    plan = shop.propose().plan
    for name, why in (
        ("no.such.module", "cannot be imported"),
        ("tests.cli.shop:nothing", "has no 'nothing'"),
        (":", "cannot be imported"),
    ):
        said = shop.run("plan", "approve", plan, "--as", "ana", "--app", name)
        assert (said.exit_code, why in said.output) == (2, True)
    assert state(shop, plan) == "proposed"


def test_nobody_says_yes_without_a_name(shop: Shop) -> None:
    plan = shop.propose().plan
    said = shop.run("plan", "approve", plan)
    assert (said.exit_code, "--as" in said.output) == (2, True)


def test_a_store_with_a_secret_is_opened_by_it_alone(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = shop.propose(secret=b"a secret").plan
    said = shop.run("plan", "show", plan)
    assert (said.exit_code, "secret" in said.output) == (1, True)
    monkeypatch.setenv("LANDED_SECRET", "a secret")
    assert shop.run("plan", "approve", plan, "--as", "ana").exit_code == 0
    assert "a secret" not in "".join(shop.outputs[1:])


def test_as_a_real_process_it_lists_decides_and_carries_out(shop: Shop) -> None:
    plan = shop.propose().plan
    environment = {**os.environ, "LANDED_STORE": shop.url, "LANDED_AS": "ana"}

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", "from landed.cli.main import main; main()", *words],
            capture_output=True,
            text=True,
            timeout=50,
            env=environment,
            cwd=Path(__file__).parents[2],
        )

    assert plan in run("plan", "list").stdout
    approved = run("plan", "approve", plan, "--app", "tests.cli.shop")
    assert (approved.returncode, approved.stderr) == (0, "")
    assert "Step 3 of 3" in approved.stdout
    assert (run("plan", "show", plan).returncode, done()) == (0, ALL_DONE)
    assert run("plan", "show", "plan-nobody").returncode == 1
    assert run("plan", "shows").returncode == 2


# What is shown.

POWERFUL = [
    "\x1b[31mred\x1b[0m",
    "\x1b]0;title\x07",
    "\x1b]8;;http://evil.example\x1b\\link\x1b]8;;\x1b\\",
    "\x9b2Jgone",
    "\x1b[2J\x1b[H",
    "\x1bcreset",
    "back\x08\x08\x08\x08",
    "over\rwritten",
    "null\x00byte",
    "\u202eexe.gpj",
    "\u2066isolated\u2069",
    "\u200bzero\u200dwidth\ufeff",
    "\u2028two\u2029lines",
    "\u115f\u3164blank",
    "\U000e0041tag",
    "\x7fdelete",
    "tab\tbed",
]
UNSEEN = set("\x1b\x9b\x07\x08\r\x00\x7f\t\u202e\u2066\u2069\u200b\u200d\ufeff\u2028\u2029")
UNSEEN |= set("\u115f\u3164\U000e0041")


@pytest.mark.fault("X88")
@pytest.mark.parametrize("payload", POWERFUL)
def test_nothing_that_is_shown_can_steer_a_terminal(shop: Shop, payload: str) -> None:
    calls = [Wanted(tool="mail", arguments={"invoice": "F-9", "to": payload})]
    proposed = shop.propose(calls, says=payload, session=f"s{payload}")
    plan = proposed.plan
    for words in (
        ("plan", "list"),
        ("plan", "list", "--json"),
        ("plan", "show", plan),
        ("plan", "approve", plan, "--as", "ana"),
        ("audit", "show", plan),
        ("audit", "show", plan, "--json"),
        ("inspect", proposed.input),
        ("inspect", proposed.question, "--json"),
        ("plan", "stop", payload.replace("\x00", "0"), "--as", "ana"),
    ):
        shop.run(*words)
    assert not UNSEEN & set(shop.everything())


@pytest.mark.fault("X88")
def test_what_is_not_seen_is_shown_as_its_number() -> None:
    assert line("a\u202eb\x1b[1mc") == "a<U+202E>bc"
    assert line("\x1b]0;kept\x07") == "0;kept<U+0007>"
    assert line("\x1b") == "<U+001B>"


@pytest.mark.req("S1-21")
def test_no_token_is_ever_printed(shop: Shop) -> None:
    proposed = shop.propose()
    assert len(proposed.token) == 32
    for words in (
        ("plan", "list", "--all"),
        ("plan", "show", proposed.plan, "--json"),
        ("inspect", proposed.token),
        ("inspect", proposed.token, "--json"),
        ("inspect", proposed.token[:-1]),
        ("plan", "approve", proposed.plan, "--as", "ana", "--json"),
        ("audit", "show", proposed.plan, "--json"),
    ):
        shop.run(*words)
    assert proposed.token not in shop.everything()
    assert proposed.token[:-1] not in shop.everything()
    assert f"approval/{proposed.plan}/confirm/1: approval, open" in shop.outputs[2]


# A terminal.


@dataclass(frozen=True)
class Told:
    text: str


async def steps() -> AsyncIterator[Told]:
    for text in ("Step 1 of 2: [bold]one[/bold]", "Step 1 of 2: [bold]one[/bold]", "Step 2: two"):
        yield Told(text)


async def follow() -> None:
    async with progress.shown(steps()):
        await asyncio.sleep(0)


def test_on_a_terminal_the_steps_are_drawn_and_stay(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    asyncio.run(follow())
    drawn = capsys.readouterr().out
    assert drawn.count("Step 1 of 2: [bold]one[/bold]\n") == 1
    assert drawn.rstrip().endswith("Step 2: two")


@pytest.mark.parametrize("terminal", [True, False])
def test_without_rich_or_a_terminal_they_are_plain_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], terminal: bool
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal, raising=False)
    for name in [*sys.modules]:
        if name == "rich" or name.startswith("rich."):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "rich.console", None)
    asyncio.run(follow())
    assert capsys.readouterr().out == "Step 1 of 2: [bold]one[/bold]\nStep 2: two\n"


def test_no_command_loads_rich_before_it_draws() -> None:
    code = (
        "from landed.cli.main import landed\n"
        "for words in (['--version'], ['plan', '--help'], ['plan', 'list', '--help']):\n"
        "    landed.main(words, standalone_mode=False)\n"
        "import sys; print(*sys.modules)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30
    )
    loaded = {name.split(".")[0] for name in ended.stdout.splitlines()[-1].split()}
    assert "click" in loaded
    assert not loaded & {"rich", "pydantic", "sqlite3", "pysqlite3"}
