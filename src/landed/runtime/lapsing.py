"""Lets plans that nobody began in time lapse, so that none waits for ever: the sweep for orphans.

A plan has an owner, who may drop it, and a time by which it has to be begun. How it reads after
that time follows from the record alone (`core.telling.as_of_now`); this writes it down, for lists
and for whoever reads the journal. What a person was asked about is left for another day: a yes that
comes too late is still a yes to that question, and is told so.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

from landed.core.arrival import PlanTold
from landed.core.changes import Kind, Record
from landed.core.errors import LandedError
from landed.core.plan import CLOCK, plan_from
from landed.core.store import Selection
from landed.core.telling import is_orphan, lapses_as, too_late
from landed.runtime.driver import Driver

log = logging.getLogger("landed")

LAPSES_EVERY_S = 300.0  # between two rounds
PAGE = 500
PAGES_MAX = 4  # of what waits, in one round of one tenant; the next goes on from there


@dataclass(slots=True, eq=False)
class Lapsing:
    """What one worker does about plans that nobody began; `tenants` are those looked through."""

    driver: Driver
    tenants: Sequence[str]
    _after: dict[str, int] = field(default_factory=dict[str, int])

    async def round(self) -> int:
        """Look through a bounded number of what waits, and return how many plans lapsed.

        Whatever goes wrong is logged, and tried in the next round.
        """
        return sum([await self._of_tenant(tenant) for tenant in self.tenants])

    async def _of_tenant(self, tenant: str) -> int:
        lapsed = 0
        try:
            for _ in range(PAGES_MAX):
                page = await self.driver.store.listed(
                    tenant=tenant,
                    of=Selection.WAITING,
                    after=self._after.get(tenant, 0),
                    limit=PAGE,
                )
                self._after[tenant] = page.next
                lapsed += sum([await self._lapse(record) for record in page.records])
                if not page.next:
                    break
        except LandedError as error:
            log.warning("plans that nobody began could not all be let go: %s", error)
        return lapsed

    async def _lapse(self, record: Record) -> bool:
        now = self.driver.clock.now()
        if record.kind is not Kind.PLAN or not is_orphan(plan := plan_from(record), now):
            return False
        told = PlanTold(
            plan=plan.id,
            event=lapses_as(plan),
            by=CLOCK,
            at=now,
            why=too_late(plan),
        )
        await self.driver.learn(record)
        loop = self.driver.loop_of(tenant=record.tenant, session=record.session)
        return not await loop.hand_in(told)
