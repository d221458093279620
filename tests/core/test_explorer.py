"""Every state an operation can get into keeps the promises, and every wrong design is caught."""

from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from functools import partial
from typing import Any

import pytest

from landed.core.operation import Operation
from landed.testing import explorer
from landed.testing.explored.cases import BARE, CASES, KEYED, NARROW, REFUSES_LATE, SHORTER, Case
from landed.testing.explored.naming import DECIDING, INERT, JUDGED, SAME_FOR_ALL, Naming
from landed.testing.explored.properties import CAN_STILL_LAND, PROMISES, TWO_EFFECTS
from landed.testing.explored.steps import steps
from landed.testing.explored.world import Setup, World, first_world, time_of
from landed.testing.explorer import explore, explore_equivalent, explore_mutant, main
from landed.testing.variants import EQUIVALENTS, LIMITS, MUTANTS, Mutant
from tests.sampling import except_for

PATIENCE_S = 300  # Seconds of nothing but computing, on a machine that may have other things to do.

req, fault = pytest.mark.req, pytest.mark.fault

# What each contract proves beyond "no promise is broken", and the trouble that it must have met.
CASE_MARKS = {
    "bare": [fault("X19"), req("S4-24")],
    "refuses-late": [fault("X53"), req("S0-26")],
    "refuses-late-lagging": [fault("X55")],
    "keyed": [fault("X52")],
    "uncompared-lookup-close": [fault("X53", "X54"), req("S0-27")],
    "forgetful": [fault("X56"), req("S4-38")],
    "forgetful-close": [fault("X56")],
    "bare-restored": [fault("X38")],
    "refuses-late-restored": [fault("X38")],
    "close-restored": [fault("X38")],
}
TROUBLES = {
    "bare-restored": ["a backup is made", "the backup is put back", "A writes restored"],
    "bare": [
        "A crashes",
        "B takes over",
        "A cannot write: another has taken over",
        "A hears that its claim is lost",
        "time passes",
        "send 1 of A never leaves",
        "send 1 arrives; the far side refuses",
        "somebody asks B to look now",
    ],
    "refuses-late": ["send 1 arrives; the far side refuses: too old", "A hears nothing more"],
    "keyed": [
        "send 2 leaves B",
        "send 1 arrives; the far side performs it; it was copied on the way",
        "send 2 arrives; the far side answers as before",
    ],
    "read-back": ["send 1 arrives; the far side says yes and does nothing"],
    "uncompared-lookup-close": [
        "the caller lets go",
        "send 1 arrives; the far side refuses: the key is closed",
    ],
    "forgetful-close": [
        "the far side forgets the key",
        "a copy of send 1 arrives; the far side answers as before",
    ],
}
MUTANT_MARKS = {
    "lookup-instead-of-close": [fault("X53", "X54"), req("S0-27")],
    "no-fencing": [fault("X18"), req("S4-25")],
    "last-write-wins": [fault("X19")],
    "send-before-commit": [req("S0-43")],
    "resend-after-close": [fault("X02")],
    "resend-on-maybe": [req("S4-37")],
    "forget-too-early": [fault("X56"), req("S4-38")],
    "answered-is-asked": [req("S0-26")],
    "lag-ignored": [fault("X55")],
    "restore-unnoticed": [fault("X38")],
}


# Walks of nine seconds and more; `make test-services` takes them too.
LONG = frozenset(
    {
        *("keyed-lookup", "keyed-lookup-close", "keyed-lookup-stale", "keyed-read-back"),
        *(
            "uncompared-lookup-close",
            "forgetful",
            "forgetful-close",
            "closing-ignored",
            "no-versions",
        ),
        *("refuses-late-restored", "close-restored", "refuses-late-lagging", "refuses-late"),
        *("keyed", "assumed", "last-write-wins", "trusts-forgotten-keys", "read-back"),
        *("never-asks", "forget-too-early", "waits-anew"),
    }
)


def marked(names: Iterable[str], marks: Mapping[str, list[pytest.MarkDecorator]]) -> list[Any]:
    def of(name: str) -> list[pytest.MarkDecorator]:
        return [*marks.get(name, []), *([pytest.mark.services] if name in LONG else [])]

    return [pytest.param(name, marks=of(name)) for name in names]


# The right design.


@pytest.mark.timeout(PATIENCE_S)
@pytest.mark.parametrize("name", marked(CASES, CASE_MARKS))
def test_no_reachable_state_breaks_a_promise(name: str) -> None:
    seen = explore(CASES[name].contract, bounds=CASES[name].bounds)

    assert seen.violations == ()
    assert seen.complete
    assert seen.states > 1_000
    for trouble in TROUBLES.get(name, ()):
        assert any(trouble in says for says in seen.happened), f"never seen: {trouble}"


def test_a_search_that_is_cut_off_does_not_claim_to_have_seen_everything() -> None:
    seen = explore(BARE, bounds=replace(NARROW, states_max=100))

    assert not seen.complete
    assert not seen.holds
    assert seen.violations == ()


# Wrong designs.


def caught(mutant: Mutant) -> dict[str, tuple[str, ...]]:
    return {each.says: each.trace for each in explore_mutant(mutant).violations}


