"""The numbered timeline of a run: what was committed, and what the services say they did, in order.

It is rendered from the journal's own events and the services' own logs, so that it cannot tell
another story than they do.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from landed.core.canonical import Json
from landed.core.changes import Changes, Kind, Move, Record
from landed.core.erased import ERASED
from landed.core.event import Event
from landed.core.journal import Entry, as_of
from landed.core.operation import Happened, Operation, Source, State
from landed.core.operation_record import from_record
from landed.core.plan import At, Plan, PlanEvent, plan_from
from landed.core.question import About, QuestionEvent, question_from
from landed.core.session import input_of, observation_of
from landed.core.store import Store
from landed.core.undo import ReleaseEvent, release_from
from landed.runtime.reader import Reader

ENTRIES_MAX = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line: its number from 1, seconds since the run began, what kind it is, what it says.

    `operation` is the one it tells of; `subject` the one that an owed undo is about. `state` is how
    the operation stood right after it, or the release where there is a `subject`.
    """

    n: int
    at_s: float
    type: str
    text: str
    operation: str = ""
    subject: str = ""
    state: str = ""

    def __str__(self) -> str:
        return f"{self.n:3}  {self.at_s:7.2f}s  {self.type:<14} {self.text}"

    def plain(self) -> dict[str, Json]:
        """Return it as `landed demo --json` prints it."""
        plain: dict[str, Json] = {
            "n": self.n,
            "at_s": self.at_s,
            "type": self.type,
            "text": self.text,
        }
        named: dict[str, Json] = {
            "operation": self.operation,
            "subject": self.subject,
            "state": self.state,
        }
        return {**plain, **{name: id for name, id in named.items() if id}}


@dataclass(slots=True, eq=False)
class Timeline:
    """Collects lines. `services` is called before each of ours, to bring in what happened there.

    `now` is the time of the run in seconds; `listener` is handed each line as it is added.
    """

    now: Callable[[], float]
    services: Callable[["Timeline"], None] = lambda timeline: None
    listener: Callable[[Line], None] = lambda line: None
    lines: list[Line] = field(default_factory=list[Line])
    made: dict[str, str] = field(default_factory=dict[str, str])
    steps: dict[str, int] = field(default_factory=dict[str, int])

    def add(
        self, type: str, text: str, *, operation: str = "", subject: str = "", state: str = ""
    ) -> None:
        """Add a line of ours, after whatever the services did before."""
        self.services(self)
        at_s = self.now()
        self.append(type, text, operation=operation, subject=subject, state=state, at_s=at_s)

    def append(
        self,
        type: str,
        text: str,
        *,
        at_s: float,
        operation: str = "",
        subject: str = "",
        state: str = "",
    ) -> None:
        """Add a line as it is."""
        line = Line(
            n=len(self.lines) + 1,
            at_s=round(at_s, 3),
            type=type,
            text=text,
            operation=operation,
            subject=subject,
            state=state,
        )
        self.lines.append(line)
        self.listener(line)

    def committed(self, changes: Changes) -> None:
        """Add the lines of a unit that became durable."""
        for move in changes.moves:
            told = _TELLERS.get(move.after.kind)
            if told is not None:
                told(self, move)


async def replayed(store: Store, *, tenant: str, session: str) -> Timeline:
    """Return the timeline of a session as its journal tells it; nothing is claimed."""
    return await retold(store, await Reader(store=store).records(tenant=tenant, session=session))


async def retold(store: Store, records: Sequence[Record]) -> Timeline:
    """Return the timeline of some records as their journal tells it; nothing is claimed."""
    told: list[tuple[Entry, Record]] = []
    for record in records:
        for entry in await store.journal(record=record.id, limit=ENTRIES_MAX):
            told.append((entry, as_of(record, entry)))
    told.sort(key=lambda one: one[0].seq)
    begun = told[0][0].at if told else 0.0
    at_s = 0.0
    timeline = Timeline(now=lambda: at_s)
    for entry, record in told:
        at_s = max(at_s, entry.at - begun)
        if entry.body is None or entry.event == ERASED:
            _erased(timeline, entry, record)
            continue
        event = Event(name=entry.event, record=entry.id, at=entry.at)
        timeline.committed(Changes(moves=(Move(after=record, event=event),)))
    return timeline


def _erased(timeline: Timeline, entry: Entry, record: Record) -> None:
    """Say what happened where the details went, and that they did."""
    said = "its details were erased" if entry.event == ERASED else f"{entry.event}, details erased"
    state = record.state if record.kind is Kind.OPERATION else ""
    text = f"{record.kind} {entry.id}: {said}"
    timeline.add("erased", text, operation=entry.id, state=state)


