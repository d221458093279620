"""The report: what the person is told of a turn, composed from its records and from nothing else.

Every effect of the turn is in it, what it kept, what it could not take back, what is still owed,
and each question that waits for an answer.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from landed.core.changes import Kind, Record
from landed.core.contract import Contract
from landed.core.history import turn_of
from landed.core.operation import Operation, State, from_record
from landed.core.plan import At, Plan, PlanState, Step, plan_from
from landed.core.question import Question, QuestionState, question_from
from landed.core.sentences import (
    NOTHING_DONE,
    call_text,
    corrected,
    held,
    of_turn,
    to_person,
)
from landed.core.undo import Release, ReleaseState, release_from


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What the person is told of a turn: one text, the operations and questions it speaks of."""

    turn: str
    text: str
    operations: tuple[str, ...]
    questions: tuple[str, ...] = ()


def report(
    turn: str,
    records: Sequence[Record],
    contracts: Mapping[str, Contract],
    *,
    language: str = "en",
) -> Report:
    """Return what the person is told of a turn; `records` are those of its session."""
    told = _Turn(turn, records, contracts, language)
    text = " ".join(told.sentences()) or NOTHING_DONE[language]
    return Report(
        turn=turn,
        text=text,
        operations=tuple(o.id for o in told.mine),
        questions=tuple(q.id for q in told.open_questions),
    )


class _Turn:
    """One turn's records, and the sentences about them in the order they are told."""

    def __init__(
        self,
        turn: str,
        records: Sequence[Record],
        contracts: Mapping[str, Contract],
        language: str,
    ) -> None:
        self.contracts = contracts
        self.language = language
        every = [from_record(r) for r in records if r.kind is Kind.OPERATION]
        self.operations = {o.id: o for o in every}
        self.mine = [o for o in every if turn_of(o) == turn]
        plans = [plan_from(r) for r in records if r.kind is Kind.PLAN]
        self.all_plans = {plan.id: plan for plan in plans}
        self.plans = [plan for plan in plans if plan.turn == turn]
        releases = [release_from(r) for r in records if r.kind is Kind.RELEASE]
        self.releases = [owed for owed in releases if owed.turn == turn]
        questions = [question_from(r) for r in records if r.kind is Kind.QUESTION]
        about = {owed.question for owed in self.releases}
        self.open_questions: list[Question] = [
            q
            for q in questions
            if q.state is QuestionState.OPEN and (q.turn == turn or q.id in about)
        ]

    def sentences(self) -> Iterator[str]:
        """Yield what is told, in order: what was there before, what was done, what is open."""
        for plan in self.plans:
            yield from self._before(plan)
        for owed in self.releases:
            yield from self._owed(owed)
        for operation in self.mine:
            yield self._say(to_person, operation)
        for plan in self.plans:
            yield from self._not_done(plan)
        for question in self.open_questions:
            yield question.text

    def _say(self, say: Callable[..., str], operation: Operation) -> str:
        return say(operation, self.contracts[operation.contract], language=self.language)

    def _before(self, plan: Plan) -> Iterator[str]:
        for step in plan.steps:
            old = self.operations.get(step.corrects)
            if old is not None and old.state not in (State.FAILED, State.WITHDRAWN):
                yield self._say(corrected, old)
            kept = self.operations.get(step.keeps)
            if kept is not None and kept.state is State.CONFIRMED and kept.turn != plan.turn:
                what = self._say(held, kept)
                yield of_turn("kept", language=self.language, held=what)

    def _owed(self, owed: Release) -> Iterator[str]:
        operation = self.operations[owed.operation]
        match owed.state:
            case ReleaseState.OWED_IF_LANDED:
                yield self._say(to_person, operation)
                yield of_turn("owed", language=self.language)
            case ReleaseState.WAIVED:
                yield self._stays(owed, operation)
            case _:
                return

    def _stays(self, owed: Release, operation: Operation) -> str:
        what = self._say(held, operation)
        plan = self.all_plans.get(owed.plan)
        beside = self.operations.get(plan.places[owed.step].record) if plan else None
        if beside is None or beside.state in (State.FAILED, State.WITHDRAWN):
            return of_turn("stays", language=self.language, held=what)
        return of_turn(
            "stays_beside", language=self.language, held=what, beside=self._say(held, beside)
        )

    def _not_done(self, plan: Plan) -> Iterator[str]:
        said = _UNDONE.get(plan.state)
        left = [
            step
            for step, place in zip(plan.steps, plan.places, strict=True)
            if place.at is At.WAITING and not step.reads
        ]
        if said and left:
            yield of_turn(said, language=self.language, calls="; ".join(map(_call, left)))


# What is said of the steps that a plan has not come to.
_UNDONE: Mapping[PlanState, str] = {
    PlanState.PARTIAL: "not_done",
    PlanState.IN_DOUBT: "not_yet",
    PlanState.SUPERSEDED: "superseded",
}


def _call(step: Step) -> str:
    return call_text(step.tool, step.arguments)
