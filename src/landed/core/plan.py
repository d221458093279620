"""A plan: ordered calls that are previewed, approved and carried out as one unit, each step once.

It is born `proposed` where a person has to agree first, `running` where nobody has to, `invalid`
where something is missing; what it was before that, `drafted`, is never stored. A step starts when
the one before it has landed. The first that definitely did not land ends the plan as `partial`; one
that nobody can tell about leaves it `in doubt`, and nothing after it starts. A plan that has run
any step never ends in an error: it is done, partial, stopped or superseded, and a retry is the same
plan once more, without the steps that are done.

Steps are sequential unless the plan is `independent`: then each waits only for those it refers to.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from enum import StrEnum

from landed.core.canonical import Json, fingerprint
from landed.core.changes import Kind, Record
from landed.core.contract import Contract, Risk
from landed.core.errors import IllegalEventError
from landed.core.key import Ask, held_names, identity_of
from landed.core.preview import (
    Begins,
    Changed,
    Preview,
    basis_fingerprint,
    preview_from,
    preview_plain,
)


class PlanState(StrEnum):
    """Where a plan is."""

    DRAFTED = "drafted"
    INVALID = "invalid"
    PROPOSED = "proposed"
    RUNNING = "running"
    IN_DOUBT = "in_doubt"
    DONE = "done"
    PARTIAL = "partial"
    STOPPING = "stopping"
    STOPPED = "stopped"
    DECLINED = "declined"
    EXPIRED = "expired"
    ABANDONED = "abandoned"
    SUPERSEDED = "superseded"
    UNDOING = "undoing"
    UNDONE = "undone"
    UNDO_PARTIAL = "undo_partial"


class PlanEvent(StrEnum):
    """The events of a plan."""

    PLANNED = "planned"
    PROPOSED = "proposed"
    FOUND_INVALID = "found_invalid"
    APPROVED = "plan_approved"
    AGREED = "plan_agreed"
    COMMITTED = "committed"
    DECLINED = "plan_declined"
    EXPIRED = "expired"
    ABANDONED = "abandoned"
    STEPPED = "stepped"
    DOUBTED = "doubted"
    FINISHED = "finished"
    BROKE_OFF = "broke_off"
    SUPERSEDED = "superseded"
    RETRIED = "retried"
    STOP_ASKED = "stop_asked"
    STOPPED = "stopped"
    UNDO_ASKED = "undo_asked"
    UNDONE = "undone"
    UNDO_BROKE_OFF = "undo_broke_off"


_S, _E = PlanState, PlanEvent

PLAN_MOVES: Mapping[PlanState, Mapping[PlanEvent, PlanState]] = {
    _S.DRAFTED: {
        _E.PLANNED: _S.RUNNING,
        _E.PROPOSED: _S.PROPOSED,
        _E.FOUND_INVALID: _S.INVALID,
    },
    _S.INVALID: {},
    _S.PROPOSED: {
        _E.APPROVED: _S.RUNNING,
        _E.AGREED: _S.PROPOSED,
        _E.COMMITTED: _S.RUNNING,
        _E.DECLINED: _S.DECLINED,
        _E.EXPIRED: _S.EXPIRED,
        _E.ABANDONED: _S.ABANDONED,
        _E.SUPERSEDED: _S.SUPERSEDED,
    },
    _S.RUNNING: {
        _E.STEPPED: _S.RUNNING,
        _E.DOUBTED: _S.IN_DOUBT,
        _E.FINISHED: _S.DONE,
        _E.BROKE_OFF: _S.PARTIAL,
        _E.STOP_ASKED: _S.STOPPING,
        _E.SUPERSEDED: _S.SUPERSEDED,
    },
    _S.IN_DOUBT: {
        _E.STEPPED: _S.RUNNING,
        _E.FINISHED: _S.DONE,
        _E.BROKE_OFF: _S.PARTIAL,
        _E.STOP_ASKED: _S.STOPPING,
        _E.SUPERSEDED: _S.SUPERSEDED,
    },
    _S.PARTIAL: {
        _E.RETRIED: _S.RUNNING,
        _E.UNDO_ASKED: _S.UNDOING,
        _E.SUPERSEDED: _S.SUPERSEDED,
    },
    _S.STOPPING: {
        _E.STEPPED: _S.STOPPING,
        _E.STOPPED: _S.STOPPED,
        _E.SUPERSEDED: _S.SUPERSEDED,
    },
    _S.STOPPED: {_E.UNDO_ASKED: _S.UNDOING, _E.SUPERSEDED: _S.SUPERSEDED},
    _S.DONE: {_E.UNDO_ASKED: _S.UNDOING},
    _S.DECLINED: {},
    _S.EXPIRED: {},
    _S.ABANDONED: {},
    _S.SUPERSEDED: {},
    _S.UNDOING: {
        _E.STEPPED: _S.UNDOING,
        _E.UNDONE: _S.UNDONE,
        _E.UNDO_BROKE_OFF: _S.UNDO_PARTIAL,
    },
    _S.UNDONE: {},
    _S.UNDO_PARTIAL: {},
}

OPEN = frozenset({_S.RUNNING, _S.IN_DOUBT, _S.STOPPING, _S.UNDOING})

# What the record says first, by the state that a plan is born in.
BORN = {after: event for event, after in PLAN_MOVES[_S.DRAFTED].items()}


STEPS_MAX = 100

CLOCK = "clock"  # who let a plan lapse that nobody answered


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

    `reads` says that its effect is none, `risk` what the tool declares for this call, `needs` which
    steps (from 0) it refers to, `permission` what must be allowed. `keeps` names the operation of
    an earlier plan that is this call already; `replaces` the one whose release waits for this step;
    `corrects` the landed one that this step puts right.
    """

    tool: str
    arguments: Mapping[str, Json]
    contract: str
    identity: str
    names: tuple[str, ...]
    call_id: str = ""
    reads: bool = False
    risk: str = Risk.SAFE
    permission: str = ""
    needs: tuple[int, ...] = ()
    keeps: str = ""
    replaces: str = ""
    corrects: str = ""


