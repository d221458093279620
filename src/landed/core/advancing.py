"""The next step of a plan: start a call, wait for it, go on, or say how far it came."""

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from landed.core.approval import Approval, Purpose, outdated
from landed.core.arrival import Checked, Observed
from landed.core.canonical import Json
from landed.core.contract import Contract, Freshness, Order, WhileUnknown
from landed.core.draft import Draft
from landed.core.errors import ProposalError
from landed.core.incarnation import RESTORED
from landed.core.key import key_for, unique_names
from landed.core.operating import operate
from landed.core.operation import Happened, Operation, State
from landed.core.outcome import Acknowledged
from landed.core.plan import (
    At,
    Place,
    Plan,
    PlanEvent,
    PlanState,
    Step,
    placed,
    step_of,
)
from landed.core.plan_sentences import plan_question
from landed.core.preview import Changed
from landed.core.reference import resolved
from landed.core.revision import corrected
from landed.core.scope import Check, Checking, Watch, Watching
from landed.core.sentences import qualified
from landed.core.session import Observation, observing
from landed.core.undo import ENDED, ReleaseState, made_by, named_in, release_id

LANDED = frozenset({State.CONFIRMED, State.ASSUMED})
NOT_LANDED = frozenset({State.FAILED, State.WITHDRAWN})
UNDER_WAY = frozenset({ReleaseState.DUE, ReleaseState.UNDOING})
SEND_WITHIN_S = 900.0  # how long after a yes to a retry, or once an undo is due
CARRIED_OUT = frozenset({PlanState.RUNNING, PlanState.IN_DOUBT})
IN_DOUBT = frozenset({State.UNKNOWN, State.RESENT, State.UNDECIDED})


def advance(draft: Draft, id: str) -> None:
    """Let one plan go as far as it can without an answer from outside."""
    while draft.plans[id].state in CARRIED_OUT and _step(draft, draft.plans[id]):
        pass  # Each step that asks for another has brought a place of the plan further.


def watched(draft: Draft, arrival: Observed) -> None:
    """Keep what a read of a plan came back with, and step on or break off."""
    plan, index = draft.plans[arrival.plan], arrival.index
    if plan.state not in CARRIED_OUT or index not in plan.front:
        return
    step, outcome = plan.steps[index], arrival.outcome
    answered = isinstance(outcome, Acknowledged)
    seen = Observation(
        id=arrival.observation,
        ask=plan.ask,
        tool=step.tool,
        contract=step.contract,
        arguments=_with_made(draft, plan, step),
        state="answered" if answered else "unanswered",
        result=outcome.result if isinstance(outcome, Acknowledged) else None,
        why="" if isinstance(outcome, Acknowledged) else outcome.reason,
        at=arrival.at,
    )
    draft.moves += observing(seen).moves
    if not answered:
        break_off(draft, plan, index, record=seen.id, why=seen.why)
        return
    made = named_in(seen.result, draft.contract(step.contract).makes)
    place = Place(at=At.DONE, record=seen.id, attempt=plan.attempt, made=made)
    draft.move_plan(plan, PlanEvent.STEPPED, places=placed(plan, index, place))


def checked(draft: Draft, arrival: Checked) -> None:
    """Let a step start that may still be carried out as it was approved, or break off."""
    plan = draft.plans.get(arrival.subject)
    if plan is None:
        if not arrival.refused:
            draft.checked.add((arrival.subject, arrival.index))
        return
    if plan.state not in CARRIED_OUT or arrival.index not in plan.front:
        return
    if arrival.refused or arrival.changed:
        why = arrival.refused or "; ".join(f"{c.field} has changed" for c in arrival.changed)
        break_off(draft, plan, arrival.index, record="", why=why, changed=arrival.changed)
    else:
        draft.checked.add((arrival.subject, arrival.index))


