"""Says when a send or a question may leave for a service: how fast, and how often again.

Three rules keep an outage from becoming a storm, for each service by itself:

- **A pace.** So many a second, and a burst after a pause. Whoever comes too early gets a *seat*, a
  time of its own at which to come back, so that ten thousand waiting operations do not all wake up
  at the same moment. It is a token bucket, kept as one time: the generic cell rate algorithm.
  Tenants that wait take turns (`core.seats`).
- **A hold.** After "too many requests" nothing leaves until the service's `Retry-After`, or for a
  pause that doubles each time; then it goes on at the pace, without a burst.
- **A budget.** Sends again are at most a tenth of the first ones, over a window; a floor lets one
  that is alone be tried again. So a service that is down gets 1.1 times its usual load, not 3.

Pure: time is an argument (seconds since any one moment that does not go back), and so is chance
(0 ≤ chance < 1). Pacing changes when something leaves, never what: a send again keeps its key. The
budget is that of Finagle's `RetryBudget`, judged so that it errs on the side of fewer.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from landed.core.seats import Seats

SEATS_MAX = 100_000
"""Seats kept for one service; the oldest is given up for a new one."""

SLICES = 10
"""Parts of the window in which sends are counted: memory does not grow with their number."""

RETRY_AFTER_MAX_S = 86_400.0
"""The longest that a service is taken at its word to wait."""

STRIKES_MAX = 32  # Beyond these the pause has long been the longest.


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """The pauses between tries: `first_s`, doubled each time up to `longest_s`, then shortened.

    Chance takes away up to half of a pause, so that many who failed at once do not return at once.
    """

    first_s: float = 1.0
    longest_s: float = 60.0

    def wait_s(self, failures: int, chance: float) -> float:
        """Return the pause after so many failures in a row, from 1."""
        doubled = self.first_s * 2.0 ** min(max(failures, 1) - 1, STRIKES_MAX)
        return min(doubled, self.longest_s) * (1.0 - chance / 2.0)


class Leaving(StrEnum):
    """What leaves. All three are paced and held; a question is neither budgeted nor counted."""

    FIRST = "first send"
    AGAIN = "send again"
    QUESTION = "question"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How a service is treated.

    per_s, burst    first sends, sends again and questions a second; how many at once after a pause
    again_share     sends again per first send, over `window_s`
    again_floor     sends again per window that are allowed whatever the share says
    backoff         the holds after a 429 that names no time
    """

    per_s: float = 10.0
    burst: int = 20
    again_share: float = 0.1
    again_floor: int = 3
    window_s: float = 60.0
    backoff: Backoff = field(default_factory=Backoff)

    def __post_init__(self) -> None:
        """Raise `ValueError` for a pace at which nothing would ever leave, or that is no number."""
        positive = (self.per_s, self.window_s, float(self.burst))
        if not all(0.0 < each < math.inf for each in positive):
            raise ValueError("a pace has a rate, a burst and a window above 0")
        if not 0.0 <= self.again_share <= 1.0 or self.again_floor < 0:
            raise ValueError("a share is from 0 to 1, and a floor not below 0")


class Pacing:
    """The pace of each service, in this process. `paces` are by service, `usual` for all others."""

    def __init__(
        self, *, usual: Pace | None = None, paces: Mapping[str, Pace] | None = None
    ) -> None:
        self._usual = usual or Pace()
        self._paces = dict(paces or {})
        self._lanes: dict[str, _Lane] = {}

    def turn(
        self,
        service: str,
        key: str,
        *,
        kind: Leaving,
        now: float,
        chance: float,
        tenant: str = "",
    ) -> float:
        """Return when `key` may leave. Not later than `now`: it leaves now, and is counted.

        A later time is its seat: ask again then, not before; it may have become a later one for the
        sake of another tenant. `key` names one send or question that waits (the operation's id will
        do). Ask only for what would leave at once: a yes is used up by asking.
        """
        return self._lane(service).turn(key, tenant, kind=kind, now=now, chance=chance)

    def leave(self, service: str, key: str) -> None:
        """Give up a seat: it was settled otherwise, or stopped."""
        self._lane(service).seats.leave(key)

    def slow_down(
        self, service: str, *, now: float, chance: float, wait_s: float | None = None
    ) -> float:
        """Hold the service after a 429, for `wait_s` (see `retry_after_s`) or a pause that doubles.

        Returns until when. A hold is never made shorter. Chance adds up to a tenth, so that several
        processes do not come back at the same moment.
        """
        return self._lane(service).slow_down(now=now, chance=chance, wait_s=wait_s)

    def went_well(self, service: str) -> None:
        """Note that the service answered as usual: the next pause is a short one again."""
        self._lane(service).strikes = 0

    def _lane(self, service: str) -> "_Lane":
        found = self._lanes.get(service)
        if found is None:
            pace = self._paces.get(service, self._usual)
            found = self._lanes[service] = _Lane(pace)
        return found


