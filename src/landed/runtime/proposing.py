"""The verbs for plans that begin: preview one, propose one, change one's mind about one."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from landed.core.approval import Purpose, approval_from, approval_id
from landed.core.arrival import Planned, Revised
from landed.core.canonical import Json
from landed.core.contract import OnExpiry
from landed.core.erased import erased_on
from landed.core.errors import ProposalError
from landed.core.key import Ask, targets_of
from landed.core.plan import CLOCK, At, Plan, PlanState, Wanted
from landed.core.session import Input
from landed.core.telling import as_of_now, previewed_to_model, summaries, to_model
from landed.core.undo import UNDO_WITHIN_S, undoable
from landed.core.value import Offer, PlanValue, StepValue
from landed.runtime.planning import Ready
from landed.runtime.settling import Settling
from landed.runtime.waiting import PlanWaiter

log = logging.getLogger("landed")

PLAN_PATIENCE_S = 300.0


@dataclass(slots=True, eq=False)
class Proposing(Settling):
    """The verbs by which a plan is made."""

    async def preview(
        self,
        calls: Sequence[Wanted] = (),
        *,
        ask: Ask,
        intent: Mapping[str, Json] | None = None,
        origin: str = "user",
        keep: bool = False,
    ) -> PlanValue:
        """Say what a plan would do, in real figures; nothing is sent, and nothing recorded.

        With `keep` the plan is recorded, but for an invalid one, and waits: only `commit` begins
        it, with the plan token in `offer` and the `fingerprint`, and where a person has to agree,
        only after that. The value's state is `proposed` where a person would have to agree or the
        plan is kept, `running` where it would run at once, `invalid` where something is missing.
        Raises `ProposalError` as `propose` does.
        """
        self._check_open()
        plan = self.planner.drafted(ask, calls, intent or {}, origin)
        ready = await self.planner.ready(plan, keep=keep)
        if ready.kept is not None:
            return await self._keep(ready)
        is_whole = ready.plan.state is not PlanState.INVALID
        return PlanValue(
            plan="",
            turn=ask.turn,
            state=ready.plan.state,
            text=self.planner.shown(ready.plan) if is_whole else ready.plan.why,
            to_model=previewed_to_model(ready.plan),
            operations=(),
            steps=self._steps(ready.plan),
        )

    async def _keep(self, ready: Ready) -> PlanValue:
        planned = Planned(
            plan=ready.plan,
            approval=ready.approval,
            question=ready.question,
            token=ready.kept,
        )
        value = await self._carry_out(planned, PLAN_PATIENCE_S, token=ready.plan_token)
        return replace(value, text=ready.question or self.planner.shown(ready.plan))

    async def propose(
        self,
        calls: Sequence[Wanted] = (),
        *,
        ask: Ask,
        intent: Mapping[str, Json] | None = None,
        origin: str = "user",
        independent: bool = False,
        patience_s: float = PLAN_PATIENCE_S,
    ) -> PlanValue:
        """Carry out ordered calls as one unit, each step once, and return what it came to.

        `$n` in an argument stands for what step n makes. With an `intent` and no calls, the
        application's `plan_for` makes the calls. A plan with a step that needs a yes is previewed
        as a whole and waits: its value is `proposed`, with the question in `text` and the yes that
        may be given in `offer`. One in which something is missing is `invalid`, and nothing runs.
        `independent` steps wait only for those they refer to.

        Returns when the plan is over or waits for a person, or after `patience_s` seconds as it
        stands. The same ask again joins the same plan. Raises `ProposalError` for what cannot be
        carried out or is not allowed, and `BusyError` while too much of its tenant is in hand here;
        nothing was sent then.
        """
        self._check_open()
        with self.driver.setting.sharing.call(ask.tenant):
            planned, token = await self.planner.proposed(
                ask, calls, intent or {}, origin, independent=independent
            )
            return await self._carry_out(planned, patience_s, token=token)

    async def revise(
        self,
        turn: str,
        heard: Input,
        *,
        wanted: Sequence[Wanted] | None = None,
        change: Mapping[str, Json] | None = None,
        drop: Sequence[str] = (),
        call_id: str = "revise",
        patience_s: float = PLAN_PATIENCE_S,
    ) -> PlanValue:
        """Change what `turn` wants to what `heard` asks for, and carry that out.

        Give the calls that are `wanted` now, or the `change` to the turn's intent. What is equal is
        kept; what changed is released once its replacement holds, or corrected where it cannot be
        taken back; what is left out is a question, unless `drop` names it (by operation or tool).
        Where a changed step needs a yes, nothing is released before that was given. Returns when
        all that is done, but for what waits for a person. Raises `ProposalError` for a turn that is
        unknown, has ended, or was revised already.
        """
        self._check_open()
        with self.driver.setting.sharing.call(heard.tenant):
            revised, token = await self.planner.revised(
                turn, heard, wanted=wanted, change=change or {}, drop=drop, call_id=call_id
            )
            return await self._carry_out(revised, patience_s, token=token)

    async def plan(self, plan: str, *, tenant: str = "default") -> PlanValue:
        """Return a plan as it stands. Raises `ProposalError` for an unknown id."""
        self._check_open()
        return await self._plan_value(await self.driver.reader.plan(plan, tenant=tenant))

    # What these verbs share.

    async def _carry_out(
        self, planned: Planned | Revised, patience_s: float, *, token: str
    ) -> PlanValue:
        plan = planned.plan
        waiter = self._plan_waiter(plan.id, patience_s)
        self.driver.loop_of(tenant=plan.tenant, session=plan.session).plan(planned, waiter)
        answer = await waiter.future
        made_here = token if answer.plan.id == plan.id else ""
        return await self._plan_value(answer.plan, replayed=answer.replayed, token=made_here)

    async def _wait_for(
        self, plan: Plan, patience_s: float, *, replayed: bool = False
    ) -> PlanValue:
        """Wait until a plan is at rest, wherever it is carried out."""
        waiter = self._plan_waiter(plan.id, patience_s)
        waiter.replayed = replayed
        loop = self.driver.loop_of(tenant=plan.tenant, session=plan.session)
        await loop.wait_for_plan(waiter)
        try:
            answer = await waiter.future
        except asyncio.CancelledError:
            if not self.driver.schedule.over or _is_cancelled():
                raise
            # The runtime ended meanwhile: what was decided is durable, the next one carries it out.
            stands = await self.driver.reader.plan(plan.id, tenant=plan.tenant)
            return await self._plan_value(stands, replayed=replayed)
        return await self._plan_value(answer.plan, replayed=answer.replayed)

    async def _once_more(self, plan: str, tenant: str, *, heard: Input | None = None) -> str:
        """Preview a plan anew whose yes came too late, or whose facts moved; "" where none is.

        It always asks, and is made once, however often somebody comes too late. `heard` is the
        input that came too late, whose turn it then belongs to. What the person answered with other
        words, or a plan that did anything, is not shown again.
        """
        held = await self.driver.reader.plan(plan, tenant=tenant)
        if not self._may_be_shown_again(held):
            return ""
        calls = [Wanted(tool=s.tool, arguments=s.arguments, call_id=s.call_id) for s in held.steps]
        ask = replace(
            held.ask,
            turn=heard.turn if heard is not None else held.turn,
            call_id=f"again/{held.id}",
            send_by=None,
        )
        try:
            planned, token = await self.planner.proposed(
                ask,
                calls,
                held.intent,
                held.origin,
                independent=held.independent,
                supersedes=held.id,
                asks=True,
            )
            return (await self._carry_out(planned, PLAN_PATIENCE_S, token=token)).plan
        except ProposalError as error:
            log.info("%s could not be previewed anew: %s", held.id, error)
            return ""

    def _may_be_shown_again(self, plan: Plan) -> bool:
        pairs = zip(plan.steps, plan.places, strict=True)
        contracts = [self.driver.reader.contracts[step.contract] for step in plan.steps]
        did_something = any(place.at is At.DONE and not step.reads for step, place in pairs)
        stops = any(contract.on_expiry is OnExpiry.STOP for contract in contracts)
        late = plan.state is PlanState.EXPIRED and plan.by == CLOCK
        is_so = (late or plan.state is PlanState.PARTIAL) and not erased_on(plan.intent)
        is_so = is_so and not plan.begins  # Whoever had that previewed previews it again.
        return is_so and not did_something and not stops

    def _plan_waiter(self, plan: str, patience_s: float) -> PlanWaiter:
        return PlanWaiter(
            plan=plan,
            future=asyncio.get_running_loop().create_future(),
            until=self._clock.now() + patience_s,
        )

    async def _plan_value(
        self, plan: Plan, *, replayed: bool = False, token: str = "", again: str = ""
    ) -> PlanValue:
        now = self._clock.now()
        reader = self.driver.reader
        told = await reader.report(plan.turn, language=self.settings.language, now=now)
        operations = await reader.operations(*(p.record for p in plan.places if p.record))
        can_undo = undoable(plan, operations, reader.contracts, now)
        plan = as_of_now(plan, now)
        return PlanValue(
            plan=plan.id,
            turn=plan.turn,
            state=plan.state,
            text=told.text,
            to_model=to_model(plan),
            operations=told.operations,
            questions=told.questions,
            replayed=replayed,
            attempt=plan.attempt,
            steps=self._steps(plan),
            offer=await self._offered(plan, token),
            changed=plan.changed,
            undo_by=plan.ended_at + UNDO_WITHIN_S if can_undo else None,
            again=again,
            fingerprint=plan.hash,
            version=plan.version,
            made_at=plan.made_at,
            principal=plan.principal,
            session=plan.session,
            agreed_by=plan.agreed_by,
        )

    async def _offered(self, plan: Plan, token: str) -> Offer | None:
        """Return the yes that a plan waits for, with its token where that was made just now."""
        if plan.state is not PlanState.PROPOSED:
            return None
        purpose = Purpose.COMMIT if plan.begins else Purpose.CONFIRM
        for record in await self.driver.store.load(approval_id(plan.id, purpose, plan.attempt)):
            approval = approval_from(record)
            return Offer(purpose=purpose, answer_by=approval.answer_by, token=token)
        return None

    def _steps(self, plan: Plan) -> tuple[StepValue, ...]:
        lines = summaries(plan)
        return tuple(
            StepValue(
                tool=step.tool,
                summary=lines[n],
                at=place.at,
                operation="" if step.reads else place.record,
                attempt=place.attempt,
                replayed=place.at is At.DONE and place.attempt < plan.attempt,
                type=self._type(step.contract),
                made=place.made,
                arguments=step.arguments,
                targets=targets_of(step.names),
            )
            for n, (step, place) in enumerate(zip(plan.steps, plan.places, strict=True))
        )

    def _type(self, digest: str) -> str:
        contract = self.driver.reader.contracts.get(digest)
        return contract.makes_type if contract is not None else ""


def _is_cancelled() -> bool:
    """Whether it is this call that somebody cancelled."""
    mine = asyncio.current_task()
    return mine is not None and mine.cancelling() > 0
