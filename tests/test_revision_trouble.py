"""A change of mind in trouble: killed at every point, twice at once, too late, of nothing."""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from landed.core.errors import ApprovalError, ProposalError
from landed.core.plan import Wanted
from landed.core.value import PlanValue
from landed.testing import wishes
from landed.testing.acting import Agent
from landed.testing.models import Change
from landed.testing.scenario import Ran, Scenario, run
from landed.testing.scenarios import BY_NAME
from landed.testing.wishes import FRIDAY, GROUP, LATER, SATURDAY, SATURDAY_SECOND
from landed.testing.worlds.faults import Fault
from tests.reading import at, held, texts
from tests.sampling import sampled

IN_FLIGHT = BY_NAME["revise-in-flight"]
KILLED_EVERYWHERE = ("revise-in-flight", "fee-consent", "revise-after-text", "replacement-full")
PARTS = 8
SUNDAY = "no, Sunday"
CHANGES = {**wishes.CHANGES, SUNDAY: Change(change={"day": "Sun"})}


@pytest.fixture(autouse=True)
def nothing_went_wrong_unseen(caplog: pytest.LogCaptureFixture):
    """A loop that ends by a bug of ours is logged; a scenario may end well all the same."""
    yield
    errors = [r.getMessage() for r in caplog.get_records("call") if r.levelno >= logging.ERROR]
    assert not errors


# Killed.


@pytest.mark.req("S0-53", "S0-55", "S0-56", "S0-57", "S0-43")
@pytest.mark.fault("X05", "X06")
@pytest.mark.parametrize("part", sampled(range(PARTS), every=PARTS))
@pytest.mark.parametrize("name", KILLED_EVERYWHERE)
def test_a_crash_at_every_point_ends_in_the_same_world(name: str, part: int) -> None:
    scenario = BY_NAME[name]
    points = run(scenario, kill=()).points[0]

    assert len(points) > 70
    for point in points[part::PARTS]:
        _check(run(scenario, kill=(str(point),)), killed=1)


@pytest.mark.req("S0-56", "S0-57")
@pytest.mark.fault("X05", "X06")
@pytest.mark.parametrize("seed", sampled([None, 3], every=2))
@pytest.mark.parametrize("name", sampled(KILLED_EVERYWHERE, every=4))
def test_a_second_crash_while_it_recovers_ends_in_the_same_world(
    name: str, seed: int | None
) -> None:
    scenario = BY_NAME[name]
    points = run(scenario, kill=(), seed=seed).points[0]

    for first in points[5::23]:
        again = run(scenario, kill=(str(first),), seed=seed).points[1]
        for second in again[1::17]:
            _check(run(scenario, kill=(str(first), str(second)), seed=seed), killed=2)


@pytest.mark.req("S0-54")
def test_what_landed_before_the_crash_is_found_and_not_sent_again() -> None:
    ran = run(BY_NAME["revise-crash-after-commit"])

    order = [at(ran, "crash"), at(ran, "restart"), at(ran, "resolve", "s1:op-a4: R2")]
    assert order == sorted(order)
    saturday = [sent for sent in texts(ran, "tool.sent") if "day=Sat" in sent]
    assert len(saturday) == 1
    assert not any("sent again" in text for text in texts(ran, "resolve"))
    assert held(ran) == (SATURDAY_SECOND,)
    assert texts(ran, "restaurant").count("cancelled R1") == 1


@pytest.mark.req("S0-57")
@pytest.mark.fault("X05", "X06")
def test_a_release_survives_the_crash_and_its_undo_is_resumed_under_its_key() -> None:
    ran = run(BY_NAME["revise-crash-before-release"])

    cancels = [sent for sent in texts(ran, "tool.sent") if "cancel_reservation" in sent]
    assert len(cancels) == 1
    assert cancels[0].endswith("key=s1:op-a6")
    assert texts(ran, "resolve")[-1] == "s1:op-a6: sent again with the same key"
    assert texts(ran, "restaurant").count("cancelled R1") == 1


