"""Every scenario of doubt ends as its description says, and so does each wrong design beside it.

The printed form of each is kept in `tests/golden/doubts`; `python -m tests.test_doubts` refreshes
it.
"""

import logging
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from landed.cli.main import landed
from landed.core.case import Ruling, Why
from landed.testing.around import Around
from landed.testing.doubts.around import LooksAfterClosing
from landed.testing.doubts.places import Bank, Notes, Wallet
from landed.testing.doubts.scenario import DoubtScenario
from landed.testing.doubts.scenarios import DOUBTS, DOUBTS_BY_NAME
from landed.testing.doubts.scripts import refund
from landed.testing.doubts.stage import play, run
from landed.testing.doubts.teller import Teller
from landed.testing.scenario import Ran
from tests.reading import held, texts, when
from tests.sampling import sampled

GOLDEN = Path(__file__).parent / "golden" / "doubts"
RIGHT_ONES = [scenario for scenario in DOUBTS if not scenario.wrong]
WRONG_ONES = [scenario for scenario in DOUBTS if scenario.wrong]
# By the wrong design: ours, in the same world and with the same words.
PAIRS = {
    "refund-timeout-naive": "refund-timeout",
    "refund-key-per-attempt": "refund-timeout",
    "refund-model-key": "refund-asked-again",
    "refund-in-context": "refund-restart",
    "lagging-read-naive": "lagging-read",
    "silent-no-op-naive": "silent-no-op",
    "key-retention-naive": "key-retention",
    "changed-amount-naive": "changed-amount",
    "changed-amount-mutable": "changed-amount-dropped",
    "wallet-naive": "wallet",
    "file-write-naive": "file-write",
    "close-is-not-proof-naive": "close-is-not-proof",
    "unexplained-recovery-naive": "unexplained-recovery",
    "undecided-two-states": "undecided",
    "undecided-nobody": "undecided",
    "reconciler-twice-naive": "reconciler-twice",
}
ASKED = (
    *("refund-timeout", "lagging-read", "silent-no-op", "key-retention", "changed-amount"),
    *("wallet", "file-write", "close-is-not-proof", "unexplained-recovery", "undecided"),
    "reconciler-twice",
)


def _named(scenario: DoubtScenario) -> str:
    return scenario.name


@pytest.fixture(autouse=True)
def nothing_went_wrong_unseen(caplog: pytest.LogCaptureFixture):
    """A loop that ends by a bug of ours is logged; a scenario may end well all the same."""
    yield
    errors = [r.getMessage() for r in caplog.get_records("call") if r.levelno >= logging.ERROR]
    assert not errors


# As described.


@pytest.mark.req("S4-02", "S4-08")
@pytest.mark.parametrize("scenario", DOUBTS, ids=_named)
def test_it_ends_as_described(scenario: DoubtScenario) -> None:
    ran = run(scenario)

    assert ran.as_described is True
    assert texts(ran, "crash") == list(scenario.kill)
    assert not ran.unwitnessed


@pytest.mark.parametrize("scenario", DOUBTS, ids=_named)
def test_on_another_schedule_it_ends_so_too_and_two_runs_are_the_same_in_every_line(
    scenario: DoubtScenario,
) -> None:
    ran = run(scenario, seed=7)

    assert ran.as_described is True
    assert run(scenario, seed=7).plain() == ran.plain()


@pytest.mark.services
@pytest.mark.parametrize("seed", range(1, 9))
@pytest.mark.parametrize("scenario", DOUBTS, ids=_named)
def test_it_ends_as_described_on_every_schedule(scenario: DoubtScenario, seed: int) -> None:
    assert run(scenario, seed=seed).as_described is True


@pytest.mark.parametrize("scenario", DOUBTS, ids=_named)
def test_its_timeline_is_the_one_that_was_kept(scenario: DoubtScenario) -> None:
    kept = (GOLDEN / f"{scenario.name}.txt").read_text("utf-8")

    assert _printed(scenario.name) == kept, "python -m tests.test_doubts refreshes it"


def test_nothing_is_kept_of_a_scenario_that_is_gone() -> None:
    assert {path.stem for path in GOLDEN.glob("*.txt")} == set(DOUBTS_BY_NAME)


def test_all_that_was_asked_for_are_there_with_a_wrong_design_beside_each() -> None:
    assert set(ASKED) <= set(DOUBTS_BY_NAME)
    assert set(PAIRS) == {scenario.name for scenario in WRONG_ONES}
    assert set(ASKED) <= {*PAIRS.values()}


