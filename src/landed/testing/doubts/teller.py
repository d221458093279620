"""The agent of these scenarios: it asks for refunds and transfers, and waits for what is true."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from landed.core.case import Ruling, Standing
from landed.core.session import Input
from landed.core.value import Unknown, Value
from landed.testing.acting import SESSION, Agent, read_session
from landed.testing.doubts.places import Place
from landed.testing.models import Wanted

CLERK = "eva"
PATIENCE_S = 4.0


@dataclass(slots=True, eq=False)
class Teller(Agent):
    """What a script acts through; `place` is the far side, for what people do there by hand."""

    place: Place = field(kw_only=True)

    async def do(self, heard: Input, call: Wanted, *, call_id: str = "") -> Value:
        """Perform one call that the model asked for, and wait for a moment only."""
        ask = heard.ask(call_id or call.call_id)
        return await self.rt.perform(call.tool, call.arguments, ask=ask, patience_s=PATIENCE_S)

    async def settled(self, value: Value, *, within_s: float) -> Value:
        """Wait until an operation is no longer being found out, `within_s` seconds at most."""
        began = self.timeline.now()
        while isinstance(value, Unknown) and self.timeline.now() - began < within_s:
            await asyncio.sleep(1.0)
            value = await self.rt.status(value.operation)
        return value

    async def sweep(self, tool: str) -> None:
        """Compare what the service holds with the records, and say what came of it."""
        swept = await self.rt.sweep(tool)
        self.timeline.add("sweep", f"{tool}: {swept.listed} listed, {swept.settled} settled")

    async def rule(self, case: Standing, ruling: Ruling, *, note: str, made: str = "") -> None:
        """Have a person rule on a case."""
        self.timeline.add("ruling", f"{CLERK} rules {ruling} on {case.why}: {note}")
        await self.rt.resolve(case.id, ruling=ruling, by=CLERK, note=note, made=made)

    async def cases(self) -> Sequence[Standing]:
        """Return what waits for a person."""
        return await self.rt.inbox()

    async def operations(self) -> list[str]:
        """Return the ids of the operations of this conversation, oldest first."""
        _, operations = await read_session(self.rt.driver.store, SESSION)
        return [one.id for one in operations]
