"""A plan: ordered calls that are carried out as one unit, each step once.

A step starts when the one before it has landed. The first that definitely did not land ends the
plan as `partial`; one that nobody can tell about leaves it `in doubt`, and nothing after it starts.
A plan that a revision replaces is `superseded`: nothing of it is started any more, and what it did
is kept, released or corrected by the plan that replaces it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from enum import StrEnum

from landed.core.canonical import Json
from landed.core.changes import Kind, Record
from landed.core.contract import Contract
from landed.core.errors import IllegalEventError
from landed.core.key import Ask, held_names, identity_of, key_for
from landed.core.operation import Operation


class PlanState(StrEnum):
    """Where a plan is."""

    RUNNING = "running"
    IN_DOUBT = "in_doubt"
    DONE = "done"
    PARTIAL = "partial"
    SUPERSEDED = "superseded"


class PlanEvent(StrEnum):
    """The events of a plan."""

    PLANNED = "planned"
    STEPPED = "stepped"
    DOUBTED = "doubted"
    FINISHED = "finished"
    BROKE_OFF = "broke_off"
    SUPERSEDED = "superseded"


PLAN_MOVES: Mapping[PlanState, Mapping[PlanEvent, PlanState]] = {
    PlanState.RUNNING: {
        PlanEvent.STEPPED: PlanState.RUNNING,
        PlanEvent.DOUBTED: PlanState.IN_DOUBT,
        PlanEvent.FINISHED: PlanState.DONE,
        PlanEvent.BROKE_OFF: PlanState.PARTIAL,
        PlanEvent.SUPERSEDED: PlanState.SUPERSEDED,
    },
    PlanState.IN_DOUBT: {
        PlanEvent.STEPPED: PlanState.RUNNING,
        PlanEvent.FINISHED: PlanState.DONE,
        PlanEvent.BROKE_OFF: PlanState.PARTIAL,
        PlanEvent.SUPERSEDED: PlanState.SUPERSEDED,
    },
    PlanState.PARTIAL: {PlanEvent.SUPERSEDED: PlanState.SUPERSEDED},
    PlanState.DONE: {},
    PlanState.SUPERSEDED: {},
}

OPEN = frozenset({PlanState.RUNNING, PlanState.IN_DOUBT})


STEPS_MAX = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """One call that somebody asks for; `call_id` is the model's own name for it, "" for none."""

    tool: str
    arguments: Mapping[str, Json]
    call_id: str = ""

    def __str__(self) -> str:
        given = ", ".join(f"{name}={value}" for name, value in self.arguments.items())
        return f"{self.tool}({given})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One call of a plan, with all that is needed to record its operation.

    `reads` says that its effect is none. `keeps` names the operation of an earlier plan that is
    this call already; `replaces` the one whose release waits for this step; `corrects` the landed
    one that this step puts right.
    """

    tool: str
    arguments: Mapping[str, Json]
    contract: str
    identity: str
    names: tuple[str, ...]
    call_id: str = ""
    reads: bool = False
    keeps: str = ""
    replaces: str = ""
    corrects: str = ""


class At(StrEnum):
    """How far a step has come."""

    WAITING = "waiting"
    OUT = "out"
    DONE = "done"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a step is: its operation or observation, once there is one."""

    at: At = At.WAITING
    record: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The record of a plan. `revises` is the turn it took over from, `origin` who started it."""

    id: str
    tenant: str
    session: str
    turn: str
    input: str
    principal: str
    origin: str
    call_id: str
    revises: str
    intent: Mapping[str, Json]
    steps: tuple[Step, ...]
    made_at: float
    send_by: float

    state: PlanState = PlanState.RUNNING
    version: int = 0
    epoch: int = 0
    worker: str = ""
    places: tuple[Place, ...] = ()
    why: str = ""

    @property
    def open(self) -> bool:
        """Whether the loop has something to do for it."""
        return self.state in OPEN

    @property
    def current(self) -> int | None:
        """Return the first step that is not done, None when all are."""
        return next((n for n, place in enumerate(self.places) if place.at is not At.DONE), None)

    @property
    def ask(self) -> Ask:
        """Return who wants it."""
        return Ask(
            tenant=self.tenant,
            principal=self.principal,
            session=self.session,
            input=self.input,
            turn=self.turn,
            call_id=self.call_id,
            send_by=self.send_by,
        )


def plan_moved(plan: Plan, event: PlanEvent, **changed: object) -> Plan:
    """Return the plan after `event`; raises `IllegalEventError` where `PLAN_MOVES` has none."""
    after = PLAN_MOVES[plan.state].get(event)
    if after is None:
        raise IllegalEventError(f"{plan.id} is {plan.state}: it cannot be {event}")
    return replace(plan, state=after, version=plan.version + 1, **changed)  # type: ignore[arg-type]


def placed(plan: Plan, index: int, place: Place) -> tuple[Place, ...]:
    """Return the plan's places with one of them changed."""
    return (*plan.places[:index], place, *plan.places[index + 1 :])


