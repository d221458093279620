"""Carries a script out through the verbs, from its beginning in every process that comes to it.

What was heard and asked for before is joined by its delivery and its call id, as in any durable
program; so a script may be run again as often as its process dies.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from landed.core.canonical import Json
from landed.core.errors import ProposalError
from landed.core.key import Ask
from landed.core.plan import PlanState, Wanted
from landed.core.session import Input
from landed.core.value import Blocked, PlanValue
from landed.runtime.runtime import Runtime
from landed.testing.chaos.load import Do, Script

PRINCIPAL = "ana"
PATIENCE_S = 20.0
AGAIN_MAX = 200  # how often a call is made again that was blocked
AGAIN_S = 0.1
DAYS = ("Fri", "Sat")


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """One script and the runtime that it is carried out through."""

    rt: Runtime
    script: Script

    async def run(self) -> None:
        """Carry it out; raises `StoreError` where it has to be run again."""
        await _BY[self.script.do](self)

    async def hear(self, delivery: str) -> Input:
        """Receive words of the user."""
        script = self.script
        return await self.rt.receive(
            delivery,
            session=script.session,
            tenant=script.tenant,
            principal=PRINCIPAL,
            delivery=f"{script.number}/{delivery}",
        )

    def table(self, call: str, *, day: str = DAYS[0]) -> Wanted:
        """Return a call for a table, which the restaurant keeps under its mark."""
        table: dict[str, Json] = {
            "day": day,
            "time": "19:00",
            "party": 4,
            "name": self.script.mark(call),
        }
        return Wanted(tool="reserve_table", arguments=table, call_id=call)

    def refund(self, call: str, *, order: int = 0) -> Wanted:
        """Return a call for a refund, which the service keeps under its mark."""
        script = self.script
        refund: dict[str, Json] = {
            "order": script.orders[order],
            "cents": script.cents,
            "reason": script.mark(call),
        }
        return Wanted(tool="refund_order", arguments=refund, call_id=call)

    async def perform(self, wanted: Wanted) -> None:
        """Perform a call; while another one is in its way, make it again."""
        script = self.script
        ask = Ask(
            tenant=script.tenant,
            principal=PRINCIPAL,
            session=script.session,
            call_id=script.mark(wanted.call_id),
        )
        for _ in range(AGAIN_MAX):
            value = await self.rt.perform(
                wanted.tool, wanted.arguments, ask=ask, patience_s=PATIENCE_S
            )
            if not isinstance(value, Blocked):
                return
            await asyncio.sleep(AGAIN_S)

    async def propose(self, calls: Sequence[Wanted], *, patience_s: float) -> PlanValue:
        """Propose a plan for the first words of the user."""
        heard = await self.hear("first")
        return await self.rt.propose(calls, ask=heard.ask("plan"), patience_s=patience_s)

    async def at_rest(self, plan: PlanValue) -> PlanValue:
        """Wait for a plan to end, in bounds."""
        for _ in range(AGAIN_MAX):
            if plan.state not in (PlanState.RUNNING, PlanState.IN_DOUBT, PlanState.STOPPING):
                break
            await asyncio.sleep(AGAIN_S)
            plan = await self.rt.plan(plan.plan, tenant=self.script.tenant)
        return plan


async def _refund(actor: Actor) -> None:
    await actor.perform(actor.refund("only"))


async def _shared(actor: Actor) -> None:
    await actor.perform(actor.table("only"))


async def _let_go(actor: Actor) -> None:
    """Perform a call, and go away before it has answered."""
    performed = asyncio.ensure_future(actor.perform(actor.refund("only")))
    await asyncio.wait((performed,), timeout=actor.script.after_s)
    performed.cancel()
    with suppress(asyncio.CancelledError):
        await performed


async def _plan(actor: Actor) -> None:
    calls = (actor.table("one"), actor.table("two", day=DAYS[1]), actor.refund("three"))
    plan = await actor.at_rest(await actor.propose(calls, patience_s=PATIENCE_S))
    if plan.state is PlanState.PARTIAL:
        await actor.rt.retry(plan.plan, principal=PRINCIPAL, tenant=actor.script.tenant)


async def _revise(actor: Actor) -> None:
    """Change one's mind about the day, while the first table is being booked or after it."""
    heard = await actor.hear("first")
    booked = asyncio.ensure_future(
        actor.rt.propose((actor.table("old"),), ask=heard.ask("plan"), patience_s=PATIENCE_S)
    )
    try:
        await asyncio.wait((booked,), timeout=actor.script.after_s)
        change = await actor.hear("change")
        wanted = (actor.table("new", day=DAYS[1]),)
        await actor.rt.revise(heard.turn, change, wanted=wanted, patience_s=PATIENCE_S)
    finally:
        with suppress(ProposalError):
            await booked


async def _undo(actor: Actor) -> None:
    calls = (actor.table("one"), actor.table("two", day=DAYS[1]))
    plan = await actor.at_rest(await actor.propose(calls, patience_s=PATIENCE_S))
    await actor.rt.undo(plan.plan, principal=PRINCIPAL, tenant=actor.script.tenant)


async def _stop(actor: Actor) -> None:
    calls = (actor.table("one"), actor.refund("two"), actor.table("three", day=DAYS[1]))
    script = actor.script
    plan = await actor.propose(calls, patience_s=script.after_s)
    await actor.rt.stop(
        plan.plan, principal=PRINCIPAL, tenant=script.tenant, hard=script.hard, patience_s=1.0
    )


_BY: Mapping[Do, Callable[[Actor], Awaitable[None]]] = {
    Do.REFUND: _refund,
    Do.SHARED: _shared,
    Do.LET_GO: _let_go,
    Do.PLAN: _plan,
    Do.REVISE: _revise,
    Do.UNDO: _undo,
    Do.STOP: _stop,
}
