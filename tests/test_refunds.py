"""Every refund in two phases ends as its description says, and so does each wrong design beside it.

The printed form of each is kept in `tests/golden/refunds`; `python -m tests.test_refunds` refreshes
it.
"""

import asyncio
import json
import logging
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from click.testing import CliRunner

from landed.cli.audit import written
from landed.cli.main import landed
from landed.core.changes import Kind, Record
from landed.core.contract import Contract, Risk
from landed.core.operation_record import from_record
from landed.core.plan import plan_from
from landed.runtime.auditing import Auditor
from landed.runtime.reader import Reader
from landed.testing.around import Around
from landed.testing.designs import Design
from landed.testing.doubts.stage import DoubtStage, play
from landed.testing.refunds.places import COMMIT, bank
from landed.testing.refunds.real import REAL
from landed.testing.refunds.scenarios import REFUNDS, REFUNDS_BY_NAME
from landed.testing.refunds.scripts import REFUND_SOME, SOON_S, Reviewed
from landed.testing.refunds.stage import RefundScenario, RefundStage, run
from landed.testing.scenario import Ran
from landed.testing.worlds.faults import Fault
from landed.tools.foresight import Foresight
from tests.reading import at, held, texts, when

GOLDEN = Path(__file__).parent / "golden" / "refunds"
WRONG_ONES = [scenario for scenario in REFUNDS if scenario.wrong]
# By the wrong design: ours, in the same world and with the same words.
PAIRS = {
    "refund-conflict-bare": "refund-conflict",
    "refund-fingerprint-naive": "refund-meanwhile",
    "refund-commit-rekeyed": "refund-commit-timeout",
    "refund-commit-replanned": "refund-commit-timeout",
    "refund-expiry-naive": "refund-plan-expired",
    "refund-token-quoted": "refund-plan-declined",
    "refund-inputs-naive": "refund-plan-amended",
}
TOKENS = "ptk_"
LATER = 4e9


@cache
def ended(name: str) -> Ran:
    return run(REFUNDS_BY_NAME[name])


def _named(scenario: RefundScenario) -> str:
    return scenario.name


@pytest.fixture(autouse=True)
def nothing_went_wrong_unseen(caplog: pytest.LogCaptureFixture):
    """A loop that ends by a bug of ours is logged; and no line of any log has a token."""
    yield
    errors = [r.getMessage() for r in caplog.get_records("call") if r.levelno >= logging.ERROR]
    assert not errors
    assert TOKENS not in caplog.text


@pytest.mark.req("S3-19", "S3-20", "S3-21", "S3-22")
@pytest.mark.parametrize("scenario", REFUNDS, ids=_named)
def test_it_ends_as_described(scenario: RefundScenario) -> None:
    ran = ended(scenario.name)

    assert ran.as_described is True
    assert not ran.unwitnessed


@pytest.mark.parametrize("scenario", REFUNDS, ids=_named)
def test_its_timeline_is_the_one_that_was_kept(scenario: RefundScenario) -> None:
    kept = (GOLDEN / f"{scenario.name}.txt").read_text("utf-8")

    assert _printed(scenario.name) == kept, "python -m tests.test_refunds refreshes it"


def test_nothing_is_kept_of_a_scenario_that_is_gone() -> None:
    assert {path.stem for path in GOLDEN.glob("*.txt")} == set(REFUNDS_BY_NAME)


@pytest.mark.services
@pytest.mark.parametrize("seed", range(1, 9))
@pytest.mark.parametrize("scenario", REFUNDS, ids=_named)
def test_it_ends_as_described_on_every_schedule(scenario: RefundScenario, seed: int) -> None:
    assert run(scenario, seed=seed).as_described is True


@pytest.mark.services
@pytest.mark.req("S3-20", "S3-21", "S3-22", "S3-19")
@pytest.mark.parametrize("name", REAL)
def test_it_ends_so_too_with_processes_and_http(name: str) -> None:
    told = json.loads(CliRunner().invoke(landed, ["demo", name, "--json"]).stdout)

    assert told["as_described"] is True
    assert [line for line in told["timeline"] if line["type"] == "process"]


@pytest.mark.req("F3-01", "F3-02", "F3-03", "F3-04", "F3-05", "F3-06", "F3-07")
@pytest.mark.parametrize(("wrong", "right"), PAIRS.items())
def test_a_wrong_design_goes_wrong_in_the_way_described_and_ours_does_not(
    wrong: str, right: str
) -> None:
    went, ours = ended(wrong), ended(right)

    assert (went.as_described, ours.as_described) == (True, True)
    assert texts(went, "model.read")[0] == texts(ours, "model.read")[0]
    assert (went.world, went.reconciled) != (ours.world, ours.reconciled)


def test_each_failure_variant_is_shown_by_a_scenario() -> None:
    assert {scenario.wrong for scenario in WRONG_ONES} == {f"F3-0{n}" for n in range(1, 8)}
    assert set(PAIRS) == {scenario.name for scenario in WRONG_ONES}


