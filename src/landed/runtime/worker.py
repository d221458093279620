"""One worker: its lease and heartbeat, and the adoption of what dead workers left."""

import asyncio
import logging
from dataclasses import dataclass

from landed.core.errors import LeaseLostError, NewerSchemaError, RestoredError, StoreError
from landed.core.lease import Lease
from landed.core.onlooker import Noticed
from landed.core.store import Store
from landed.runtime.clock import Clock
from landed.runtime.driver import Driver
from landed.runtime.lookout import Lookout

log = logging.getLogger("landed")

CLAIM_MAX = 100  # records taken over in one transaction
CLAIMS_MAX = 1000  # transactions in one round, so that a round ends


@dataclass(slots=True, eq=False)
class Worker:
    """The claim of this process on what it works on. `name` is its own: host, pid and chance."""

    name: str
    store: Store
    driver: Driver
    clock: Clock
    lease: Lease
    lookout: Lookout
    lost: LeaseLostError | NewerSchemaError | RestoredError | None = None

    async def begin(self) -> int:
        """Register, and take over what dead workers left; return how many operations."""
        await self.store.renew(worker=self.name, until=self.lease.until(self.clock.now()))
        adopted = await self.adopt()
        await self.lookout.carry_on()
        return adopted

    async def adopt(self) -> int:
        """Claim what no living worker holds, and let its loops take it from there."""
        adopted = 0
        if self.driver.decides_only:
            return adopted  # It has no tools to carry anything out with.
        for _ in range(CLAIMS_MAX):
            claimed = await self.store.claim(
                worker=self.name, now=self.clock.now(), limit=CLAIM_MAX
            )
            adopted += await self.driver.adopt(claimed)
            if len(claimed) < CLAIM_MAX:
                break
        return adopted

    async def beat(self) -> None:
        """Renew and adopt until cancelled; a worker that may not go on stops, and says why.

        It may not when its claims were taken over, or its store by a newer `landed`.
        """
        while self.lost is None:
            await asyncio.sleep(self.lease.beat_s)
            try:
                until = self.lease.until(self.clock.now())
                await self.store.renew(worker=self.name, until=until)
                self.driver.onlooker.noticed(Noticed.RENEWED)
                await self.lookout.beat()
                await self.adopt()
            except (LeaseLostError, NewerSchemaError) as lost:
                self.lost = lost
                if isinstance(lost, LeaseLostError):
                    self.driver.onlooker.noticed(Noticed.LEASE_LOST)
                log.error("worker %s stops: %s", self.name, lost, extra={"worker": self.name})
            except RestoredError as gone:
                await self._give_up(gone)
            except StoreError as error:
                said = "worker %s could not renew its lease: %s"
                log.warning(said, self.name, error, extra={"worker": self.name})

    async def _give_up(self, gone: RestoredError) -> None:
        """Write down that the store went back, and do nothing more on what was known before."""
        try:
            await self.lookout.gone()
            await self.lookout.store.inner.retire(worker=self.name)
        except StoreError as error:
            log.error("%s; that could not be written down yet: %s", gone, error)
            return
        log.error("worker %s stops: %s", self.name, gone)
        self.lost = gone
        self.driver.stop_short(gone)
