"""Taking a whole plan back: each step's release, last to first, and how far that came.

Strict (only what is safe and can be taken back, all of what ran), where the release of one
operation after a change of mind is by its own contract. What cannot be taken back after all stays
in front of a person, with all that was done before it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from landed.core.arrival import PlanTold
from landed.core.draft import Draft
from landed.core.operation import Operation
from landed.core.plan import At, Plan, PlanEvent, placed
from landed.core.question import QuestionEvent, QuestionState
from landed.core.releasing import question
from landed.core.undo import (
    ENDED,
    RELEASE_MOVES,
    Release,
    ReleaseEvent,
    ReleaseState,
    release_id,
    undoable,
)


def undo_plan(draft: Draft, arrival: PlanTold, plan: Plan) -> bool:
    """Owe the release of each step that ran, last to first; return whether that may be."""
    if not undoable(plan, draft.operations, draft.scope.contracts, draft.now):
        return False
    draft.move_plan(
        plan, PlanEvent.UNDO_ASKED, by=arrival.by, worker=draft.scope.worker or plan.worker
    )
    later = ""
    for operation in _last_first(plan, draft.operations):
        owed = draft.releases.get(release_id(operation.id))
        if owed is not None and owed.state is ReleaseState.DONE:
            continue
        later = _owe(draft, owed, operation, plan=plan, after=later, by=arrival.by).id
    return True


def _last_first(plan: Plan, operations: Mapping[str, Operation]) -> Sequence[Operation]:
    pairs = zip(plan.steps, plan.places, strict=True)
    ran = [place.record for step, place in pairs if place.at is At.DONE and not step.reads]
    return [operations[id] for id in reversed(ran)]


def _owe(
    draft: Draft, owed: Release | None, operation: Operation, *, plan: Plan, after: str, by: str
) -> Release:
    if owed is not None:
        event = ReleaseEvent.OWED if owed.state in ENDED else ReleaseEvent.HANDED_ON
        if event not in RELEASE_MOVES[owed.state]:
            return owed
        _lapse(draft, owed.question)
        changed = replace(owed, plan="", left_out=False, agreed=False, question="")
        return draft.move_release(
            changed,
            event,
            undoes=plan.id,
            after=after,
            turn=plan.turn,
            worker=draft.scope.worker or owed.worker,
        )
    return draft.make_release(
        Release(
            id=release_id(operation.id),
            operation=operation.id,
            tenant=operation.tenant,
            session=operation.session,
            principal=by or operation.ask.principal,
            origin="user",
            made_at=draft.now,
            worker=draft.scope.worker or plan.worker,
            turn=plan.turn,
            undoes=plan.id,
            after=after,
        )
    )


def _lapse(draft: Draft, question: str) -> None:
    """What is taken back as a part of the whole is asked about no more."""
    asked = draft.questions.get(question)
    if asked is not None and asked.state is QuestionState.OPEN:
        draft.move_question(asked, QuestionEvent.LAPSED)


def take_back(draft: Draft, id: str) -> None:
    """Say of a plan that is being taken back what is undone, when all is, or how far it came."""
    for index, place in enumerate(draft.plans[id].places):
        owed = draft.releases.get(release_id(place.record))
        if place.at is At.DONE and owed is not None and owed.state is ReleaseState.DONE:
            plan, undone = draft.plans[id], replace(place, at=At.UNDONE)
            draft.move_plan(plan, PlanEvent.STEPPED, places=placed(plan, index, undone))
    plan = draft.plans[id]
    left = [release_id(operation.id) for operation in _last_first(plan, draft.operations)]
    if not left:
        draft.move_plan(plan, PlanEvent.UNDONE, ended_at=draft.now)
        return
    owed_still = [draft.releases[id] for id in left if id in draft.releases]
    stuck = next((release for release in owed_still if release.state in _STUCK), None)
    if stuck is not None:
        draft.move_plan(plan, PlanEvent.UNDO_BROKE_OFF, why=stuck.why, ended_at=draft.now)
        for release in owed_still:
            if release.state is ReleaseState.OWED:
                question(draft, release, why="what was done after it could not be taken back")


# What could not be taken back, or a person decided to keep.
_STUCK = frozenset({ReleaseState.QUESTIONED, ReleaseState.WAIVED, ReleaseState.KEPT})
