"""The history: what a model is shown of a session, computed from its records each time.

So it can neither claim what did not happen nor leave out what did. The record is append-only truth
with two clocks: `happened_at`, when the effect happened, and `recorded_at`, when that became known.
The *cache* view appends (what a model was once shown stays as it was shown, so that prompt caches
hold); the *story* view puts each thing where it happened.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from landed.core.changes import Kind, Record
from landed.core.contract import Contract
from landed.core.erased import ERASED, erased_on
from landed.core.journal import Entry, as_of
from landed.core.operation import Happened, Operation, State
from landed.core.operation_record import from_record
from landed.core.plan import Plan, PlanState, plan_from
from landed.core.sentences import observed, sentence, to_model
from landed.core.session import Observation, input_of, observation_of
from landed.core.telling import TOLD_ON
from landed.core.telling import to_model as to_model_of_plan


class View(StrEnum):
    """In which order a history is told."""

    CACHE = "cache"
    STORY = "story"


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One line of a history.

    `role` is `user`, `tool` or `assistant`; times are UTC seconds; `record` is the id it tells of.
    `effect` says that it tells of a call that may have changed the world.
    """

    role: str
    text: str
    happened_at: float
    recorded_at: float
    record: str
    effect: bool = False


Contracts = Mapping[str, Contract]


def history(
    records: Sequence[Record],
    told: Mapping[str, Sequence[Entry]],
    contracts: Contracts,
    *,
    view: View = View.CACHE,
) -> tuple[Item, ...]:
    """Return what a model is shown of a session.

    `records` are the session's, `told` the journal entries of those operations that were handed to
    a caller before they were settled: each of these stands where it was told, and what became of
    the operation is a line of its own after it. The same for plans that `has_endings` names: each
    time such a plan came to rest without being done is a line, which stays when it goes on.
    """
    lines: list[tuple[int, Item]] = []
    for record in records:
        match record.kind:
            case Kind.INPUT:
                lines.append((record.made, _words(record)))
            case Kind.MESSAGE | Kind.QUESTION:
                lines.append((record.made, _said(record)))
            case Kind.OBSERVATION:
                lines.append((record.made, _seen(observation_of(record), contracts)))
            case Kind.OPERATION:
                lines += _effect(record, told.get(record.id, ()), contracts, view=view)
            case Kind.PLAN:
                lines += _endings(record, told.get(record.id, ()))
            case _:
                continue
    if view is View.STORY:
        lines.sort(key=lambda line: (line[1].happened_at, line[0]))
    else:
        lines.sort(key=lambda line: line[0])
    return tuple(item for _, item in lines)


def compacted(items: Sequence[Item], summary: str, *, last: int) -> tuple[Item, ...]:
    """Return a history in which a summary stands for all but the `last` items.

    What may have changed the world is never summed up: those items stay as they are, in their
    order, whatever the summary says of them.
    """
    cut = max(0, len(items) - last)
    old, kept = items[:cut], tuple(items[cut:])
    if not old:
        return kept
    summed_up = Item(
        role="assistant",
        text=summary,
        happened_at=old[0].happened_at,
        recorded_at=old[-1].recorded_at,
        record="",
    )
    return (summed_up, *(item for item in old if item.effect), *kept)


def turn_of(operation: Operation) -> str:
    """Return the turn an operation belongs to; a call made without an input is a turn of its own.

    Such a turn is not stored apart: its id is the operation's.
    """
    return operation.turn or operation.id


def when_it_happened(operation: Operation) -> float:
    """Return when the effect happened, as far as is known: when its last send left."""
    if operation.state in (State.CONFIRMED, State.ACCEPTED, State.ASSUMED):
        return operation.last_sent_at or operation.made_at
    return operation.settled_at or operation.made_at


def _words(record: Record) -> Item:
    received = input_of(record)
    role = "user" if received.origin == "user" else received.origin
    return Item(
        role=role,
        text=received.text,
        happened_at=received.at,
        recorded_at=received.at,
        record=record.id,
    )


def _said(record: Record) -> Item:
    when = "at" if record.kind is Kind.MESSAGE else "made_at"
    at: float = record.frozen[when]  # type: ignore[assignment]
    return Item(
        role="assistant",
        text=str(record.frozen["text"]),
        happened_at=at,
        recorded_at=at,
        record=record.id,
    )


def _seen(seen: Observation, contracts: Contracts) -> Item:
    text = observed(
        contracts[seen.contract],
        tool=seen.tool,
        arguments=seen.arguments,
        state=seen.state,
        result=seen.result,
        why=seen.why,
    )
    return Item(
        role="tool",
        text=sentence(text),
        happened_at=seen.at,
        recorded_at=seen.at,
        record=seen.id,
    )


def _effect(
    record: Record, told: Sequence[Entry], contracts: Contracts, *, view: View
) -> list[tuple[int, Item]]:
    operation = from_record(record)
    contract = contracts[operation.contract]
    # An erasure is its last event, and not what it came to: that stays about where it was.
    position = record.made if erased_on(operation.arguments) else record.last
    now = (position, _line(operation, contract))
    if view is View.STORY or not was_told_before(operation):
        return [now]
    lines = [
        (entry.seq, _line(then, contract, at=entry.at)) for entry, then in _tellings(record, told)
    ]
    if operation.contradicted:
        return [*lines, now]
    if operation.told == operation.state and lines:
        return lines
    return [*lines, now]


def has_endings(plan: Plan) -> bool:
    """Whether a plan came to rest without being done, so that its journal is needed for that."""
    came_to_rest = plan.state is PlanState.SUPERSEDED and plan.ended_at > 0
    return came_to_rest or plan.attempt > 1 or plan.state not in _BY_ITS_OPERATIONS


# What these come to is told by the operations themselves.
_BY_ITS_OPERATIONS = frozenset(
    {PlanState.RUNNING, PlanState.IN_DOUBT, PlanState.DONE, PlanState.SUPERSEDED}
)


def _endings(record: Record, entries: Sequence[Entry]) -> list[tuple[int, Item]]:
    lines: list[tuple[int, Item]] = []
    for entry in entries:
        if entry.event not in TOLD_ON:
            continue
        text = _GONE.format(state=entry.state)
        if entry.body is not None:
            text = to_model_of_plan(plan_from(as_of(record, entry)))
        ended = Item(
            role="tool",
            text=text,
            happened_at=entry.at,
            recorded_at=entry.at,
            record=record.id,
        )
        lines.append((entry.seq, ended))
    return lines


# What stands where a model was told what is erased by now.
_GONE = "A plan was {state}; what was told of it here was erased since."


def _line(operation: Operation, contract: Contract, *, at: float | None = None) -> Item:
    last = operation.evidence[-1].at if operation.evidence else operation.made_at
    return Item(
        role="tool",
        text=to_model(operation, contract),
        happened_at=when_it_happened(operation),
        recorded_at=at if at is not None else last,
        record=operation.id,
        effect=True,
    )


def _tellings(record: Record, entries: Sequence[Entry]) -> list[tuple[Entry, Operation]]:
    """Return the operation as it was when it was told to a caller, and when it was settled."""
    then: list[tuple[Entry, Operation]] = []
    for entry in entries:
        if entry.body is None or entry.event in (Happened.CONTRADICTED, ERASED):
            continue
        as_it_was = from_record(as_of(record, entry))
        if entry.event == Happened.TOLD or (as_it_was.final and entry.seq != record.last):
            then.append((entry, as_it_was))
    return then


def was_told_before(operation: Operation) -> bool:
    """Whether its history has more than one line, so that its journal is needed for it."""
    return bool(operation.told or operation.contradicted)