# What each of them shows.


@pytest.mark.req("S3-19", "S3-26", "S3-37")
def test_a_read_between_dry_run_and_commit_is_a_step_of_the_plan_and_touches_nothing() -> None:
    ran = ended("refund-planned")

    assert at(ran, "yes") < at(ran, "tool.result", "look_up_shipping") < at(ran, "tool.sent")
    assert when(ran, "tool.sent") - when(ran, "approval") < 1.0
    assert held(ran, "payments") == ("RF1 4412 480.00 by PL1",)


@pytest.mark.req("S3-13", "S3-20", "S3-25", "S3-11")
def test_a_conflict_names_what_moved_sends_nothing_again_and_what_is_left_is_shown_anew() -> None:
    ran = ended("refund-conflict")

    commits = [line for line in texts(ran, "payments") if "commit" in line]
    assert commits == [
        "refused a commit of PL1: the order has changed since PL1 was made",
        "committed PL2: 28000 cents of 4412: RF2",
    ]
    (no,) = [line for line in texts(ran, "tool.result") if "conflict" in line]
    assert "refunded_cents was 0 and is 20000 since the plan of 2026-" in no
    assert "left_cents was 48000 and is 28000" in no
    assert len(texts(ran, "shown")) == 2
    assert "refund 280.00 of 4412: 200.00 refunded before" in texts(ran, "shown")[1]
    (told,) = texts(ran, "model.told")
    assert told.endswith("with the new figures: it is shown before it runs.")
    assert "refund failed" not in " ".join([told, ran.message, *texts(ran, "skip")])


@pytest.mark.req("S3-20", "S3-25")
def test_what_is_agreed_to_after_a_conflict_is_never_the_same_plan_once_more() -> None:
    """Neither is a retry of it offered: its figures are of a world that is gone."""
    ran = ended("refund-conflict")

    asked = texts(ran, "plan.ask")
    assert [line.split("(plan ")[1][:3] for line in asked] == ["PL1", "PL2"]


@pytest.mark.req("S3-21", "S3-22", "S3-24", "S3-16")
def test_a_lost_commit_is_found_out_by_one_path_whether_it_was_applied_or_not() -> None:
    applied = ended("refund-commit-timeout")
    dropped = ended("refund-commit-dropped")

    assert texts(applied, "resolve") == ["op-a1: RF1"]
    assert texts(dropped, "resolve") == [
        "op-a1: nothing has landed",
        "op-a1: sent again with the same key",
    ]
    for ran in (applied, dropped):
        assert held(ran, "payments") == ("RF1 4412 200.00 by PL1",)
        assert len([line for line in texts(ran, "payments") if "committed" in line]) == 1
        assert ran.message.count("RF1") == 1


@pytest.mark.req("S3-05", "S3-14", "S3-26", "K15")
def test_a_plan_that_has_expired_is_not_sent_and_a_new_one_is_shown() -> None:
    ran = ended("refund-plan-expired")

    assert not [line for line in texts(ran, "payments") if "PL1" in line]
    assert "plan: PL1 ▸ PL1, expired at" in ran.message
    assert ["PL1" in line for line in texts(ran, "shown")] == [True, False]


@pytest.mark.req("S3-09", "S3-10", "S3-11")
def test_a_write_of_our_own_makes_a_plan_stale_before_anything_is_sent() -> None:
    ran = ended("refund-plan-stale")

    assert not [line for line in texts(ran, "payments") if "PL1" in line]
    assert "order/4412: as it was previewed ▸ stale: op-a1 has written to it" in ran.message
    assert held(ran, "payments") == ("RF1 4412 200.00 by PL2",)


@pytest.mark.req("S3-08", "F3-05")
def test_a_later_turn_has_no_token_to_quote_and_is_asked_about_a_plan_of_its_own() -> None:
    ran = ended("refund-plan-declined")
    quoted = ended("refund-token-quoted")

    assert held(ran, "payments") == ()
    assert len(texts(ran, "plan.ask")) == 2
    assert TOKENS not in " ".join(texts(ran, "tool.sent"))
    assert TOKENS in " ".join(texts(quoted, "tool.sent"))


@pytest.mark.req("S3-04", "S3-08", "S3-33", "K14")
@pytest.mark.parametrize(
    "scenario", [s for s in REFUNDS if s.name != "refund-token-quoted"], ids=_named
)
def test_a_token_is_in_nothing_that_anybody_is_shown(scenario: RefundScenario) -> None:
    ran, stage = play(scenario, stage_of=RefundStage)

    shown = [ran.plain(), ran.history, ran.story, stage.messages]
    assert TOKENS not in " ".join(map(str, shown))
    records = asyncio.run(_records(stage))
    assert TOKENS in str(records)  # It is kept, with the plan.
    read = asyncio.run(_read(stage, records))
    assert len(read) > 4
    assert TOKENS not in " ".join(read)


