"""What must hold wherever a mind is changed: the promises, as checks.

They know what the restaurant holds, what the user said yes to and what is stored, and nothing of
the rules that decide. Each check returns "" or one sentence that says what is wrong.
"""

from collections.abc import Iterable, Iterator

from landed.core.contract import Order
from landed.core.operation import Operation, State
from landed.core.plan import Plan
from landed.core.question import QuestionState
from landed.core.undo import Release, ReleaseState, release_id
from landed.testing.explored.minds_restaurant import Table
from landed.testing.explored.minds_world import RESERVE, Setup, World

# What is undone, and when.
RELEASED_FIRST = "a table is given back before what replaces it is confirmed"
UNDID_REPLACEMENT = "the very table that the replacement returned is given back"
TWO_CANCELS = "a table is cancelled twice"
UNAGREED = "a cancellation costs what nobody agreed to"

# What is written and sent.
SENT_UNRECORDED = "a request leaves for which no durable record stands"
CORE_RAISED = "the core raised"

# What is left once nothing happens any more.
FORGOTTEN = "a release is neither done nor given up, and in front of nobody"
NEGLECTED = "a table is held that nobody wants, and nobody is asked about it"
UNPAIRED = "what is recorded as confirmed is not what the restaurant holds"
STUCK = "it does not come to rest"

PROMISES = (
    RELEASED_FIRST,
    UNDID_REPLACEMENT,
    TWO_CANCELS,
    UNAGREED,
    SENT_UNRECORDED,
    CORE_RAISED,
    FORGOTTEN,
    NEGLECTED,
    UNPAIRED,
    STUCK,
)

WITH_A_PERSON = frozenset({ReleaseState.ASKED, ReleaseState.QUESTIONED})


def wrong_start(world: World, sends: Iterable[Operation]) -> str:
    """Return what is wrong with sends that leave now."""
    for sent in sends:
        record = world.operations.get(sent.id)
        if record is None or record.tries < sent.tries or not record.holds:
            return SENT_UNRECORDED
    return ""


def wrong_undo(before: World, after: World, setup: Setup) -> str:
    """Return what is wrong with an undo that was decided on in this lap."""
    for undo in after.operations.values():
        if undo.undoes and undo.id not in before.operations:
            wrong = _wrong_undo(after, undo, setup)
            if wrong:
                return wrong
    return ""


def _wrong_undo(world: World, undo: Operation, setup: Setup) -> str:
    if undo.undoes in world.allowed:
        return ""
    stand = list(_replacements(world, undo.undoes))
    if any(table.id == undo.arguments["id"] for table in stand):
        return UNDID_REPLACEMENT
    if setup.reserve.order is Order.RELEASE_FIRST:
        return ""
    return "" if any(table.held for table in stand) else RELEASED_FIRST


def _replacements(world: World, operation: str) -> Iterator[Table]:
    """Yield the tables that are confirmed for what was wanted in place of an operation.

    That is what the latest plan wants; and where an undo was on its way already when the user
    changed their mind once more, what it was begun for.
    """
    for plan in world.plans.values():
        if plan is not world.latest and plan.steps[0].replaces != operation:
            continue
        wanted = world.operations.get(plan.places[0].record)
        if wanted is None or wanted.id == operation or wanted.state is not State.CONFIRMED:
            continue
        table = _table_of(world, wanted)
        if table is not None:
            yield table


def _table_of(world: World, operation: Operation) -> Table | None:
    """Return the table that an operation was told it has."""
    result = operation.result
    made = result.get("id") if isinstance(result, dict) else None
    return next((table for table in world.restaurant.tables if table.id == made), None)


def wrong_effect(before: World, after: World) -> str:
    """Return what is wrong with what the restaurant just did."""
    for table in after.restaurant.tables:
        if len(table.charges_cents) > 1:
            return TWO_CANCELS
        if not table.held and table not in before.restaurant.tables:
            return "" if _was_agreed(after, table) else UNAGREED
    return ""


def _was_agreed(world: World, table: Table) -> bool:
    (cents,) = table.charges_cents
    given_back = (id for id, agreed in world.agreed if agreed == cents)
    return not cents or any(_table_of(world, world.operations[id]) == table for id in given_back)


# Once nothing happens any more.


def wrong_rest(world: World) -> str:
    """Return what is wrong with a world in which nothing happens any more by itself."""
    if any(operation.open for operation in world.operations.values()):
        return STUCK
    if any(plan.open and not _waits(world, plan) for plan in world.plans.values()):
        return STUCK
    if not all(_is_seen_to(world, release) for release in world.releases.values()):
        return FORGOTTEN
    return _wrong_tables(world)


def _waits(world: World, plan: Plan) -> bool:
    """Whether a plan waits for a person: about a call in doubt, or about what goes before it."""
    ids = {plan.places[0].record, plan.steps[0].replaces}
    owed = [release for release in world.releases.values() if release.plan == plan.id]
    ids |= {release.undo for release in owed}
    return _undecided(world, *ids) or any(r.state in WITH_A_PERSON for r in owed)


def _undecided(world: World, *ids: str) -> bool:
    known = (world.operations[id] for id in ids if id)
    return any(operation.state is State.UNDECIDED for operation in known)


def _is_seen_to(world: World, release: Release) -> bool:
    match release.state:
        case ReleaseState.ASKED | ReleaseState.QUESTIONED:
            asked = world.questions[release.question]
            return asked.state is QuestionState.OPEN and asked.subject == release.id
        case ReleaseState.OWED_IF_LANDED:
            return _undecided(world, release.operation)
        case ReleaseState.UNDOING:
            return _undecided(world, release.undo)
        case ReleaseState.OWED:
            plan = world.plans.get(release.plan)
            return plan is not None and plan.open and _waits(world, plan)
        case state:
            return state is not ReleaseState.DUE


def _wrong_tables(world: World) -> str:
    booked = [o for o in world.operations.values() if o.tool == RESERVE]
    told = [o for o in booked if o.state is State.CONFIRMED and not _is_undone(world, o)]
    doubted = {o.id for o in booked if _is_doubted(world, o)}
    ids = sorted(table.id for table in _paired(world, told))
    settled = [table for table in world.restaurant.held if table.operation not in doubted]
    if len(ids) != len(told) or ids != sorted(table.id for table in settled):
        return UNPAIRED
    latest = world.latest
    wanted = {place.record for place in latest.places} if latest is not None else set[str]()
    for operation in told:
        if operation.id not in wanted and release_id(operation.id) not in world.releases:
            return NEGLECTED
    return ""


def _paired(world: World, told: Iterable[Operation]) -> Iterator[Table]:
    """Yield the table of each operation that has one, for the day that was asked for."""
    for operation in told:
        table = _table_of(world, operation)
        if table is not None and table.day == operation.arguments["day"]:
            yield table


def _is_undone(world: World, operation: Operation) -> bool:
    """Whether it was taken back, or may have been."""
    release = world.releases.get(release_id(operation.id))
    undone = release is not None and release.state is ReleaseState.DONE
    return undone or _is_doubted(world, operation)


def _is_doubted(world: World, operation: Operation) -> bool:
    """Whether nobody can tell if it landed, or if it was taken back."""
    release = world.releases.get(release_id(operation.id))
    return _undecided(world, operation.id, release.undo if release is not None else "")
