"""A change of mind in mid-request, played: what is asked, sent, released and told, and when."""

import asyncio
import logging
from dataclasses import replace
from typing import Any, cast

import pytest

from landed.core.changes import Kind, Record
from landed.core.errors import ContractError
from landed.core.store import Store
from landed.core.value import Assumed, Undecided
from landed.testing import wishes
from landed.testing.acting import Agent
from landed.testing.booking import booking_tools
from landed.testing.designs import KEY_PER_STEP, RIGHT
from landed.testing.revisions import SCENARIOS
from landed.testing.scenario import Scenario, run
from landed.testing.scenarios import BY_NAME
from landed.testing.wishes import FRIDAY, GROUP, SATURDAY, SATURDAY_SECOND
from landed.testing.worlds.faults import Fault
from landed.testing.worlds.restaurant import Restaurant
from tests.reading import at, held, texts, when
from tests.sampling import sampled

NAMES = (
    "no-lookup crash-ops-lost revise-in-flight revise-in-flight-naive revise-delayed"
    " revise-delayed-lookup-only revise-time revise-keep revise-unsure revise-back"
    " revise-after-text revise-text-unconfirmed revise-no-lookup key-reuse-lenient"
    " key-reuse-strict key-too-fine replacement-full replacement-full-release-first"
    " fee-consent fee-changed fee-declined late-confirmation revise-crash-after-commit"
    " revise-crash-before-release revise-ops-lost acknowledged-input turn-without-the-user"
)
RIGHT_ONES = [scenario for scenario in SCENARIOS if scenario.design is RIGHT]
IN_FLIGHT = BY_NAME["revise-in-flight"]
AFTER_TEXT = BY_NAME["revise-after-text"]


def _named(scenario: Scenario) -> str:
    return scenario.name


@pytest.fixture(autouse=True)
def nothing_went_wrong_unseen(caplog: pytest.LogCaptureFixture):
    """A loop that ends by a bug of ours is logged; a scenario may end well all the same."""
    yield
    errors = [r.getMessage() for r in caplog.get_records("call") if r.levelno >= logging.ERROR]
    assert not errors


# As described.


@pytest.mark.parametrize("seed", sampled([None, 1, 2, 3], every=2))
@pytest.mark.parametrize("scenario", SCENARIOS, ids=_named)
def test_it_ends_as_described_on_every_schedule(scenario: Scenario, seed: int | None) -> None:
    ran = run(scenario, seed=seed)

    assert ran.as_described is True, (held(ran), held(ran, "texts"), ran.reconciled, ran.message)
    assert texts(ran, "crash") == list(scenario.kill)


def test_every_name_that_was_asked_for_is_there() -> None:
    assert set(NAMES.split()) <= {scenario.name for scenario in SCENARIOS}


@pytest.mark.req("S0-03", "S0-06", "F0-01")
def test_a_stopped_wait_taken_for_a_cancellation_is_two_tables_and_one_is_never_mentioned() -> None:
    right, naive = run(IN_FLIGHT), run(BY_NAME["revise-in-flight-naive"])

    assert texts(naive, "tool.cancelled") == ["T1 reserve_table: cancelled"]
    assert held(naive) == (FRIDAY, SATURDAY_SECOND)
    assert not any("R1" in item.text for item in (*naive.history, *naive.story))
    assert "R1" not in naive.message
    assert (right.reconciled, naive.reconciled) == (True, False)
    assert texts(right, "model.read") == texts(naive, "model.read")


# The undelayed revision.


@pytest.mark.req("S0-28", "S0-44", "S0-29", "S0-22")
@pytest.mark.field("H8")
def test_found_out_then_secured_then_released() -> None:
    ran = run(IN_FLIGHT)

    order = [
        at(ran, "tool.unknown", "T1 reserve_table: stopped waiting"),
        at(ran, "resolve", "s1:op-a2: R1; key closed"),
        at(ran, "tool.sent", "reserve_table(day=Sat"),
        at(ran, "restaurant", "committed R2 Sat 19:00 x4"),
        at(ran, "compensate", "R1: the replacement holds"),
        at(ran, "restaurant", "cancelled R1"),
        at(ran, "texts", "texted group 'table for 4, Sat 19:00'"),
    ]
    assert order == sorted(order)
    assert held(ran) == (SATURDAY_SECOND,)
    assert "key=s1:op-a4" in texts(ran, "tool.sent")[1]
    assert "Booked R2" in ran.message
    assert "Cancelled R1" in ran.message


