"""What is on its way in the explored world: requests that arrive, are copied, and are answered."""

from collections.abc import Iterator, Set
from dataclasses import replace

from landed.core.absorb import CameBack, Looked, Question, Replied
from landed.core.outcome import AnswerLost, LookOutcome, NoAnswer, Refused, SendOutcome
from landed.core.scope import Asking, Sending
from landed.testing.explored.ledger import Line, close, look, perform, read_back
from landed.testing.explored.world import NOBODY, WORKERS, Reply, Request, Setup, Step, World

NOT_YET_AT = 0.0  # When an answer that is still on its way will have come.


def deliver(world: World, request: Request, setup: Setup) -> Iterator[Step]:
    """Yield every way in which a send or a close can arrive now."""
    if request.question is None:
        yield from _deliver_send(world, request, setup)
        return
    line, seen = close(world.line(request.operation), now=world.at)
    after = _reply(_at_far_side(world, request, line), request.to, _looked(request, seen))
    yield Step(f"the close arrives; the answer is {type(seen).__name__}", after, calm=True)


def answers_now(world: World, asked: Request, setup: Setup) -> Iterator[World]:
    """Yield the worlds in which a question that changes nothing is answered the moment it is put.

    The answer may then be on its way for any time, which is what matters.
    """
    line = world.line(asked.operation)
    if asked.question is Question.LOOKUP:
        yield _reply(world, asked.to, _looked(asked, look(line, setup.contract, now=world.at)))
        return
    for seen in read_back(line, setup.contract, now=world.at):
        yield _reply(world, asked.to, _looked(asked, seen))


def _deliver_send(world: World, request: Request, setup: Setup) -> Iterator[Step]:
    line = world.line(request.operation)
    ways = perform(line, setup.contract, sent_at=request.sent_at, now=world.at)
    name = f"a copy of send {request.attempt}" if request.copy else f"send {request.attempt}"
    for number, done in enumerate(ways):
        after = _at_far_side(world, request, done.line)
        answered = _reply(after, request.to, _replied(request, done.outcome))
        says = f"{name} arrives; the far side {done.says}"
        yield Step(says, answered, calm=number == 0)
        if not world.copies or request.copy:
            continue
        if setup.bounds.proxy:
            again = replace(request, copy=True)
            yield Step(f"{says}; a proxy loses the answer and sends again", _copied(after, again))
        elif not isinstance(done.outcome, Refused):
            again = replace(request, copy=True, to=NOBODY)
            yield Step(f"{says}; it was copied on the way", _copied(answered, again))


def _copied(world: World, again: Request) -> World:
    return replace(world, copies=world.copies - 1, requests=world.requests | {again})


def _at_far_side(world: World, request: Request, line: Line) -> World:
    ledger = {**world.ledger, request.operation: line}
    return replace(world, ledger=ledger, requests=world.requests - {request})


def _reply(world: World, to: int, came: CameBack) -> World:
    if to == NOBODY:
        return world
    return replace(world, replies=world.replies | {Reply(to=to, came=came)})


def _replied(request: Request, outcome: SendOutcome) -> Replied:
    """Return what a send came back with, before it is known when."""
    return Replied(
        operation=request.operation, attempt=request.attempt, outcome=outcome, at=NOT_YET_AT
    )


def _looked(request: Request, outcome: LookOutcome) -> Looked:
    """Return what a question came back with, before it is known when."""
    return Looked(
        operation=request.operation,
        question=request.question or Question.LOOKUP,
        attempt=request.attempt,
        outcome=outcome,
        asked_at=request.sent_at,
        at=NOT_YET_AT,
    )


def arrive(world: World, reply: Reply) -> Step:
    """Let an answer arrive."""
    says = f"{WORKERS[reply.to]} gets an answer: {type(reply.came.outcome).__name__}"
    after = replace(world, replies=world.replies - {reply})
    return Step(says, _hand_over(after, reply.to, reply.came), calm=True)


def _hand_over(world: World, which: int, came: CameBack) -> World:
    """Put what came back into the inbox of the worker that waits for it."""
    worker = world.workers[which]
    running = worker.running - {_waited_for(came)}
    inbox = (*worker.inbox, replace(came, at=world.at))
    return world.with_worker(which, replace(worker, inbox=inbox, running=running))


def _waited_for(came: CameBack) -> Sending | Asking:
    match came:
        case Replied(operation=id, attempt=attempt):
            return Sending(operation=id, attempt=attempt)
        case Looked(operation=id):
            return Asking(operation=id)


# What a worker does not hear.


def hear_nothing(world: World, which: int, waiting: Sending | Asking, setup: Setup) -> Step:
    """Let a worker stop waiting for an answer; what it asked for may still arrive."""
    says = f"{WORKERS[which]} hears nothing more"
    if isinstance(waiting, Asking):
        heard = replace(_question(world, which), outcome=NoAnswer(reason="nothing heard"))
        return Step(says, _hand_over(deaf(world, which, waiting, setup), which, heard))
    lost = Replied(
        operation=waiting.operation,
        attempt=waiting.attempt,
        outcome=AnswerLost(reason="nothing heard"),
        at=NOT_YET_AT,
    )
    after = world if setup.bounds.late_replies else deaf(world, which, waiting, setup)
    nothing_comes = not any(_coming(world, which, waiting))
    return Step(says, _hand_over(after, which, lost), calm=nothing_comes)


def deaf(world: World, which: int, waiting: Sending | Asking, setup: Setup) -> World:
    """Return the world in which nothing that answers `waiting` will reach the worker."""
    requests, replies = _coming(world, which, waiting)
    return unaddressed(replace(world, replies=world.replies - replies), requests, setup)


def _coming(world: World, which: int, waiting: Sending | Asking) -> tuple[set[Request], set[Reply]]:
    """Return what is on its way that the worker waits for: requests, and answers to them."""
    requests = {r for r in world.requests if r.to == which and _answers(r, waiting)}
    replies = {r for r in world.replies if r.to == which and _waited_for(r.came) == waiting}
    return requests, replies


def unaddressed(world: World, requests: Set[Request], setup: Setup) -> World:
    """Take the worker off these requests: what they change at the far side they still may."""
    kept = {
        replace(request, to=NOBODY)
        for request in requests
        if request.question is None or setup.bounds.late_closes
    }
    return replace(world, requests=(world.requests - requests) | kept)


def _answers(request: Request, waiting: Sending | Asking) -> bool:
    match waiting:
        case Sending(attempt=attempt):
            return request.question is None and request.attempt == attempt
        case Asking():
            return request.question is not None


def _question(world: World, which: int) -> Looked:
    """Return the question that a worker waits for, as far as it has come."""
    for reply in world.replies_to(which):
        if isinstance(reply.came, Looked):
            return reply.came
    asked = next(r for r in world.requests if r.to == which and r.question is not None)
    return _looked(asked, NoAnswer(reason="nothing heard"))
