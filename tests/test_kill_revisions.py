"""A real agent process is sent SIGKILL at each point of a change of mind; the release is done once.

Restaurant and texts are processes of their own, fresh for each run, so that their ledgers are those
of that run alone. The points are those that an agent process says it passed. What is not marked
`services` is a sample; `make test-services` kills at all of them, and again while it recovers at
some; `make kills` at all.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from landed.core.errors import ProposalError
from landed.core.operation import Operation, State
from landed.core.plan import PlanState
from landed.testing.acting import Agent
from landed.testing.scenario import run
from landed.testing.scenarios import BY_NAME
from landed.testing.wishes import (
    CORRECTED,
    FRIDAY,
    GROUP,
    SATURDAY,
    SATURDAY_SECOND,
    TOLD_FRIDAY,
    TOLD_SATURDAY,
)
from tests.killing import Run, boundaries, fresh_world
from tests.sampling import part_of

IN_FLIGHT, FEE, AFTER_TEXT = "revise-in-flight", "fee-consent", "revise-after-text"
PARTS = 6
POINTS_MIN = 100
MISSED_PART = 10
RELEASE_OUT = "after:send:cancel_reservation"

SAMPLE = (
    (IN_FLIGHT, "after:send:reserve_table"),
    (FEE, "after:approved"),
    (AFTER_TEXT, "after:unwanted:text_group"),
)
SAMPLE_NOW_AND_LATER = [
    SAMPLE[0],
    *(pytest.param(*each, marks=pytest.mark.services) for each in SAMPLE[1:]),
]
FIRSTS = (
    (IN_FLIGHT, "before:close:reserve_table"),
    (IN_FLIGHT, RELEASE_OUT),
    (FEE, "after:approved"),
    (FEE, RELEASE_OUT),
    (AFTER_TEXT, "after:unwanted:text_group"),
    (AFTER_TEXT, RELEASE_OUT),
)
TEXTS = (
    [told.split(": ", 1)[1] for told in (TOLD_FRIDAY, CORRECTED)],
    [TOLD_SATURDAY.split(": ", 1)[1]],
)
UNSURE = "though I couldn't confirm it, so I've treated it as sent"


@pytest.mark.req("S0-53", "S0-54", "S0-55", "S0-57")
@pytest.mark.fault("X05", "X06")
@pytest.mark.parametrize(("name", "point"), SAMPLE_NOW_AND_LATER)
def test_killed_in_a_change_of_mind_the_next_process_ends_it(
    name: str, point: str, tmp_path: Path
) -> None:
    assert killed(name, (point,), tmp_path / "run")


@pytest.mark.services
@pytest.mark.req("S0-56", "S0-57")
@pytest.mark.fault("X06")
def test_killed_again_while_it_recovers_the_release_is_done_once(tmp_path: Path) -> None:
    assert killed(IN_FLIGHT, (RELEASE_OUT, "after:found:cancel_reservation"), tmp_path / "run")


@pytest.mark.services
@pytest.mark.timeout(900)
@pytest.mark.req("S0-53", "S0-54", "S0-55", "S0-57")
@pytest.mark.fault("X05", "X06")
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("name", [IN_FLIGHT, FEE, AFTER_TEXT])
def test_killed_at_every_point_of_a_change_of_mind(name: str, part: int, tmp_path: Path) -> None:
    points = sorted(passed(name, (), tmp_path / "whole"))
    assert len(points) >= POINTS_MIN

    killed_at_each(name, [(point,) for point in points[part::PARTS]], tmp_path)


@pytest.mark.services
@pytest.mark.timeout(900)
@pytest.mark.req("S0-56", "S0-57")
@pytest.mark.fault("X06")
@pytest.mark.parametrize(("name", "first"), FIRSTS)
def test_killed_again_at_every_point_of_the_recovery(name: str, first: str, tmp_path: Path) -> None:
    seconds = part_of(boundaries(passed(name, (first,), tmp_path / "whole")), first)

    killed_at_each(name, [(first, second) for second in seconds], tmp_path)


def passed(name: str, kills: Sequence[str], place: Path) -> list[str]:
    """Return the points that a process passes, after those that were killed."""
    with fresh_world(BY_NAME[name], place) as agents:
        assert all(map(agents.kill_at, kills))
        points: list[str] = ends_well(agents)["points"]
        return points


def killed_at_each(name: str, kills: Sequence[tuple[str, ...]], place: Path) -> None:
    """Kill one process after the other, two runs at a time, each in a world of its own.

    A few may not come to their point: those of a commit that is refused are passed, or not, as the
    clock will have it. They must end well all the same.
    """
    places = (place / str(number) for number in range(len(kills)))
    with ThreadPoolExecutor(max_workers=2) as both:
        died = list(both.map(partial(killed, name), kills, places))
    missed = [kill for kill, all_died in zip(kills, died, strict=True) if not all_died]
    assert len(missed) <= len(kills) // MISSED_PART, missed


def killed(name: str, kills: Sequence[str], place: Path) -> bool:
    """Whether each process came to its point and died there; the last one always ends well."""
    with fresh_world(BY_NAME[name], place) as agents:
        try:
            died = [agents.kill_at(point) for point in kills]
            ends_well(agents)
        except AssertionError as error:
            error.add_note(f"{name}, killed at {', '.join(kills)}")
            raise
    return all(died)


def ends_well(agents: Run) -> dict[str, Any]:
    """Run a last process: Saturday is held, Friday was cancelled once, and the user is told so."""
    scenario = BY_NAME[agents.scenario]
    report = agents.finish()
    _, operations = agents.records()

    assert [one["text"] for one in agents.listed("restaurant", "reservations")] == [SATURDAY_SECOND]
    log = agents.listed("restaurant", "log")
    did = [entry for entry in log if entry["kind"] in ("committed", "cancelled")]
    fee = " (fee 20)" if scenario.name == FEE else ""
    assert [entry["text"] for entry in did] == [
        f"committed {FRIDAY}",
        f"committed {SATURDAY_SECOND}",
        f"cancelled R1{fee}",
    ]
    tables = [one for one in operations if one.tool != "text_group"]
    assert [entry["key"] for entry in did] == [f"{agents.session}:{one.id}" for one in tables]
    assert [one.state for one in tables] == [State.CONFIRMED] * len(did)
    assert tables[-1].undoes == tables[0].id
    assert all(words in report["message"] for words in scenario.says[-1:])
    texts_are_told(agents, operations)
    return report


def texts_are_told(agents: Run, operations: Sequence[Operation]) -> None:
    """No text went out twice; one that nobody can confirm was treated as sent, and said to be."""
    items, _ = agents.records()
    asked = [one for one in operations if one.tool == "text_group"]
    states = {str(one.arguments["text"]): one.state for one in asked}
    said = "\n".join(item.text for item in items if item.role == "assistant")
    went_out = [one["said"] for one in agents.listed("texts", "texts")]

    assert list(states) in TEXTS
    assert len(states) == len(asked)
    assert set(states.values()) <= {State.CONFIRMED, State.ASSUMED}
    # Each that was confirmed went out, each that was assumed did or did not; in their order, once.
    assert went_out == [text for text in states if text in went_out]
    assert {text for text, state in states.items() if state is State.CONFIRMED} <= {*went_out}
    assert (UNSURE in said) == (State.ASSUMED in states.values())


@pytest.mark.req("S0-55")
@pytest.mark.field("D8")
def test_what_ended_after_the_words_came_and_before_they_were_read_is_still_changed() -> None:
    """As when a process is killed between the two, and the next one finds Friday first."""

    async def read_slowly(agent: Agent) -> None:
        heard, plan = await agent.start(GROUP, delivery="d1")
        await agent.until("restaurant", "committed")
        words = await agent.rt.receive(SATURDAY, session=agent.session, delivery="d2")
        assert (await plan).state is PlanState.DONE
        await agent.rt.revise(heard.turn, words, change={"day": "Sat"})
        await agent.answer(words)

    scenario = BY_NAME[AFTER_TEXT]
    ran = run(replace(scenario, script=read_slowly, faults=(), text_faults=()))

    assert ran.as_described


@pytest.mark.req("S0-55")
def test_words_that_came_after_the_end_change_nothing() -> None:
    async def too_late(agent: Agent) -> None:
        heard, plan = await agent.start(GROUP, delivery="d1")
        await plan
        words = await agent.rt.receive(SATURDAY, session=agent.session, delivery="d2")
        with pytest.raises(ProposalError, match="has ended"):
            await agent.rt.revise(heard.turn, words, change={"day": "Sat"})

    ran = run(replace(BY_NAME[AFTER_TEXT], script=too_late, faults=(), text_faults=()))

    assert [one["text"] for one in ran.world["restaurant"]] == [FRIDAY]
