"""Keeps to the pace of each service: the clock and the chance that `core.pacing` is given."""

from dataclasses import dataclass

from landed.core.operation import Operation
from landed.core.outcome import Acknowledged, NotSent, Refused, SendOutcome
from landed.core.pacing import Leaving, Pacing
from landed.runtime.clock import Clock, Ids

CHANCE_BYTES = 4


@dataclass(frozen=True, slots=True)
class Paced:
    """The pace of what this process sends and asks; without a `pacing` all leaves at once."""

    pacing: Pacing | None
    clock: Clock
    ids: Ids

    def turn(self, service: str, operation: Operation, kind: Leaving) -> float:
        """Return when it may leave (UTC, seconds since the epoch); not later than now: at once."""
        if self.pacing is None:
            return 0.0
        now = self.clock.now()
        return self.pacing.turn(
            service,
            operation.id,
            kind=kind,
            now=now,
            chance=self._chance(),
            tenant=operation.tenant,
        )

    def heard(self, service: str, outcome: SendOutcome) -> None:
        """Take note of how a service answers: one that asks for time is left alone."""
        if self.pacing is None:
            return
        match outcome:
            case NotSent(wait_s=wait_s) if wait_s > 0:
                self.pacing.slow_down(
                    service, now=self.clock.now(), chance=self._chance(), wait_s=wait_s
                )
            case Acknowledged() | Refused():
                self.pacing.went_well(service)
            case _:
                return

    def _chance(self) -> float:
        return int.from_bytes(self.ids.chance(CHANCE_BYTES)) / 256.0**CHANCE_BYTES
