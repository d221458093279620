"""The draft of one lap: what was decided so far, and the one way to write it down."""

from dataclasses import replace

from landed.core.changes import Changes, Hold, Move, Record
from landed.core.contract import Contract
from landed.core.event import Event
from landed.core.operation import Evidence, Happened, Operation, Source, moved, to_record
from landed.core.plan import Plan, PlanEvent, plan_moved, plan_record
from landed.core.question import (
    About,
    Question,
    QuestionEvent,
    last_question_name,
    question_moved,
    question_record,
)
from landed.core.rules import Rules
from landed.core.scope import Command, Next, Scope
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
        self.last_question = scope.last_question
        self.moves: list[Move] = []
        self.takes: list[Hold] = []
        self.frees: list[Hold] = []
        self.commands: list[Command] = []
        self.wakes: dict[str, float] = {}
        self.slots: dict[str, int] = dict(scope.slots)
        self.starved: set[str] = set()
        self.urgent: set[str] = set()
        self.sending: set[str] = set()
        self.asking: set[str] = set()
        self.names: dict[str, str] = dict(scope.holders)
        for operation in self.operations.values():
            if operation.holds:
                self.names.update(dict.fromkeys(operation.names, operation.id))

    def decided(self) -> Next:
        """Return the draft as the lap's decision."""
        changes = Changes(moves=tuple(self.moves), takes=tuple(self.takes), frees=tuple(self.frees))
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
        )

    def contract(self, digest: str) -> Contract:
        """Return the contract of that digest."""
        return self.scope.contracts[digest]

    def contract_of(self, operation: Operation) -> Contract:
        """Return the contract an operation was made under."""
        return self.scope.contracts[operation.contract]

    def write(self, after: Record, event: str, at: float | None = None) -> None:
        """Add one move to the unit."""
        happened = Event(name=event, record=after.id, at=self.now if at is None else at)
        self.moves.append(Move(after=after, event=happened))

    # Operations.

    def keep(self, event: Happened, after: Operation, *, at: float | None = None) -> Operation:
        """Add an operation's move to the unit, with the names it takes or frees."""
        before = self.operations.get(after.id)
        held = before is not None and before.holds
        if after.holds and not held:
            self.takes += [Hold(name=name, record=after.id) for name in after.names]
            self.names.update(dict.fromkeys(after.names, after.id))
        if held and not after.holds:
            self.frees += [Hold(name=name, record=after.id) for name in after.names]
            for name in after.names:
                if self.names.get(name) == after.id:
                    del self.names[name]
        self.operations[after.id] = after
        made, last = self.scope.positions.get(after.id, _NEW)
        self.write(to_record(after, made=made, last=last), event, at)
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
        """Record a plan that is not stored yet."""
        made = replace(plan, version=1)
        if ask_name:
            self.takes.append(Hold(name=ask_name, record=made.id))
        self.plans[made.id] = made
        self.write(plan_record(made), PlanEvent.PLANNED)
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
    ) -> Question:
        """Put a question to a person; it is the last one of its conversation from now on."""
        tenant, conversation = session
        question = Question(
            id=self.scope.new_id("question"),
            tenant=tenant,
            session=conversation,
            turn=turn,
            principal=principal,
            about=about,
            subject=subject,
            text=text,
            amount_cents=amount_cents,
            claim=claim,
            made_at=self.now,
            version=1,
        )
        name = last_question_name(tenant=tenant, session=conversation)
        if self.last_question:
            self.frees.append(Hold(name=name, record=self.last_question))
        # A question asked earlier in this same lap hands the name on before it has taken it.
        self.takes = [hold for hold in self.takes if hold.name != name]
        self.takes.append(Hold(name=name, record=question.id))
        self.last_question = question.id
        self.questions[question.id] = question
        self.write(question_record(question), QuestionEvent.ASKED)
        return question

    def move_question(
        self, question: Question, event: QuestionEvent, **changed: object
    ) -> Question:
        """Move a question."""
        after = question_moved(question, event, **changed)
        self.questions[after.id] = after
        self.write(self._at(question_record(after)), event)
        return after

    def _at(self, after: Record) -> Record:
        """Return a record with the journal positions that it is known to have."""
        made, last = self.scope.positions.get(after.id, _NEW)
        return replace(after, made=made, last=last)


_NEW = (0, 0)
