"""How much of a long text a model is shown: whole lines, at most so many and so many bytes.

A file keeps its head, because that is where one begins to read; the output of a command keeps its
tail, because that is where the error stands. Bytes are those of UTF-8, so é is two.
"""

from collections.abc import Iterable
from dataclasses import dataclass

RESULT_LINES = 2_000
"""Lines of one result."""

RESULT_BYTES = 50_000
"""Bytes of one result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What is left of a text: whole lines, `shown` of `total`."""

    text: str
    shown: int
    total: int

    @property
    def is_whole(self) -> bool:
        """Whether nothing was left out."""
        return self.shown == self.total


def lines_of(text: str) -> list[str]:
    """Return the lines of a text; the newline at its end begins no further line."""
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def head(text: str, *, lines: int = RESULT_LINES, size: int = RESULT_BYTES) -> Kept:
    """Return the first lines of a text that fit into `lines` and `size` bytes."""
    every = lines_of(text)
    fitting = _fitting(every, lines, size)
    return Kept(text="\n".join(every[:fitting]), shown=fitting, total=len(every))


def tail(text: str, *, lines: int = RESULT_LINES, size: int = RESULT_BYTES) -> Kept:
    """Return the last lines of a text that fit into `lines` and `size` bytes."""
    every = lines_of(text)
    fitting = _fitting(reversed(every), lines, size)
    return Kept(text="\n".join(every[len(every) - fitting :]), shown=fitting, total=len(every))


def _fitting(every: Iterable[str], lines: int, size: int) -> int:
    """Return how many of these lines fit, from the first on."""
    fitting, used = 0, 0
    for line in every:
        used += len(line.encode("utf-8", "replace")) + (fitting > 0)
        if fitting == lines or used > size:
            break
        fitting += 1
    return fitting


class Tail:
    """Collects bytes as they come and keeps the last of them: memory is bounded, lines counted."""

    def __init__(self, *, lines: int = RESULT_LINES, size: int = RESULT_BYTES) -> None:
        self._lines = lines
        self._size = size
        self._kept = bytearray()
        self._newlines = 0
        self._is_cut = False

    def feed(self, chunk: bytes) -> None:
        """Take what came."""
        self._newlines += chunk.count(b"\n")
        self._kept += chunk
        if len(self._kept) > 2 * self._size:
            # One byte more than the budget: a newline in it says that the next line is whole.
            del self._kept[: -self._size - 1]
            self._is_cut = True

    def kept(self) -> Kept:
        """Return the last whole lines of all that came, decoded as well as it goes."""
        whole = self._kept
        if self._is_cut:
            whole = self._kept.partition(b"\n")[2]
        total = self._newlines + (not self._kept.endswith(b"\n") and bool(self._kept))
        last = tail(whole.decode("utf-8", "replace"), lines=self._lines, size=self._size)
        return Kept(text=last.text, shown=last.shown, total=total)
