"""The next step of a release: fall due, ask its price, ask the person, undo, see to it."""

from collections.abc import Callable, Mapping

from landed.core.advancing import LANDED, NOT_LANDED, SEND_WITHIN_S
from landed.core.arrival import Checked, Priced
from landed.core.contract import Contract, Effect, Order, Risk
from landed.core.draft import Draft
from landed.core.erased import erased_on
from landed.core.errors import ProposalError
from landed.core.key import Ask, held_names, identity_of, key_for
from landed.core.operating import operate
from landed.core.operation import Happened, Operation, State
from landed.core.outcome import Acknowledged, SendOutcome
from landed.core.plan import PlanState
from landed.core.question import About
from landed.core.scope import AskPrice, Check, Checking, Pricing
from landed.core.sentences import held, keep_question, of_turn, price_question
from landed.core.session import Observation, observing, saying
from landed.core.undo import (
    UNDO_TRIES_MAX,
    Release,
    ReleaseEvent,
    ReleaseState,
    can_undo,
    undo_arguments,
)


def release(draft: Draft, id: str) -> None:
    """Let one release go as far as it can without an answer from outside."""
    step = _STEPS.get(draft.releases[id].state)
    while step is not None and step(draft, draft.releases[id]):
        # Each step that asks for another has left a state, and no state is come back to by itself.
        step = _STEPS.get(draft.releases[id].state)


def priced(draft: Draft, arrival: Priced) -> None:
    """Take down what an undo costs; where nobody can say, the person is asked."""
    owed = draft.releases[arrival.release]
    operation, contract = _operation(draft, owed)
    tool = contract.undo_priced_by
    if owed.state is not ReleaseState.DUE or tool not in draft.scope.tools:
        return
    cents, why = _cents(arrival.outcome, contract.undo_price)
    seen = Observation(
        id=arrival.observation,
        ask=_ask(owed, operation),
        tool=tool,
        contract=draft.scope.tools[tool],
        arguments=undo_arguments(operation, contract),
        state="unanswered" if cents is None else "answered",
        result=None if cents is None else {contract.undo_price: cents},
        why=why,
        at=arrival.at,
    )
    draft.moves += observing(seen).moves
    if cents is None:
        question(draft, owed, why=why)
    else:
        draft.move_release(owed, ReleaseEvent.PRICED, price_cents=cents)


def _cents(outcome: SendOutcome, field: str) -> tuple[int | None, str]:
    if not isinstance(outcome, Acknowledged):
        return None, f"what it costs could not be found out: {outcome.reason}"
    cents = outcome.result.get(field) if isinstance(outcome.result, Mapping) else None
    if isinstance(cents, bool) or not isinstance(cents, int) or cents < 0:
        return None, f"what it costs could not be found out: {field!r} is no amount in cents"
    return cents, ""


def _ask(owed: Release, operation: Operation) -> Ask:
    """Return who wants the undo: the turn that answers for it now."""
    return Ask(
        tenant=owed.tenant,
        principal=owed.principal,
        session=owed.session,
        input=operation.ask.input,
        turn=owed.turn,
    )


def _operation(draft: Draft, owed: Release) -> tuple[Operation, Contract]:
    operation = draft.operations[owed.operation]
    return operation, draft.contract_of(operation)


def _find_out(draft: Draft, owed: Release) -> bool:
    operation, _ = _operation(draft, owed)
    if operation.state in LANDED or operation.state is State.ACCEPTED:
        draft.move_release(owed, ReleaseEvent.LANDED)
        return True
    if operation.state in NOT_LANDED:
        draft.move_release(owed, ReleaseEvent.NEVER_LANDED, why="it never took effect")
    return False


def _fall_due(draft: Draft, owed: Release) -> bool:
    """Wait for what replaces it, and never release the very thing that it returned."""
    operation, contract = _operation(draft, owed)
    if owed.left_out:
        question(draft, owed, why=owed.why or "it was left out of what is wanted now")
        return False
    if _waits_its_turn(draft, owed):
        return False
    if not owed.plan or contract.order is Order.RELEASE_FIRST:
        why = contract.order_why or "it is no longer wanted"
        if owed.plan:
            _announce(draft, owed)
        draft.move_release(owed, ReleaseEvent.FELL_DUE, why=why)
        return True
    plan = draft.plans[owed.plan]
    place = plan.places[owed.step]
    new = draft.operations.get(place.record)
    over = plan.state is PlanState.SUPERSEDED
    if new is not None and new.state in LANDED:
        if draft.rules.returned_the_same(
            operation, new, old_contract=contract, new_contract=draft.contract_of(new)
        ):
            question(draft, owed, why=f"{new.id}, which replaces it, returned the same thing")
            return False
        draft.move_release(owed, ReleaseEvent.FELL_DUE, why="the replacement holds")
        return True
    never = new is None or new.state in NOT_LANDED
    if never and (over or not (plan.open or plan.state is PlanState.PROPOSED)):
        question(draft, owed, why="nothing replaces it")
    return False