@pytest.mark.req("S0-55", "S0-53")
@pytest.mark.field("D8")
def test_words_that_were_taken_down_are_acted_on_once_after_the_crash() -> None:
    ran = run(BY_NAME["acknowledged-input"])

    assert at(ran, "input", "T2 user: actually, Saturday") < at(ran, "crash")
    assert len(texts(ran, "input")) == 2
    assert at(ran, "restart") < at(ran, "release", "T2") < at(ran, "tool.sent", "day=Sat")
    assert len([sent for sent in texts(ran, "tool.sent") if "day=Sat" in sent]) == 1
    assert held(ran) == (SATURDAY_SECOND,)


def _check(ran: Ran, *, killed: int) -> None:
    """The restaurant's world is the described one, each release was done once, and all is told."""
    wanted, kill = ran.scenario, ran.kill
    assert isinstance(wanted, Scenario)
    assert len(texts(ran, "crash")) == killed, kill
    assert not ran.unwitnessed, kill
    assert held(ran) == wanted.holds, kill
    gone = Counter(text for text in texts(ran, "restaurant") if text.startswith("cancelled"))
    assert set(gone.values()) <= {1}, (kill, gone)
    assert len(gone) == (0 if FRIDAY in wanted.holds else 1), (kill, gone)
    # A text whose receipt was lost with the process is treated as sent, never sent twice.
    sent = [text.split(": ", 1)[1] for text in held(ran, "texts")]
    due = [text.split(": ", 1)[1] for text in wanted.texts]
    assumed = any("treated as landed" in text for text in texts(ran, "resolve"))
    assert sent == due or (assumed and _is_part(sent, due)), (kill, sent)
    assert ran.reconciled or assumed, kill
    if wanted.name == "replacement-full":
        assert "You still hold R1" in ran.message, (kill, ran.message)
    elif wanted.name == "fee-consent":
        assert "Cancelled R1" in ran.message, (kill, ran.message)
    else:
        assert "Booked R2" in ran.message, (kill, ran.message)


def _is_part(some: list[str], every: list[str]) -> bool:
    """Whether these are some of those, in their order, each once."""
    rest = iter(every)
    return all(one in rest for one in some)


# Twice at once, and again.


@pytest.mark.fault("X13")
@pytest.mark.parametrize("pause_s", [n * 0.008 for n in range(12)])
@pytest.mark.parametrize(("words", "day"), [(SUNDAY, "Sun"), (wishes.FRIDAY_AFTER_ALL, "Fri")])
def test_another_change_of_mind_while_the_first_is_found_out_or_released(
    words: str, day: str, pause_s: float
) -> None:
    async def script(agent: Agent) -> None:
        heard, plan = await agent.start(GROUP, delivery="d1")
        await agent.until("restaurant", "committed R1")
        second, revised = await agent.begin_change(heard.turn, SATURDAY, delivery="d2")
        await asyncio.sleep(pause_s)  # virtual time
        third = await agent.change(second.turn, words, delivery="d3")
        await asyncio.gather(plan, revised)
        await agent.answer(third)

    ran = run(replace(IN_FLIGHT, script=script, changes=CHANGES))

    assert [text.split(" ", 1)[1] for text in held(ran)] == [f"{day} 19:00 x4"]
    assert ran.reconciled
    gone = Counter(text for text in texts(ran, "restaurant") if text.startswith("cancelled"))
    assert set(gone.values()) <= {1}
    last = held(ran, "texts")[-1]
    assert last.endswith(f"table for 4, {day} 19:00")
    assert len(held(ran, "texts")) == 1 or "Change of plan" in last


