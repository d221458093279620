"""The report: what the person is told of a turn, composed from its records and from nothing else.

Every effect of the turn is in it, what it kept, what it could not take back, what is still owed,
and each question that waits for an answer.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from landed.core.approval import Approval, ApprovalState, Purpose, approval_from, approval_id
from landed.core.changes import Kind, Record
from landed.core.contract import Contract
from landed.core.history import turn_of
from landed.core.operation import Operation, State
from landed.core.operation_record import from_record
from landed.core.plan import At, Plan, PlanState, Step, plan_from
from landed.core.plan_sentences import going_on, not_taken
from landed.core.question import Question, QuestionState, question_from
from landed.core.sentences import (
    NOTHING_DONE,
    call_text,
    corrected,
    held,
    of_turn,
    to_person,
)
from landed.core.session import input_of
from landed.core.telling import as_of_now, is_ended
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
        plans = [as_of_now(plan_from(r), now) for r in records if r.kind is Kind.PLAN]
        self.all_plans = {plan.id: plan for plan in plans}
        self.answers = _answers(turn, records)
        self.plans = [p for p in plans if p.turn == turn or p.id in self._answered()]
        self.mine += [o for o in every if o.plan in self._answered() and o not in self.mine]
        releases = [release_from(r) for r in records if r.kind is Kind.RELEASE]
        self.releases = [owed for owed in releases if owed.turn == turn]
        questions = [question_from(r) for r in records if r.kind is Kind.QUESTION]
        about = {owed.question for owed in self.releases}
        late = _too_late(records, now)
        self.open_questions: list[Question] = [
            q
            for q in questions
            if q.state is QuestionState.OPEN and (q.turn == turn or q.id in about)
            if q.subject not in late
        ]

    def _answered(self) -> frozenset[str]:
        """Return the plans that the words of this turn decided about, with a yes or with a no."""
        return frozenset(approval.plan for approval in self.answers if not _is_refused(approval))

    def sentences(self) -> Iterator[str]:
        """Yield what is told, in order: what was there before, what was done, what is open."""
        for plan in self.plans:
            yield from self._before(plan)
        for approval in filter(_is_refused, self.answers):
            asked = bool(self.open_questions)
            yield not_taken(approval.problem, asked=asked, language=self.language)
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
            elif plan.previews and plan.open:
                of = len(plan.steps)
                yield going_on(done=plan.done, of=of, language=self.language)
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
    PlanState.STOPPING: "stopping",
    PlanState.SUPERSEDED: "superseded",
}


_BY_A_PERSON = frozenset({PlanState.STOPPED, PlanState.UNDONE, PlanState.UNDO_PARTIAL})


def _answers(turn: str, records: Sequence[Record]) -> list[Approval]:
    """Return the approvals that the words of a turn were an answer to, yes or no."""
    words = {r.id for r in records if r.kind is Kind.INPUT and input_of(r).turn == turn}
    questions = (question_from(r) for r in records if r.kind is Kind.QUESTION)
    asked = {q.subject for q in questions if q.input in words and q.state in _YES_OR_NO}
    every = (r for r in records if r.kind is Kind.APPROVAL and r.id in asked)
    return [approval_from(r) for r in every]


_YES_OR_NO = (QuestionState.YES, QuestionState.NO)


def _is_refused(approval: Approval) -> bool:
    """Whether what was said to it was not taken, although it was a yes or a no."""
    return approval.state not in (ApprovalState.TAKEN, ApprovalState.DECLINED)


def _too_late(records: Sequence[Record], now: float) -> frozenset[str]:
    """Return the approvals for which no yes can come any more, so that nobody is asked."""
    approvals = (approval_from(r) for r in records if r.kind is Kind.APPROVAL)
    return frozenset(a.id for a in approvals if now >= a.answer_by)


def _is_shown(plan: Plan) -> bool:
    """Whether a plan is told as a whole, now that it came to rest.

    It is where somebody was shown it so, or had it stopped or taken back as a whole.
    """
    was_shown = bool(plan.previews) or bool(plan.begins)
    return is_ended(plan) and (was_shown or plan.state in _BY_A_PERSON)


def _call(step: Step) -> str:
    return call_text(step.tool, step.arguments)
