"""What a loop holds in memory of its session: what is open, and the closed records it speaks of."""

from collections.abc import Callable, Container, Iterable, Mapping, Set
from dataclasses import dataclass, field, replace
from typing import Any

from landed.core.approval import Approval, Purpose, approval_from, approval_id
from landed.core.arrival import (
    Answered,
    Arrival,
    AskPerson,
    CaseRuled,
    Checked,
    Heard,
    Observed,
    Offering,
    Planned,
    PlanTold,
    Presenting,
    Priced,
    Proposed,
    Revised,
    Ruled,
)
from landed.core.case import Case, case_from
from landed.core.changes import Kind, Record
from landed.core.contract import Contract
from landed.core.operation import Operation, State, under
from landed.core.operation_record import from_record
from landed.core.plan import At, Plan, PlanState, plan_from
from landed.core.question import Question, question_from
from landed.core.scope import Asking, Checking, Next, Pricing, Running, Sending, Watching
from landed.core.undo import Release, release_from, release_id

# How often what waits for a person is read again: was something ruled on elsewhere?
RULED_S = 10.0


@dataclass(slots=True, eq=False)
class Memory:
    """The records of one loop, by id. `worker` is the one that holds what is open."""

    worker: str
    operations: dict[str, Operation] = field(default_factory=dict[str, Operation])
    plans: dict[str, Plan] = field(default_factory=dict[str, Plan])
    releases: dict[str, Release] = field(default_factory=dict[str, Release])
    questions: dict[str, Question] = field(default_factory=dict[str, Question])
    approvals: dict[str, Approval] = field(default_factory=dict[str, Approval])
    cases: dict[str, Case] = field(default_factory=dict[str, Case])
    last_question: str = ""
    positions: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])

    @property
    def open(self) -> bool:
        """Whether there is something here that this worker still has to see to."""
        return any(self.mine())

    def mine(self) -> Iterable[Operation | Plan | Release]:
        """Yield what is open and held by this worker."""
        every: list[Operation | Plan | Release] = [
            *self.operations.values(),
            *self.plans.values(),
            *self.releases.values(),
        ]
        return (one for one in every if one.open and one.worker == self.worker)

    def holds(self, id: str) -> bool:
        """Whether a record is in memory."""
        return any(id in each for each in self._tables())

    def take(self, record: Record) -> None:
        """Take a record as the store has it, or had it before what is known here."""
        if record.kind in _TABLES and not self.is_past(record):
            table, read = _TABLES[record.kind]
            getattr(self, table)[record.id] = read(record)
            self.positions[record.id] = (record.made, record.last)

    def is_past(self, record: Record) -> bool:
        """Whether a record is older than what is held of it: it was read before that was known."""
        return self._stands(record.id) > (record.version, record.epoch)

    def leave(self, id: str) -> None:
        """Forget a record."""
        self.positions.pop(id, None)
        for each in self._tables():
            each.pop(id, None)

    def clear(self) -> None:
        """Forget everything."""
        self.positions.clear()
        for each in self._tables():
            each.clear()

    def keep(self, decided: Next, stored: Iterable[Record]) -> None:
        """Take what was decided, now that it is durable, with the claims it was written under.

        That is what the unit wrote. Anything else may have been taken over while it was written:
        as it was when the lap began, it would be held by a worker that is gone, and seen to by
        nobody.
        """
        self.last_question = decided.last_question
        for record in stored:
            if record.kind not in _TABLES or self.is_past(record):
                continue
            table, _ = _TABLES[record.kind]
            one = getattr(decided, table)[record.id]
            is_under = one.epoch == record.epoch
            getattr(self, table)[record.id] = one if is_under else _under(one, record.epoch)
            self.positions[record.id] = (record.made, record.last)

    def prune(self, awaited: Container[str]) -> None:
        """Forget what is closed, nobody waits for, and nothing open speaks of."""
        if not any(self._tables()[1:]):
            self._prune_operations(awaited)
            return
        mine = {one.id for one in self.mine()}
        spoken_of = self._closure(mine)
        for each in self._tables():
            for id in [id for id in each if id not in mine and id not in awaited]:
                if id not in spoken_of:
                    del each[id]
                    self.positions.pop(id, None)

    def foreign(self) -> set[str]:
        """Return what is waited for here and another worker still has in hand.

        That is operations, and the releases of a plan that is taken back: of what one worker left,
        one may adopt the plan and another what is owed for it.
        """
        every: list[Operation | Release] = [
            *self.operations.values(),
            *self._releases_of_undone(),
        ]
        return {one.id for one in every if one.open and one.worker != self.worker}

    def _releases_of_undone(self) -> Iterable[Release]:
        mine = (plan for plan in self.plans.values() if plan.worker == self.worker)
        ids = {id for plan in mine for id in _taken_back_by(plan)}
        return (release for release in self.releases.values() if release.id in ids)

    def _prune_operations(self, awaited: Container[str]) -> None:
        for id, one in list(self.operations.items()):
            if id not in awaited and not (one.open and one.worker == self.worker):
                self.leave(id)

    def spoken_of(self) -> set[str]:
        """Return the ids of all that what is open here speaks of, or that another's plan does.

        Somebody's word about a plan is folded in with that plan's operations at hand, whoever holds
        the two of them.
        """
        theirs = [plan for plan in self.plans.values() if plan.worker != self.worker]
        return self._closure({one.id for one in self.mine()}).union(*map(references, theirs))

    def unprepared(self, contracts: Mapping[str, Contract]) -> Iterable[str]:
        """Yield the names that are wanted by what has to be prepared before it is sent."""
        for one in self.operations.values():
            waits = one.state is State.RECORDED and one.prepared is None and not one.blocked_by
            if waits and one.worker == self.worker and contracts[one.contract].prepare:
                yield from (*one.names, *one.unique)

    def out(self) -> set[str]:
        """Return the plans with a step that is out, the operations of those steps, and undos."""
        found: set[str] = set()
        for plan in self.plans.values():
            steps = {place.record for place in plan.places if place.at is At.OUT}
            if plan.open and plan.worker == self.worker and steps:
                found |= {plan.id} | (steps & self.operations.keys())
        undos = {r.undo for r in self.releases.values() if r.open and r.worker == self.worker}
        return found | (undos & self.operations.keys())

    def version(self, id: str) -> int:
        """Return the version of a record as it is held here, 0 where it is not."""
        return self._stands(id)[0]

    def _stands(self, id: str) -> tuple[int, int]:
        """Return how far a record is here: each write counts its version up, each claim its epoch.

        (0, 0) where it is not held.
        """
        held = next((each[id] for each in self._tables() if id in each), None)
        return (held.version, held.epoch) if held is not None else (0, 0)

    def missing(self, arrivals: Iterable[Arrival]) -> set[str]:
        """Return what has to be loaded before these arrivals can be judged."""
        made: set[str] = set()
        needed: set[str] = set()
        for arrival in arrivals:
            made.update(made_by(arrival))
            needed.update(needed_by(arrival))
        every: list[Speaks] = [
            *self.plans.values(),
            *self.releases.values(),
            *self.questions.values(),
            *self.approvals.values(),
        ]
        for held in every:
            needed.update(self._spoken_of_by(held))
        needed.add(self.last_question)
        return {id for id in needed - made if id and not self.holds(id)}

    def _closure(self, ids: set[str]) -> set[str]:
        """Return these and all that they speak of, directly or not."""
        known: set[str] = set()
        front = set(ids)
        while front:
            known |= front
            spoken: set[str] = set()
            for id in front:
                spoken |= self._references(id)
            front = spoken - known
        return known

    def _references(self, id: str) -> set[str]:
        every = (self.plans, self.releases, self.questions, self.approvals)
        return next((self._spoken_of_by(table[id]) for table in every if id in table), set[str]())

    def _spoken_of_by(self, held: "Speaks") -> set[str]:
        """Return what one speaks of; a plan of this worker also of what takes it back.

        What takes another's plan back is that worker's to see to, with the undos that belong to it.
        """
        if isinstance(held, Plan) and held.worker == self.worker:
            return references(held) | _taken_back_by(held)
        return references(held)

    def _tables(self) -> tuple[dict[str, Any], ...]:
        """The records by kind; a record goes back into the table that it came from."""
        plain = (self.operations, self.plans, self.releases, self.questions)
        return *plain, self.approvals, self.cases


