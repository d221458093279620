"""The verbs by which code, never a model, begins a plan that was kept, or drops what it kept.

A plan token is the capability to begin exactly what was previewed; it is no yes. Where a person has
to agree, it is good only once they have. It is kept and checked like a yes (`core.approval`): bound
to one principal, tenant and hash, sealed, usable once, and in vain it uses nothing up.
"""

from contextlib import suppress
from dataclasses import dataclass

from landed.core.approval import (
    Approval,
    Presented,
    Problem,
    Purpose,
    is_for,
    token_digest,
    token_name,
)
from landed.core.arrival import Presenting
from landed.core.changes import Kind
from landed.core.errors import ApprovalError, ProposalError, StaleWriteError, UsedBeforeError
from landed.core.key import commit_name
from landed.core.plan import PlanEvent, PlanState, plan_from
from landed.core.value import PlanValue
from landed.runtime.deciding import NO_SUCH_APPROVAL, TO_OWNER, Deciding, is_token
from landed.runtime.proposing import PLAN_PATIENCE_S

TASK_OVER = "the task is over"


@dataclass(slots=True, eq=False)
class Committing(Deciding):
    """The verbs for plan tokens."""

    async def commit(
        self,
        plan: str,
        *,
        token: str,
        fingerprint: str,
        principal: str,
        tenant: str = "default",
        call_id: str = "",
        patience_s: float = PLAN_PATIENCE_S,
    ) -> PlanValue:
        """Begin a plan that `preview(keep=True)` recorded, by its token and its fingerprint.

        Nothing is taken from the caller but which plan it is: what runs is what was previewed, and
        each step only while the facts of its preview are still so (`changed` has those that are
        not). The same again gets what the first came to. One `call_id` of a principal is one plan's
        for ever. Returns the plan as `propose` does. Raises `ApprovalError` for a token that is
        not good, in the same words for all that is not this principal's, and `UsedBeforeError`
        for a `call_id` that was used for another plan; nothing was begun then.
        """
        self._check_open()
        digest = token_digest(token) if is_token(token) else ""
        approval = await self._kept(plan, digest, principal, tenant)
        name = commit_name(tenant=tenant, principal=principal, call_id=call_id)
        await self._require_unused(name, plan)
        presented = Presented(
            purpose=Purpose.COMMIT,
            principal=principal,
            tenant=tenant,
            session=approval.session,
            token=digest,
        )
        if is_for(approval, presented) and fingerprint != approval.hash:
            raise ApprovalError(TO_OWNER[Problem.FINGERPRINT], problem=Problem.FINGERPRINT)
        self.driver.setting.onlooker.asked(plan)
        problem = await self._begin(approval, presented, name)
        if problem in (Problem.NONE, Problem.USED):
            return await self._ran(approval, patience_s, replayed=problem is Problem.USED)
        raise await self._refused(approval, presented, problem, yes=False)

    async def abandon_turn(
        self,
        turn: str,
        *,
        why: str = TASK_OVER,
        principal: str = "",
        tenant: str = "default",
    ) -> tuple[str, ...]:
        """Drop every plan of a turn that has not begun, as the agent's side whose task is over.

        Their tokens, and the yeses to them, are good no more; what is owed stays owed. Returns
        their ids. Raises `ProposalError` for an unknown turn.
        """
        self._check_open()
        found = await self.driver.store.load(turn)
        if not found or found[0].kind is not Kind.TURN or found[0].tenant != tenant:
            raise ProposalError(f"there is no turn {turn!r}")
        every = await self.driver.reader.records(tenant=tenant, session=found[0].session)
        plans = [plan_from(record) for record in every if record.kind is Kind.PLAN]
        dropped: list[str] = []
        for plan in plans:
            if plan.turn == turn and plan.state is PlanState.PROPOSED:
                with suppress(ProposalError):  # It was begun a moment before.
                    await self._tell(plan, PlanEvent.ABANDONED, by=principal, why=why)
                    dropped.append(plan.id)
        return tuple(dropped)

    # What these verbs are made of.

    async def _kept(self, plan: str, digest: str, principal: str, tenant: str) -> Approval:
        """Return what is recorded of a plan token; raises `ApprovalError`."""
        name = token_name(digest)
        id = (await self.driver.store.holders(name)).get(name, "") if digest else ""
        presented = Presented(
            purpose=Purpose.COMMIT, principal=principal, tenant=tenant, session=""
        )
        approval = await self._approval(presented, id)
        if approval.plan != plan:
            raise ApprovalError(NO_SUCH_APPROVAL, problem=Problem.ABSENT)
        return approval

    async def _require_unused(self, name: str, plan: str) -> None:
        if name and (await self.driver.store.holders(name)).get(name, plan) != plan:
            raise UsedBeforeError(
                "the call id was used before, to commit another plan; give each commit its own"
            )

    async def _begin(self, approval: Approval, presented: Presented, name: str) -> Problem:
        arrival = Presenting(
            approval=approval.id,
            presented=presented,
            yes=True,
            at=self._clock.now(),
            ask_name=name,
        )
        loop = self.driver.loop_of(tenant=approval.tenant, session=approval.session)
        try:
            return Problem(await loop.hand_in(arrival))
        except StaleWriteError as stale:
            if not name or stale.name != name:
                raise
            await self._require_unused(name, approval.plan)
            return Problem.USED  # The same commit came a moment before, from elsewhere.

    async def _ran(self, approval: Approval, patience_s: float, *, replayed: bool) -> PlanValue:
        """Wait for what a commit began; no yes to what may follow is handed to code."""
        held = await self.driver.reader.plan(approval.plan, tenant=approval.tenant)
        if replayed and held.attempt > approval.attempt:
            return await self._as_it_was(held, approval.attempt)
        return await self._wait_for(held, patience_s, replayed=replayed)
