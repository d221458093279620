"""Makes plans of what is wanted, and of a change of mind, from the records as they are."""

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

from landed.core.approval import TOKEN_BYTES, Approval, Purpose, token_digest, token_of
from landed.core.arrival import Planned, Revised
from landed.core.canonical import Json, checked
from landed.core.changes import Kind, Record
from landed.core.contract import Effect
from landed.core.erased import erased_on
from landed.core.errors import ForbiddenError, ProposalError
from landed.core.history import turn_of
from landed.core.key import Ask, ask_name
from landed.core.operation import Operation
from landed.core.operation_record import from_record
from landed.core.plan import (
    STEPS_MAX,
    At,
    Place,
    Plan,
    PlanState,
    Step,
    Wanted,
    plan_from,
    step_of,
)
from landed.core.plan_sentences import plan_question, preview_text
from landed.core.preview import Begins
from landed.core.question import question_from
from landed.core.reference import check_references, known_by, referred
from landed.core.revision import NOTHING_OWED, already_revised
from landed.core.session import Input
from landed.core.telling import summaries
from landed.core.tool import Tool
from landed.core.undo import ENDED, Release, release_from, release_id
from landed.runtime.clock import Clock, Ids
from landed.runtime.driver import Driver
from landed.runtime.foreseeing import Foreseer

Intent = Mapping[str, Json]
PlanFor = Callable[[Intent], Sequence[Wanted]]


# Where a plan is that never began.
BEFORE_A_RUN = frozenset(
    {PlanState.PROPOSED, PlanState.DECLINED, PlanState.EXPIRED, PlanState.ABANDONED}
)


def no_plan_for(intent: Intent) -> Sequence[Wanted]:
    """Stand in where an application has no way to make calls of an intent."""
    raise ProposalError(
        "no plan_for was given to landed.open(), so an intent cannot be made into calls; give one,"
        " or propose the calls themselves"
    )


