"""Time, ids and chance as arguments: the seams that a simulation replaces, and the real ones."""

import math
import os
import time
from collections.abc import Callable, Mapping
from typing import Protocol


class Clock(Protocol):
    """Where the runtime reads the time."""

    def now(self) -> float:
        """Return the time, UTC, in seconds since the epoch."""
        ...


class Ids(Protocol):
    """Where ids and chance come from."""

    def new(self, kind: str) -> str:
        """Return an id that nothing else has, for a record of `kind`."""
        ...

    def chance(self, size: int) -> bytes:
        """Return `size` bytes that nobody can guess."""
        ...


class WallClock:
    """The machine's clock, but for that it never goes back while this process lives.

    Set forward it is followed: what is bounded in time ends early. Set back it is not: the time
    that has passed (`passed`, seconds from anywhere) counts on from what was shown before, so that
    nothing that was over begins again, and no lease or deadline becomes longer.
    """

    def __init__(
        self, wall: Callable[[], float] = time.time, passed: Callable[[], float] = time.monotonic
    ) -> None:
        self._wall = wall
        self._passed = passed
        self._began = -math.inf

    def now(self) -> float:
        """Return the machine's time, or the time that it would show had it not been set back."""
        passed = self._passed()
        self._began = max(self._began, self._wall() - passed)
        return passed + self._began


MACHINE = WallClock()
"""The clock of this process: one for all that it opens, so that they agree."""

PREFIXES: Mapping[str, str] = {"operation": "op-", "input": "in-", "turn": "turn-"}

# Crockford's base 32: no letters that are taken for digits.
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_CHARACTERS = 26


class RandomIds:
    """Ids of 26 characters: 48 bits of time in milliseconds, then 82 of chance.

    They sort by the time they were made, which keeps an index over them short-legged; the layout
    is that of ULID.
    """

    def new(self, kind: str) -> str:
        """Return an id that sorts after those made before."""
        number = (time.time_ns() // 1_000_000) << 82 | int.from_bytes(os.urandom(11)) >> 6
        characters = [_ALPHABET[number >> shift & 31] for shift in range(125, -1, -5)]
        return PREFIXES.get(kind, f"{kind}-") + "".join(characters)

    def chance(self, size: int) -> bytes:
        """Return bytes from the operating system."""
        return os.urandom(size)
