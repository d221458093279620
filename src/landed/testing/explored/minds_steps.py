"""Everything that can happen next where minds are changed, one step at a time.

A lap absorbs what arrived in no time: a worker that dies with something in its inbox is one that
died before it came. The user's words are durable before they are acknowledged, so those come again.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from landed.core import absorb
from landed.core.absorb import CameBack, Looked, Replied
from landed.core.arrival import Answered, Arrival, Planned, Priced, Revised
from landed.core.key import Ask, ask_name
from landed.core.outcome import (
    Acknowledged,
    AnswerLost,
    LookOutcome,
    NoAnswer,
    NotSent,
    SendOutcome,
)
from landed.core.plan import Place, Plan, step_of
from landed.core.question import About, Question, QuestionState
from landed.core.undo import ENDED, Release
from landed.testing.explored.minds_laps import crashed, lap
from landed.testing.explored.minds_properties import wrong_effect
from landed.testing.explored.minds_restaurant import cancel, close, look, reserve
from landed.testing.explored.minds_world import (
    FEE_CENTS,
    PRINCIPAL,
    RESERVE,
    SESSION,
    TENANT,
    TICK_S,
    Message,
    Setup,
    Step,
    World,
)

DAYS: tuple[tuple[str, ...], ...] = (("Fri",), ("Sat",), ("Fri", "Sun"))


def steps(world: World, setup: Setup) -> Iterator[Step]:
    """Yield everything that can happen next."""
    if world.due:
        # Until it has taken its first lap, nobody waits for anything: the rest can come after it.
        yield from lap(world, setup, (), says="", calm=True)
        yield from _arrivals(world, setup)
        return
    for message in world.wire:
        if message.outcome is None:
            yield _delivered(world, message, setup)
    yield from _arrivals(world, setup)
    if world.left.crashes and world.plans:
        after = crashed(world, setup)
        yield Step(f"{world.who} crashes; {after.who} takes over", _swept(after, setup))
    yield from _fee_rises(world, setup)
    yield from _tick(world, setup)


def _tick(world: World, setup: Setup) -> Iterator[Step]:
    """Let time pass, where the worker waits for that; there is little of it for what is late."""
    late = bool(world.wire or world.pricing)
    if not world.wake or world.now == setup.bounds.ticks or (late and not world.left.late_ticks):
        return
    left = replace(world.left, late_ticks=world.left.late_ticks - late)
    after = world.but(now=world.now + 1, left=left)
    yield from _laps(after, setup, (), says="time passes", calm=True)


def _fee_rises(world: World, setup: Setup) -> Iterator[Step]:
    """Let the fee rise while somebody goes by the old one; else it only had another name before."""
    fees = setup.house.fees_cents
    index = fees.index(world.restaurant.fee_cents) + 1
    gone_by = any(_goes_by_a_price(release) for release in world.releases.values())
    if index < len(fees) and gone_by:
        restaurant = replace(world.restaurant, fee_cents=fees[index])
        yield Step(f"the fee is {fees[index]} now", world.but(restaurant=restaurant))


def _goes_by_a_price(release: Release) -> bool:
    return release.price_cents is not None and release.state not in ENDED


# What arrives at the restaurant.


def _delivered(world: World, message: Message, setup: Setup) -> Step:
    operation, before = world.operations[message.operation], world.restaurant
    outcome: SendOutcome | LookOutcome
    if message.question == absorb.Question.CLOSE:
        after, outcome = close(before, operation.key)
    elif message.question:
        after, outcome = before, look(before, operation.key)
    elif operation.tool == RESERVE:
        day = str(operation.arguments["day"])
        key, id = operation.key, operation.id
        after, outcome = reserve(before, setup.house, key=key, operation=id, day=day)
    else:
        key, arguments = operation.key, operation.arguments
        after, outcome = cancel(before, setup.house, key=key, arguments=arguments)
    answers = [replace(message, outcome=outcome)] if message.heard else []
    arrived = world.on_wire(*answers, without=message).but(restaurant=after)
    what = message.question or f"send {message.attempt}"
    says = f"the {what} of {operation.id} arrives: {type(outcome).__name__}"
    return Step(says, _swept(arrived, setup), calm=True, wrong=wrong_effect(world, arrived))


def _swept(world: World, setup: Setup) -> World:
    """Take off the wire what nobody waits for and can change nothing: many worlds become one."""
    spent = [m for m in world.wire if not m.heard and _is_spent(world, m, setup)]
    return world.but(wire=tuple(m for m in world.wire if m not in spent)) if spent else world


def _is_spent(world: World, message: Message, setup: Setup) -> bool:
    key = world.operations[message.operation].key
    if key in world.restaurant.closed:
        return True
    return not (message.question or setup.house.keyless) and world.restaurant.knows(key)


# What arrives at the worker.


@dataclass(frozen=True, slots=True)
class _Coming:
    """Something that can arrive now, and the change that its arrival makes to the world."""

    says: str
    arrival: Arrival
    world: World
    calm: bool = True


def _arrivals(world: World, setup: Setup) -> Iterator[Step]:
    for coming in _coming(world, setup):
        says, calm = coming.says, coming.calm
        yield from _laps(coming.world, setup, (coming.arrival,), says=says, calm=calm)
    if setup.bounds.inbox > 1:
        yield from _both(world, setup)


def _both(world: World, setup: Setup) -> Iterator[Step]:
    """Yield the laps that absorb two arrivals, in the order in which they came."""
    for first in _coming(world, setup):
        for second in _coming(first.world, setup):
            if isinstance(first.arrival, Revised | Planned):
                continue  # The loop takes one change of mind at a time, as the last of a lap.
            arrivals = (first.arrival, second.arrival)
            says = f"{first.says}, and at once {second.says}"
            yield from _laps(second.world, setup, arrivals, says=says, calm=False)


def _laps(
    world: World, setup: Setup, arrivals: tuple[Arrival, ...], *, says: str, calm: bool
) -> Iterator[Step]:
    for step in lap(world, setup, arrivals, says=says, calm=calm):
        yield step if step.wrong else replace(step, world=_swept(step.world, setup))


def _coming(world: World, setup: Setup) -> Iterator[_Coming]:
    for message in world.wire:
        if message.heard and message.outcome is not None:
            came = _came(message, message.outcome, at=world.at)
            says = f"{world.who} hears {type(message.outcome).__name__} of {message.operation}"
            yield _Coming(says, came, world.on_wire(without=message))
    yield from _prices(world)
    if world.left.losses:
        poorer = world.but(left=replace(world.left, losses=world.left.losses - 1))
        yield from _silences(poorer)
    yield from _answers(world)
    yield from _wishes(world, setup)


def _came(message: Message, outcome: SendOutcome | LookOutcome, *, at: float) -> CameBack:
    if not message.question:
        return Replied(
            operation=message.operation,
            attempt=message.attempt,
            outcome=outcome,  # type: ignore[arg-type]
            at=at,
        )
    return Looked(
        operation=message.operation,
        question=absorb.Question(message.question),
        attempt=message.attempt,
        outcome=outcome,  # type: ignore[arg-type]
        asked_at=at,
        at=at,
    )


def _silences(world: World) -> Iterator[_Coming]:
    """Yield what a worker takes for an answer when none comes; what it sent may still arrive."""
    for message in world.wire:
        if not message.heard:
            continue
        silence: SendOutcome | LookOutcome = AnswerLost(reason="nothing heard")
        if message.question:
            silence = NoAnswer(reason="nothing heard")
        changes = message.outcome is None and message.question != absorb.Question.LOOKUP
        on_its_way = [replace(message, heard=False)] if changes else []
        after = world.on_wire(*on_its_way, without=message)
        says = f"{world.who} hears nothing of {message.operation}"
        yield _Coming(says, _came(message, silence, at=world.at), after, calm=False)
        if not message.question and message.outcome is None:
            unsent = _came(message, NotSent(reason="connection refused"), at=world.at)
            says = f"send {message.attempt} of {message.operation} never left"
            yield _Coming(says, unsent, world.on_wire(without=message), calm=False)
    for release in sorted(world.pricing):
        yield _price(world, release, AnswerLost(reason="nothing heard"), calm=False)


def _prices(world: World) -> Iterator[_Coming]:
    for release in sorted(world.pricing):
        answer = Acknowledged(result={FEE_CENTS: world.restaurant.fee_cents})
        yield _price(world, release, answer, calm=True)


def _price(world: World, release: str, outcome: SendOutcome, *, calm: bool) -> _Coming:
    priced = Priced(
        release=release,
        observation=f"price-{len(world.stored.records)}",
        outcome=outcome,
        at=world.at,
    )
    after = world.but(pricing=world.pricing - {release})
    says = f"{world.who} hears what undoing {release} costs: {type(outcome).__name__}"
    return _Coming(says, priced, after, calm=calm)


# What the user says.


def _answers(world: World) -> Iterator[_Coming]:
    for question in world.asked:
        if question.state is not QuestionState.OPEN:
            # A yes that comes too late, or twice, agrees to nothing.
            yield _answer(world, question, yes=True, says="yes, late,")
            continue
        yield _answer(_agreed(world, question), question, yes=True, says="yes")
        yield _answer(world, question, yes=False, says="no")
        if world.left.shrugs:
            left = replace(world.left, shrugs=world.left.shrugs - 1)
            yield _answer(world.but(left=left), question, yes=None, says="something else")


def _agreed(world: World, question: Question) -> World:
    """Remember what a yes agreed to."""
    operation = world.releases[question.subject].operation
    if question.about is About.PRICE:
        cents = question.amount_cents or 0
        return world.but(agreed=world.agreed | {(operation, cents)})
    return world.but(allowed=world.allowed | {operation})


def _answer(world: World, question: Question, *, yes: bool | None, says: str) -> _Coming:
    answered = Answered(question=question.id, yes=yes, principal=PRINCIPAL, heard=None, at=world.at)
    return _Coming(f"the user says {says} to {question.id}", answered, world, calm=False)


def _wishes(world: World, setup: Setup) -> Iterator[_Coming]:
    turn = len(world.plans)
    if turn > setup.bounds.revisions:
        return
    for day in DAYS[turn]:
        plan = _plan(world, day, setup)
        name = ask_name(plan.ask)
        if not turn:
            yield _Coming(f"the user wants {day}", Planned(plan=plan, ask_name=name), world)
        else:
            arrival = _revised(world, plan, name)
            yield _Coming(f"the user wants {day} instead", arrival, world, calm=False)


def _plan(world: World, day: str, setup: Setup) -> Plan:
    number = len(world.plans) + 1
    ask = Ask(
        principal=PRINCIPAL,
        session=SESSION,
        input=f"in-{number}",
        turn=f"T{number}",
        call_id="c1",
    )
    step = step_of(
        tool=RESERVE,
        contract=setup.reserve,
        digest=setup.digests[RESERVE],
        arguments={"day": day},
        ask=ask,
        call_id="",
        reads=False,
    )
    return Plan(
        id=f"plan-{number}",
        tenant=TENANT,
        session=SESSION,
        turn=ask.turn,
        input=ask.input,
        principal=PRINCIPAL,
        origin="user",
        call_id=ask.call_id,
        revises=f"T{number - 1}" if number > 1 else "",
        intent={},
        steps=(step,),
        places=(Place(),),
        made_at=world.at,
        send_by=world.at + setup.bounds.send_by_ticks * TICK_S,
        worker=world.who,
    )


def _revised(world: World, plan: Plan, name: str) -> Revised:
    """Return the change of mind as the runtime's planner hands it in."""
    old = world.latest
    assert old is not None
    ids = [o.id for o in world.operations.values() if o.turn == old.turn and not o.undoes]
    ids += [step.keeps for step in old.steps if step.keeps]
    owed = [r for r in world.releases.values() if r.turn == old.turn and r.state not in ENDED]
    operations = tuple(dict.fromkeys([*ids, *(each.operation for each in owed)]))
    releases = (r.id for r in world.releases.values() if r.operation in operations)
    return Revised(
        plan=plan,
        ask_name=name,
        old_plan=old.id,
        operations=operations,
        releases=tuple(releases),
    )
