"""A person's word about a plan, folded into the records: yes, no, something else, or too late.

Taking an approval and starting the plan is one unit: there is no moment at which the one is done
and the other is not, and of two clicks the second finds it taken. A yes presented in vain is an
event of the approval (`approval_refused`, with the problem), and uses nothing up.
"""

from collections.abc import Callable, Mapping

from landed.core.approval import (
    Approval,
    ApprovalEvent,
    ApprovalState,
    Presented,
    Problem,
    Purpose,
    problem,
    token_name,
)
from landed.core.arrival import Offering, PlanTold, Presenting
from landed.core.changes import Hold
from landed.core.draft import Draft
from landed.core.plan import CLOCK, PLAN_MOVES, At, Place, Plan, PlanEvent, PlanState
from landed.core.plan_sentences import BY_OTHER_WORDS
from landed.core.preview import Begins
from landed.core.question import Question, QuestionEvent, QuestionState
from landed.core.stopping import stop
from landed.core.telling import lapses_as, too_late
from landed.core.undoing import undo_plan

SOMEBODY = "somebody"  # who said yes where nobody is known by name


def begin(
    draft: Draft,
    plan: Plan,
    *,
    ask_name: str,
    approval: Approval | None,
    question: str,
    token: Approval | None = None,
) -> Plan:
    """Record a plan that is not stored yet, with what a person may agree to."""
    made = draft.make_plan(plan, ask_name=ask_name)
    old = draft.plans.get(plan.supersedes)
    if old is not None and PlanEvent.SUPERSEDED in PLAN_MOVES[old.state]:
        draft.move_plan(old, PlanEvent.SUPERSEDED, why=made.id)
        close_approvals(draft, old.id)
    if approval is not None:
        draft.ask_yes(approval, question, turn=made.turn)
    if token is not None:
        draft.make_approval(token)
    return made


def offer(draft: Draft, arrival: Offering) -> None:
    """Hand out a yes for what may follow: the same one anew, or one that was not there before.

    One that lapsed is offered anew where the plan still stands as it did: whoever asked why it did
    not work may try it again afterwards. Its question is put once more then.
    """
    wanted = arrival.approval
    held = draft.approvals.get(wanted.id)
    plan = draft.plans[wanted.plan]
    if not _fits(plan, wanted) or (held is not None and held.state not in _MAY_BE_OFFERED):
        draft.answer(arrival, Problem.OVER)
    elif held is None:
        draft.ask_yes(wanted, arrival.question, turn=plan.turn)
    else:
        draft.takes.append(Hold(name=token_name(wanted.token), record=held.id))
        draft.move_approval(
            held,
            ApprovalEvent.RENEWED,
            token=wanted.token,
            answer_by=_until(plan, wanted),
            question=_asked_anew(draft, held, arrival.question, turn=plan.turn),
            at=draft.now,
        )


_MAY_BE_OFFERED = frozenset({ApprovalState.OPEN, ApprovalState.LAPSED})


def _until(plan: Plan, wanted: Approval) -> float:
    """Return until when it may be given: to hand out anew does not make what was shown last."""
    shown = wanted.purpose is Purpose.CONFIRM
    return min(wanted.answer_by, plan.answer_by) if shown else wanted.answer_by


def _asked_anew(draft: Draft, held: Approval, text: str, *, turn: str) -> str:
    """Return the question of an approval, put once more where the one before is closed."""
    before = draft.questions.get(held.question)
    if not text or (before is not None and before.state is QuestionState.OPEN):
        return held.question
    return draft.ask_about(held, text, turn=turn).id


def present(draft: Draft, arrival: Presenting) -> None:
    """Take a yes or a no that came by a button."""
    approval = draft.approvals[arrival.approval]
    came = _use(draft, approval, arrival.presented, yes=arrival.yes)
    draft.answer(arrival, came)
    if came is Problem.NONE and arrival.ask_name:
        draft.takes.append(Hold(name=arrival.ask_name, record=approval.plan))
    if came is Problem.NONE:
        by = QuestionEvent.APPROVED if arrival.yes else QuestionEvent.DECLINED
        _close_question(draft, approval.question, by, who=arrival.presented.principal)