class At(StrEnum):
    """How far a step has come."""

    WAITING = "waiting"
    OUT = "out"
    DONE = "done"
    BROKEN = "broken"
    UNDONE = "undone"  # it was done, and was taken back with the whole plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a step is: its operation or observation, once there is one, and in which attempt.

    `made` is the id of what it made, once it is done: what a `$n` stands for. `how` qualifies what
    is done, by the word of `core.sentences` for it: `partly` (ended early) or `assumed`.
    """

    at: At = At.WAITING
    record: str = ""
    attempt: int = 1
    made: Json = None
    how: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The record of a plan. `revises` is the turn it took over from, `origin` who started it.

    `previews` are those of its steps (none where no step has any), `supersedes` the plan that this
    one is the new preview of. `answer_by` is until when a yes, or its token, may come; 0.0 where
    nothing is waited for. `begins` says what starts it, `agreed_by` who said yes to it before that.
    `send_by` is until when a first send may leave: a yes, or a retry, sets it anew. `by` is who
    committed, stopped, declined, or let it expire (`clock`). `changed` are the facts that moved
    since the preview, `why` the reason of its last move. `shown_hash` and `shown_basis` are what
    `hash` and `basis` were, where the details were erased. Times are UTC, seconds since the epoch.
    """

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
    answer_by: float = 0.0
    previews: tuple[Preview, ...] = ()
    supersedes: str = ""
    independent: bool = False
    shown_hash: str = ""
    shown_basis: str = ""
    begins: str = Begins.ITSELF

    state: PlanState = PlanState.RUNNING
    version: int = 0
    epoch: int = 0
    worker: str = ""
    places: tuple[Place, ...] = ()
    attempt: int = 1
    ended_at: float = 0.0
    by: str = ""
    why: str = ""
    agreed_by: str = ""
    changed: tuple[Changed, ...] = ()

    @property
    def open(self) -> bool:
        """Whether the loop has something to do for it."""
        return self.state in OPEN

    @property
    def needs_yes(self) -> bool:
        """Whether a person has to agree to it, or had to."""
        return bool(self.answer_by) and self.begins != Begins.TOKEN

    @property
    def current(self) -> int | None:
        """Return the first step that is not done, None when all are."""
        return next((n for n, place in enumerate(self.places) if place.at is not At.DONE), None)

    @property
    def front(self) -> tuple[int, ...]:
        """Return the steps that something may be done about now."""
        if not self.independent:
            first = self.current
            return () if first is None or self.places[first].at is At.BROKEN else (first,)
        pairs = enumerate(zip(self.steps, self.places, strict=True))
        return tuple(n for n, (step, place) in pairs if self._is_free(step, place))

    def _is_free(self, step: Step, place: Place) -> bool:
        ready = all(self.places[n].at is At.DONE for n in step.needs)
        return place.at is At.OUT or (place.at is At.WAITING and ready)

    @property
    def done(self) -> int:
        """Return how many of its steps have landed."""
        return sum(place.at is At.DONE for place in self.places)

    @property
    def hash(self) -> str:
        """Return the digest of what was shown: each call, and what its preview said.

        It is computed from the stored steps each time, so that an edit of them is seen.
        """
        if self.shown_hash:
            return self.shown_hash
        previews = self.previews or (None,) * len(self.steps)
        shown = [
            {
                "tool": step.tool,
                "arguments": step.arguments,
                "contract": step.contract,
                "preview": preview_plain(preview) if preview else None,
            }
            for step, preview in zip(self.steps, previews, strict=True)
        ]
        return fingerprint(shown, domain="plan")

    @property
    def basis(self) -> str:
        """Return the fingerprint of the facts that its previews were computed from."""
        return self.shown_basis or basis_fingerprint([preview.basis for preview in self.previews])

    def expired(self, now: float) -> bool:
        """Whether the time in which a yes could come is over."""
        return self.state is PlanState.PROPOSED and now >= self.answer_by

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
    known: Mapping[str, Json] | None = None,
    needs: tuple[int, ...] = (),
    risk: str = Risk.SAFE,
) -> Step:
    """Return a step with its identity and the names it will hold.

    `known` are the arguments with each reference as what it means; a step that has some takes its
    names only once they are resolved.
    """
    identity = identity_of(contract, tool=tool, arguments=arguments if known is None else known)
    names: tuple[str, ...] = ()
    if not reads and not needs:
        names = held_names(contract, ask=ask, tool=tool, arguments=arguments, identity=identity)
    return Step(
        risk=risk,
        permission=contract.permission,
        needs=needs,
        tool=tool,
        arguments=arguments,
        contract=digest,
        identity=identity,
        names=names,
        call_id=call_id,
        reads=reads,
    )


