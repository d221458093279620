"""Stopping: what it does to a call in flight. Stopping the wait does not stop the work.

A *clean* stop (a cancelled caller, a revision) obeys the contract's `on_interrupt`; a *hard* one
waits for nobody. Both leave what was sent in doubt, never cancelled.
"""

from dataclasses import dataclass

from landed.core.contract import Contract, Interrupt
from landed.core.operation import Operation


@dataclass(frozen=True, slots=True)
class KeepWaiting:
    """Go on waiting, at most until `until` (UTC seconds); infinite where it must finish."""

    until: float


@dataclass(frozen=True, slots=True)
class StopNow:
    """Stop waiting; the operation is in doubt from now on."""


Interruption = KeepWaiting | StopNow


def interruption(operation: Operation, contract: Contract, now: float) -> Interruption:
    """Return what becomes of a send in flight that is no longer wanted."""
    if contract.on_interrupt is Interrupt.FINISH:
        return KeepWaiting(float("inf"))
    until = operation.unwanted_at + contract.wait_s
    if contract.on_interrupt is Interrupt.WAIT and now < until:
        return KeepWaiting(until)
    return StopNow()
