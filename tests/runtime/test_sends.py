"""What leaves, how often, and what a tool's own words or errors are taken for."""

import asyncio
from itertools import pairwise
from typing import Any

import pytest

from landed.core.key import Ask
from landed.core.operation import State
from landed.core.outcome import AnswerLost, LookOutcome, Refused, SendOutcome
from landed.core.tool import Call
from landed.core.value import Blocked, Confirmed, Failed, Unanswered, Undecided, Unknown, Withdrawn
from landed.runtime.opened import Settings
from landed.runtime.runtime import Runtime
from landed.tools.function import tool
from tests.runtime.rig import (
    DEADLINE_S,
    DROPPED,
    REFUSED,
    REPLY_LOST,
    RESET,
    UNSENT,
    Rig,
    Wire,
    booking,
    told_nothing_wrong,
    unkeyed,
)
from tests.runtime.stores import DozingStore

FRIDAY = {"day": "Fri"}


async def book_friday(rt: Runtime):
    return await rt.perform("book", FRIDAY, patience_s=200.0)


async def mail_ana(rt: Runtime):
    return await rt.perform("mail", {"to": "ana"})


# Nothing left this machine.


@pytest.mark.req("S4-01", "S1-33")
def test_what_did_not_leave_is_sent_again_until_it_does(rig: Rig) -> None:
    rig.far.wire.extend([UNSENT, UNSENT])
    value = rig.run(book_friday, booking(rig.far))
    assert isinstance(value, Confirmed)
    assert rig.far.sends == ["op-a1"] * 3
    assert rig.events("op-a1").count("not_sent") == 2


def test_each_further_try_waits_longer(rig: Rig) -> None:
    times: list[float] = []

    @tool(effect="irreversible", max_tries=4)
    async def mail(to: str, call: Call) -> SendOutcome:
        """Send a mail."""
        times.append(call.sent_at - rig.world.start_at)
        return await rig.far.take(call, to)  # type: ignore[return-value]

    rig.far.wire.extend([UNSENT] * 4)
    value = rig.run(lambda rt: rt.perform("mail", {"to": "ana"}, patience_s=99.0), mail)
    assert isinstance(value, Failed)
    waits = [after - before for before, after in pairwise(times)]
    assert len(times) == 4
    assert waits == sorted(waits)
    assert waits[0] > 0.0


def test_after_the_last_try_it_is_failed_and_had_no_effect(rig: Rig) -> None:
    rig.far.wire.extend([UNSENT] * 9)
    value = rig.run(book_friday, booking(rig.far, max_tries=3))
    assert isinstance(value, Failed)
    assert "connection refused" in value.reason
    assert (rig.far.total, len(rig.far.sends)) == (0, 3)
    assert rig.events("op-a1")[-1] == "never_sent"


@pytest.mark.req("S1-33", "K7")
def test_after_a_definite_no_the_same_thing_may_be_asked_for_at_once(rig: Rig) -> None:
    rig.far.wire.append(REFUSED)

    async def script(rt: Runtime):
        return await book_friday(rt), await book_friday(rt)

    first, second = rig.run(script, booking(rig.far))
    assert isinstance(first, Failed)
    assert isinstance(second, Confirmed)
    assert list(rig.far.effects) == ["op-a2"]


@pytest.mark.fault("X02")
def test_what_leaves_late_has_only_what_is_left_of_its_deadline(rig: Rig) -> None:
    """Else it could outlive the key's retention, which is judged by the recorded time."""
    rig.wrap = lambda store: DozingStore(store, "sent", DEADLINE_S / 2)
    rig.far.wire.append(DROPPED)
    assert isinstance(rig.run(book_friday, booking(rig.far)), Confirmed)
    sent, lost = (rig.first_at(event) for event in ("sent", "answer_lost"))
    assert lost - sent == pytest.approx(DEADLINE_S)


@pytest.mark.fault("X02")
def test_what_would_leave_after_its_deadline_does_not_leave(rig: Rig) -> None:
    rig.wrap = lambda store: DozingStore(store, "sent", DEADLINE_S)
    value = rig.run(book_friday, booking(rig.far))
    assert isinstance(value, Confirmed)
    assert (rig.far.sends, rig.far.total) == (["op-a1"], 1)
    assert rig.events("op-a1").count("not_sent") == 1