@pytest.mark.fault("X06")
@pytest.mark.parametrize(
    ("pause_s", "holds", "asked"), [(0.0, FRIDAY, "R1 (Fri"), (0.03, SATURDAY_SECOND, "R2 (Sat")]
)
def test_a_release_is_not_forgotten_with_the_plan_that_it_waited_for(
    pause_s: float, holds: str, asked: str
) -> None:
    """Saturday was to replace Friday; then no table is spoken of any more, only the text."""
    text = Wanted(tool="text_group", arguments={"to": "group", "text": "see you"})

    async def only_the_text(agent: Agent) -> None:
        heard, plan = await agent.start(GROUP, delivery="d1")
        await agent.until("restaurant", "committed R1")
        second, revised = await agent.begin_change(heard.turn, SATURDAY, delivery="d2")
        await agent.until("release", "owed if it landed")
        await asyncio.sleep(pause_s)  # virtual time
        third = await _hear(agent, "only tell them", delivery="d3")
        await agent.rt.revise(second.turn, third, wanted=[text])
        await asyncio.gather(plan, revised)
        await agent.quiet()
        await agent.answer(third)

    ran = run(replace(IN_FLIGHT, script=only_the_text))

    assert held(ran) == (holds,)
    (question,) = texts(ran, "compensate.ask")
    assert f"You still hold {asked}" in question
    assert ran.reconciled


@pytest.mark.fault("X14")
def test_the_same_words_delivered_twice_change_nothing_more() -> None:
    values: list[PlanValue] = []

    async def twice(agent: Agent) -> None:
        heard, plan = await agent.start(GROUP, delivery="d1")
        await agent.until("restaurant", "committed R1")
        again = [await _hear(agent, SATURDAY, delivery="d2") for _ in range(2)]
        revised = (agent.rt.revise(heard.turn, one, change={"day": "Sat"}) for one in again)
        values.extend(await asyncio.gather(*revised))
        values.append(await agent.rt.revise(heard.turn, again[0], change={"day": "Sat"}))
        await plan
        await agent.answer(again[0])

    ran = run(replace(IN_FLIGHT, script=twice))

    assert ran.as_described
    assert len({value.plan for value in values}) == 1
    assert [value.replayed for value in values] == [False, True, True]


@pytest.mark.parametrize("seed", [None, 1, 2, 3])
def test_of_two_revisions_at_once_one_counts_and_the_other_is_told_which(seed: int | None) -> None:
    came: list[object] = []

    async def at_once(agent: Agent) -> None:
        heard, plan = await agent.start(GROUP, delivery="d1")
        await agent.until("restaurant", "committed R1")
        one = await agent.begin_change(heard.turn, SATURDAY, delivery="d2")
        other = await agent.begin_change(heard.turn, LATER, delivery="d3")
        came.extend(await asyncio.gather(one[1], other[1], return_exceptions=True))
        await plan
        await agent.answer(one[0])

    ran = run(replace(IN_FLIGHT, script=at_once), seed=seed)

    (refused,) = [one for one in came if one is not None]
    assert isinstance(refused, ProposalError)
    assert "T1 was revised already, by T" in str(refused)
    assert len(held(ran)) == 1
    assert held(ran)[0].startswith("R2")
    assert ran.reconciled


def test_a_revision_while_recovery_runs_is_one_table() -> None:
    for point in ("after:sent:reserve_table", "before:send:reserve_table", "before:received#2"):
        ran = run(IN_FLIGHT, kill=(point,))

        assert at(ran, "restart") < at(ran, "input", f"user: {SATURDAY}")
        assert len(held(ran)) == 1
        assert held(ran)[0].endswith("Sat 19:00 x4")
        assert ran.reconciled


# Bad input.


async def _hear(agent: Agent, text: str, *, delivery: str):
    return await agent.rt.receive(text, session=agent.session, principal="ana", delivery=delivery)


