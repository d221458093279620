"""Keeping: what is over for good, so that it may be archived and its details erased.

Records that speak of each other, directly or not, stand or fall together: an input, its turn, the
plan, its steps, questions and releases. Such a *strand* is at rest when nothing in it is open,
waits for a person, or can still be taken back. The seam at the end is what a store offers for it,
apart from `landed.core.store.Store`, whose verbs a running agent needs.
"""

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from landed.core.approval import ApprovalState, approval_from
from landed.core.canonical import Json
from landed.core.case import CaseState
from landed.core.changes import Kind, Record
from landed.core.contract import Contract
from landed.core.operation import State
from landed.core.operation_record import from_record
from landed.core.plan import PLAN_MOVES, PlanEvent, PlanState, plan_from
from landed.core.question import About, QuestionState, question_from
from landed.core.store import Store
from landed.core.undo import ENDED, UNDO_WITHIN_S, can_undo

UNACTED_S = 86_400.0
"""How long an input on which nobody acted is kept whole, because somebody still may."""

_ID = re.compile(r"\S{1,500}")  # As far as can be told without the other records.


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A record as a store keeps it: when it last moved (UTC, seconds), whether it is erased."""

    record: Record
    at: float
    is_erased: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What is to be erased or archived: of one tenant, and as far as it is named.

    `record` names one record, and with it its whole strand; `principal` who asked for something in
    it. `before` takes what was over by then (UTC, seconds since the epoch).
    """

    tenant: str = "default"
    session: str = ""
    record: str = ""
    principal: str = ""
    before: float = math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class Glimpse:
    """What has to be known of a record to decide about it, without its details.

    `speaks_of` are the ids in it, `busy_until` is from when on it is at rest (inf: not by itself),
    `busy` why it is not.
    """

    id: str
    kind: Kind
    version: int
    last: int
    at: float
    is_erased: bool
    principal: str
    speaks_of: frozenset[str]
    busy_until: float
    busy: str


Strand = tuple[Glimpse, ...]
Contracts = Mapping[str, Contract]


def glimpse(kept: Kept, contracts: Contracts) -> Glimpse:
    """Return what has to be known of a record; `contracts` has those that it was made under."""
    record = kept.record
    until, busy = _BUSY.get(record.kind, _never)(record, contracts)
    return Glimpse(
        id=record.id,
        kind=record.kind,
        version=record.version,
        last=record.last,
        at=kept.at,
        is_erased=kept.is_erased,
        principal=_principal(record),
        speaks_of=frozenset(each for each in _named_in(record) if _ID.fullmatch(each)),
        busy_until=until,
        busy=busy,
    )


def strands(glimpses: Iterable[Glimpse]) -> list[Strand]:
    """Return the records of a session as strands, each in the order in which they were given."""
    held = {each.id: each for each in glimpses}
    first = {id: id for id in held}

    def root(id: str) -> str:
        while first[id] != id:
            first[id] = first[first[id]]
            id = first[id]
        return id

    for each in held.values():
        for other in each.speaks_of & held.keys():
            first[root(each.id)] = root(other)
    found: defaultdict[str, list[Glimpse]] = defaultdict(list)
    for each in held.values():
        found[root(each.id)].append(each)
    return [tuple(each) for each in found.values()]


def why_not(strand: Strand, now: float) -> str:
    """Return why a strand is not at rest at `now`, "" where it is."""
    for each in strand:
        if each.busy_until > now:
            return f"{each.id} {each.busy}"
    heard = [each for each in strand if each.kind is Kind.INPUT]
    is_acted_on = not heard or any(each.kind in _ACTS for each in strand)
    if is_acted_on or max(each.at for each in heard) + UNACTED_S <= now:
        return ""
    return f"{heard[0].id} was not acted on yet"


def is_meant(strand: Strand, selection: Selection) -> bool:
    """Whether a strand is selected; its tenant and its session are."""
    if selection.record and all(each.id != selection.record for each in strand):
        return False
    if selection.principal and all(each.principal != selection.principal for each in strand):
        return False
    return max(each.at for each in strand) < selection.before


def _named_in(record: Record) -> Iterator[str]:
    """Yield the texts that may be ids: none is looked for in arguments, results and the like."""
    frozen, changing = record.frozen, record.changing
    bodies = [frozen, changing, frozen.get("ask"), *_rows(frozen.get("steps"))]
    for body in bodies:
        if isinstance(body, Mapping):
            yield from (each for each in body.values() if isinstance(each, str))
    for place in _rows(changing.get("places")):
        yield from (each for each in _rows(place) if isinstance(each, str))


