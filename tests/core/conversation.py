"""One conversation played through `what_next`: a lap after each thing that happens."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from landed.core import absorb
from landed.core.absorb import Looked, Replied
from landed.core.approval import Approval, approval_from
from landed.core.arrival import (
    Answered,
    Arrival,
    AskPerson,
    Observed,
    Planned,
    Priced,
    Revised,
)
from landed.core.canonical import Json
from landed.core.changes import Changes, Kind, Move, Record, Stored, apply
from landed.core.contract import Contract, Effect, Interrupt
from landed.core.incarnation import (
    INCARNATION,
    NEVER_RESTORED,
    Incarnation,
    declared,
    incarnation_from,
    reconciled,
    writing,
)
from landed.core.key import Ask, ask_name
from landed.core.next import what_next
from landed.core.operation import Operation
from landed.core.operation_record import from_record
from landed.core.outcome import Acknowledged, LookOutcome, SendOutcome
from landed.core.plan import Place, Plan, PlanState, Step, Wanted, plan_from, step_of
from landed.core.question import Question, last_question_name, question_from
from landed.core.reference import known_by, referred
from landed.core.rules import RULES
from landed.core.scope import (
    Asking,
    AskPrice,
    Check,
    Checking,
    Next,
    Pricing,
    Put,
    Running,
    Scope,
    Send,
    Sending,
    StopWaiting,
    Watch,
    Watching,
)
from landed.core.session import Input
from landed.core.undo import ENDED, Release, release_from
from tests.core.build import SENT_AT, commands, events

# The restaurant and the group, as the demonstration has them.
RESERVE = Contract(
    effect=Effect.REVERSIBLE,
    service="restaurant",
    keyed="key",
    compares_payload=True,
    lookup=True,
    close=True,
    undo="cancel",
    undo_arguments={"id": "{result.id}"},
)
PRICED = replace(RESERVE, undo_priced_by="fee", undo_price="fee_cents")
CANCEL = Contract(
    effect=Effect.IRREVERSIBLE,
    service="restaurant",
    keyed="key",
    compares_payload=True,
    lookup=True,
    close=True,
)
TEXT = Contract(
    effect=Effect.IRREVERSIBLE,
    service="texts",
    on_interrupt=Interrupt.WAIT,
    wait_s=0.05,
    assume_after_s=0.05,
)
READS = Contract(effect=Effect.NONE, service="restaurant")
TOOLS: Mapping[str, Contract] = {
    "reserve": RESERVE,
    "cancel": CANCEL,
    "text": TEXT,
    "check": READS,
    "fee": READS,
}


def book(day: str = "Fri") -> Wanted:
    """A table on that day."""
    return Wanted(tool="reserve", arguments={"day": day})


def text(day: str = "Fri") -> Wanted:
    """A text to the group that names the day."""
    return Wanted(tool="text", arguments={"text": f"table on {day}"})


def check(day: str = "Fri") -> Wanted:
    """A look at what is free on that day."""
    return Wanted(tool="check", arguments={"day": day})


def digest(tool: str) -> str:
    """What names the contract of a tool."""
    return f"sha256:{tool}"


def wanting(
    calls: Sequence[Wanted], tools: Mapping[str, Contract], *, turn: str = "T1", **fields: Any
) -> Plan:
    """A plan of these calls, not stored yet."""
    ask = Ask(
        principal="ann",
        session="s1",
        input=f"in-{turn}",
        turn=turn,
        call_id="c1",
        send_by=fields.pop("send_by", SENT_AT + 9_000.0),
    )
    steps: list[Step] = []
    for each in calls:
        steps.append(_step(each, tools[each.tool], ask, [step.identity for step in steps]))
    made: dict[str, Any] = {
        "id": f"plan-{turn}",
        "tenant": ask.tenant,
        "session": ask.session,
        "turn": turn,
        "input": ask.input,
        "principal": ask.principal,
        "origin": "user",
        "call_id": ask.call_id,
        "revises": "",
        "intent": {},
        "steps": tuple(steps),
        "places": tuple(Place() for _ in steps),
        "made_at": SENT_AT,
        "send_by": ask.send_by,
        "worker": "w1",
    }
    return Plan(**{**made, **fields})


def _step(call: Wanted, contract: Contract, ask: Ask, identities: Sequence[str]) -> Step:
    """One step, as the runtime's planner makes it; `identities` are those of the steps before."""
    named = referred(call.arguments, contract.accepts)
    known = known_by(call.arguments, contract.accepts, identities) if named else None
    return step_of(
        tool=call.tool,
        contract=contract,
        digest=digest(call.tool),
        arguments=call.arguments,
        ask=ask,
        call_id=call.call_id,
        reads=contract.effect is Effect.NONE,
        known=known,
        needs=tuple(sorted({number - 1 for number in named.values()})),
        risk=contract.risk,
    )


