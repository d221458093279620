"""A contract that contradicts itself is refused with advice, and a sound one survives as values."""

from collections.abc import Mapping
from dataclasses import FrozenInstanceError, fields, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from landed.core.canonical import canonical, parse
from landed.core.contract import (
    CONTRADICTIONS,
    LANGUAGES,
    REFUSALS,
    SAYABLE,
    UNDECLARED,
    Contract,
    Effect,
    Freshness,
    Interrupt,
    LookAlike,
    OnExpiry,
    Order,
    Risk,
    WhenUnknown,
    WhileUnknown,
    check,
    filled,
)
from landed.core.declared import digest_of, from_values, values
from landed.core.errors import ContractError, ProposalError
from tests.core.build import BARE, FULL

READS = Contract(effect=Effect.NONE, service="restaurant")
TEXTS = Contract(effect=Effect.IRREVERSIBLE, service="phone")

# What contradicts itself ▸ a few words of the advice.
REFUSED: list[tuple[Contract, str]] = [
    (replace(READS, keyed="key"), "declare the effect or drop the promise"),
    (replace(READS, keyed="key", close=True), "declare the effect or drop the promise"),
    (replace(READS, undo="cancel"), "declare the effect or drop the promise"),
    (replace(READS, read_back=True), "declare the effect or drop the promise"),
    (replace(READS, assume_after_s=0.0), "declare the effect or drop the promise"),
    (replace(BARE, compares_payload=True), "name the parameter that carries the key"),
    (replace(BARE, retention_s=60.0), "name the parameter that carries the key"),
    (replace(BARE, close=True), "name the key's parameter in keyed="),
    (replace(BARE, assume_after_s=5.0), "declare it on an irreversible effect or drop it"),
    (replace(TEXTS, assume_after_s=5.0, lookup=True), "drop one of them"),
    (replace(TEXTS, assume_after_s=5.0, keyed="key", close=True), "drop one of them"),
    (replace(TEXTS, assume_after_s=5.0, read_back=True), "drop one of them"),
    (replace(TEXTS, undo="unsend"), "name what corrects it in correct="),
    (replace(BARE, undo_arguments={"id": "{result.id}"}), "name the tool in undo="),
    (replace(BARE, undo_price="fee_cents", undo_priced_by="quote"), "name the tool in undo="),
    (replace(BARE, undo="cancel", undo_price="fee_cents"), "give both undo_priced_by"),
    (replace(BARE, undo="cancel", undo_priced_by="quote"), "give both undo_priced_by"),
    (replace(BARE, undo_within_s=60.0), "name the tool in undo="),
    (replace(BARE, undo_where="result.cancellable"), "name the tool in undo="),
    (replace(BARE, correct="write_again"), "is undone and done again"),
    (replace(BARE, correct_arguments={"text": "sorry"}), "is undone and done again"),
    (replace(BARE, freshness=Freshness.TOLERATE), "name the facts that may move"),
    (replace(BARE, tolerates=("rate",)), "name the facts that may move"),
    (replace(BARE, amount="cents"), "above which amount an unknown goes to a person"),
    (replace(READS, risk=Risk.CONFIRM), "drop risk, look_alike and unique"),
    (replace(READS, look_alike=LookAlike.WARN), "drop risk, look_alike and unique"),
    (replace(READS, unique=("refund/{order}",)), "drop risk, look_alike and unique"),
    (replace(BARE, on_interrupt=Interrupt.WAIT), "needs a bound in wait_s"),
    (replace(BARE, wait_s=0.05), "means nothing without it"),
    (replace(BARE, order=Order.RELEASE_FIRST), "say why in order_why"),
    (replace(BARE, order_why="two holds cost twice"), "which is only read then"),
    (replace(BARE, deadline_s=0.0), "deadline_s must be above 0"),
    (replace(BARE, max_tries=0), "max_tries at least 1"),
    (replace(BARE, concurrency=-1), "concurrency at least 0"),
    (replace(BARE, keyed="key", retention_s=-1.0), "a time cannot be negative"),
    (replace(BARE, refuses_after_s=-1.0), "a time cannot be negative"),
    (replace(TEXTS, assume_after_s=-1.0), "a time cannot be negative"),
    (replace(BARE, settlement_lag_s=-1.0), "a time cannot be negative"),
    (replace(TEXTS, assume_after_s=5.0, escalate_after_s=4.0), "make it the smaller one"),
    (replace(FULL, key_form="{session}"), "two operations would share one key"),
    (replace(FULL, key_form="constant"), "two operations would share one key"),
    (replace(FULL, key_form="{operation}/{attempt}"), "speaks of 'attempt'"),
    (replace(FULL, key_form="{operation.__class__}"), "speaks of 'operation.__class__'"),
    (replace(FULL, key_form="{}"), "speaks of ''"),
    (replace(FULL, key_form="{operation"), "key_form is not a template"),
]