def break_off(
    draft: Draft,
    plan: Plan,
    index: int,
    *,
    record: str,
    why: str,
    changed: tuple[Changed, ...] = (),
) -> None:
    """End a plan at a step that did not land; where steps are independent, others go on."""
    places = placed(plan, index, Place(at=At.BROKEN, record=record, attempt=plan.attempt))
    changed = (*plan.changed, *changed)
    if plan.independent:
        draft.move_plan(plan, PlanEvent.STEPPED, places=places, why=why, changed=changed)
        return
    over(draft, draft.plans[plan.id], PlanEvent.BROKE_OFF, places=places, why=why, changed=changed)


def over(draft: Draft, plan: Plan, event: PlanEvent, **changed: object) -> None:
    """End a plan; where a person agreed to one that ended halfway, they are asked once more."""
    ended = draft.move_plan(plan, event, ended_at=draft.now, **changed)
    if event is PlanEvent.BROKE_OFF and ended.needs_yes and not ended.changed:
        _offer_retry(draft, ended)


def _offer_retry(draft: Draft, plan: Plan) -> None:
    within_s = plan.answer_by - plan.made_at
    approval = Approval(
        plan=plan.id,
        purpose=Purpose.RETRY,
        attempt=plan.attempt + 1,
        tenant=plan.tenant,
        session=plan.session,
        principal=plan.principal,
        hash=plan.hash,
        made_at=draft.now,
        answer_by=draft.now + within_s,
        send_within_s=SEND_WITHIN_S,
    )
    text = plan_question(Purpose.RETRY, language=draft.scope.language)
    draft.ask_yes(approval, text, turn=plan.turn)


def operation_for(plan: Plan, step: Step, contract: Contract, *, id: str, now: float) -> Operation:
    """Return the operation of a step, not stored yet."""
    return Operation(
        id=id,
        tenant=plan.tenant,
        session=plan.session,
        turn=plan.turn,
        plan=plan.id,
        tool=step.tool,
        arguments=step.arguments,
        ask=plan.ask,
        key=key_for(contract, operation=id, session=plan.session),
        contract=step.contract,
        identity=step.identity,
        names=step.names,
        unique=unique_names(contract, tenant=plan.tenant, arguments=step.arguments),
        made_at=now,
        send_by=plan.send_by,
        worker=plan.worker,
    )


def _step(draft: Draft, plan: Plan) -> bool:
    """Take one step; return whether another may follow at once."""
    front = plan.front
    if not front:
        over(draft, plan, PlanEvent.FINISHED if plan.current is None else PlanEvent.BROKE_OFF)
        return False
    goes_on = [_go_on(draft, draft.plans[plan.id], index) for index in front]
    _doubt(draft, draft.plans[plan.id])
    return any(goes_on)


def _go_on(draft: Draft, plan: Plan, index: int) -> bool:
    step, place = plan.steps[index], plan.places[index]
    if place.at is At.OUT:
        return _follow(draft, plan, index)
    if draft.scope.draining:
        return False
    if changed := _restored_since(draft, plan, index):
        break_off(draft, plan, index, record="", why=RESTORED, changed=changed)
        return False
    if _is_undoing(draft, plan) or not _may_start(draft, plan, step):
        return False
    if step.reads:
        return _watch(draft, plan, index)
    if changed := outdated(plan, draft.scope.tools):
        why = "; ".join(f"{c.field} has changed" for c in changed)
        break_off(draft, plan, index, record="", why=why, changed=changed)
        return False
    if needs_check(draft, plan, step) and (plan.id, index) not in draft.checked:
        _check(draft, plan, index)
        return False
    _start(draft, plan, index)
    return True


def _restored_since(draft: Draft, plan: Plan, index: int) -> tuple[Changed, ...]:
    """Return why a plan that is older than a restore goes on only once it is previewed again.

    Its next steps may have been carried out in the time that nobody remembers.
    """
    if not draft.is_older(plan.id):
        return ()
    return (Changed(step=index + 1, field="the store", was="as it was", now="restored"),)


def _doubt(draft: Draft, plan: Plan) -> None:
    """Say so once nobody can tell about any of the steps that something could be done about."""
    if plan.state is not PlanState.RUNNING or not plan.front:
        return
    out = [draft.operations.get(plan.places[index].record) for index in plan.front]
    doubtful = [operation for operation in out if operation is not None and is_doubtful(operation)]
    if len(doubtful) == len(out):
        draft.move_plan(plan, PlanEvent.DOUBTED, why=_why(doubtful[0]))