def heard(draft: Draft, question: Question, *, yes: bool | None, by: str) -> Problem:
    """Take a yes, a no, or other words, that came as the answer to the question of an approval."""
    approval = draft.approvals[question.subject]
    if yes is None:
        lapse_approval(draft, approval, by=by, why=BY_OTHER_WORDS)
        return Problem.NONE
    presented = Presented(
        purpose=approval.purpose,
        principal=by,
        tenant=question.tenant,
        session=question.session,
    )
    return _use(draft, approval, presented, yes=yes)


def _use(draft: Draft, approval: Approval, presented: Presented, *, yes: bool) -> Problem:
    plan = draft.plans[approval.plan]
    found = problem(approval, plan, presented, keys=draft.scope.keys, now=draft.now)
    if found is Problem.NONE and not _fits(plan, approval):
        found = Problem.OVER
    if found is Problem.NONE and approval.purpose is Purpose.COMMIT and _waits_for_yes(plan):
        found = Problem.NOT_AGREED
    if (
        found is Problem.NONE
        and yes
        and not _START[approval.purpose](draft, approval, plan, presented.principal)
    ):
        found = Problem.OVER
    if found is not Problem.NONE:
        draft.move_approval(
            draft.approvals[approval.id],
            ApprovalEvent.REFUSED,
            problem=found,
            by=presented.principal,
            at=draft.now,
        )
        if found is Problem.EXPIRED and plan.expired(draft.now):
            expire(draft, plan, by=CLOCK, why=too_late(plan))
        return found
    event = ApprovalEvent.TAKEN if yes else ApprovalEvent.DECLINED
    draft.move_approval(draft.approvals[approval.id], event, by=presented.principal, at=draft.now)
    if not yes and plan.state is PlanState.PROPOSED:
        why = "the person said no"
        draft.move_plan(plan, PlanEvent.DECLINED, by=presented.principal, why=why)
    return Problem.NONE


def _fits(plan: Plan, approval: Approval) -> bool:
    """Whether the plan is still where this yes would take it on from."""
    event, ahead = _FROM[approval.purpose]
    if plan.begins == Begins.TOKEN and approval.purpose is Purpose.CONFIRM:
        return False  # Nobody has to agree to it, and a yes would not begin it.
    return event in PLAN_MOVES[plan.state] and approval.attempt == plan.attempt + ahead


def _waits_for_yes(plan: Plan) -> bool:
    return plan.needs_yes and not plan.agreed_by


_FROM: Mapping[Purpose, tuple[PlanEvent, int]] = {
    Purpose.CONFIRM: (PlanEvent.APPROVED, 0),
    Purpose.RETRY: (PlanEvent.RETRIED, 1),
    Purpose.UNDO: (PlanEvent.UNDO_ASKED, 0),
    Purpose.COMMIT: (PlanEvent.COMMITTED, 0),
}


def _confirm(draft: Draft, approval: Approval, plan: Plan, by: str) -> bool:
    if plan.begins == Begins.YES_THEN_TOKEN:
        draft.move_plan(plan, PlanEvent.AGREED, agreed_by=by or SOMEBODY)
    else:
        _run(draft, PlanEvent.APPROVED, approval, plan)
    return True


def _commit(draft: Draft, approval: Approval, plan: Plan, by: str) -> bool:
    _run(draft, PlanEvent.COMMITTED, approval, plan, by=by)
    return True


def _run(draft: Draft, event: PlanEvent, approval: Approval, plan: Plan, **changed: object) -> None:
    draft.move_plan(
        plan,
        event,
        send_by=draft.now + approval.send_within_s,
        worker=draft.scope.worker or plan.worker,
        **changed,
    )


def _retry(draft: Draft, approval: Approval, plan: Plan, by: str) -> bool:
    retry(draft, plan, send_by=draft.now + approval.send_within_s, by=by)
    return True


def retry(draft: Draft, plan: Plan, *, send_by: float, by: str) -> None:
    """Run the same plan once more: what is done stays done, what broke is done anew."""
    places = tuple(
        Place(record=place.record, attempt=plan.attempt + 1)
        if place.at in (At.BROKEN, At.WAITING)
        else place
        for place in plan.places
    )
    draft.move_plan(
        plan,
        PlanEvent.RETRIED,
        places=places,
        attempt=plan.attempt + 1,
        send_by=send_by,
        ended_at=0.0,
        by=by,
        why="",
        changed=(),
        worker=draft.scope.worker or plan.worker,
    )


