"""Wrong designs that the demos show beside ours, out of reach of `landed.open`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from landed.core.absorb import CameBack, Looked, Moved, Question, Replied, absorb
from landed.core.canonical import Json
from landed.core.changes import Hold, Move
from landed.core.contract import Contract
from landed.core.event import Event
from landed.core.next import what_next
from landed.core.operation import Evidence, Happened, Operation, Source, State, to_record
from landed.core.outcome import Absent, AnswerLost, LookOutcome, Refused, SendOutcome
from landed.core.rules import RULES, Rules
from landed.core.scope import LetGo, Next, Scope
from landed.core.tool import Call, Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """Rules, and what wraps the tools. The defaults are ours."""

    rules: Rules = RULES
    what_next: Callable[[Scope, Rules, float], Next] = what_next
    wrap: Callable[[Tool], Tool] = lambda tool: tool


RIGHT = Design()


def lost_is_refused(operation: Operation, contract: Contract, back: CameBack) -> Moved | None:
    """Take no answer for a no: what most retry layers do."""
    if isinstance(back, Replied) and isinstance(back.outcome, AnswerLost):
        back = replace(back, outcome=Refused(reason=back.outcome.reason))
    return absorb(operation, contract, back)


def absent_is_no(operation: Operation, contract: Contract, back: CameBack) -> Moved | None:
    """Take "not found" for a no while the request may still be on its way."""
    if isinstance(back, Looked) and isinstance(back.outcome, Absent):
        back = replace(back, question=Question.CLOSE)
    return absorb(operation, contract, back)


def cancel_is_cancelled(scope: Scope, rules: Rules, now: float) -> Next:
    """Write down that a call was cancelled because its caller stopped waiting for it."""
    gone = {a.operation for a in scope.arrivals if isinstance(a, LetGo)}
    kept = tuple(a for a in scope.arrivals if not isinstance(a, LetGo))
    decided = what_next(replace(scope, arrivals=kept), rules, now)
    for id in sorted(gone):
        operation = decided.operations[id]
        if operation.state is State.SENT:
            decided = _cancelled(decided, operation, now)
    return decided


def _cancelled(decided: Next, operation: Operation, now: float) -> Next:
    says = Evidence(source=Source.RUNTIME, at=now, says="cancelled")
    after = replace(
        operation, state=State.WITHDRAWN, version=operation.version + 1, evidence=(says,)
    )
    event = Event(name=Happened.WITHDRAWN, record=after.id, at=now)
    frees = tuple(Hold(name=name, record=after.id) for name in after.names)
    changes = replace(
        decided.changes,
        moves=(*decided.changes.moves, Move(after=to_record(after), event=event)),
        frees=(*decided.changes.frees, *frees),
    )
    return replace(decided, changes=changes, operations={**decided.operations, after.id: after})


@dataclass(slots=True, eq=False)
class NewKeyEachTime:
    """A tool whose sends each carry a key of their own."""

    inner: Tool

    @property
    def name(self) -> str:
        """As the inner tool's; here and below."""
        return self.inner.name

    @property
    def contract(self) -> Contract:
        """See `name`."""
        return self.inner.contract

    @property
    def schema(self) -> Mapping[str, Json]:
        """See `name`."""
        return self.inner.schema

    @property
    def interruptible(self) -> bool:
        """See `name`."""
        return self.inner.interruptible

    def check(self, arguments: Mapping[str, Json]) -> Mapping[str, Json]:
        """See `name`."""
        return self.inner.check(arguments)

    async def send(self, call: Call) -> SendOutcome:
        """Send under a key that no other send has."""
        return await self.inner.send(replace(call, key=f"{call.key}.{call.attempt}"))

    async def lookup(self, call: Call) -> LookOutcome:
        """Look up the key that was never sent."""
        return await self.inner.lookup(call)

    async def close(self, call: Call) -> LookOutcome:
        """Close the key that was never sent."""
        return await self.inner.close(call)

    async def read_back(self, call: Call, result: Json) -> LookOutcome:
        """As the inner tool's."""
        return await self.inner.read_back(call, result)


TIMEOUT_IS_NO = Design(rules=Rules(absorb=lost_is_refused))
LOOKUP_ONLY = Design(rules=Rules(absorb=absent_is_no))
NAIVE_CANCEL = Design(what_next=cancel_is_cancelled)
KEY_PER_ATTEMPT = Design(wrap=NewKeyEachTime)