class _Lane:
    """One service. `full_at` is when the bucket will be full again."""

    def __init__(self, pace: Pace) -> None:
        self.pace = pace
        self.sent = _Counts(pace.window_s)
        self.full_at = self.held_until = -math.inf
        self.strikes = 0
        self._each_s = 1.0 / pace.per_s
        self._slack_s = (pace.burst - 1) * self._each_s
        # A seat may be missed by as long as it takes to fill a whole bucket.
        self.seats = Seats(late_s=self._slack_s + self._each_s, most=SEATS_MAX)

    def turn(self, key: str, tenant: str, *, kind: Leaving, now: float, chance: float) -> float:
        seat = self.seats.of(key, now)
        if kind is Leaving.AGAIN and not self.sent.allow_again(self.pace, now):
            # It keeps no seat, for others can use it. When a place in the budget becomes free
            # nobody knows, so that who waits for one is spread over a window.
            self.seats.leave(key)
            return now + self.pace.window_s / SLICES + chance * self.pace.window_s
        if seat is None:
            seat = self._book(key, tenant, now)
        if seat > now:
            return seat
        self.seats.leave(key)
        self.sent.count(kind, now)
        return now

    def slow_down(self, *, now: float, chance: float, wait_s: float | None) -> float:
        if now >= self.held_until:
            self.strikes = min(self.strikes + 1, STRIKES_MAX)
        elif wait_s is None:
            # An answer to what had left before the hold: the same trouble, not more of it.
            return self.held_until
        if wait_s is None:
            pause_s = self.pace.backoff.wait_s(self.strikes, chance)
        else:
            pause_s = min(max(wait_s, 0.0), RETRY_AFTER_MAX_S)
        until = now + pause_s * (1.0 + chance / 10.0)
        if until > self.held_until:
            self.held_until = until
            self.full_at = until + self._slack_s  # An empty bucket: no burst then.
            self.seats.clear()  # All were before it ends.
        return self.held_until

    def _book(self, key: str, tenant: str, now: float) -> float:
        # The hold is named too, for a difference of two sums may come out a little before it.
        late = max(now, self.held_until, self.full_at - self._slack_s)
        self.full_at = max(self.full_at, now) + self._each_s
        return self.seats.give(key, tenant=tenant, late=late, now=now)


class _Counts:
    """First sends and sends again in each slice of the window, and in one slice more."""

    def __init__(self, window_s: float) -> None:
        self._slice_s = window_s / SLICES
        self._slices: dict[int, tuple[int, int]] = {}

    def count(self, kind: Leaving, now: float) -> None:
        number = self._now(now)
        first, more = self._slices.get(number, (0, 0))
        self._slices[number] = (
            first + (kind is Leaving.FIRST),
            more + (kind is Leaving.AGAIN),
        )

    def allow_again(self, pace: Pace, now: float) -> bool:
        """Whether one more is within the share.

        Sends again are counted over a slice more than the window, and first sends over at most the
        window, so that the share holds for the true window whatever the slices cut off.
        """
        number = self._now(now)
        first = sum(f for at, (f, _) in self._slices.items() if at > number - SLICES)
        more = sum(m for _, m in self._slices.values())
        return more + 1 <= max(pace.again_floor, math.floor(pace.again_share * first))

    def _now(self, now: float) -> int:
        number = math.floor(now / self._slice_s)
        for past in [at for at in self._slices if at < number - SLICES]:
            del self._slices[past]
        return number
