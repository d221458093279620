"""Time, ids and chance as arguments: the seams that a simulation replaces, and the real ones."""

import os
import time
from collections.abc import Mapping
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
    """The machine's clock."""

    def now(self) -> float:
        """Return the machine's time."""
        return time.time()


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
