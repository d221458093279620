"""Every invoice scenario ends as its description says, whatever goes wrong on the way.

The printed form of each is kept in `tests/golden/invoices`; `python -m tests.test_invoices`
refreshes it.
"""

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from landed.cli.main import landed
from landed.testing.designs import RIGHT
from landed.testing.invoices.clerk import OURS
from landed.testing.invoices.scenario import InvoiceScenario
from landed.testing.invoices.scenarios import (
    INVOICE,
    INVOICES,
    INVOICES_BY_NAME,
    MAIL_FAILS,
    REDEPLOY,
    RETRY,
)
from landed.testing.invoices.stage import run
from landed.testing.invoices.switches import COSTS, FAILURES, WRONG, switched
from landed.testing.invoices.words import LANGUAGES
from landed.testing.scenario import Ran
from tests.reading import at, held, texts
from tests.sampling import sampled

GOLDEN = Path(__file__).parent / "golden" / "invoices"
NOT_KNOWN = {"en": "Not known yet: I may have emailed", "es": "Aún no se sabe: puede que haya"}
MAIL = "send_invoice"


def _named(scenario: InvoiceScenario) -> str:
    return scenario.name


@pytest.fixture(autouse=True)
def nothing_went_wrong_unseen(caplog: pytest.LogCaptureFixture):
    """A loop that ends by a bug of ours is logged; a scenario may end well all the same."""
    yield
    errors = [r.getMessage() for r in caplog.get_records("call") if r.levelno >= logging.ERROR]
    assert not errors


# As described.


@pytest.mark.req("S1-08", "S0-07")
@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("scenario", INVOICES, ids=_named)
def test_it_ends_as_described_in_both_languages(scenario: InvoiceScenario, language: str) -> None:
    ran = run(scenario.spoken(language))

    assert ran.as_described is True
    assert texts(ran, "crash") == list(scenario.kill)
    assert not ran.unwitnessed


@pytest.mark.parametrize("seed", sampled([1, 2], every=2))
@pytest.mark.parametrize("scenario", INVOICES, ids=_named)
def test_it_ends_as_described_on_every_schedule(scenario: InvoiceScenario, seed: int) -> None:
    assert run(scenario, seed=seed).as_described is True


@pytest.mark.parametrize("scenario", INVOICES, ids=_named)
def test_two_runs_are_the_same_in_every_line(scenario: InvoiceScenario) -> None:
    assert run(scenario, seed=7).plain() == run(scenario, seed=7).plain()


@pytest.mark.req("S0-04")
@pytest.mark.parametrize("scenario", INVOICES, ids=_named)
def test_its_timeline_is_the_one_that_was_kept(scenario: InvoiceScenario) -> None:
    kept = (GOLDEN / f"{scenario.name}.txt").read_text("utf-8")

    assert _printed(scenario.name) == kept, "python -m tests.test_invoices refreshes it"


def test_nothing_is_kept_of_a_scenario_that_is_gone() -> None:
    assert {path.stem for path in GOLDEN.glob("*.txt")} == set(INVOICES_BY_NAME)


def test_an_end_that_is_not_the_described_one_is_seen() -> None:
    """What says `as_described` looks at books, mails, questions, words and reconciliation."""
    ran = run(INVOICE)

    for wrong in (MAIL_FAILS, RETRY, INVOICES_BY_NAME["invoice-other-date"]):
        assert replace(ran, scenario=wrong, kill=wrong.kill).as_described is False
    assert replace(ran, reconciled=False).as_described is False
    assert replace(ran, message="Done.").as_described is False
    assert replace(ran, kill=("after:made",)).as_described is None


# Wrong designs.

F1 = {
    "end_in_error": "F1-01",
    "no_drain": "F1-02",
    "consume_on_mismatch": "F1-03",
    "lenient_yes": "F1-04",
    "model_key": "F1-05",
    "retry_new_plan": "F1-06",
    "ask_each_step": "F1-07",
    "cancel_kills": "F1-08",
}


@pytest.mark.req("F1-01", "F1-02", "F1-03", "F1-04", "F1-05", "F1-06", "F1-07", "F1-08")
@pytest.mark.parametrize("language", sampled(LANGUAGES, every=2))
@pytest.mark.parametrize(("name", "switch"), FAILURES, ids=str)
def test_a_wrong_design_goes_wrong_in_the_way_described_and_ours_does_not(
    name: str, switch: str, language: str
) -> None:
    right = INVOICES_BY_NAME[name].spoken(language)
    wrong = switched(INVOICES_BY_NAME[name], **{switch: True, "language": language})
    went, ours = run(wrong), run(right)

    assert (went.as_described, ours.as_described) == (True, True)
    assert (went.world, went.reconciled, went.asked) != (ours.world, ours.reconciled, ours.asked)
    assert texts(went, "wrong") == [f"--{switch.replace('_', '-')}: {COSTS[switch]}"]


def test_every_wrong_design_is_shown_somewhere() -> None:
    assert {switch for _, switch in FAILURES} == set(WRONG) == set(COSTS) == set(F1)
    assert all(one.design is RIGHT and one.manner is OURS for one in INVOICES)