def needs_check(draft: Draft, plan: Plan, step: Step) -> bool:
    """Whether somebody has to be asked before a step starts.

    Whoever asked must still be allowed to, and what a person agreed to must still be so. A plan
    that needed no yes was previewed the moment before it began.
    """
    contract = draft.contract(step.contract)
    agreed = bool(plan.answer_by) and contract.preview
    return bool(contract.permission) or (agreed and contract.freshness is not Freshness.NONE)


def _check(draft: Draft, plan: Plan, index: int) -> None:
    running = Checking(subject=plan.id, index=index) in draft.scope.running
    step = plan.steps[index]
    if running or f"{plan.id}#{index}" in draft.asking:
        return
    draft.asking.add(f"{plan.id}#{index}")
    draft.commands.append(
        Check(
            subject=plan.id,
            index=index,
            plan=plan,
            tool=step.tool,
            permission=draft.contract(step.contract).permission,
            arguments=step.arguments,
            ask=plan.ask,
        )
    )


def _is_undoing(draft: Draft, plan: Plan) -> bool:
    """Whether something is being taken back for the plan: that goes first, unless in doubt."""
    for owed in draft.releases.values():
        if owed.plan != plan.id:
            continue
        undo = draft.operations.get(owed.undo)
        in_doubt = undo is not None and undo.state in IN_DOUBT
        replaced = owed.state is ReleaseState.OWED and plan.places[owed.step].at is At.DONE
        if replaced or (owed.state in UNDER_WAY and not in_doubt):
            return True
    return False


def _watch(draft: Draft, plan: Plan, index: int) -> bool:
    out = any(
        isinstance(each, Watching) and (each.plan, each.index) == (plan.id, index)
        for each in draft.scope.running
    )
    if out or f"{plan.id}#{index}" in draft.asking:
        return False
    try:
        arguments = _with_made(draft, plan, plan.steps[index])
    except ProposalError as error:
        break_off(draft, plan, index, record="", why=str(error))
        return True
    draft.asking.add(f"{plan.id}#{index}")
    observation = draft.scope.new_id("observation")
    draft.commands.append(
        Watch(plan=plan, index=index, observation=observation, arguments=arguments)
    )
    return False


def _with_made(draft: Draft, plan: Plan, step: Step) -> Mapping[str, Json]:
    """Return a step's arguments with what earlier steps made; raises `ProposalError`."""
    if not step.needs:
        return step.arguments
    made = {n + 1: plan.places[n].made for n in step.needs}
    return resolved(step.arguments, draft.contract(step.contract).accepts, made)


def _may_start(draft: Draft, plan: Plan, step: Step) -> bool:
    """Whether neither a reconciliation nor what a step replaces or corrects stands in its way."""
    if draft.scope.incarnation.reconciling:
        return False
    old = draft.operations.get(step.replaces or step.corrects)
    if old is None:
        return True
    contract = draft.contract_of(old)
    in_doubt = not has_landed(old, contract) and old.state not in NOT_LANDED
    if in_doubt and not (step.replaces and contract.while_unknown is WhileUnknown.REPLACE):
        if old.state is State.UNDECIDED and plan.state is PlanState.RUNNING:
            why = f"{old.id}, which this replaces, could not be found out"
            draft.move_plan(plan, PlanEvent.DOUBTED, why=why)
        return False
    if contract.order is Order.RELEASE_FIRST and step.replaces:
        release = draft.releases.get(release_id(old.id))
        return release is None or release.state in ENDED
    return True


