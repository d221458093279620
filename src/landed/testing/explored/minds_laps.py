"""A lap of the worker in the world of changing minds: the real core decides, a commit, and a start.

Crashes fall before the commit (the lap never was), after it and before what follows has started,
or later. What is on its way when a worker dies stays on its way, for nobody.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TypeVar

from landed.core.arrival import Arrival
from landed.core.changes import Kind, Record, apply
from landed.core.errors import IllegalEventError, LeaseLostError, StaleWriteError
from landed.core.operation import Operation, under
from landed.core.plan import Plan
from landed.core.scope import (
    Asking,
    AskPrice,
    Next,
    Pricing,
    Put,
    Running,
    Scope,
    Send,
    Sending,
    StopWaiting,
)
from landed.core.undo import ENDED, Release
from landed.runtime.memory import needed_by, references
from landed.testing.explored.minds_properties import CORE_RAISED, wrong_start, wrong_undo
from landed.testing.explored.minds_world import Message, Setup, Step, World

Held = TypeVar("Held", Operation, Plan, Release, Record)


def lap(
    world: World, setup: Setup, arrivals: tuple[Arrival, ...], *, says: str, calm: bool
) -> Iterator[Step]:
    """Yield a lap that absorbs `arrivals`, and the ways in which it can end in a crash."""
    try:
        decided, after = _decide(world, setup, arrivals)
    except (IllegalEventError, LeaseLostError, StaleWriteError, LookupError, TypeError) as error:
        yield Step(f"{says}; {world.who}: {error!r}", world, wrong=CORE_RAISED)
        return
    says = _says(says, world, decided)
    sends = [each.operation for each in decided.commands if isinstance(each, Send)]
    wrong = wrong_undo(world, after, setup) or wrong_start(after, sends)
    begun = _begin(after, decided)
    yield Step(says, begun, calm=calm, wrong=wrong)
    if not sends or not world.left.crashes:
        return
    if setup.driver.sends_first:
        left = world.but(wire=begun.wire)
        wrong = wrong_start(left, sends)
        yield Step(f"{says}, but crashes before that is written", crashed(left, setup), wrong=wrong)
    yield Step(f"{says}, but crashes before that leaves", crashed(after, setup), wrong=wrong)


def crashed(world: World, setup: Setup) -> World:
    """Return the world in which the worker is gone and another has claimed what it held."""
    after = world.but(
        worker=world.worker + 1,
        due=True,
        wake=False,
        pricing=frozenset[str](),
        wire=tuple(sorted(_left_behind(world.wire))),
        left=replace(world.left, crashes=world.left.crashes - 1),
    )
    epoch, who = world.stored.epoch + 1, after.who
    adopts = setup.driver.adopts_releases
    stored = world.stored.records
    theirs = {} if adopts else {id: r for id, r in stored.items() if r.kind is Kind.RELEASE}
    records = {**_claimed(stored, epoch=epoch, who=who), **theirs}
    releases = world.releases
    return replace(
        after,
        operations=_claimed(world.operations, epoch=epoch, who=who),
        plans=_claimed(world.plans, epoch=epoch, who=who),
        releases=_claimed(releases, epoch=epoch, who=who) if adopts else releases,
        stored=replace(world.stored, records=records, epoch=epoch),
    )


def _claimed(held: Mapping[str, Held], *, epoch: int, who: str) -> dict[str, Held]:
    """Return records with those that are open under another claim."""
    return {
        id: replace(each, epoch=epoch, worker=who) if each.open else each
        for id, each in held.items()
    }


def _left_behind(wire: Iterable[Message]) -> Iterator[Message]:
    """Yield what goes on without its sender: an answer does not, nor a look."""
    for message in wire:
        if message.outcome is None and message.question != "lookup":
            yield replace(message, heard=False)


def _decide(world: World, setup: Setup, arrivals: tuple[Arrival, ...]) -> tuple[Next, World]:
    scope = _scope(world, setup, arrivals)
    decided = setup.driver.what_next(scope, setup.rules, world.at)
    if not decided.changes:
        return decided, _written(world, decided, ())
    stored, records = apply(world.stored, decided.changes)
    return decided, _written(world.but(stored=replace(stored, events=())), decided, records)


def _scope(world: World, setup: Setup, arrivals: tuple[Arrival, ...]) -> Scope:
    """Return what the worker holds open, and the closed records that this speaks of."""
    ids = _closure(world, arrivals)
    drawn: list[str] = []

    def new_id(kind: str) -> str:
        drawn.append(kind)
        number = drawn.count(kind)
        match kind:
            case "operation":
                return f"op-{len(world.operations) + number}"
            case "question":
                return f"q-{len(world.questions) + number}"
            case _:
                return f"{kind}-{len(world.stored.records) + number}"

    return Scope(
        operations={id: each for id, each in world.operations.items() if id in ids},
        contracts=setup.contracts,
        arrivals=arrivals,
        plans={id: each for id, each in world.plans.items() if id in ids},
        releases={id: each for id, each in world.releases.items() if id in ids},
        questions={id: each for id, each in world.questions.items() if id in ids},
        last_question=world.last_question,
        tools=setup.digests,
        new_id=new_id,
        worker=world.who,
        running=frozenset(_running(world)),
    )


def _closure(world: World, arrivals: tuple[Arrival, ...]) -> set[str]:
    front = {id for arrival in arrivals for id in needed_by(arrival)}
    for table in (world.operations, world.plans, world.releases):
        front.update(id for id, one in table.items() if one.open and one.worker == world.who)
    known: set[str] = set()
    while front:
        known |= front
        speaks = (
            table[id]
            for table in (world.plans, world.releases, world.questions)
            for id in front
            if id in table
        )
        front = {id for one in speaks for id in references(one)} - known
    return known


def _running(world: World) -> Iterator[Running]:
    for message in world.wire:
        if message.heard and message.question:
            yield Asking(operation=message.operation)
        elif message.heard:
            yield Sending(operation=message.operation, attempt=message.attempt)
    for release in world.pricing:
        yield Pricing(release=release)


def _written(world: World, decided: Next, records: Iterable[Record]) -> World:
    """Return the world with what was decided, under the claims it was written under."""
    operations, plans = dict(world.operations), dict(world.plans)
    releases, questions = dict(world.releases), dict(world.questions)
    for record in records:
        match record.kind:
            case Kind.OPERATION:
                operations[record.id] = under(decided.operations[record.id], epoch=record.epoch)
            case Kind.PLAN:
                plans[record.id] = replace(decided.plans[record.id], epoch=record.epoch)
            case Kind.RELEASE:
                releases[record.id] = replace(decided.releases[record.id], epoch=record.epoch)
            case Kind.QUESTION:
                questions[record.id] = decided.questions[record.id]
            case _:
                pass
    over = {release.operation for release in releases.values() if release.state in ENDED}
    return world.but(
        operations=operations,
        plans=plans,
        releases=releases,
        questions=questions,
        # What was agreed about a release is used up with it.
        agreed=frozenset(each for each in world.agreed if each[0] not in over),
        allowed=world.allowed - over,
        last_question=decided.last_question,
        due=False,
        wake=any(at < float("inf") for at in decided.wakes.values()),
    )


def _begin(world: World, decided: Next) -> World:
    """Start what was decided."""
    for command in decided.commands:
        match command:
            case Send(operation=op):
                world = world.on_wire(Message(operation=op.id, question="", attempt=op.tries))
            case Put(operation=op, question=question):
                asked = Message(operation=op.id, question=question, attempt=op.tries)
                world = world.on_wire(asked)
            case StopWaiting(operation=op):
                world = _stop_waiting(world, op)
            case AskPrice(release=release):
                world = world.but(pricing=world.pricing | {release})
            case _:
                pass
    return world


def _stop_waiting(world: World, operation: Operation) -> World:
    for message in world.wire:
        if message.operation == operation.id and not message.question and message.heard:
            gone_on = [] if message.outcome else [replace(message, heard=False)]
            return world.on_wire(*gone_on, without=message)
    return world


def _says(says: str, world: World, decided: Next) -> str:
    events = ", ".join(f"{m.event.name} {m.event.record}" for m in decided.changes.moves)
    starts = [
        f"{type(c).__name__} {c.release if isinstance(c, AskPrice) else c.operation.id}"
        for c in decided.commands
        if isinstance(c, Send | Put | StopWaiting | AskPrice)
    ]
    written = f"{world.who} writes {events or 'nothing'}"
    return "; ".join(part for part in (says, written, ", ".join(starts)) if part)
