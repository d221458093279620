"""The audit of a plan: what was shown, every event in order, a row for each step and attempt.

The rows are projections of the journal, not tables of their own: it holds each event once already,
and a copy could disagree with it. Nothing here is decided anew: who said what and when is read from
the record as it was right after each event.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import assert_never

from landed.core.approval import Approval, ApprovalEvent, ApprovalState, Purpose, approval_from
from landed.core.audit_rows import (
    Audit,
    Authorised,
    CheckRow,
    EffectRow,
    EventRow,
    PlanRow,
    StepRow,
)
from landed.core.canonical import Json, canonical
from landed.core.changes import Kind, Record
from landed.core.contract import Contract, Freshness
from landed.core.erased import ERASED
from landed.core.erasing import erasure_in
from landed.core.journal import Entry, as_of
from landed.core.operation import Evidence, Operation, Source, State
from landed.core.operation_record import from_record
from landed.core.plan import CLOCK, At, Place, Plan, PlanEvent, Step, plan_from
from landed.core.preview import preview_plain
from landed.core.question import question_from
from landed.core.session import Observation, input_of, observation_of
from landed.core.telling import as_of_now, lapses_as, summaries, too_late
from landed.core.undo import ReleaseState, made_by, release_from, release_id

RUNTIME = "runtime"
AGENT = "agent"
GONE = "what was written then was erased"


Entries = Mapping[str, Sequence[Entry]]
Contracts = Mapping[str, Contract]


def audit(
    record: Record,
    records: Sequence[Record],
    entries: Entries,
    contracts: Contracts,
    *,
    now: float,
) -> Audit:
    """Return the audit of the plan in `record`, as of `now` (UTC, seconds since the epoch).

    `records` are those of its session, `entries` the journal of the plan and of its approvals.
    """
    told = _Told(record, records, entries, contracts)
    events = [*told.of_plan(), *told.of_approvals()]
    events.sort(key=lambda row: row.seq)
    if told.plan.expired(now):
        events.append(_expiry(told.plan))
    return Audit(
        plan=told.row(now),
        events=tuple(events),
        steps=tuple(told.steps()),
        authorised=tuple(told.authorised()),
    )


def approvals_of(plan: str, records: Sequence[Record]) -> list[Record]:
    """Return the approvals of a plan among the records of its session."""
    every = (record for record in records if record.kind is Kind.APPROVAL)
    return [record for record in every if record.frozen["plan"] == plan]


class _Told:
    """What is known of one plan: its record, its neighbours, its journal."""

    def __init__(
        self, record: Record, records: Sequence[Record], entries: Entries, contracts: Contracts
    ) -> None:
        self.record = record
        self.plan = plan_from(record)
        self.by_id = {each.id: each for each in records}
        self.approvals = approvals_of(self.plan.id, records)
        self.entries = entries
        self.contracts = contracts

    def row(self, now: float) -> PlanRow:
        """Return the plan itself."""
        plan = self.plan
        return PlanRow(
            plan=plan.id,
            tenant=plan.tenant,
            session=plan.session,
            principal=plan.principal,
            origin=plan.origin,
            turn=plan.turn,
            input=plan.input,
            asked=self._words(plan.input),
            state=as_of_now(plan, now).state,
            attempt=plan.attempt,
            made_at=plan.made_at,
            answer_by=plan.answer_by,
            ended_at=plan.ended_at,
            hash=plan.hash,
            basis=plan.basis,
            supersedes=plan.supersedes,
            shown=canonical(_shown(plan)).decode(),
        )

    def of_plan(self) -> Iterator[EventRow]:
        """Yield what happened to the plan; its steps have rows of their own."""
        for entry in self.entries[self.plan.id]:
            if entry.event == ERASED:
                yield _erasure(entry, self.plan)
                continue
            event = _PLAN_EVENTS.get(PlanEvent(entry.event))
            if event is None:
                continue
            then = plan_from(as_of(self.record, entry)) if entry.body is not None else None
            yield EventRow(
                seq=entry.seq,
                at=entry.at,
                event=event,
                actor=_actor(PlanEvent(entry.event), then) if then else "",
                reason=_reason(PlanEvent(entry.event), then) if then else GONE,
                attempt=then.attempt if then else 0,
                record=self.plan.id,
            )

    def of_approvals(self) -> Iterator[EventRow]:
        """Yield what was offered, and who said what to it."""
        for record in self.approvals:
            purpose = Purpose(str(record.frozen["purpose"]))
            for entry in self.entries[record.id]:
                event = _APPROVAL_EVENTS[ApprovalEvent(entry.event)]
                if not event or event in _SAID_BY_PLAN.get(purpose, ()):
                    continue
                yield self._of_approval(record, entry, event)

    def _of_approval(self, record: Record, entry: Entry, event: str) -> EventRow:
        then = approval_from(as_of(record, entry)) if entry.body is not None else None
        by_hand = then is not None and event in _BY_HAND
        reason = str(then.problem) if then is not None and event == "rejected" else ""
        return EventRow(
            seq=entry.seq,
            at=entry.at,
            event=event,
            actor=(then.by or RUNTIME if by_hand else RUNTIME) if then else "",
            reason=reason if then else GONE,
            attempt=approval_from(record).attempt,
            purpose=str(record.frozen["purpose"]),
            record=record.id,
        )

    def authorised(self) -> Iterator[Authorised]:
        """Yield each yes that was taken, with the question and the words that answered it."""
        for record in self.approvals:
            approval = approval_from(record)
            if approval.state is not ApprovalState.TAKEN or approval.purpose is Purpose.COMMIT:
                continue  # A plan token is no yes.
            taken = self._as_taken(record)
            asked = self.by_id.get(approval.question)
            question = question_from(asked) if asked is not None else None
            yield Authorised(
                purpose=approval.purpose,
                attempt=approval.attempt,
                by=taken.by,
                at=taken.at,
                hash=approval.hash,
                approval=approval.id,
                question=approval.question,
                asked=question.text if question is not None else "",
                said=self._words(question.input) if question is not None else "",
            )

    def _as_taken(self, record: Record) -> Approval:
        """Return it as it was when it was taken: whoever presents it again is noted in it, too."""
        for entry in self.entries[record.id]:
            if entry.event == ApprovalEvent.TAKEN and entry.body is not None:
                return approval_from(as_of(record, entry))
        return replace(approval_from(record), by="", at=0.0)

    def _words(self, input: str) -> str:
        record = self.by_id.get(input)
        return input_of(record).text if record is not None else ""

    # Steps.

    def steps(self) -> Iterator[StepRow]:
        """Yield a row for each step and attempt: as it was when a later attempt took over."""
        for then in self._attempts():
            for index in range(len(then.steps)):
                yield self._step(then, index)

    def _attempts(self) -> list[Plan]:
        last: dict[int, Plan] = {}
        for entry in self.entries[self.plan.id]:
            if entry.body is not None:
                then = plan_from(as_of(self.record, entry))
                last[then.attempt] = then
        last[self.plan.attempt] = self.plan
        return [last[attempt] for attempt in sorted(last)]

    def _step(self, plan: Plan, index: int) -> StepRow:
        step, place = plan.steps[index], plan.places[index]
        there = self._place(place)
        operation = there if isinstance(there, Operation) else None
        status = _status(plan, step, place, operation)
        row = StepRow(
            attempt=plan.attempt,
            step=index + 1,
            tool=step.tool,
            summary=summaries(plan)[index],
            arguments=operation.arguments if operation is not None else step.arguments,
            status=status,
            reason=plan.why if status == "failed" and not place.record else "",
            checks=tuple(self._checks(plan, index)),
        )
        if isinstance(there, Observation):
            return _with_observation(row, there)
        return self._with_operation(row, operation) if operation is not None else row

    def _place(self, place: Place) -> Operation | Observation | None:
        record = self.by_id.get(place.record) if place.at is not At.WAITING else None
        if record is None:
            return None
        return from_record(record) if record.kind is Kind.OPERATION else observation_of(record)

    def _with_operation(self, row: StepRow, operation: Operation) -> StepRow:
        own = row.status in _OWN
        contract = self.contracts[operation.contract]
        made = EffectRow(
            type=contract.makes_type or operation.tool, id=made_by(operation, contract)
        )
        reason = operation.evidence[-1].says if operation.evidence else ""
        return replace(
            row,
            operation=operation.id,
            key=operation.key,
            sends=0 if row.status in _NOT_OWN else operation.tries,
            retries=operation.retries,
            undone_by=self._undone_by(operation.id),
            reason=reason if row.status in ("failed", "unknown") else "",
            effects=(made,) if own else (),
            evidence=operation.evidence,
        )

    def _undone_by(self, operation: str) -> str:
        record = self.by_id.get(release_id(operation))
        if record is None:
            return ""
        release = release_from(record)
        return release.undo if release.state is ReleaseState.DONE else ""

    def _checks(self, plan: Plan, index: int) -> Iterator[CheckRow]:
        """Yield what the runtime asks before it starts a step, and what came of it."""
        step, contract = plan.steps[index], self.contracts[plan.steps[index].contract]
        moved = [fact for fact in plan.changed if fact.step == index + 1]
        came = _came(plan, step, plan.places[index])
        if step.permission:
            refused = came == "not begun" and step.permission in plan.why
            asked = "passed" if came == "passed" or moved else "not asked"
            yield CheckRow(
                check="permission",
                about=step.permission,
                came="refused" if refused else asked,
            )
        if plan.answer_by and contract.preview and contract.freshness is not Freshness.NONE:
            facts = "; ".join(f"{fact.field}: {fact.was} ▸ {fact.now}" for fact in moved)
            asked = "passed" if came == "passed" else "not asked"
            yield CheckRow(check="basis", about=facts, came="changed" if moved else asked)


def _shown(plan: Plan) -> list[Json]:
    """Return what a person was shown, as the plan's hash covers it."""
    previews = plan.previews or (None,) * len(plan.steps)
    return [
        {
            "tool": step.tool,
            "arguments": step.arguments,
            "contract": step.contract,
            "preview": preview_plain(preview) if preview else None,
        }
        for step, preview in zip(plan.steps, previews, strict=True)
    ]