@pytest.mark.req("S0-08")
def test_only_what_was_said_changes() -> None:
    ran = run(IN_FLIGHT)

    assert texts(ran, "model.read")[-1] == "revises T1: day=Sat"
    sent = texts(ran, "tool.sent")
    assert sent[0].startswith("T1 reserve_table(day=Fri, time=19:00, party=4)")
    assert sent[1].startswith("T2 reserve_table(day=Sat, time=19:00, party=4)")


@pytest.mark.req("S0-10")
def test_what_does_not_match_is_marked_and_nothing_is_cancelled_at_that_moment() -> None:
    changed, kept = run(IN_FLIGHT), run(BY_NAME["revise-keep"])

    marked = at(changed, "release", "T2 op-a2: owed if it landed")
    assert marked == at(changed, "model.read", "revises") + 2
    assert at(changed, "restaurant", "committed R2") > marked
    assert at(changed, "restaurant", "cancelled R1") > marked
    assert texts(kept, "skip") == [
        "T1 text_group: not done, superseded by T2",
        "T2 reserve_table: kept, op-a2",
    ]
    assert not texts(kept, "release")


@pytest.mark.req("S0-12")
def test_another_hour_is_another_table_and_the_old_one_goes_after_it_holds() -> None:
    ran = run(BY_NAME["revise-time"])

    assert held(ran) == ("R2 Fri 20:00 x4",)
    assert at(ran, "restaurant", "cancelled R1") > at(ran, "restaurant", "committed R2")


@pytest.mark.req("S0-13")
def test_what_is_kept_is_not_asked_for_again() -> None:
    ran = run(BY_NAME["revise-keep"])

    assert [sent.split("(")[0] for sent in texts(ran, "tool.sent")] == [
        "T1 reserve_table",
        "T2 text_group",
    ]
    assert texts(ran, "texts") == ["texted Sam 'table for 4, Fri 19:00'"]
    assert held(ran) == (FRIDAY,)


@pytest.mark.req("S0-14", "S4-29")
@pytest.mark.parametrize("pause_s", [0.0, 0.005, 0.015, 0.025, 0.035])
def test_a_release_turns_back_into_kept_whenever_the_user_says_so(pause_s: float) -> None:
    async def there_and_back(agent: Agent) -> None:
        heard, plan = await agent.start(GROUP, delivery="d1")
        await agent.until("restaurant", "committed R1")
        second, revised = await agent.begin_change(heard.turn, SATURDAY, delivery="d2")
        await agent.until("release", "owed if it landed")
        await asyncio.sleep(pause_s)  # virtual time
        third = await agent.change(second.turn, wishes.FRIDAY_AFTER_ALL, delivery="d3")
        await asyncio.gather(plan, revised)
        await agent.answer(third)

    ran = run(replace(IN_FLIGHT, script=there_and_back))

    assert held(ran) == (FRIDAY,)
    assert any(line.endswith("kept, wanted after all") for line in texts(ran, "release"))
    assert "cancelled R1" not in texts(ran, "restaurant")
    assert ran.reconciled
    assert "R1 (Fri 19:00 for 4) stays as it is" in ran.message


@pytest.mark.req("S0-16")
def test_a_read_in_flight_is_dropped_and_nobody_is_asked_about_it() -> None:
    async def while_looking(agent: Agent) -> None:
        heard, plan = await agent.start(GROUP, delivery="d1")
        await asyncio.sleep(0.005)  # virtual time
        heard = await agent.change(heard.turn, SATURDAY, delivery="d2")
        await plan
        await agent.answer(heard)

    ran = run(replace(IN_FLIGHT, script=while_looking, faults=()))

    assert texts(ran, "tool.cancelled") == ["T1 check_availability: stopped waiting"]
    assert not texts(ran, "resolve")
    assert held(ran) == ("R1 Sat 19:00 x4",)


# Words that cannot be read for sure.


@pytest.mark.req("S0-09")
def test_an_unsure_reading_interrupts_nothing_and_asks() -> None:
    ran = run(BY_NAME["revise-unsure"])

    assert not texts(ran, "interrupt")
    assert not texts(ran, "release")
    assert held(ran) == (FRIDAY,)
    assert ran.message == "Do you mean Saturday instead of Friday, or as well?"


@pytest.mark.req("S0-09")
@pytest.mark.parametrize("answer", ["instead", "as-well"])
def test_either_answer_to_the_question_works_though_the_turn_has_ended_meanwhile(
    answer: str,
) -> None:
    ran = run(BY_NAME[f"revise-unsure-{answer}"])

    assert at(ran, "tool.result", "T1 text_group: M1") < at(ran, "input", "T3 user")
    assert held(ran) == ((SATURDAY_SECOND,) if answer == "instead" else (FRIDAY, SATURDAY_SECOND))
    assert ran.reconciled