@pytest.mark.timeout(PATIENCE_S)
@pytest.mark.parametrize("name", marked(MUTANTS, MUTANT_MARKS))
def test_a_wrong_design_is_caught(name: str) -> None:
    found = caught(MUTANTS[name])

    assert found.keys() >= set(MUTANTS[name].breaks)


def test_each_promise_is_broken_by_some_wrong_design() -> None:
    broken = {promise for mutant in MUTANTS.values() for promise in mutant.breaks}

    assert broken == set(PROMISES)


def test_the_shortest_way_is_told_step_by_step() -> None:
    assert caught(MUTANTS["timeout-is-no"])[CAN_STILL_LAND] == (
        "A writes made, sent",
        "send 1 leaves A",
        "A hears nothing more; A writes refused",
    )


@pytest.mark.timeout(PATIENCE_S)
@pytest.mark.parametrize("name", except_for(EQUIVALENTS, LONG.__contains__))
def test_what_may_be_taken_out_is_really_noticed_by_nothing(name: str) -> None:
    assert explore_equivalent(EQUIVALENTS[name]).holds
    assert EQUIVALENTS[name].reason


@pytest.mark.parametrize("name", LIMITS)
def test_what_no_design_survives_is_known(name: str) -> None:
    assert caught(LIMITS[name]).keys() >= set(LIMITS[name].breaks)


# The keys, on which "everything was seen" rests.


def test_every_field_of_an_operation_is_in_the_key_or_known_not_to_matter() -> None:
    listed = [*DECIDING, *JUDGED, *SAME_FOR_ALL, *INERT]

    assert sorted(listed) == sorted(each.name for each in fields(Operation))


def follow(world: World, setup: Setup, *says: str) -> World:
    for each in says:
        world = next(step.world for step in steps(world, setup) if step.says == each)
    return world


def test_who_is_called_a_makes_no_difference() -> None:
    setup = Setup(contract=KEYED)
    naming = Naming(KEYED, fenced=True)
    sent = follow(first_world(setup), setup, "A writes made, sent", "A crashes")
    by_a = follow(sent, setup, "A takes over")
    by_b = follow(sent, setup, "B takes over")

    assert naming.key(by_a) == naming.key(by_b)
    assert naming.key(by_a) != naming.key(sent)


def test_how_old_a_send_is_makes_a_difference_only_where_the_contract_says_so() -> None:
    for contract, same in ((KEYED, True), (REFUSES_LATE, False)):
        setup = Setup(contract=contract)
        naming = Naming(contract, fenced=True)
        world = follow(first_world(setup), setup, "A writes made, sent", "send 1 leaves A")
        world = follow(world, setup, "time passes", "time passes")
        (request,) = world.requests
        older = replace(request, sent_at=time_of(-1))

        key = naming.key(replace(world, requests=frozenset({older})))

        assert (key == naming.key(world)) is same


# The face.


@pytest.fixture
def one_small_case(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        explorer, "CASES", {"small": Case(contract=BARE, bounds=NARROW, deep=SHORTER)}
    )
    for table in ("MUTANTS", "LIMITS", "EQUIVALENTS"):
        monkeypatch.setattr(explorer, table, {})
    monkeypatch.setattr(explorer, "say_minds", lambda **_: True)


@pytest.mark.usefixtures("one_small_case")
def test_one_contract_is_told_in_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["--case", "small"])

    heading, line = capsys.readouterr().out.splitlines()
    assert status == 0
    assert heading.split() == ["contract", "states", "transitions", "depth", "result"]
    assert line.startswith("small ")
    assert line.endswith(" holds")


@pytest.mark.usefixtures("one_small_case")
def test_a_deep_run_gives_more_trouble(capsys: pytest.CaptureFixture[str]) -> None:
    states = []
    for arguments in ([], ["--deep"]):
        assert main(arguments) == 0
        (line,) = [each for each in capsys.readouterr().out.splitlines() if "small" in each]
        states.append(int(line.split()[1].replace(",", "")))

    assert states[1] > states[0]


@pytest.mark.usefixtures("one_small_case")
def test_the_table_says_what_was_caught_and_what_was_not(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    late = replace(MUTANTS["timeout-is-no"], case="small")
    harmless = Mutant(case="small", breaks=(TWO_EFFECTS,))
    monkeypatch.setattr(explorer, "MUTANTS", {"late": late, "harmless": harmless})

    status = main(["--traces"])

    out = capsys.readouterr().out
    assert status == 1
    assert f"late                      small                         3  {CAN_STILL_LAND}" in out
    assert "   3  A hears nothing more; A writes refused" in out
    assert f"NOT CAUGHT: {TWO_EFFECTS}" in out


@pytest.mark.usefixtures("one_small_case")
def test_a_broken_promise_is_told_with_the_way_there(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = partial(explore, rules=MUTANTS["timeout-is-no"].rules)
    monkeypatch.setattr(explorer, "explore", wrong)

    status = main([])

    out = capsys.readouterr().out
    assert status == 1
    assert "BROKEN" in out
    assert f"{CAN_STILL_LAND}\n   1  A writes made, sent\n" in out
