"""Names: one key for every send of an operation, an identity to find it, and what it holds."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from landed.core.arrival import Proposed
from landed.core.canonical import Json
from landed.core.changes import Hold
from landed.core.errors import ProposalError
from landed.core.journal import bodies, body_of
from landed.core.key import Ask, ask_name, held_names, identity_of, key_for, name_of
from landed.core.operation import Happened, Operation, State
from landed.core.operation_record import from_record
from landed.core.outcome import AnswerLost
from landed.core.scope import Send
from tests.core.build import BARE, FULL, RESENDABLE, SENT_AT, lap, operation, replied

FRIDAY: dict[str, Json] = {"day": "Fri", "covers": 4}
SATURDAY: dict[str, Json] = {"day": "Sat", "covers": 4}
ASK = Ask(tenant="t1", session="s1", input="in-1", call_id="c1")


def _made(id: str, arguments: dict = FRIDAY) -> Operation:
    """A proposed operation with the names and the key that its contract gives it."""
    identity = identity_of(FULL, tool="reserve_table", arguments=arguments)
    return operation(
        id=id,
        version=1,
        arguments=arguments,
        key=key_for(FULL, operation=id, session="s1"),
        identity=identity,
        names=held_names(
            FULL, ask=ASK, tool="reserve_table", arguments=arguments, identity=identity
        ),
    )


def _keys_sent(decided) -> list[str]:
    return [each.operation.key for each in decided.commands if isinstance(each, Send)]


# The key.


@pytest.mark.req("K5")
def test_the_key_is_the_operations_own_id():
    assert key_for(FULL, operation="op-a2", session="s1") == "op-a2"


def test_a_contract_can_give_the_key_another_form():
    form = replace(FULL, key_form="{session}:{operation}")
    assert key_for(form, operation="op-a2", session="s1") == "s1:op-a2"


def test_a_service_without_keys_gets_none():
    assert key_for(BARE, operation="op-a2", session="s1") == ""


@pytest.mark.req("S0-29", "S4-03")
def test_the_key_is_recorded_before_the_first_send_and_every_send_carries_it():
    first = lap(contract=RESENDABLE, arrivals=(Proposed(operation=_made("op-a1")),))
    made, sent = first.changes.moves
    assert made.after.frozen["key"] == "op-a1"
    assert sent.event.name == Happened.SENT
    lost = replied(AnswerLost(reason="timed out"))
    again = lap(
        *first.operations.values(), contract=RESENDABLE, arrivals=(lost,), now=SENT_AT + 9.0
    )
    assert _keys_sent(first) == _keys_sent(again) == ["op-a1"]


@pytest.mark.req("S0-29")
def test_changed_details_are_a_new_operation_with_a_new_key():
    friday, saturday = _made("op-a1"), _made("op-a2", SATURDAY)
    decided = lap(arrivals=(Proposed(operation=friday), Proposed(operation=saturday)))
    assert _keys_sent(decided) == ["op-a1", "op-a2"]


@pytest.mark.req("S0-32")
def test_a_resend_by_another_process_carries_the_key_of_the_first():
    first = lap(contract=RESENDABLE, arrivals=(Proposed(operation=_made("op-a1")),))
    made, sent = first.changes.moves
    frozen, changing = bodies(body_of(made), body_of(sent))
    adopted = replace(sent.after, frozen=frozen, changing=changing, epoch=9, worker="w2")
    again = lap(from_record(adopted), contract=RESENDABLE, now=SENT_AT + 9.0)
    assert again.operations["op-a1"].state is State.RESENT
    assert again.operations["op-a1"].tries == 2
    assert _keys_sent(again) == ["op-a1"]


@pytest.mark.req("S0-32")
def test_the_key_of_a_record_does_not_follow_a_contract_that_changed_since():
    renamed = replace(RESENDABLE, key_form="{session}:{operation}")
    again = lap(operation(State.UNKNOWN), contract=renamed, now=SENT_AT + 9.0)
    assert _keys_sent(again) == ["op-a1"]


# The identity: what finds an operation, and never names it.


@pytest.mark.req("K5", "K6")
def test_two_equal_calls_share_an_identity_and_no_key():
    one, other = _made("op-a1"), _made("op-a2")
    assert one.identity == other.identity
    assert one.key != other.key


@pytest.mark.parametrize(
    ("identity", "other", "same"),
    [
        (None, FRIDAY, True),
        (None, {"covers": 4, "day": "Fri"}, True),
        (None, {"day": "Fri", "covers": 4.0}, True),
        (None, {"day": "Fri", "covers": 5}, False),
        (None, {"day": "Fri"}, False),
        (("day",), {"day": "Fri", "covers": 5}, True),
        (("day",), SATURDAY, False),
        (("day", "covers"), {"day": "Fri", "covers": 4, "note": "by the window"}, True),
        ((), {}, True),
        (("note",), {"note": None}, True),
        (("note",), {"note": ""}, False),
    ],
)
def test_the_identity_is_that_of_the_chosen_arguments(identity, other, same):
    contract = replace(FULL, identity=identity)
    digests = [identity_of(contract, tool="t", arguments=each) for each in (FRIDAY, other)]
    assert (digests[0] == digests[1]) is same


def test_two_tools_with_equal_arguments_are_not_the_same_thing():
    assert identity_of(FULL, tool="a", arguments={}) != identity_of(FULL, tool="b", arguments={})


# The names an operation holds.


def _held(*target: str, arguments: dict = FRIDAY, ask: Ask = ASK) -> tuple[str, ...]:
    contract = replace(FULL, target=target)
    return held_names(
        contract, ask=ask, tool="reserve_table", arguments=arguments, identity="sha256:x"
    )


def test_an_operation_holds_its_targets_within_tenant_and_service():
    assert _held("table/{day}") == ("target/t1/restaurant/table%2FFri",)
    assert _held("table-{day}", "covers-{covers}") == (
        "target/t1/restaurant/table-Fri",
        "target/t1/restaurant/covers-4",
    )
    assert _held("the-one-table", arguments={}) == ("target/t1/restaurant/the-one-table",)


def test_an_operation_without_targets_holds_its_identity_within_the_session():
    assert _held() == ("same/t1/s1/reserve_table/sha256:x",)


@pytest.mark.parametrize("ask", [replace(ASK, tenant="t2"), replace(ASK, session="s2")])
def test_another_tenant_or_session_holds_another_identity(ask):
    assert _held(ask=ask) != _held()


def test_the_same_target_is_one_name_across_sessions_and_another_for_each_tenant():
    assert _held("table/{day}", ask=replace(ASK, session="s2")) == _held("table/{day}")
    assert _held("table/{day}", ask=replace(ASK, tenant="t2")) != _held("table/{day}")


@pytest.mark.parametrize("template", ["{no}", "{0}", "{}", "{day.hour}", "{day:d}"])
def test_a_target_that_the_arguments_do_not_name_is_said_to_who_proposed_it(template):
    with pytest.raises(ProposalError) as refused:
        _held("table/" + template)
    assert str(refused.value).startswith("reserve_table: its target ('table/")
    assert "needs an argument that was not given" in str(refused.value)


def test_a_target_that_looks_into_what_has_no_parts_is_said_to_who_proposed_it():
    with pytest.raises(ProposalError):
        _held("table/{covers[0]}")


def test_two_targets_that_come_out_the_same_are_one_name():
    transfer = {"source": "a1", "goal": "a1"}
    assert _held("account/{source}", "account/{goal}", arguments=transfer) == (
        "target/t1/restaurant/account%2Fa1",
    )


# The name of an ask.


def test_an_ask_takes_a_name_for_its_call_id_and_none_without_one():
    assert ask_name(ASK) == "ask/t1/s1/in-1/c1"
    assert ask_name(replace(ASK, call_id="")) == ""


@pytest.mark.parametrize("field", ["tenant", "session", "input", "call_id"])
def test_each_part_of_an_ask_makes_another_name(field):
    other: dict[str, Any] = {field: "other"}
    assert ask_name(replace(ASK, **other)) != ask_name(ASK)


def test_who_asks_and_until_when_make_no_other_name():
    later = replace(ASK, principal="ann", turn="T9", send_by=SENT_AT)
    assert ask_name(later) == ask_name(ASK)


parts = st.text(alphabet="ab-.:é/%25F", min_size=1, max_size=3)
asks = st.builds(Ask, tenant=parts, session=parts, input=parts, call_id=parts)


@given(asks, asks)
def test_two_asks_share_a_name_only_when_they_are_the_same_ask(one, other):
    assert (ask_name(one) == ask_name(other)) is (one == other)


def test_a_slash_in_one_part_does_not_make_two_asks_one():
    one, other = replace(ASK, session="a/b", input="c"), replace(ASK, session="a", input="b/c")
    assert ask_name(one) != ask_name(other)


@given(st.lists(parts, min_size=2, max_size=3), st.lists(parts, min_size=2, max_size=3))
def test_two_names_of_as_many_parts_are_equal_only_when_their_parts_are(one, other):
    if len(one) == len(other):
        assert (name_of(*one) == name_of(*other)) is (one == other)
    assert name_of(*one).count("/") == len(one) - 1


def test_a_proposal_takes_the_name_of_its_ask_for_ever():
    proposed = Proposed(operation=_made("op-a1"), ask_name=ask_name(ASK))
    decided = lap(arrivals=(proposed,))
    assert Hold(name="ask/t1/s1/in-1/c1", record="op-a1") in decided.changes.takes