def _undo(draft: Draft, approval: Approval, plan: Plan, by: str) -> bool:
    told = PlanTold(plan=plan.id, event=PlanEvent.UNDO_ASKED, by=by, at=draft.now)
    return _take_back(draft, told, plan, given=approval.id)


_START: Mapping[Purpose, Callable[[Draft, Approval, Plan, str], bool]] = {
    Purpose.CONFIRM: _confirm,
    Purpose.RETRY: _retry,
    Purpose.UNDO: _undo,
    Purpose.COMMIT: _commit,
}


def tell(draft: Draft, arrival: PlanTold) -> None:
    """Take somebody's word about a plan that needs no approval: stop, abandon, retry, undo, end."""
    plan = draft.plans[arrival.plan]
    if not _TOLD[arrival.event](draft, arrival, plan):
        draft.answer(arrival, Problem.OVER)


def _end(draft: Draft, arrival: PlanTold, plan: Plan) -> bool:
    if arrival.event not in PLAN_MOVES[plan.state]:
        return False
    draft.move_plan(plan, arrival.event, by=arrival.by, why=arrival.why)
    close_approvals(draft, plan.id)
    return True


def _again(draft: Draft, arrival: PlanTold, plan: Plan) -> bool:
    if PlanEvent.RETRIED not in PLAN_MOVES[plan.state] or plan.changed:
        return False
    retry(draft, plan, send_by=arrival.send_by, by=arrival.by)
    return True


def _take_back(draft: Draft, arrival: PlanTold, plan: Plan, *, given: str = "") -> bool:
    """Take a plan back; whether to go on with it is asked no more."""
    if not undo_plan(draft, arrival, plan):
        return False
    close_approvals(draft, plan.id, but=given)
    return True


_TOLD: Mapping[PlanEvent, Callable[[Draft, PlanTold, Plan], bool]] = {
    PlanEvent.STOP_ASKED: stop,
    PlanEvent.ABANDONED: _end,
    PlanEvent.EXPIRED: _end,
    PlanEvent.RETRIED: _again,
    PlanEvent.UNDO_ASKED: _take_back,
}


def lapse_approval(draft: Draft, approval: Approval, *, by: str, why: str) -> None:
    """Let a yes that was not given lapse, and with it a plan that waited for it."""
    if approval.state is not ApprovalState.OPEN:
        return
    plan = draft.plans[approval.plan]
    if draft.now >= approval.answer_by:
        by, why = CLOCK, too_late(plan)  # Whatever was said, it was said too late.
    draft.move_approval(approval, ApprovalEvent.LAPSED, by=by, at=draft.now)
    if plan.state is PlanState.PROPOSED:
        expire(draft, plan, by=by, why=why)


def expire(draft: Draft, plan: Plan, *, by: str, why: str) -> None:
    """Let a proposed plan lapse, with all that was offered for it."""
    draft.move_plan(plan, lapses_as(plan), by=by, why=why)
    close_approvals(draft, plan.id)


def close_approvals(draft: Draft, plan: str, *, but: str = "") -> None:
    """Nothing that was offered for a plan can be given any more, `but` for one; nobody is asked."""
    offered = [each for each in draft.approvals.values() if each.plan == plan and each.id != but]
    for approval in offered:
        if approval.state is ApprovalState.OPEN:
            draft.move_approval(approval, ApprovalEvent.LAPSED, at=draft.now)
            lapse(draft, approval.question)


def lapse(draft: Draft, question: str) -> None:
    """Let a question go unanswered, where it is still open."""
    _close_question(draft, question, QuestionEvent.LAPSED, who="")


def _close_question(draft: Draft, id: str, event: QuestionEvent, *, who: str) -> None:
    asked = draft.questions.get(id)
    if asked is None or asked.state is not QuestionState.OPEN:
        return
    answer: dict[str, object] = {"answered_by": who, "answered_at": draft.now} if who else {}
    draft.move_question(asked, event, **answer)
