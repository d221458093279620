"""A runtime as something that is entered and left: its bounds, its worker, its end."""

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field

from landed.core.errors import LandedError, StoreError, WrongLoopError
from landed.core.onlooker import Onlooker
from landed.runtime.clock import Clock, Ids
from landed.runtime.driver import Driver
from landed.runtime.planning import Planner
from landed.runtime.sharing import ADOPT_AT_ONCE, ADOPT_MAX, TENANT_MAX
from landed.runtime.worker import Worker

log = logging.getLogger("landed")

LOST_DRAIN_S = 2.0  # how long a worker that was taken for dead waits for what it cannot write down


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The bounds of a runtime, in seconds.

    send_within_s   until when after it was made an operation may be sent, first or again
    answer_within_s until when after it was asked a yes to a plan may come
    patience_s      how long `perform` waits; None for twice the tool's deadline
    let_go_s        how long a cancelled caller is held until the doubt it leaves is durable
    drain_s         how long `drain` waits for what is out
    language        of the person's sentences: `en` or `es`
    sweep_every_s   how often each tool that can list its effects is swept; None for never
    tenants         those whose cases are swept for, and told of again at the start
    adopt_max       how much of what dead workers left is worked on here at a time; what only waits
                    is not counted. More is taken over as that gets less
    adopt_at_once   how many sends and questions of that are out at once, for each service
    tenant_max      how many calls of one tenant may wait here, and how much of it may be open here;
                    beyond that a new call raises `BusyError`
    """

    send_within_s: float = 900.0
    answer_within_s: float = 600.0
    patience_s: float | None = None
    let_go_s: float = 5.0
    drain_s: float = 30.0
    language: str = "en"
    sweep_every_s: float | None = None
    tenants: tuple[str, ...] = ("default",)
    adopt_max: int = ADOPT_MAX
    adopt_at_once: int = ADOPT_AT_ONCE
    tenant_max: int = TENANT_MAX

    def __post_init__(self) -> None:
        """Raise `ValueError` for a bound with which nothing would ever be done."""
        if min(self.adopt_max, self.adopt_at_once, self.tenant_max) < 1:
            raise ValueError("adopt_max, adopt_at_once and tenant_max are at least 1")


@dataclass(slots=True, eq=False)
class Opened:
    """What every verb stands on. It belongs to the event loop it was entered on."""

    driver: Driver
    worker: Worker
    ids: Ids
    settings: Settings
    planner: Planner
    _loop: asyncio.AbstractEventLoop | None = None
    _rounds: "tuple[asyncio.Task[None], ...]" = ()
    _drained: bool = False
    _going_on: "set[asyncio.Task[None]]" = field(default_factory=set["asyncio.Task[None]"])

    @property
    def recovered(self) -> int:
        """How many operations of dead workers were taken over so far; it goes on in bites."""
        return self.worker.recovered

    @property
    def _clock(self) -> Clock:
        return self.driver.clock

    async def _enter(self) -> None:
        self._loop = asyncio.get_running_loop()
        await self.worker.lookout.begin()
        await self.driver.register()
        await self.worker.begin()
        self._rounds = tuple(map(asyncio.ensure_future, self._begun()))

    def _begun(self) -> Sequence[Coroutine[None, None, None]]:
        """Return what goes on in the background until the runtime is drained."""
        onlooker = self.driver.onlooker
        reading = (self._reading(onlooker),) if onlooker.reads_every_s else ()
        return (self.worker.beat(), *reading)

    async def _reading(self, onlooker: Onlooker) -> None:
        """Read what the store says about itself, round after round, for whoever watches."""
        while True:
            try:
                facts = await self.driver.store.facts()
                onlooker.counted(facts, at=self._clock.now())
            except StoreError as error:
                log.warning("telemetry could not read the store: %s", error)
            await asyncio.sleep(onlooker.reads_every_s)

    def _go_on_with(self, work: Coroutine[None, None, None]) -> None:
        """Go on with something that nobody waits for, until the runtime is drained."""
        going_on = asyncio.ensure_future(work)
        self._going_on.add(going_on)
        going_on.add_done_callback(self._went_on)

    def _went_on(self, ended: "asyncio.Task[None]") -> None:
        self._going_on.discard(ended)
        if not ended.cancelled() and (error := ended.exception()) is not None:
            log.warning("what nobody waited for ended: %s", error)

    async def serve(self, stop: asyncio.Event) -> None:
        """Work on what is in the store until `stop` is set, for a process that does nothing else.

        Whoever watches a plan is let go then, so that nothing that serves them has to wait.
        Raises `LeaseLostError` when this worker was taken for dead, and `NewerSchemaError` when a
        newer `landed` took over the store; another worker has its work then.
        """
        self._check_open()
        stopped = asyncio.ensure_future(stop.wait())
        try:
            await asyncio.wait((stopped, *self._rounds[:1]), return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopped.cancel()
            self.driver.setting.listeners.end()
        if self.worker.lost is not None:
            raise self.worker.lost

    async def __aexit__(self, *_: object) -> None:
        await self.drain()
        await self.driver.store.close()

    async def drain(self) -> None:
        """Start nothing new, let what is out come back, and let go of every claim."""
        if self._drained:
            return
        self._check_loop()
        self._drained = True
        self.worker.leaving = True
        for going_on in (*self._rounds[1:], *self._going_on):
            going_on.cancel()
        bound_s = self.settings.drain_s
        if self.worker.lost is not None:
            bound_s = min(bound_s, LOST_DRAIN_S)  # Others have what it held, and go on with it.
        await self.driver.drain(bound_s=bound_s)
        for beating in self._rounds[:1]:
            beating.cancel()  # Not before: what is out is ours until it came back.
        if self.worker.lost is None:
            await self.worker.lookout.end()
            await self.driver.store.retire(worker=self.worker.name)
        self.driver.onlooker.end()

    def _check_open(self) -> None:
        if self._loop is None or self._drained or self.driver.schedule.over:
            raise LandedError("the runtime is not open; use it inside `async with landed.open(…)`")
        self._check_loop()
        if self.worker.lost is not None:
            raise self.worker.lost

    def _check_loop(self) -> None:
        if self._loop is not asyncio.get_running_loop():
            raise WrongLoopError(
                "this runtime was entered on another event loop; open one on each loop that uses it"
            )
