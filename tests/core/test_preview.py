"""A preview: what it was computed from, what moved since, and when a person has to agree."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from landed.core.canonical import Json, canonical, parse
from landed.core.contract import Contract, Effect, Freshness, LookAlike, Risk
from landed.core.key import Ask
from landed.core.preview import (
    Changed,
    Preview,
    Previewing,
    Similar,
    basis_fingerprint,
    changed,
    preview_from,
    preview_plain,
    risk_of,
    typed_count,
)

PAY = Contract(effect=Effect.IRREVERSIBLE)
WAS: dict[str, Json] = {"total": 100, "rate": 1.1, "customer": "Ana"}


# What a preview function is handed.


def asked(**arguments):
    made = {"$1": {"total": 120}}
    return Previewing(tool="pay", arguments=arguments, ask=Ask(), now=0.0, made=made)


def test_the_facts_of_what_a_step_will_make_are_at_hand_where_it_is_referred_to():
    assert asked(invoice="$1").facts("invoice") == {"total": 120}


@pytest.mark.parametrize("arguments", [{"invoice": "i9"}, {"invoice": "$2"}, {"invoice": 1}, {}])
def test_a_real_id_has_no_facts_there(arguments):
    assert asked(**arguments).facts("invoice") is None


# What moved.


@pytest.mark.field("C21", "C29")
@pytest.mark.parametrize(
    ("now", "moved"),
    [
        (WAS, []),
        ({**WAS, "total": 120}, [("total", 100, 120)]),
        ({**WAS, "rate": 1.2, "total": 99}, [("rate", 1.1, 1.2), ("total", 100, 99)]),
        ({"total": 100, "rate": 1.1}, [("customer", "Ana", None)]),
        ({**WAS, "blocked": True}, [("blocked", None, True)]),
    ],
)
def test_each_fact_that_moved_is_named_with_what_it_was_and_is(now, moved):
    assert changed(2, WAS, now, PAY) == tuple(
        Changed(step=2, field=field, was=was, now=is_now) for field, was, is_now in moved
    )


@pytest.mark.parametrize(
    ("freshness", "tolerates", "named"),
    [
        (Freshness.STRICT, (), ["rate", "total"]),
        (Freshness.TOLERATE, ("rate",), ["total"]),
        (Freshness.TOLERATE, ("rate", "total"), []),
        (Freshness.NONE, (), []),
    ],
)
def test_what_a_contract_tolerates_may_move(freshness, tolerates, named):
    contract = replace(PAY, freshness=freshness, tolerates=tolerates)
    moved = changed(1, WAS, {**WAS, "total": 1, "rate": 2}, contract)
    assert [each.field for each in moved] == named


def test_only_a_contract_that_tolerates_reads_what_it_tolerates():
    contract = replace(PAY, tolerates=("total",))
    assert len(changed(1, WAS, {**WAS, "total": 1}, contract)) == 1


def test_a_basis_has_one_fingerprint_and_another_fact_another():
    same = basis_fingerprint([{"a": 1, "b": 2.0}, {}])
    assert same == basis_fingerprint([{"b": 2, "a": 1.0}, {}])
    others = [[{"a": 1, "b": 3}, {}], [{}, {"a": 1, "b": 2}], [{"a": 1, "b": 2}], []]
    assert len({same, *map(basis_fingerprint, others)}) == 5


# When a person has to agree.


@pytest.mark.parametrize("effect", Effect)
@pytest.mark.parametrize("declared", Risk)
@pytest.mark.parametrize("origin", ["user", "timer"])
@pytest.mark.parametrize("similar", [False, True])
@pytest.mark.parametrize("look_alike", LookAlike)
def test_a_step_needs_a_yes_where_it_says_so_looks_alike_or_is_final_and_unasked(
    effect, declared, origin, similar, look_alike
):
    contract = Contract(effect=effect, look_alike=look_alike)
    needed = (
        declared is Risk.CONFIRM
        or (similar and look_alike is not LookAlike.NONE)
        or (effect is Effect.IRREVERSIBLE and origin != "user")
    )
    risk = risk_of(contract, declared, origin=origin, similar=similar)
    assert risk is (Risk.CONFIRM if needed else Risk.SAFE)


def test_what_has_to_be_typed_is_the_number_or_the_word():
    assert typed_count(3) == ("3", "DELETE", "BORRAR")


# As plain values.

facts = st.dictionaries(st.text(max_size=4), st.integers(0, 9) | st.text(max_size=4), max_size=3)
texts = st.lists(st.text(max_size=4), max_size=3).map(tuple)
previews = st.builds(
    Preview,
    summary=st.text(max_size=9),
    cost_cents=st.none() | st.integers(0, 9_999),
    basis=facts,
    questions=texts,
    makes=facts,
    typed=texts,
    similar=st.lists(
        st.builds(Similar, id=st.text(max_size=4), text=st.text(max_size=4)), max_size=3
    ).map(tuple),
)


@given(previews)
def test_a_preview_survives_as_plain_values_also_through_json(preview):
    plain = preview_plain(preview)
    assert preview_from(plain) == preview
    again = parse(canonical(plain))
    assert isinstance(again, Mapping)
    assert preview_from(again) == preview
