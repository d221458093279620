"""The tools of a model: `act`, `status`, `ask` and `revise`, and nothing else.

What a model may do is propose, look, ask the person, and say what is wanted instead. It cannot say
yes or no, retry, undo, stop or settle anything, and no token is in anything that it is told. Nor
has it to be careful: an ask comes from the input that it acts on and from what it wants, so a plan
that is sent five times, or once more after a time-out, is one plan.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from landed.core.act import act_schema, call_id_of, not_taken, read_plan, revision_id_of
from landed.core.canonical import Json, checked, parse
from landed.core.changes import Kind, Record
from landed.core.errors import ProposalError
from landed.core.operation_record import from_record
from landed.core.plan import Plan, Wanted
from landed.core.sentences import observed, sentence, to_model
from landed.core.session import Input, contracts_of, observation_of
from landed.core.tool import Tool
from landed.core.value import PlanValue
from landed.runtime.proposing import PLAN_PATIENCE_S
from landed.runtime.runtime import Runtime

QUESTION_MAX_CHARS = 1000
ID_MAX_CHARS = 200
DROPPED_MAX = 100

Spec = Mapping[str, Json]

ACT = (
    "Do what the user wants: one plan of ordered steps, all in one call. $n in an argument stands"
    " for what step n makes. Figures are worked out by the tools, never by you. If a person has to"
    " agree, they are shown the plan and asked; you are told, and do nothing more about it. To send"
    " the same plan again changes nothing. Amounts are text, such as 12.50, or in cents."
)
STATUS = "Look how a plan or an operation stands now. It changes nothing."
ASK = (
    "Put a question to the person where you cannot tell what they mean. It interrupts nothing, and"
    " their answer comes as their next words. Where they say what became of an operation in doubt,"
    " name it, and as claim the id of what it made: their yes to your question settles it."
)
REVISE = (
    "The user changed their mind about a turn: say all that is wanted now, as in act. What is equal"
    " is kept, what changed is replaced. What is left out is kept too, and the person is asked"
    " about it, unless drop names its operation because they said so."
)
NOT_HERE = "there is no plan or operation of that id in this conversation"
ASKED = "The person is asked. Their answer comes as their next words; assume none until then."


def _nothing(value: PlanValue) -> None:
    """Keep nothing of a plan."""


@dataclass(slots=True, eq=False)
class ModelTools:
    """The tools of a model that acts on one input.

    rt         the open runtime
    heard      the input, as `receive` returned it: in whose name and conversation it all happens
    offered    the names of the tools that `act` takes; None for all that are registered
    seen       is called with each plan as it stands, for the code that shows it to the person: its
               `offer` holds the token, which no model sees
    patience_s how long `act` and `revise` wait for a plan to be over
    again      tells the plan of an `act` apart from an equal one of the same input, where each is
               meant for itself; without it, equal plans of one input are one plan
    """

    rt: Runtime
    heard: Input
    offered: Collection[str] | None = None
    seen: Callable[[PlanValue], object] = _nothing
    patience_s: float = PLAN_PATIENCE_S
    again: str = ""

    def specs(self) -> tuple[Spec, ...]:
        """Return the four as a model is shown them: name, description, parameters (JSON Schema).

        The same tools give the same bytes, in every process, so that prompt caches hold. Raises
        `ContractError` for a tool that cannot be shown.
        """
        act = act_schema(self._tools())
        steps = cast("Mapping[str, Json]", act["properties"])["steps"]
        named = {"$defs": act["$defs"]} if "$defs" in act else {}
        drop: Json = {"type": "array", "items": {"type": "string"}, "maxItems": DROPPED_MAX}
        revise = _object({"turn": _TEXT, "steps": steps, "drop": drop}, required=("turn", "steps"))
        return (
            {"name": "act", "description": ACT, "parameters": act},
            {"name": "status", "description": STATUS, "parameters": _object({"id": _TEXT})},
            {"name": "ask", "description": ASK, "parameters": _object(_ASKED, required=_ASKS)},
            {"name": "revise", "description": REVISE, "parameters": {**revise, **named}},
        )

    async def call(self, name: str, arguments: "bytes | Json") -> str:
        """Do what a model asks for, and return what it is told.

        `arguments` are JSON text, or the value that was read from it. What is wrong with them comes
        back as text that the model can act on, never as an exception: nothing was done then. What
        is nobody's fault but ours or the store's is raised.
        """
        verbs: Mapping[str, Callable[[bytes | Json], Awaitable[str]]] = {
            "act": self._act,
            "status": self._status,
            "ask": self._ask,
            "revise": self._revise,
        }
        if name not in verbs:
            step = f"; {name} is a step: send it in the steps of act" if self._is_step(name) else ""
            return f"there is no such tool; yours are {', '.join(verbs)}{step}"
        try:
            return await verbs[name](arguments)
        except ProposalError as error:
            return str(error)

    async def _act(self, arguments: "bytes | Json") -> str:
        calls = read_plan(arguments, self._tools())
        ask = self.heard.ask(call_id_of(calls) + self.again)
        value = await self.rt.propose(
            calls, ask=ask, origin=self.heard.origin, patience_s=self.patience_s
        )
        return await self._told(value)

    async def _status(self, arguments: "bytes | Json") -> str:
        id = _text(_taken(arguments, "status", "id"), "id")
        records = await self.rt.driver.store.load(id)
        kind = records[0].kind if records and self._is_mine(records[0]) else None
        if kind is Kind.OPERATION:
            return (await self.rt.status(id)).text
        if kind is Kind.PLAN:
            return await self._told(await self.rt.plan(id, tenant=self.heard.tenant))
        raise ProposalError(NOT_HERE)

    async def _ask(self, arguments: "bytes | Json") -> str:
        given = _taken(arguments, "ask", "question, operation and claim")
        question = _text(given, "question", at_most=QUESTION_MAX_CHARS)
        operation = _text(given, "operation") if "operation" in given else ""
        claim = _text(given, "claim") if "claim" in given else ""
        if bool(operation) is not bool(claim):
            raise ProposalError("operation and claim go together: which one, and what it made")
        if operation:
            await self._require_mine(operation)
        await self.rt.ask(self.heard, question, operation=operation, claim=claim)
        return ASKED

    async def _require_mine(self, operation: str) -> None:
        records = await self.rt.driver.store.load(operation)
        if not records or records[0].kind is not Kind.OPERATION or not self._is_mine(records[0]):
            raise ProposalError(NOT_HERE)

    def call_id(self, name: str, arguments: "bytes | Json") -> str:
        """Return the call id under which an `act`, or a `revise`, is proposed for the input.

        Raises `ProposalError` for arguments that neither takes: then nothing was proposed.
        """
        if name == "revise":
            return revision_id_of(*self._revision(arguments))
        return call_id_of(read_plan(arguments, self._tools())) + self.again

    def _revision(
        self, arguments: "bytes | Json"
    ) -> tuple[str, tuple[Wanted, ...], tuple[str, ...]]:
        """Read which turn is changed, what is wanted now, and what is dropped."""
        given = _taken(arguments, "revise", "turn, steps and drop")
        turn, drop = _text(given, "turn"), _texts(given, "drop")
        return turn, read_plan({"steps": given.get("steps")}, self._tools()), drop

    async def _revise(self, arguments: "bytes | Json") -> str:
        turn, calls, drop = self._revision(arguments)
        value = await self.rt.revise(
            turn,
            self.heard,
            wanted=calls,
            drop=drop,
            call_id=revision_id_of(turn, calls, drop),
            patience_s=self.patience_s,
        )
        return await self._told(value)

    async def _told(self, value: PlanValue) -> str:
        """Return what a model is told of a plan: how it stands, and what each step came to."""
        self.seen(value)
        plan = await self.rt.driver.reader.plan(value.plan, tenant=self.heard.tenant)
        named = f"This is {plan.id}, in turn {plan.turn}."
        return "\n".join([value.to_model, *await self._steps(plan), named])

    async def _steps(self, plan: Plan) -> Sequence[str]:
        """Return a line for each step that was begun, in the words of the history."""
        at = {place.record: n for n, place in enumerate(plan.places, 1) if place.record}
        told: dict[int, str] = {}
        for record in await self.rt.driver.store.load(*at):
            for digest in contracts_of(record):
                await self.rt.driver.reader.contract(digest, of=record.id)
            told[at[record.id]] = self._sentence(record)
        return [f"Step {n}: {told[n]}" for n in sorted(told)]

    def _sentence(self, record: Record) -> str:
        contracts = self.rt.driver.reader.contracts
        if record.kind is Kind.OPERATION:
            operation = from_record(record)
            return to_model(operation, contracts[operation.contract])
        seen = observation_of(record)
        return sentence(
            observed(
                contracts[seen.contract],
                tool=seen.tool,
                arguments=seen.arguments,
                state=seen.state,
                result=seen.result,
                why=seen.why,
            )
        )

    def _is_mine(self, record: Record) -> bool:
        return (record.tenant, record.session) == (self.heard.tenant, self.heard.session)

    def _is_step(self, name: str) -> bool:
        return any(tool.name == name for tool in self._tools())

    def _tools(self) -> Sequence[Tool]:
        every = self.rt.driver.tools.values()
        return [one for one in every if self.offered is None or one.name in self.offered]


_TEXT: Json = {"type": "string"}
_ASKED: Mapping[str, Json] = {"question": _TEXT, "operation": _TEXT, "claim": _TEXT}
_ASKS = ("question",)


def _object(properties: Mapping[str, Json], *, required: Sequence[str] | None = None) -> Spec:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties if required is None else required),
        "additionalProperties": False,
    }


def _taken(given: "bytes | Json", verb: str, fields: str) -> Mapping[str, Json]:
    """Return what was given for a verb with these fields; raises `ProposalError`."""
    read = parse(given) if isinstance(given, str | bytes) else checked(given)
    if not isinstance(read, Mapping):
        raise ProposalError(f"{verb} takes an object with {fields}")
    known = fields.replace(" and ", ", ").split(", ")
    for name in read:
        if name not in known:
            raise ProposalError(not_taken(name, verb, fields))
    return read


def _text(given: Mapping[str, Json], name: str, *, at_most: int = ID_MAX_CHARS) -> str:
    value = given.get(name)
    if not isinstance(value, str) or not value.strip():
        raise ProposalError(f"{name} is text that says something, and has to be given")
    if len(value) > at_most:
        raise ProposalError(f"{name} has at most {at_most} characters")
    return value


def _texts(given: Mapping[str, Json], name: str) -> tuple[str, ...]:
    value = given.get(name, [])
    texts = value if isinstance(value, list) else [None]
    if len(texts) > DROPPED_MAX or not all(map(_is_id, texts)):
        raise ProposalError(f"{name} is a list of at most {DROPPED_MAX} ids, as text")
    return tuple(cast("list[str]", texts))


def _is_id(value: Json) -> bool:
    return isinstance(value, str) and len(value) <= ID_MAX_CHARS
