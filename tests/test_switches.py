"""The switches of the demo: every combination that is tabulated ends as the table says."""

import pytest

from landed.testing.revisions import IN_FLIGHT
from landed.testing.scenario import run
from landed.testing.scenarios import BY_NAME
from landed.testing.switches import COMBINATIONS, MORE, TABLE, End, Switches, switched
from tests.reading import at, held, texts

EVERY = (*COMBINATIONS, *MORE)


def _touched(switches: Switches) -> dict[str, object]:
    return {name: getattr(switches, name) for name in switches.touched}


def _named(one: object) -> str:
    if not isinstance(one, Switches):
        return ""
    return " ".join(f"{name}={value}" for name, value in sorted(_touched(one).items())) or "none"


@pytest.mark.req("S0-67")
def test_there_are_fourteen_combinations() -> None:
    assert len(COMBINATIONS) == 14
    rules = {(s.reconcile, s.delayed, s.fencing) for s, _ in COMBINATIONS[:8]}
    contract = {(s.order, s.full) for s, _ in COMBINATIONS[8:12]}
    assert (len(rules), len(contract)) == (8, 4)
    assert [s.lose_ops for s, _ in COMBINATIONS[12:]] == [False, True]


@pytest.mark.req("S0-67", "F0-01", "F0-02", "F0-03", "F0-07", "F0-08", "F0-09")
@pytest.mark.parametrize("seed", [None, 1, 2])
@pytest.mark.parametrize(("switches", "end"), EVERY, ids=_named)
def test_every_combination_ends_as_tabulated(
    switches: Switches, end: End, seed: int | None
) -> None:
    ran = run(switched(IN_FLIGHT, **_touched(switches)), seed=seed)

    assert ran.as_described is True
    assert held(ran) == end.holds
    assert ran.reconciled is end.reconciled
    assert texts(ran, "crash") == list(switches.kill)


@pytest.mark.req("F0-09")
def test_a_store_that_lost_its_operations_books_a_third_table_and_never_releases() -> None:
    (lost,) = [switches for switches, _ in COMBINATIONS if switches.lose_ops]

    ran = run(switched(IN_FLIGHT, **_touched(lost)))

    assert texts(ran, "restart") == ["0 operation(s) in the log"]
    assert len(held(ran)) == 3
    assert "cancelled R1" not in texts(ran, "restaurant")


@pytest.mark.req("S0-21", "S0-67")
def test_fencing_says_whether_close_is_used() -> None:
    fenced, looked = run(IN_FLIGHT), run(switched(IN_FLIGHT, fencing=False))

    assert texts(fenced, "resolve") == ["s1:op-a2: R1; key closed"]
    assert texts(looked, "resolve") == ["s1:op-a2: R1"]
    assert not any("closed" in text for text in texts(looked, "restaurant"))


@pytest.mark.req("S0-41")
def test_the_order_is_a_field_of_the_contract() -> None:
    first = run(switched(IN_FLIGHT, order="release-first"))

    assert at(first, "restaurant", "cancelled R1") < at(first, "restaurant", "committed R2")


@pytest.mark.req("S0-67")
def test_untouched_switches_leave_a_scenario_as_it_is() -> None:
    assert switched(IN_FLIGHT) is IN_FLIGHT
    assert switched(IN_FLIGHT, reconcile=True, key="operation", full=()) is IN_FLIGHT


@pytest.mark.parametrize(
    ("name", "switches"),
    [
        ("revise-in-flight", {"reconcile": False, "fee_cents": 2000}),
        ("revise-in-flight", {"full": ("Sat", "Sun")}),
        ("revise-in-flight", {"strict_keys": False}),
        ("reply-lost", {"delayed": True}),
        ("fee-consent", {"order": "release-first"}),
    ],
)
def test_of_a_combination_without_a_tabulated_end_nothing_is_said(
    name: str, switches: dict[str, object]
) -> None:
    ran = run(switched(BY_NAME[name], **switches))

    assert ran.as_described is None
    assert ran.plain()["as_described"] is None


@pytest.mark.parametrize(
    ("switches", "words"),
    [
        ({"key": "table"}, "there is no key 'table'; choose one of operation, step, turn"),
        ({"order": "both"}, "there is no order 'both'; choose one of secure-first"),
        ({"full": ("Someday",)}, "no such day: Someday"),
    ],
)
def test_a_switch_that_makes_no_sense_says_what_does(
    switches: dict[str, object], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        switched(IN_FLIGHT, **switches)


def test_no_two_rows_of_the_table_contradict_each_other() -> None:
    assert all(TABLE[switches] == end for switches, end in EVERY)
