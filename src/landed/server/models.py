"""What goes over the wire, both ways: strict in what is taken, plain in what is given.

A field that is not here is refused, not ignored: a commit with an amount beside its token is not
what was approved. Times are UTC.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, StringConstraints

from landed.core.case import Ruling
from landed.core.operation import Operation
from landed.core.plan import STEPS_MAX, PlanState, Wanted
from landed.core.value import PlanValue, StepValue, Value
from landed.server.problems import Moved

NAME_MAX = 200  # characters of an id, a session, a name

Name = Annotated[str, StringConstraints(pattern=r"^[\x21-\x7e]{1,200}$")]
Text = Annotated[str, StringConstraints(max_length=2000)]
Arguments = dict[str, JsonValue]


class Strict(BaseModel):
    """A body that is taken: nothing may be in it that has no name here."""

    model_config = ConfigDict(extra="forbid", strict=True)


class CallBody(Strict):
    """One call: a tool by its name, and its arguments; `$n` stands for what step n makes."""

    tool: Name
    arguments: Arguments = {}

    def wanted(self) -> Wanted:
        """Return the call as the runtime takes it."""
        return Wanted(tool=self.tool, arguments=self.arguments)


class DryRunBody(Strict):
    """What a tool would be called with; `session` is the conversation it belongs to."""

    arguments: Arguments = {}
    session: Name | None = None


class PlanBody(Strict):
    """What is wanted: `calls`, or an `intent` that the application makes calls of."""

    calls: Annotated[list[CallBody], Field(max_length=STEPS_MAX)] = []
    intent: Arguments = {}
    session: Name | None = None
    input: Name | None = None

    def wanted(self) -> list[Wanted]:
        """Return the calls as the runtime takes them."""
        return [call.wanted() for call in self.calls]


class ProposeBody(PlanBody):
    """What is wanted, to be carried out; `independent` steps wait only for what they refer to."""

    independent: bool = False


class CommitBody(Strict):
    """Which plan, by which capability, seen as what: what runs is what was previewed."""

    model_config = ConfigDict(
        json_schema_extra={
            "dependentRequired": {
                "plan_token": ["plan_id", "input_fingerprint"],
                "input_fingerprint": ["plan_token"],
            }
        },
    )

    plan_id: Name
    plan_token: Annotated[str, StringConstraints(min_length=1, max_length=200)]
    input_fingerprint: Name


class DecisionBody(Strict):
    """A yes or a no: to run the plan, to run it once more, or to take it back."""

    purpose: Literal["confirm", "retry", "undo"] = "confirm"


class WhyBody(Strict):
    """Why something is dropped."""

    why: Text = ""


class CancelBody(WhyBody):
    """Why it is stopped; `hard` waits for nobody, and leaves what is in flight in doubt."""

    hard: bool = False


class Nothing(Strict):
    """A body with nothing in it."""


class ReviseBody(Strict):
    """A change of mind, as heard in `input`: the calls that are wanted now, or what changes."""

    input: Name
    calls: Annotated[list[CallBody], Field(max_length=STEPS_MAX)] | None = None
    change: Arguments = {}
    drop: Annotated[list[Name], Field(max_length=STEPS_MAX)] = []


class InputBody(Strict):
    """What somebody said, or an event that came; only a `user`'s words answer a question."""

    text: Annotated[str, StringConstraints(max_length=100_000)]
    origin: Literal["user", "timer", "event"] = "user"


class RulingBody(Strict):
    """A person's word on a case; `made` is the id of what it made, where it landed."""

    model_config = ConfigDict(strict=False)

    ruling: Ruling
    note: Text = ""
    made: Text = ""


class Action(BaseModel):
    """One change that a plan would make: what sets which field of what to which value."""

    op: str
    target: str
    field: str
    to: Any


class StepView(BaseModel):
    """A step as it stands."""

    tool: str
    summary: str
    at: str
    operation: str
    attempt: int
    replayed: bool
    made: Any


class PlanView(BaseModel):
    """A plan as it stands; `in_doubt` is a state like the others, and never an error.

    `plan_token` is there once, for whoever previewed it. `text` is for the person, `to_model` for a
    model. `questions` wait for an answer.
    """

    plan_id: str
    plan_token: str | None = None
    expires_at: datetime | None
    input_fingerprint: str
    actions: list[Action]
    state: PlanState
    text: str
    to_model: str
    session: str
    principal: str
    created_at: datetime
    agreed_by: str
    attempt: int
    replayed: bool
    steps: list[StepView]
    operations: list[str]
    questions: list[str]
    changed: list[Moved]
    undo_until: datetime | None
    again: str


class OperationView(BaseModel):
    """An operation as it stands; `unknown` is a state like the others, and never an error."""

    operation: str
    state: str
    text: str
    tool: str
    plan_id: str
    session: str
    created_at: datetime
    result: Any = None
    reason: str = ""
    blocked_by: str = ""


class ToolView(BaseModel):
    """A tool: what it promises of its effect, and the JSON Schema of its arguments."""

    name: str
    effect: str
    schema_: dict[str, Any] = Field(serialization_alias="schema")
    frozen: str


def instant(at: float) -> datetime:
    """Return UTC seconds as a moment."""
    return datetime.fromtimestamp(at, UTC)


def plan_view(value: PlanValue) -> PlanView:
    """Return a plan as it is given."""
    offer = value.offer
    return PlanView(
        plan_id=value.plan,
        plan_token=offer.token or None if offer and offer.purpose == "commit" else None,
        expires_at=instant(offer.answer_by) if offer else None,
        input_fingerprint=value.fingerprint,
        actions=[action for step in value.steps for action in _actions(step)],
        state=value.state,
        text=value.text,
        to_model=value.to_model,
        session=value.session,
        principal=value.principal,
        created_at=instant(value.made_at),
        agreed_by=value.agreed_by,
        attempt=value.attempt,
        replayed=value.replayed,
        steps=[_step(step) for step in value.steps],
        operations=list(value.operations),
        questions=list(value.questions),
        changed=moved(value),
        undo_until=None if value.undo_by is None else instant(value.undo_by),
        again=value.again,
    )


def moved(value: PlanValue) -> list[Moved]:
    """Return the facts that moved since a plan was previewed."""
    return [Moved(step=c.step, field=c.field, was=c.was, now=c.now) for c in value.changed]


def operation_view(operation: Operation, value: Value) -> OperationView:
    """Return an operation as it is given."""
    return OperationView(
        operation=operation.id,
        state=operation.state,
        text=value.text,
        tool=operation.tool,
        plan_id=operation.plan,
        session=operation.session,
        created_at=instant(operation.made_at),
        result=operation.result,
        reason=getattr(value, "reason", ""),
        blocked_by=operation.blocked_by,
    )


def _step(step: StepValue) -> StepView:
    return StepView(
        tool=step.tool,
        summary=step.summary,
        at=step.at,
        operation=step.operation,
        attempt=step.attempt,
        replayed=step.replayed,
        made=step.made,
    )


def _actions(step: StepValue) -> Iterator[Action]:
    """Yield what a step sets, but for the arguments that name its target."""
    target = ", ".join(step.targets)
    named = {name for name, value in step.arguments.items() if _names(value, step.targets)}
    left: Mapping[str, Any] = {k: v for k, v in step.arguments.items() if k not in named}
    for field, to in (left or step.arguments).items():
        yield Action(op=step.tool, target=target, field=field, to=to)
    if not step.arguments:
        yield Action(op=step.tool, target=target, field="", to=None)


def _names(value: object, targets: tuple[str, ...]) -> bool:
    return isinstance(value, str) and any(value in target.split("/") for target in targets)