_FROZEN = (
    *("turn", "input", "principal", "origin", "call_id", "revises", "made_at"),
    *("answer_by", "supersedes", "independent", "shown_hash", "shown_basis", "begins"),
)
_CHANGING = ("send_by", "attempt", "ended_at", "by", "why", "agreed_by")


def plan_record(plan: Plan) -> Record:
    """Return the plan as a store holds it."""
    frozen: dict[str, Json] = {name: getattr(plan, name) for name in _FROZEN}
    frozen["intent"] = plan.intent
    frozen["steps"] = [_plain(step) for step in plan.steps]
    frozen["previews"] = [preview_plain(preview, held=True) for preview in plan.previews]
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
            "places": [[p.at, p.record, p.attempt, p.made, p.how] for p in plan.places],
            "changed": [[c.step, c.field, c.was, c.now] for c in plan.changed],
            **{name: getattr(plan, name) for name in _CHANGING},
        },
    )


def plan_from(record: Record) -> Plan:
    """Read a plan back; the reverse of `plan_record`."""
    frozen: dict[str, object] = dict(record.frozen)
    changing: dict[str, object] = dict(record.changing)
    steps: list[dict[str, object]] = frozen.pop("steps")  # type: ignore[assignment]
    previews: list[dict[str, Json]] = frozen.pop("previews")  # type: ignore[assignment]
    rows: list[tuple[str, str, int, Json, str]] = changing.pop("places")  # type: ignore[assignment]
    moved: list[tuple[int, str, Json, Json]] = changing.pop("changed")  # type: ignore[assignment]
    return Plan(
        id=record.id,
        tenant=record.tenant,
        session=record.session,
        state=PlanState(record.state),
        version=record.version,
        epoch=record.epoch,
        worker=record.worker,
        steps=tuple(_step(each) for each in steps),
        previews=tuple(preview_from(each) for each in previews),
        places=tuple(
            Place(at=At(at), record=id, attempt=n, made=made, how=how)
            for at, id, n, made, how in rows
        ),
        changed=tuple(Changed(step=n, field=f, was=was, now=now) for n, f, was, now in moved),
        **frozen,  # type: ignore[arg-type]
        **changing,  # type: ignore[arg-type]
    )


def _plain(step: Step) -> dict[str, Json]:
    return {each.name: getattr(step, each.name) for each in fields(step)}


def _step(plain: Mapping[str, object]) -> Step:
    names: list[str] = plain["names"]  # type: ignore[assignment]
    needs: list[int] = plain["needs"]  # type: ignore[assignment]
    return Step(**{**plain, "names": tuple(names), "needs": tuple(needs)})  # type: ignore[arg-type]
