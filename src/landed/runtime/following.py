"""Follows the operations that another worker holds, for those who wait for them here."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from landed.core.contract import Contract
from landed.core.doubt import pause_s
from landed.core.errors import StoreError
from landed.core.operation import Operation, State
from landed.core.operation_record import from_record
from landed.core.plan import At, Plan, PlanState, plan_from
from landed.core.store import Store
from landed.runtime.waiting import PlanWaiter, Waiter

WATCH_MAX_S = 1.0


async def rests(store: Store, plan: Plan) -> bool:
    """Whether nothing of a plan goes on without a person's word, as the store has it."""
    if plan.state not in (PlanState.IN_DOUBT, PlanState.STOPPING):
        return not plan.open
    out = await store.load(*(place.record for place in plan.places if place.at is At.OUT))
    return bool(out) and all(record.state == State.UNDECIDED for record in out)


@dataclass(slots=True, eq=False)
class Following:
    """What one session waits for that is held elsewhere; `over` is called when nobody waits on.

    Nothing is written: the record is with its own worker, and is read again and again.
    """

    store: Store
    contracts: Mapping[str, Contract]
    waiters: dict[str, list[Waiter]]
    over: Callable[[], None]
    plans: dict[str, list[PlanWaiter]] = field(default_factory=dict[str, list[PlanWaiter]])
    seen: dict[str, Plan] = field(default_factory=dict[str, Plan])
    watches: dict[str, "asyncio.Task[None]"] = field(
        default_factory=dict[str, "asyncio.Task[None]"]
    )

    def follow(self, operation: Operation) -> None:
        """Answer those who wait for it as soon as its worker has come far enough."""
        self._show(operation)
        if operation.id not in self.watches:
            self.watches[operation.id] = asyncio.ensure_future(self._watch(operation.id))

    def follow_plan(self, plan: Plan, waiters: list[PlanWaiter]) -> None:
        """Answer those who wait for a plan as soon as its worker is through with it."""
        self.seen[plan.id] = plan
        self.plans.setdefault(plan.id, []).extend(waiters)
        if plan.id not in self.watches:
            self.watches[plan.id] = asyncio.ensure_future(self._watch_plan(plan.id))

    async def _watch_plan(self, id: str) -> None:
        looks = 0
        try:
            while self._show_plan(id, at_rest=await rests(self.store, self.seen[id])):
                looks += 1
                await asyncio.sleep(min(pause_s(looks), WATCH_MAX_S))
                for record in await self.store.load(id):
                    self.seen[id] = plan_from(record)
        except StoreError as error:
            for waiter in self.plans[id]:
                waiter.refuse(error)
        self.leave_plan(id)
        self.over()

    def _show_plan(self, id: str, *, at_rest: bool) -> bool:
        """Answer whoever can be answered; return whether anybody waits on."""
        plan, waiting = self.seen[id], self.plans[id]
        for waiter in waiting:
            if waiter.expired or at_rest:
                waiter.answer(plan)
        self.plans[id] = [waiter for waiter in waiting if not waiter.future.done()]
        return bool(self.plans[id])

    def leave_plan(self, id: str) -> list[PlanWaiter]:
        """Follow a plan no longer, for it is held here from now on; return who waits for it."""
        waiting = self.plans.pop(id, [])
        self.seen.pop(id, None)
        self.leave(id)
        return waiting

    def leave(self, id: str) -> None:
        """Follow an operation no longer: from now on it is held here."""
        if watch := self.watches.pop(id, None):
            watch.cancel()
        for waiter in self.waiters.get(id, ()):
            waiter.seen = None

    def stop(self) -> None:
        """Follow nothing any more; who waits for a plan gets it as it was seen last."""
        for id, waiting in list(self.plans.items()):
            for waiter in waiting:
                waiter.answer(self.seen[id])
            self.leave_plan(id)
        for id in list(self.watches):
            self.leave(id)

    def _show(self, operation: Operation) -> None:
        contract = self.contracts[operation.contract]
        waiting = self.waiters.pop(operation.id, [])
        for waiter in waiting:
            waiter.see(operation, contract)
        if left := [waiter for waiter in waiting if not waiter.gone]:
            self.waiters[operation.id] = left

    async def _watch(self, id: str) -> None:
        looks = 0
        while id in self.waiters:
            looks += 1
            await asyncio.sleep(min(pause_s(looks), WATCH_MAX_S))
            try:
                for record in await self.store.load(id):
                    self._show(from_record(record))
            except StoreError as error:
                for waiter in self.waiters.pop(id, ()):
                    waiter.refuse(error)
        del self.watches[id]
        self.over()