def test_an_end_that_is_not_the_described_one_is_seen() -> None:
    ran = run(DOUBTS_BY_NAME["undecided"])

    for wrong in ("undecided-two-states", "undecided-nobody", "lagging-read-naive"):
        assert replace(ran, scenario=DOUBTS_BY_NAME[wrong]).as_described is False
    assert replace(ran, world={**ran.world, "cases": [{"text": "C1"}]}).as_described is False
    assert replace(ran, message="Done.").as_described is False


def test_a_scenario_of_doubt_takes_no_switches() -> None:
    said = CliRunner().invoke(landed, ["demo", "lagging-read", "--no-fencing"])

    assert said.exit_code == 2
    assert "wrong designs are scenarios of their own" in said.output


# Wrong designs.


@pytest.mark.req("F4-01", "F4-02", "F4-03", "F4-04", "F4-05", "F4-06", "F4-07", "F4-08")
@pytest.mark.req("F4-10", "F4-11", "F4-12", "F4-13")
@pytest.mark.parametrize(("wrong", "right"), PAIRS.items())
def test_a_wrong_design_goes_wrong_in_the_way_described_and_ours_does_not(
    wrong: str, right: str
) -> None:
    went, ours = run(DOUBTS_BY_NAME[wrong]), run(DOUBTS_BY_NAME[right])

    assert went.as_described is True
    assert ours.as_described is True
    assert texts(went, "model.read")[0] == texts(ours, "model.read")[0]
    ended = (went.world, went.reconciled, went.message)
    assert ended != (ours.world, ours.reconciled, ours.message)


def test_each_failure_variant_is_shown_by_a_scenario() -> None:
    # F4-09 is about leases: `tests/test_deploys.py` shows it.
    shown = {scenario.wrong for scenario in WRONG_ONES if scenario.wrong.startswith("F4-")}

    assert shown == {f"F4-{n:02}" for n in range(1, 14)} - {"F4-09"}


# One refund, whenever a process dies.

POINTS_MIN = 8
# Where nobody is there for a day, a doubt may also be found out after the end of the script.
KILLED = sampled([scenario for scenario in RIGHT_ONES if not scenario.away_s], every=5)


@pytest.mark.req("S4-40", "S4-47", "S4-30")
@pytest.mark.parametrize("scenario", KILLED, ids=_named)
def test_killed_anywhere_it_has_no_effect_twice_and_tells_no_untruth(
    scenario: DoubtScenario,
) -> None:
    """What is not settled in the end is a case in front of a person."""
    points = _points(scenario, nth_max=1)

    assert len(points) >= (POINTS_MIN if not scenario.kill else 1)
    for point in points:
        _is_true_when_killed_at(point, scenario)


@pytest.mark.services
@pytest.mark.timeout(600)
@pytest.mark.req("S4-40", "S4-47")
@pytest.mark.parametrize("scenario", KILLED, ids=_named)
def test_killed_at_any_look_it_is_the_same(scenario: DoubtScenario) -> None:
    for point in _points(scenario, nth_max=100):
        _is_true_when_killed_at(point, scenario)


def _points(scenario: DoubtScenario, *, nth_max: int) -> list[str]:
    """Return the points that the first process of an unkilled run passes."""
    passed = run(scenario, kill=()).points[0]
    return [str(point) for point in passed if point.nth <= nth_max]


def _is_true_when_killed_at(point: str, scenario: DoubtScenario) -> None:
    ran, stage = play(scenario, kill=[point])
    assert texts(ran, "crash") == [point]
    assert not ran.unwitnessed, point
    assert _effects(ran) <= max(len(scenario.holds), 1), point
    assert ran.reconciled or ran.world["cases"], f"{point}: {ran.message}"
    if isinstance(stage.place, Wallet):
        assert len(set(stage.place.broadcast)) == 1, point


def _effects(ran: Ran) -> int:
    return len(next(iter(ran.world.values())))


# What each of them shows.


@pytest.mark.req("S4-07", "S4-51", "S4-42")
def test_a_model_that_calls_again_while_nobody_knows_hears_of_the_first_call() -> None:
    ran = run(DOUBTS_BY_NAME["refund-asked-again"])

    assert "op-a2 waits for op-a1" in texts(ran, "skip")[0]
    assert len(texts(ran, "tool.sent")) == 1


@pytest.mark.req("S4-35", "S4-37", "S4-34")
@pytest.mark.fault("X55")
def test_a_position_makes_an_absence_a_no_and_without_one_it_is_too_early() -> None:
    ran = run(DOUBTS_BY_NAME["lagging-read-positions"])

    early = [line for line in texts(ran, "resolve") if line == "op-a1: nothing has landed"]
    assert len(early) > 3
    no, yes = when(ran, "resolve", "op-a1: not there, read at or after"), "op-a2: RF1"
    assert no - when(ran, "tool.result", "the service took it") >= 30.0
    assert when(ran, "resolve", yes) >= 30.0
    assert not any("sent again" in line for line in texts(ran, "resolve"))