@dataclass
class Conversation:
    """What a store holds of one session, what this process waits for, and the last lap."""

    tools: Mapping[str, Contract] = field(default_factory=lambda: dict(TOOLS))
    registered: frozenset[str] | None = None
    now: float = SENT_AT
    language: str = "en"
    keys: tuple[bytes, ...] = (b"",)
    draining: bool = False
    holders: dict[str, str] = field(default_factory=dict)
    store: Stored = field(default_factory=Stored)
    running: set[Running] = field(default_factory=set)
    asked_at: dict[str, tuple[absorb.Question, float]] = field(default_factory=dict)
    turns: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    last: Next | None = None
    moves: list[Move] = field(default_factory=list)
    incarnation: Incarnation = NEVER_RESTORED

    @property
    def decided(self) -> Next:
        """What the last lap decided."""
        assert self.last is not None
        return self.last

    # What the store holds.

    def _of(self, kind: Kind) -> list[Record]:
        return [each for each in self.store.records.values() if each.kind is kind]

    @property
    def operations(self) -> dict[str, Operation]:
        return {each.id: from_record(each) for each in self._of(Kind.OPERATION)}

    @property
    def plans(self) -> dict[str, Plan]:
        return {each.id: plan_from(each) for each in self._of(Kind.PLAN)}

    @property
    def releases(self) -> dict[str, Release]:
        return {each.id: release_from(each) for each in self._of(Kind.RELEASE)}

    @property
    def questions(self) -> dict[str, Question]:
        return {each.id: question_from(each) for each in self._of(Kind.QUESTION)}

    @property
    def approvals(self) -> dict[str, Approval]:
        return {each.id: approval_from(each) for each in self._of(Kind.APPROVAL)}

    @property
    def contracts(self) -> dict[str, Contract]:
        return {digest(tool): contract for tool, contract in self.tools.items()}

    @property
    def plan(self) -> Plan:
        """The plan of the latest turn that has one."""
        return [*self.plans.values()][-1]

    @property
    def question(self) -> Question:
        """The question asked last."""
        return [*self.questions.values()][-1]

    def release(self, operation: str = "op-1") -> Release:
        return self.releases[f"release/{operation}"]

    def states(self, *ids: str) -> list[str]:
        return [self.store.records[id].state for id in ids]

    def observed(self) -> list[tuple[str, str, Json]]:
        """What was read: tool, state, result."""
        seen = self._of(Kind.OBSERVATION)
        return [(str(r.frozen["tool"]), r.state, r.frozen["result"]) for r in seen]

    # One lap.

    def _new_id(self, kind: str) -> str:
        self.counts[kind] += 1
        return f"{_SHORT.get(kind, kind)}-{self.counts[kind]}"

    def scope(self, *arrivals: Arrival) -> Scope:
        """What the next lap would look at."""
        known = self.tools if self.registered is None else self.registered
        name = last_question_name(tenant="default", session="s1")
        return Scope(
            operations=self.operations,
            contracts=self.contracts,
            arrivals=arrivals,
            plans=self.plans,
            releases=self.releases,
            questions=self.questions,
            approvals=self.approvals,
            keys=self.keys,
            last_question=self.store.names.get(name, ""),
            tools={tool: digest(tool) for tool in known},
            new_id=self._new_id,
            worker="w1",
            language=self.language,
            holders=self.holders,
            running=frozenset(self.running),
            incarnation=self.incarnation,
            positions={each.id: (each.made, each.last) for each in self.store.records.values()},
            draining=self.draining,
        )

    def lap(self, *arrivals: Arrival, after_s: float = 0.0) -> list[str]:
        """Decide, write, start; return the events that were written, in order."""
        self.now += after_s
        self.last = what_next(self.scope(*arrivals), RULES, self.now)
        self.write(self.decided.changes)
        for command in self.decided.commands:
            self._start(command)
        return events(self.decided)

    def write(self, changes: Changes) -> None:
        """Write a unit; the journal's position of a move is its place in `moves`, from 1."""
        self.store, _ = apply(self.store, changes)
        self.moves += changes.moves

    def _start(self, command: object) -> None:
        match command:
            case Send(operation=op):
                self.running.add(Sending(operation=op.id, attempt=op.tries))
            case StopWaiting(operation=op):
                self.running.discard(Sending(operation=op.id, attempt=op.tries))
            case Put(operation=op, question=question):
                self.running.add(Asking(operation=op.id))
                self.asked_at[op.id] = (question, self.now)
            case Watch(plan=plan, index=index, observation=id):
                self.running.add(Watching(plan=plan.id, index=index, observation=id))
            case AskPrice(release=id):
                self.running.add(Pricing(release=id))
            case Check(subject=id, index=index):
                self.running.add(Checking(subject=id, index=index))

    @property
    def leaves(self) -> list[str]:
        """The commands of the last lap."""
        return commands(self.decided)

    def crash(self) -> list[str]:
        """Another process goes on, and waits for nothing yet."""
        self.running.clear()
        self.asked_at.clear()
        return self.lap()

    def restored(self) -> list[str]:
        """The store is found to have been put back to how it stands now; the process is new."""
        unit = declared(
            self.incarnation, missed=None, known_at=self.now, by="w1", why="", at=self.now
        )
        self._incarnate(writing(unit))
        return self.crash()

    def reconciled(self) -> list[str]:
        """All that was open then is found out."""
        self._incarnate(writing(reconciled(self.incarnation, by="w1", why="", at=self.now)))
        return self.lap()

    def _incarnate(self, unit: Changes) -> None:
        self.write(unit)
        self.incarnation = incarnation_from(self.store.records[INCARNATION])

    # What happens.

    def _turn(self) -> str:
        self.turns += 1
        return f"T{self.turns}"

    def ask(self, *calls: Wanted, **fields: Any) -> list[str]:
        """The user asks for these calls, in a turn of its own."""
        plan = wanting(calls, self.tools, turn=self._turn(), made_at=self.now, **fields)
        return self.lap(Planned(plan=plan, ask_name=ask_name(plan.ask)))

    def revising(self, *calls: Wanted, drop: Sequence[str] = (), **fields: Any) -> Revised:
        """The arrival of a change of mind about the latest turn."""
        old = self.plan
        turn = self._turn()
        plan = wanting(calls, self.tools, turn=turn, made_at=self.now, revises=old.turn, **fields)
        return Revised(
            plan=plan,
            ask_name=ask_name(plan.ask),
            old_plan=old.id,
            operations=tuple(self._done(old)),
            releases=tuple(self.releases),
            drop=frozenset(drop),
            seen=tuple(_seen(old)),
        )

    def revise(self, *calls: Wanted, drop: Sequence[str] = (), **fields: Any) -> list[str]:
        """The user changes their mind about the latest turn."""
        return self.lap(self.revising(*calls, drop=drop, **fields))

    def _done(self, plan: Plan) -> dict[str, None]:
        """What a revision of that plan's turn is told of, as the runtime's planner tells it."""
        ids = [o.id for o in self.operations.values() if o.turn == plan.turn and not o.undoes]
        ids += [step.keeps for step in plan.steps if step.keeps]
        owed = [r for r in self.releases.values() if r.turn == plan.turn and r.state not in ENDED]
        return dict.fromkeys([*ids, *(each.operation for each in owed)])

    def reply(self, operation: str, outcome: SendOutcome, *, attempt: int = 0) -> list[str]:
        """The last send of an operation (or one of before) comes back."""
        attempt = attempt or self.operations[operation].tries
        self.running.discard(Sending(operation=operation, attempt=attempt))
        return self.lap(Replied(operation=operation, attempt=attempt, outcome=outcome, at=self.now))

    def lands(self, operation: str, made: str = "") -> list[str]:
        """Its send comes back with a yes, which names what it made."""
        return self.reply(operation, Acknowledged(result={"id": made or f"R-{operation}"}))

    def look(self, operation: str, outcome: LookOutcome) -> list[str]:
        """The question that is out about an operation comes back."""
        question, asked_at = self.asked_at.pop(operation)
        self.running.discard(Asking(operation=operation))
        return self.lap(
            Looked(
                operation=operation,
                question=question,
                attempt=self.operations[operation].tries,
                outcome=outcome,
                asked_at=asked_at,
                at=self.now,
            )
        )

    def see(self, outcome: SendOutcome, *, late: bool = False) -> list[str]:
        """The oldest read that is out comes back; when `late`, it is still waited for after it."""
        out = next(each for each in _by_id(self.running) if isinstance(each, Watching))
        if not late:
            self.running.discard(out)
        return self.lap(
            Observed(
                plan=out.plan,
                index=out.index,
                observation=out.observation,
                outcome=outcome,
                at=self.now,
            )
        )

    def price(self, outcome: SendOutcome | int, *, operation: str = "op-1") -> list[str]:
        """The price of an undo comes back."""
        self.running.discard(Pricing(release=f"release/{operation}"))
        if isinstance(outcome, int):
            outcome = Acknowledged(result={"fee_cents": outcome})
        self.counts["observation"] += 1
        seen = f"price-{self.counts['observation']}"
        release = f"release/{operation}"
        return self.lap(Priced(release=release, observation=seen, outcome=outcome, at=self.now))

    def answer(self, yes: bool | None, *, question: str = "", said: str = "") -> list[str]:
        """The person answers the last question, by a button or in words."""
        heard = None
        if said:
            turn = self._turn()
            heard = Input(
                id=f"in-{turn}",
                tenant="default",
                session="s1",
                principal="ann",
                text=said,
                origin="user",
                delivery=f"d-{turn}",
                turn=turn,
                at=self.now,
            )
        return self.lap(
            Answered(
                question=question or self.question.id,
                yes=yes,
                principal="ann",
                heard=heard,
                at=self.now,
            )
        )

    def put(self, arrival: AskPerson) -> list[str]:
        """The application has a question for the person."""
        return self.lap(arrival)

    def done(self) -> bool:
        """Whether the latest plan came to its end."""
        return self.plan.state is PlanState.DONE


