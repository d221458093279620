"""The reconciliation of a restored store: what was open is found out, then life goes on.

The loops do the finding out, as of any doubt. This waits until none of the operations that were
open at the restore is unresolved (one in front of a person is resolved), has each service that can
list its effects compared once, and closes the incarnation. Until then nothing is sent by anybody.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from landed.core.arrival import PlanTold
from landed.core.changes import Kind, Record
from landed.core.errors import StoreError
from landed.core.incarnation import RESTORED, Incarnation
from landed.core.operation import STATES, State
from landed.core.plan import PlanEvent, PlanState
from landed.core.restoring import RESTORE
from landed.runtime.driver import Driver
from landed.runtime.lookout import Lookout

log = logging.getLogger("landed")

ROUND_S = 1.0  # how often it is seen how far the reconciliation has come
PAGE = 1000  # journal entries, or records, that are read at once
LOOKS_BACK_S = 86_400.0  # how far a sweep looks back behind the newest entry of the backup

OPEN = frozenset(str(state) for state, meaning in STATES.items() if meaning.open)


@dataclass(slots=True, eq=False)
class Reconciler:
    """What one worker does about a restore; `sweep` compares one tool's effects since a time."""

    driver: Driver
    lookout: Lookout
    sweep: Callable[[str, float], Awaitable[bool]]
    _number: int = 0
    _open: set[str] = field(default_factory=set[str])
    _count: int = 0
    _unswept: set[str] = field(default_factory=set[str])

    async def rounds(self) -> None:
        """Go on until cancelled; without a restore there is nothing to do but to hear of one."""
        while await self.lookout.reconciling.wait():
            try:
                await self.round()
            except StoreError as error:
                log.warning("the restored store could not be reconciled yet: %s", error)
            await asyncio.sleep(ROUND_S)

    async def round(self) -> None:
        """See how far it has come, and close it when all is found out."""
        now = await self.lookout.look()
        if not now.reconciling:
            return
        if self._number != now.number:
            await self._begin(now)
        held = await self._unresolved()
        if all(record.state == State.UNKNOWN for record in held):
            await self._compare(now)
        if not held and not self._unswept:
            tools = f"; {self._said_swept()}" if self._said_swept() else ""
            await self.lookout.close(f"all {self._count} that were open are found out{tools}")

    async def _begin(self, incarnation: Incarnation) -> None:
        """Read once, from the journal, what was open and what waited for a yes at the restore."""
        states: dict[str, str] = {}
        after = 0
        while page := await self.lookout.store.journal(after=after, limit=PAGE):
            for entry in page:
                states.pop(entry.id, None)
                if entry.state in OPEN or entry.state == PlanState.PROPOSED:
                    states[entry.id] = entry.state
            after = page[-1].seq
            if after > incarnation.horizon:
                break
        self._open = {id for id, state in states.items() if state in OPEN}
        await self._expire([id for id in states if id not in self._open])
        self._count = len(await self._unresolved())
        tools = self.driver.tools.values()
        self._unswept = {tool.name for tool in tools if tool.contract.list_effects}
        self._number = incarnation.number

    async def _expire(self, plans: Sequence[str]) -> None:
        """Have the plans that waited for a yes expire: they are previewed again."""
        for record in await self._loaded(plans):
            if record.kind is Kind.PLAN and record.state == PlanState.PROPOSED:
                told = PlanTold(
                    plan=record.id,
                    event=PlanEvent.EXPIRED,
                    by=RESTORE,
                    at=self.driver.clock.now(),
                    why=RESTORED,
                )
                await self.driver.learn(record)
                self.driver.loop_of(tenant=record.tenant, session=record.session).tell(told)

    async def _unresolved(self) -> list[Record]:
        """Return the operations that nobody has found out yet, and forget the others."""
        loaded = await self._loaded(sorted(self._open))
        held = [one for one in loaded if one.kind is Kind.OPERATION and one.open]
        horizon = self.lookout.incarnation.horizon
        held = [one for one in held if one.made <= horizon]
        self._open = {one.id for one in held}
        return held

    async def _loaded(self, ids: Sequence[str]) -> list[Record]:
        found: list[Record] = []
        for at in range(0, len(ids), PAGE):
            found += await self.lookout.store.load(*ids[at : at + PAGE])
        return found

    async def _compare(self, incarnation: Incarnation) -> None:
        since = max(0.0, incarnation.known_at - LOOKS_BACK_S)
        for tool in sorted(self._unswept):
            if await self.sweep(tool, since):
                self._unswept.discard(tool)

    def _said_swept(self) -> str:
        tools = self.driver.tools.values()
        swept = sorted(tool.name for tool in tools if tool.contract.list_effects)
        return f"compared with what their services hold: {', '.join(swept)}" if swept else ""