def _under(held: Any, epoch: int) -> object:
    if isinstance(held, Operation):
        return under(held, epoch=epoch)
    return replace(held, epoch=epoch)


def in_motion(memory: Memory, resting: Set[str], out: Set[str]) -> Set[str]:
    """Return what is worked on now, or within moments, by id.

    That is an operation, unless it only waits (`resting`); and a plan or a release of which one is,
    or about which something is `out`. What waits for a person, or for a restored store to be found
    out about, keeps nobody else waiting.
    """
    every = memory.operations.values()
    open = [one for one in every if one.open and one.worker == memory.worker]
    moving = [one for one in open if one.id not in resting]
    ids = {one.id for one in moving} | {one.plan for one in moving} | out
    return ids | {one.id for one in memory.releases.values() if one.undo in ids}


def about(running: Running) -> str:
    """Return the id of what something that is out is about."""
    match running:
        case Sending(operation=id) | Asking(operation=id):
            return id
        case Watching(plan=id) | Pricing(release=id) | Checking(subject=id):
            return id


Speaks = Plan | Release | Question | Approval


def references(held: Speaks) -> set[str]:
    """Return the ids of the records that one speaks of; reads are not among them."""
    match held:
        case Plan():
            placed = {
                place.record
                for step, place in zip(held.steps, held.places, strict=True)
                if not step.reads
            }
            olds = {old for s in held.steps for old in (s.replaces, s.corrects, s.keeps)}
            return (placed | olds | _waits_for(held)) - {""}
        case Release():
            others = {held.plan, held.question, held.undoes, held.after}
            return ({held.operation, held.undo} | others) - {""}
        case Question():
            return {held.subject} - {""}
        case Approval():
            return {held.plan, held.question} - {""}


