"""A change of mind keeps every promise wherever it comes, and each wrong design is caught."""

from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from typing import Any

import pytest

from landed.core.operation import Operation
from landed.core.plan import Plan, Step
from landed.core.scope import Next, Scope
from landed.core.undo import Release
from landed.testing.explored import minds
from landed.testing.explored.minds import explore_minds, explore_wrong_mind, say_minds
from landed.testing.explored.minds_cases import CASES, FREE
from landed.testing.explored.minds_naming import OPERATION, PLAN, RELEASE, STEP, Naming
from landed.testing.explored.minds_properties import CORE_RAISED, PROMISES, RELEASED_FIRST, STUCK
from landed.testing.explored.minds_restaurant import House
from landed.testing.explored.minds_search import Search
from landed.testing.explored.minds_steps import steps
from landed.testing.explored.minds_world import Bounds, Driver, Setup, World, first_world
from landed.testing.explored.wrong_minds import WRONG_MINDS, WrongMind, release_first

req, fault = pytest.mark.req, pytest.mark.fault

# The trouble that each case must have met, in the middle of which nothing went wrong.
TROUBLES = {
    "free": [
        "the user wants Sat instead",
        "A crashes; B takes over",
        "but crashes before that leaves",
        "A hears nothing of op-1",
        "send 1 of op-1 never left",
        "resent op-1",
        "closed_empty op-1",
        "release_void release/op-1",
        "release_done release/op-1",
        "and at once the user wants Sat instead",
    ],
    "free-to-and-fro": [
        "the user wants Sun instead",
        "release_kept release/op-1",
        "release_handed_on release/op-1",
        "release_done release/op-2",
    ],
    "full": ["release_questioned release/op-1", "release_waived release/op-1"],
    "fee": [
        "the fee is 3000 now",
        "the send 1 of op-3 arrives: Refused",
        "release_not_done release/op-1",
        "release_asked release/op-1",
        "release_waived release/op-1",
        "the user says yes to q-2",
    ],
    "fee-to-and-fro": ["the user says yes, late, to q-1", "the user wants Fri instead"],
    "fee-shrugged-off": ["the user says something else to q-1", "release_lapsed release/op-1"],
    "lenient": ["time passes", "closed_empty op-1"],
    "nobody-can-tell": ["gave_up op-1"],
    "replaced-in-doubt": ["gave_up op-1", "made op-2"],
}


# What each case proves beyond "no promise is broken".
CASE_MARKS = {
    "free": [req("S0-44", "S0-54", "S0-57"), fault("X05", "X06")],
    "full": [req("S0-45")],
    "fee": [req("S0-47", "S0-49", "S0-50"), fault("X68")],
    "fee-to-and-fro": [fault("X68")],
}
WRONG_MARKS = {
    "release-lost": [req("S0-57"), fault("X06")],
    "undo-the-replacement": [fault("X58")],
    "consent-not-bound": [req("S0-49"), fault("X68")],
    "undo-twice": [fault("X05"), pytest.mark.field("H1")],
}


# Walks of three seconds and more that others come near to; `make test-services` takes them too.
LONG = frozenset({"fee-to-and-fro", "full", "lenient", "nobody-can-tell", "free-to-and-fro"})


def marked(names: Iterable[str], marks: Mapping[str, list[pytest.MarkDecorator]]) -> list[Any]:
    def of(name: str) -> list[pytest.MarkDecorator]:
        return [*marks.get(name, []), *([pytest.mark.services] if name in LONG else [])]

    return [pytest.param(name, marks=of(name)) for name in names]


# The right design.


@pytest.mark.parametrize("name", marked(CASES, CASE_MARKS))
def test_no_world_in_which_a_mind_is_changed_breaks_a_promise(name: str) -> None:
    seen = explore_minds(name)

    assert seen.wrong == {}
    assert seen.complete
    assert seen.rests > 100
    for trouble in TROUBLES.get(name, ()):
        assert any(trouble in says for says in seen.happened), f"never seen: {trouble}"


def test_a_search_that_is_cut_off_does_not_claim_to_have_seen_everything() -> None:
    seen = explore_minds("free", bounds=Bounds(states_max=50))

    assert not seen.complete
    assert not seen.holds
    assert seen.wrong == {}


def test_a_world_that_does_not_come_to_rest_in_its_time_is_told() -> None:
    seen = explore_minds("lenient", bounds=Bounds(revisions=0, send_by_ticks=5, ticks=2))

    assert seen.wrong.keys() == {STUCK}
    assert "crashes" in seen.wrong[STUCK][-1]


# Wrong designs.


@pytest.mark.parametrize("name", marked(WRONG_MINDS, WRONG_MARKS))
def test_a_wrong_design_of_a_change_of_mind_is_caught(name: str) -> None:
    wrong = WRONG_MINDS[name]

    assert wrong.breaks in explore_wrong_mind(wrong).wrong


def test_a_core_that_raises_is_caught() -> None:
    def trips(scope: Scope, rules: object, now: float) -> Next:
        raise LookupError("an operation that nobody loaded")

    wrong = WrongMind(case="free", breaks=CORE_RAISED, driver=Driver(what_next=trips))

    assert len(explore_wrong_mind(wrong).wrong[CORE_RAISED]) == 1


def test_each_promise_is_broken_by_some_wrong_design() -> None:
    broken = {wrong.breaks for wrong in WRONG_MINDS.values()}

    assert broken == set(PROMISES) - {CORE_RAISED}