def step_of(
    *,
    tool: str,
    contract: Contract,
    digest: str,
    arguments: Mapping[str, Json],
    ask: Ask,
    call_id: str,
    reads: bool,
) -> Step:
    """Return a step with its identity and the names it will hold."""
    identity = identity_of(contract, tool=tool, arguments=arguments)
    names: tuple[str, ...] = ()
    if not reads:
        names = held_names(contract, ask=ask, tool=tool, arguments=arguments, identity=identity)
    return Step(
        tool=tool,
        arguments=arguments,
        contract=digest,
        identity=identity,
        names=names,
        call_id=call_id,
        reads=reads,
    )


def operation_for(plan: Plan, step: Step, contract: Contract, *, id: str, now: float) -> Operation:
    """Return the operation of a step, not stored yet."""
    return Operation(
        id=id,
        tenant=plan.tenant,
        session=plan.session,
        turn=plan.turn,
        plan=plan.id,
        tool=step.tool,
        arguments=step.arguments,
        ask=plan.ask,
        key=key_for(contract, operation=id, session=plan.session),
        contract=step.contract,
        identity=step.identity,
        names=step.names,
        made_at=now,
        send_by=plan.send_by,
        worker=plan.worker,
    )


_FROZEN = ("turn", "input", "principal", "origin", "call_id", "revises", "made_at", "send_by")


def plan_record(plan: Plan) -> Record:
    """Return the plan as a store holds it."""
    frozen: dict[str, Json] = {name: getattr(plan, name) for name in _FROZEN}
    frozen["intent"] = plan.intent
    frozen["steps"] = [_plain(step) for step in plan.steps]
    return Record(
        id=plan.id,
        kind=Kind.PLAN,
        tenant=plan.tenant,
        session=plan.session,
        state=plan.state,
        version=plan.version,
        epoch=plan.epoch,
        worker=plan.worker,
        open=plan.open,
        frozen=frozen,
        changing={
            "places": [[place.at, place.record] for place in plan.places],
            "why": plan.why,
        },
    )


def plan_from(record: Record) -> Plan:
    """Read a plan back; the reverse of `plan_record`."""
    frozen: dict[str, object] = dict(record.frozen)
    steps: list[dict[str, object]] = frozen.pop("steps")  # type: ignore[assignment]
    places: list[tuple[str, str]] = record.changing["places"]  # type: ignore[assignment]
    return Plan(
        id=record.id,
        tenant=record.tenant,
        session=record.session,
        state=PlanState(record.state),
        version=record.version,
        epoch=record.epoch,
        worker=record.worker,
        steps=tuple(_step(each) for each in steps),
        places=tuple(Place(at=At(at), record=id) for at, id in places),
        why=str(record.changing["why"]),
        **frozen,  # type: ignore[arg-type]
    )


def _plain(step: Step) -> dict[str, Json]:
    return {each.name: getattr(step, each.name) for each in fields(step)}


def _step(plain: Mapping[str, object]) -> Step:
    return Step(**{**plain, "names": tuple(plain["names"])})  # type: ignore[arg-type]
