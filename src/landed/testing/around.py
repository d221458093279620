"""A tool around another one: what stands between the runtime and the world, to change one thing."""

from collections.abc import Mapping
from dataclasses import dataclass

from landed.core.canonical import Json
from landed.core.contract import Contract
from landed.core.outcome import Listed, LookOutcome, NoAnswer, Prepared, SendOutcome
from landed.core.tool import Call, Foresight, Tool


@dataclass(slots=True, eq=False)
class Around:
    """A tool that hands everything on to the one inside it."""

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
        """See `name`."""
        return await self.inner.send(call)

    async def list_effects(self, since: float) -> Listed | NoAnswer:
        """See `name`."""
        return await self.inner.list_effects(since)

    async def lookup(self, call: Call) -> LookOutcome:
        """See `name`."""
        return await self.inner.lookup(call)

    async def close(self, call: Call) -> LookOutcome:
        """See `name`."""
        return await self.inner.close(call)

    async def read_back(self, call: Call, result: Json) -> LookOutcome:
        """See `name`."""
        return await self.inner.read_back(call, result)