def friday(reserve: Contract = RESERVE, cancel: Contract = CANCEL) -> Conversation:
    """A conversation in which Friday's table is booked, as R1."""
    talk = Conversation(tools={**TOOLS, "reserve": reserve, "cancel": cancel})
    talk.ask(book("Fri"))
    talk.lands("op-1", "R1")
    return talk


def saturday(reserve: Contract = RESERVE, cancel: Contract = CANCEL) -> Conversation:
    """The same, and Saturday's is booked instead, as R2."""
    talk = friday(reserve, cancel)
    talk.revise(book("Sat"))
    talk.lands("op-2", "R2")
    return talk


def sent_arguments(talk: Conversation) -> dict[str, Json]:
    """The arguments of the one call that leaves after the last lap."""
    (sent,) = [each for each in talk.decided.commands if isinstance(each, Send)]
    return dict(sent.operation.arguments)


def _by_id(running: set[Running]) -> list[Running]:
    return sorted(running, key=lambda each: (len(str(each)), str(each)))


_SHORT = {"operation": "op", "question": "q", "observation": "ob"}


def _seen(plan: Plan) -> Iterator[tuple[str, str, Place]]:
    for step, place in zip(plan.steps, plan.places, strict=True):
        if step.reads and place.at == "done":
            yield step.tool, step.identity, place
