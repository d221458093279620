"""What tools over blocking code have in common: arguments, threads, and no exception gets out.

A subclass says in four plain functions what it does; each runs in a daemon thread of its own
(`landed.tools.threads`), so that a disk or a database that hangs never stops the event loop.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import cast

from landed.core.canonical import Json
from landed.core.contract import check
from landed.core.declared import from_values
from landed.core.errors import NotSentError, ProposalError
from landed.core.outcome import (
    AnswerLost,
    Listed,
    ListedEffect,
    LookOutcome,
    NoAnswer,
    NotSent,
    Prepared,
    Refused,
    SendOutcome,
)
from landed.core.tool import Call
from landed.tools.arguments import Arguments
from landed.tools.classify import described
from landed.tools.foresight import foresight
from landed.tools.function import THREADS_MAX, WAITS_FOR_THREAD
from landed.tools.threads import Threads


class BlockingTool:
    """A `landed.core.tool.Tool` whose sends and questions are functions that block.

    `promises` are the plain values of its contract, with what `landed.tools.foresight` takes.
    Raises `ContractError` where they contradict each other.
    """

    interruptible = False

    def __init__(
        self,
        name: str,
        arguments: Mapping[str, object],
        promises: Mapping[str, object],
        *,
        description: str,
    ) -> None:
        self.foresight, plain = foresight(name, promises)
        self.name = name
        self.contract = check(from_values(plain, tool=name), tool=name)
        own = {self.contract.keyed} - {""}
        fields = fields_of(arguments)
        self._arguments = Arguments(name, lambda: fields, own=own, description=description)
        self._sends = Threads(name, at_most=self.contract.concurrency or THREADS_MAX)
        # Threads apart, so that sends that hang do not keep anybody from asking about them.
        self._asks = Threads(f"{name} questions", at_most=THREADS_MAX)

    @property
    def schema(self) -> Mapping[str, Json]:
        """The JSON Schema of its arguments."""
        return self._arguments.schema

    def check(self, arguments: Mapping[str, Json]) -> Mapping[str, Json]:
        """Return the arguments as they will be stored; `ProposalError` when they do not fit."""
        return self._arguments.check(arguments)

    async def prepare(self, call: Call) -> Prepared | NoAnswer:
        """Say that there is nothing to prepare: each send is made of the stored arguments."""
        return NoAnswer(reason=f"{self.name} has nothing to prepare")

    async def send(self, call: Call) -> SendOutcome:
        """Do it, once, in a thread of its own; what returns late is evidence still."""
        try:
            return await self._sends.run(partial(self._send, call), wait_s=patience_s(call))
        except NotSentError as error:
            return NotSent(reason=described(error))
        except ProposalError as error:
            return Refused(reason=described(error))  # No other try would be another call.
        except Exception as error:
            return AnswerLost(reason=described(error))

    async def list_effects(self, since: float) -> Listed | NoAnswer:
        """Say what is held since then (UTC, seconds), each with the key it was made under."""
        try:
            wait_s = self.contract.deadline_s
            return Listed(effects=await self._asks.run(partial(self._list, since), wait_s=wait_s))
        except Exception as error:
            return NoAnswer(reason=described(error))

    async def lookup(self, call: Call) -> LookOutcome:
        """Ask whether it landed."""
        return await self._asked(call, partial(self._lookup, call))

    async def close(self, call: Call) -> LookOutcome:
        """Ask the same, and have what comes late refused from now on."""
        return await self._asked(call, partial(self._close, call))

    async def read_back(self, call: Call, result: Json) -> LookOutcome:
        """Read the result where it matters."""
        return await self._asked(call, partial(self._read_back, call, result))

    async def _asked(self, call: Call, question: Callable[[], LookOutcome]) -> LookOutcome:
        try:
            return await self._asks.run(question, wait_s=patience_s(call))
        except Exception as error:
            return NoAnswer(reason=described(error))

    # What a subclass says; an exception is a lost answer, or no answer to a question.

    def _send(self, call: Call) -> SendOutcome:
        return NotSent(reason=f"{self.name} sends nothing")

    def _list(self, since: float) -> tuple[ListedEffect, ...]:
        raise LookupError(f"{self.name} has no list of effects")

    def _lookup(self, call: Call) -> LookOutcome:
        return NoAnswer(reason=f"{self.name} has no lookup")

    def _close(self, call: Call) -> LookOutcome:
        return NoAnswer(reason=f"{self.name} has no close")

    def _read_back(self, call: Call, result: Json) -> LookOutcome:
        return NoAnswer(reason=f"{self.name} has no read_back")


def fields_of(kinds: Mapping[str, object]) -> dict[str, tuple[object, object]]:
    """Return per argument its type and its default, from `type` or `(type, default)`."""
    return {
        name: cast("tuple[object, object]", kind) if isinstance(kind, tuple) else (kind, ...)
        for name, kind in kinds.items()
    }


def patience_s(call: Call) -> float:
    """Return how long a call may wait for its turn: what begins later would be unexpected."""
    return max(call.deadline_at - call.sent_at, 0.0) * WAITS_FOR_THREAD
