"""Wrong designs that the demos show beside ours, out of reach of `landed.open`."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from landed.core.absorb import CameBack, Looked, Moved, Question, Replied, absorb
from landed.core.arrival import LetGo, Revised
from landed.core.changes import Hold, Move
from landed.core.contract import Contract
from landed.core.doubt import Verdict, doubt
from landed.core.event import Event
from landed.core.next import what_next
from landed.core.operation import Evidence, Happened, Operation, Source, State
from landed.core.operation_record import to_record
from landed.core.outcome import (
    Absent,
    AnswerLost,
    LookOutcome,
    Refused,
    SendOutcome,
)
from landed.core.rules import RULES, Rules
from landed.core.scope import Next, Scope, StopWaiting
from landed.core.store import Store
from landed.core.tool import Call, Tool
from landed.testing.around import Around
from landed.testing.forgetful import ForgetfulStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """Rules, what wraps the tools, and what a process finds of a store that another one left.

    The defaults are ours.
    """

    rules: Rules = RULES
    what_next: Callable[[Scope, Rules, float], Next] = what_next
    wrap: Callable[[Tool], Tool] = lambda tool: tool
    reopen: Callable[[Store], Store] = lambda store: store


RIGHT = Design()


def lost_is_refused(operation: Operation, contract: Contract, back: CameBack) -> Moved | None:
    """Take no answer for a no: what most retry layers do."""
    if isinstance(back, Replied) and isinstance(back.outcome, AnswerLost):
        back = replace(back, outcome=Refused(reason=back.outcome.reason))
    return absorb(operation, contract, back)


def absent_is_no(operation: Operation, contract: Contract, back: CameBack) -> Moved | None:
    """Take "not found" for a no while the request may still be on its way."""
    if not isinstance(back, Looked) or not isinstance(back.outcome, Absent):
        return absorb(operation, contract, back)
    came = absorb(operation, contract, replace(back, question=Question.CLOSE))
    if came is None or not came[1].evidence:
        return came
    event, after = came
    says = Evidence(source=Source.LOOKUP, at=back.at, says="nothing has landed")
    return event, replace(after, evidence=(*after.evidence[:-1], says))


def never_closes(operation: Operation, contract: Contract, now: float) -> Verdict:
    """Ask only whether it landed, also where the key could be shut at the same time."""
    return doubt(operation, replace(contract, close=False), now)


def key_of_step(operation: Operation, contract: Contract) -> str:
    """Name the step and not the operation: whatever the details are, the key is the same."""
    return f"{operation.session}:{operation.tool}"


def releases_anything(*_: object, **__: object) -> bool:
    """Never notice that the replacement returned the very thing that is to be released."""
    return False


def cancel_is_cancelled(scope: Scope, rules: Rules, now: float) -> Next:
    """Write down that a call was cancelled because nobody waits for it any more.

    Its caller went away, or the user changed their mind: either way it was sent, and may land.
    """
    gone = [
        _cancelled(operation, now)
        for operation in scope.operations.values()
        if operation.state is State.SENT and _is_let_go(operation, scope)
    ]
    names = {operation.id for operation in gone}
    decided = what_next(
        replace(
            scope,
            operations={**scope.operations, **{o.id: o for o in gone}},
            arrivals=tuple(a for a in scope.arrivals if not _is_about(a, names)),
        ),
        rules,
        now,
    )
    return _written(decided, gone, now)


def _is_let_go(operation: Operation, scope: Scope) -> bool:
    for arrival in scope.arrivals:
        match arrival:
            case LetGo(operation=id) if id == operation.id:
                return True
            case Revised(old_plan=plan, operations=ids):
                if operation.id in ids or (plan and operation.plan == plan):
                    return True
            case _:
                continue
    return False


def _is_about(arrival: object, operations: set[str]) -> bool:
    return isinstance(arrival, LetGo | Replied) and arrival.operation in operations


def _cancelled(operation: Operation, now: float) -> Operation:
    says = Evidence(source=Source.RUNTIME, at=now, says="cancelled")
    return replace(
        operation, state=State.WITHDRAWN, version=operation.version + 1, evidence=(says,)
    )


def _written(decided: Next, gone: list[Operation], now: float) -> Next:
    """Add to a unit what was written off before it, and stop waiting for that."""
    moves = [
        Move(after=to_record(o), event=Event(name=Happened.WITHDRAWN, record=o.id, at=now))
        for o in gone
    ]
    frees = [Hold(name=name, record=o.id) for o in gone for name in o.names]
    changes = decided.changes
    return replace(
        decided,
        changes=replace(changes, moves=(*moves, *changes.moves), frees=(*frees, *changes.frees)),
        commands=(*(StopWaiting(operation=o) for o in gone), *decided.commands),
    )


@dataclass(slots=True, eq=False)
class Rekeyed(Around):
    """A tool whose requests carry another key than their operation's."""

    send_key: Callable[[Call], str]
    ask_key: Callable[[Call], str] = lambda call: call.key

    async def send(self, call: Call) -> SendOutcome:
        """Send under that other key."""
        return await self.inner.send(replace(call, key=self.send_key(call)))

    async def lookup(self, call: Call) -> LookOutcome:
        """Ask by the key that it would have now; here and below."""
        return await self.inner.lookup(replace(call, key=self.ask_key(call)))

    async def close(self, call: Call) -> LookOutcome:
        """See `lookup`."""
        return await self.inner.close(replace(call, key=self.ask_key(call)))


def new_key_each_time(tool: Tool) -> Tool:
    """Give each send a key of its own, and ask by one that was never sent."""
    return Rekeyed(inner=tool, send_key=lambda call: f"{call.key}.{call.attempt}")


def new_key_each_turn(tool: Tool) -> Tool:
    """Name the turn as this process numbers it: after a restart it is another turn."""

    def key(call: Call) -> str:
        return f"{call.ask.session}:{call.ask.turn}.{call.epoch}:{call.tool}"

    return Rekeyed(inner=tool, send_key=key, ask_key=key)


TIMEOUT_IS_NO = Design(rules=Rules(absorb=lost_is_refused))
LOOKUP_ONLY = Design(rules=Rules(absorb=absent_is_no))
NO_FENCING = Design(rules=Rules(absorb=absent_is_no, doubt=never_closes))
NAIVE_CANCEL = Design(what_next=cancel_is_cancelled)
KEY_PER_ATTEMPT = Design(wrap=new_key_each_time)
KEY_PER_TURN = Design(wrap=new_key_each_turn)
KEY_PER_STEP = Design(rules=Rules(key_for=key_of_step))
KEY_PER_STEP_UNGUARDED = Design(
    rules=Rules(key_for=key_of_step, returned_the_same=releases_anything)
)
OPERATIONS_LOST = Design(reopen=ForgetfulStore)
