"""A change of mind, and a person's answer, folded into the records in one unit."""

from collections.abc import Sequence
from dataclasses import replace

from landed.core.approving import begin, close_approvals, heard, lapse
from landed.core.arrival import Answered, AskPerson, LetGo, Revised
from landed.core.changes import Hold
from landed.core.draft import Draft
from landed.core.operation import MOVES, Happened, Operation, Source, State
from landed.core.plan import PLAN_MOVES, Plan, PlanEvent, Step
from landed.core.question import About, Question, QuestionEvent, QuestionState
from landed.core.revision import NOTHING_OWED, Revision, revised_name
from landed.core.session import opening
from landed.core.stopping import drop_reads, let_go
from landed.core.undo import (
    ENDED,
    RELEASE_MOVES,
    Release,
    ReleaseEvent,
    ReleaseState,
    made_result,
    release_id,
)

REVISED = "the user changed their mind"


def revise(draft: Draft, arrival: Revised) -> None:
    """Supersede the old plan and record the new one with all that it owes, in one unit."""
    old_plan = draft.plans.get(arrival.old_plan)
    if (
        old_plan is not None
        and old_plan.id not in arrival.unbegun
        and PlanEvent.SUPERSEDED in PLAN_MOVES[old_plan.state]
    ):
        draft.move_plan(old_plan, PlanEvent.SUPERSEDED, why=arrival.plan.turn)
        close_approvals(draft, old_plan.id)
    kept = [draft.plans[unbegun] for unbegun in arrival.unbegun]
    for plan in [each for each in kept if PlanEvent.ABANDONED in PLAN_MOVES[each.state]]:
        _drop(draft, plan, by=arrival.plan.principal)
    old = _done_so_far(draft, arrival)
    revision = draft.rules.pair(
        old,
        arrival.plan.steps,
        contract_of=draft.contract,
        drop=arrival.drop,
        seen={(tool, identity): place for tool, identity, place in arrival.seen},
        replaced_by=_replaced_by(draft, old),
    )
    plan = replace(arrival.plan, steps=revision.steps, places=revision.places)
    made = begin(
        draft,
        plan,
        ask_name=arrival.ask_name,
        approval=arrival.approval,
        question=arrival.question,
    )
    name = revised_name(tenant=made.tenant, turn=made.revises)
    draft.takes.append(Hold(name=name, record=made.id))
    _owe(draft, revision, plan=made.id, turn=made.turn, origin=made.origin)
    _keep(draft, revision)
    drop_reads(draft, arrival.old_plan)
    for operation in revision.given_up:
        let_go(draft, LetGo(operation=operation.id, reason=REVISED, at=draft.now))


def _drop(draft: Draft, plan: Plan, *, by: str) -> None:
    """Drop what code kept and did not begin: nothing of it is wanted any more as it was shown."""
    draft.move_plan(plan, PlanEvent.ABANDONED, by=by, why=REVISED)
    close_approvals(draft, plan.id)


def _steps(plan: Plan | None) -> list[tuple[str, Step]]:
    """Return the steps of a plan that have an operation, with its id."""
    if plan is None:
        return []
    pairs = zip(plan.steps, plan.places, strict=True)
    return [(place.record, step) for step, place in pairs if place.record and not step.reads]


def _replaced_by(draft: Draft, old: Sequence[Operation]) -> dict[str, str]:
    """Return what stands in, or is to stand in, for what an earlier change of mind gave up."""
    stands_in: dict[str, str] = {}
    for operation in old:
        owed = draft.releases.get(release_id(operation.id))
        plan = draft.plans.get(owed.plan) if owed is not None else None
        if owed is not None and plan is not None and owed.state not in ENDED:
            stands_in[operation.id] = plan.places[owed.step].record
    return stands_in


def _done_so_far(draft: Draft, arrival: Revised) -> list[Operation]:
    """Return what was done for the revised turn and is not undone, as it is now.

    What was put right by another call is history: that one stands for it. And a call that puts
    right is known by what was wanted, not by the words that it was given for that.
    """
    named = dict.fromkeys(arrival.operations)
    steps = dict(_steps(draft.plans.get(arrival.old_plan)))
    if arrival.old_plan:
        mine = (o.id for o in draft.operations.values() if o.plan == arrival.old_plan)
        named.update(dict.fromkeys(mine))
    put_right = {
        step.corrects
        for id, step in steps.items()
        if draft.operations[id].state not in NOTHING_OWED
    }
    operations = [draft.operations[id] for id in named if id not in put_right]
    return [
        replace(o, identity=steps[o.id].identity) if o.id in steps else o
        for o in operations
        if not o.undoes and not _is_undone(draft, o)
    ]


def _is_undone(draft: Draft, operation: Operation) -> bool:
    """Whether an operation was taken back, or is being taken back at this moment."""
    owed = draft.releases.get(release_id(operation.id))
    return owed is not None and owed.state in (ReleaseState.DONE, ReleaseState.UNDOING)


