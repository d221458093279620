"""`landed contract` shows what is known, finds what is wrong, and tries promises on a service."""

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from landed import catalogue
from landed.cli.main import landed
from landed.testing.booking import booking_tools
from landed.testing.check_tool import Verdict, check_tool
from landed.testing.worlds import serve
from landed.testing.worlds.restaurant import Restaurant
from tests.cli.bank import Bank, paying, served

FRIDAY = '{"day": "Fri", "time": "19:00", "party": 4}'
SATURDAY = '{"day": "Sat", "time": "19:00", "party": 4}'
NOBODY = '{"day": "Fri", "time": "19:00", "party": 0}'


def contract(*arguments: str) -> Result:
    return CliRunner().invoke(landed, ["contract", *arguments])


# list and show


def test_each_contract_is_listed_in_a_line() -> None:
    said = contract("list")
    assert said.exit_code == 0
    names = [line.split()[0] for line in said.output.splitlines()]
    assert names == ["name", *catalogue.contracts()]
    assert "stripe.refund" in said.output
    assert "Idempotency-Key" in said.output


def test_the_contracts_of_a_file_of_ones_own_are_listed(tmp_path: Path) -> None:
    (tmp_path / "bank.toml").write_text(BANK)
    said = contract("list", str(tmp_path / "bank.toml"), "--json")
    (entry,) = json.loads(said.stdout)
    assert (entry["name"], entry["contract"]["retention_s"]) == ("bank.pay", 3600)


def test_each_fact_is_shown_with_its_source_or_as_unverified() -> None:
    said = contract("show", "square.payment")
    assert said.exit_code == 0
    lines = said.output.splitlines()
    page = "https://developer.squareup.com/docs/working-with-apis/idempotency, read 2026-11-30"
    assert f'  keyed = "idempotency_key"  ({page})' in lines
    assert any(line.startswith("  retention_s = 3600  (UNVERIFIED: an hour is") for line in lines)
    assert any(line.startswith("  no close  (https://") for line in lines)


def test_what_is_shown_can_be_read_by_a_program() -> None:
    entry = json.loads(contract("show", "stripe.refund", "--json").stdout)
    assert entry["facts"]["retention_s"]["checked"] == "2026-11-30"
    assert entry["replays_failures"] is True
    assert entry["unverified"] == []


def test_a_name_that_is_not_there_is_one_line_and_status_1(tmp_path: Path) -> None:
    said = contract("show", "stripe.refnd")
    assert (said.exit_code, said.output.count("\n")) == (1, 1)
    assert "did you mean 'stripe.refund'?" in said.output
    (tmp_path / "bank.toml").write_text(BANK)
    said = contract("show", "bank.refund", "--file", str(tmp_path / "bank.toml"))
    assert (said.exit_code, "has no 'bank.refund'" in said.output) == (1, True)
    said = contract("show", "bank.pay", "--file", str(tmp_path / "bank.toml"))
    assert said.output.startswith("bank.pay  POST /payments\n")


# lint

BANK = """
service = "bank"
[calls.pay]
request = "POST /payments"
effect = "irreversible"
keyed = "Reference"
retention_s = 3600
lookup = true
"""


def test_the_catalogue_passes() -> None:
    said = contract("lint")
    assert said.exit_code == 0
    assert said.output.splitlines()[-1].startswith("0 errors, ")


def test_a_file_that_passes_is_told_so(tmp_path: Path) -> None:
    (tmp_path / "bank.toml").write_text(BANK)
    said = contract("lint", str(tmp_path / "bank.toml"))
    assert (said.exit_code, said.output) == (0, "0 errors, 0 warnings\n")


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("retention_s", "retention", "there is no key 'retention'; did you mean 'retention_s'?"),
        ('effect = "irreversible"', "", "say what it does to the world"),
        ('keyed = "Reference"', "", "promises about a key, but the tool is not keyed"),
    ],
)
def test_an_error_in_a_file_makes_the_exit_status_1(
    old: str, new: str, told: str, tmp_path: Path
) -> None:
    (tmp_path / "bank.toml").write_text(BANK.replace(old, new))
    said = contract("lint", str(tmp_path / "bank.toml"))
    assert said.exit_code == 1
    assert told in said.output
    assert said.output.endswith("1 errors, 0 warnings\n")


