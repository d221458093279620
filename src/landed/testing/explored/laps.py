"""What a worker of the explored world does: a lap of the loop, its commit, and what it then starts.

This is the driver's part of the bargain in a few lines: decide with the real core, commit, and only
then start; what arrived is dropped only once it is durable. Between the commit and a send anything
may happen; a question leaves at once, since one that leaves late is only one that arrives late.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from landed.core.absorb import Question, Replied
from landed.core.arrival import Proposed
from landed.core.errors import IllegalEventError, LeaseLostError, StaleWriteError
from landed.core.incarnation import Incarnation
from landed.core.operation import Operation
from landed.core.operation_record import from_record
from landed.core.outcome import NotSent
from landed.core.scope import (
    Asking,
    Command,
    Next,
    Put,
    Scope,
    Send,
    Sending,
    StopWaiting,
)
from landed.testing.explored.ledger import lost_by_now
from landed.testing.explored.properties import (
    CORE_RAISED,
    STALE_WRITE,
    wrong_question,
    wrong_start,
    wrong_write,
)
from landed.testing.explored.wire import NOT_YET_AT, answers_now, deaf
from landed.testing.explored.world import (
    DIGEST,
    WORKERS,
    Heard,
    Reply,
    Request,
    Setup,
    Step,
    Worker,
    World,
)

# A lap of the loop: the real core decides, and what it decides is committed.


def lap(world: World, which: int, setup: Setup) -> Iterator[Step]:
    """Yield the lap that a worker can take now, if there is anything in it."""
    worker = world.workers[which]
    if worker.outbox:
        return
    if worker.decided is not None:
        yield from _commit(world, which, worker.decided, setup)
        return
    scope = _scope(world, which, setup)
    if not (scope.operations or scope.arrivals or worker.inbox):
        return
    try:
        decided = setup.driver.what_next(scope, setup.rules, world.at)
    except (IllegalEventError, LookupError, TypeError, ValueError) as error:
        yield Step(f"{WORKERS[which]} takes a lap: {error!r}", world, wrong=CORE_RAISED)
        return
    sends = _sends(decided.commands)
    if setup.driver.sends_first and sends:
        ahead = replace(worker, outbox=sends, decided=decided)
        says = f"{WORKERS[which]} decides {_events(decided)} and does not write it yet"
        yield Step(says, world.with_worker(which, ahead), calm=True)
    elif decided.changes:
        yield from _commit(world, which, decided, setup)
    else:
        yield from _only_asks(world, which, decided.commands, setup)


def absorbed(arrivals: Iterable[Step], which: int, setup: Setup) -> Iterator[Step]:
    """Yield what arrives at a worker, as far as it can wait in the inbox or be absorbed now."""
    for step in arrivals:
        worker = step.world.workers[which]
        if setup.bounds.inbox:
            if len(worker.inbox) <= setup.bounds.inbox:
                yield step
        elif not worker.outbox:
            for next_lap in lap(step.world, which, setup):
                says = f"{step.says}; {next_lap.says}"
                yield replace(next_lap, says=says, calm=step.calm)


def _scope(world: World, which: int, setup: Setup) -> Scope:
    """Return what a lap looks at: what something arrived for is loaded, unless others hold it."""
    worker = world.workers[which]
    operations = dict(worker.operations)
    arrivals: list[Heard] = []
    for arrival in worker.inbox:
        stored = None if isinstance(arrival, Proposed) else world.known.get(arrival.operation)
        if stored is not None and stored.id not in operations:
            if stored.open:
                continue
            operations[stored.id] = stored
        arrivals.append(arrival)
    return Scope(
        operations=operations,
        contracts={DIGEST: setup.contract},
        arrivals=tuple(arrivals),
        running=worker.running,
        worker=WORKERS[which],
        # What there is was made before any restore: nobody calls again after one.
        incarnation=Incarnation(number=world.restored, horizon=world.restored),
        positions=dict.fromkeys(operations, (1, 1)),
    )


def _commit(world: World, which: int, decided: Next, setup: Setup) -> Iterator[Step]:
    who, worker = WORKERS[which], world.workers[which]
    try:
        stored, records = setup.driver.commit(world.stored, decided.changes)
    except (LeaseLostError, StaleWriteError):
        # It leaves the operation to whoever holds it; what it has running goes on.
        forgets = world.with_worker(which, Worker(running=worker.running))
        yield Step(f"{who} cannot write: another has taken over", forgets, calm=True)
        return
    known = {**world.known, **{record.id: from_record(record) for record in records}}
    outbox = () if worker.decided else _sends(decided.commands)
    after = Worker(operations=_still_open(decided, known), outbox=outbox, running=worker.running)
    written = world.with_worker(which, after, stored=replace(stored, events=()), known=known)
    wrong = _wrong_commit(world, worker, decided, setup)
    done = Step(f"{who} writes {_events(decided)}", written, calm=True, wrong=wrong)
    yield from _begin(done, which, decided.commands, setup)


def _only_asks(
    world: World, which: int, commands: tuple[Command, ...], setup: Setup
) -> Iterator[Step]:
    """Go on without a commit: with questions, or with nothing where what arrived says nothing.

    A worker that lost its claim puts no questions here: it could not write what came of them.
    """
    who, worker = WORKERS[which], world.workers[which]
    if not (commands or worker.inbox):
        return
    if commands and not world.claimed_by(worker):
        return
    emptied = world.with_worker(which, replace(worker, inbox=()))
    heard = "learns nothing new" if worker.inbox else "takes a lap"
    done = Step(f"{who} {heard}", emptied, calm=True)
    yield from _begin(done, which, commands, setup)


def _still_open(decided: Next, known: dict[str, Operation]) -> dict[str, Operation]:
    moved = {move.after.id for move in decided.changes.moves}
    now = {id: known[id] if id in moved else held for id, held in decided.operations.items()}
    return {id: held for id, held in now.items() if held.open}


def _wrong_commit(world: World, worker: Worker, decided: Next, setup: Setup) -> str:
    for id, held in worker.operations.items():
        if held.epoch != world.known[id].epoch:
            return STALE_WRITE
    return wrong_write(
        world.known, decided.changes.moves, worker.inbox, setup.contract, now=world.at
    )


def _events(decided: Next) -> str:
    return ", ".join(move.event.name for move in decided.changes.moves)


def _sends(commands: tuple[Command, ...]) -> tuple[Send, ...]:
    return tuple(command for command in commands if isinstance(command, Send))


# Starting what was decided.


def _begin(
    written: Step, which: int, commands: tuple[Command, ...], setup: Setup
) -> Iterator[Step]:
    """Start everything but sends, which leave in a step of their own."""
    for command in commands:
        match command:
            case Put(operation=operation, question=question):
                yield from _ask(written, which, operation, question, setup)
                return
            case StopWaiting(operation=operation):
                world = _stop_waiting(written.world, which, operation, setup)
                yield replace(written, says=f"{written.says}, stops waiting", world=world)
                return
            case _:
                pass
    yield written


def _ask(
    written: Step, which: int, operation: Operation, question: Question, setup: Setup
) -> Iterator[Step]:
    world = written.world
    worker = world.workers[which]
    asked = Request(
        operation=operation.id,
        question=question,
        attempt=operation.tries,
        sent_at=world.at,
        to=which,
    )
    waits = replace(worker, running=worker.running | {Asking(operation=operation.id)})
    waiting = world.with_worker(which, waits)
    if question is Question.CLOSE:
        worlds: Iterable[World] = [replace(waiting, requests=world.requests | {asked})]
    else:
        worlds = answers_now(waiting, asked, setup)
    wrong = written.wrong or wrong_question(world, asked)
    for after in worlds:
        yield Step(f"{written.says}, asks ({question})", after, calm=True, wrong=wrong)


def start(world: World, which: int, setup: Setup) -> Iterator[Step]:
    """Yield what can become of the next send that a worker is about to start."""
    worker = world.workers[which]
    if not worker.outbox:
        return
    operation = worker.outbox[0].operation
    sending = Sending(operation=operation.id, attempt=operation.tries)
    waits = replace(worker, outbox=worker.outbox[1:], running=worker.running | {sending})
    waiting = world.with_worker(which, waits)
    late = lost_by_now(setup.contract, from_at=operation.last_sent_at, now=world.at)
    if not late or setup.driver.waits_anew:
        yield _leaves(waiting, which, operation, setup)
    nothing = NotSent(reason="connection refused")
    came = Replied(operation=operation.id, attempt=operation.tries, outcome=nothing, at=NOT_YET_AT)
    after = replace(waiting, replies=world.replies | {Reply(to=which, came=came)})
    yield Step(f"send {operation.tries} of {WORKERS[which]} never leaves", after, calm=late)


def _leaves(world: World, which: int, operation: Operation, setup: Setup) -> Step:
    forgets = setup.contract.retention_s is not None
    recorded_at = operation.last_sent_at
    request = Request(
        operation=operation.id,
        question=None,
        attempt=operation.tries,
        sent_at=world.at if setup.driver.stamps_leaving else recorded_at,
        to=which,
        from_at=0.0 if not forgets else world.at if setup.driver.waits_anew else recorded_at,
    )
    after = replace(world, requests=world.requests | {request})
    wrong = wrong_start(world, operation)
    says = f"send {operation.tries} leaves {WORKERS[which]}"
    return Step(says, after, calm=True, wrong=wrong)


def _stop_waiting(world: World, which: int, operation: Operation, setup: Setup) -> World:
    worker = world.workers[which]
    sending = Sending(operation=operation.id, attempt=operation.tries)
    stopped = world.with_worker(which, replace(worker, running=worker.running - {sending}))
    return stopped if setup.bounds.late_replies else deaf(stopped, which, sending, setup)
