"""Times in a tool's arguments are instants: with an offset, or refused in words a model can act on.

Over all zones, the hours that daylight saving repeats or leaves out among them.
"""

# ruff: noqa: DTZ001 (naive times are what this is about)

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from landed.core.errors import ProposalError
from landed.testing.clock import parse_utc
from landed.tools.arguments import Arguments

pytestmark = pytest.mark.fault("X17")

MEET = Arguments("meet", lambda: {"at": (datetime, ...)})


class Slot(BaseModel):
    at: datetime


MANY = Arguments(
    "meet", lambda: {"slots": (list[Slot], []), "days": (set[datetime], ()), "or": (str, "")}
)

zoned = st.datetimes(
    min_value=datetime(1990, 1, 1), max_value=datetime(2100, 1, 1), timezones=st.timezones()
)
naive = st.datetimes(min_value=datetime(1990, 1, 1), max_value=datetime(2100, 1, 1))


def offset_fits(at: datetime) -> bool:
    """RFC 3339 has no seconds in an offset; nothing has had one since 1972."""
    offset = at.utcoffset()
    return offset is not None and not offset % timedelta(minutes=1)


@settings(max_examples=60, deadline=None)
@given(zoned.filter(offset_fits))
def test_a_time_with_an_offset_is_the_same_instant_for_everybody(at: datetime) -> None:
    stored = MEET.check({"at": at.isoformat()})
    assert MEET.typed(stored)["at"] == at.astimezone(UTC)
    assert parse_utc(at.isoformat()) == at.timestamp()


@settings(max_examples=60, deadline=None)
@given(naive)
@example(datetime(2026, 10, 25, 2, 30))  # Twice in Madrid.
@example(datetime(2026, 3, 29, 2, 30))  # Never there.
def test_a_time_without_an_offset_is_refused_at_the_border(at: datetime) -> None:
    with pytest.raises(ProposalError, match="has no offset"):
        MEET.check({"at": at.isoformat()})
    with pytest.raises(ValueError, match="no offset"):
        parse_utc(at.isoformat())


@pytest.mark.parametrize(
    ("given", "place"),
    [
        ({"slots": [{"at": "2026-11-27T18:00:00Z"}, {"at": "2026-11-27T18:00:00"}]}, "slots.1.at"),
        ({"days": ["2026-11-27T18:00:00Z", "2026-11-28"]}, "days."),
    ],
)
def test_it_is_refused_wherever_it_stands(given: dict, place: str) -> None:
    with pytest.raises(ProposalError, match=f"{place}.*has no offset"):
        MANY.check(given)


def test_two_hours_of_one_name_are_two_instants() -> None:
    summer, winter = (
        MEET.typed(MEET.check({"at": f"2026-10-25T02:30:00{offset}"}))["at"]
        for offset in ("+02:00", "+01:00")
    )
    assert isinstance(summer, datetime)
    assert isinstance(winter, datetime)
    assert winter - summer == timedelta(hours=1)