@pytest.mark.field("A11", "G5")
def test_a_file_that_says_what_an_upstream_tool_says_is_held_against_it(tmp_path: Path) -> None:
    says = """
[calls.pay.hints]
idempotent = true
[calls.pay.arguments]
idempotency_key = "Must be unique for every request."
"""
    (tmp_path / "bank.toml").write_text(BANK + says)
    found = json.loads(contract("lint", str(tmp_path / "bank.toml"), "--json").stdout)
    texts = [one["text"] for one in found]
    assert "the model fills 'idempotency_key' and is told to make a new one for each" in texts[0]
    assert "its keys are forgotten after 1 h: the contract holds" in texts[1]
    assert {one["severity"] for one in found} == {"warning"}


APP = """
import landed

asked = []


@landed.tool(effect="irreversible")
async def charge(cents: int, idempotency_key: str) -> str:
    return idempotency_key


def wipe():
    asked.append("wipe")


def tools():
    return [charge]


every = [charge, wipe]
"""


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    (tmp_path / "an_app_of_ours.py").write_text(APP)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield "an_app_of_ours"
    sys.modules.pop("an_app_of_ours", None)


@pytest.mark.field("A10", "A11")
def test_the_tools_of_an_app_are_linted(app: str) -> None:
    said = contract("lint", "--app", f"{app}:every")
    assert said.exit_code == 1
    assert "error    wipe: it has no contract" in said.output
    assert "warning  charge: it has no key" in said.output
    assert "warning  charge: the model fills 'idempotency_key'" in said.output


def test_without_a_name_the_tools_are_asked_for_and_a_name_is_never_called(app: str) -> None:
    said = contract("lint", "--app", app)
    assert (said.exit_code, "charge" in said.output) == (0, True)
    said = contract("lint", "--app", f"{app}:tools()")
    assert said.exit_code == 0
    # What is named may be what acts.
    said = contract("lint", "--app", f"{app}:wipe")
    assert (said.exit_code, "wipe: it has no contract" in said.output) == (1, True)
    assert sys.modules[app].asked == []


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("no_such_module_at_all", "cannot be imported"),
        ("an_app_of_ours:nothing", "has no 'nothing'"),
    ],
)
def test_an_app_that_is_not_there_is_a_command_without_sense(
    app: str, name: str, told: str
) -> None:
    said = contract("lint", "--app", name)
    assert (said.exit_code, told in said.output) == (2, True)


# probe

PROMISES = {
    "stored arguments read back as they are",
    "a send is acknowledged, and does what its effect says",
    "one key, one effect",
    "another payload under one key is refused",
    "a lookup finds what landed",
    "a lookup of an unused key is absent",
    "a refusal comes before any effect",
    "a request that is too old is refused",
    "a closed key refuses what comes late",
    "a key is remembered",
    "a close finds what landed",
}


def probed(bank: Bank, *more: str, monkeypatch: pytest.MonkeyPatch) -> Result:
    with served(bank) as url:
        monkeypatch.setattr("tests.cli.bank.tools", [paying(url)], raising=False)
        spec = "tests.cli.bank:tools"
        told = ("--arguments", '{"cents": 100}', "--changed", '{"cents": 200}')
        refused = ("--refused", '{"cents": 0}', "--wait", "0")
        return contract("probe", "--app", spec, *told, *refused, *more)


