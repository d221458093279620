"""Makes a Python function a tool: its promises from the decorator, its schema from its types."""

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any, Generic, Literal, ParamSpec, TypeVar, Unpack, cast, get_type_hints

from landed.core.canonical import Json, checked
from landed.core.contract import Contract, Effect, check
from landed.core.declared import from_values
from landed.core.errors import ContractError, ProposalError
from landed.core.outcome import (
    Absent,
    Acknowledged,
    AnswerLost,
    Found,
    Listed,
    ListedEffect,
    LookOutcome,
    NoAnswer,
    NotSent,
    NotYet,
    Prepared,
    Refused,
    SendOutcome,
)
from landed.core.tool import Call
from landed.tools.arguments import Arguments, Fields
from landed.tools.classify import Classifier, bounded, described, nothing_proven, of_error
from landed.tools.foresight import Foresight, foresight
from landed.tools.promises import Promises
from landed.tools.threads import Threads

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)

THREADS_MAX = 32
"""Threads at once for a synchronous tool whose contract gives no `concurrency`."""

# A call that waits for a thread gives up well before its deadline: by then the runtime counts it as
# sent and unanswered, and a function that starts after that would be a send nobody expects.
WAITS_FOR_THREAD = 0.5

Question = Callable[[Call], object]
Listing = Callable[[float], object]
ReadBack = Callable[[Call, Json], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Questions:
    """The functions beside the call itself: what asks the service about it, what prepares it."""

    prepare: Question | None = None
    lookup: Question | None = None
    close: Question | None = None
    read_back: ReadBack | None = None
    list_effects: Listing | None = None


class Given(Promises, total=False):
    """What a function's author may give: promises, and functions beside the call itself.

    `prepare(call)` returns what every send uses, stored before the first: `call.prepared` from then
    on. `list_effects(since)` returns the `ListedEffect`s that the service holds.
    """

    prepare: Question | None
    lookup: Question | None
    close: Question | None
    read_back: ReadBack | None
    list_effects: Listing | None


def tool(
    function: object = None,
    /,
    *,
    effect: Effect | Literal["none", "reversible", "irreversible"] | None = None,
    name: str = "",
    raises: Classifier = nothing_proven,
    **given: Unpack[Given],
) -> "Callable[[Callable[P, R_co]], FunctionTool[P, R_co]]":
    """Make an async or synchronous function a tool; `effect` must be said.

    The function returns JSON (or an outcome of `landed.core.outcome`) when the service said yes. It
    raises `landed.RefusedError` when the service said no before any effect, `landed.NotSentError`
    when nothing left. What any other exception proves is for `raises` to say: by default nothing;
    `landed.tools.classify.one_request` believes an HTTP client, for functions that send once.

    `lookup(call)`, `close(call)`, `read_back(call, result)` return Found, Absent, NotYet, NoAnswer.
    The key reaches the parameter named in `keyed`, the epoch the one in `fence`, the whole call one
    annotated `Call`. Raises `ContractError` for what contradicts itself, or does not fit.
    """
    if function is not None:
        raise ContractError(f"{getattr(function, '__name__', 'a tool')}: {_SAY_EFFECT}")
    questions, promises = _split(given)
    said = {} if effect is None else {"effect": effect}

    def register(function: Callable[P, R_co]) -> FunctionTool[P, R_co]:
        called = name or getattr(function, "__name__", type(function).__name__)
        seen, plain = foresight(called, {**promises, **said})
        contract = _contract(plain, questions, tool=called)
        _check_function(function, contract, tool=called)
        return FunctionTool(
            function,
            name=called,
            contract=contract,
            questions=questions,
            raises=raises,
            foresight=seen,
        )

    return register


def _split(given: Mapping[str, object]) -> tuple[Questions, dict[str, object]]:
    """Part the functions beside the call from the promises."""
    asked = {name: given[name] for name in Questions.__slots__ if name in given}
    promises = {name: value for name, value in given.items() if name not in asked}
    return Questions(**asked), promises  # type: ignore[arg-type]


_SAY_EFFECT = (
    "say what it does to the world: @tool(effect='none'), effect='reversible' or"
    " effect='irreversible'"
)


def _contract(promises: Mapping[str, object], questions: Questions, *, tool: str) -> Contract:
    asked = {each: getattr(questions, each) is not None for each in Questions.__slots__}
    if "effect" not in promises:
        raise ContractError(f"contract of {tool}: {_SAY_EFFECT}")
    return check(from_values({**promises, **asked}, tool=tool), tool=tool)


class FunctionTool(Generic[P, R_co]):
    """A function with a contract: a `landed.core.tool.Tool`. Made by `tool`.

    Calling it calls the function, as a test of that function wants to: a plain call bypasses the
    record, and nothing of what `landed` promises holds for it.
    """

    def __init__(
        self,
        function: Callable[P, R_co],
        *,
        name: str,
        contract: Contract,
        questions: Questions,
        raises: Classifier,
        foresight: Foresight,
    ) -> None:
        self.name = name
        self.foresight = foresight
        self.contract = contract
        self.interruptible = inspect.iscoroutinefunction(function)
        self._function = function
        self._questions = questions
        self._raises = raises
        self._sends = Threads(name, at_most=contract.concurrency or THREADS_MAX)
        # Threads apart, so that sends that hang do not keep anybody from asking about them.
        self._asks = Threads(f"{name} questions", at_most=THREADS_MAX)
        self._call_parameter = ""
        self._arguments = Arguments(
            name,
            self._fields,
            own=_own(contract),
            description=inspect.getdoc(function) or "",
        )

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Call the function itself, unrecorded."""
        return self._function(*args, **kwargs)

    @property
    def schema(self) -> Mapping[str, Json]:
        """The JSON Schema of its arguments, described by the function's docstring."""
        return self._arguments.schema

    def check(self, arguments: Mapping[str, Json]) -> Mapping[str, Json]:
        """Return the arguments as they will be stored; `ProposalError` when they do not fit."""
        return self._arguments.check(arguments)

    async def prepare(self, call: Call) -> Prepared | NoAnswer:
        """Ask the `prepare` function for what every send uses; it has no effect."""
        question = self._questions.prepare
        if question is None:
            return NoAnswer(reason=f"{self.name} has nothing to prepare")
        try:
            value = await _called(partial(question, call), self._asks, call)
            return value if isinstance(value, Prepared) else Prepared(value=checked(value))
        except Exception as error:
            return NoAnswer(reason=described(error))

    async def send(self, call: Call) -> SendOutcome:
        """Call the function, once.

        What is no `Exception` (a cancel, an exit) goes through. A result that is not JSON is
        made so: models, dataclasses, dates by pydantic's rules, the rest as `{"repr": …}`. The
        effect is there all the same, and an acknowledgement that cannot be written down must not
        become doubt.
        """
        function = cast("Callable[..., object]", self._function)
        try:
            given = self._given(call)
        except (ContractError, ProposalError) as error:
            return NotSent(reason=described(error))
        try:
            value = await _called(partial(function, **given), self._sends, call)
        except Exception as error:
            return of_error(error, self.contract, self._raises)
        return _outcome(value)

    async def list_effects(self, since: float) -> Listed | NoAnswer:
        """Ask the `list_effects` function."""
        question = self._questions.list_effects
        if question is None:
            return NoAnswer(reason=f"{self.name} has no list of effects")
        try:
            said = await self._listing(partial(question, since))
            return Listed(effects=tuple(cast("Iterable[ListedEffect]", said)))
        except Exception as error:
            return NoAnswer(reason=described(error))

    async def _listing(self, question: Callable[[], object]) -> object:
        """Ask in a thread, where the function is not one that can be waited for."""
        asked: object = self._questions.list_effects
        called = asked if inspect.isroutine(asked) else type(asked).__call__
        waits = inspect.iscoroutinefunction(called)
        wait_s = self.contract.deadline_s
        said = question() if waits else await self._asks.run(question, wait_s=wait_s)
        return await cast("Awaitable[object]", said) if inspect.isawaitable(said) else said

    async def lookup(self, call: Call) -> LookOutcome:
        """Ask the `lookup` function."""
        question = self._questions.lookup
        return await self._ask("lookup", question and partial(question, call), call)

    async def close(self, call: Call) -> LookOutcome:
        """Ask the `close` function."""
        question = self._questions.close
        return await self._ask("close", question and partial(question, call), call)

    async def read_back(self, call: Call, result: Json) -> LookOutcome:
        """Ask the `read_back` function."""
        question = self._questions.read_back
        return await self._ask("read_back", question and partial(question, call, result), call)

    async def _ask(
        self, what: str, question: Callable[[], object] | None, call: Call
    ) -> LookOutcome:
        if question is None:
            return NoAnswer(reason=f"{self.name} has no {what}")
        try:
            answer = await _called(question, self._asks, call)
        except Exception as error:
            return NoAnswer(reason=described(error))
        match answer:
            case Found(result=result, position=position):
                return Found(result=_json(result), position=position)
            case Absent() | NotYet() | NoAnswer():
                return answer
            case _:
                return NoAnswer(
                    reason=f"the {what} of {self.name} returned {type(answer).__name__}; it must"
                    " return Found, Absent, NotYet or NoAnswer"
                )

    def _given(self, call: Call) -> dict[str, object]:
        given = self._arguments.typed(call.arguments)
        if self.contract.keyed:
            given[self.contract.keyed] = call.key
        if self.contract.fence:
            given[self.contract.fence] = call.epoch
        if self._call_parameter:
            given[self._call_parameter] = call
        return given

    def _fields(self) -> Fields:
        """Read the types, which may name what is only defined after the function."""
        signature = inspect.signature(self._function).parameters.values()
        taken = [each for each in signature if each.name not in _own(self.contract)]
        hints = _resolved({each.name: each.annotation for each in taken}, self._function)
        fields: dict[str, tuple[object, object]] = {}
        for each in taken:
            if hints[each.name] is Call:
                self._call_parameter = each.name
            else:
                required = each.default is inspect.Parameter.empty
                fields[each.name] = (hints[each.name], ... if required else each.default)
        return fields


async def _called(function: Callable[[], object], threads: Threads, call: Call) -> object:
    if inspect.iscoroutinefunction(function):
        value: object = function()
    else:
        wait_s = max(call.deadline_at - call.sent_at, 0.0) * WAITS_FOR_THREAD
        value = await threads.run(function, wait_s=wait_s)
    # A plain function may hand out something to wait for, such as a wrapper around an async one.
    return await cast("Awaitable[object]", value) if inspect.isawaitable(value) else value


def _outcome(value: object) -> SendOutcome:
    match value:
        case Acknowledged(result=result):
            return Acknowledged(
                result=_json(result),
                position=value.position,
                complete=value.complete,
                accepted=value.accepted,
            )
        case Refused() | NotSent() | AnswerLost():
            return value
        case _:
            return Acknowledged(result=_json(value))


def _json(value: object) -> Json:
    try:
        return checked(value)
    except ProposalError:
        pass
    try:
        from pydantic_core import to_jsonable_python

        return checked(to_jsonable_python(value))
    except Exception:
        return {"repr": _repr(value)}


def _repr(value: object) -> str:
    try:
        return bounded(repr(value))
    except Exception:
        return type(value).__name__


def _resolved(annotations: dict[str, Any], function: Callable[..., object]) -> dict[str, Any]:
    """Resolve parameters only: what a function returns needs no schema, and often has no name."""
    names = getattr(inspect.unwrap(function), "__globals__", {})
    parameters = SimpleNamespace(__annotations__=annotations)
    return get_type_hints(parameters, globalns=names, include_extras=True)


def _own(contract: Contract) -> frozenset[str]:
    return frozenset({contract.keyed, contract.fence} - {""})


_Kind = inspect.Parameter
_NAMEABLE = (_Kind.POSITIONAL_OR_KEYWORD, _Kind.KEYWORD_ONLY)


def _check_function(function: Callable[..., object], contract: Contract, *, tool: str) -> None:
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise ContractError(f"{tool} is a generator, which does nothing when it is called")
    parameters = inspect.signature(function).parameters
    for field, named in (("keyed", contract.keyed), ("fence", contract.fence)):
        if named and named not in parameters:
            raise ContractError(
                f"contract of {tool}: {field}={named!r} names no parameter of the function; give"
                " the function a parameter of that name and pass it on to the service"
            )
    for each in parameters.values():
        if each.kind not in _NAMEABLE:
            raise ContractError(
                f"{tool}: {each} cannot be passed by name; a model names each argument"
            )
        if each.annotation is _Kind.empty and each.name not in _own(contract):
            raise ContractError(f"{tool}: annotate the parameter {each.name} with its type")
