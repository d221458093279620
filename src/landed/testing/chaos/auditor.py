"""Compares what the services hold with what the records say, and complains of every difference.

It knows nothing of how anything was decided: an operation that landed has one effect under its key,
one that did not has none, every effect has its operation, every wish came true at most once, and
whatever was owed is done, void, or in front of a person.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from landed.core.operation import Operation, State, held_by
from landed.core.plan import OPEN, PlanState
from landed.core.undo import OPEN as OWED
from landed.core.undo import Release, ReleaseState
from landed.testing.chaos.books import Books
from landed.testing.chaos.ledgers import Effect
from landed.testing.chaos.load import Do, Script


class Wrong(StrEnum):
    """What can be wrong; the text says what it is a breach of."""

    UNRESOLVED = "an operation that nobody has resolved"
    UNEVIDENCED = "an operation that was settled or given up without evidence"
    TWICE = "two effects of one wish"
    UNRECORDED = "an effect without a record"
    LOST = "a confirmed operation without an effect"
    FALSE_NO = "an effect of an operation that is said to have none"
    OPEN_PLAN = "a plan that never ended"
    OWED = "a release that is still owed"
    NOT_RELEASED = "a table that was to be given back and still stands"
    RELEASED = "a table that was given back though nobody wanted that"
    FORGOTTEN = "a wish that was acknowledged and left no operation"
    HELD = "a name that is held by what is over"
    JOURNAL = "a journal that is not whole"


@dataclass(frozen=True, slots=True, kw_only=True)
class Complaint:
    """One difference, and of which record, effect or wish."""

    wrong: Wrong
    of: str
    says: str = ""

    def __str__(self) -> str:
        return f"{self.wrong}: {self.of}{f' ({self.says})' if self.says else ''}"


LANDED = frozenset({State.CONFIRMED})
NOT_LANDED = frozenset({State.FAILED, State.WITHDRAWN})
BEFORE_A_PERSON = frozenset({ReleaseState.ASKED, ReleaseState.QUESTIONED})


def audit(
    books: Books, effects: Sequence[Effect], scripts: Sequence[Script]
) -> tuple[Complaint, ...]:
    """Return every complaint; `scripts` are those that came to their end."""
    audited = _Audited(books=books, effects=effects, scripts=scripts)
    return tuple(audited.complaints())


@dataclass(slots=True, eq=False)
class _Audited:
    books: Books
    effects: Sequence[Effect]
    scripts: Sequence[Script]
    by_key: dict[str, list[Effect]] = field(init=False)
    by_mark: dict[str, list[Effect]] = field(init=False)
    by_id: Mapping[str, Operation] = field(init=False)

    def __post_init__(self) -> None:
        self.by_key, self.by_mark = defaultdict(list), defaultdict(list)
        for effect in self.effects:
            self.by_key[effect.key].append(effect)
            if effect.mark:
                self.by_mark[effect.mark].append(effect)
        self.by_id = {operation.id: operation for operation in self.books.operations}

    def complaints(self) -> Iterator[Complaint]:
        yield from self._operations()
        yield from self._effects()
        yield from self._plans()
        yield from self._releases()
        yield from self._wishes()
        for says in self.books.broken:
            yield Complaint(wrong=Wrong.JOURNAL, of=says)

    def _operations(self) -> Iterator[Complaint]:
        for operation in self.books.operations:
            state, landed = operation.state, len(self.by_key[operation.key])
            told = f"{operation.tool}, {state}, {landed} effects"
            if state in LANDED and landed == 0:
                yield Complaint(wrong=Wrong.LOST, of=operation.id, says=told)
            elif state in NOT_LANDED and landed:
                yield Complaint(wrong=Wrong.FALSE_NO, of=operation.id, says=told)
            elif state is not State.UNDECIDED and not operation.final:
                yield Complaint(wrong=Wrong.UNRESOLVED, of=operation.id, says=told)
            if state is not State.WITHDRAWN and not operation.evidence:
                yield Complaint(wrong=Wrong.UNEVIDENCED, of=operation.id, says=told)
            for name in operation.names:
                held = self.books.held.get(name) == operation.id
                if held and name not in held_by(operation):
                    yield Complaint(wrong=Wrong.HELD, of=operation.id, says=f"{name}, {state}")

    def _effects(self) -> Iterator[Complaint]:
        keys = {operation.key for operation in self.books.operations}
        for effect in self.effects:
            if effect.key not in keys:
                says = f"{effect.tool} for {effect.mark or effect.of}"
                yield Complaint(wrong=Wrong.UNRECORDED, of=f"{effect.id} {effect.key}", says=says)
        for of, landed in (*self.by_key.items(), *self.by_mark.items()):
            if len(landed) > 1:
                yield Complaint(wrong=Wrong.TWICE, of=of, says=_listed(landed))
        given_back = Counter(effect.of for effect in self.effects if effect.of)
        for table, times in given_back.items():
            if times > 1:
                yield Complaint(wrong=Wrong.TWICE, of=f"cancelled {table}", says=f"{times} times")

    def _plans(self) -> Iterator[Complaint]:
        for plan in self.books.plans:
            waits = plan.state is PlanState.IN_DOUBT and self._waits_for_a_person(plan.id)
            if plan.state in OPEN and not waits:
                yield Complaint(wrong=Wrong.OPEN_PLAN, of=plan.id, says=plan.state)

    def _waits_for_a_person(self, plan: str) -> bool:
        steps = [each for each in self.books.operations if each.plan == plan]
        return any(each.state is State.UNDECIDED for each in steps)

    def _releases(self) -> Iterator[Complaint]:
        ended = {release.operation: release for release in self.books.releases}
        for release in self.books.releases:
            if release.state in OWED:
                yield Complaint(wrong=Wrong.OWED, of=release.id, says=release.state)
            if release.state is ReleaseState.DONE and self._stands(release):
                yield Complaint(wrong=Wrong.NOT_RELEASED, of=release.id, says=release.state)
            if release.state is ReleaseState.VOID and self._landed(release.operation):
                yield Complaint(wrong=Wrong.NOT_RELEASED, of=release.id, says=release.state)
        for operation in self.books.operations:
            gone = [e for e in self.by_key[operation.key] if e.mark and not e.standing]
            said = ended[operation.id].state if operation.id in ended else "no release"
            if gone and said != ReleaseState.DONE:
                says = f"{_listed(gone)}, {said}"
                yield Complaint(wrong=Wrong.RELEASED, of=operation.id, says=says)

    def _stands(self, release: Release) -> bool:
        operation = self.by_id[release.operation]
        return any(effect.standing for effect in self.by_key[operation.key])

    def _landed(self, operation: str) -> bool:
        return bool(self.by_key[self.by_id[operation].key])

    def _wishes(self) -> Iterator[Complaint]:
        marks = {_mark(operation) for operation in self.books.operations}
        waiting = {r.operation for r in self.books.releases if r.state in BEFORE_A_PERSON}
        before = {_mark(self.by_id[operation]) for operation in waiting}
        undone = {p.turn for p in self.books.plans if p.state is PlanState.UNDONE}
        for script in self.scripts:
            first = script.mark(FIRST.get(script.do, ""))
            if script.do in FIRST and first not in marks:
                yield Complaint(wrong=Wrong.FORGOTTEN, of=first, says=script.do)
            old, new = script.mark("old"), script.mark("new")
            if self._standing(old) and self._standing(new) and old not in before:
                yield Complaint(wrong=Wrong.NOT_RELEASED, of=old, says=f"{new} stands as well")
        for operation in self.books.operations:
            if operation.turn in undone and self._standing(_mark(operation)):
                yield Complaint(
                    wrong=Wrong.NOT_RELEASED, of=operation.id, says="its plan is undone"
                )

    def _standing(self, mark: str) -> bool:
        return any(effect.standing for effect in self.by_mark.get(mark, ()))


# The call that each script is certain to have made when it came to its end; who goes away at once
# may have asked for nothing.
FIRST: Mapping[Do, str] = {
    Do.REFUND: "only",
    Do.SHARED: "only",
    Do.PLAN: "one",
    Do.REVISE: "old",
    Do.UNDO: "one",
    Do.STOP: "one",
}


def _mark(operation: Operation) -> str:
    return str(operation.arguments.get("name") or operation.arguments.get("reason") or "")


def _listed(effects: Sequence[Effect]) -> str:
    return ", ".join(f"{effect.tool} {effect.id}" for effect in effects)