def _actor(event: PlanEvent, then: Plan) -> str:
    """Return who brought it about; what a plan comes to by itself is the runtime's doing."""
    match event:
        case PlanEvent.PLANNED | PlanEvent.PROPOSED | PlanEvent.FOUND_INVALID:
            return then.principal or then.origin
        case PlanEvent.ABANDONED:
            return then.by or AGENT
        case _ if event in _BY_SOMEBODY:
            return then.by or RUNTIME
        case _:
            return RUNTIME


def _reason(event: PlanEvent, then: Plan) -> str:
    if event is PlanEvent.PLANNED:
        return "it needs no yes"
    return " / ".join(then.why.splitlines()) if event in _WITH_REASON else ""


def _erasure(entry: Entry, plan: Plan) -> EventRow:
    gone = erasure_in(entry)
    return EventRow(
        seq=entry.seq,
        at=entry.at,
        event=ERASED,
        actor=gone.by,
        reason=gone.why,
        attempt=plan.attempt,
        record=plan.id,
    )


def _expiry(plan: Plan) -> EventRow:
    return EventRow(
        seq=0,
        at=plan.answer_by,
        event=_PLAN_EVENTS[lapses_as(plan)],
        actor=CLOCK,
        reason=too_late(plan),
        attempt=plan.attempt,
        record=plan.id,
    )


