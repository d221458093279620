"""Wrong designs of two-phase writes, each wrong in one thing; out of reach of `landed.open`."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import cast

from landed.core.canonical import Json
from landed.core.contract import Risk
from landed.core.outcome import Absent, LookOutcome, NoAnswer, Prepared, SendOutcome
from landed.core.preview import Preview, Previewing
from landed.core.tool import Call, Foresight, Tool
from landed.testing.around import Around
from landed.testing.designs import Design, new_key_each_time
from landed.tools.foresight import Foresight as Seen

PRINT = "input_fingerprint"


@dataclass(slots=True, eq=False)
class Refingerprinted(Around):
    """Makes the fingerprint anew at the commit, beside the token of the plan that was shown."""

    async def send(self, call: Call) -> SendOutcome:
        """Send the old plan with the fingerprint of the world as it is now."""
        now = await self.inner.prepare(call)
        if not isinstance(now, Prepared):
            return await self.inner.send(call)
        fresh, held = _said(now.value), _said(call.prepared)
        said = {**held, PRINT: fresh[PRINT]}
        prepared = {**cast("Mapping[str, Json]", call.prepared), "said": said}
        return await self.inner.send(replace(call, prepared=prepared))


def _said(held: Json) -> Mapping[str, Json]:
    return cast("Mapping[str, Json]", cast("Mapping[str, Json]", held)["said"])


@dataclass(slots=True, eq=False)
class Unread(Around):
    """Never reads a plan: what became of a commit is what its reply says."""

    async def lookup(self, call: Call) -> LookOutcome:
        """Say that there is nothing under the key, which was never sent."""
        return Absent()


@dataclass(slots=True, eq=False)
class Timeless(Around):
    """Takes a plan's time for advice."""

    @property
    def foresight(self) -> Foresight:
        """Return what it says beforehand, as if no time had passed."""
        return _Timeless(tool=self.inner.name, declared=Risk.CONFIRM, seen=self.inner.foresight)

    async def send(self, call: Call) -> SendOutcome:
        """Send, however late it is."""
        bound_s = call.deadline_at - call.sent_at
        return await self.inner.send(replace(call, sent_at=0.0, deadline_at=bound_s))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Timeless(Seen):
    seen: Foresight = field()

    async def preview(self, asked: Previewing) -> Preview | NoAnswer:
        """Preview at the beginning of time."""
        return await self.seen.preview(replace(asked, now=0.0))


def refingerprinted(tool: Tool) -> Tool:
    """Have a refund's fingerprint be that of the moment."""
    return Refingerprinted(tool) if tool.contract.prepare else tool


def key_on_retry(tool: Tool) -> Tool:
    """Have each send of a commit carry a key of its own, and never read the plan."""
    return new_key_each_time(Unread(tool)) if tool.contract.prepare else tool


def timeless(tool: Tool) -> Tool:
    """Have a plan's time be advice."""
    return Timeless(tool) if tool.contract.prepare else tool


FINGERPRINT_OF_NOW = Design(wrap=refingerprinted)
KEY_ON_RETRY = Design(wrap=key_on_retry)
TIME_IS_ADVICE = Design(wrap=timeless)
