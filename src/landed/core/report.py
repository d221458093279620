"""The report: what the person is told of a turn, composed from its records and from nothing else.

Every effect of the turn is in it, what it kept, what it could not take back, what is still owed,
and each question that waits for an answer.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from landed.core.approval import Purpose, approval_id
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
from landed.core.telling import is_ended
from landed.core.telling import to_person as plan_to_person
from landed.core.undo import Release, ReleaseState, release_from, undoable


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
    now: float = 0.0,
) -> Report:
    """Return what the person is told of a turn; `records` are those of its session.

    `now` (UTC, seconds since the epoch) decides whether it can still be taken back as a whole.
    """
    told = _Turn(turn, records, contracts, language, now)
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
        now: float,
    ) -> None:
        self.now = now
        self.retries: set[str] = set()  # Asked about in the sentence about their plan.
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
        yield from self._done()
        for question in self.open_questions:
            if not (question.subject in self.retries and not question.number):
                yield question.text

    def _done(self) -> Iterator[str]:
        """Yield what was done and not done; a plan that a person was shown is told as a whole."""
        shown = {plan.id for plan in self.plans if _is_shown(plan)}
        for operation in self.mine:
            if not {operation.plan, self._undone_plan(operation)} & shown:
                yield self._say(to_person, operation)
        for plan in self.plans:
            if plan.id in shown:
                yield self._ended(plan)
            else:
                yield from self._not_done(plan)

    def _undone_plan(self, operation: Operation) -> str:
        """Return the plan of what an operation takes back, "" where it takes nothing back."""
        undone = self.operations.get(operation.undoes)
        return undone.plan if undone is not None else ""

    def _ended(self, plan: Plan) -> str:
        retry = approval_id(plan.id, Purpose.RETRY, plan.attempt + 1)
        asked = any(question.subject == retry for question in self.open_questions)
        if asked:
            self.retries.add(retry)
        return plan_to_person(
            plan,
            self.operations,
            self.contracts,
            language=self.language,
            can_undo=undoable(plan, self.operations, self.contracts, self.now),
            can_retry=asked,
        )

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


def _is_shown(plan: Plan) -> bool:
    """Whether a plan is told as the whole that a person was shown, now that it came to rest."""
    return bool(plan.previews) and is_ended(plan)


def _call(step: Step) -> str:
    return call_text(step.tool, step.arguments)
