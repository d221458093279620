"""What is told of a change of mind: the history in both orders, the last message, the doubts."""

import asyncio
import re
from dataclasses import replace
from itertools import pairwise

import pytest

from landed.core.history import View, compacted
from landed.testing import wishes
from landed.testing.acting import Agent
from landed.testing.designs import RIGHT
from landed.testing.revisions import SCENARIOS
from landed.testing.scenario import Scenario, run
from landed.testing.scenarios import BY_NAME
from landed.testing.wishes import FRIDAY, GROUP, SATURDAY, SATURDAY_SECOND
from landed.testing.worlds.faults import Fault
from tests.reading import at, held, texts

RIGHT_ONES = [scenario for scenario in SCENARIOS if scenario.design is RIGHT]
IN_FLIGHT = BY_NAME["revise-in-flight"]
AFTER_TEXT = BY_NAME["revise-after-text"]


def _named(scenario: Scenario) -> str:
    return scenario.name


# What is told.


@pytest.mark.req("S0-58", "S0-59", "S0-70")
def test_the_history_keeps_the_words_and_every_effect() -> None:
    ran = run(IN_FLIGHT)

    assert [item.text for item in ran.history if item.role == "user"] == [GROUP, SATURDAY]
    told = [item.text for item in ran.history]
    assert "Booked R1 (Fri 19:00 for 4)." in told
    looked = told.index("Sat 19:00 for 4: available True.")
    assert looked < told.index("Booked R2 (Sat 19:00 for 4).")


@pytest.mark.req("S0-60", "K3")
@pytest.mark.field("D4")
def test_the_story_puts_each_thing_where_it_happened() -> None:
    ran = run(AFTER_TEXT)

    wanted = [
        GROUP,
        "Fri 19:00 for 4: available True.",
        "Booked R1 (Fri 19:00 for 4).",
        "Texted group 'table for 4, Fri 19:00'.",
        SATURDAY,
        "Sat 19:00 for 4: available True.",
        "Booked R2 (Sat 19:00 for 4).",
        "Cancelled R1 (Fri 19:00).",
        "Texted group 'Change of plan: table for 4, Sat 19:00'.",
        ran.message,
    ]
    story = [item.text for item in ran.history_as(View.STORY) if item.text in wanted]
    appended = [item.text for item in ran.history_as(View.CACHE) if item.text in wanted]
    assert story == wanted
    # The receipt came after the change of mind, and is appended there in the other view.
    assert appended.index(SATURDAY) < appended.index(wanted[3])
    assert ran.message == (
        "The earlier text had already gone out. Booked R2 (Sat 19:00 for 4)."
        " Cancelled R1 (Fri 19:00). Texted group 'Change of plan: table for 4, Sat 19:00'."
    )


@pytest.mark.req("S0-61", "K3")
def test_what_a_model_was_shown_stays_as_it_was_shown() -> None:
    shown: list[list[str]] = []

    async def read_as_it_goes(agent: Agent) -> None:
        heard, plan = await agent.start(GROUP, delivery="d1")
        await agent.until("tool.sent", "text_group")
        shown.append([item.text for item in await agent.rt.history(agent.session)])
        second, revised = await agent.begin_change(heard.turn, SATURDAY, delivery="d2")
        await agent.until("tool.sent", "reserve_table(day=Sat")
        shown.append([item.text for item in await agent.rt.history(agent.session)])
        await asyncio.gather(plan, revised)
        await agent.answer(second)
        shown.append([item.text for item in await agent.rt.history(agent.session)])

    ran = run(replace(AFTER_TEXT, script=read_as_it_goes))

    assert len(shown) == 3
    for before, after in pairwise(shown):
        assert len(before) < len(after)
        assert after[: len(before)] == before
    (late,) = [
        item for item in ran.history if item.text == "Texted group 'table for 4, Fri 19:00'."
    ]
    revised_at = next(item.recorded_at for item in ran.history if item.text == SATURDAY)
    assert late.happened_at <= revised_at < late.recorded_at


@pytest.mark.req("S0-62", "F0-10")
def test_a_summary_never_drops_an_effect() -> None:
    ran = run(IN_FLIGHT)

    summary, before_the_end = "They talked about a table.", ran.history[:-1]
    forgetful = f"{summary} {before_the_end[-1].text}"
    told = " ".join(item.text for item in compacted(before_the_end, summary, last=1))
    assert "R1" not in forgetful  # What a model would be left with: it holds a table unawares.
    assert summary in told
    assert "Booked R1 (Fri 19:00 for 4)." in told
    assert "Cancelled R1 (Fri 19:00)." in told
    assert "Booked R2 (Sat 19:00 for 4)." in told
    assert GROUP not in told
    assert compacted(ran.history, "nothing", last=len(ran.history)) == ran.history