@pytest.mark.req("S4-37", "S4-35")
def test_nothing_is_sent_on_the_word_of_a_replica_that_lags() -> None:
    ran = run(DOUBTS_BY_NAME["lagging-read"])

    assert len(texts(ran, "tool.sent")) == 1
    assert when(ran, "resolve", "RF1") > 30.0


@pytest.mark.req("S4-32")
@pytest.mark.field("E6")
@pytest.mark.fault("X59")
def test_a_silent_drop_is_failed_with_a_position_unknown_without_and_never_confirmed() -> None:
    with_one, without = (run(DOUBTS_BY_NAME[f"silent-no-op{which}"]) for which in ("", "-unknown"))

    assert "A17 was not refunded" in with_one.message
    assert "I may have refunded" in without.message
    assert held(without, "cases") == ("C1 refund_order undecided",)
    for ran in (with_one, without):
        assert held(ran, "payments") == ()
        assert len(texts(ran, "tool.sent")) == 1


@pytest.mark.req("S4-33")
def test_what_never_became_visible_goes_again_under_its_key_where_that_is_safe() -> None:
    keyed, unkeyed = (run(DOUBTS_BY_NAME[f"silent-no-op-{w}"]) for w in ("resent", "unknown"))

    assert [line for line in texts(keyed, "resolve") if "sent again with the same key" in line]
    assert held(keyed, "payments") == ("RF1 A17 40.00",)
    assert not [line for line in texts(unkeyed, "resolve") if "sent again" in line]


@pytest.mark.req("S4-38")
@pytest.mark.field("G3")
@pytest.mark.fault("X56")
def test_past_the_retention_of_its_key_it_is_looked_for_and_not_sent() -> None:
    ran = run(DOUBTS_BY_NAME["key-retention"])

    assert when(ran, "restart") >= 25 * 3_600
    assert len(texts(ran, "tool.sent")) == 1
    assert not [line for line in texts(ran, "resolve") if "sent again" in line]
    assert any("may have forgotten it" in line for line in texts(ran, "resolve"))
    assert texts(ran, "sweep") == ["refund_order: 1 listed, 1 settled"]
    assert held(ran, "cases") == ()  # That a forgotten key shows nothing needs no explanation.


@pytest.mark.req("S4-15", "S4-16", "S4-19", "S4-44")
def test_another_amount_waits_for_the_first_and_then_only_the_difference_goes_out() -> None:
    ran = run(DOUBTS_BY_NAME["changed-amount"])

    blocked = when(ran, "skip", "op-a2 waits for op-a1")
    assert blocked < when(ran, "resolve", "op-a1: RF1")
    sent = texts(ran, "tool.sent")
    assert [line.split("cents=")[1].split(",")[0] for line in sent] == ["10000", "2000"]
    assert held(ran, "payments") == ("RF1 A17 100.00", "RF2 A17 20.00")


@pytest.mark.req("S4-17", "F4-13")
def test_what_goes_again_is_what_was_agreed_to_whatever_is_wanted_since() -> None:
    ours = run(DOUBTS_BY_NAME["changed-amount-dropped"])
    theirs = run(DOUBTS_BY_NAME["changed-amount-mutable"])

    assert held(ours, "payments")[0] == "RF1 A17 100.00"
    assert held(theirs, "payments") == ("RF1 A17 120.00",)
    agreed = "refund_order(order=A17, cents=10000"
    assert all(any(agreed in line for line in texts(ran, "tool.sent")) for ran in (ours, theirs))
    assert not theirs.reconciled  # What is recorded as agreed to is not what was paid.


@pytest.mark.req("S4-45")
@pytest.mark.parametrize(("name", "broadcasts"), [("wallet", 1), ("wallet-forgotten", 2)])
def test_the_same_bytes_are_broadcast_again_and_never_signed_anew(
    name: str, broadcasts: int
) -> None:
    ran, stage = play(DOUBTS_BY_NAME[name])

    assert isinstance(stage.place, Wallet)
    assert (len(stage.place.broadcast), len(set(stage.place.broadcast))) == (broadcasts, 1)
    assert held(ran, "chain") == ("T1 ana > bob 10",)