# Close, and its absence.


@pytest.mark.req("F0-03", "S0-24")
def test_a_closed_key_refuses_the_late_request() -> None:
    ran = run(BY_NAME["revise-delayed"])

    assert texts(ran, "restaurant")[-1] == "refused a late request: key s1:op-a2 is closed"
    assert held(ran) == ("R1 Sat 19:00 x4",)


@pytest.mark.req("F0-02", "S0-23")
def test_without_a_close_not_found_is_no_no_and_friday_lands_after_all() -> None:
    ran = run(BY_NAME["revise-delayed-lookup-only"])

    assert texts(ran, "resolve") == ["s1:op-a2: nothing has landed"]
    assert held(ran) == ("R1 Sat 19:00 x4", "R2 Fri 19:00 x4")
    assert "Fri" not in ran.message


@pytest.mark.req("S0-26")
def test_a_right_design_without_a_close_waits_for_the_deadline_of_the_service() -> None:
    restaurant = Restaurant(strict=True, can_close=False, refuses_after_s=60.0)
    ran = run(replace(BY_NAME["revise-delayed"], restaurant=restaurant))
    late = (Fault(path=wishes.RESERVE, kind="delay_request", seconds=80.0),)
    later = run(replace(BY_NAME["revise-delayed"], restaurant=restaurant, faults=late))

    # It lands within its time: found, replaced, released. Or it is too old when it comes.
    assert held(ran) == (SATURDAY_SECOND,)
    assert held(later) == ("R1 Sat 19:00 x4",)
    assert when(later, "tool.sent", "reserve_table(day=Sat") > 60.0
    assert ran.reconciled
    assert later.reconciled


# Keys.


@pytest.mark.req("F0-04")
def test_a_key_for_each_step_cancels_the_only_table() -> None:
    ran = run(BY_NAME["key-reuse-lenient"])

    assert texts(ran, "restaurant")[-2:] == ["replayed R1", "cancelled R1"]
    assert held(ran) == ()


@pytest.mark.req("S0-31")
@pytest.mark.fault("X58")
def test_what_the_replacement_returned_is_never_released() -> None:
    ran = run(replace(BY_NAME["key-reuse-lenient"], design=KEY_PER_STEP))

    assert held(ran) == (FRIDAY,)
    assert "cancelled R1" not in texts(ran, "restaurant")
    (asked,) = texts(ran, "compensate.ask")
    assert "You still hold R1" in asked
    assert "returned the same thing" in asked


@pytest.mark.req("S0-30", "F0-05")
def test_a_key_reused_with_other_details_is_refused_and_what_is_held_is_kept() -> None:
    ran = run(BY_NAME["key-reuse-strict"])

    (refused,) = [line for line in texts(ran, "tool.result") if "refused" in line]
    assert "used with other details" in refused
    assert held(ran) == (FRIDAY,)
    assert len(texts(ran, "compensate.ask")) == 1


@pytest.mark.req("F0-06", "S0-32")
def test_a_key_that_depends_on_the_process_books_twice_and_ours_does_not() -> None:
    fine = BY_NAME["key-too-fine"]
    ran, ours = run(fine), run(replace(fine, design=RIGHT))

    assert held(ran) == (FRIDAY, "R2 Fri 19:00 x4")
    assert held(ours) == (FRIDAY,)
    assert ours.reconciled


# Waiting instead of stopping.


@pytest.mark.req("S0-33", "S0-34", "K2")
def test_the_receipt_is_waited_for_and_a_correction_planned() -> None:
    ran = run(AFTER_TEXT)

    waited_s = when(ran, "tool.result", "T1 text_group") - when(ran, "interrupt")
    assert 0.0 < waited_s < 0.05
    assert not texts(ran, "tool.unknown")
    assert held(ran, "texts") == (wishes.TOLD_FRIDAY, wishes.CORRECTED)


@pytest.mark.req("S0-33", "S0-35", "K10", "K2")
@pytest.mark.fault("X69")
def test_without_a_receipt_it_is_treated_as_sent_and_said_so() -> None:
    values: list[object] = []

    async def look_after(agent: Agent) -> None:
        await wishes.saturday_after_the_text(agent)
        values.append(await agent.rt.status("op-a3"))

    ran = run(replace(BY_NAME["revise-text-unconfirmed"], script=look_after))

    waited_s = when(ran, "tool.unknown", "T1 text_group") - when(ran, "interrupt")
    assert waited_s == pytest.approx(0.05, abs=0.011)
    assert isinstance(values[0], Assumed)
    assert held(ran, "texts") == (wishes.TOLD_FRIDAY, wishes.CORRECTED)
    assert "I couldn't confirm it, so I've treated it as sent" in ran.message
    assert not ran.reconciled