def _waits_for(plan: Plan) -> set[str]:
    """Return the approvals without which a plan does not begin."""
    if plan.state is not PlanState.PROPOSED:
        return set()
    needed = (
        *((Purpose.CONFIRM,) if plan.needs_yes else ()),
        *((Purpose.COMMIT,) if plan.begins else ()),
    )
    return {approval_id(plan.id, purpose, plan.attempt) for purpose in needed}


def _taken_back_by(plan: Plan) -> set[str]:
    """Return the releases by which a plan that is being taken back comes to its end."""
    if plan.state is not PlanState.UNDOING:
        return set()
    pairs = zip(plan.steps, plan.places, strict=True)
    return {release_id(p.record) for s, p in pairs if p.at is At.DONE and not s.reads}


def needed_by(arrival: Arrival) -> set[str]:
    """Return the ids of the records that an arrival is about."""
    return _NEEDS.get(type(arrival), _operation_of)(arrival)


def _operation_of(arrival: Any) -> set[str]:
    return {arrival.operation}


_NEEDS: Mapping[type[Arrival], Callable[[Any], set[str]]] = {
    Proposed: lambda arrival: set(),
    Planned: lambda arrival: {arrival.plan.supersedes} - {""},
    Presenting: lambda arrival: {arrival.approval, *arrival.loads},
    Offering: lambda arrival: {arrival.approval.plan, arrival.approval.id if arrival.again else ""},
    PlanTold: lambda arrival: {arrival.plan, *arrival.loads},
    Checked: lambda arrival: {arrival.subject},
    CaseRuled: lambda arrival: {arrival.case},
    Heard: lambda arrival: {arrival.back.operation},
    Revised: lambda arrival: {
        *(arrival.old_plan, *arrival.unbegun),
        *(*arrival.operations, *arrival.releases),
    },
    Observed: lambda arrival: {arrival.plan},
    Priced: lambda arrival: {arrival.release},
    Answered: lambda arrival: {arrival.question},
    AskPerson: lambda arrival: {arrival.subject},
}


def folded_in(arrival: Arrival) -> bool:
    """Whether an arrival is folded into the records that it is about, whoever holds them."""
    return isinstance(arrival, Revised | Answered | Heard | Ruled)


def made_by(arrival: Arrival) -> set[str]:
    """Return the ids of the records that an arrival makes."""
    if isinstance(arrival, Proposed):
        return {arrival.operation.id}
    if isinstance(arrival, Planned | Revised):
        return {arrival.plan.id}
    return set()


_TABLES: Mapping[Kind, tuple[str, Callable[[Record], Any]]] = {
    Kind.OPERATION: ("operations", from_record),
    Kind.PLAN: ("plans", plan_from),
    Kind.RELEASE: ("releases", release_from),
    Kind.QUESTION: ("questions", question_from),
    Kind.APPROVAL: ("approvals", approval_from),
    Kind.CASE: ("cases", case_from),
}
"""Where the records of each kind lie, in a memory and in what a lap decided; and their reader."""
