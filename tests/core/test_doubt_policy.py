"""What a contract says of a doubt: block, reconcile or escalate, by amount and by age."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from landed.core.arrival import LookNow
from landed.core.contract import Contract, WhenUnknown
from landed.core.doubt import (
    Ask,
    Assume,
    Close,
    LookUp,
    SendAgain,
    Verdict,
    WaitUntil,
    doubt,
    is_above,
)
from landed.core.operation import Operation, State
from landed.core.outcome import Absent, LookOutcome, NoAnswer, NotYet
from landed.core.scope import Send
from tests.core.build import (
    BARE,
    FULL,
    LOOKUP_ONLY,
    RESENDABLE,
    SENT_AT,
    commands,
    events,
    lap,
    looked,
    operation,
)

THRESHOLD = replace(FULL, amount="cents", escalate_above=1_000.0)
BLOCKS = replace(FULL, when_unknown=WhenUnknown.BLOCK)
ESCALATES = replace(FULL, when_unknown=WhenUnknown.ESCALATE)
NOW = SENT_AT + 1.0
AT_AGE = SENT_AT + FULL.escalate_after_s


def refund(cents: Any, **fields: Any) -> Operation:
    return operation(State.UNKNOWN, arguments={"cents": cents}, **fields)


# By amount.


@pytest.mark.req("S4-41", "S4-09", "S4-20")
def test_ten_is_found_out_and_ten_thousand_is_put_in_front_of_a_person() -> None:
    assert doubt(refund(10), THRESHOLD, NOW) == LookUp()
    asked = doubt(refund(10_000), THRESHOLD, NOW)
    assert asked == Ask(why="cents is above 1000")
    decided = lap(refund(10_000), contract=THRESHOLD, now=NOW)
    assert (events(decided), commands(decided)) == (["op-a1 gave_up"], [])
    says = "cents is above 1000: a person has to find out"
    assert decided.operations["op-a1"].evidence[-1].says == says


@pytest.mark.parametrize(
    ("amount", "above"),
    [
        (1_000, False),
        (1_000.01, True),
        ("1000", False),
        ("1000.000000000000000001", True),
        (-5_000, False),
        ("a lot", True),
        (None, True),
        ([5], True),
        ({"cents": 5}, True),
        ("NaN", True),
        (True, True),
        ("Infinity", True),
    ],
)
def test_an_amount_that_cannot_be_read_is_a_large_one(amount: Any, above: bool) -> None:
    assert is_above(refund(amount), THRESHOLD) is above


def test_an_amount_that_is_not_there_is_a_large_one_and_without_a_bound_none_is() -> None:
    assert is_above(operation(State.UNKNOWN), THRESHOLD)
    assert not is_above(refund(10**9), FULL)


@given(st.decimals(allow_nan=False, allow_infinity=False, places=2))
def test_the_bound_is_exact(amount: Decimal) -> None:
    assert is_above(refund(str(amount)), THRESHOLD) == (amount > 1_000)


# By age.


@pytest.mark.req("S4-36", "S4-22", "S4-50")
@pytest.mark.req("K11")
@pytest.mark.parametrize("contract", [BARE, LOOKUP_ONLY, FULL, RESENDABLE, BLOCKS])
def test_past_the_age_of_escalation_a_person_is_asked_and_nothing_is_sent(
    contract: Contract,
) -> None:
    """The last look is made first, and the send that a `no` would allow is over by then."""
    held = operation(
        State.UNKNOWN, looked_at=AT_AGE, looked="NoAnswer", looks=9, send_by=AT_AGE * 2
    )
    decided = lap(held, contract=contract, now=AT_AGE)
    assert decided.operations["op-a1"].state is State.UNDECIDED
    assert not [one for one in decided.commands if isinstance(one, Send)]


# Three strategies.


@pytest.mark.req("S4-49")
@pytest.mark.parametrize(
    ("contract", "verdict"),
    [(FULL, LookUp()), (BLOCKS, WaitUntil(AT_AGE)), (ESCALATES, Ask)],
    ids=["reconcile", "block", "escalate"],
)
def test_each_strategy_takes_its_own_next_step(contract: Contract, verdict: Any) -> None:
    came = doubt(operation(State.UNKNOWN), contract, NOW)
    assert came == verdict or (verdict is Ask and isinstance(came, Ask))


@pytest.mark.req("S4-49")
def test_what_blocks_is_looked_at_only_when_somebody_asks_and_never_sent() -> None:
    held = operation(State.UNKNOWN, looked="Absent", looks=1, looked_at=SENT_AT)
    quiet = lap(held, contract=BLOCKS, now=NOW)
    assert (commands(quiet), quiet.wakes) == ([], {"op-a1": AT_AGE})
    asked = lap(held, contract=BLOCKS, arrivals=(LookNow(operation="op-a1"),), now=NOW)
    assert commands(asked) == ["lookup op-a1"]
    unasked = lap(held, contract=FULL, now=NOW)
    assert commands(unasked) == ["send op-a1 2"]


@pytest.mark.req("S4-49")
def test_what_is_in_front_of_a_person_is_looked_at_only_when_somebody_asks() -> None:
    held = operation(State.UNDECIDED, looked="Absent", looks=1, looked_at=SENT_AT)
    assert commands(lap(held, contract=ESCALATES, now=NOW)) == []
    asked = lap(held, contract=ESCALATES, arrivals=(LookNow(operation="op-a1"),), now=NOW)
    assert commands(asked) == ["lookup op-a1"]


# What is true of every policy.

MAYBES: list[LookOutcome] = [NotYet(), NoAnswer(reason="down")]
CONTRACTS = [BARE, LOOKUP_ONLY, FULL, RESENDABLE, BLOCKS, ESCALATES, THRESHOLD]
AGES = st.floats(0.0, 10_000.0, allow_nan=False)


@pytest.mark.req("S4-37", "S4-36")
@pytest.mark.req("K9")
@given(
    contract=st.sampled_from([one for one in CONTRACTS if one.lookup]),
    looks=st.lists(st.sampled_from([*MAYBES, Absent()]), min_size=1, max_size=8),
    pauses=st.lists(AGES, min_size=8, max_size=8),
)
def test_no_send_follows_a_maybe(
    contract: Contract, looks: list[LookOutcome], pauses: list[float]
) -> None:
    held, now = operation(State.UNKNOWN, send_by=10.0**9), SENT_AT + 6.0
    for outcome, pause_s in zip(looks, pauses, strict=False):
        came = looked(outcome, attempt=held.tries, asked_at=now, late_s=0.0)
        decided = lap(held, contract=contract, arrivals=(came,), now=now + pause_s)
        held, now = decided.operations["op-a1"], now + pause_s
        if held.state is State.RESENT:
            assert isinstance(outcome, Absent)
            return
        if held.final or held.state is State.UNDECIDED:
            return


@pytest.mark.req("S4-22")
@given(contract=st.sampled_from(CONTRACTS), age_s=AGES, looks=st.integers(0, 20))
def test_no_policy_says_what_became_of_it(contract: Contract, age_s: float, looks: int) -> None:
    """A verdict is a step towards knowing, or a person; time alone never makes it a yes or a no."""
    held = operation(State.UNKNOWN, looks=looks, looked="NoAnswer")
    verdict: Verdict = doubt(held, contract, SENT_AT + age_s)
    assert isinstance(verdict, LookUp | Close | SendAgain | WaitUntil | Ask)


@pytest.mark.req("K10")
@pytest.mark.parametrize("age_s", [0.0, 4.9, 5.0, 1_000.0])
def test_it_is_taken_for_landed_only_where_the_contract_declares_that_harmless(
    age_s: float,
) -> None:
    assumes = replace(BARE, assume_after_s=5.0)
    held = operation(State.UNKNOWN)
    assert (doubt(held, assumes, SENT_AT + age_s) == Assume()) is (age_s >= 5.0)
    assert doubt(held, BARE, SENT_AT + age_s) != Assume()