@pytest.mark.fault("X02")
def test_a_resend_that_slept_past_the_retention_of_its_key_does_not_leave(rig: Rig) -> None:
    rig.far.wire.append(DROPPED)
    rig.wrap = lambda store: DozingStore(store, "resent", 100.0)
    rig.run(book_friday, booking(rig.far, retention_s=60.0))
    assert (rig.far.sends, rig.far.total) == (["op-a1"], 0)
    assert "not_sent" in rig.events("op-a1")


def test_nothing_is_sent_after_send_by(rig: Rig) -> None:
    rig.far.wire.extend([UNSENT] * 9)

    async def script(rt: Runtime):
        ask = Ask(send_by=rig.world.clock.now() + 2.0)
        return await rt.perform("book", FRIDAY, ask=ask, patience_s=60.0)

    value = rig.run(script, booking(rig.far, max_tries=9))
    assert isinstance(value, Withdrawn)
    assert len(rig.far.sends) == 3  # At 0, 0.5 and 1.5 seconds.
    assert rig.far.total == 0


def test_nothing_is_sent_a_second_time_after_send_by(rig: Rig) -> None:
    rig.far.wire.append(DROPPED)
    rig.settings = Settings(send_within_s=4.0)
    value = rig.run(book_friday, booking(rig.far))
    assert isinstance(value, Failed)
    assert rig.far.sends == ["op-a1"]
    assert rig.far.questions == ["close"]


# A refusal.


def test_the_refusal_of_a_resend_says_nothing_of_the_first_send(rig: Rig) -> None:
    """The first request is late, the second is refused, and then the first one lands."""
    rig.far.wire.extend([Wire(arrives_s=5.4), Wire(arrives_s=0.6, refused="the day is full")])
    value = rig.run(book_friday, booking(rig.far))
    assert isinstance(value, Confirmed)
    assert rig.events("op-a1")[-3:] == ["refused_again", "closing", "found"]
    assert len(rig.far.sends) == 2


def test_a_refused_resend_is_followed_by_no_other(rig: Rig) -> None:
    rig.far.wire.extend([DROPPED, REFUSED])
    value = rig.run(book_friday, booking(rig.far))
    assert isinstance(value, Failed)
    assert len(rig.far.sends) == 2
    assert (rig.far.questions[-1], rig.far.total) == ("close", 0)


# Whatever a tool raises.


class OddError(BaseException):
    """No `Exception`, no cancel, no exit."""


def raising(error: BaseException) -> Any:
    @tool(effect="irreversible")
    async def mail(to: str) -> str:
        """Send a mail, and then break."""
        raise error

    return mail