@dataclass(slots=True, eq=False)
class Planner:
    """Turns wishes into plans that a loop can carry out."""

    driver: Driver
    clock: Clock
    ids: Ids
    send_within_s: float
    answer_within_s: float
    foreseer: Foreseer
    language: str
    plan_for: PlanFor = no_plan_for

    async def proposed(
        self,
        ask: Ask,
        calls: Sequence[Wanted],
        intent: Intent,
        origin: str,
        *,
        independent: bool = False,
        supersedes: str = "",
        asks: bool = False,
    ) -> tuple[Planned, str]:
        """Return the arrival for a plan that is wanted, and its token; raises `ProposalError`.

        With `asks` a person has to agree, also where no step says so of itself.
        """
        plan = self.drafted(ask, calls, intent, origin)
        plan = replace(plan, independent=independent, supersedes=supersedes)
        name = ask_name(ask)
        if name and await self.driver.store.holders(name):
            return Planned(plan=plan, ask_name=name), ""  # It joins what that ask made before.
        ready = await self.ready(plan, asks=asks)
        return (
            Planned(
                plan=ready.plan,
                ask_name=name,
                approval=ready.approval,
                question=ready.question,
            ),
            ready.token,
        )

    def drafted(self, ask: Ask, calls: Sequence[Wanted], intent: Intent, origin: str) -> Plan:
        """Return a plan of these calls that nobody has previewed; raises `ProposalError`."""
        kept = _intent(intent)
        wanted = calls or self.plan_for(kept)
        steps = self._steps(wanted, ask, origin)
        return self._plan(ask, steps, intent=kept, origin=origin)

    async def ready(
        self,
        plan: Plan,
        *,
        there: Set[tuple[str, str]] = frozenset(),
        asks: bool = False,
        keep: bool = False,
    ) -> "Ready":
        """Preview a plan, and have it born in the state that follows from that.

        `there` are the calls (tool, identity) that were made already. One to `keep` begins by its
        plan token and by nothing else.
        """
        if why := await self.foreseer.refused(plan.steps, plan.ask):
            raise ForbiddenError(why)
        seen = await self.foreseer.foresee(
            plan.steps, plan.ask, origin=plan.origin, there=there, asks=asks
        )
        plan = replace(plan, previews=seen.previews)
        if seen.missing:
            why = "\n".join(seen.missing)
            return Ready(plan=replace(plan, state=PlanState.INVALID, why=why))
        if not (seen.risky or keep):
            return Ready(plan=plan)
        answer_by = self.clock.now() + self.answer_within_s
        plan = replace(plan, state=PlanState.PROPOSED, answer_by=answer_by)
        ready = self._kept(plan, asks=bool(seen.risky)) if keep else Ready(plan=plan)
        return self._asking(ready) if seen.risky else ready

    def _kept(self, plan: Plan, *, asks: bool) -> "Ready":
        plan = replace(plan, begins=Begins.YES_THEN_TOKEN if asks else Begins.TOKEN)
        kept, token = self.approval(plan, Purpose.COMMIT, answer_by=plan.answer_by)
        return Ready(plan=plan, kept=kept, plan_token=token)

    def _asking(self, ready: "Ready") -> "Ready":
        plan = ready.plan
        approval, token = self.approval(plan, Purpose.CONFIRM, answer_by=plan.answer_by)
        question = self.question(plan, Purpose.CONFIRM)
        return replace(ready, approval=approval, token=token, question=question)

    def approval(self, plan: Plan, purpose: Purpose, *, answer_by: float) -> tuple[Approval, str]:
        """Return an approval of a plan that is not stored yet, and the token to hand out."""
        token = token_of(self.ids.chance(TOKEN_BYTES))
        typed = typed_words(plan) if purpose is Purpose.CONFIRM else ()
        approval = Approval(
            plan=plan.id,
            purpose=purpose,
            attempt=plan.attempt + (purpose is Purpose.RETRY),
            tenant=plan.tenant,
            session=plan.session,
            principal=plan.principal,
            hash=plan.hash,
            made_at=self.clock.now(),
            answer_by=answer_by,
            send_within_s=self.send_within_s,
            typed=typed,
            token=token_digest(token),
        )
        return approval, token

    def question(self, plan: Plan, purpose: Purpose) -> str:
        """Return what the person is asked: the whole plan and its question, or the question."""
        if purpose is Purpose.UNDO:
            return ""
        asked = plan_question(
            purpose,
            typed=typed_words(plan) if purpose is Purpose.CONFIRM else (),
            language=self.language,
        )
        if purpose is Purpose.RETRY:
            return asked
        return f"{self.shown(plan)}\n{asked}"

    def shown(self, plan: Plan) -> str:
        """Return the whole plan as the person is shown it, from its previews and nothing else."""
        similar = [each.text for preview in plan.previews for each in preview.similar]
        return preview_text(summaries(plan), similar=similar, language=self.language)

    async def revised(
        self,
        turn: str,
        heard: Input,
        *,
        wanted: Sequence[Wanted] | None,
        change: Intent,
        drop: Sequence[str],
        call_id: str,
    ) -> tuple[Revised, str]:
        """Return the arrival for a change of mind, and its token; raises `ProposalError`."""
        done = await self._done(turn, tenant=heard.tenant, session=heard.session, heard=heard.id)
        ask = heard.ask(call_id)
        if not await self.driver.store.holders(ask_name(ask)):
            done.require_revisable()  # Else it was revised by this very ask, which joins that.
        intent = {**done.intent, **_intent(change)}
        calls = self.plan_for(intent) if wanted is None else wanted
        steps = self._steps(calls, ask, heard.origin)
        plan = self._plan(ask, steps, intent=intent, origin=heard.origin)
        ready = await self.ready(replace(plan, revises=turn), there=done.there)
        if ready.plan.state is PlanState.INVALID:
            raise ProposalError(f"nothing was changed: {ready.plan.why}")
        revised = Revised(
            plan=ready.plan,
            approval=ready.approval,
            question=ready.question,
            ask_name=ask_name(ask),
            old_plan=done.plan.id if done.plan else "",
            operations=tuple(done.operations),
            releases=tuple(done.releases),
            drop=frozenset(done.named(drop)),
            seen=done.seen,
            unbegun=done.unbegun,
        )
        return revised, ready.token

    def _steps(self, calls: Sequence[Wanted], ask: Ask, origin: str) -> tuple[Step, ...]:
        if not calls:
            raise ProposalError("a plan without a call does nothing; name what is wanted")
        if len(calls) > STEPS_MAX:
            raise ProposalError(
                f"a plan has at most {STEPS_MAX} steps, not {len(calls)}; split it into several"
            )
        tools = [self.driver.tool(call.tool) for call in calls]
        steps: list[Step] = []
        for number, (tool, call) in enumerate(zip(tools, calls, strict=True), 1):
            contracts = [each.contract for each in tools]
            check_references(number, tool.name, call.arguments, contracts)
            steps.append(self._step(tool, call, ask, origin, steps))
        return tuple(steps)

    def _step(
        self, tool: Tool, call: Wanted, ask: Ask, origin: str, before: Sequence[Step]
    ) -> Step:
        contract, arguments = tool.contract, tool.check(call.arguments)
        needs = sorted({n - 1 for n in referred(arguments, contract.accepts).values()})
        identities = [step.identity for step in before]
        return step_of(
            tool=tool.name,
            contract=contract,
            digest=self.driver.digests[tool.name],
            arguments=arguments,
            ask=ask,
            call_id=call.call_id,
            reads=contract.effect is Effect.NONE,
            known=known_by(arguments, contract.accepts, identities) if needs else None,
            needs=tuple(needs),
            risk=tool.foresight.risk(arguments, origin),
        )

    def _plan(self, ask: Ask, steps: tuple[Step, ...], *, intent: Intent, origin: str) -> Plan:
        now, id = self.clock.now(), self.ids.new("plan")
        return Plan(
            id=id,
            tenant=ask.tenant,
            session=ask.session,
            turn=ask.turn or id,  # Without an input it is a turn of its own.
            input=ask.input,
            principal=ask.principal,
            origin=origin,
            call_id=ask.call_id,
            revises="",
            intent=intent,
            steps=steps,
            places=tuple(Place() for _ in steps),
            made_at=now,
            send_by=now + self.send_within_s if ask.send_by is None else ask.send_by,
            worker=self.driver.worker,
        )

    async def plan_of(self, turn: str, *, tenant: str, session: str) -> str:
        """Return the plan of a turn, "" for none; raises `ProposalError` for an unknown turn."""
        done = await self._done(turn, tenant=tenant, session=session)
        return done.plan.id if done.plan else ""

    async def _done(self, turn: str, *, tenant: str, session: str, heard: str = "") -> "Done":
        records = await self.driver.reader.records(tenant=tenant, session=session)
        if not any(r.id == turn and r.kind is Kind.TURN for r in records):
            raise ProposalError(f"there is no turn {turn!r} in this conversation to revise")
        return _done(turn, records, heard)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """A plan that can be recorded, with what a person may agree to where one has to.

    `kept` is the record of the plan token of one that nothing else begins.
    """

    plan: Plan
    approval: Approval | None = None
    token: str = ""
    question: str = ""
    kept: Approval | None = None
    plan_token: str = ""


