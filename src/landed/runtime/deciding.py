"""The verbs by which somebody decides about a plan: yes, no, stop, once more, take it back.

Who presents the wrong token, or somebody else's, hears the same as for one that never existed; the
records and the log have the truth. The owner, once it is certain who they are, hears what is wrong.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace

from landed.core.approval import (
    Approval,
    ApprovalState,
    Presented,
    Problem,
    Purpose,
    approval_from,
    approval_id,
    is_for,
    token_digest,
    token_name,
)
from landed.core.arrival import Answered, Offering, PlanTold, Presenting
from landed.core.changes import Kind
from landed.core.erased import erased_on
from landed.core.errors import ApprovalError, ProposalError, StoreError
from landed.core.plan import PLAN_MOVES, Plan, PlanEvent, PlanState, plan_from
from landed.core.question import About, Question, QuestionState, question_from
from landed.core.telling import to_person
from landed.core.undo import UNDO_WITHIN_S, release_id, undoable
from landed.core.value import Offer, PlanValue
from landed.runtime.permissions import is_in_charge
from landed.runtime.proposing import PLAN_PATIENCE_S, Proposing

log = logging.getLogger("landed")

# Said to whoever cannot be told more.
NO_SUCH_APPROVAL = "there is nothing here that you could agree to; it may be over, or not be yours"
TO_OWNER: Mapping[Problem, str] = {
    Problem.TAMPERED: "what is stored is not what was shown, so nothing was done: propose it again",
    Problem.USED: "this was answered already",
    Problem.DECLINED: "this was declined already; propose it again if it is wanted after all",
    Problem.EXPIRED: "the time to answer is over, so nothing was done: propose it again",
    Problem.OVER: "the plan has gone on without this: look at how it stands",
    Problem.NOT_AGREED: "a person has to agree to this first, so nothing was done",
    Problem.FINGERPRINT: "this is not the fingerprint of what was shown, so nothing was done",
}


@dataclass(slots=True, eq=False)
class Deciding(Proposing):
    """The verbs for what a person, or the agent's side, says about a plan."""

    async def approve(
        self,
        what: str = "",
        *,
        principal: str,
        token: str = "",
        purpose: Purpose = Purpose.CONFIRM,
        tenant: str = "default",
        session: str = "main",
        patience_s: float = PLAN_PATIENCE_S,
    ) -> PlanValue | None:
        """Say yes, as the person who was asked.

        By the `token` that was handed out for `purpose`, in the conversation it was handed out in;
        or to `what`, a question or a plan, where the caller knows who the person is (a terminal, a
        console). With both, the token has to be the one for `what`. Exactly what was shown is
        carried out, once: a second yes gets what the first one came to. Returns the plan as
        `propose` does, None for a question that is about none. Raises `ApprovalError`, the same for
        all that was not offered to this person, and says what is wrong to whom it was.
        """
        place = (tenant, session)
        return await self._decide(what, token, purpose, principal, place, patience_s, yes=True)

    async def decline(
        self,
        what: str = "",
        *,
        principal: str,
        token: str = "",
        purpose: Purpose = Purpose.CONFIRM,
        tenant: str = "default",
        session: str = "main",
    ) -> PlanValue | None:
        """Say no, as the person who was asked; arguments and errors are those of `approve`."""
        place = (tenant, session)
        patience_s = PLAN_PATIENCE_S
        return await self._decide(what, token, purpose, principal, place, patience_s, yes=False)

    async def abandon(
        self, plan: str, *, why: str = "", principal: str = "", tenant: str = "default"
    ) -> PlanValue:
        """Drop a plan before it began, as the agent's side; what is owed stays owed.

        Raises `ProposalError` for an id that is none, or a plan that has begun.
        """
        return await self._told(plan, PlanEvent.ABANDONED, tenant=tenant, by=principal, why=why)

    async def stop(
        self,
        plan: str,
        *,
        principal: str,
        tenant: str = "default",
        why: str = "",
        hard: bool = False,
        patience_s: float = PLAN_PATIENCE_S,
    ) -> PlanValue:
        """Stop a plan halfway: nothing of it is started any more, done stays done.

        What is in flight obeys its contract; a `hard` stop waits for nobody and leaves that in
        doubt. Only who started it, or who administers the tenant, may. Stopping what is stopped or
        over changes nothing. Raises `ProposalError`, the same for anybody else as for no plan.
        """
        self._check_open()
        held = await self._of(plan, principal, tenant)
        asked = held.state is PlanState.PROPOSED or PlanEvent.STOP_ASKED in PLAN_MOVES[held.state]
        if hard or asked:
            await self._tell(held, PlanEvent.STOP_ASKED, by=principal, why=why, hard=hard)
        return await self._wait_for(held, patience_s)

    async def retry(
        self,
        plan: str,
        *,
        principal: str,
        tenant: str = "default",
        patience_s: float = PLAN_PATIENCE_S,
    ) -> PlanValue:
        """Run a partial plan once more, from where it broke off: the same plan, the next attempt.

        For a plan that needed a yes this is the yes to the next attempt, by the person it was shown
        to. Raises `ProposalError` where it cannot be run again as it is: what was shown is not so
        any more, or it did not end halfway.
        """
        self._check_open()
        held = await self._of(plan, principal, tenant)
        if day := erased_on(held.intent):
            raise ProposalError(
                f"the details of {plan} were erased on {day}: it cannot be run again"
            )
        if held.needs_yes:
            attempt = approval_id(plan, Purpose.RETRY, held.attempt + 1)
            offered = await self._is_offered(attempt)
            if not offered and await self.offer(plan, Purpose.RETRY, tenant=tenant) is None:
                raise ProposalError(f"{plan} is {held.state}: it cannot be run again as it is")
            yes = Presented(
                purpose=Purpose.RETRY, principal=principal, tenant=tenant, session=held.session
            )
            return await self._present(yes, attempt, patience_s, yes=True)
        await self._tell(held, PlanEvent.RETRIED, by=principal)
        return await self._wait_for(held, patience_s)

    async def undo(
        self,
        plan: str,
        *,
        principal: str,
        tenant: str = "default",
        patience_s: float = PLAN_PATIENCE_S,
    ) -> PlanValue:
        """Take back what a plan did, last to first, as the person who asked for it.

        Only within an hour of its end, and only where all that ran is safe and can be taken back;
        `PlanValue.undo_by` says so. Raises `ProposalError` where it can't be.
        """
        self._check_open()
        held = await self._of(plan, principal, tenant)
        if held.state is PlanState.UNDOING:
            return await self._wait_for(held, patience_s)
        await self._tell(held, PlanEvent.UNDO_ASKED, by=principal)
        return await self._wait_for(held, patience_s)

    async def offer(self, plan: str, purpose: Purpose, *, tenant: str = "default") -> Offer | None:
        """Hand out the yes that may follow now: to run it, to retry, or to take it back.

        The token that was handed out for it before is good no more. None where there is nothing to
        agree to. Raises `ProposalError` for an id that is none.
        """
        self._check_open()
        held = await self.driver.reader.plan(plan, tenant=tenant)
        answer_by = await self._until(held, purpose)
        if answer_by is None:
            return None
        approval, token = self.planner.approval(held, purpose, answer_by=answer_by)
        before = await self.driver.store.load(approval.id)
        arrival = Offering(
            approval=approval,
            question=self.planner.question(held, purpose),
            again=bool(before),
        )
        loop = self.driver.loop_of(tenant=held.tenant, session=held.session)
        if await loop.hand_in(arrival):
            return None
        return Offer(purpose=purpose, answer_by=answer_by, token=token)

    # What these verbs share.

    async def _decide(
        self,
        what: str,
        token: str,
        purpose: Purpose,
        principal: str,
        place: tuple[str, str],
        patience_s: float,
        *,
        yes: bool,
    ) -> PlanValue | None:
        self._check_open()
        if purpose is Purpose.COMMIT:
            raise ApprovalError(NO_SUCH_APPROVAL, problem=Problem.ABSENT)  # A token is no yes.
        tenant, session = place
        digest = token_digest(token) if is_token(token) else ""
        presented = Presented(
            purpose=purpose, principal=principal, tenant=tenant, session=session, token=digest
        )
        if digest:
            name = token_name(digest)
            id = (await self.driver.store.holders(name)).get(name, "")
            is_meant = not what or await self._is_about(id, what)
            return await self._present(presented, id if is_meant else "", patience_s, yes=yes)
        for record in await self.driver.store.load(what):
            if record.tenant == tenant and record.kind is Kind.PLAN:
                id = _approval_of(plan_from(record), purpose)
                there = replace(presented, session=record.session)
                return await self._present(there, id, patience_s, yes=yes)
            if record.tenant == tenant and record.kind is Kind.QUESTION:
                asked = question_from(record)
                if asked.about is not About.PLAN:
                    await self._answer(asked, principal, yes=yes)
                    return None
                (approval,) = await self.driver.store.load(asked.subject)
                kind = approval_from(approval).purpose
                there = replace(presented, session=record.session, purpose=kind)
                return await self._present(there, approval.id, patience_s, yes=yes)
        return await self._present(presented, "", patience_s, yes=yes)

    async def _is_about(self, approval: str, what: str) -> bool:
        """Whether the yes that a token stands for is the one to this question or plan."""
        for record in await self.driver.store.load(approval):
            asked = approval_from(record)
            return what in (asked.plan, asked.question)
        return False

    async def _present(
        self, presented: Presented, id: str, patience_s: float, *, yes: bool
    ) -> PlanValue:
        """Present a yes or a no, and return what it comes to; raises `ApprovalError`."""
        approval = await self._approval(presented, id)
        self.driver.setting.onlooker.asked(approval.plan)
        loads = await self._loads(approval.plan) if presented.purpose is Purpose.UNDO else ()
        arrival = Presenting(
            approval=approval.id,
            presented=presented,
            yes=yes,
            at=self._clock.now(),
            loads=loads,
        )
        loop = self.driver.loop_of(tenant=approval.tenant, session=approval.session)
        problem = Problem(await loop.hand_in(arrival))
        said_before = problem is (Problem.USED if yes else Problem.DECLINED)
        if problem is Problem.NONE or said_before:
            return await self._came_to(approval, patience_s, replayed=said_before)
        raise await self._refused(approval, presented, problem, yes=yes)

    async def _is_offered(self, id: str) -> bool:
        """Whether a yes may be given as it is, so that no token has to be made for it."""
        offered = [approval_from(record) for record in await self.driver.store.load(id)]
        now = self._clock.now()
        return any(a.state is ApprovalState.OPEN and now < a.answer_by for a in offered)

    async def _answer(self, asked: Question, principal: str, *, yes: bool) -> None:
        """Answer a question that is about no plan, as the person it was put to."""
        if asked.state is not QuestionState.OPEN or asked.principal not in ("", principal):
            raise ApprovalError(NO_SUCH_APPROVAL, problem=Problem.ABSENT)
        answered = Answered(
            question=asked.id, yes=yes, principal=principal, heard=None, at=self._clock.now()
        )
        await self.driver.loop_of(tenant=asked.tenant, session=asked.session).hand_in(answered)

    async def _approval(self, presented: Presented, id: str) -> Approval:
        """Return what is presented; whoever presents what there is not hears no more than that."""
        records = await self.driver.store.load(id) if id else ()
        if not records or records[0].kind is not Kind.APPROVAL:
            log.info("a yes by %r was refused: %s", presented.principal, Problem.ABSENT)
            raise ApprovalError(NO_SUCH_APPROVAL, problem=Problem.ABSENT)
        return approval_from(records[0])

    async def _refused(
        self, approval: Approval, presented: Presented, problem: Problem, *, yes: bool
    ) -> ApprovalError:
        """Return what whoever presented it may know; the log has all of it."""
        late = approval.state is ApprovalState.OPEN and self._clock.now() >= approval.answer_by
        log.info(
            "a yes to %s by %r was refused: %s (it was %s)",
            approval.id,
            presented.principal,
            problem,
            Problem.EXPIRED if late else approval.state,
        )
        if not is_for(approval, presented):
            return ApprovalError(NO_SUCH_APPROVAL, problem=Problem.ABSENT)
        error = ApprovalError(TO_OWNER[problem], problem=problem)
        if problem is Problem.EXPIRED and yes:
            error.again = await self._once_more(approval.plan, approval.tenant)
        return error

    async def _came_to(self, approval: Approval, patience_s: float, *, replayed: bool) -> PlanValue:
        """Wait for what a yes set going, and return what that attempt came to."""
        held = await self.driver.reader.plan(approval.plan, tenant=approval.tenant)
        if replayed and held.attempt > approval.attempt:
            return await self._as_it_was(held, approval.attempt)
        value = await self._wait_for(held, patience_s, replayed=replayed)
        if replayed or value.state is not PlanState.PARTIAL:
            return value
        if value.changed:
            return replace(value, again=await self._once_more(held.id, held.tenant))
        return replace(value, offer=await self._offer_retry(held))

    async def _offer_retry(self, plan: Plan) -> Offer | None:
        """Hand out the yes to the next attempt; where that fails, what was done is saved anyway."""
        try:
            return await self.offer(plan.id, Purpose.RETRY, tenant=plan.tenant)
        except StoreError as error:
            log.warning("the retry of %s could not be offered: %s", plan.id, error)
            return None

    async def _as_it_was(self, plan: Plan, attempt: int) -> PlanValue:
        """Return a plan as it stood, and was told, at the end of an earlier attempt."""
        reader = self.driver.reader
        then = await reader.plan_at_end_of(plan, attempt)
        held = await reader.operations(*(place.record for place in then.places if place.record))
        value = await self._plan_value(then, replayed=True)
        text = to_person(then, held, reader.contracts, language=self.settings.language)
        return replace(value, text=text, operations=tuple(held), questions=(), undo_by=None)

    async def _told(
        self, plan: str, event: PlanEvent, *, tenant: str, by: str, why: str
    ) -> PlanValue:
        self._check_open()
        held = await self.driver.reader.plan(plan, tenant=tenant)
        await self._tell(held, event, by=by, why=why)
        return await self._plan_value(await self.driver.reader.plan(plan, tenant=tenant))

    async def _tell(
        self, plan: Plan, event: PlanEvent, *, by: str, why: str = "", hard: bool = False
    ) -> None:
        arrival = PlanTold(
            plan=plan.id,
            event=event,
            by=by,
            at=self._clock.now(),
            why=why,
            hard=hard,
            send_by=self._clock.now() + self.settings.send_within_s,
            loads=await self._loads(plan.id),
        )
        loop = self.driver.loop_of(tenant=plan.tenant, session=plan.session)
        if await loop.hand_in(arrival) and event is not PlanEvent.STOP_ASKED:
            raise ProposalError(f"{plan.id} is {plan.state}: it cannot be {_DONE[event]}")

    async def _of(self, plan: str, principal: str, tenant: str) -> Plan:
        """Return somebody's own plan, or one that they may see to; else there is none."""
        held = await self.driver.reader.plan(plan, tenant=tenant)
        if held.principal in ("", principal):
            return held
        if await is_in_charge(self.planner.foreseer.permissions, principal, tenant=tenant):
            return held
        raise ProposalError(f"there is no plan {plan!r}")

    async def _loads(self, plan: str) -> tuple[str, ...]:
        """Return the releases that exist of what a plan did, or that wait for it."""
        (record,) = await self.driver.store.load(plan)
        held = plan_from(record)
        done = {release_id(place.record) for place in held.places if place.record}
        every = await self.driver.reader.records(tenant=held.tenant, session=held.session)
        releases = [r for r in every if r.kind is Kind.RELEASE]
        return tuple(r.id for r in releases if r.id in done or r.changing.get("plan") == held.id)

    async def _until(self, plan: Plan, purpose: Purpose) -> float | None:
        """Return until when a yes to that may be given, None where there is nothing to agree to."""
        now = self._clock.now()
        match purpose:
            case Purpose.CONFIRM:
                waits = plan.state is PlanState.PROPOSED and not plan.expired(now)
                waits = waits and plan.needs_yes
                return plan.answer_by if waits else None
            case Purpose.RETRY:
                changed = plan.changed or erased_on(plan.intent)
                waits = plan.state is PlanState.PARTIAL and not changed
                return now + self.settings.answer_within_s if waits else None
            case Purpose.UNDO:
                held = await self.driver.reader.operations(*(p.record for p in plan.places))
                can = undoable(plan, held, self.driver.reader.contracts, now)
                return plan.ended_at + UNDO_WITHIN_S if can else None
            case Purpose.COMMIT:
                return None  # It is handed out with the preview, and once.


def is_token(token: object) -> bool:
    """Whether it could have been handed out: text of plain characters, and not empty."""
    return isinstance(token, str) and token.isascii() and bool(token)


def _approval_of(plan: Plan, purpose: Purpose) -> str:
    """Return the id of the approval that is open to a plan, or was the last one."""
    ahead = purpose is Purpose.RETRY and plan.state is PlanState.PARTIAL
    return approval_id(plan.id, purpose, plan.attempt + ahead)


_DONE: Mapping[PlanEvent, str] = {
    PlanEvent.ABANDONED: "dropped any more",
    PlanEvent.RETRIED: "run again as it is",
    PlanEvent.UNDO_ASKED: "taken back as a whole",
}