def _status(plan: Plan, step: Step, place: Place, operation: Operation | None) -> str:
    match place.at:
        case At.WAITING:
            return "not done"
        case At.BROKEN:
            return "failed"
        case At.DONE | At.UNDONE if step.keeps and step.keeps == place.record:
            return "kept"
        case At.DONE | At.UNDONE if place.attempt < plan.attempt:
            return "replayed"
        case At.DONE | At.UNDONE:
            return "assumed" if operation and operation.state is State.ASSUMED else "done"
        case At.OUT:
            return _OUT.get(operation.state, "under way") if operation else "under way"
        case _:
            assert_never(place.at)


def _came(plan: Plan, step: Step, place: Place) -> str:
    """Return whether a step was begun in this attempt: only then, or just before, it was checked.

    `not begun` is one at which the plan broke off before anything was recorded of it.
    """
    kept = bool(step.keeps) and step.keeps == place.record
    mine = place.attempt == plan.attempt and not kept
    if place.at in (At.DONE, At.UNDONE, At.OUT) and mine:
        return "passed"
    if place.at is At.BROKEN and mine:
        return "passed" if place.record else "not begun"
    return "not asked"


def _with_observation(row: StepRow, seen: Observation) -> StepRow:
    says = seen.why or seen.state
    evidence = Evidence(source=Source.REPLY, at=seen.at, says=says)
    reason = seen.why if row.status == "failed" else ""
    return replace(row, observation=seen.id, reason=reason, evidence=(evidence,))


