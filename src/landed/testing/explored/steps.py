"""Everything that can happen next in the explored world, one step at a time.

Steps marked calm are what a healthy world does by itself. The first calm step of each world is what
happens once all trouble is over; following those must lead to a settled operation, or to a person.
"""

from collections.abc import Collection, Iterator
from dataclasses import replace
from itertools import islice
from typing import TypeVar

from landed.core.arrival import LetGo, LookNow, Proposed
from landed.core.scope import Asking
from landed.testing.explored.laps import absorbed, lap, start
from landed.testing.explored.ledger import forget, is_spent, lost_by_now, may_forget
from landed.testing.explored.wire import arrive, deaf, deliver, hear_nothing, unaddressed
from landed.testing.explored.world import (
    NOBODY,
    WORKERS,
    Backup,
    Request,
    Setup,
    Step,
    Worker,
    World,
)

T = TypeVar("T")


def steps(world: World, setup: Setup) -> Iterator[Step]:
    """Yield everything that can happen next; once the trouble is over, the first calm step only."""
    if world.now < setup.bounds.troubled_ticks:
        every = _all_steps(world, setup)
    elif at_rest(world):
        every = iter(())
    else:
        every = islice((step for step in _all_steps(world, setup) if step.calm), 1)
    for step in every:
        spent = _spent(step.world, setup)
        if spent:
            left = replace(step.world, requests=step.world.requests - spent)
            step = replace(step, world=left)
        yield step


def _spent(world: World, setup: Setup) -> set[Request]:
    """What is on its way for nobody and can change nothing: without it, many worlds become one."""
    return {
        request
        for request in world.requests
        if request.to == NOBODY
        and is_spent(
            world.line(request.operation),
            setup.contract,
            closes=request.question is not None,
            sent_at=request.sent_at,
            now=world.at,
        )
    }


def at_rest(world: World) -> bool:
    """Whether nothing is left to be done: settled, with a person, or never written down."""
    waits = any(isinstance(a, Proposed) for worker in world.workers for a in worker.inbox)
    return not waits and not any(operation.open for operation in world.known.values())


def _all_steps(world: World, setup: Setup) -> Iterator[Step]:
    both = range(len(WORKERS))
    for which in both:
        yield from start(world, which, setup)
    for which in both:
        yield from absorbed(_answers(world, which), which, setup)
    for request in _in_order(world.requests):
        yield from deliver(world, request, setup)
    for which in both:
        yield from lap(world, which, setup)
    for which in both:
        yield from absorbed(_silences(world, which, setup), which, setup)
        yield from absorbed(_caller(world, which), which, setup)
        yield from _renew(world, which)
        yield from _adopt(world, which, setup)
        yield from _crash(world, which, setup)
    yield from _back_up(world)
    yield from _restore(world, setup)
    yield from _forget(world, setup)
    yield from _tick(world, setup)


def _answers(world: World, which: int) -> Iterator[Step]:
    for reply in _in_order(world.replies_to(which)):
        yield arrive(world, reply)


def _silences(world: World, which: int, setup: Setup) -> Iterator[Step]:
    for waiting in _in_order(world.workers[which].running):
        yield hear_nothing(world, which, waiting, setup)


def _in_order(some: Collection[T]) -> Collection[T]:
    """Return what is in a set, always in the same order; most have one member at most."""
    return some if len(some) < 2 else sorted(some, key=repr)


def _crash(world: World, which: int, setup: Setup) -> Iterator[Step]:
    worker = world.workers[which]
    if worker.idle and not worker.running:
        return
    after = unaddressed(world, {r for r in world.requests if r.to == which}, setup)
    replies = after.replies - set(after.replies_to(which))
    yield Step(f"{WORKERS[which]} crashes", after.with_worker(which, Worker(), replies=replies))


def _back_up(world: World) -> Iterator[Step]:
    if world.restores and world.backup is None and world.known:
        saved = Backup(stored=world.stored, known=world.known)
        yield Step("a backup is made", replace(world, backup=saved))


