"""One worker: its lease and heartbeat, and the adoption of what dead workers left.

Recovery is slower than work: a bite at a time is taken over, as far as there is room for what is in
motion, and ordinary calls pass by. A bite may part a plan from its step. Both workers write on the
step's record then, so that a stop at one holds at the other.
"""

import asyncio
import logging
from contextlib import suppress
from dataclasses import dataclass
from zlib import crc32

from landed.core.errors import LeaseLostError, NewerSchemaError, RestoredError, StoreError
from landed.core.lease import Lease
from landed.core.onlooker import Noticed
from landed.core.store import Store
from landed.runtime.clock import Clock
from landed.runtime.driver import Driver
from landed.runtime.lookout import Lookout
from landed.runtime.sharing import Sharing

log = logging.getLogger("landed")

CLAIM_MAX = 100  # records taken over in one transaction: a bite
BITE_S = 0.1  # between two bites, so that several workers share what a dead one left
JITTER = 0.1  # by this part, at most, a heartbeat comes earlier than it has to


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
    leaving: bool = False
    more: bool = False
    recovered: int = 0

    async def begin(self) -> None:
        """Register, and begin to take over what dead workers left."""
        await self.store.renew(worker=self.name, until=self.lease.until(self.clock.now()))
        await self.adopt()
        await self.lookout.carry_on()

    async def adopt(self) -> int:
        """Claim a bite of what no living worker holds, and let its loops take it from there.

        Never more than there is room for: what was taken over and is still in motion is bounded.
        Returns how many operations that was.
        """
        limit = min(CLAIM_MAX, self._sharing.room_left)
        if self.driver.decides_only or self.leaving or limit < 1:
            return 0  # It has no tools to carry anything out with, it goes, or its hands are full.
        claimed = await self.store.claim(worker=self.name, now=self.clock.now(), limit=limit)
        self.more = len(claimed) == limit
        adopted = await self.driver.adopt(claimed)
        self.recovered += adopted
        return adopted

    async def beat(self) -> None:
        """Renew and adopt until cancelled; a worker that may not go on stops, and says why.

        It may not when its claims were taken over, or its store by a newer `landed`.
        """
        while self.lost is None:
            try:
                await self._bite(self.lease.beat_s * (1.0 - JITTER * self._luck))
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
                self.more = False
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

    async def _bite(self, seconds: float) -> None:
        """Wait for the next heartbeat, and take more meanwhile, where there is more and room."""
        now = asyncio.get_running_loop().time
        until = now() + seconds
        while self.more and (left := until - now()) > 0:
            await asyncio.sleep(min(left, BITE_S * (1.0 + self._luck)))
            if await self._has_room(until - now()):
                await self.adopt()
        await asyncio.sleep(max(0.0, until - now()))

    async def _has_room(self, seconds: float) -> bool:
        """Wait until there is room for a good bite, at most so long; return whether there is."""
        sharing = self._sharing
        wanted = min(CLAIM_MAX, -(-sharing.adopt_max // 2))
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, seconds)):
                while sharing.room_left < wanted:
                    sharing.room.clear()
                    await sharing.room.wait()
        return sharing.room_left >= wanted

    @property
    def _sharing(self) -> Sharing:
        return self.driver.setting.sharing

    @property
    def _luck(self) -> float:
        """What this worker has instead of chance (0 to 1): workers differ, and each is steady."""
        return crc32(self.name.encode()) / 2**32
