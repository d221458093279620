"""A wrong design about leases, out of reach of `landed.open`."""

from dataclasses import dataclass, replace

from landed.core.outcome import SendOutcome
from landed.core.tool import Call, Tool
from landed.testing.around import Around
from landed.testing.designs import Design


@dataclass(slots=True, eq=False)
class Unfenced(Around):
    """A wrong one: it relies on the lease, and hands no epoch on to whoever could check it."""

    async def send(self, call: Call) -> SendOutcome:
        """Send without saying under which claim."""
        return await self.inner.send(replace(call, epoch=0))


def lease_is_enough(tool: Tool) -> Tool:
    """Have the service not know whose claim is the later one."""
    return Unfenced(tool)


LEASE_ALONE = Design(wrap=lease_is_enough)
