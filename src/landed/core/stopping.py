"""Stopping: a plan halfway, or the wait for one call. Stopping the wait does not stop the work.

A stop talks to nobody: it is a write on the plan, from whatever process, and first sends go in only
with the plan as it is. Done stays done, what was not sent is withdrawn, what is out is settled (a
clean stop obeys its contract's `on_interrupt`, a hard one waits for nobody and leaves it in doubt),
and every release that the plan still owes becomes a question.
"""

from dataclasses import replace

from landed.core.advancing import NOT_LANDED, has_landed, landed_at
from landed.core.approval import ApprovalEvent, ApprovalState
from landed.core.arrival import LetGo, PlanTold
from landed.core.draft import Draft
from landed.core.operating import STOPPED, hurry
from landed.core.operation import MOVES, Happened, Operation, State
from landed.core.plan import PLAN_MOVES, At, Place, Plan, PlanEvent, PlanState, placed
from landed.core.question import QuestionEvent, QuestionState
from landed.core.scope import StopWaiting, Watching
from landed.core.session import Observation, observing
from landed.core.undo import ReleaseEvent

_OUT = frozenset({State.SENT, State.RESENT})
_OWED = frozenset({"owed_if_landed", "owed", "due"})


def stop(draft: Draft, arrival: PlanTold, plan: Plan) -> bool:
    """Mark a plan as stopped by somebody; return whether there was anything left to stop."""
    harder = plan.state is PlanState.STOPPING and arrival.hard
    if plan.state is PlanState.PROPOSED:
        _decline(draft, arrival, plan)
        return True
    if PlanEvent.STOP_ASKED in PLAN_MOVES[plan.state]:
        draft.move_plan(plan, PlanEvent.STOP_ASKED, by=arrival.by, why=arrival.why)
        _ask_about_releases(draft, plan)
        drop_reads(draft, plan.id)
    elif not harder:
        return False
    reason = f"{arrival.by or 'a person'} stopped it"
    for place in plan.places:
        if place.at is At.OUT and place.record in draft.operations:
            let_go(draft, LetGo(operation=place.record, reason=reason, at=arrival.at))
            if arrival.hard:
                _drop(draft, draft.operations[place.record])
    return True


def _decline(draft: Draft, arrival: PlanTold, plan: Plan) -> None:
    """Take a stop that comes before the yes for a no: that yes can't be given any more."""
    for approval in list(draft.approvals.values()):
        if approval.plan != plan.id or approval.state is not ApprovalState.OPEN:
            continue
        draft.move_approval(approval, ApprovalEvent.DECLINED, by=arrival.by, at=draft.now)
        asked = draft.questions.get(approval.question)
        if asked is not None and asked.state is QuestionState.OPEN:
            draft.move_question(
                asked, QuestionEvent.DECLINED, answered_by=arrival.by, answered_at=draft.now
            )
    why = arrival.why or "it was stopped before it began"
    draft.move_plan(plan, PlanEvent.DECLINED, by=arrival.by, why=why)


def let_go(draft: Draft, arrival: LetGo) -> None:
    """Take an operation for no longer wanted: what was not sent is withdrawn, the rest resolved."""
    operation = draft.operations[arrival.operation]
    if operation.state is State.RECORDED:
        draft.move(operation, Happened.WITHDRAWN, arrival.reason)
    elif operation.wanted and Happened.UNWANTED in MOVES[operation.state]:
        draft.move(
            operation,
            Happened.UNWANTED,
            arrival.reason,
            wanted=False,
            unwanted_at=arrival.at,
        )


def _drop(draft: Draft, operation: Operation) -> None:
    """Wait for a call no longer, whatever its contract says; it may still land.

    A clean stop leaves that to `operating`: whoever waits for the call sees that nobody wants it.
    """
    if operation.state in _OUT:
        draft.move(operation, Happened.ANSWER_LOST, STOPPED)
        hurry(draft, operation)
        draft.commands.append(StopWaiting(operation=operation))


def drop_reads(draft: Draft, plan_id: str) -> None:
    """A read that is not waited for any more is dropped: it changes nothing, and is said so."""
    plan = draft.plans.get(plan_id)
    for running in draft.scope.running:
        if plan is None or not isinstance(running, Watching) or running.plan != plan_id:
            continue
        step = plan.steps[running.index]
        dropped = Observation(
            id=running.observation,
            ask=plan.ask,
            tool=step.tool,
            contract=step.contract,
            arguments=step.arguments,
            state="dropped",
            result=None,
            why="stopped waiting",
            at=draft.now,
        )
        draft.moves += observing(dropped).moves


def _ask_about_releases(draft: Draft, plan: Plan) -> None:
    """Nothing more is undone for a plan that is stopped, unless a person says so."""
    for owed in list(draft.releases.values()):
        if owed.plan != plan.id or owed.state not in _OWED:
            continue
        where: dict[str, object] = {"plan": "", "step": 0, "left_out": True}
        draft.move_release(owed, ReleaseEvent.HANDED_ON, why="it was stopped", **where)


def wind_up(draft: Draft, id: str) -> None:
    """Settle what a stopped plan has out, then say that it is stopped."""
    for index, place in enumerate(draft.plans[id].places):
        operation = draft.operations.get(place.record)
        if place.at is At.OUT and operation is not None:
            _settle(draft, draft.plans[id], index, operation)
    plan = draft.plans[id]
    if all(place.at is not At.OUT for place in plan.places):
        draft.move_plan(plan, PlanEvent.STOPPED, ended_at=draft.now)


def _settle(draft: Draft, plan: Plan, index: int, operation: Operation) -> None:
    place, contract = plan.places[index], draft.contract_of(operation)
    if has_landed(operation, contract):
        after = landed_at(place, operation, contract)
    elif operation.state is State.WITHDRAWN:
        after = Place(record=place.record, attempt=place.attempt)
    elif operation.state in NOT_LANDED:
        after = replace(place, at=At.BROKEN)
    else:
        return
    draft.move_plan(plan, PlanEvent.STEPPED, places=placed(plan, index, after))
