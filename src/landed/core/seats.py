"""Says who comes next where several tenants wait for one service: one's many keep no other waiting.

A seat is a time at which to come back. Each is given out once, in order, and belongs to a tenant,
which has them used by its own in the order in which these came. A tenant that has fewer waiting
gets an early seat of the one that has most, which gets the new, late one in its place: so its n-th
waits for no more than about n of each other tenant. Pure; times are seconds since any one moment.
"""

from bisect import bisect_left, insort
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(slots=True)
class _Line:
    """Those of one tenant that wait, in order: the n-th of `keys` has the n-th of `seats`."""

    tickets: list[int] = field(default_factory=list[int])
    keys: list[str] = field(default_factory=list[str])
    seats: list[float] = field(default_factory=list[float])

    def drop(self, n: int) -> None:
        del self.tickets[n], self.keys[n], self.seats[n]


class Seats:
    """The seats of one service. One that was not used `late_s` after its time is nobody's."""

    def __init__(self, *, late_s: float, most: int) -> None:
        self._late_s = late_s
        self._most = most
        self._lines: dict[str, _Line] = {}
        self._tickets: dict[str, tuple[str, int]] = {}
        self._number = 0

    def __len__(self) -> int:
        return len(self._tickets)

    def __iter__(self) -> Iterator[str]:
        """Yield who waits, the oldest first."""
        return iter(self._tickets)

    def of(self, key: str, now: float) -> float | None:
        """Return the seat of `key`; None where it has none, or came too late for it."""
        if key not in self._tickets:
            return None
        line, n = self._place(key)
        return line.seats[n] if now - line.seats[n] <= self._late_s else None

    def give(self, key: str, *, tenant: str, late: float, now: float) -> float:
        """Give `key` a seat, and return it: `late`, which is new, or an early one in its place."""
        self.leave(key)
        if len(self._tickets) >= self._most:
            self.leave(next(iter(self._tickets)))
        self._expire(tenant, now)
        seat = self._swapped(tenant, late, now)
        line = self._lines.setdefault(tenant, _Line())
        self._number += 1
        self._tickets[key] = (tenant, self._number)
        line.tickets.append(self._number)
        line.keys.append(key)
        insort(line.seats, seat)
        return line.seats[-1]

    def leave(self, key: str) -> None:
        """Have `key` wait no longer: it left, or was given up."""
        if key not in self._tickets:
            return
        line, n = self._place(key)
        line.drop(n)
        tenant, _ = self._tickets.pop(key)
        if not line.keys:
            del self._lines[tenant]

    def clear(self) -> None:
        """Forget everybody: whoever comes back gets a new seat."""
        self._lines.clear()
        self._tickets.clear()

    def _place(self, key: str) -> tuple[_Line, int]:
        tenant, ticket = self._tickets[key]
        line = self._lines[tenant]
        return line, bisect_left(line.tickets, ticket)

    def _swapped(self, tenant: str, late: float, now: float) -> float:
        """Return an early seat of the tenant that has most waiting, and give it the late one."""
        most = max(self._lines, key=self._count, default=tenant)
        self._expire(most, now)
        turn = self._count(tenant) + 1  # As many of theirs go first as of its own, and one more.
        if self._count(most) <= turn:
            return late
        seats = self._lines[most].seats
        seats.append(late)
        return seats.pop(turn)

    def _count(self, tenant: str) -> int:
        line = self._lines.get(tenant)
        return len(line.keys) if line is not None else 0

    def _expire(self, tenant: str, now: float) -> None:
        """Let go of seats to which nobody came, so that they hold up nobody else."""
        while (line := self._lines.get(tenant)) and now - line.seats[0] > self._late_s:
            self.leave(line.keys[0])
