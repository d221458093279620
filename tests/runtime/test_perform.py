"""What `perform` returns, for everything that can become of a call, and when it returns."""

import pytest

from landed.core.errors import ContractError, ProposalError
from landed.core.key import Ask
from landed.core.operation import State
from landed.core.value import (
    Accepted,
    Answered,
    Assumed,
    Blocked,
    Confirmed,
    Failed,
    Unanswered,
    Undecided,
    Unknown,
    Withdrawn,
)
from landed.runtime.opened import Settings
from landed.runtime.runtime import Runtime
from landed.tools.function import tool
from tests.runtime.rig import (
    DEADLINE_S,
    DROPPED,
    REFUSED,
    REPLY_LOST,
    RESET,
    TAKEN,
    Rig,
    Wire,
    booking,
    never,
    no_word,
    told_nothing_wrong,
    unkeyed,
)

FRIDAY = {"day": "Fri"}


async def book_friday(rt: Runtime):
    return await rt.perform("book", FRIDAY)


async def mail_ana(rt: Runtime):
    return await rt.perform("mail", {"to": "ana"})


# What it comes to.


def test_a_yes_is_confirmed_with_its_result(rig: Rig) -> None:
    value = rig.run(book_friday, booking(rig.far))
    assert value == Confirmed(operation="op-a1", text=value.text, result={"id": "R1"})
    assert "R1" in value.text
    assert rig.events("op-a1") == ["made", "sent", "acknowledged"]


@pytest.mark.req("S4-03", "S0-20")
def test_the_key_is_stored_before_the_send_and_is_the_one_on_the_wire(rig: Rig) -> None:
    rig.run(book_friday, booking(rig.far, key_form="{session}:{operation}"))
    assert rig.operation().key == "main:op-a1"
    assert list(rig.far.effects) == ["main:op-a1"]


def test_a_no_of_the_service_is_failed_and_nothing_is_asked(rig: Rig) -> None:
    rig.far.wire.append(REFUSED)
    value = rig.run(book_friday, booking(rig.far))
    assert isinstance(value, Failed)
    assert "the day is full" in value.reason
    assert (rig.far.total, rig.far.questions) == (0, [])


@pytest.mark.req("S4-02", "S4-08")
@pytest.mark.fault("X51")
def test_a_lost_reply_is_looked_up_and_found(rig: Rig) -> None:
    rig.far.wire.append(REPLY_LOST)
    value = rig.run(book_friday, booking(rig.far))
    assert isinstance(value, Confirmed)
    assert value.result == {"id": "R1"}
    assert (rig.far.total, rig.far.sends, rig.far.questions) == (1, ["op-a1"], ["lookup"])


@pytest.mark.req("S0-29", "S0-32")
@pytest.mark.fault("X50")
def test_a_lost_request_is_looked_up_and_sent_again_with_the_same_key(rig: Rig) -> None:
    rig.far.wire.append(DROPPED)
    value = rig.run(book_friday, booking(rig.far))
    assert isinstance(value, Confirmed)
    assert rig.far.sends == ["op-a1", "op-a1"]
    assert rig.far.effects == {"op-a1": 1}


@pytest.mark.req("S4-22", "S0-19")
def test_what_nobody_can_tell_is_unknown(rig: Rig) -> None:
    rig.far.wire.append(RESET)
    value = rig.run(mail_ana, unkeyed(rig.far))
    assert isinstance(value, Unknown)
    assert rig.operation().state is State.UNKNOWN


@pytest.mark.req("S4-23", "S4-42")
def test_an_unknown_says_so_with_the_id_to_ask_for(rig: Rig) -> None:
    rig.far.wire.append(RESET)
    value = rig.run(mail_ana, unkeyed(rig.far))
    assert "unknown" in value.text
    assert "op-a1" in value.text
    assert told_nothing_wrong(value.text)


def test_a_receipt_without_a_read_back_is_accepted_at_once(rig: Rig) -> None:
    rig.far.wire.append(TAKEN)

    async def script(rt: Runtime):
        return await rt.perform("book", FRIDAY, patience_s=9.0), rig.world.timeline.now_s

    value, at_s = rig.run(script, booking(rig.far))
    assert isinstance(value, Accepted)
    assert (value.result, at_s) == ({"id": "R1"}, 0.0)


def test_a_receipt_with_a_read_back_is_confirmed_once_it_is_seen(rig: Rig) -> None:
    rig.far.wire.append(TAKEN)
    rig.far.shown_s = 3.0
    bought = booking(rig.far, read_back=rig.far.read_back, settlement_lag_s=20.0)

    async def script(rt: Runtime):
        return await rt.perform("book", FRIDAY, patience_s=60.0)

    assert isinstance(rig.run(script, bought), Confirmed)
    assert set(rig.far.questions) == {"read-back"}
    assert rig.events("op-a1")[-1] == "read_back"


