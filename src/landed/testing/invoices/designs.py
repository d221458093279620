"""Wrong designs for plans that the demos show beside ours, out of reach of `landed.open`.

Each is wrong in one thing. Some replace a rule or the store, others are a wrong way of the code
around the runtime, which could be anybody's.
"""

from dataclasses import replace

from landed.core.act import read_plan
from landed.core.approval import Presented, Problem
from landed.core.arrival import Arrival, LetGo, PlanTold, Presenting
from landed.core.canonical import Json
from landed.core.next import what_next
from landed.core.operation import State
from landed.core.plan import PlanEvent
from landed.core.rules import Rules
from landed.core.scope import Next, Scope
from landed.core.yes_words import YES
from landed.runtime.acting import ModelTools
from landed.testing.designs import Design, cancel_is_cancelled
from landed.testing.forgetful import ForgetfulStore
from landed.testing.invoices.clerk import Manner, Steps


def used_up_by_anybody(scope: Scope, rules: Rules, now: float) -> Next:
    """Take an approval before looking at who presents it: to try is to use it up."""
    tried = {
        id(arrival): arrival
        for arrival in scope.arrivals
        if isinstance(arrival, Presenting) and _is_strange(arrival, scope)
    }
    gone = {old: _gone(arrival, scope) for old, arrival in tried.items()}
    arrivals: tuple[Arrival, ...] = tuple(gone.get(id(a), a) for a in scope.arrivals)
    decided = what_next(replace(scope, arrivals=arrivals), rules, now)
    told = {old: str(Problem.MISMATCH) for old in gone}
    return replace(decided, answers={**decided.answers, **told})


def _is_strange(arrival: Presenting, scope: Scope) -> bool:
    approval = scope.approvals[arrival.approval]
    return approval.principal not in ("", arrival.presented.principal)


def _gone(arrival: Presenting, scope: Scope) -> Presenting:
    """Return what that comes to for the approval: it can't be given any more."""
    approval = scope.approvals[arrival.approval]
    as_owner: Presented = replace(arrival.presented, principal=approval.principal)
    return replace(arrival, presented=as_owner, yes=False)


def stop_is_cancelled(scope: Scope, rules: Rules, now: float) -> Next:
    """Write down that the step in flight was cancelled, because the plan was stopped."""
    stopped = {
        arrival.plan
        for arrival in scope.arrivals
        if isinstance(arrival, PlanTold) and arrival.event is PlanEvent.STOP_ASKED
    }
    killed = tuple(
        LetGo(operation=operation.id, reason="the plan was stopped", at=now)
        for operation in scope.operations.values()
        if operation.plan in stopped and operation.state is State.SENT
    )
    return cancel_is_cancelled(replace(scope, arrivals=(*killed, *scope.arrivals)), rules, now)


def begins_with_yes(words: str) -> str:
    """Take for a yes what only begins with one."""
    every = sorted((word for words in YES.values() for word in words), key=len, reverse=True)
    said = words.casefold()
    return next((word for word in every if said.startswith(f"{word},")), words)


async def with_a_key_of_the_model(tools: ModelTools, steps: Steps) -> str:
    """Let the model name its call; as models do, it names it anew each time."""
    plan: Json = {"steps": [{"tool": one.tool, "arguments": one.arguments} for one in steps]}
    calls = read_plan(plan, list(tools.rt.driver.tools.values()))
    key = tools.rt.ids.new("model-key")
    heard = tools.heard
    value = await tools.rt.propose(calls, ask=heard.ask(key), origin=heard.origin)
    tools.seen(value)
    return value.to_model


END_IN_ERROR = Design(reopen=ForgetfulStore)
CONSUME_ON_MISMATCH = Design(what_next=used_up_by_anybody)
CANCEL_KILLS = Design(what_next=stop_is_cancelled)

NO_DRAIN = Manner(drains=False)
LENIENT_YES = Manner(hears=begins_with_yes)
MODEL_KEY = Manner(act=with_a_key_of_the_model)
RETRY_NEW_PLAN = Manner(plans_anew=True)
ASK_EACH_STEP = Manner(asks_each=True)