def typed_words(plan: Plan) -> tuple[str, ...]:
    """Return the words of which one has to be typed before a plan is run, () for a plain yes."""
    typed = [preview.typed for preview in plan.previews if preview.typed]
    common = [word for word in typed[0] if all(word in each for each in typed)] if typed else []
    return tuple(common) or (typed[0] if typed else ())


@dataclass(slots=True, eq=False)
class Done:
    """What was done for a turn so far."""

    turn: str
    plan: Plan | None = None
    unbegun: tuple[str, ...] = ()
    revised_by: str = ""
    asked_about: bool = False
    heard_in_time: bool = False
    operations: dict[str, Operation] = field(default_factory=dict[str, Operation])
    releases: dict[str, Release] = field(default_factory=dict[str, Release])

    @property
    def intent(self) -> Intent:
        """What the user wanted so far."""
        return self.plan.intent if self.plan else {}

    @property
    def seen(self) -> tuple[tuple[str, str, Place], ...]:
        """The reads that were made: tool, identity, place."""
        if self.plan is None:
            return ()
        pairs = zip(self.plan.steps, self.plan.places, strict=True)
        return tuple(
            (step.tool, step.identity, place)
            for step, place in pairs
            if step.reads and place.at is At.DONE
        )

    @property
    def there(self) -> frozenset[tuple[str, str]]:
        """The calls that were made and not found to be without effect: tool, identity."""
        steps = zip(self.plan.steps, self.plan.places, strict=True) if self.plan else ()
        known = {place.record: step.identity for step, place in steps if place.record}
        return frozenset(
            (o.tool, known.get(o.id, o.identity))
            for o in self.operations.values()
            if o.state not in NOTHING_OWED
        )

    def named(self, drop: Sequence[str]) -> list[str]:
        """Return the operations that `drop` names, by id or by tool."""
        unknown = [n for n in drop if n not in self.operations and n not in self._tools()]
        if unknown:
            raise ProposalError(
                f"there is no {unknown[0]!r} to drop; done so far: {', '.join(self.operations)}"
            )
        return [o.id for o in self.operations.values() if o.id in drop or o.tool in drop]

    def require_revisable(self) -> None:
        """Raise `ProposalError` for a turn in which there is nothing left to change."""
        if self.revised_by:
            raise already_revised(self.turn, self.revised_by)
        if self.plan is None and not self.operations:
            raise ProposalError(f"nothing was done for {self.turn} that could be revised")
        if day := self._erased_on():
            raise ProposalError(
                f"the details of {self.turn} were erased on {day}: propose what is wanted now"
            )
        owed = any(release.state not in ENDED for release in self.releases.values())
        if not owed and not self._goes_on():
            raise ProposalError(
                f"{self.turn} has ended: undo what it did, or propose what is wanted now"
            )

    def _erased_on(self) -> str:
        every = [erased_on(operation.arguments) for operation in self.operations.values()]
        return next(filter(None, [erased_on(self.plan.intent) if self.plan else "", *every]), "")

    def _goes_on(self) -> bool:
        """Whether it is not over, or was not when the person spoke or was asked what they meant.

        Reading the words takes time, and a crash may come between: what ended meanwhile, by itself
        or in recovery, is changed all the same.
        """
        if self.heard_in_time:
            return True
        if self.plan is not None:
            return self.asked_about or self.plan.state is not PlanState.DONE
        return any(not operation.final for operation in self.operations.values())

    def _tools(self) -> set[str]:
        return {operation.tool for operation in self.operations.values()}