@pytest.mark.req("S0-36")
def test_a_table_may_not_be_assumed() -> None:
    with pytest.raises(ContractError, match="harmless only for what cannot be taken back"):
        booking_tools("http://restaurant.test", wishes.CHARGES, assume_after_s=0.05)


@pytest.mark.req("K2")
def test_a_call_that_must_finish_is_waited_for() -> None:
    slow = (Fault(path=wishes.RESERVE, kind="delay_reply", seconds=2.0),)
    ran = run(replace(IN_FLIGHT, promises={"on_interrupt": "finish"}, faults=slow))

    assert when(ran, "tool.result", "T1 reserve_table: R1") > 2.0
    assert not texts(ran, "tool.unknown")
    assert ran.as_described


@pytest.mark.req("F0-11")
def test_a_text_written_off_as_cancelled_is_never_corrected() -> None:
    ran = run(BY_NAME["revise-after-text-naive"])

    assert texts(ran, "tool.cancelled") == ["T1 text_group: cancelled"]
    assert not any("Change of plan" in one for one in held(ran, "texts"))


@pytest.mark.req("K22")
def test_one_call_of_a_plan_that_cannot_be_undone_as_a_whole_is_taken_back() -> None:
    ran = run(AFTER_TEXT)

    assert at(ran, "texts", "table for 4, Fri") < at(ran, "restaurant", "cancelled R1")
    assert held(ran) == (SATURDAY_SECOND,)


# Secure first, or release first.


@pytest.mark.req("S0-45", "F0-08")
@pytest.mark.parametrize(("answer", "holds"), [(None, (FRIDAY,)), ("no", (FRIDAY,)), ("yes", ())])
def test_where_the_replacement_is_full_the_user_says_what_becomes_of_friday(
    answer: str | None, holds: tuple[str, ...]
) -> None:
    scripts = {
        None: wishes.saturday,
        "no": wishes.saturday_no,
        "yes": wishes.saturday_yes,
    }
    ran = run(replace(BY_NAME["replacement-full"], script=scripts[answer]))

    (asked,) = texts(ran, "compensate.ask")
    assert "You still hold R1 (Fri 19:00 for 4)" in asked
    assert held(ran) == holds
    assert ran.reconciled
    told = {None: "You still hold R1", "no": "R1 (Fri 19:00 for 4) stays", "yes": "Cancelled R1"}
    assert told[answer] in ran.message


@pytest.mark.req("S0-46", "F0-07", "K16", "S0-41")
def test_release_first_is_told_before_it_is_done_and_may_leave_nothing() -> None:
    full = run(BY_NAME["replacement-full-release-first"])
    free = run(replace(BY_NAME["replacement-full-release-first"], restaurant=Restaurant()))

    assert held(full) == ()
    assert held(free) == (SATURDAY_SECOND,)
    for ran in (full, free):
        told = at(ran, "message", "I give up R1 (Fri 19:00 for 4)")
        assert told < at(ran, "tool.sent", "cancel_reservation")
        assert at(ran, "restaurant", "cancelled R1") < at(ran, "tool.sent", "reserve_table(day=Sat")
        announced = next(i for i, item in enumerate(ran.history) if "I give up R1" in item.text)
        done = next(i for i, item in enumerate(ran.history) if "Cancelled R1" in item.text)
        assert announced < done


# What it costs, and who has to agree.


@pytest.mark.req("S0-47", "S0-48")
def test_a_fee_is_asked_about_and_paid_as_agreed() -> None:
    ran = run(BY_NAME["fee-consent"])

    assert texts(ran, "compensate.ask") == [
        "A1: Taking back R1 (Fri 19:00 for 4) costs 20.00. Shall I?"
    ]
    assert at(ran, "approval") == at(ran, "input", "T3 user: yes") + 1
    assert texts(ran, "approval") == ["A1: runs exactly its 1 step(s), ana said yes"]
    cancels = [sent for sent in texts(ran, "tool.sent") if "cancel_reservation" in sent]
    assert len(cancels) == 1
    assert cancels[0].startswith("T3 cancel_reservation(id=R1, fee_cents=2000)")
    assert at(ran, "tool.sent", "cancel_reservation") > at(ran, "approval")
    assert texts(ran, "restaurant")[-1] == "cancelled R1 (fee 20)"