def _refused(scenario: Scenario, script: Callable[[Agent], Awaitable[None]]) -> tuple[str, Ran]:
    """Play a script that must end in a `ProposalError`; return its words and the run."""
    said: list[str] = []

    async def guarded(agent: Agent) -> None:
        with pytest.raises(ProposalError) as refused:
            await script(agent)
        said.append(str(refused.value))

    ran = run(replace(scenario, script=guarded))
    return said[0], ran


@pytest.mark.fault("X14")
def test_a_turn_that_has_ended_is_not_revised() -> None:
    async def too_late(agent: Agent) -> None:
        heard, plan = await agent.start(GROUP, delivery="d1")
        await plan
        await agent.change(heard.turn, SATURDAY, delivery="d2")

    said, ran = _refused(replace(IN_FLIGHT, faults=()), too_late)

    assert said == "T1 has ended: undo what it did, or propose what is wanted now"
    assert held(ran) == (FRIDAY,)
    assert ran.reconciled


def test_nothing_is_not_revised() -> None:
    async def of_no_turn(agent: Agent) -> None:
        await agent.change("T9", SATURDAY, delivery="d1")

    async def of_idle_words(agent: Agent) -> None:
        idle = await _hear(agent, "hello", delivery="d1")
        await agent.change(idle.turn, SATURDAY, delivery="d2")

    unknown, ran = _refused(IN_FLIGHT, of_no_turn)
    idle, _ = _refused(IN_FLIGHT, of_idle_words)

    assert unknown == "there is no turn 'T9' in this conversation to revise"
    assert idle == "nothing was done for T1 that could be revised"
    assert held(ran) == ()


def test_a_revision_to_the_same_thing_keeps_everything() -> None:
    ran = run(replace(IN_FLIGHT, script=_changed_to("Fri"), faults=()))

    assert held(ran) == (FRIDAY,)
    assert not texts(ran, "release")
    assert not texts(ran, "interrupt")
    assert len([sent for sent in texts(ran, "tool.sent") if "reserve_table" in sent]) == 1
    assert held(ran, "texts") == (wishes.TOLD_FRIDAY,)


def test_a_revision_to_an_invalid_day_books_nothing_and_asks_about_what_is_held() -> None:
    ran = run(replace(IN_FLIGHT, script=_changed_to("Someday")))

    assert held(ran) == (FRIDAY,)
    assert not any("day=Someday" in sent for sent in texts(ran, "tool.sent"))
    (asked,) = texts(ran, "compensate.ask")
    assert "You still hold R1" in asked
    assert ran.reconciled


def test_calls_that_make_no_sense_revise_nothing() -> None:
    async def nonsense(agent: Agent) -> None:
        heard, plan = await agent.start(GROUP, delivery="d1")
        await agent.until("restaurant", "committed R1")
        again = await _hear(agent, SATURDAY, delivery="d2")
        for wanted in ([], [Wanted(tool="fly", arguments={})]):
            with pytest.raises(ProposalError):
                await agent.rt.revise(heard.turn, again, wanted=wanted)
        with pytest.raises(ProposalError, match="there is no 'op-99' to drop"):
            await agent.rt.revise(heard.turn, again, change={}, drop=["op-99"])
        await plan
        await agent.answer(heard)

    ran = run(replace(IN_FLIGHT, script=nonsense))

    assert held(ran) == (FRIDAY,)
    assert not texts(ran, "release")
    assert "Booked R1" in ran.message


def _changed_to(day: str) -> Callable[[Agent], Awaitable[None]]:
    async def script(agent: Agent) -> None:
        heard, plan = await agent.start(GROUP, delivery="d1")
        await agent.until("restaurant", "committed R1")
        again = await _hear(agent, f"make it {day}", delivery="d2")
        await agent.rt.revise(heard.turn, again, change={"day": day})
        await plan
        await agent.answer(again)

    return script


