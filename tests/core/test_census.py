"""A census says what was counted, and who has the oldest doubt in hand, in words and in numbers."""

from dataclasses import replace

import pytest

from landed.core.census import COUNTED_MAX, FIRST_SENT_AT, IN_DOUBT, census
from landed.core.operation import State
from landed.core.operation_record import to_record
from landed.core.store import Fact
from tests.core.build import SENT_AT, operation


def oldest_of(worker: str) -> Fact:
    doubtful = to_record(replace(operation(State.UNKNOWN), worker=worker))
    return census(open=[], waiting=[], oldest=[doubtful])[2]


def test_what_was_counted_is_said_and_can_be_computed_with() -> None:
    open_, waiting, oldest = census(
        open=[("release", "due", 1), ("operation", "unknown", 2)], waiting=[], oldest=[]
    )
    assert open_.value == "2 operation/unknown, 1 release/due"
    assert open_.numbers == {"operation/unknown": 2.0, "release/due": 1.0}
    assert (waiting.value, waiting.numbers) == ("nothing", {})
    assert (oldest.value, oldest.numbers) == ("nothing is in doubt", {})


@pytest.mark.req("S4-50")
def test_the_oldest_doubt_has_an_owner_and_the_time_of_its_first_send() -> None:
    held = oldest_of("w1")
    assert held.value == "op-a1 (reserve_table), in the hands of worker w1"
    assert held.numbers == {FIRST_SENT_AT: SENT_AT}
    assert oldest_of("").value.endswith("in the hands of no worker: it is taken over next")


def test_a_count_that_reached_its_bound_says_so() -> None:
    assert _opened(COUNTED_MAX - 1) == "9999 operation/sent"
    assert _opened(COUNTED_MAX) == "at least 10000 operation/sent"


def _opened(count: int) -> str:
    return census(open=[("operation", "sent", count)], waiting=[], oldest=[])[0].value


def test_what_is_out_for_the_first_time_is_not_in_doubt() -> None:
    assert State.SENT not in IN_DOUBT
    assert set(IN_DOUBT) == {State.UNKNOWN, State.RESENT}