@pytest.mark.req("S0-63")
@pytest.mark.parametrize(
    "name",
    ["revise-in-flight", "revise-after-text", "revise-time", "revise-delayed", "revise-keep"],
)
def test_the_last_message_has_every_effect_of_the_turn_and_none_beside(name: str) -> None:
    ran = run(BY_NAME[name])

    changed = at(ran, "input", "T2")
    restaurant = [
        line.text for line in ran.timeline.lines if line.type == "restaurant" and line.n > changed
    ]
    for said, done in (("Booked", "committed"), ("Cancelled", "cancelled")):
        told = re.findall(rf"{said} (R\d+)", ran.message)
        assert told == [text.split()[1] for text in restaurant if text.startswith(done)]
    told = re.findall(r"Texted (\w+) '(.*?)'", ran.message)
    sent = " ".join(texts(ran, "tool.sent"))
    assert told == re.findall(r"T2 text_group\(to=(\w+), text=(.*?)\)", sent)
    assert len(told) == 1


@pytest.mark.req("S0-69")
@pytest.mark.parametrize("scenario", RIGHT_ONES, ids=_named)
def test_nothing_is_called_cancelled_before_the_restaurant_did_it(scenario: Scenario) -> None:
    ran = run(scenario)

    for line in ran.timeline.lines:
        if line.type in ("input", "model.read", "restaurant", "crash"):
            continue
        for name in re.findall(r"[Cc]ancelled (R\d+)", line.text):
            assert line.n > at(ran, "restaurant", f"cancelled {name}")
        assert line.type != "tool.cancelled"
    gone = {text.split()[1] for text in texts(ran, "restaurant") if text.startswith("cancelled")}
    for words in (*(item.text for item in ran.history if item.role != "user"), ran.message):
        assert set(re.findall(r"[Cc]ancelled (R\d+)", words)) <= gone
        assert not re.search(r"[Cc]ancelled(?! R\d)", words) or "not cancelled" in words


@pytest.mark.field("D10")
def test_field_d10_the_rest_of_a_superseded_plan_is_recorded_as_not_done() -> None:
    told: list[str] = []

    async def read_the_first(agent: Agent) -> None:
        heard, plan = await agent.start(GROUP, delivery="d1")
        await agent.until("restaurant", "committed R1")
        await agent.change(heard.turn, SATURDAY, delivery="d2")
        told.append((await plan).text)

    ran = run(replace(IN_FLIGHT, script=read_the_first))

    assert "T1 text_group: not done, superseded by T2" in texts(ran, "skip")
    assert "Not done, because something else was wanted meanwhile: text_group(" in told[0]


# An undo that does not answer.

CANCEL = f"{wishes.RESERVE}/*/cancel"


@pytest.mark.field("H1")
@pytest.mark.parametrize("kind", ["lose_reply", "error_after", "drop"])
def test_field_h1_an_undo_that_never_answers_is_found_out_like_any_other_call(kind: str) -> None:
    faults = (*wishes.ANSWER_SLOW, Fault(path=CANCEL, kind=kind))  # type: ignore[arg-type]
    ran = run(replace(IN_FLIGHT, faults=faults))

    assert at(ran, "tool.unknown", "T2 cancel_reservation") < at(ran, "resolve", "s1:op-a6: ")
    assert texts(ran, "restaurant").count("cancelled R1") == 1
    assert ran.as_described


@pytest.mark.field("H6")
def test_field_h6_an_undo_that_cannot_be_found_out_is_not_called_done() -> None:
    faults = (*wishes.ANSWER_LOST, Fault(path=CANCEL, kind="drop", nth=None))
    late = BY_NAME["late-confirmation"]
    ran = run(replace(late, faults=faults, script=_confirmed_and_waited))

    assert held(ran) == (FRIDAY, SATURDAY_SECOND)
    assert "I may have cancelled R1" in ran.message
    assert "Cancelled R1" not in ran.message
    assert not any(text.endswith("R1: done") for text in texts(ran, "release"))
    assert not ran.reconciled


async def _confirmed_and_waited(agent: Agent) -> None:
    turn = await wishes.changed(agent, SATURDAY, rests=wishes.NOBODY_TELLS)
    await agent.change(turn, wishes.IT_IS_BOOKED, delivery="d3")
    heard = await agent.rt.receive("yes", session=agent.session, principal="ana", delivery="d4")
    await agent.until("tool.unknown", "cancel_reservation")
    await agent.answer(heard)