@pytest.mark.req("S3-36")
def test_a_new_preview_is_a_new_plan_that_says_what_it_supersedes() -> None:
    _, stage = play(REFUNDS_BY_NAME["refund-plan-expired"], stage_of=RefundStage)

    plans = {record.id: record for record in asyncio.run(_records(stage)) if record.kind == "plan"}
    assert [plans[id].frozen["supersedes"] for id in sorted(plans)] == ["", "plan-1"]


@pytest.mark.req("S3-25", "S3-36")
def test_a_step_that_is_tried_again_never_commits_the_plan_that_was_sent_before() -> None:
    """Its yes was to that plan, so the new one is shown first."""
    moved: list[tuple[object, object]] = []

    async def tries_again(one: Reviewed) -> None:
        heard, plan = await one.present(REFUND_SOME, delivery="d1")
        done = await one.agree(plan, after_s=SOON_S)
        assert done.offer is not None
        again = await one.rt.retry(plan.plan, principal="ana")
        moved.extend((fact.was, fact.now) for fact in again.changed if fact.field == "plan")
        await one.rt.abandon(again.again)
        await one.tell(heard)

    refused = Fault(path=COMMIT, kind="refuse")
    ran = run(RefundScenario(name="again", line="", script=tries_again, place=bank(refused)))

    assert moved == [("PL1", "PL2")]
    assert held(ran, "payments") == ()
    assert len(texts(ran, "tool.sent")) == 1


class Safe(Around):
    """A refund that needs no yes."""

    @property
    def contract(self) -> Contract:
        return replace(self.inner.contract, risk=Risk.SAFE)

    @property
    def foresight(self) -> Foresight:
        assert isinstance(self.inner.foresight, Foresight)
        return replace(self.inner.foresight, declared=Risk.SAFE)


@pytest.mark.req("S3-25", "S3-36")
def test_nor_does_one_that_needs_no_yes_which_is_planned_anew() -> None:
    async def tries_again(one: Reviewed) -> None:
        heard, plan = await one.present(REFUND_SOME, delivery="d1")
        await one.rt.retry(plan.plan, principal="ana")
        await one.tell(heard)

    safe = Design(wrap=lambda tool: Safe(tool) if tool.contract.prepare else tool)
    place = bank(Fault(path=COMMIT, kind="refuse"))
    scenario = RefundScenario(name="again", line="", script=tries_again, place=place, design=safe)

    assert held(run(scenario), "payments") == ("RF1 4412 200.00 by PL2",)


@pytest.mark.req("K14")
def test_what_is_held_is_no_part_of_what_was_agreed_to() -> None:
    _, stage = play(REFUNDS_BY_NAME["refund-planned"], stage_of=RefundStage)

    (plan,) = [plan_from(r) for r in asyncio.run(_records(stage)) if r.kind is Kind.PLAN]
    without = replace(plan, previews=tuple(replace(p, held={}) for p in plan.previews))
    assert plan.previews[1].held
    assert without.hash == plan.hash


@pytest.mark.req("S3-02", "S3-06")
def test_killed_between_the_yes_and_the_commit_the_very_plan_is_committed() -> None:
    """What a dry run said is kept with our plan, and not in a process."""
    scenario = replace(REFUNDS_BY_NAME["refund-commit-timeout"], kill=())
    for point in ("before:send:refund_order", "after:send:refund_order"):
        ran, _ = play(scenario, kill=[point], stage_of=RefundStage)

        assert held(ran, "payments") == ("RF1 4412 200.00 by PL1",), point
        assert ran.reconciled


async def _records(stage: DoubtStage) -> list[Record]:
    reader = Reader(store=stage.base.open_again())
    return await reader.records(tenant="default", session="s1")


async def _read(stage: DoubtStage, records: list[Record]) -> list[str]:
    """Return every value that is read from these records, as its repr and as an auditor sees it."""
    reader = Reader(store=stage.base.open_again())
    auditor = Auditor(reader=reader)
    values: list[object] = [await auditor.trace(record, now=LATER) for record in records]
    for record in records:
        if record.kind is Kind.PLAN:
            plan, audited = plan_from(record), await auditor.audit(record.id, now=LATER)
            values += [plan, audited, *written(audited)]
            values.append(await reader.report(plan.turn, language="en", now=LATER))
        if record.kind is Kind.OPERATION:
            values.append(from_record(record))
    return [str(value) for value in values]


def _printed(name: str) -> str:
    return CliRunner().invoke(landed, ["demo", name, "--history", "--simulated"]).output


def main() -> None:
    """Keep how each scenario is printed now."""
    GOLDEN.mkdir(parents=True, exist_ok=True)
    for scenario in REFUNDS:
        (GOLDEN / f"{scenario.name}.txt").write_text(_printed(scenario.name), "utf-8")


if __name__ == "__main__":
    main()