@pytest.mark.req("S0-48")
def test_a_yes_answers_the_last_question_only() -> None:
    async def asked_twice(agent: Agent) -> None:
        turn = await wishes.changed(agent, SATURDAY)
        heard = await agent.rt.receive(
            "a cake is on offer", session=agent.session, delivery="d3", origin="offers"
        )
        await agent.rt.ask(heard, "Shall I also order a cake?", turn=turn)
        await agent.answer(await agent.say("yes", delivery="d4"))

    ran = run(replace(BY_NAME["fee-consent"], script=asked_twice))

    assert held(ran) == (FRIDAY, SATURDAY_SECOND)
    assert not any("cancel_reservation" in sent for sent in texts(ran, "tool.sent"))
    asked = texts(ran, "compensate.ask")
    assert "Shall I also order a cake?" in asked[-1]
    assert texts(ran, "approval")[-1].startswith(asked[-1].split(":")[0])


def test_somebody_elses_yes_and_a_timers_answer_nothing() -> None:
    async def others(agent: Agent) -> None:
        await wishes.changed(agent, SATURDAY)
        for n, (principal, origin) in enumerate((("bob", "user"), ("ana", "timer")), 3):
            await agent.rt.receive(
                "yes", session=agent.session, principal=principal, delivery=f"d{n}", origin=origin
            )
        with pytest.raises(ApprovalError, match="nothing here that you could agree to"):
            await agent.rt.approve("A1", principal="bob")
        await agent.quiet()
        await agent.answer(await _hear(agent, "hello", delivery="d9"))

    ran = run(replace(BY_NAME["fee-consent"], script=others))

    assert held(ran) == (FRIDAY, SATURDAY_SECOND)
    assert not any("said yes" in text for text in texts(ran, "approval"))


def test_a_confirmation_of_what_was_settled_otherwise_is_refused() -> None:
    async def claims(agent: Agent) -> None:
        await wishes.changed(agent, SATURDAY, when=wishes.SENT)
        heard = await _hear(agent, wishes.IT_IS_BOOKED, delivery="d3")
        await agent.rt.ask(heard, "Is it R9?", claim="R9", operation="op-a2")

    said, ran = _refused(BY_NAME["revise-delayed"], claims)

    assert said == "op-a2 is failed already; nothing is in doubt"
    assert held(ran) == ("R1 Sat 19:00 x4",)


def test_a_yes_to_a_confirmation_that_was_overtaken_changes_nothing() -> None:
    """It is asked while Friday is in doubt; by the time of the yes the key was closed, empty."""

    async def overtaken(agent: Agent) -> None:
        heard, plan = await agent.start(GROUP, delivery="d1")
        await agent.until("tool.sent", "reserve_table")
        claim = await _hear(agent, wishes.IT_IS_BOOKED, delivery="d2")
        await agent.rt.ask(claim, "Is it R9?", claim="R9", operation="op-a2")
        second = await _revised_quietly(agent, heard.turn)
        await plan
        await agent.rt.approve("A1", principal="ana")
        await agent.quiet()
        await agent.answer(second)

    slow = (Fault(path=wishes.RESERVE, kind="delay_request", seconds=40.0),)
    ran = run(replace(BY_NAME["revise-delayed"], script=overtaken, faults=slow))

    assert "s1:op-a2: nothing has landed; key closed" in texts(ran, "resolve")
    assert not any("cancel_reservation" in sent for sent in texts(ran, "tool.sent"))
    assert held(ran) == ("R1 Sat 19:00 x4",)
    assert ran.reconciled


async def _revised_quietly(agent: Agent, turn: str):
    """Revise by an event, whose words answer no question; the user agrees by a button."""
    heard = await agent.rt.receive(
        "rain", session=agent.session, principal="ana", delivery="d3", origin="weather"
    )
    shown = await agent.rt.revise(turn, heard, change={"day": "Sat"})
    assert shown.offer is not None
    token = shown.offer.token
    await agent.rt.approve(token=token, principal="ana", session=agent.session)
    return heard