def test_what_its_contract_declares_harmless_is_assumed(rig: Rig) -> None:
    rig.far.wire.append(RESET)

    async def script(rt: Runtime):
        return await rt.perform("mail", {"to": "ana"}, patience_s=60.0)

    value = rig.run(script, unkeyed(rig.far, assume_after_s=20.0))
    assert isinstance(value, Assumed)
    assert rig.world.timeline.now_s == pytest.approx(20.0)
    assert "not confirmed" in value.text


@pytest.mark.req("S4-09", "S4-22")
def test_what_cannot_be_found_out_in_time_goes_to_a_person(rig: Rig) -> None:
    rig.far.wire.append(RESET)

    async def script(rt: Runtime):
        return await rt.perform("mail", {"to": "ana"}, patience_s=60.0)

    value = rig.run(script, unkeyed(rig.far, escalate_after_s=30.0))
    assert isinstance(value, Undecided)
    assert told_nothing_wrong(value.text)


@pytest.mark.req("S4-07", "S4-51")
@pytest.mark.field("A6")
def test_the_same_thing_is_blocked_while_the_first_is_in_doubt(rig: Rig) -> None:
    rig.far.wire.append(RESET)

    async def script(rt: Runtime):
        return await mail_ana(rt), await mail_ana(rt), rig.world.timeline.now_s

    first, second, at_s = rig.run(script, unkeyed(rig.far))
    assert isinstance(first, Unknown)
    assert isinstance(second, Blocked)
    assert (second.by, at_s) == (first.operation, 0.0)
    assert first.operation in second.text
    assert rig.far.sends == ["op-a1"]


def test_two_calls_that_touch_one_target_do_not_run_at_once(rig: Rig) -> None:
    rig.far.wire.append(RESET)

    async def script(rt: Runtime):
        await rt.perform("mail", {"to": "ana"})
        return await rt.perform("post", {"to": "ana"}, ask=Ask(session="another"))

    mail = unkeyed(rig.far, service="mailbox", target=["box/{to}"])

    @tool(effect="irreversible", service="mailbox", target=["box/{to}"])
    async def post(to: str) -> str:
        """Send a letter."""
        return "sent"

    value = rig.run(script, mail, post)
    assert isinstance(value, Blocked)
    assert value.by == "op-a1"


def test_past_its_time_it_is_withdrawn_and_never_sent(rig: Rig) -> None:
    async def script(rt: Runtime):
        late = rig.world.clock.now() - 1.0
        return await rt.perform("book", FRIDAY, ask=Ask(send_by=late))

    value = rig.run(script, booking(rig.far))
    assert isinstance(value, Withdrawn)
    assert rig.far.sends == []


# Calls without an effect.


@tool(effect="none", deadline_s=2.0)
async def is_free(day: str) -> bool:
    """Say whether a day is free."""
    if day == "never":
        await never()
    if day == "broken":
        raise ValueError("no such day")
    return day == "Fri"


def test_a_read_is_answered_and_makes_no_operation(rig: Rig) -> None:
    async def script(rt: Runtime):
        return await rt.perform("is_free", FRIDAY)

    value = rig.run(script, is_free)
    assert isinstance(value, Answered)
    assert value.result is True
    assert rig.operations() == []
    assert rig.events() == ["seen", "answered"]


@pytest.mark.req("S4-12")
@pytest.mark.parametrize("day", ["never", "broken"])
def test_a_read_is_tried_again_in_bounds_and_then_unanswered(rig: Rig, day: str) -> None:
    async def script(rt: Runtime):
        return await rt.perform("is_free", {"day": day})

    value = rig.run(script, is_free)
    assert isinstance(value, Unanswered)
    assert rig.world.timeline.now_s < 3 * 2.0 + 3.0


# When it returns.


def test_patience_bounds_the_wait_and_the_runtime_goes_on(rig: Rig) -> None:
    rig.far.wire.append(Wire(replies_s=4.0))

    async def script(rt: Runtime):
        early = await rt.perform("book", FRIDAY, patience_s=1.0)
        at_s = rig.world.timeline.now_s
        return early, at_s, await rt.resolve(early.operation)

    early, at_s, later = rig.run(script, booking(rig.far))
    assert isinstance(early, Unknown)
    assert at_s == pytest.approx(1.0)
    assert isinstance(later, Confirmed)


def test_patience_is_twice_the_deadline_unless_told_otherwise(rig: Rig) -> None:
    async def script(rt: Runtime):
        return await book_friday(rt), rig.world.timeline.now_s

    rig.far.wire.append(REPLY_LOST)
    value, at_s = rig.run(script, booking(rig.far, lookup=no_word))
    assert isinstance(value, Unknown)
    assert at_s == pytest.approx(2 * DEADLINE_S)