def _restore(world: World, setup: Setup) -> Iterator[Step]:
    """Put the backup back, with every process gone; what is on its way goes on."""
    if world.backup is None:
        return
    gone = unaddressed(world, {r for r in world.requests if r.to != NOBODY}, setup)
    after = replace(
        gone,
        stored=world.backup.stored,
        known=world.backup.known,
        workers=(Worker(), Worker()),
        replies=frozenset(),
        restores=world.restores - 1,
        restored=world.restored + 1,
        backup=None,
    )
    yield Step("the backup is put back", after)


def _renew(world: World, which: int) -> Iterator[Step]:
    """A worker that has lost its claim hears so when it renews its lease, at the latest."""
    worker = world.workers[which]
    if worker.operations and not world.claimed_by(worker) and not worker.outbox:
        after = world.with_worker(which, Worker(running=worker.running))
        yield Step(f"{WORKERS[which]} hears that its claim is lost", after)


def _adopt(world: World, which: int, setup: Setup) -> Iterator[Step]:
    """Claim what another worker holds, or nobody: a lease can be over at any time."""
    worker = world.workers[which]
    left = [operation for operation in world.known.values() if operation.open]
    if not left or worker.operations or worker.outbox or worker.decided:
        return
    nobody_has_it = not any(map(world.claimed_by, world.workers))
    epoch, who = world.stored.epoch + 1, WORKERS[which]
    claimed = {each.id: replace(each, epoch=epoch, worker=who) for each in left}
    records = dict(world.stored.records)
    for id in claimed:
        records[id] = replace(records[id], epoch=epoch, worker=who)
    after = _taken_from(world, 1 - which, setup).with_worker(
        which,
        replace(worker, operations=claimed),
        stored=replace(world.stored, records=records, epoch=epoch),
        known={**world.known, **claimed},
    )
    yield Step(f"{who} takes over", after, calm=nobody_has_it)


def _taken_from(world: World, which: int, setup: Setup) -> World:
    """Return the world with that worker's claim gone: what it has sent goes on."""
    worker, bounds = world.workers[which], setup.bounds
    if not bounds.stale_questions:
        for waiting in worker.running:
            if isinstance(waiting, Asking):
                world = deaf(world, which, waiting, setup)
                worker = replace(worker, running=worker.running - {waiting})
    if not bounds.sleepers and not worker.decided:
        worker = Worker(outbox=worker.outbox, running=worker.running)
    return world.with_worker(which, worker)


def _caller(world: World, which: int) -> Iterator[Step]:
    worker = world.workers[which]
    if world.let_gos:
        for id in _wanted(world, worker):
            gone = replace(
                worker, inbox=(*worker.inbox, LetGo(operation=id, reason="let go", at=world.at))
            )
            after = world.with_worker(which, gone, let_gos=world.let_gos - 1)
            yield Step("the caller lets go", after)
    if world.looks:
        for id, operation in world.known.items():
            if not operation.final:
                asked = replace(worker, inbox=(*worker.inbox, LookNow(operation=id)))
                after = world.with_worker(which, asked, looks=world.looks - 1)
                yield Step(f"somebody asks {WORKERS[which]} to look now", after)


def _wanted(world: World, worker: Worker) -> Iterator[str]:
    """Yield what a worker holds and is still wanted, and what it was just handed."""
    if world.claimed_by(worker):
        yield from (held.id for held in worker.operations.values() if held.wanted)
    for arrival in worker.inbox:
        if isinstance(arrival, Proposed):
            yield arrival.operation.id


def _forget(world: World, setup: Setup) -> Iterator[Step]:
    for id, line in world.ledger.items():
        if may_forget(line, setup.contract, now=world.at):
            ledger = {**world.ledger, id: forget(line)}
            yield Step("the far side forgets the key", replace(world, ledger=ledger))


def _tick(world: World, setup: Setup) -> Iterator[Step]:
    if world.now >= setup.bounds.troubled_ticks + setup.bounds.calm_ticks:
        return
    later = replace(world, now=world.now + 1)
    alive = (
        r
        for r in world.requests
        if not (r.from_at and lost_by_now(setup.contract, from_at=r.from_at, now=later.at))
    )
    yield Step("time passes", replace(later, requests=frozenset(alive)), calm=True)
