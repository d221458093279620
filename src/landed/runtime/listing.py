"""Lists what a tenant, or one person of it, has waiting, under way and done; nothing is claimed.

A page costs what is on it, however much is finished: it is read by position, and goes back in
bounds. What is somebody else's is left out, so a page may be short, or empty, and not the last.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from landed.core.changes import Kind, Record
from landed.core.operation import STATES, Operation, State
from landed.core.plan import OPEN, Plan, PlanState, plan_from
from landed.core.plan_sentences import going_on
from landed.core.sentences import call_text
from landed.core.sentences import to_person as told_of_operation
from landed.core.store import WAITING, Selection
from landed.core.telling import as_of_now, is_ended, summaries, to_person
from landed.core.undo import UNDO_WITHIN_S, release_from, release_id, undoable
from landed.runtime.reader import Reader

LINES_MAX = 200
"""Lines that one page of a listing may be asked for."""

READS_MAX = 10
"""Pages of the store that are read for one page of a listing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A plan with the operations of its steps, and those that undo them; or one operation.

    `plan` is None for an operation that no plan has in hand. `what` says what it is about, `text`
    tells the person how it stands. `undo_by` is until when all of it can be taken back as a whole
    (UTC, seconds since the epoch), None where it can't be; `position` is where it stands in the
    listing it is of.
    """

    plan: Plan | None
    operations: tuple[Operation, ...]
    what: str
    text: str
    undo_by: float | None
    position: int

    @property
    def subject(self) -> Plan | Operation:
        """The plan, or the operation where there is none."""
        return self.plan if self.plan is not None else self.operations[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """A page of a listing; `next` is what `after` is for the next one, None at the end."""

    lines: tuple[Line, ...]
    next: int | None


Wanted: TypeAlias = "Callable[[Record], bool]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """The lists of one tenant, as of `now`; of what these `owners` own, where there are some.

    "" among the owners stands for what is nobody's.

    Every list takes the `next` of the page before as `after`, 0 for the first page, and at most
    `limit` lines. Raises `StoreError` for a `limit` of none or of too many.
    """

    reader: Reader
    tenant: str
    now: float
    owners: Collection[str] | None = None
    language: str = "en"

    async def waiting(self, after: int = 0, *, limit: int = 50) -> Lines:
        """Return the plans that wait for a yes that may still come, oldest first."""
        return await self._lines(Selection.WAITING, after, limit, self._waits)

    async def running(self, after: int = 0, *, limit: int = 50) -> Lines:
        """Return what is under way and waits for nobody, oldest first.

        An operation has a line of its own where no plan that is under way has it in hand.
        """
        return await self._lines(Selection.OPEN, after, limit, _is_under_way)

    async def done(self, after: int = 0, *, limit: int = 50) -> Lines:
        """Return what is over: plans, and operations without one; what ended last comes first."""
        return await self._lines(Selection.RECENT, after, limit, self._is_over)

    async def plans(
        self, state: PlanState | None = None, after: int = 0, *, limit: int = 50
    ) -> Lines:
        """Return the plans in a state, or all; `listed_as` says in which order."""

        def wanted(record: Record) -> bool:
            if record.kind is not Kind.PLAN:
                return False
            return state is None or as_of_now(plan_from(record), self.now).state is state

        return await self._lines(listed_as(state), after, limit, wanted)

    async def operations(
        self, state: State | None = None, after: int = 0, *, limit: int = 50
    ) -> Lines:
        """Return the operations in a state, or all, those of plans too, each a line of its own."""

        def wanted(record: Record) -> bool:
            return record.kind is Kind.OPERATION and state in (None, record.state)

        of = listed_as(state)
        found, following = await self._found(of, after, limit, wanted)
        held = await self.reader.operations(*(record.id for record in found))
        lines = tuple(self._of_operation(held[each.id], _position(each, of)) for each in found)
        return Lines(lines=lines, next=following)

    # What is on a page.

    async def _lines(self, of: Selection, after: int, limit: int, wanted: Wanted) -> Lines:
        found, following = await self._found(of, after, limit, wanted)
        plans = [plan_from(record) for record in found if record.kind is Kind.PLAN]
        undos = await self._undos(plans)
        steps = [place.record for plan in plans for place in plan.places if place.record]
        alone = [record.id for record in found if record.kind is Kind.OPERATION]
        held = await self.reader.operations(*steps, *undos, *alone)
        hidden = await self._in_hand([held[id] for id in alone], of)
        lines = tuple(
            self._of_plan(plan_from(record), held, undos, _position(record, of))
            if record.kind is Kind.PLAN
            else self._of_operation(held[record.id], _position(record, of))
            for record in found
            if record.id not in hidden
        )
        return Lines(lines=lines, next=following)

    async def _found(
        self, of: Selection, after: int, limit: int, wanted: Wanted
    ) -> tuple[list[Record], int | None]:
        """Return at most `limit` of the records that are wanted, and where the next page begins."""
        found: list[Record] = []
        limit = min(limit, LINES_MAX)
        for _ in range(READS_MAX):
            page = await self.reader.store.listed(
                tenant=self.tenant, of=of, after=after, limit=2 * limit
            )
            for record in page.records:
                if wanted(record) and self._is_theirs(record):
                    found.append(record)
                    if len(found) == limit:
                        return found, _position(record, of)
            after = page.next
            if not after:
                break
        return found, after or None

    async def _undos(self, plans: Sequence[Plan]) -> Mapping[str, str]:
        """Return the operations that undo a step of these plans, each with what it undoes."""
        places = [place.record for plan in plans for place in plan.places if place.record]
        if not places:
            return {}
        records = await self.reader.load(*map(release_id, places))
        releases = [release_from(record) for record in records]
        return {owed.undo: owed.operation for owed in releases if owed.undo}

    async def _in_hand(self, alone: Sequence[Operation], of: Selection) -> set[str]:
        """Return those of these operations that are shown with the plan they belong to."""
        undone = await self.reader.operations(*{each.undoes for each in alone if each.undoes})
        plan_of = {each.id: _plan_of(each, undone) for each in alone}
        records = await self.reader.load(*{plan for plan in plan_of.values() if plan})
        with_line = {r.id for r in records if of is not Selection.OPEN or r.state in OPEN}
        return {id for id, plan in plan_of.items() if plan in with_line}

    def _of_plan(
        self, plan: Plan, held: Mapping[str, Operation], undos: Mapping[str, str], position: int
    ) -> Line:
        plan = as_of_now(plan, self.now)
        mine = [place.record for place in plan.places if place.record in held]
        mine += [undo for undo, undone in undos.items() if undone in mine and undo in held]
        can_undo = undoable(plan, held, self.reader.contracts, self.now)
        return Line(
            plan=plan,
            operations=tuple(held[id] for id in mine),
            what="; ".join(summaries(plan)),
            text=self._told(plan, held, can_undo=can_undo),
            undo_by=plan.ended_at + UNDO_WITHIN_S if can_undo else None,
            position=position,
        )

    def _told(self, plan: Plan, held: Mapping[str, Operation], *, can_undo: bool) -> str:
        if is_ended(plan):
            return to_person(
                plan, held, self.reader.contracts, language=self.language, can_undo=can_undo
            )
        if plan.state is PlanState.PROPOSED:
            return "; ".join(summaries(plan))
        return going_on(done=plan.done, of=len(plan.steps), language=self.language)

    def _of_operation(self, held: Operation, position: int) -> Line:
        contract = self.reader.contracts[held.contract]
        return Line(
            plan=None,
            operations=(held,),
            what=call_text(held.tool, held.arguments),
            text=told_of_operation(held, contract, language=self.language),
            undo_by=None,
            position=position,
        )

    # What is wanted of what is there.

    def _is_theirs(self, record: Record) -> bool:
        return self.owners is None or principal_of(record) in self.owners

    def _waits(self, record: Record) -> bool:
        return record.kind is Kind.PLAN and not plan_from(record).expired(self.now)

    def _is_over(self, record: Record) -> bool:
        if record.kind is Kind.PLAN:
            return as_of_now(plan_from(record), self.now).state not in (*OPEN, *WAITING)
        ended = record.kind is Kind.OPERATION and not record.open and record.state not in WAITING
        return ended and not record.frozen["plan"]


def listed_as(state: PlanState | State | None) -> Selection:
    """Return what is listed to find a state: what ended is listed newest first, the rest oldest."""
    if state in WAITING:
        return Selection.WAITING
    is_open = state in OPEN or (isinstance(state, State) and STATES[state].open)
    return Selection.OPEN if is_open else Selection.RECENT


def principal_of(record: Record) -> str:
    """Return whose a record is, "" where it is nobody's."""
    asked = record.frozen.get("ask")
    named = asked.get("principal") if isinstance(asked, Mapping) else record.frozen.get("principal")
    return str(named or "")


def _is_under_way(record: Record) -> bool:
    return record.kind in (Kind.PLAN, Kind.OPERATION) and record.state not in WAITING


def _plan_of(operation: Operation, undone: Mapping[str, Operation]) -> str:
    """Return the plan of an operation, or of what it undoes; "" where there is none."""
    before = undone.get(operation.undoes)
    return operation.plan or (before.plan if before is not None else "")


def _position(record: Record, of: Selection) -> int:
    return record.last if of is Selection.RECENT else record.made