SOUND: list[Contract] = [
    BARE,
    FULL,
    READS,
    TEXTS,
    UNDECLARED,
    replace(READS, lookup=True),
    replace(TEXTS, assume_after_s=0.0),
    replace(TEXTS, correct="send_correction"),
    replace(BARE, undo="cancel_reservation"),
    replace(BARE, undo="cancel", undo_arguments={"id": "{result.id}"}, undo_within_s=60.0),
    replace(BARE, undo="cancel", undo_price="fee_cents", undo_priced_by="quote"),
    replace(BARE, undo="cancel", undo_where="cancellable"),
    replace(BARE, freshness=Freshness.TOLERATE, tolerates=("rate",)),
    replace(BARE, freshness=Freshness.NONE, on_expiry=OnExpiry.STOP),
    replace(BARE, look_alike=LookAlike.BLOCK, unique=("refund/{order}",), risk_varies=True),
    replace(READS, preview=True, permission="table.read", accepts={"table": "table"}),
    replace(BARE, on_interrupt=Interrupt.WAIT, wait_s=0.05),
    replace(BARE, on_interrupt=Interrupt.FINISH),
    replace(BARE, order=Order.RELEASE_FIRST, order_why="two holds cost twice"),
    replace(FULL, retention_s=0.0, refuses_after_s=0.0),
    replace(FULL, key_form="{session}:{operation}"),
    replace(BARE, deadline_s=0.001, max_tries=1),
]


# What registration refuses.


@pytest.mark.parametrize(("contract", "advice"), REFUSED, ids=[each[1] for each in REFUSED])
def test_a_contradiction_is_refused_and_the_text_says_what_to_do(contract, advice):
    with pytest.raises(ContractError) as refused:
        check(contract, tool="reserve_table")
    assert str(refused.value).startswith("contract of reserve_table: ")
    assert advice in str(refused.value)


def test_every_row_of_the_contradictions_has_a_contract_above_that_it_alone_refuses():
    alone = [
        [row for row, (contradicts, _) in enumerate(CONTRADICTIONS) if contradicts(contract)]
        for contract, _ in REFUSED
    ]
    assert {found[0] for found in alone if len(found) == 1} == set(range(len(CONTRADICTIONS)))


@pytest.mark.parametrize("contract", SOUND)
def test_a_contract_without_a_contradiction_comes_back_as_it_was(contract):
    assert check(replace(contract, service="far"), tool="t") == replace(contract, service="far")


def test_a_service_that_is_not_named_is_the_tool_itself():
    assert check(replace(BARE, service=""), tool="reserve_table").service == "reserve_table"


@pytest.mark.req("S0-36")
@pytest.mark.parametrize("effect", [Effect.NONE, Effect.REVERSIBLE])
def test_assuming_is_refused_for_what_could_be_undone(effect):
    with pytest.raises(ContractError, match="assume_after_s"):
        check(Contract(effect=effect, assume_after_s=5.0), tool="reserve_table")


@pytest.mark.req("S0-37")
def test_a_contract_must_say_what_the_tool_does_to_the_world():
    with pytest.raises(ContractError, match="say what it does to the world: effect='none'"):
        from_values({"risk": "safe"}, tool="reserve_table")


# The words of a contract.


@pytest.mark.req("S0-42")
def test_a_language_without_defaults_must_have_words_for_every_state():
    words = dict.fromkeys(SAYABLE, "…")
    assert check(replace(BARE, says={"de": words}), tool="t").says == {"de": words}
    for state in SAYABLE:
        missing = {each: "…" for each in SAYABLE if each != state}
        with pytest.raises(ContractError, match=f"no words in 'de' for '{state}'"):
            check(replace(BARE, says={"de": missing}), tool="t")


@pytest.mark.req("S0-42")
@pytest.mark.parametrize("state", ["assumed", "unknown"])
def test_a_contract_can_say_in_its_own_words_what_is_in_doubt_or_assumed(state):
    said = replace(BARE, says={"en": {state: "we do not know yet"}})
    assert check(said, tool="t").says["en"][state] == "we do not know yet"


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_language_with_defaults_needs_no_words_at_all(language):
    assert check(replace(BARE, says={language: {}}), tool="t").says == {language: {}}