@pytest.mark.req("F1-01", "S1-44")
def test_with_claims_let_go_of_a_redeploy_mails_and_numbers_twice() -> None:
    went = run(switched(REDEPLOY, end_in_error=True))

    assert [one["text"] for one in went.world["mailbox"]] == [
        "E1 marta@example.com: Invoice F-2026-0001",
        "E2 marta@example.com: Invoice F-2026-0002",
    ]
    assert texts(went, "restart") == ["0 operation(s) in the log"]


@pytest.mark.req("F1-02", "S1-43")
def test_drained_the_mail_is_recorded_before_the_process_ends_and_else_never() -> None:
    deploy = INVOICES_BY_NAME["invoice-deploy"]
    went, ours = run(switched(deploy, no_drain=True)), run(deploy)

    recorded = at(ours, "tool.result", MAIL)
    assert recorded < at(ours, "restart") < at(ours, "tool.sent", "schedule_reminder")
    assert not [line for line in went.timeline.lines if line.text.startswith(f"T1 {MAIL}: <")]
    assert not [line for line in went.timeline.lines if "schedule_reminder(" in line.text]
    assert NOT_KNOWN["en"] in went.message


@pytest.mark.req("F1-04")
def test_a_lenient_yes_runs_the_date_that_was_to_be_changed() -> None:
    went = run(switched(INVOICES_BY_NAME["invoice-other-date"], lenient_yes=True))
    ours = run(INVOICES_BY_NAME["invoice-other-date"])

    assert _day(went) == "2026-11-13"
    assert _day(ours) == "2026-11-08"


@pytest.mark.req("F1-08", "S1-53")
def test_a_killed_step_leaves_an_invoice_that_nobody_knows_of() -> None:
    late = INVOICES_BY_NAME["invoice-cancel-late"]
    went, ours = run(switched(late, cancel_kills=True)), run(late)

    assert [one["id"] for one in went.world["invoices"]] == ["F-2026-0001"]
    assert "F-2026-0001" not in went.message
    assert "issued F-2026-0001" in ours.message


def test_of_two_wrong_designs_at_once_nothing_is_said() -> None:
    went = run(switched(REDEPLOY, end_in_error=True, lenient_yes=True))

    assert went.as_described is None


@pytest.mark.parametrize("wrong", [{"fee_cents": 2}, {"language": "fr"}])
def test_a_switch_that_makes_no_sense_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"invoice scenario|no language"):
        switched(INVOICE, **wrong)


# Crashes.


def _is_worth_it(point: str) -> bool:
    """What comes before an event is, but for a send, what comes after the one before it."""
    return point.startswith(("after:", "before:send:"))


FREE = run(INVOICE)
POINTS = tuple(str(point) for point in FREE.points[0])
APPROVED = tuple(filter(_is_worth_it, POINTS[POINTS.index("after:approval_taken") :]))


@pytest.mark.req("S1-41", "S1-44")
@pytest.mark.fault("X82")
@pytest.mark.parametrize("point", sampled(APPROVED, every=3))
def test_killed_anywhere_after_the_yes_it_ends_well_or_says_that_it_does_not_know(
    point: str,
) -> None:
    _is_once(run(INVOICE, kill=(point,)))


@pytest.mark.services
@pytest.mark.timeout(300)
@pytest.mark.parametrize("scenario", INVOICES, ids=_named)
def test_killed_anywhere_at_all_nothing_is_done_twice(scenario: InvoiceScenario) -> None:
    points = map(str, run(scenario, kill=()).points[0])
    for point in filter(_is_worth_it, points):
        ran = run(scenario, kill=(point,))
        assert not ran.unwitnessed, point
        assert len(ran.world["mailbox"]) <= 1, point
        numbers = [one["id"] for one in ran.world["invoices"] if str(one["id"])[0] == "F"]
        assert len(numbers) <= 1, point
        assert ran.reconciled or NOT_KNOWN["en"] in ran.message, point


def _is_once(ran: Ran) -> None:
    """Whether all of it happened once; or the mail is in doubt, and what follows was not begun."""
    assert not ran.unwitnessed
    if NOT_KNOWN["en"] in ran.message:
        # It was killed between the record and the mail: SMTP can't be asked for a no.
        assert not ran.world["mailbox"]
        assert at(ran, "tool.sent", MAIL)
        assert not [line for line in ran.timeline.lines if "schedule_reminder(" in line.text]
        return
    assert [held(ran, name) for name in ran.world] == [held(FREE, name) for name in FREE.world]
    assert ran.message == FREE.message
    assert ran.reconciled


def _day(ran: Ran) -> object:
    (invoice,) = ran.world["invoices"]
    return invoice["remind_on"]


def _printed(name: str) -> str:
    said = CliRunner().invoke(landed, ["demo", name, "--simulated", "--history"])
    assert said.exit_code == 0, said.output
    return said.output


def refresh(names: Sequence[str]) -> None:
    """Keep the printed form of these scenarios as it is now."""
    GOLDEN.mkdir(exist_ok=True)
    for name in names:
        (GOLDEN / f"{name}.txt").write_text(_printed(name), "utf-8")


if __name__ == "__main__":
    refresh(list(INVOICES_BY_NAME))
