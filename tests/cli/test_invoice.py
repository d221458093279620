"""`landed demo invoice` and its variants: for real, simulated, in both languages, with switches."""

import json
from typing import Any

import pytest
from click.testing import CliRunner, Result

from landed.cli.main import landed
from landed.testing.invoices.scenarios import INVOICES, INVOICES_BY_NAME
from landed.testing.invoices.switches import FAILURES

MEMBERS = ["scenario", "timeline", "world", "reconciled", "history", "message", "as_described"]
ALL_OF_IT = "F-2026-0001 Marta 605.00 due 18/11/2026, reminder 13/11/2026"
MAILED = "after:send:send_invoice"


def demo(*arguments: str) -> Result:
    return CliRunner().invoke(landed, ["demo", *arguments])


def ran(*arguments: str) -> dict[str, Any]:
    said = demo(*arguments, "--json")
    assert said.exit_code == 0, said.output
    told: dict[str, Any] = json.loads(said.stdout)
    return told


def of_type(told: dict[str, Any], type: str) -> list[str]:
    return [line["text"] for line in told["timeline"] if line["type"] == type]


def held(told: dict[str, Any]) -> dict[str, list[str]]:
    return {where: [one["text"] for one in there] for where, there in told["world"].items()}


@pytest.mark.req("S1-04", "S1-06", "S1-08", "S1-11")
@pytest.mark.parametrize(
    ("language", "subject"),
    [("en", "Invoice"), pytest.param("es", "Factura", marks=pytest.mark.services)],
)
def test_the_whole_request_runs_for_real_over_http_and_smtp(language: str, subject: str) -> None:
    lines = demo("invoice", "--lang", language).stdout.splitlines()

    assert [line for line in lines if "at smtp://127.0.0.1:" in line]
    (question,) = [line for line in lines if "plan.ask" in line]
    for figure in ("605", "18/11/2026", "13/11/2026", "?"):
        assert figure in question
    assert lines[-5:-1] == [
        f"-- invoices holds: {ALL_OF_IT}",
        f"-- mailbox holds: E1 marta@example.com: {subject} F-2026-0001",
        "-- payments holds: nothing",
        "-- reconciled: yes",
    ]


@pytest.mark.req("S1-44", "S1-28")
@pytest.mark.fault("X82")
def test_a_real_kill_between_the_mail_and_its_record_leaves_one_mail() -> None:
    told = ran("invoice-redeploy")

    assert told["as_described"] is True
    assert list(told) == MEMBERS
    said = " / ".join(of_type(told, "process"))
    assert "is killed by SIGKILL" in said
    assert of_type(told, "store") == ["send_invoice is `sent`, no answer written down: in doubt"]
    assert len(held(told)["mailbox"]) == 1
    assert held(told)["invoices"] == [ALL_OF_IT]


@pytest.mark.req("S0-07")
@pytest.mark.parametrize("name", INVOICES_BY_NAME)
def test_each_is_one_object_of_the_agreed_shape(name: str) -> None:
    told = ran(name, "--simulated")

    assert list(told) == MEMBERS
    assert (told["scenario"], told["as_described"]) == (name, True)
    assert list(told["world"]) == ["invoices", "mailbox", "payments"]
    assert [line["n"] for line in told["timeline"]] == list(range(1, len(told["timeline"]) + 1))
    for there in told["world"].values():
        assert all(one["text"].startswith(one["id"]) for one in there)


def test_they_are_listed_with_the_others() -> None:
    listed = demo().output

    assert all(scenario.line in listed for scenario in INVOICES)


@pytest.mark.req("F1-01", "F1-02", "F1-03", "F1-04", "F1-05", "F1-06", "F1-07", "F1-08")
@pytest.mark.parametrize(("name", "switch"), FAILURES, ids=str)
def test_a_wrong_design_is_a_switch_that_says_what_it_costs(name: str, switch: str) -> None:
    option = f"--{switch.replace('_', '-')}"
    told, ours = ran(name, option), ran(name, "--simulated")

    assert (told["as_described"], ours["as_described"]) == (True, True)
    assert of_type(told, "wrong")[0].startswith(f"{option}: ")
    assert told["message"] != ours["message"]
    assert not of_type(ours, "wrong")


@pytest.mark.req("F1-07")
def test_a_question_for_each_step_is_four_questions() -> None:
    assert len(of_type(ran("invoice", "--ask-each-step"), "plan.ask")) == 4
    assert len(of_type(ran("invoice", "--simulated"), "plan.ask")) == 1


def test_a_kill_a_seed_and_the_points_are_of_the_simulation() -> None:
    points = demo("invoice", "--points").output.split()
    killed = ran("invoice", f"--kill={MAILED}")

    assert MAILED in points
    assert of_type(killed, "crash") == [MAILED]
    assert killed["as_described"] is None
    assert not of_type(ran("invoice-redeploy", "--seed=3"), "process")


def test_a_language_does_not_make_it_another_scenario() -> None:
    told = ran("invoice-mail-fails", "--lang=es")

    assert told["as_described"] is True
    assert told["message"].endswith("¿Lo reintento?")


def test_history_adds_what_a_model_would_be_shown() -> None:
    said = demo("invoice-cancel", "--history").output

    assert "-- history, as a model is shown it:" in said
    assert "The person stopped the plan: 1 of 4 done." in said
    assert "only if the person asks for it" in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["invoice", "--fee=20"], "not with an invoice scenario"),
        (["reply-lost", "--lenient-yes"], "only with the invoice scenarios"),
        (["reply-lost", "--lang=es"], "only with the invoice scenarios"),
        (["invoice", "--lang=fr"], "--lang"),
        (["invoice-retri"], "did you mean invoice-retry"),
        (["--all", "--lenient-yes"], "NAME of one scenario"),
        (["story", "--simulated"], "the story is real"),
    ],
)
def test_what_makes_no_sense_is_a_usage_error(arguments: list[str], words: str) -> None:
    said = demo(*arguments)

    assert (said.exit_code, said.stdout) == (2, "")
    assert words in said.stderr