@pytest.mark.parametrize("language", [*LANGUAGES, "de"])
def test_words_for_what_is_not_a_state_are_refused(language):
    with pytest.raises(ContractError, match="'cancelled', which is not a state; use one of acc"):
        check(replace(BARE, says={language: {"cancelled": "…"}}), tool="t")


# What the defaults promise.


def test_a_tool_that_nobody_wrote_a_contract_for_fails_closed():
    assert UNDECLARED.effect is Effect.IRREVERSIBLE
    assert UNDECLARED.risk is Risk.CONFIRM
    assert UNDECLARED.keyed == ""
    assert not UNDECLARED.resendable
    assert not UNDECLARED.lookup
    assert UNDECLARED.assume_after_s is None


@pytest.mark.parametrize("code", [408, 409, 425, 500, 502, 503, 504])
def test_by_default_a_reply_that_may_come_after_an_effect_is_no_refusal(code):
    assert code not in REFUSALS


@pytest.mark.req("K9")
@pytest.mark.parametrize(
    ("keyed", "compares", "resendable"),
    [("", False, False), ("key", False, False), ("key", True, True)],
)
def test_only_a_key_whose_payload_is_compared_may_be_sent_again(keyed, compares, resendable):
    assert replace(BARE, keyed=keyed, compares_payload=compares).resendable is resendable


# As values, from TOML and in the record.

seconds = st.floats(min_value=0, max_value=1e6)
names = st.text(max_size=6)
words = st.dictionaries(names, names, max_size=2)

# How a field is drawn, by its type: a new field is drawn without another word.
BY_TYPE: dict[Any, st.SearchStrategy[Any]] = {
    Effect: st.sampled_from(Effect),
    Risk: st.sampled_from(Risk),
    LookAlike: st.sampled_from(LookAlike),
    Freshness: st.sampled_from(Freshness),
    OnExpiry: st.sampled_from(OnExpiry),
    Interrupt: st.sampled_from(Interrupt),
    Order: st.sampled_from(Order),
    WhenUnknown: st.sampled_from(WhenUnknown),
    WhileUnknown: st.sampled_from(WhileUnknown),
    str: names,
    bool: st.booleans(),
    int: st.integers(0, 9),
    float: seconds,
    float | None: st.none() | seconds,
    tuple[int, ...]: st.lists(st.integers(400, 499), max_size=3).map(tuple),
    tuple[str, ...]: st.lists(names, max_size=3).map(tuple),
    tuple[str, ...] | None: st.none() | st.lists(names, max_size=3).map(tuple),
    Mapping[str, str]: words,
    Mapping[str, Mapping[str, str]]: st.dictionaries(names, words, max_size=2),
}
contracts = st.builds(Contract, **{each.name: BY_TYPE[each.type] for each in fields(Contract)})


@given(contracts)
def test_a_contract_survives_as_values_also_through_json(contract):
    plain = values(contract)
    assert from_values(plain, tool="t") == contract
    again = parse(canonical(plain))
    assert isinstance(again, Mapping)
    assert from_values(again, tool="t") == contract
    assert digest_of(from_values(again, tool="t")) == digest_of(contract)


@pytest.mark.parametrize("name", [each.name for each in fields(Contract)])
@settings(max_examples=settings().max_examples // 5)
@given(data=st.data())
def test_every_field_has_a_part_in_the_digest(name, data):
    (kind,) = (each.type for each in fields(Contract) if each.name == name)
    other = replace(FULL, **{name: data.draw(BY_TYPE[kind])})
    assert (digest_of(other) == digest_of(FULL)) is (other == FULL)


def test_what_a_contract_holds_is_plain_or_it_has_no_digest():
    with pytest.raises(TypeError, match="a contract holds plain values, not <object"):
        digest_of(replace(FULL, service=object()))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("plain", "says"),
    [
        ({"effect": "maybe"}, "effect: 'maybe' is not a valid Effect"),
        ({"effect": "none", "risk": 3}, "risk: '3' is not a valid Risk"),
        ({"effect": "none", "on_interrupt": "panic"}, "on_interrupt: 'panic' is not"),
        ({"effect": "none", "order": "any"}, "order: 'any' is not"),
        ({"effect": "none", "while_unknown": "go"}, "while_unknown: 'go' is not"),
        ({"effect": "none", "look_alike": "ask"}, "look_alike: 'ask' is not"),
        ({"effect": "none", "freshness": "old"}, "freshness: 'old' is not"),
        ({"effect": "none", "on_expiry": "go"}, "on_expiry: 'go' is not"),
        ({"effect": "none", "tolerates": "rate"}, "tolerates: a list is wanted, not 'rate'"),
        ({"effect": "none", "unique": "order"}, "unique: a list is wanted, not 'order'"),
        ({"effect": "none", "accepts": ["draft"]}, "accepts: a table of texts by name"),
        ({"effect": "none", "refusals": 404}, "refusals: a list is wanted, not 404"),
        ({"effect": "none", "target": "table"}, "target: a list is wanted, not 'table'"),
        ({"effect": "none", "identity": "day"}, "identity: a list is wanted, not 'day'"),
        ({"effect": "none", "efect": "none"}, "there is no field 'efect'; the fields are accepts"),
    ],
)
def test_values_that_do_not_fit_are_refused_by_name(plain, says):
    with pytest.raises(ContractError) as refused:
        from_values(plain, tool="t")
    assert str(refused.value).startswith("contract of t: ")
    assert says in str(refused.value)


