"""Reads server-sent events from bytes, however the network has cut them.

The rules are those of the HTML standard (9.2.6): lines end in LF, CR or CRLF; a line that opens
with a colon is a comment; a blank line sends the event off; an event without that line never was.
Lines are cut as bytes and decoded whole, so a character that is split over two chunks survives.
"""

from dataclasses import dataclass

EVENT_MAX_BYTES = 8 * 1024 * 1024
"""Bytes that one line, and the lines of one event together, may have."""

_BOM = b"\xef\xbb\xbf"
_CR = 13


class EventTooLongError(Exception):
    """A line or an event with more than EVENT_MAX_BYTES."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event; `name` is "" where the stream gave none."""

    name: str
    text: str


class Events:
    """The events of one stream, as its bytes come in."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._skip_lf = False
        self._first = True
        self._name = ""
        self._lines: list[str] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[Event]:
        """Return the events that this chunk completes. Raises `EventTooLongError`."""
        events = [self._take(line) for line in self._lines_of(chunk)]
        return [event for event in events if event is not None]

    def _lines_of(self, chunk: bytes) -> list[bytes]:
        if self._skip_lf and chunk:
            # The CR that closed the last line was the first half of a CRLF.
            chunk = chunk.removeprefix(b"\n")
            self._skip_lf = False
        start, at = 0, len(self._rest)
        self._rest += chunk
        lines: list[bytes] = []
        while (end := _line_end(self._rest, at)) >= 0:
            lines.append(bytes(self._rest[start:end]))
            at = end + 1
            if self._rest[end] == _CR:
                self._skip_lf = at == len(self._rest)
                at += self._rest.startswith(b"\n", at)
            start = at
        del self._rest[:start]
        if len(self._rest) > EVENT_MAX_BYTES:
            raise EventTooLongError("a line of the stream is too long")
        return lines

    def _take(self, line: bytes) -> Event | None:
        if self._first:
            line, self._first = line.removeprefix(_BOM), False
        if not line:
            return self._sent_off()
        self._size += len(line)
        if self._size > EVENT_MAX_BYTES:
            raise EventTooLongError("an event of the stream is too long")
        field, _, value = line.decode(errors="replace").partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            self._lines.append(value)
        elif field == "event":
            self._name = value
        return None

    def _sent_off(self) -> Event | None:
        name, lines = self._name, self._lines
        self._name, self._lines, self._size = "", [], 0
        return Event(name=name, text="\n".join(lines)) if lines else None


def _line_end(text: bytearray, start: int) -> int:
    """Return where the next CR or LF stands, -1 without one."""
    lf = text.find(b"\n", start)
    cr = text.find(b"\r", start, lf if lf >= 0 else len(text))
    return cr if cr >= 0 else lf
