"""The records that a turn is told from: a conversation may be long, and a turn is a part of it.

What belongs to a turn was made after it, but for what it took over: from the turn that it changes,
and what its words answered, which was written in one unit with them. So a window of the session is
read that begins with the oldest of these, and what is older still is loaded by its id.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeAlias

from landed.core.approval import approval_from
from landed.core.changes import Kind, Record
from landed.core.operation_record import from_record
from landed.core.plan import plan_from
from landed.core.question import question_from
from landed.core.store import Store
from landed.core.undo import release_from
from landed.runtime.memory import references

UNIT_MAX = 64  # journal entries behind a turn's own, among which is what its words answered
REVISED_MAX = 100  # changes of mind that are followed back
NAMED_DEEP = 3

Window: TypeAlias = "Callable[[int], Awaitable[list[Record]]]"


async def records_of_turn(store: Store, first: Record, window: Window) -> list[Record]:
    """Return all records of its session that `first`, a turn, is told from, oldest first.

    `window` returns the records of the session made after a journal position.
    """
    start = first.made
    held = await window(start - 1)
    answered = await _answered(store, first)
    for _ in range(REVISED_MAX):
        older = [*answered, *await store.load(*_revised(first, held))]
        begin = min((each.made for each in older), default=start)
        if begin >= start:
            break
        start = begin
        held = await window(start - 1)
    found = {each.id: each for each in held}
    ahead: Sequence[Record] = held
    for _ in range(NAMED_DEEP):
        wanted = {id for each in ahead for id in _named(each)} - found.keys() - {""}
        if not wanted:
            break
        ahead = [each for each in await store.load(*wanted) if _is_beside(each, first)]
        found.update((each.id, each) for each in ahead)
    return sorted(found.values(), key=lambda each: each.made)


async def _answered(store: Store, first: Record) -> list[Record]:
    """Return what was written in one unit with the words of a turn, and a little more."""
    if first.kind is not Kind.TURN:
        return []  # A turn of its own has no words.
    entries = await store.journal(after=first.made, limit=UNIT_MAX)
    loaded = await store.load(*{entry.id for entry in entries})
    return [each for each in loaded if _is_beside(each, first)]


def _is_beside(record: Record, first: Record) -> bool:
    return (record.tenant, record.session) == (first.tenant, first.session)


def _revised(first: Record, held: Iterable[Record]) -> set[str]:
    """Return the turns that a turn changes, directly or not, as far as these records tell."""
    plans = [plan_from(each) for each in held if each.kind is Kind.PLAN]
    turns, ahead = {first.id}, {first.id}
    while ahead:
        ahead = {plan.revises for plan in plans if plan.turn in ahead} - turns - {""}
        turns |= ahead
    return turns - {first.id}


def _named(record: Record) -> set[str]:
    """Return the ids that a record is told with."""
    match record.kind:
        case Kind.PLAN:
            return references(plan_from(record))
        case Kind.RELEASE:
            return references(release_from(record))
        case Kind.QUESTION:
            return references(question_from(record))
        case Kind.APPROVAL:
            return references(approval_from(record))
        case Kind.OPERATION:
            held = from_record(record)
            return {held.undoes, held.plan}
        case _:
            return set()