def _waits_its_turn(draft: Draft, owed: Release) -> bool:
    """Whether something that was done later has to be taken back first."""
    later = draft.releases.get(owed.after)
    return later is not None and later.state not in (ReleaseState.DONE, ReleaseState.VOID)


def _announce(draft: Draft, owed: Release) -> None:
    """Tell the person, before it is done, that they will have nothing for a while, and why."""
    operation, contract = _operation(draft, owed)
    what = held(operation, contract, language=draft.scope.language)
    said = saying(
        id=draft.scope.new_id("message"),
        tenant=owed.tenant,
        session=owed.session,
        turn=owed.turn,
        text=of_turn("first", language=draft.scope.language, held=what, why=contract.order_why),
        at=draft.now,
        state="announced",
    )
    draft.moves += said.moves


def _undo(draft: Draft, owed: Release) -> bool:
    """Start the undo, once its price is known and whoever has to agree has agreed."""
    operation, contract = _operation(draft, owed)
    digest = draft.scope.tools.get(contract.undo)
    if digest is None:
        question(draft, owed, why=f"the tool {contract.undo!r} is not registered here")
        return False
    if unfit := _unfit(draft, operation, contract):
        question(draft, owed, why=unfit)
        return False
    if not can_undo(operation, contract, draft.now):
        question(draft, owed, why=_no_longer(operation, contract, draft.now))
        return False
    if contract.undo_price and owed.price_cents is None:
        _ask_price(draft, owed, operation, contract)
        return False
    price_cents = owed.price_cents or 0
    if not owed.agreed and _needs_yes(draft.contract(digest), owed, price_cents):
        _ask_consent(draft, owed, price_cents)
        return False
    if not draft.scope.draining and _may_undo(draft, owed, digest):
        _start(draft, owed, digest)
    return False


def _unfit(draft: Draft, operation: Operation, contract: Contract) -> str:
    """Return why the undo cannot even be asked for, "" where it can."""
    if day := erased_on(operation.arguments):
        return f"its details were erased on {day}"
    if contract.undo_price and contract.undo_priced_by not in draft.scope.tools:
        return f"the tool {contract.undo_priced_by!r}, which knows its price, is not registered"
    try:
        undo_arguments(operation, contract)
    except ProposalError as error:
        return str(error)
    return ""


def _no_longer(operation: Operation, contract: Contract, now: float) -> str:
    within_s = contract.undo_within_s
    if within_s is not None and now > operation.settled_at + within_s:
        return "the time in which it could be undone is over"
    return "it says of itself that it cannot be undone"


def _may_undo(draft: Draft, owed: Release, digest: str) -> bool:
    """Whether who wants the undo is allowed to; asked anew each time, for rights are taken away."""
    permission = draft.contract(digest).permission
    if not permission or (owed.id, owed.tries) in draft.checked:
        return True
    operation, contract = _operation(draft, owed)
    running = Checking(subject=owed.id, index=owed.tries) in draft.scope.running
    if not running and owed.id not in draft.asking:
        draft.asking.add(owed.id)
        draft.commands.append(
            Check(
                subject=owed.id,
                index=owed.tries,
                plan=None,
                tool=contract.undo,
                permission=permission,
                arguments=undo_arguments(operation, contract),
                ask=_ask(owed, operation),
            )
        )
    return False


def not_allowed(draft: Draft, arrival: Checked) -> None:
    """Put an undo that is not allowed in front of a person; it stays owed."""
    owed = draft.releases.get(arrival.subject)
    if owed is not None and owed.state is ReleaseState.DUE and arrival.refused:
        question(draft, owed, why=arrival.refused)


