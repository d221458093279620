"""The draft of one lap: what was decided so far, and the one way to write it down."""

from dataclasses import replace

from landed.core.approval import (
    Approval,
    ApprovalEvent,
    approval_moved,
    approval_record,
    is_sealed,
    sealed,
    token_name,
)
from landed.core.arrival import Arrival
from landed.core.case import Case, CaseEvent, Why, about, case_moved, case_record
from landed.core.changes import Changes, Guard, Hold, Move, Record
from landed.core.contract import Contract
from landed.core.event import Event
from landed.core.operation import Evidence, Happened, Operation, Source, held_by, moved
from landed.core.operation_record import to_record
from landed.core.pacing import Leaving
from landed.core.plan import BORN, Plan, PlanEvent, plan_moved, plan_record
from landed.core.question import (
    About,
    Question,
    QuestionEvent,
    QuestionState,
    last_question_name,
    question_moved,
    question_record,
)
from landed.core.rules import Rules
from landed.core.scope import Command, Next, Scope
from landed.core.sentences import with_number
from landed.core.undo import Release, ReleaseEvent, release_moved, release_record


class Draft:
    """What one lap has decided so far: the records after it, the unit, the commands."""

    def __init__(self, scope: Scope, rules: Rules, now: float) -> None:
        self.scope = scope
        self.rules = rules
        self.now = now
        self.operations: dict[str, Operation] = dict(scope.operations)
        self.plans: dict[str, Plan] = dict(scope.plans)
        self.releases: dict[str, Release] = dict(scope.releases)
        self.questions: dict[str, Question] = dict(scope.questions)
        self.approvals: dict[str, Approval] = dict(scope.approvals)
        self.cases: dict[str, Case] = dict(scope.cases)
        self.last_question = scope.last_question
        self.moves: list[Move] = []
        self.takes: list[Hold] = []
        self.frees: list[Hold] = []
        self.commands: list[Command] = []
        self.wakes: dict[str, float] = {}
        self.slots: dict[str, int] = dict(scope.slots)
        self.starved: set[str] = set()
        self.queued: set[str] = set()
        self.urgent: set[str] = set()
        self.sending: set[str] = set()
        self.asking: set[str] = set()
        self.checked: set[tuple[str, int]] = set()
        self.guards: dict[str, int] = {}
        self.answers: dict[int, str] = {}
        self.names: dict[str, str] = dict(scope.holders)
        for operation in self.operations.values():
            self.names.update(dict.fromkeys(held_by(operation), operation.id))

    def decided(self) -> Next:
        """Return the draft as the lap's decision."""
        changes = Changes(
            moves=tuple(self.moves),
            guards=tuple(Guard(id=id, version=at) for id, at in self.guards.items()),
            takes=tuple(self.takes),
            frees=tuple(self.frees),
        )
        return Next(
            changes=changes,
            commands=tuple(self.commands),
            operations=self.operations,
            plans=self.plans,
            releases=self.releases,
            questions=self.questions,
            last_question=self.last_question,
            wakes=self.wakes,
            starved=frozenset(self.starved),
            queued=frozenset(self.queued),
            approvals=self.approvals,
            cases=self.cases,
            answers=self.answers,
        )

    def contract(self, digest: str) -> Contract:
        """Return the contract of that digest."""
        return self.scope.contracts[digest]

    def contract_of(self, operation: Operation) -> Contract:
        """Return the contract an operation was made under."""
        return self.scope.contracts[operation.contract]

    def is_mine(self, worker: str) -> bool:
        """Whether this worker has to see to it; what others hold is here for what is ours."""
        return worker == self.scope.worker or not self.scope.worker

    def is_older(self, id: str) -> bool:
        """Whether a record was made before the last restore of the store."""
        made, _ = self.scope.positions.get(id, _NEW)
        return 0 < made <= self.scope.incarnation.horizon

    def is_untouched(self, id: str) -> bool:
        """Whether nothing has happened to a record since the last restore of the store."""
        _, last = self.scope.positions.get(id, _NEW)
        return 0 < last <= self.scope.incarnation.horizon

    def may_leave(self, operation: Operation, kind: Leaving) -> bool:
        """Whether it may leave now: nothing is sent while a restored store is reconciled, and the
        pace of its service says when its turn comes.
        """
        if kind is not Leaving.QUESTION and self.scope.incarnation.reconciling:
            self.wakes[operation.id] = operation.send_by
            return False
        service = self.contract_of(operation).service
        at = self.scope.turn(service, operation, kind)
        if at <= self.now:
            return True
        self.wakes[operation.id] = at
        self.queued.add(operation.id)
        return False

    def answer(self, arrival: Arrival, says: str) -> None:
        """Say to whoever handed an arrival in what came of it."""
        self.answers[id(arrival)] = says

    def write(self, after: Record, event: str, at: float | None = None) -> None:
        """Add one move to the unit."""
        happened = Event(name=event, record=after.id, at=self.now if at is None else at)
        self.moves.append(Move(after=after, event=happened))

    # Operations.

    def keep(self, event: Happened, after: Operation, *, at: float | None = None) -> Operation:
        """Add an operation's move to the unit, with the names it takes or frees."""
        before = self.operations.get(after.id)
        had = held_by(before) if before is not None else ()
        may_miss = after.lifted or event is Happened.RESTORED
        has = self._still_free(after, had) if may_miss else held_by(after)
        self.takes += [Hold(name=name, record=after.id) for name in has if name not in had]
        self.names.update(dict.fromkeys(has, after.id))
        for name in had:
            if name in has:
                continue
            self.frees.append(Hold(name=name, record=after.id))
            if self.names.get(name) == after.id:
                del self.names[name]
        self.operations[after.id] = after
        made, last = self.scope.positions.get(after.id, _NEW)
        self.write(to_record(after, made=made, last=last), event, at)
        self._open_cases(before, after)
        return after

    def _still_free(self, after: Operation, had: tuple[str, ...]) -> tuple[str, ...]:
        """Return the names it holds now; what it let go of, or never had, may be another's."""
        mine = ("", after.id)
        every = held_by(after)
        return tuple(name for name in every if name in had or self.names.get(name, "") in mine)

    def _open_cases(self, before: Operation | None, after: Operation) -> None:
        """Put in front of a person what is settled and yet needs somebody."""
        if before is None:
            return
        if after.contradicted and not before.contradicted:
            self._make_case(about(after, Why.CONTRADICTED, at=self.now))
        if after.unexplained and not before.unexplained:
            self._make_case(about(after, Why.UNEXPLAINED, at=self.now))

    def _make_case(self, case: Case) -> None:
        made = replace(case, version=1)
        self.cases[made.id] = made
        self.write(case_record(made), CaseEvent.OPENED)

    def move_case(self, case: Case, event: CaseEvent, **changed: object) -> Case:
        """Move a case."""
        after = case_moved(case, event, **changed)
        self.cases[after.id] = after
        self.write(self._at(case_record(after)), event)
        return after

    def hand_over(self, old: Operation, new: Operation) -> None:
        """Let the names that both need go from one to the other, in this unit."""
        for name in set(old.names) & set(new.names):
            if self.names.get(name) == old.id:
                self.frees.append(Hold(name=name, record=old.id))
                self.names[name] = new.id

    def move(
        self,
        operation: Operation,
        event: Happened,
        says: str = "",
        *,
        source: Source = Source.RUNTIME,
        by: str = "",
        **changed: object,
    ) -> Operation:
        """Move an operation by the runtime's own doing, or by a person's word."""
        evidence = Evidence(source=source, at=self.now, says=says, by=by) if says else None
        after = moved(operation, event, at=self.now, evidence=evidence, **changed)
        return self.keep(event, after)

    def make(self, operation: Operation) -> Operation:
        """Record an operation that is not stored yet."""
        key = self.rules.key_for(operation, self.contract_of(operation))
        return self.keep(
            Happened.MADE, operation if key == operation.key else replace(operation, key=key)
        )

    # Plans, releases, questions.

    def make_plan(self, plan: Plan, *, ask_name: str) -> Plan:
        """Record a plan that is not stored yet, in the state that it is born in."""
        made = replace(plan, version=1)
        if ask_name:
            self.takes.append(Hold(name=ask_name, record=made.id))
        self.plans[made.id] = made
        self.write(plan_record(made), BORN[made.state])
        return made

    def move_plan(self, plan: Plan, event: PlanEvent, **changed: object) -> Plan:
        """Move a plan."""
        after = plan_moved(plan, event, **changed)
        self.plans[after.id] = after
        self.write(self._at(plan_record(after)), event)
        return after

    def make_release(self, release: Release) -> Release:
        """Record a release that is not stored yet."""
        made = replace(release, version=1)
        self.releases[made.id] = made
        self.write(release_record(made), ReleaseEvent.OWED)
        return made

    def move_release(self, release: Release, event: ReleaseEvent, **changed: object) -> Release:
        """Move a release."""
        after = release_moved(release, event, **changed)
        self.releases[after.id] = after
        self.write(self._at(release_record(after)), event)
        return after

    def ask(
        self,
        text: str,
        *,
        about: About,
        subject: str,
        session: tuple[str, str],
        turn: str,
        principal: str,
        amount_cents: int | None = None,
        claim: str = "",
        typed: tuple[str, ...] = (),
    ) -> Question:
        """Put a question to a person; it is the last one of its conversation from now on."""
        tenant, conversation = session
        number = self._number(about)
        question = Question(
            id=self.scope.new_id("question"),
            tenant=tenant,
            session=conversation,
            turn=turn,
            principal=principal,
            about=about,
            subject=subject,
            # Words that have to be typed say by themselves how to answer.
            text=text if typed else with_number(text, number, language=self.scope.language),
            number=number,
            amount_cents=amount_cents,
            claim=claim,
            typed=typed,
            made_at=self.now,
            version=1,
        )
        self._is_last(question)
        self.questions[question.id] = question
        self.write(question_record(question), QuestionEvent.ASKED)
        return question

    def _is_last(self, question: Question) -> None:
        name = last_question_name(tenant=question.tenant, session=question.session)
        if self.last_question:
            self.frees.append(Hold(name=name, record=self.last_question))
        # A question asked earlier in this same lap hands the name on before it has taken it.
        self.takes = [hold for hold in self.takes if hold.name != name]
        self.takes.append(Hold(name=name, record=question.id))
        self.last_question = question.id

    def _number(self, about: About) -> int:
        """Return the number of a new question: 0 where a plain yes can mean no other."""
        before = self.questions.get(self.last_question)
        if before is None or before.state is not QuestionState.OPEN or about is About.UNSURE:
            return 0
        return max(before.number, 1) + 1

    def move_question(
        self, question: Question, event: QuestionEvent, **changed: object
    ) -> Question:
        """Move a question."""
        after = question_moved(question, event, **changed)
        self.questions[after.id] = after
        self.write(self._at(question_record(after)), event)
        return after

    # Approvals.

    def ask_yes(self, approval: Approval, text: str, *, turn: str) -> Approval:
        """Record an approval and the question it answers; an undo is a button, and asks nothing."""
        question = ""
        if text:
            question = self.ask_about(approval, text, turn=turn).id
        return self.make_approval(replace(approval, question=question))

    def ask_about(self, approval: Approval, text: str, *, turn: str) -> Question:
        """Put the question that an approval is the answer to."""
        return self.ask(
            text,
            about=About.PLAN,
            subject=approval.id,
            session=(approval.tenant, approval.session),
            turn=turn,
            principal=approval.principal,
            typed=approval.typed,
        )

    def make_approval(self, approval: Approval) -> Approval:
        """Record an approval that is not stored yet, sealed."""
        made = sealed(replace(approval, version=1), self.scope.keys)
        if made.token:
            self.takes.append(Hold(name=token_name(made.token), record=made.id))
        self.approvals[made.id] = made
        self.write(approval_record(made), ApprovalEvent.OFFERED)
        return made

    def move_approval(
        self, approval: Approval, event: ApprovalEvent, **changed: object
    ) -> Approval:
        """Move an approval; one whose seal is wrong gets no right one by that."""
        after = approval_moved(approval, event, **changed)
        if is_sealed(approval, self.scope.keys):
            after = sealed(after, self.scope.keys)
        self.approvals[after.id] = after
        self.write(self._at(approval_record(after)), event)
        return after

    def _at(self, after: Record) -> Record:
        """Return a record with the journal positions that it is known to have."""
        made, last = self.scope.positions.get(after.id, _NEW)
        return replace(after, made=made, last=last)


_NEW = (0, 0)