def test_the_patience_of_the_settings_holds_for_every_call(rig: Rig) -> None:
    rig.settings = Settings(patience_s=0.5)
    rig.far.wire.append(Wire(replies_s=4.0))

    async def script(rt: Runtime):
        return await book_friday(rt), rig.world.timeline.now_s

    value, at_s = rig.run(script, booking(rig.far))
    assert isinstance(value, Unknown)
    assert at_s == pytest.approx(0.5)


def test_it_returns_early_when_nothing_can_change_before_patience_is_over(rig: Rig) -> None:
    rig.far.wire.append(RESET)

    async def script(rt: Runtime):
        value = await rt.perform("mail", {"to": "ana"}, patience_s=60.0)
        return value, rig.world.timeline.now_s

    value, at_s = rig.run(script, unkeyed(rig.far))
    assert isinstance(value, Unknown)
    assert at_s == 0.0


def test_no_patience_at_all_still_makes_the_record_first(rig: Rig) -> None:
    async def script(rt: Runtime):
        value = await rt.perform("book", FRIDAY, patience_s=0.0)
        return value, await rt.resolve(value.operation)

    rig.far.wire.append(Wire(replies_s=1.0))
    early, later = rig.run(script, booking(rig.far))
    assert isinstance(early, Unknown)
    assert isinstance(later, Confirmed)
    assert rig.events("op-a1") == ["made", "sent", "told", "acknowledged"]


# What is no call at all.


async def proposal_error(rig: Rig, rt: Runtime, *args, **kwargs) -> str:
    with pytest.raises(ProposalError) as raised:
        await rt.perform(*args, **kwargs)
    assert rig.far.sends == []
    return str(raised.value)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({}, "day"),
        ({"day": 5}, "day"),
        ({"day": "Fri", "hour": 7}, "hour"),
        ({"day": None}, "day"),
    ],
)
def test_arguments_that_do_not_fit_are_a_proposal_error(
    rig: Rig, arguments: dict[str, object], says: str
) -> None:
    text = rig.run(lambda rt: proposal_error(rig, rt, "book", arguments), booking(rig.far))
    assert says in text
    assert rig.operations() == []


@pytest.mark.req("S4-04", "S4-11", "S1-30")
def test_a_key_that_the_model_made_up_is_refused(rig: Rig) -> None:
    arguments = {"day": "Fri", "key": "mine"}
    text = rig.run(lambda rt: proposal_error(rig, rt, "book", arguments), booking(rig.far))
    assert "key" in text
    assert rig.operations() == []


def test_an_unknown_tool_is_a_proposal_error_that_names_those_there_are(rig: Rig) -> None:
    text = rig.run(lambda rt: proposal_error(rig, rt, "buy", {}), booking(rig.far))
    assert "buy" in text
    assert "book" in text


def test_a_tool_that_needs_a_yes_is_not_performed(rig: Rig) -> None:
    risky = booking(rig.far, risk="confirm")
    text = rig.run(lambda rt: proposal_error(rig, rt, "book", FRIDAY), risky)
    assert "needs a yes" in text
    assert rig.operations() == []


def test_a_tool_can_be_named_by_itself_but_only_the_registered_one(rig: Rig) -> None:
    mine, other = booking(rig.far), booking(rig.far)

    async def script(rt: Runtime):
        text = await proposal_error(rig, rt, other, FRIDAY)
        return text, await rt.perform(mine, FRIDAY)

    text, value = rig.run(script, mine)
    assert "book" in text
    assert isinstance(value, Confirmed)


def test_a_plain_function_is_a_proposal_error(rig: Rig) -> None:
    async def bare(day: str) -> str:
        return day

    text = rig.run(lambda rt: proposal_error(rig, rt, bare, FRIDAY), booking(rig.far))
    assert "book" in text


@pytest.mark.parametrize("name", ["undo", "correct"])
def test_a_contract_that_names_a_tool_nobody_registered_is_refused_at_registration(
    rig: Rig, name: str
) -> None:
    far = rig.far
    lonely = booking(far, undo="cancel") if name == "undo" else unkeyed(far, correct="cancel")
    with pytest.raises(ContractError, match="cancel"):
        rig.run(book_friday, lonely)


def test_two_tools_of_one_name_are_refused_at_registration(rig: Rig) -> None:
    with pytest.raises(ContractError, match="book"):
        rig.run(book_friday, booking(rig.far), booking(rig.far))


@pytest.mark.field("A10")
def test_a_function_without_a_contract_is_refused_at_registration(rig: Rig) -> None:
    async def bare(day: str) -> str:
        return day

    with pytest.raises(ContractError, match="bare"):
        rig.run(book_friday, bare)  # type: ignore[arg-type]


def test_two_things_are_two_effects(rig: Rig) -> None:
    async def script(rt: Runtime):
        return [await rt.perform("book", {"day": day}) for day in ("Fri", "Sat")]

    values = rig.run(script, booking(rig.far))
    assert all(isinstance(value, Confirmed) for value in values)
    assert [one.result for one in rig.operations()] == [{"id": "R1"}, {"id": "R2"}]
