"""What next? One pure function for the first run, a retry, recovery, reconciliation, a revision.

`what_next` folds what arrived into the records, then lets each operation, release and plan take its
next step, and returns one unit to commit and the commands to start once it is durable. It names who
holds what, keeps to each tool's bound, and asks `rules.doubt` about every operation in doubt.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from landed.core.absorb import CameBack, Looked, Replied
from landed.core.advancing import advance, watched
from landed.core.changes import Hold
from landed.core.draft import Draft
from landed.core.operating import operate
from landed.core.operation import MOVES, Happened, State
from landed.core.releasing import priced, release
from landed.core.revising import answered, ask_person, let_go, revise
from landed.core.rules import Rules
from landed.core.scope import (
    Answered,
    Arrival,
    AskedAgain,
    AskPerson,
    LetGo,
    LookNow,
    Next,
    Observed,
    Planned,
    Priced,
    Proposed,
    Revised,
    Scope,
    Told,
    Withdraw,
)

ROUNDS_MAX = 100


def what_next(scope: Scope, rules: Rules, now: float) -> Next:
    """Return the unit to commit, the commands that follow it, and when to come back.

    Pure: the same scope, rules and time give the same answer (with a source of ids that does).
    """
    draft = Draft(scope, rules, now)
    for arrival in scope.arrivals:
        _ARRIVALS[type(arrival)](draft, arrival)
    for operation in list(draft.operations.values()):
        if operation.worker == scope.worker or not scope.worker:
            operate(draft, operation.id)
    if draft.plans or draft.releases:
        _go_on(draft)
    return draft.decided()


def _go_on(draft: Draft) -> None:
    """Let releases and plans take their steps until none of them has another.

    Releases go first: what is owed is undone before the plan goes on to something else.
    """
    for _ in range(ROUNDS_MAX):
        written = len(draft.moves)
        for id in list(draft.releases):
            release(draft, id)
        for id in list(draft.plans):
            advance(draft, id)
        if len(draft.moves) == written:
            return


def _came_back(draft: Draft, arrival: CameBack) -> None:
    operation = draft.operations[arrival.operation]
    came = draft.rules.absorb(operation, draft.contract_of(operation), arrival)
    if came is not None:
        draft.keep(*came, at=arrival.at)


def _propose(draft: Draft, arrival: Proposed) -> None:
    if arrival.ask_name:
        draft.takes.append(Hold(name=arrival.ask_name, record=arrival.operation.id))
    draft.make(arrival.operation)


def _plan(draft: Draft, arrival: Planned) -> None:
    draft.make_plan(arrival.plan, ask_name=arrival.ask_name)


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
}
