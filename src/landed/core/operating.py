"""The next step of one operation: send it, wait for it, or find out what became of it."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import assert_never

from landed.core.absorb import Question
from landed.core.arrival import Readied
from landed.core.contract import Contract, Interrupt, WhenUnknown
from landed.core.doubt import (
    Ask,
    Assume,
    Close,
    LagOver,
    LookUp,
    ReadBack,
    SendAgain,
    Verdict,
    WaitUntil,
    pause_s,
    still_sendable,
)
from landed.core.draft import Draft
from landed.core.incarnation import INCARNATION
from landed.core.operation import Happened, Operation, Source, State
from landed.core.outcome import NoAnswer, Prepared
from landed.core.pacing import Leaving
from landed.core.scope import (
    Asking,
    Prepare,
    Put,
    Send,
    Sending,
    StopMidway,
    StopWaiting,
)
from landed.core.stop import KeepWaiting, interruption

CRASHED = "the process that sent it ended before the answer came"
STOPPED = "stopped waiting; it may still land"
MIDWAY_S = 3.0  # how long a call that takes the stop token has to end early; < `let_go_s`


def operate(draft: Draft, id: str) -> None:
    """Let one operation go as far as it can without an answer from outside."""
    step = _STEPS.get(draft.operations[id].state)
    while step is not None and step(draft, draft.operations[id]):
        # Each step that asks for another has left a state for good, so this ends.
        step = _STEPS.get(draft.operations[id].state)


def _start(draft: Draft, operation: Operation) -> bool:
    """Send what is recorded, where nothing stands against it."""
    if not still_sendable(operation, draft.now):
        draft.move(operation, Happened.WITHDRAWN, "its time to be sent was over")
    elif draft.scope.incarnation.reconciling and not operation.blocked_by:
        _wait_for_reconciling(draft, operation)
    elif operation.blocked_by or operation.id in draft.sending:
        draft.wakes[operation.id] = operation.send_by
    elif taken := _taken_rule(draft, operation):
        draft.move(operation, Happened.WITHDRAWN, taken)
    elif holder := _holder_of(draft, operation):
        draft.move(operation, Happened.BLOCKED, blocked_by=holder)
    elif not draft.scope.draining:
        _send_when_due(draft, operation)
    return False


def _wait_for_reconciling(draft: Draft, operation: Operation) -> None:
    """Keep what is recorded unsent; a lone call is answered at once and never fires by itself."""
    if operation.plan or operation.undoes:
        draft.wakes[operation.id] = operation.send_by
    else:
        draft.move(operation, Happened.BLOCKED, blocked_by=INCARNATION)


def _send_when_due(draft: Draft, operation: Operation) -> None:
    paused = operation.last_sent_at + pause_s(operation.tries) if operation.tries else draft.now
    due = max(paused, operation.not_before)
    if draft.contract_of(operation).prepare and operation.prepared is None:
        _prepare(draft, operation)
    elif draft.now < due:
        draft.wakes[operation.id] = min(due, operation.send_by)
    elif _has_place(draft, operation) and draft.may_leave(operation, _kind(operation)):
        _send(draft, operation, Happened.SENT)


def _kind(operation: Operation) -> Leaving:
    return Leaving.AGAIN if operation.tries else Leaving.FIRST


def _holder_of(draft: Draft, operation: Operation) -> str:
    for name in operation.names:
        holder = draft.names.get(name, operation.id)
        if holder != operation.id:
            return holder
    return ""


def _prepare(draft: Draft, operation: Operation) -> None:
    """Have the tool compute what every send uses; it is stored before any of them leaves.

    Not in the lap that makes it: before the next one it is known who holds the names it wants.
    """
    if operation.id not in draft.scope.operations:
        draft.wakes[operation.id] = draft.now
    elif not _is_asked(draft, operation):
        draft.asking.add(operation.id)
        draft.commands.append(Prepare(operation=operation))


def prepared(draft: Draft, arrival: Readied) -> None:
    """Store what was computed; a call for which nothing could be is taken back, unsent."""
    operation = draft.operations[arrival.operation]
    if operation.state is not State.RECORDED or operation.prepared is not None:
        return
    match arrival.outcome:
        case Prepared(value=value) if value is not None:
            draft.move(operation, Happened.PREPARED, prepared=value)
        case Prepared():
            draft.move(operation, Happened.WITHDRAWN, "nothing was prepared for it")
        case NoAnswer(reason=reason):
            why = f"it could not be prepared: {reason}"
            draft.move(operation, Happened.WITHDRAWN, why)
        case _:
            assert_never(arrival.outcome)


def _taken_rule(draft: Draft, operation: Operation) -> str:
    """Return why a business rule forbids it: there is one effect for each, ever."""
    for name in operation.unique:
        holder = draft.names.get(name, operation.id)
        if holder != operation.id:
            rule = name.split("/", 2)[-1].replace("%2F", "/")
            return f"there may be one {rule}, and {holder} is that, or may turn out to be"
    return ""


def _has_place(draft: Draft, operation: Operation) -> bool:
    """Whether the tool may have one more send at once."""
    if draft.slots.get(operation.tool, 1) > 0:
        return True
    draft.starved.add(operation.tool)
    return False


def _send(draft: Draft, operation: Operation, event: Happened) -> None:
    """Record the send; the command goes out only once that is durable.

    A first send of a plan goes in only with the plan as it is here: a stop from elsewhere is a
    write on the plan, and comes before it or after it.
    """
    plan = draft.plans.get(operation.plan)
    if event is Happened.SENT and plan is not None and plan == draft.scope.plans.get(plan.id):
        draft.guards[plan.id] = plan.version
    if operation.tool in draft.slots:
        draft.slots[operation.tool] -= 1
    sent = draft.move(
        operation,
        event,
        tries=operation.tries + 1,
        first_sent_at=operation.first_sent_at or draft.now,
        last_sent_at=draft.now,
        looks=0,
        absences=0,
        looked="",
        blocked_by="",
    )
    draft.sending.add(sent.id)
    draft.commands.append(Send(operation=sent))


def _send_again(draft: Draft, operation: Operation) -> None:
    if _has_place(draft, operation) and draft.may_leave(operation, Leaving.AGAIN):
        _send(draft, operation, Happened.RESENT)


def _wait_for_answer(draft: Draft, operation: Operation) -> bool:
    """Keep waiting for a send in flight, unless its process is gone or it is given up."""
    if operation.id in draft.sending:
        return False
    if Sending(operation=operation.id, attempt=operation.tries) not in draft.scope.running:
        draft.move(operation, Happened.ANSWER_LOST, CRASHED)
        return True
    if operation.wanted:
        return False
    contract = draft.contract_of(operation)
    hurry(draft, operation)
    until = _waits_until(operation, contract, draft.now)
    if until is not None:
        if until != float("inf"):
            draft.wakes[operation.id] = until
        return False
    draft.move(operation, Happened.ANSWER_LOST, STOPPED)
    draft.commands.append(StopWaiting(operation=operation))
    return True


def hurry(draft: Draft, operation: Operation) -> None:
    """Have a call in flight end early, where it takes the stop token."""
    if draft.contract_of(operation).stops_midway:
        draft.commands.append(StopMidway(operation=operation))


def _waits_until(operation: Operation, contract: Contract, now: float) -> float | None:
    """Return until when a send that nobody wants any more is waited for, None for no longer.

    One that was asked to end early is given a moment to do so, also where its contract would have
    it dropped: what it says then is worth more than a lost answer.
    """
    interrupted = interruption(operation, contract, now)
    if isinstance(interrupted, KeepWaiting):
        return interrupted.until
    ends_by = operation.unwanted_at + MIDWAY_S
    hurries = contract.stops_midway and contract.on_interrupt is Interrupt.STOP_AND_RESOLVE
    return ends_by if hurries and now < ends_by else None


def _find_out(draft: Draft, operation: Operation) -> bool:
    """Take the next step towards knowing, unless a question is out already."""
    if draft.scope.draining or _is_asked(draft, operation):
        return False
    verdict = _verdict(draft, operation)
    match verdict:
        case WaitUntil(at=at):
            draft.wakes[operation.id] = at
        case LookUp() | ReadBack():
            _put(draft, operation, _QUESTIONS[type(verdict)])
        case Close():
            _close(draft, operation)
        case SendAgain():
            _send_again(draft, operation)
        case LagOver() | Assume() | Ask():
            return _give_up(draft, operation, verdict)
        case _:
            assert_never(verdict)
    return False


def _give_up(draft: Draft, operation: Operation, verdict: LagOver | Assume | Ask) -> bool:
    event, source, says = _GIVEN_UP[type(verdict)]
    if isinstance(verdict, Ask) and verdict.why:
        says = f"{verdict.why}: a person has to find out"
    return draft.move(operation, event, says, source=source).open


def _is_asked(draft: Draft, operation: Operation) -> bool:
    running = Asking(operation=operation.id) in draft.scope.running
    return running or operation.id in draft.asking


def _look_if_asked(draft: Draft, operation: Operation) -> bool:
    return _find_out(draft, operation) if operation.id in draft.urgent else False


def _verdict(draft: Draft, operation: Operation) -> Verdict:
    asked = operation
    if operation.id in draft.urgent:
        draft.urgent.discard(operation.id)
        asked = replace(operation, looked_at=0.0)
        if draft.contract_of(operation).when_unknown is WhenUnknown.BLOCK:
            asked = replace(asked, state=State.UNDECIDED)  # Looked at, and no more than that.
    return draft.rules.doubt(asked, draft.contract_of(operation), draft.now)


def _close(draft: Draft, operation: Operation) -> None:
    """Record that the key is spent before asking the service to refuse it."""
    if not operation.closing:
        operation = draft.move(operation, Happened.CLOSING, closing=True)
    _put(draft, operation, Question.CLOSE)


def _put(draft: Draft, operation: Operation, question: Question) -> None:
    if draft.may_leave(operation, Leaving.QUESTION):
        draft.asking.add(operation.id)
        draft.commands.append(Put(operation=operation, question=question))


_QUESTIONS: Mapping[type[Verdict], Question] = {
    LookUp: Question.LOOKUP,
    ReadBack: Question.READ_BACK,
}

_GIVEN_UP: Mapping[type[Verdict], tuple[Happened, Source, str]] = {
    LagOver: (Happened.LAG_OVER, Source.RUNTIME, "it did not become visible in time"),
    Assume: (
        Happened.ASSUMED,
        Source.ASSUMPTION,
        "nobody can tell; treated as landed, as its contract allows",
    ),
    Ask: (
        Happened.GAVE_UP,
        Source.RUNTIME,
        "nobody answered in time; a person has to find out",
    ),
}

_STEPS: Mapping[State, Callable[[Draft, Operation], bool]] = {
    State.RECORDED: _start,
    State.SENT: _wait_for_answer,
    State.RESENT: _wait_for_answer,
    State.ACCEPTED: _find_out,
    State.UNKNOWN: _find_out,
    State.UNDECIDED: _look_if_asked,
}