def _input(timeline: Timeline, move: Move) -> None:
    received = input_of(move.after)
    timeline.add("input", f"{received.turn} {received.origin}: {received.text}")


def _observation(timeline: Timeline, move: Move) -> None:
    seen = observation_of(move.after)
    type = "tool.cancelled" if seen.state == "dropped" else "tool.result"
    said = shown(seen.result) if seen.state == "answered" else seen.why
    turn = f"{seen.ask.turn} " if seen.ask.turn else ""
    timeline.add(type, f"{turn}{seen.tool}: {said}", operation=seen.id)


def _operation(timeline: Timeline, move: Move) -> None:
    operation = from_record(move.after)
    if operation.state is State.CONFIRMED:
        timeline.made[operation.id] = shown(operation.result)
    teller = EVENTS.get(Happened(move.event.name))
    if teller is not None:
        type, text = teller
        if operation.state is State.WITHDRAWN and operation.tries:
            type = "tool.cancelled"  # Only a wrong design withdraws what was sent.
        timeline.add(type, text(operation), operation=operation.id, state=operation.state)


def _release(timeline: Timeline, move: Move) -> None:
    owed = release_from(move.after)
    teller = RELEASE_LINES.get(ReleaseEvent(move.event.name))
    if teller is None:
        return
    type, said = teller
    what = timeline.made.get(owed.operation, owed.operation)
    timeline.add(
        type,
        said.format(what=what, why=owed.why, turn=owed.turn),
        operation=owed.undo,
        subject=owed.operation,
        state=owed.state,
    )


def _question(timeline: Timeline, move: Move) -> None:
    asked = question_from(move.after)
    event = QuestionEvent(move.event.name)
    type, said = QUESTION_LINES[event]
    steps = 1
    if asked.about is About.PLAN:
        steps = timeline.steps.get(asked.turn, 1)
        type = "plan.ask" if event is QuestionEvent.ASKED else type
    text = " / ".join(asked.text.splitlines())
    by = asked.answered_by or "the user"
    timeline.add(type, said.format(id=asked.id, text=text, by=by, steps=steps))


def _plan(timeline: Timeline, move: Move) -> None:
    """Tell what becomes of a plan, and of a step that is not carried out or was done already."""
    plan, event = plan_from(move.after), PlanEvent(move.event.name)
    timeline.steps[plan.turn] = len(plan.steps)
    if event in PLAN_LINES:
        count = f"{plan.done} of {len(plan.steps)} done"
        said = PLAN_LINES[event].format(by=plan.by, why=plan.why, count=count, attempt=plan.attempt)
        timeline.add("plan", f"{plan.turn} {' / '.join(said.splitlines())}")
    for said in _skipped(plan, event):
        timeline.add("skip", f"{plan.turn} {said}")


def _skipped(plan: Plan, event: PlanEvent) -> list[str]:
    """Return what is not carried out, or was done already, in a line for each."""
    match event:
        case PlanEvent.PLANNED | PlanEvent.PROPOSED:
            return [f"{step.tool}: kept, {step.keeps}" for step in plan.steps if step.keeps]
        case PlanEvent.SUPERSEDED:
            pairs = zip(plan.steps, plan.places, strict=True)
            left = [step for step, p in pairs if p.at is At.WAITING and not step.reads]
            return [f"{step.tool}: not done, superseded by {plan.why}" for step in left]
        case PlanEvent.BROKE_OFF:
            return [f"the rest is not done: {plan.why}"]
        case _:
            return []


def _message(timeline: Timeline, move: Move) -> None:
    """Tell of what was said before it was done; what is said last is not a line of its own."""
    if move.after.state == "announced":
        timeline.add("message", f"{move.after.frozen['turn']} {move.after.frozen['text']}")


_TELLERS: Mapping[Kind, Callable[[Timeline, Move], None]] = {
    Kind.INPUT: _input,
    Kind.OBSERVATION: _observation,
    Kind.OPERATION: _operation,
    Kind.RELEASE: _release,
    Kind.QUESTION: _question,
    Kind.PLAN: _plan,
    Kind.MESSAGE: _message,
}

RELEASE_LINES: Mapping[ReleaseEvent, tuple[str, str]] = {
    ReleaseEvent.OWED: ("release", "{turn} {what}: owed if it landed"),
    ReleaseEvent.HANDED_ON: ("release", "{turn} {what}: owed by this turn now"),
    ReleaseEvent.KEPT: ("release", "{turn} {what}: kept, {why}"),
    ReleaseEvent.NEVER_LANDED: ("release", "{turn} {what}: void, {why}"),
    ReleaseEvent.FELL_DUE: ("compensate", "{what}: {why}"),
    ReleaseEvent.UNDO_FAILED: ("compensate", "{what}: not done, {why}"),
    ReleaseEvent.DECLINED: ("release", "{turn} {what}: stays, {why}"),
    ReleaseEvent.UNDONE: ("release", "{turn} {what}: done"),
}

