"""Who waits for an operation or a plan, and how far that must have come to be answered."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from landed.core.contract import Contract, Interrupt
from landed.core.operation import Operation, State
from landed.core.plan import Plan

Enough = Callable[[Operation, Contract], bool]


@dataclass(slots=True, eq=False)
class Waiter:
    """Somebody who waits until `enough` says so, or until `until` (UTC seconds), then `expired`.

    What a caller is handed before it is final is recorded as told first: `told` is the last such
    state. A `leaving` caller is told nothing; it only waits for what it leaves to be durable.
    `seen` is the operation as another worker, which holds it, left it last.
    """

    operation: str
    future: "asyncio.Future[Answer]"
    until: float
    enough: Enough
    replayed: bool = False
    expired: bool = False
    leaving: bool = False
    told: str = ""
    seen: Operation | None = None
    timer: asyncio.TimerHandle | None = None

    @property
    def gone(self) -> bool:
        """Whether nobody is there any more to be answered."""
        return self.future.done()

    @property
    def wants(self) -> bool:
        """Whether the effect itself is waited for, and not only what is known of it."""
        return self.enough is settled_enough and not self.gone

    def see(self, operation: Operation, contract: Contract) -> None:
        """Take note of an operation that another worker holds; it is durable with that one."""
        self.seen = operation
        if self.leaving or self.expired or self.enough(operation, contract):
            self.answer(operation)

    def answer(self, operation: Operation) -> None:
        """Hand the operation over as it stands."""
        if self.timer is not None:
            self.timer.cancel()
        if not self.future.done():
            self.future.set_result(Answer(operation, self.replayed))

    async def stubbornly(self, seconds: float) -> None:
        """Wait for an answer of whatever kind, through any number of cancels, `seconds` at most."""
        now = asyncio.get_running_loop().time
        until = now() + seconds
        while not self.gone and (left := until - now()) > 0:
            with suppress(asyncio.CancelledError):
                await asyncio.wait({self.future}, timeout=left)
        self.refuse(None)
        if not self.future.cancelled():
            self.future.exception()  # Seen: the cancel that goes on says enough.

    def refuse(self, error: BaseException | None) -> None:
        """Raise `error` where the caller waits; None cancels its wait."""
        if self.timer is not None:
            self.timer.cancel()
        refuse(self.future, error)


@dataclass(slots=True, eq=False)
class PlanWaiter:
    """Somebody who waits for a plan to come to rest, until `until` (UTC seconds)."""

    plan: str
    future: "asyncio.Future[PlanAnswer]"
    until: float
    replayed: bool = False
    expired: bool = False
    timer: asyncio.TimerHandle | None = None

    def answer(self, plan: Plan) -> None:
        """Hand the plan over as it stands."""
        if self.timer is not None:
            self.timer.cancel()
        if not self.future.done():
            self.future.set_result(PlanAnswer(plan, self.replayed))

    def refuse(self, error: BaseException | None) -> None:
        """Raise `error` where the caller waits; None cancels its wait."""
        if self.timer is not None:
            self.timer.cancel()
        refuse(self.future, error)


@dataclass(frozen=True, slots=True)
class PlanAnswer:
    """The plan as it stood when the waiter was answered."""

    plan: Plan
    replayed: bool


def refuse(future: "asyncio.Future[Any]", error: BaseException | None) -> None:
    """End a wait with `error`; None cancels it."""
    if future.done():
        return
    if error is None:
        future.cancel()
    else:
        future.set_exception(error)


@dataclass(frozen=True, slots=True)
class Answer:
    """The operation as it stood when the waiter was answered."""

    operation: Operation
    replayed: bool


def settled_enough(operation: Operation, contract: Contract) -> bool:
    """Whether a caller of `perform` need not wait any longer."""
    match operation.state:
        case State.ACCEPTED:
            return not contract.read_back
        case State.RECORDED:
            return bool(operation.blocked_by)
        case State.SENT | State.RESENT | State.UNKNOWN:
            return False
        case _:
            return True


def let_go_enough(operation: Operation, contract: Contract) -> bool:
    """Whether a cancelled caller may go: what it sent is durably in doubt, or better."""
    if contract.on_interrupt is Interrupt.FINISH and not operation.wanted:
        return True
    return operation.state not in (State.RECORDED, State.SENT, State.RESENT)


def looked_enough(looks: int) -> Enough:
    """Whether the service was asked once more since an operation had been asked about `looks`.

    What is in front of a person is looked at all the same: that is what `resolve` is for.
    """

    def enough(operation: Operation, contract: Contract) -> bool:
        if operation.looks > looks:
            return True
        return operation.state is not State.UNDECIDED and settled_enough(operation, contract)

    return enough
