"""A tool that prepares each operation itself, once, for tests and checks without a runtime."""

from dataclasses import dataclass, field, replace

from landed.core.canonical import Json
from landed.core.outcome import LookOutcome, NoAnswer, NotSent, Prepared, SendOutcome
from landed.core.tool import Call
from landed.testing.around import Around


@dataclass(slots=True, eq=False)
class Readied(Around):
    """`inner`, whose `prepare` is called before the first send of, or question about, an operation.

    What it returned is kept in memory, where a runtime stores it. What could not be prepared is
    *not sent*, and tried again the next time.
    """

    kept: dict[str, Json] = field(default_factory=dict[str, Json])

    async def send(self, call: Call) -> SendOutcome:
        """Send what was prepared."""
        ready = await self._ready(call)
        return await self.inner.send(ready) if isinstance(ready, Call) else NotSent(reason=ready)

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
