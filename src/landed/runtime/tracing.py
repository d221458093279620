"""Traces one record through its session: up to the sentence that asked for it, down to its effects.

Pure: it looks at records, and reads none. A record speaks of others by their ids; what it speaks of
is *up* (an operation of its plan, a plan of its input), what speaks of it is *down*.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from landed.core.approval import ApprovalState, Purpose, approval_from
from landed.core.case import case_from
from landed.core.changes import Kind, Record
from landed.core.contract import Contract
from landed.core.operation import Evidence, Operation
from landed.core.operation_record import from_record
from landed.core.plan import Plan, plan_from
from landed.core.question import QuestionState, question_from
from landed.core.sentences import call_text, observed, sentence, to_person
from landed.core.session import input_of, observation_of
from landed.core.telling import as_of_now, summaries
from landed.core.undo import release_from

DOWN_MAX = 200  # links down that are shown of one record
RETRIES_MAX = 100  # attempts through which a step is followed

Contracts = Mapping[str, Contract]


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """One record that another leads to: how, what it is, how it stands, what it says."""

    relation: str
    kind: str
    id: str
    state: str
    says: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """One record with its sentence, the evidence for its state, and its links up and down."""

    id: str
    kind: str
    state: str
    session: str
    says: str
    evidence: tuple[Evidence, ...]
    up: tuple[Link, ...]
    down: tuple[Link, ...]


def trace(
    record: Record,
    records: Sequence[Record],
    contracts: Contracts,
    *,
    now: float,
    language: str = "en",
) -> Trace:
    """Return a record's trace; `records` are those of its session, oldest first."""
    every = {each.id: each for each in (record, *records)}
    speaks = {id: dict(_speaks_of(each, every)) for id, each in every.items()}
    reads = _Reads(contracts, every, now, language)

    def link(relation: str, id: str, *, of: str) -> Link:
        held = every[id]
        state, says = reads.state(held), reads.says(held)
        if held.kind is Kind.PLAN and relation.startswith("step"):
            relation = f"step {_number(plan_from(held), of, every)} of"
        return Link(relation=relation, kind=held.kind, id=id, state=state, says=says)

    up = [link(relation, id, of=of) for of, relation, id in _climb(record.id, speaks)]
    known = {record.id, *(each.id for each in up)}
    down = [
        link(f"its {held.kind}", id, of=record.id)
        for id, held in every.items()
        if record.id in speaks[id] and id not in known
    ]
    operation = from_record(record) if record.kind is Kind.OPERATION else None
    return Trace(
        id=record.id,
        kind=record.kind,
        state=reads.state(record),
        session=record.session,
        says=reads.says(record),
        evidence=operation.evidence if operation is not None else (),
        up=tuple(up),
        down=tuple(down[:DOWN_MAX]),
    )


def spoken_of(record: Record) -> tuple[str, ...]:
    """Return the ids that a record names by itself, without a look at any other."""
    pairs = _SPEAKS.get(record.kind, _of_nothing)(record, {})
    return tuple(id for _, id in pairs if id and id != record.id)


def _climb(id: str, speaks: Mapping[str, Mapping[str, str]]) -> Iterator[tuple[str, str, str]]:
    """Yield who speaks of what, directly or not, each once, going deep first."""
    seen = {id}
    ahead = [(id, iter(speaks[id].items()))]
    while ahead:
        of, others = ahead[-1]
        found = next(others, None)
        if found is None:
            ahead.pop()
            continue
        other, relation = found
        if other in seen:
            continue
        seen.add(other)
        yield of, relation, other
        ahead.append((other, iter(speaks[other].items())))


def _speaks_of(record: Record, every: Mapping[str, Record]) -> Iterator[tuple[str, str]]:
    """Yield the records that one speaks of, each with how."""
    pairs = _SPEAKS.get(record.kind, _of_nothing)(record, every)
    return ((id, relation) for relation, id in pairs if id in every and id != record.id)


Pairs = Iterator[tuple[str, str]]


def _of_case(record: Record, every: Mapping[str, Record]) -> Pairs:
    yield "is about", str(record.frozen["subject"])


def _of_nothing(record: Record, every: Mapping[str, Record]) -> Pairs:
    return iter(())


def _of_operation(record: Record, every: Mapping[str, Record]) -> Pairs:
    operation = from_record(record)
    yield "takes back", operation.undoes
    yield "step of", operation.plan
    yield "retries", operation.retries
    yield "of turn", operation.turn
    yield "asked for in", operation.ask.input


def _of_plan(record: Record, every: Mapping[str, Record]) -> Pairs:
    plan = plan_from(record)
    for id in _approvals(plan, every):
        yield "agreed to in", id
    yield "supersedes", plan.supersedes
    yield "of turn", plan.turn
    yield "asked for in", plan.input


def _approvals(plan: Plan, every: Mapping[str, Record]) -> list[str]:
    """Return the ids of its approvals, those that were given first."""
    held = [each for each in every.values() if each.kind is Kind.APPROVAL]
    its = [each for each in held if each.frozen["plan"] == plan.id]
    return [each.id for each in sorted(its, key=lambda each: each.state != ApprovalState.TAKEN)]