def _owe(draft: Draft, revision: Revision, *, plan: str, turn: str, origin: str) -> None:
    """Record each release before the request that makes it due."""
    for released in revision.released:
        _owe_one(
            draft,
            released.operation,
            turn=turn,
            origin=origin,
            left_out=False,
            plan="" if released.step is None else plan,
            step=released.step or 0,
        )
    for operation in revision.left_out:
        if draft.contract_of(operation).undo:
            _owe_one(draft, operation, turn=turn, origin=origin, left_out=True)


def _owe_one(
    draft: Draft,
    operation: Operation,
    *,
    turn: str,
    origin: str,
    left_out: bool,
    plan: str = "",
    step: int = 0,
) -> None:
    owed = draft.releases.get(release_id(operation.id))
    where: dict[str, object] = {"turn": turn, "plan": plan, "step": step, "left_out": left_out}
    if owed is None:
        draft.make_release(
            Release(
                id=release_id(operation.id),
                operation=operation.id,
                tenant=operation.tenant,
                session=operation.session,
                principal=operation.ask.principal,
                origin=origin,
                made_at=draft.now,
                worker=draft.scope.worker,
                **where,  # type: ignore[arg-type]
            )
        )
        return
    if left_out and owed.state not in ENDED:
        return  # It is owed or asked about already, and stays so.
    # What is undone, or is being undone, and what had no effect, is given up by nobody any more.
    event = ReleaseEvent.OWED if owed.state in ENDED else ReleaseEvent.HANDED_ON
    lapse(draft, owed.question)
    draft.move_release(
        owed, event, question="", price_cents=None, agreed=False, **_mine(draft), **where
    )


def _mine(draft: Draft) -> dict[str, object]:
    """What waited for a person is this worker's again."""
    return {"worker": draft.scope.worker}


def _keep(draft: Draft, revision: Revision) -> None:
    """What is wanted after all is not released, and it is wanted again."""
    for operation in revision.kept:
        owed = draft.releases.get(release_id(operation.id))
        if owed is not None and ReleaseEvent.KEPT in RELEASE_MOVES[owed.state]:
            lapse(draft, owed.question)
            draft.move_release(owed, ReleaseEvent.KEPT, why="wanted after all")


def ask_person(draft: Draft, arrival: AskPerson) -> None:
    """Put a question that the application has."""
    draft.ask(
        arrival.text,
        about=arrival.about,
        subject=arrival.subject,
        session=(arrival.tenant, arrival.session),
        turn=arrival.turn,
        principal=arrival.principal,
        claim=arrival.claim,
    )


def answered(draft: Draft, arrival: Answered) -> None:
    """Take a person's answer: it counts once, for the question it was given to."""
    turn = ""
    if arrival.heard is not None:
        unit = opening(arrival.heard)
        draft.moves += unit.moves
        draft.takes += unit.takes
        turn = arrival.heard.turn
    asked = draft.questions[arrival.question]
    if asked.state is not QuestionState.OPEN:
        return
    after = draft.move_question(
        asked,
        _ANSWERS[arrival.yes],
        answered_by=arrival.principal,
        answered_at=arrival.at,
        input=arrival.heard.id if arrival.heard is not None else "",
    )
    if after.about is About.CLAIM:
        _rule(draft, after, yes=arrival.yes is True, turn=turn)
    elif after.about is About.PLAN:
        draft.answer(arrival, heard(draft, after, yes=arrival.yes, by=arrival.principal))
    elif after.about is not About.UNSURE:
        _obey(draft, after, yes=arrival.yes, turn=turn)


_ANSWERS = {
    True: QuestionEvent.APPROVED,
    False: QuestionEvent.DECLINED,
    None: QuestionEvent.LAPSED,
}


def _obey(draft: Draft, question: Question, *, yes: bool | None, turn: str) -> None:
    owed = draft.releases[question.subject]
    after: dict[str, object] = {"turn": turn or owed.turn, **_mine(draft)}
    match yes:
        case True:
            contract = draft.contract_of(draft.operations[owed.operation])
            agreed = question.about is About.PRICE or not contract.undo_price
            draft.move_release(
                owed, ReleaseEvent.APPROVED, agreed=agreed, left_out=False, plan="", **after
            )
        case False:
            why = f"declined by {question.answered_by or 'the user'}"
            draft.move_release(owed, ReleaseEvent.DECLINED, why=why, **after)
        case _:
            draft.move_release(owed, ReleaseEvent.LAPSED, price_cents=None, **after)


def _rule(draft: Draft, question: Question, *, yes: bool, turn: str) -> None:
    """A person said that it happened: that settles it, with their name, and what is owed then."""
    operation = draft.operations[question.subject]
    if not yes or operation.final:
        return
    if operation.state is State.UNKNOWN:
        operation = draft.move(operation, Happened.GAVE_UP, "a person is asked")
    if Happened.RULED_LANDED in MOVES[operation.state]:
        draft.move(
            operation,
            Happened.RULED_LANDED,
            f"{question.answered_by or 'the user'} said so: {question.claim}",
            source=Source.PERSON,
            by=question.answered_by,
            result=made_result(draft.contract_of(operation), question.claim),
        )
        owed = draft.releases.get(release_id(operation.id))
        if turn and owed is not None and ReleaseEvent.HANDED_ON in RELEASE_MOVES[owed.state]:
            draft.move_release(owed, ReleaseEvent.HANDED_ON, turn=turn, **_mine(draft))