def test_the_shortest_way_is_told_step_by_step() -> None:
    driver = Driver(what_next=release_first)
    wrong = Search(Setup(reserve=FREE, house=House(), driver=driver)).run(until=(RELEASED_FIRST,))

    trace = wrong.wrong[RELEASED_FIRST]

    assert [step.split("; ")[0] for step in trace] == [
        "the user wants Fri",
        "the send 1 of op-1 arrives: Acknowledged",
        "A hears Acknowledged of op-1",
        "the user wants Sat instead",
    ]
    assert "release_started release/op-1" in trace[-1]


# The keys, on which "everything was seen" rests.

# What is no part of a key, and why: it never changes here, it follows from what is in the key
# (names, acknowledged_at), it is judged there by its age, or nothing is decided by it.
UNNAMED_OPERATION = (
    *("tenant", "session", "tool", "ask", "contract", "identity", "names", "made_at", "complete"),
    *("position", "told", "evidence", "settled_at", "unwanted_at", "acknowledged_at", "version"),
    *("epoch", "worker", "looks", "looked_at", "last_sent_at", "first_sent_at", "send_by"),
    *("result", "arguments", "retries", "unique", "prepared", "not_before"),
    *("absences", "unexplained", "lifted"),
    *("restored", "conflict"),  # No store is put back here, and no service says what moved.
)
UNNAMED_RELEASE = (
    *("operation", "tenant", "session", "principal", "origin", "made_at", "version", "epoch"),
    *("worker", "question", "why", "undoes", "after"),
)
# Nobody stops a plan here, none needs a yes, and none is tried or taken back as a whole.
UNNAMED_PLAN = (
    *("tenant", "session", "turn", "input", "principal", "origin", "call_id", "revises", "intent"),
    *("made_at", "send_by", "answer_by", "previews", "supersedes", "independent", "version"),
    *("epoch", "worker", "attempt", "ended_at", "by", "why", "changed"),
    *("shown_hash", "shown_basis", "begins", "agreed_by"),  # Nothing is erased or kept here.
    "steps",  # They are in the key one by one.
)
UNNAMED_STEP = (
    *("tool", "arguments", "contract", "names", "call_id", "reads", "risk", "permission", "needs"),
    "corrects",
)


@pytest.mark.parametrize(
    ("kind", "named", "unnamed"),
    [
        (Operation, OPERATION, UNNAMED_OPERATION),
        (Release, RELEASE, UNNAMED_RELEASE),
        (Plan, PLAN, UNNAMED_PLAN),
        (Step, STEP, UNNAMED_STEP),
    ],
)
def test_every_field_is_in_the_key_or_known_not_to_matter(
    kind: type, named: tuple[str, ...], unnamed: tuple[str, ...]
) -> None:
    assert sorted([*named, *unnamed]) == sorted(each.name for each in fields(kind))


def follow(world: World, setup: Setup, *says: str) -> World:
    for each in says:
        world = next(step.world for step in steps(world, setup) if step.says.startswith(each))
    return world


def test_two_worlds_that_differ_in_what_is_still_to_come_are_two() -> None:
    setup = Setup(reserve=FREE, house=House())
    naming = Naming(setup)
    sent = follow(first_world(setup), setup, "the user wants Fri")

    arrived = follow(sent, setup, "the send 1 of op-1 arrives")
    crashed = follow(sent, setup, "A crashes")
    keys = [naming.key(world) for world in (sent, arrived, crashed)]

    assert len(set(keys)) == 3
    assert naming.key(replace(sent, stored=replace(sent.stored, epoch=9))) == keys[0]


# The face.


@pytest.fixture
def one_small_case(monkeypatch: pytest.MonkeyPatch) -> None:
    small = replace(CASES["free"], bounds=Bounds(crashes=0, losses=0), deep=None)
    monkeypatch.setattr(minds, "CASES", {"small": small})
    caught = replace(WRONG_MINDS["release-first"], case="small")
    monkeypatch.setattr(minds, "WRONG_MINDS", {"caught": caught})


@pytest.mark.usefixtures("one_small_case")
def test_the_table_says_what_was_seen_and_caught(capsys: pytest.CaptureFixture[str]) -> None:
    assert say_minds(traces=True)

    out = capsys.readouterr().out.splitlines()
    assert out[1].split()[-4:] == ["states", "transitions", "depth", "result"]
    assert out[2].startswith("small ")
    assert out[2].endswith(" holds")
    assert f"caught                    small                         4  {RELEASED_FIRST}" in out
    assert out[-1].startswith("   4  the user wants Sat instead")


@pytest.mark.usefixtures("one_small_case")
def test_a_case_without_deep_bounds_is_part_of_another_and_left_out_there(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert say_minds(deep=True)

    assert "small  " not in capsys.readouterr().out.partition("wrong design")[0]


@pytest.mark.usefixtures("one_small_case")
def test_what_goes_wrong_and_what_is_not_caught_is_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = explore_wrong_mind(replace(WRONG_MINDS["release-first"], case="small"))
    monkeypatch.setattr(minds, "explore_minds", lambda *_, **__: wrong)
    harmless = WrongMind(case="small", breaks=RELEASED_FIRST)
    monkeypatch.setattr(minds, "WRONG_MINDS", {"harmless": harmless})

    assert not say_minds()

    out = capsys.readouterr().out
    assert "BROKEN" in out
    assert f"{RELEASED_FIRST}\n   1  the user wants Fri" in out
    assert f"NOT CAUGHT: {RELEASED_FIRST}" in out