def _of_approval(record: Record, every: Mapping[str, Record]) -> Pairs:
    approval = approval_from(record)
    yield "answers", approval.question
    yield "is to", approval.plan


def _of_question(record: Record, every: Mapping[str, Record]) -> Pairs:
    question = question_from(record)
    yield "answered in", question.input
    yield "is about", question.subject
    yield "of turn", question.turn


def _of_release(record: Record, every: Mapping[str, Record]) -> Pairs:
    release = release_from(record)
    yield "takes back", release.operation
    yield "is done by", release.undo
    yield "asked in", release.question
    yield "of turn", release.turn


def _of_turn(record: Record, every: Mapping[str, Record]) -> Pairs:
    yield "opened by", str(record.frozen["input"])


def _of_message(record: Record, every: Mapping[str, Record]) -> Pairs:
    yield "of turn", str(record.frozen["turn"])


def _of_observation(record: Record, every: Mapping[str, Record]) -> Pairs:
    seen = observation_of(record)
    for held in every.values():
        if held.kind is Kind.PLAN and _number(plan_from(held), seen.id, {}):
            yield "step of", held.id
    yield "of turn", seen.ask.turn
    yield "asked for in", seen.ask.input


_SPEAKS: Mapping[Kind, Callable[[Record, Mapping[str, Record]], Pairs]] = {
    Kind.OPERATION: _of_operation,
    Kind.PLAN: _of_plan,
    Kind.APPROVAL: _of_approval,
    Kind.QUESTION: _of_question,
    Kind.RELEASE: _of_release,
    Kind.TURN: _of_turn,
    Kind.MESSAGE: _of_message,
    Kind.OBSERVATION: _of_observation,
    Kind.CASE: _of_case,
}


def _number(plan: Plan, id: str, every: Mapping[str, Record]) -> int:
    """Return which step of a plan a record is, or was in an earlier attempt; 0 for none of them."""
    wanted = id
    for _ in range(RETRIES_MAX):
        for number, place in enumerate(plan.places, 1):
            if place.record == wanted:
                return number
        later = (each.id for each in every.values() if each.frozen.get("retries") == wanted)
        wanted = next(later, "")
        if not wanted:
            break
    return 0


@dataclass(frozen=True, slots=True)
class _Reads:
    """Says of a record how it stands, and what it is in a sentence."""

    contracts: Contracts
    every: Mapping[str, Record]
    now: float
    language: str

    def state(self, record: Record) -> str:
        if record.kind is Kind.PLAN:
            return as_of_now(plan_from(record), self.now).state
        return record.state

    def says(self, record: Record) -> str:
        match record.kind:
            case Kind.OPERATION:
                return self._operation(from_record(record))
            case Kind.OBSERVATION:
                return self._observation(record)
            case kind if kind in _SAYS:
                return _SAYS[kind](record)
            case _:
                return str(record.frozen.get("text", record.frozen.get("tool", "")))

    def _operation(self, operation: Operation) -> str:
        contract = self.contracts.get(operation.contract)
        if contract is None:
            return call_text(operation.tool, operation.arguments)
        return to_person(operation, contract, language=self.language)

    def _observation(self, record: Record) -> str:
        seen = observation_of(record)
        return sentence(
            observed(
                self.contracts[seen.contract],
                tool=seen.tool,
                arguments=seen.arguments,
                state=seen.state,
                result=seen.result,
                why=seen.why,
            )
        )


def _heard(record: Record) -> str:
    heard = input_of(record)
    return f"{heard.principal or heard.origin} at {instant(heard.at)}: {heard.text}"


def _asked(record: Record) -> str:
    question = question_from(record)
    text = " / ".join(question.text.splitlines())
    if question.state in (QuestionState.OPEN, QuestionState.LAPSED):
        return text
    by = question.answered_by or "somebody"
    return f"{text} ({by} said {question.state} at {instant(question.answered_at)})"


def _approved(record: Record) -> str:
    approval = approval_from(record)
    what = _PURPOSES[approval.purpose]
    if approval.state is ApprovalState.OPEN:
        return f"{what} may be agreed to until {instant(approval.answer_by)}"
    by = approval.by or "nobody"
    at = instant(approval.at)
    return f"{what}: {_SAID[approval.state].format(by=by, at=at)}"


_SAYS: Mapping[Kind, Callable[[Record], str]] = {
    Kind.PLAN: lambda record: "; ".join(summaries(plan_from(record))),
    Kind.APPROVAL: _approved,
    Kind.QUESTION: _asked,
    Kind.INPUT: _heard,
    Kind.RELEASE: lambda record: release_from(record).why,
    Kind.CASE: lambda record: case_from(record).says,
}
_PURPOSES: Mapping[Purpose, str] = {
    Purpose.CONFIRM: "running it",
    Purpose.RETRY: "running it once more",
    Purpose.UNDO: "taking it back",
    Purpose.COMMIT: "beginning it, by its token",
}
_SAID: Mapping[ApprovalState, str] = {
    ApprovalState.TAKEN: "{by} said yes at {at}",
    ApprovalState.DECLINED: "{by} said no at {at}",
    ApprovalState.LAPSED: "not answered, closed at {at}",
}


def instant(at: float) -> str:
    """Return a moment (UTC, seconds since the epoch) as people write it; "-" for none."""
    if not at:
        return "-"
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