def _rows(value: Json) -> Sequence[Json]:
    return value if isinstance(value, Sequence) and not isinstance(value, str) else ()


def _principal(record: Record) -> str:
    ask = record.frozen.get("ask")
    held = ask if isinstance(ask, Mapping) else record.frozen
    return str(held.get("principal", ""))


Busy = tuple[float, str]
_RESTS: Busy = (0.0, "")


def _never(record: Record, contracts: Contracts) -> Busy:
    return _RESTS


def _is(record: Record) -> Busy:
    return math.inf, f"is {record.state}"


def _operation(record: Record, contracts: Contracts) -> Busy:
    if record.open or record.state == State.UNDECIDED:
        return _is(record)
    operation = from_record(record)
    contract = contracts[operation.contract]
    within_s = contract.undo_within_s
    landed = operation.state in (State.CONFIRMED, State.ASSUMED)
    if within_s is None or not landed or not can_undo(operation, contract, operation.settled_at):
        return _RESTS
    return _undoable(operation.settled_at + within_s)


def _undoable(until: float) -> Busy:
    day = datetime.fromtimestamp(until, UTC).strftime("%Y-%m-%d %H:%M UTC")
    return until, f"can be taken back until {day}"


def _plan(record: Record, contracts: Contracts) -> Busy:
    plan = plan_from(record)
    if plan.open:
        return _is(record)
    if plan.state is PlanState.PROPOSED:
        return plan.answer_by, "waits for an answer"
    if PlanEvent.UNDO_ASKED in PLAN_MOVES[plan.state]:
        return _undoable(plan.ended_at + UNDO_WITHIN_S)
    return _RESTS


def _question(record: Record, contracts: Contracts) -> Busy:
    # Whether there still can be a yes to a plan is said by its approval.
    waits = record.state == QuestionState.OPEN and question_from(record).about is not About.PLAN
    return (math.inf, "waits for an answer") if waits else _RESTS


def _approval(record: Record, contracts: Contracts) -> Busy:
    if record.state != ApprovalState.OPEN:
        return _RESTS
    return approval_from(record).answer_by, "waits for an answer"


def _release(record: Record, contracts: Contracts) -> Busy:
    return _RESTS if record.state in ENDED else _is(record)


def _case(record: Record, contracts: Contracts) -> Busy:
    return _is(record) if record.state == CaseState.OPEN else _RESTS


_BUSY: Mapping[Kind, Callable[[Record, Contracts], Busy]] = {
    Kind.OPERATION: _operation,
    Kind.PLAN: _plan,
    Kind.QUESTION: _question,
    Kind.APPROVAL: _approval,
    Kind.RELEASE: _release,
    Kind.CASE: _case,
}

_ACTS = frozenset(
    {Kind.OPERATION, Kind.PLAN, Kind.OBSERVATION, Kind.QUESTION, Kind.RELEASE, Kind.MESSAGE}
)


class KeepingStore(Store, Protocol):
    """A store that can also keep what is over."""

    def keeping(self) -> "Keeping":
        """Return what it offers for that; it is used, and closed, with the store."""
        ...


class Keeping(Protocol):
    """What a store offers for what is over. Every method may raise `StoreError`.

    Each call is one short transaction, so that others write in between. An erasure is two steps: a
    commit that appends the event (`landed.core.erasing`), then `let_go`; a crash between them
    leaves a record that reads as erased, and that is erased again.
    """

    async def sessions(
        self, *, after: tuple[str, str] = ("", ""), limit: int = 1000
    ) -> tuple[tuple[str, str], ...]:
        """Return (tenant, session) of conversations that have records, in order, after one."""
        ...

    async def kept(
        self, *, tenant: str, session: str, after: int = 0, limit: int = 1000
    ) -> tuple[Kept, ...]:
        """Return the records of a session made after journal position `after`, oldest first."""
        ...

    async def let_go(self, *ids: str) -> None:
        """Let those of the records whose latest event is an erasure begin with it.

        The bodies before it are gone then; positions, digests and links stay. Whatever is not
        erased is left alone.
        """
        ...

    async def scrub(self, *, rewrites: bool = False) -> str:
        """Have what was let go of leave the disk, and return what is still to be done, "" if none.

        With `rewrites` the whole store is written anew, which keeps others from writing meanwhile.
        """
        ...