def _done(turn: str, records: Sequence[Record], heard: str) -> Done:
    """Collect a turn's plan, its operations, and those that it keeps or owes a release of."""
    every = {r.id: r for r in records}
    operations = {r.id: from_record(r) for r in records if r.kind is Kind.OPERATION}
    releases = {r.id: release_from(r) for r in records if r.kind is Kind.RELEASE}
    plans = [plan_from(r) for r in records if r.kind is Kind.PLAN]
    mine = [plan for plan in plans if plan.turn == turn]
    begun = [plan for plan in mine if not (plan.begins and plan.state in BEFORE_A_RUN)]
    done = Done(turn=turn, plan=next(reversed(begun or mine), None))
    waits = (plan for plan in mine if plan.begins and plan.state is PlanState.PROPOSED)
    done.unbegun = tuple(plan.id for plan in waits)
    done.revised_by = next((plan.turn for plan in plans if plan.revises == turn), "")
    questions = [question_from(r) for r in records if r.kind is Kind.QUESTION]
    done.asked_about = done.plan is not None and done.plan.id in {q.subject for q in questions}
    named = [o.id for o in operations.values() if turn_of(o) == turn and not o.undoes]
    if done.plan is not None:
        named += [step.keeps for step in done.plan.steps if step.keeps]
    named += [r.operation for r in releases.values() if r.turn == turn and r.state not in ENDED]
    done.operations = {id: operations[id] for id in dict.fromkeys(named)}
    if heard in every:
        own = [done.plan.id] if done.plan else list(done.operations)
        done.heard_in_time = any(every[id].last > every[heard].made for id in own)
    owed = [release_id(id) for id in done.operations]
    done.releases = {id: releases[id] for id in owed if id in releases}
    return done


def _intent(intent: Intent) -> dict[str, Json]:
    """Return an intent as plain values of our own."""
    kept = checked(dict(intent))
    assert isinstance(kept, dict)
    return kept
