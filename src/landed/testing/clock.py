"""Time and ids that a simulation decides: a clock that moves only when told, ids that count."""

import asyncio
from collections import Counter
from datetime import UTC, datetime
from hashlib import sha256

# Operations and observations are one series, so that a call keeps its number whatever its effect.
_PREFIXES = {
    "operation": "op-a",
    "observation": "op-a",
    "turn": "T",
    "input": "in-",
    "question": "A",
}


def parse_utc(text: str) -> float:
    """Turn an ISO 8601 instant such as `2026-11-27T18:00:00Z` into seconds since the epoch, UTC.

    Any offset is accepted and converted; a `ValueError` says so when there is none, because a
    naive time means another instant on every machine.
    """
    instant = datetime.fromisoformat(text)
    if instant.tzinfo is None:
        raise ValueError(f"{text!r} has no offset: write it with a Z, as in 2026-11-27T18:00:00Z")
    return instant.timestamp()


class VirtualClock:
    """The runtime's clock in a simulation: absolute UTC, moved by a loop's virtual time.

    `now()` is `start_at` (seconds since the epoch) at the loop's time 0.0, and moves with it. One
    clock belongs to one process: a shifted one shows what a machine with a wrong clock does.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, start_at: float) -> None:
        self._loop = loop
        self._start_at = start_at

    def now(self) -> float:
        """Seconds since the epoch, UTC, in whole microseconds so that sums of delays print well."""
        return round(self._start_at + self._loop.time(), 6)

    def iso(self) -> str:
        """The same instant as text, such as `2026-11-27T18:00:00Z`."""
        return datetime.fromtimestamp(self.now(), UTC).isoformat().replace("+00:00", "Z")

    def shift(self, jump_s: float) -> None:
        """Make this clock jump, forwards or (negative) backwards; timers of the loop don't care."""
        self._start_at += jump_s


class CountingIds:
    """Ids that read well and come out the same in every run: `op-a1`, `op-a2`, `T1`, `in-1`.

    The world owns them, so that the next process goes on counting where the last one died. Each
    kind is a series of its own; a kind that is not in the table is its own prefix: `plan-1`.
    """

    def __init__(self) -> None:
        self._last: Counter[str] = Counter()

    def new(self, kind: str) -> str:
        """The next id of this kind ("operation", "turn", "input", or any other word)."""
        return self.next(_PREFIXES.get(kind, f"{kind}-"))

    def next(self, prefix: str) -> str:
        """The next id of the series that starts with `prefix`."""
        self._last[prefix] += 1
        return f"{prefix}{self._last[prefix]}"

    def chance(self, size: int) -> bytes:
        """Bytes that come out the same in every run, and are no secret: for simulation alone."""
        return sha256(self.next("chance-").encode()).digest()[:size]