@pytest.mark.req("S4-46")
def test_a_file_is_written_once_although_the_tool_said_that_it_failed() -> None:
    ran, stage = play(DOUBTS_BY_NAME["file-write"])

    assert isinstance(stage.place, Notes)
    assert len(texts(ran, "tool.sent")) == 1
    assert any("EIO" in line for line in texts(ran, "tool.unknown"))
    assert held(ran, "folder") == ("notes/plan.txt: draft 1, with ana's changes",)


@pytest.mark.req("S4-08", "S4-22")
def test_a_close_that_anybody_is_answered_settles_nothing_by_itself() -> None:
    """Where nothing arrives, it ends as a case and never as a no."""
    right = DOUBTS_BY_NAME["close-is-not-proof"]
    assert "not knowable yet" in texts(run(right), "resolve")[0]

    def nothing_arrives(world: object) -> Bank:
        bank = right.place(world)  # type: ignore[arg-type]
        assert isinstance(bank, Bank)
        lost = replace(bank.faults[0], kind="drop", hang=True)
        return replace(bank, faults=(lost, *bank.faults[1:]))

    ran = run(replace(right, place=nothing_arrives))
    assert held(ran, "payments") == ()
    assert held(ran, "cases") == ("C1 refund_order undecided",)
    assert issubclass(LooksAfterClosing, Around)


@pytest.mark.req("S4-31")
def test_a_recovery_that_nothing_explains_waits_for_a_signature_and_the_signature_is_kept() -> None:
    signed: list[str] = []

    async def signs(teller: Teller) -> None:
        await refund(teller)
        (case,) = await teller.cases()
        assert case.why is Why.UNEXPLAINED
        assert "after 3 looks that had to see it" in " ".join(one.says for one in case.evidence)
        await teller.rule(case, Ruling.SIGN_OFF, note="their replica was an hour behind")
        signed.append(case.id)
        assert await teller.cases() == ()

    right = DOUBTS_BY_NAME["unexplained-recovery"]
    ran = run(replace(right, script=signs))

    missed = [line for line in texts(ran, "resolve") if line.endswith("nothing has landed")]
    assert len(missed) >= 3
    assert held(ran, "payments") == ("RF1 A17 40.00",)
    assert held(run(right), "cases") == ("C1 refund_order unexplained",)
    assert texts(ran, "case")[-1] == "op-a1 unexplained: is closed by eva"
    assert len(signed) == 1
    assert texts(run(DOUBTS_BY_NAME["unexplained-recovery-naive"]), "case") == []


@pytest.mark.req("S4-36", "S4-50", "S4-53", "S4-52")
def test_past_its_deadline_it_is_a_case_nothing_is_sent_and_a_person_rules() -> None:
    ran = run(DOUBTS_BY_NAME["undecided"])

    gave_up = when(ran, "resolve", "nobody answered in time")
    assert 900.0 <= gave_up < 960.0
    assert len(texts(ran, "tool.sent")) == 1
    assert not [line for line in texts(ran, "resolve") if "sent again" in line]
    assert texts(ran, "ruling") == [
        "eva rules landed on undecided: searched for op-a1 in their books"
    ]
    assert held(ran, "cases") == ()


@pytest.mark.req("S4-50", "F4-06")
def test_without_a_reconciler_a_doubt_stays_one_and_nobody_sees_it() -> None:
    ran = run(DOUBTS_BY_NAME["undecided-nobody"])

    assert ran.timeline.lines[-1].type == "tool.unknown"
    assert held(ran, "cases") == ()
    assert not ran.reconciled


@pytest.mark.req("S4-08", "S4-24")
@pytest.mark.parametrize("seed", [None, *range(1, 13)])
@pytest.mark.parametrize("together", [2, 3])
def test_processes_that_reconcile_at_once_put_one_question_and_settle_it_once(
    seed: int | None, together: int
) -> None:
    scenario = replace(DOUBTS_BY_NAME["reconciler-twice"], together=together)
    ran, stage = play(scenario, seed=seed)

    assert isinstance(stage.place, Bank)
    assert stage.place.asked == ["/keys/op-a1"]
    assert [line for line in texts(ran, "resolve") if "RF1" in line] == ["op-a1: RF1"]
    assert len(texts(ran, "restart")) == together
    assert ran.as_described is True


def _printed(name: str) -> str:
    return CliRunner().invoke(landed, ["demo", name, "--history"]).output


def main() -> None:
    """Keep how each scenario is printed now."""
    GOLDEN.mkdir(parents=True, exist_ok=True)
    for scenario in DOUBTS:
        (GOLDEN / f"{scenario.name}.txt").write_text(_printed(scenario.name), "utf-8")


if __name__ == "__main__":
    main()
