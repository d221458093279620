"""What next? One pure function for the first run, a retry, recovery, reconciliation, a revision.

`what_next` folds what arrived into the records, then lets each operation, release and plan take its
next step, and returns one unit to commit and the commands to start once it is durable. It names who
holds what, keeps to each tool's bound, and asks `rules.doubt` about every operation in doubt.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from landed.core.absorb import CameBack, Looked, Replied
from landed.core.advancing import advance, checked, watched
from landed.core.approving import begin, offer, present, tell
from landed.core.arrival import (
    Answered,
    Arrival,
    AskedAgain,
    AskPerson,
    CaseRuled,
    Checked,
    Heard,
    LetGo,
    LookNow,
    Observed,
    Offering,
    Planned,
    PlanTold,
    Presenting,
    Priced,
    Proposed,
    Readied,
    Revised,
    Ruled,
    Told,
    Withdraw,
)
from landed.core.changes import Hold
from landed.core.draft import Draft
from landed.core.operating import operate, prepared
from landed.core.operation import MOVES, Happened, State
from landed.core.plan import PlanState
from landed.core.releasing import not_allowed, priced, release
from landed.core.restoring import restore
from landed.core.revising import answered, ask_person, revise
from landed.core.rules import Rules
from landed.core.ruling import rule, rule_case
from landed.core.scope import Next, Scope
from landed.core.session import opening
from landed.core.stopping import let_go, wind_up
from landed.core.undoing import take_back

ROUNDS_MAX = 100


def what_next(scope: Scope, rules: Rules, now: float) -> Next:
    """Return the unit to commit, the commands that follow it, and when to come back.

    Pure: the same scope, rules and time give the same answer (with a source of ids that does).
    """
    draft = Draft(scope, rules, now)
    restore(draft)
    for arrival in scope.arrivals:
        _ARRIVALS[type(arrival)](draft, arrival)
    for operation in list(draft.operations.values()):
        # What is over, or in front of a person, is nobody's: whoever is asked may look at it.
        if not operation.open or draft.is_mine(operation.worker):
            operate(draft, operation.id)
    if draft.plans or draft.releases:
        _go_on(draft)
    return draft.decided()


def what_was_said(scope: Scope, rules: Rules, now: float) -> Next:
    """Fold what arrived into the records, and take no step: for who has no tools to go on with."""
    draft = Draft(scope, rules, now)
    restore(draft)
    for arrival in scope.arrivals:
        _ARRIVALS[type(arrival)](draft, arrival)
    return draft.decided()


def _go_on(draft: Draft) -> None:
    """Let releases and plans take their steps until none of them has another.

    Releases go first: what is owed is undone before the plan goes on to something else.
    """
    for _ in range(ROUNDS_MAX):
        written = len(draft.moves)
        for id in list(draft.releases):
            if draft.is_mine(draft.releases[id].worker):
                release(draft, id)
        for id in list(draft.plans):
            plan = draft.plans[id]
            if plan.open and draft.is_mine(plan.worker):
                _PLAN_STEPS[plan.state](draft, id)
        if len(draft.moves) == written:
            return


# What a lap does about a plan that is open.
_PLAN_STEPS: Mapping[PlanState, Callable[[Draft, str], None]] = {
    PlanState.RUNNING: advance,
    PlanState.IN_DOUBT: advance,
    PlanState.STOPPING: wind_up,
    PlanState.UNDOING: take_back,
}


def _came_back(draft: Draft, arrival: CameBack) -> None:
    operation = draft.operations[arrival.operation]
    came = draft.rules.absorb(operation, draft.contract_of(operation), arrival)
    if came is not None:
        draft.keep(*came, at=arrival.at)


def _hear(draft: Draft, arrival: Heard) -> None:
    """Take an input down together with the evidence that it brings."""
    unit = opening(arrival.heard)
    draft.moves += unit.moves
    draft.takes += unit.takes
    _came_back(draft, arrival.back)


def _propose(draft: Draft, arrival: Proposed) -> None:
    if arrival.ask_name:
        draft.takes.append(Hold(name=arrival.ask_name, record=arrival.operation.id))
    draft.make(arrival.operation)


def _plan(draft: Draft, arrival: Planned) -> None:
    begin(
        draft,
        arrival.plan,
        ask_name=arrival.ask_name,
        approval=arrival.approval,
        question=arrival.question,
        token=arrival.token,
    )


def _ask_again(draft: Draft, arrival: AskedAgain) -> None:
    operation = draft.operations[arrival.operation]
    draft.operations[operation.id] = replace(operation, blocked_by="")


def _look_now(draft: Draft, arrival: LookNow) -> None:
    draft.urgent.add(arrival.operation)


def _tell(draft: Draft, arrival: Told) -> None:
    operation = draft.operations[arrival.operation]
    if Happened.TOLD in MOVES[operation.state] and operation.told != arrival.state:
        draft.move(operation, Happened.TOLD, told=arrival.state)


def _withdraw(draft: Draft, arrival: Withdraw) -> None:
    operation = draft.operations[arrival.operation]
    if operation.state is State.RECORDED:
        draft.move(operation, Happened.WITHDRAWN, arrival.reason)


def _check(draft: Draft, arrival: Checked) -> None:
    checked(draft, arrival)
    not_allowed(draft, arrival)


_ARRIVALS: Mapping[type[Arrival], Callable[..., None]] = {
    Proposed: _propose,
    Replied: _came_back,
    Looked: _came_back,
    AskedAgain: _ask_again,
    LetGo: let_go,
    LookNow: _look_now,
    Told: _tell,
    Withdraw: _withdraw,
    Planned: _plan,
    Revised: revise,
    Observed: watched,
    Priced: priced,
    Answered: answered,
    AskPerson: ask_person,
    Presenting: present,
    Offering: offer,
    PlanTold: tell,
    Checked: _check,
    Readied: prepared,
    Ruled: rule,
    CaseRuled: rule_case,
    Heard: _hear,
}