@pytest.mark.parametrize(
    "plain",
    [
        {"effect": "reversible", "lookup": "no"},
        {"effect": "reversible", "lookup": 1},
        {"effect": "reversible", "deadline_s": "thirty"},
        {"effect": "reversible", "deadline_s": True},
        {"effect": "reversible", "max_tries": 2.5},
        {"effect": "reversible", "max_tries": True},
        {"effect": "reversible", "retention_s": "a day"},
        {"effect": "reversible", "keyed": 3},
        {"effect": "reversible", "keyed": None},
        {"effect": "reversible", "says": 3},
        {"effect": "reversible", "says": {"en": "done"}},
        {"effect": "reversible", "undo_arguments": ["id"]},
        {"effect": "reversible", "undo_arguments": {"id": 3}},
        {"effect": "reversible", "accepts": {"draft": 3}},
        {"effect": "reversible", "risk_varies": "yes"},
        {"effect": "reversible", "permission": None},
        {"effect": "reversible", "makes_type": ["invoice"]},
        *(
            pytest.param({"effect": "reversible", **elements})
            for elements in (
                {"refusals": ["404"]},
                {"target": [3]},
                {"identity": [3]},
                {"tolerates": [3]},
                {"unique": [3]},
            )
        ),
    ],
    ids=lambda plain: f"{list(plain)[1]}={list(plain.values())[1]}",
)
def test_a_plain_value_of_another_type_is_refused_by_name(plain):
    with pytest.raises(ContractError, match=list(plain)[1]):
        check(from_values(plain, tool="t"), tool="t")


def test_a_key_form_whose_braces_are_only_text_is_refused():
    with pytest.raises(ContractError, match="two operations would share one key"):
        check(replace(FULL, key_form="{{operation}}"), tool="t")


# Arguments from templates.

GIVEN: dict[str, Any] = {"day": "Fri", "covers": 4, "who": {"name": "Ann"}}
MADE: dict[str, Any] = {"id": "R1", "price": {"cents": 2000}}


@pytest.mark.parametrize(
    ("template", "comes_to"),
    [
        ("{day}", "Fri"),
        ("{covers}", 4),
        ("{who}", {"name": "Ann"}),
        ("{who.name}", "Ann"),
        ("{result}", MADE),
        ("{result.id}", "R1"),
        ("{result.price.cents}", 2000),
        ("{covers} on {day}", "4 on Fri"),
        ("R-{result.id}", "R-R1"),
        ("{result.id}!", "R1!"),
        ("as it is", "as it is"),
        ("", ""),
    ],
)
def test_an_argument_is_filled_in_and_a_field_alone_keeps_its_type(template, comes_to):
    assert filled({"to": template}, arguments=GIVEN, result=MADE) == {"to": comes_to}


@pytest.mark.parametrize(
    "template", ["{no}", "{who.age}", "{day.hour}", "{result.id.part}", "{result.no} and more"]
)
def test_a_template_that_speaks_of_what_is_not_there_is_refused_with_what_is(template):
    with pytest.raises(ProposalError, match="to fill in; given: day, covers, who, result"):
        filled({"to": template}, arguments=GIVEN, result=MADE)


def test_a_contract_cannot_be_changed_once_it_is_made():
    with pytest.raises(FrozenInstanceError):
        BARE.keyed = "key"  # type: ignore[misc]