_OWN = frozenset({"done", "assumed"})
_NOT_OWN = frozenset({"replayed", "kept"})

# What an operation that its plan has not gone on from comes to.
_OUT: Mapping[State, str] = {
    State.UNKNOWN: "unknown",
    State.RESENT: "unknown",
    State.UNDECIDED: "unknown",
    State.CONFIRMED: "done",
    State.ASSUMED: "assumed",
    State.FAILED: "failed",
    State.WITHDRAWN: "not done",
}

# What each event is called here. What is not here is told by the steps or by an approval.
_PLAN_EVENTS: Mapping[PlanEvent, str] = {
    PlanEvent.PLANNED: "proposed",
    PlanEvent.PROPOSED: "proposed",
    PlanEvent.FOUND_INVALID: "invalid",
    PlanEvent.COMMITTED: "committed",
    PlanEvent.EXPIRED: "expired",
    PlanEvent.ABANDONED: "abandoned",
    PlanEvent.DOUBTED: "in doubt",
    PlanEvent.FINISHED: "finished",
    PlanEvent.BROKE_OFF: "broke off",
    PlanEvent.SUPERSEDED: "superseded",
    PlanEvent.RETRIED: "retried",
    PlanEvent.STOP_ASKED: "stop asked",
    PlanEvent.STOPPED: "stopped",
    PlanEvent.UNDO_ASKED: "undo asked",
    PlanEvent.UNDONE: "undone",
    PlanEvent.UNDO_BROKE_OFF: "undo broke off",
}
_APPROVAL_EVENTS: Mapping[ApprovalEvent, str] = {
    ApprovalEvent.OFFERED: "offered",
    ApprovalEvent.RENEWED: "offered anew",
    ApprovalEvent.TAKEN: "approved",
    ApprovalEvent.REFUSED: "rejected",
    ApprovalEvent.DECLINED: "declined",
    ApprovalEvent.LAPSED: "lapsed",
}
# What the plan itself says: of the yes to run it, that it was proposed, and that it is over; of its
# token all but that one was refused.
_SAID_BY_PLAN: Mapping[Purpose, frozenset[str]] = {
    Purpose.CONFIRM: frozenset({"offered", "lapsed"}),
    Purpose.COMMIT: frozenset(_APPROVAL_EVENTS.values()) - {"rejected"},
}
_BY_HAND = frozenset({"approved", "rejected", "declined", "lapsed"})
_BY_SOMEBODY = frozenset(
    {
        PlanEvent.COMMITTED,
        PlanEvent.RETRIED,
        PlanEvent.STOP_ASKED,
        PlanEvent.UNDO_ASKED,
        PlanEvent.EXPIRED,
    }
)
_WITH_REASON = frozenset(
    {
        PlanEvent.FOUND_INVALID,
        PlanEvent.EXPIRED,
        PlanEvent.ABANDONED,
        PlanEvent.DOUBTED,
        PlanEvent.BROKE_OFF,
        PlanEvent.SUPERSEDED,
        PlanEvent.STOP_ASKED,
        PlanEvent.UNDO_BROKE_OFF,
    }
)
