"""Leases and epochs: how long a worker's claims stand unrenewed, and which claim is the later one.

A lease says only that its worker has not been heard of. Its end means *resolve what it left*, never
*run it again*, and it does not stop a worker that merely slept: the epoch does, because every move
is conditional on it. Epochs come from one counter of the store, so that a later claim is always the
larger number, across plans and targets (Kleppmann's fencing token).
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """How long claims stand (`lease_s`) and how often they are renewed (`beat_s`), in seconds."""

    lease_s: float = 30.0
    beat_s: float = 10.0

    def until(self, now: float) -> float:
        """Return when a lease renewed at `now` is over."""
        return now + self.lease_s


def is_over(*, until: float, now: float) -> bool:
    """Whether a lease that stands until `until` is over at `now`."""
    return now >= until


def fences(*, held: int, found: int) -> bool:
    """Whether a claim under epoch `held` has been taken over by the one under `found`."""
    return found > held