@pytest.mark.req("S0-49")
@pytest.mark.field("H7")
@pytest.mark.fault("X68")
def test_at_another_fee_nothing_is_cancelled_and_the_user_is_asked_again() -> None:
    ran = run(BY_NAME["fee-changed"])

    assert held(ran) == (FRIDAY, SATURDAY_SECOND)
    assert texts(ran, "restaurant")[-1] == "refused a request: cancelling R1 costs 30 now"
    first, second = texts(ran, "compensate.ask")
    assert "costs 20.00" in first
    assert "costs 30.00" in second


@pytest.mark.req("S0-50")
def test_a_no_to_the_fee_leaves_both_and_names_both() -> None:
    ran = run(BY_NAME["fee-declined"])

    assert held(ran) == (FRIDAY, SATURDAY_SECOND)
    assert ran.message == "R1 (Fri 19:00 for 4) stays, beside R2 (Sat 19:00 for 4)."
    assert not any("cancel_reservation" in sent for sent in texts(ran, "tool.sent"))


@pytest.mark.req("S0-51", "K25")
def test_what_nobody_asked_for_needs_a_yes_though_it_costs_nothing() -> None:
    async def rain_and_yes(agent: Agent) -> None:
        await wishes.rain(agent)
        await agent.answer(await agent.say("yes", delivery="d4"))

    unasked, agreed = (
        run(replace(BY_NAME["turn-without-the-user"], script=script))
        for script in (wishes.rain, rain_and_yes)
    )

    assert held(unasked) == (FRIDAY, SATURDAY_SECOND)
    assert len(texts(unasked, "compensate.ask")) == 1
    assert held(agreed) == (SATURDAY_SECOND,)
    # The same by the user, and at no cost, is not asked about.
    assert not texts(run(IN_FLIGHT), "compensate.ask")


# Nobody can tell.


@pytest.mark.req("S0-64")
def test_what_nobody_can_check_is_told_as_a_doubt() -> None:
    values: list[object] = []

    async def look_after(agent: Agent) -> None:
        await wishes.saturday_unknowable(agent)
        values.append(await agent.rt.status("op-a2"))

    ran = run(replace(BY_NAME["revise-no-lookup"], script=look_after))

    assert isinstance(values[0], Undecided)
    for words in (
        "I may have booked Fri 19:00",
        "the restaurant never confirmed, and I can't check",
        "tell me and I will take it back",
        "Booked R2 (Sat 19:00 for 4)",
        "Texted group",
    ):
        assert words in ran.message


@pytest.mark.req("S0-65")
@pytest.mark.parametrize("fee_cents", [0, 2000])
def test_a_confirmation_that_is_handed_in_sets_the_release_off(fee_cents: int) -> None:
    async def confirmed_and_agreed(agent: Agent) -> None:
        await wishes.saturday_then_a_confirmation(agent)
        if fee_cents:
            await agent.answer(await agent.say("yes", delivery="d5"))

    late = BY_NAME["late-confirmation"]
    restaurant = replace(late.restaurant, fee_cents=fee_cents)
    ran = run(replace(late, script=confirmed_and_agreed, restaurant=restaurant))

    assert held(ran) == (SATURDAY_SECOND,)
    assert at(ran, "approval") < at(ran, "resolve", "s1:op-a2: R1") < at(ran, "compensate", "R1")
    assert len(texts(ran, "compensate.ask")) == (2 if fee_cents else 1)
    assert "Cancelled R1 (Fri 19:00)" in ran.message


# What decides.


class _WithoutTranscript:
    """A store that shows a session's operations, plans and releases, and no word that was said."""

    said = frozenset({Kind.INPUT, Kind.MESSAGE, Kind.OBSERVATION})

    def __init__(self, inner: Store) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def session_records(self, **which: Any) -> tuple[Record, ...]:
        records = await self._inner.session_records(**which)
        return tuple(record for record in records if record.kind not in self.said)


def _without_transcript(store: Store) -> Store:
    return cast(Store, _WithoutTranscript(store))


@pytest.mark.req("S0-02")
@pytest.mark.parametrize("name", ["revise-crash-after-commit", "revise-crash-before-release"])
def test_the_next_move_is_read_from_what_is_pending_and_not_from_what_was_said(name: str) -> None:
    scenario = BY_NAME[name]
    wiped = replace(scenario, design=replace(RIGHT, reopen=_without_transcript))
    whole, without = run(scenario), run(wiped)

    for type in ("tool.sent", "resolve", "release", "compensate", "restaurant"):
        assert texts(without, type) == texts(whole, type)
    assert texts(without, "crash") == list(scenario.kill)
    assert held(without) == (SATURDAY_SECOND,)