def _ask_price(draft: Draft, owed: Release, operation: Operation, contract: Contract) -> None:
    running = Pricing(release=owed.id) in draft.scope.running
    if running or owed.id in draft.asking or draft.scope.draining:
        return
    draft.asking.add(owed.id)
    draft.commands.append(
        AskPrice(
            release=owed.id,
            tool=contract.undo_priced_by,
            arguments=undo_arguments(operation, contract),
            ask=_ask(owed, operation),
            observation=draft.scope.new_id("observation"),
        )
    )


def _needs_yes(undo: Contract, owed: Release, price_cents: int) -> bool:
    """A price always needs a yes; an undo that is final does where nobody asked for the turn."""
    unasked = owed.origin != "user" and undo.effect is Effect.IRREVERSIBLE
    return price_cents > 0 or unasked or undo.risk is Risk.CONFIRM


def _ask_consent(draft: Draft, owed: Release, price_cents: int) -> None:
    operation, contract = _operation(draft, owed)
    question = draft.ask(
        price_question(operation, contract, price_cents=price_cents, language=draft.scope.language),
        about=About.PRICE,
        subject=owed.id,
        session=(owed.tenant, owed.session),
        turn=owed.turn,
        principal=owed.principal,
        amount_cents=price_cents,
    )
    draft.move_release(owed, ReleaseEvent.ASKED, question=question.id)


def question(draft: Draft, owed: Release, *, why: str) -> None:
    """Nothing is undone on its own any more: the person says whether it is kept."""
    operation, contract = _operation(draft, owed)
    asked = draft.ask(
        keep_question(operation, contract, why=why, language=draft.scope.language),
        about=About.KEPT,
        subject=owed.id,
        session=(owed.tenant, owed.session),
        turn=owed.turn,
        principal=owed.principal,
    )
    draft.move_release(
        owed,
        ReleaseEvent.QUESTIONED,
        question=asked.id,
        why=why,
        price_cents=None,
        agreed=False,
        left_out=True,
    )


def _start(draft: Draft, owed: Release, digest: str) -> None:
    """Record the undo as an operation of its own; its send leaves with the same unit."""
    operation, contract = _operation(draft, owed)
    arguments = undo_arguments(operation, contract)
    if contract.undo_price:
        arguments[contract.undo_price] = owed.price_cents
    undo, ask = draft.contract(digest), _ask(owed, operation)
    id = draft.scope.new_id("operation")
    identity = identity_of(undo, tool=contract.undo, arguments=arguments)
    names = held_names(undo, ask=ask, tool=contract.undo, arguments=arguments, identity=identity)
    draft.move_release(owed, ReleaseEvent.STARTED, undo=id, tries=owed.tries + 1)
    draft.make(
        Operation(
            id=id,
            tenant=owed.tenant,
            session=owed.session,
            turn=owed.turn,
            tool=contract.undo,
            arguments=arguments,
            ask=ask,
            key=key_for(undo, operation=id, session=owed.session),
            contract=digest,
            identity=identity,
            names=names,
            made_at=draft.now,
            send_by=draft.now + SEND_WITHIN_S,
            undoes=operation.id,
            worker=owed.worker,
        )
    )
    operate(draft, id)


def _see_to_it(draft: Draft, owed: Release) -> bool:
    """Go by what became of the undo; one that had no effect is tried again, at today's price."""
    undo = draft.operations[owed.undo]
    if undo.state in LANDED:
        draft.move_release(owed, ReleaseEvent.UNDONE)
        return False
    if undo.state not in NOT_LANDED and not undo.blocked_by:
        return False
    if undo.blocked_by:
        # It must not fire later, beside the one that is made in its place.
        undo = draft.move(undo, Happened.WITHDRAWN, f"{undo.blocked_by} was not settled")
    why = undo.evidence[-1].says
    if owed.tries >= UNDO_TRIES_MAX:
        question(draft, owed, why=why)
        return False
    failed = draft.move_release(
        owed, ReleaseEvent.UNDO_FAILED, price_cents=None, agreed=False, why=why
    )
    _, contract = _operation(draft, failed)
    if contract.undo_price:
        return True  # At another price it may well be possible: ask what it costs now.
    question(draft, failed, why=why)
    return False


_STEPS: Mapping[ReleaseState, Callable[[Draft, Release], bool]] = {
    ReleaseState.OWED_IF_LANDED: _find_out,
    ReleaseState.OWED: _fall_due,
    ReleaseState.DUE: _undo,
    ReleaseState.UNDOING: _see_to_it,
}