@pytest.mark.req("S4-01", "S0-15")
@pytest.mark.parametrize(
    "error",
    [
        TimeoutError(),
        ConnectionResetError("reset by peer"),
        ConnectionRefusedError("a second request of its own, perhaps"),
        ValueError("not JSON"),
        ExceptionGroup("two", [OSError("a"), OSError("b")]),
        asyncio.CancelledError("of its own"),
        OddError("odd"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_whatever_a_tool_raises_leaves_it_in_doubt(rig: Rig, error: BaseException) -> None:
    async def script(rt: Runtime):
        return await mail_ana(rt), rig.world.timeline.now_s

    value, at_s = rig.run(script, raising(error))
    assert isinstance(value, Unknown)
    assert rig.operation().state is State.UNKNOWN
    assert at_s == 0.0
    assert told_nothing_wrong(value.text)


def test_whatever_a_question_raises_nothing_was_learnt(rig: Rig) -> None:
    errors = [ValueError("not JSON"), asyncio.CancelledError("of its own"), OddError("odd")]

    async def lookup(call: Call) -> LookOutcome:
        if errors:
            raise errors.pop(0)
        return await rig.far.lookup(call)

    rig.far.wire.append(REPLY_LOST)
    value = rig.run(book_friday, booking(rig.far, lookup=lookup))
    assert isinstance(value, Confirmed)
    assert errors == []
    assert rig.far.sends == ["op-a1"]


def test_a_read_that_cancels_itself_is_unanswered(rig: Rig) -> None:
    @tool(effect="none")
    async def look(to: str) -> str:
        """Look."""
        raise asyncio.CancelledError

    value = rig.run(lambda rt: rt.perform("look", {"to": "ana"}), look)
    assert isinstance(value, Unanswered)


@pytest.mark.parametrize("outcome", [AnswerLost(reason="?"), Refused(reason="no")])
def test_a_tool_may_return_an_outcome_of_its_own(rig: Rig, outcome: SendOutcome) -> None:
    @tool(effect="irreversible")
    async def mail(to: str) -> SendOutcome:
        """Send a mail."""
        return outcome

    value = rig.run(mail_ana, mail)
    assert isinstance(value, Unknown if isinstance(outcome, AnswerLost) else Failed)


# As reported from the field.


@pytest.mark.field("A1")
@pytest.mark.req("S4-02", "S4-42")
def test_three_lost_replies_with_default_settings_are_one_effect(rig: Rig) -> None:
    rig.far.wire.extend([REPLY_LOST] * 3)
    rig.far.silent_questions = 2

    async def script(rt: Runtime):
        values = [await rt.perform("book", FRIDAY, ask=Ask(call_id="c1")) for _ in range(3)]
        return [value.text for value in values], await rt.resolve("op-a1")

    texts, last = rig.run(script, booking(rig.far))
    assert rig.far.effects == {"op-a1": 1}
    assert all(map(told_nothing_wrong, texts))
    assert isinstance(last, Confirmed)


@pytest.mark.field("A1", "A5")
@pytest.mark.req("S4-12")
def test_three_lost_replies_of_a_service_without_keys_are_one_send(rig: Rig) -> None:
    rig.far.wire.extend([RESET] * 3)

    async def script(rt: Runtime):
        first = await mail_ana(rt)
        again = [await mail_ana(rt) for _ in range(2)]
        return first, [first.text, *(value.text for value in again)]

    value, texts = rig.run(script, unkeyed(rig.far))
    assert isinstance(value, Unknown)
    assert (len(rig.far.sends), rig.far.total) == (1, 1)
    assert all(map(told_nothing_wrong, texts))


@pytest.mark.field("A5")
def test_no_number_of_tries_makes_an_unkeyed_effect_be_sent_twice(rig: Rig) -> None:
    """The contract outranks every wish to try again."""
    rig.far.wire.append(RESET)

    async def script(rt: Runtime):
        await mail_ana(rt)
        await asyncio.sleep(3_600.0)  # virtual time
        return await rt.status("op-a1")

    value = rig.run(script, unkeyed(rig.far, max_tries=9))
    assert isinstance(value, Undecided)
    assert rig.far.sends == ["op-a1"]


@pytest.mark.field("A16")
def test_a_service_slower_than_the_deadline_does_it_once(rig: Rig) -> None:
    """Nothing malfunctions: the refund takes 45 seconds, and the client gives up after 30."""
    rig.far.wire.append(Wire(replies_s=45.0, reply="yes"))
    value = rig.run(book_friday, booking(rig.far, deadline_s=30.0))
    assert isinstance(value, Confirmed)
    assert rig.far.effects == {"op-a1": 1}


@pytest.mark.field("A16")
def test_a_slow_service_that_lands_late_does_it_once(rig: Rig) -> None:
    rig.far.wire.append(Wire(arrives_s=45.0))
    value = rig.run(book_friday, booking(rig.far, deadline_s=30.0))
    assert isinstance(value, Confirmed)
    assert len(rig.far.sends) == 2
    rig.world.settle()
    assert rig.far.effects == {"op-a1": 1}


@pytest.mark.field("A17")
@pytest.mark.req("S4-21", "S4-05")
def test_the_handle_to_search_by_is_stored_before_the_first_send(rig: Rig) -> None:
    seen: list[tuple[str, str, bool]] = []

    @tool(effect="irreversible", keyed="key")
    async def charge(cents: int, key: str, call: Call) -> str:
        """Charge."""
        (stored,) = await reader.load(call.operation)
        seen.append((key, str(stored.frozen["key"]), stored.state == State.SENT))
        raise ConnectionResetError("reset by peer")

    reader = rig.base.open_again()
    rig.run(lambda rt: rt.perform("charge", {"cents": 100}), charge)
    assert seen == [("op-a1", "op-a1", True)]


@pytest.mark.field("G1")
def test_a_fresh_token_in_the_arguments_makes_neither_a_new_key_nor_a_new_thing(rig: Rig) -> None:
    @tool(effect="irreversible", keyed="key", identity=("day",))
    async def book(day: str, token: str, key: str) -> str:
        """Book a table."""
        keys.append(key)
        raise ConnectionResetError("reset by peer")

    async def script(rt: Runtime):
        return [
            await rt.perform("book", {"day": "Fri", "token": token}) for token in ("t-81", "t-82")
        ]

    keys: list[str] = []
    first, second = rig.run(script, book)
    assert isinstance(first, Unknown)
    assert isinstance(second, Blocked)
    assert keys == [first.operation] == [second.by]