@pytest.mark.req("S0-40")
def test_a_service_that_keeps_its_promises_passes_the_probe(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bank = Bank()
    said = probed(bank, "--json", monkeypatch=monkeypatch)
    found = json.loads(said.stdout)
    assert said.exit_code == 0
    assert {one["promise"] for one in found["findings"]} == PROMISES
    assert {one["verdict"] for one in found["findings"]} == {"kept"}
    # However often it was sent, each key took effect once.
    assert bank.paid == [100]


@pytest.mark.req("S0-40")
@pytest.mark.parametrize(
    ("breaks", "broken"),
    [
        ("answer", "a send is acknowledged, and does what its effect says"),
        ("key", "one key, one effect"),
        ("payload", "another payload under one key is refused"),
        ("lookup", "a lookup finds what landed"),
        ("unused", "a lookup of an unused key is absent"),
        ("refusal", "a refusal comes before any effect"),
        ("late", "a request that is too old is refused"),
        ("close", "a closed key refuses what comes late"),
    ],
)
def test_a_service_that_breaks_a_promise_fails_the_probe(
    breaks: str, broken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = probed(Bank(breaks), monkeypatch=monkeypatch)
    assert said.exit_code == 1
    assert f"  broken   {broken}: " in said.output


@pytest.mark.field("G2")
def test_a_changed_payload_is_sent_and_what_the_service_did_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lenient = Bank("payload")
    said = probed(lenient, monkeypatch=monkeypatch)
    assert "broken   another payload under one key is refused: it came back as" in said.output
    assert 200 in lenient.paid


# Each setting of the restaurant takes away what a contract promises.
WEAKER = {
    "lenient": (Restaurant(), "another payload under one key is refused"),
    "no lookup": (Restaurant(strict=True, can_look_up=False), "a lookup finds what landed"),
    "no close": (Restaurant(strict=True, can_close=False), "a closed key refuses what comes late"),
    "forgetful": (Restaurant(strict=True, retention_s=0.0), "a key is remembered"),
}
STRICT = Restaurant(strict=True, retention_s=3_600.0, refuses_after_s=60.0)


def booked(settings: Restaurant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Result:
    with serve.start("restaurant", db=str(tmp_path / "far.db"), settings=settings) as far:
        tools = booking_tools(far.url, STRICT)
        monkeypatch.setattr("tests.cli.bank.tools", tools, raising=False)
        told = ("--tool", "reserve_table", "--arguments", FRIDAY, "--changed", SATURDAY)
        refused = ("--refused", NOBODY, "--wait", "0")
        return contract("probe", "--app", "tests.cli.bank:tools", *told, *refused)


@pytest.mark.req("S0-40")
def test_the_restaurant_as_its_contract_says_passes_the_probe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = booked(STRICT, tmp_path, monkeypatch)
    assert said.exit_code == 0, said.output
    assert said.output.count("  kept ") == len(PROMISES)


@pytest.mark.req("S0-40")
@pytest.mark.parametrize("weaker", WEAKER)
def test_a_restaurant_that_offers_less_than_the_contract_says_is_found(
    weaker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, broken = WEAKER[weaker]
    said = booked(settings, tmp_path, monkeypatch)
    assert said.exit_code == 1
    assert f"broken   {broken}: " in said.output, said.output


@pytest.mark.req("S0-40")
def test_a_key_that_is_forgotten_before_its_time_is_found() -> None:
    bank, waited = Bank(), list[float]()

    async def forget(seconds: float) -> None:
        waited.append(seconds)
        bank.keys.clear()

    with served(bank) as url:
        tried = check_tool(paying(url), {"cents": 100}, wait_s=1_800.0, sleep=forget)
        findings = asyncio.run(tried)
    assert waited == [1_800.0]
    assert "one key, one effect" in findings.of(Verdict.KEPT)
    assert "a key is remembered" in findings.of(Verdict.BROKEN)
    assert "first {'id': 'P1'}, then {'id': 'P2'} for the same key" in str(findings)


def test_without_a_wait_the_retention_is_not_tried_and_that_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with served(Bank()) as url:
        monkeypatch.setattr("tests.cli.bank.tools", [paying(url)], raising=False)
        said = contract("probe", "--app", "tests.cli.bank:tools", "--arguments", '{"cents": 1}')
    assert said.exit_code == 0
    assert "skipped  a key is remembered: give wait_s= to check it" in said.output


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (("--arguments", "{"), "--arguments is no JSON"),
        (("--changed", "[1]"), "--changed must be a JSON object"),
        (("--wait", "3600"), "wait_s must be below retention_s, 3600 s"),
        (("--tool", "refund"), "has pay; say which one with --tool"),
    ],
)
def test_a_probe_that_makes_no_sense_sends_nothing(
    given: tuple[str, str], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bank = Bank()
    said = probed(bank, *given, monkeypatch=monkeypatch)
    assert (said.exit_code, told in said.output) == (2, True), said.output
    assert bank.paid == []
