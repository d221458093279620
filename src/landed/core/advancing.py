"""The next step of a plan: start a call, wait for it, go on, or say how far it came."""

from dataclasses import replace

from landed.core.contract import Contract, Order, WhileUnknown
from landed.core.draft import Draft
from landed.core.errors import ProposalError
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
    operation_for,
    placed,
    step_of,
)
from landed.core.revision import corrected
from landed.core.scope import Observed, Watch, Watching
from landed.core.session import Observation, observing
from landed.core.undo import ENDED, ReleaseState, release_id

LANDED = frozenset({State.CONFIRMED, State.ASSUMED})
NOT_LANDED = frozenset({State.FAILED, State.WITHDRAWN})
UNDER_WAY = frozenset({ReleaseState.DUE, ReleaseState.UNDOING})
IN_DOUBT = frozenset({State.UNKNOWN, State.RESENT, State.UNDECIDED})


def advance(draft: Draft, id: str) -> None:
    """Let one plan go as far as it can without an answer from outside."""
    while draft.plans[id].open and _step(draft, draft.plans[id]):
        pass  # Each step that asks for another has brought a place of the plan further.


def watched(draft: Draft, arrival: Observed) -> None:
    """Keep what a read of a plan came back with, and step on or break off."""
    plan = draft.plans[arrival.plan]
    if not plan.open or plan.current != arrival.index:
        return
    step, outcome = plan.steps[arrival.index], arrival.outcome
    answered = isinstance(outcome, Acknowledged)
    seen = Observation(
        id=arrival.observation,
        ask=plan.ask,
        tool=step.tool,
        contract=step.contract,
        arguments=step.arguments,
        state="answered" if answered else "unanswered",
        result=outcome.result if isinstance(outcome, Acknowledged) else None,
        why="" if isinstance(outcome, Acknowledged) else outcome.reason,
        at=arrival.at,
    )
    draft.moves += observing(seen).moves
    place = Place(at=At.DONE if answered else At.BROKEN, record=seen.id)
    places = placed(plan, arrival.index, place)
    if answered:
        draft.move_plan(plan, PlanEvent.STEPPED, places=places)
    else:
        draft.move_plan(plan, PlanEvent.BROKE_OFF, places=places, why=seen.why)


def _step(draft: Draft, plan: Plan) -> bool:
    """Take one step; return whether another may follow at once."""
    index = plan.current
    if index is None:
        draft.move_plan(plan, PlanEvent.FINISHED)
        return False
    step, place = plan.steps[index], plan.places[index]
    if place.at is At.OUT:
        return _follow(draft, plan, index)
    if draft.scope.draining or _is_undoing(draft, plan) or not _may_start(draft, plan, step):
        return False
    if step.reads:
        _watch(draft, plan, index)
        return False
    _start(draft, plan, index)
    return True


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


def _watch(draft: Draft, plan: Plan, index: int) -> None:
    out = any(
        isinstance(each, Watching) and (each.plan, each.index) == (plan.id, index)
        for each in draft.scope.running
    )
    if not out and plan.id not in draft.asking:
        draft.asking.add(plan.id)
        observation = draft.scope.new_id("observation")
        draft.commands.append(Watch(plan=plan, index=index, observation=observation))


def _may_start(draft: Draft, plan: Plan, step: Step) -> bool:
    """Whether what a step replaces or corrects stands in its way."""
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
    except ProposalError as error:
        broken = placed(plan, index, Place(at=At.BROKEN))
        draft.move_plan(plan, PlanEvent.BROKE_OFF, places=broken, why=str(error))
        return
    contract = draft.contract(step.contract)
    id = draft.scope.new_id("operation")
    operation = operation_for(plan, step, contract, id=id, now=draft.now)
    place = Place(at=At.OUT, record=id)
    draft.move_plan(plan, PlanEvent.STEPPED, places=placed(plan, index, place))
    made = draft.make(operation)
    old = draft.operations.get(step.replaces)
    if old is not None and old.holds:
        # It may only start beside what it replaces where the contract says so: see `_may_start`.
        draft.hand_over(old, made)
    operate(draft, id)


def _as_it_is_now(draft: Draft, plan: Plan, step: Step) -> Step:
    """Return a step that corrects as what it comes to, now that the old outcome is known."""
    old = draft.operations.get(step.corrects)
    if old is None:
        return step
    changed = corrected(step, old, draft.contract_of(old))
    if changed == step:
        return step
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
    return replace(again, corrects=step.corrects)


def _follow(draft: Draft, plan: Plan, index: int) -> bool:
    """Go by what became of the operation of the current step."""
    step, place = plan.steps[index], plan.places[index]
    operation = draft.operations[place.record]
    contract = draft.contract_of(operation)
    if has_landed(operation, contract):
        done = placed(plan, index, Place(at=At.DONE, record=operation.id))
        draft.move_plan(plan, PlanEvent.STEPPED, places=done)
        return True
    if operation.state in NOT_LANDED and step.keeps == operation.id:
        # What was to be kept is not there: it is done anew, as another operation.
        draft.move_plan(plan, PlanEvent.STEPPED, places=placed(plan, index, Place()))
        return True
    if operation.state in NOT_LANDED or operation.blocked_by:
        why = _why(operation)
        if operation.blocked_by:
            draft.move(operation, Happened.WITHDRAWN, why)  # The plan is over; it must not fire.
        broken = placed(plan, index, Place(at=At.BROKEN, record=operation.id))
        draft.move_plan(plan, PlanEvent.BROKE_OFF, places=broken, why=why)
        return False
    if operation.state in IN_DOUBT and plan.state is PlanState.RUNNING:
        draft.move_plan(plan, PlanEvent.DOUBTED, why=_why(operation))
    return False


def has_landed(operation: Operation, contract: Contract) -> bool:
    """Whether a plan may go on after it: it landed, or that it was taken is all there will be."""
    accepted = operation.state is State.ACCEPTED and not contract.read_back
    return accepted or operation.state in LANDED


def _why(operation: Operation) -> str:
    if operation.blocked_by:
        return f"{operation.blocked_by} touches the same thing and was not settled"
    return operation.evidence[-1].says if operation.evidence else ""
