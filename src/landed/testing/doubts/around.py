"""Tools around other tools: what a scenario puts between the runtime and the world."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace

from landed.core.canonical import Json
from landed.core.contract import Contract
from landed.core.outcome import (
    Absent,
    AnswerLost,
    LookOutcome,
    NoAnswer,
    NotYet,
    SendOutcome,
)
from landed.core.tool import Call
from landed.testing.around import Around


@dataclass(slots=True, eq=False)
class Witnessed(Around):
    """Has each operation seen at the moment before it leaves."""

    see: Callable[[str], Awaitable[None]]

    async def send(self, call: Call) -> SendOutcome:
        """Have it seen, then send."""
        await self.see(call.operation)
        return await self.inner.send(call)


@dataclass(slots=True, eq=False)
class LooksAfterClosing(Around):
    """Asks again after a close that is answered yes for keys the service never saw.

    Such a yes proves nothing, and neither does an absence that follows it: the request may still
    be on its way, and will be taken when it comes. Only what is there settles anything.
    """

    async def close(self, call: Call) -> LookOutcome:
        """Close, and believe only what a look finds."""
        said = await self.inner.close(call)
        if isinstance(said, NoAnswer):
            return said
        seen = await self.inner.lookup(call)
        if isinstance(seen, Absent):
            return NotYet(reason="it says so of keys it never saw; the request may still come")
        return seen


@dataclass(slots=True, eq=False)
class FailsAfterwards(Around):
    """Does its work, and raises all the same, as often as `failures` has entries left."""

    failures: list[str]

    async def send(self, call: Call) -> SendOutcome:
        """Send, then fail."""
        outcome = await self.inner.send(call)
        return AnswerLost(reason=self.failures.pop(0)) if self.failures else outcome


@dataclass(slots=True, eq=False)
class Unguarded(Around):
    """A wrong one: it holds nothing while it is in doubt, so that another call may go beside it."""

    @property
    def contract(self) -> Contract:
        """Return the promises without what they touch."""
        return replace(self.inner.contract, target=())


@dataclass(slots=True, eq=False)
class Amended(Around):
    """A wrong one: what is sent is what somebody wanted last, and not what was agreed to."""

    latest: Mapping[str, Json] = field(default_factory=dict[str, Json])

    def check(self, arguments: Mapping[str, Json]) -> Mapping[str, Json]:
        """Check what is wanted, and have every send say that from now on."""
        self.latest = self.inner.check(arguments)
        return self.latest

    async def send(self, call: Call) -> SendOutcome:
        """Send what was said last."""
        return await self.inner.send(replace(call, arguments=self.latest or call.arguments))
