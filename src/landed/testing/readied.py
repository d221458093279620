"""A tool that prepares each operation itself, once, for tests and checks without a runtime."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from landed.core.canonical import Json
from landed.core.contract import Contract
from landed.core.outcome import Listed, LookOutcome, NoAnswer, NotSent, Prepared, SendOutcome
from landed.core.tool import Call, Foresight, Tool


@dataclass(slots=True, eq=False)
class Readied:
    """`inner`, whose `prepare` is called before the first send of, or question about, an operation.

    What it returned is kept in memory, where a runtime stores it. What could not be prepared is
    *not sent*, and tried again the next time.
    """

    inner: Tool
    kept: dict[str, Json] = field(default_factory=dict[str, Json])

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
    def foresight(self) -> Foresight:
        """See `name`."""
        return self.inner.foresight

    @property
    def interruptible(self) -> bool:
        """See `name`."""
        return self.inner.interruptible

    def check(self, arguments: Mapping[str, Json]) -> Mapping[str, Json]:
        """See `name`."""
        return self.inner.check(arguments)

    async def prepare(self, call: Call) -> Prepared | NoAnswer:
        """See `name`."""
        return await self.inner.prepare(call)

    async def send(self, call: Call) -> SendOutcome:
        """Send what was prepared."""
        ready = await self._ready(call)
        return await self.inner.send(ready) if isinstance(ready, Call) else NotSent(reason=ready)

    async def list_effects(self, since: float) -> Listed | NoAnswer:
        """See `name`."""
        return await self.inner.list_effects(since)

    async def lookup(self, call: Call) -> LookOutcome:
        """Ask about what was prepared; here and below."""
        ready = await self._ready(call)
        return await self.inner.lookup(ready) if isinstance(ready, Call) else NoAnswer(reason=ready)

    async def close(self, call: Call) -> LookOutcome:
        """See `lookup`."""
        ready = await self._ready(call)
        return await self.inner.close(ready) if isinstance(ready, Call) else NoAnswer(reason=ready)

    async def read_back(self, call: Call, result: Json) -> LookOutcome:
        """See `lookup`."""
        ready = await self._ready(call)
        if isinstance(ready, str):
            return NoAnswer(reason=ready)
        return await self.inner.read_back(ready, result)

    async def _ready(self, call: Call) -> Call | str:
        """Return the call with what was prepared for it, or why nothing could be."""
        if call.operation not in self.kept:
            match await self.inner.prepare(call):
                case Prepared(value=value):
                    self.kept[call.operation] = value
                case NoAnswer(reason=reason):
                    return reason
        return replace(call, prepared=self.kept[call.operation])