def _start(draft: Draft, plan: Plan, index: int) -> None:
    """Record the operation of a step, and with it that the plan is there now."""
    try:
        step = _as_it_is_now(draft, plan, plan.steps[index])
        contract = draft.contract(step.contract)
        id = draft.scope.new_id("operation")
        operation = operation_for(plan, step, contract, id=id, now=draft.now)
    except ProposalError as error:
        break_off(draft, plan, index, record="", why=str(error))
        return
    before = plan.places[index].record
    place = Place(at=At.OUT, record=id, attempt=plan.attempt)
    draft.move_plan(plan, PlanEvent.STEPPED, places=placed(plan, index, place))
    held = _held(plan, index, contract)
    made = draft.make(replace(operation, retries=before, prepared=held))
    old = draft.operations.get(step.replaces)
    if old is not None and old.holds:
        # It may only start beside what it replaces where the contract says so: see `_may_start`.
        draft.hand_over(old, made)
    operate(draft, id)


def _held(plan: Plan, index: int, contract: Contract) -> Json:
    """Return what a step's preview kept for its send: for the first operation of it, and no other.

    A step that is tried again is prepared anew: what was used once stands for that send alone.
    """
    if not (plan.previews and contract.prepare) or plan.places[index].record:
        return None
    return dict(plan.previews[index].held) or None


def _as_it_is_now(draft: Draft, plan: Plan, step: Step) -> Step:
    """Return a step with what earlier steps made, and one that corrects as what it comes to.

    The old outcome, which says what is to be corrected and how, is known only now.
    """
    changed = replace(step, arguments=_with_made(draft, plan, step))
    old = draft.operations.get(step.corrects)
    if old is not None:
        changed = corrected(changed, old, draft.contract_of(old))
    if changed == step:
        return step
    digest = step.contract
    if changed.tool != step.tool:
        digest = draft.scope.tools.get(changed.tool, step.contract)
    again = step_of(
        tool=changed.tool,
        contract=draft.contract(digest),
        digest=digest,
        arguments=changed.arguments,
        ask=plan.ask,
        call_id=step.call_id,
        reads=False,
    )
    return replace(again, corrects=step.corrects, replaces=step.replaces)


def _follow(draft: Draft, plan: Plan, index: int) -> bool:
    """Go by what became of the operation of the current step."""
    step, place = plan.steps[index], plan.places[index]
    operation = draft.operations[place.record]
    contract = draft.contract_of(operation)
    if has_landed(operation, contract):
        done = landed_at(place, operation, contract)
        draft.move_plan(plan, PlanEvent.STEPPED, places=placed(plan, index, done))
        return True
    if operation.state in NOT_LANDED and step.keeps == operation.id:
        # What was to be kept is not there: it is done anew, as another operation.
        draft.move_plan(plan, PlanEvent.STEPPED, places=placed(plan, index, Place()))
        return True
    if operation.state in NOT_LANDED or operation.blocked_by:
        why = _why(operation)
        if operation.blocked_by:
            draft.move(operation, Happened.WITHDRAWN, why)  # The plan is over; it must not fire.
        changed = (*_restored_since(draft, plan, index), *_conflict(operation, index))
        break_off(draft, plan, index, record=operation.id, why=why, changed=changed)
        return plan.independent
    return False


def _conflict(operation: Operation, index: int) -> tuple[Changed, ...]:
    """Return the facts of which the service said that they moved: nothing is retried on those."""
    named = cast("list[Mapping[str, Json]]", operation.conflict or [])
    return tuple(
        Changed(step=index + 1, field=str(c["field"]), was=c["was"], now=c["now"]) for c in named
    )


def landed_at(place: Place, operation: Operation, contract: Contract) -> Place:
    """Return the place of a step whose operation has landed."""
    made = made_by(operation, contract)
    return replace(place, at=At.DONE, made=made, how=qualified(operation))


def has_landed(operation: Operation, contract: Contract) -> bool:
    """Whether a plan may go on after it: it landed, or that it was taken is all there will be."""
    accepted = operation.state is State.ACCEPTED and not contract.read_back
    return accepted or operation.state in LANDED


def is_doubtful(operation: Operation) -> bool:
    """Whether nobody can tell what became of it."""
    return operation.state in IN_DOUBT


def _why(operation: Operation) -> str:
    if operation.blocked_by:
        return f"{operation.blocked_by} touches the same thing and was not settled"
    return operation.evidence[-1].says if operation.evidence else ""