# What is not here is told by the steps, or by the question that it comes from.
PLAN_LINES: Mapping[PlanEvent, str] = {
    PlanEvent.FOUND_INVALID: "invalid: {why}",
    PlanEvent.EXPIRED: "expired: {why}",
    PlanEvent.ABANDONED: "abandoned: {why}",
    PlanEvent.RETRIED: "attempt {attempt}: {count} before",
    PlanEvent.STOP_ASKED: "{by} stops it: {count} so far",
    PlanEvent.STOPPED: "stopped: {count}",
    PlanEvent.UNDO_ASKED: "{by} takes it back",
    PlanEvent.UNDONE: "taken back",
    PlanEvent.UNDO_BROKE_OFF: "not all of it could be taken back: {why}",
}

QUESTION_LINES: Mapping[QuestionEvent, tuple[str, str]] = {
    QuestionEvent.ASKED: ("compensate.ask", "{id}: {text}"),
    QuestionEvent.APPROVED: ("approval", "{id}: runs exactly its {steps} step(s), {by} said yes"),
    QuestionEvent.DECLINED: ("approval", "{id}: declined, {by} said no"),
    QuestionEvent.LAPSED: ("approval", "{id}: lapsed, nobody answered it"),
}


def _named(operation: Operation) -> str:
    return f"{operation.turn} {operation.tool}" if operation.turn else operation.tool


def _why(operation: Operation) -> str:
    return operation.evidence[-1].says if operation.evidence else ""


def _told(operation: Operation) -> str:
    return f"{_named(operation)}: {_why(operation)}"


def _sent(operation: Operation) -> str:
    given = ", ".join(f"{name}={value}" for name, value in operation.arguments.items())
    key = f" key={operation.key}" if operation.key else ""
    return f"{_named(operation)}({given}){key}"


def _resolved(operation: Operation) -> str:
    what = _why(operation)
    if operation.state is State.CONFIRMED:
        closed = operation.evidence[-1].source is Source.CLOSE
        what = shown(operation.result) + ("; key closed" if closed else "")
    return f"{operation.key or operation.id}: {what}"


# What each event of an operation is a line of. What is not here is told by a neighbour.
EVENTS: Mapping[Happened, tuple[str, Callable[[Operation], str]]] = {
    Happened.SENT: ("tool.sent", _sent),
    Happened.BLOCKED: ("skip", lambda o: f"{_named(o)}: {o.id} waits for {o.blocked_by}"),
    Happened.WITHDRAWN: ("skip", _told),
    Happened.ACKNOWLEDGED: ("tool.result", lambda o: f"{_named(o)}: {shown(o.result)}"),
    Happened.ACCEPTED: ("tool.result", _told),
    Happened.REFUSED: ("tool.result", _told),
    Happened.REFUSED_AGAIN: ("tool.unknown", _told),
    Happened.NOT_SENT: ("tool.result", _told),
    Happened.NEVER_SENT: ("tool.result", _told),
    Happened.ANSWER_LOST: ("tool.unknown", _told),
    Happened.STOPPED_MIDWAY: ("tool.result", _told),
    Happened.RESENT: ("resolve", lambda o: f"{o.key}: sent again with the same key"),
    Happened.READ_BACK: ("resolve", _resolved),
    Happened.READ_ABSENT: ("resolve", _resolved),
    Happened.LAG_OVER: ("tool.unknown", _told),
    Happened.FOUND: ("resolve", _resolved),
    Happened.CLOSED_EMPTY: ("resolve", _resolved),
    Happened.ABSENT_FOR_GOOD: ("resolve", _resolved),
    Happened.LOOKED: ("resolve", _resolved),
    Happened.ASSUMED: ("resolve", _resolved),
    Happened.GAVE_UP: ("resolve", _resolved),
    Happened.RULED_LANDED: ("resolve", _resolved),
    Happened.RULED_ABSENT: ("resolve", _resolved),
    Happened.UNWANTED: ("interrupt", _told),
    Happened.CONTRADICTED: ("resolve", _resolved),
    Happened.RESTORED: ("tool.unknown", _told),
}


def shown(result: Json) -> str:
    """Return a result in few words: its id where it has one."""
    if isinstance(result, Mapping):
        if "id" in result:
            return str(result["id"])
        return ", ".join(f"{name} {value}" for name, value in result.items())
    return "done" if result is None else str(result)
