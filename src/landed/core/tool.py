"""The seam to the world: what a tool must offer, and what it is handed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from landed.core.canonical import Json
from landed.core.contract import Contract, Risk
from landed.core.key import Ask
from landed.core.outcome import Listed, LookOutcome, NoAnswer, Prepared, SendOutcome
from landed.core.preview import Preview, Previewing, Similar


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """What a tool is handed: one send of, or one question about, one operation.

    `arguments` are the stored ones, `key` the stored key ("" where the service has none), `epoch`
    the claim it is sent under, `attempt` the number of this send from 1. `sent_at` and
    `deadline_at` are UTC, seconds since the epoch: when this send leaves, and when the runtime
    stops waiting for it. `prepared` is what `Tool.prepare` returned, `stop` the token of a tool
    that may end midway. `trace` are the W3C headers (`traceparent`) by which the service's traces
    can follow ours; none without telemetry.
    """

    operation: str
    tool: str
    key: str
    arguments: Mapping[str, Json]
    ask: Ask
    epoch: int
    attempt: int
    sent_at: float
    deadline_at: float
    prepared: Json = field(default=None, repr=False)
    stop: "StopToken | None" = None
    trace: Mapping[str, str] = field(default_factory=dict[str, str])


class StopToken(Protocol):
    """What a tool that stops midway is handed: has somebody asked it to end early?"""

    def is_cancelled(self) -> bool:
        """Whether it may end now, having run in part. May be asked from any thread."""
        ...

    async def wait(self) -> None:
        """Return once it is asked to; only on the event loop that the runtime belongs to."""
        ...


class Foresight(Protocol):
    """What a tool can say before anything is sent. It has no effect, and it never raises."""

    def risk(self, arguments: Mapping[str, Json], origin: str) -> Risk:
        """Return whether this call needs a yes; `origin` says who started the turn (`user`, …)."""
        ...

    async def preview(self, asked: Previewing) -> Preview | NoAnswer:
        """Say what the call will do, in real figures."""
        ...

    async def look_alike(self, asked: Previewing) -> tuple[Similar, ...] | NoAnswer:
        """Say which effects are there already that look like it."""
        ...


class Tool(Protocol):
    """Something an agent may call. `landed.testing.check_tool` runs its promises.

    No method raises for what the service did: outcomes are values. What escapes from `send` all the
    same is taken for a lost answer, from a question for no answer.
    """

    @property
    def name(self) -> str:
        """The name the model calls it by."""
        ...

    @property
    def contract(self) -> Contract:
        """Its promises."""
        ...

    @property
    def schema(self) -> Mapping[str, Json]:
        """The JSON Schema of its arguments, as a model is shown it."""
        ...

    @property
    def foresight(self) -> Foresight:
        """What it can say before anything is sent."""
        ...

    @property
    def interruptible(self) -> bool:
        """Whether cancelling `send` ends it. A thread goes on: its late return is evidence."""
        ...

    def check(self, arguments: Mapping[str, Json]) -> Mapping[str, Json]:
        """Return the arguments as they will be stored and sent.

        Raises `ProposalError`, with text that a model can act on, when they do not fit.
        """
        ...

    async def prepare(self, call: Call) -> Prepared | NoAnswer:
        """Compute what every send of the call will use; only called where the contract has it.

        It has no effect, and may be called again where its answer could not be stored.
        """
        ...

    async def send(self, call: Call) -> SendOutcome:
        """Do it, once. Never retries by itself."""
        ...

    async def list_effects(self, since: float) -> Listed | NoAnswer:
        """Say what the service holds since then (UTC seconds); only where the contract has it."""
        ...

    async def lookup(self, call: Call) -> LookOutcome:
        """Say whether the call landed. Only called where the contract has `lookup`."""
        ...

    async def close(self, call: Call) -> LookOutcome:
        """Say whether it landed, and have the service refuse the key from now on."""
        ...

    async def read_back(self, call: Call, result: Json) -> LookOutcome:
        """Read the result where it matters. Only called where the contract has `read_back`."""
        ...
