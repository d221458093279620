"""Server-sent events are read the same however the network cuts them, and in bounds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from landed.agent.providers.sse import EVENT_MAX_BYTES, Event, Events, EventTooLongError

STREAM = (
    "\ufeff: hello\n"
    "event: first\n"
    "data: einé 🎉\n"
    "\n"
    "data:two\n"
    "data: lines\n"
    "id: 7\n"
    "retry\n"
    "\n"
    "event: nothing to say\n"
    "\n"
    "data\n"
    "\n"
    "data: never sent off\n"
)
EVENTS = [
    Event(name="first", text="einé 🎉"),
    Event(name="", text="two\nlines"),
    Event(name="", text=""),
]


def events_of(chunks: list[bytes]) -> list[Event]:
    events = Events()
    return [event for chunk in chunks for event in events.feed(chunk)]


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_a_stream_is_events_comments_and_an_end_that_never_came(newline: str) -> None:
    assert events_of([STREAM.replace("\n", newline).encode()]) == EVENTS


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_every_cut_in_two_gives_the_same_events(newline: str) -> None:
    body = STREAM.replace("\n", newline).encode()

    for at in range(len(body) + 1):
        assert events_of([body[:at], b"", body[at:]]) == EVENTS, at


@given(st.lists(st.integers(min_value=0, max_value=200)), st.sampled_from(["\n", "\r\n", "\r"]))
def test_so_does_every_other_fragmentation(cuts: list[int], newline: str) -> None:
    body = STREAM.replace("\n", newline).encode()
    ends = sorted({min(cut, len(body)) for cut in cuts} | {len(body)})

    assert events_of([body[a:b] for a, b in zip([0, *ends], ends, strict=False)]) == EVENTS


@pytest.mark.parametrize("line", [b"data: x", b": x", b"data: x\n"])
def test_a_stream_that_never_sends_an_event_off_is_given_up(line: bytes) -> None:
    step = line.replace(b"x", b"x" * (1 << 20))

    with pytest.raises(EventTooLongError):
        events_of([step] * (EVENT_MAX_BYTES // (1 << 20) + 2))
