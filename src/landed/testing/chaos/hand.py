"""The hand that kills, pauses and restarts, by a seeded schedule, while a run is under load."""

import asyncio
import random
import signal
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

import psycopg

from landed.testing.chaos.crew import Worker
from landed.testing.chaos.places import Mode, Place

# How often each is drawn; a restart at most every `RESTART_EVERY_S`, for it takes some seconds.
_DRAWN: Mapping[str, int] = {"kill": 7, "pause": 2, "restart": 2}
MODES: Sequence[Mode] = ("immediate", "fast")
RESTART_EVERY_S = 12.0
LAST_ONE = 0.2  # how often the only one that is up is not spared


@dataclass(frozen=True, slots=True, kw_only=True)
class Orphans:
    """What a worker held when it was killed, or paused for longer than its lease, and when.

    From `free_at` on others may take that over (UTC seconds, as `at`).
    """

    at: float
    how: str
    ids: tuple[str, ...]
    free_at: float


@dataclass(slots=True, eq=False)
class Hand:
    """Does one thing about every `every_s` seconds. `did` counts what it did."""

    chance: random.Random
    workers: Sequence[Worker]
    place: Place
    every_s: float
    lease_s: float
    acts: frozenset[str] = frozenset(_DRAWN)
    did: Counter[str] = field(default_factory=Counter[str])
    orphans: list[Orphans] = field(default_factory=list[Orphans])
    restarts: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])
    _paused: set[int] = field(default_factory=set[int])
    _pauses: "set[asyncio.Task[None]]" = field(default_factory=set["asyncio.Task[None]"])

    async def play(self, until: asyncio.Event) -> None:
        """Go on until the event, then let every paused worker go on as well."""
        drawn = {what: often for what, often in _DRAWN.items() if what in self.acts}
        while not until.is_set():
            (what,) = self.chance.choices(tuple(drawn), tuple(drawn.values()))
            await _DOES[what](self)
            pause_s = self.every_s * (0.5 + self.chance.random())
            try:
                await asyncio.wait_for(until.wait(), pause_s)
            except TimeoutError:
                continue
        if self._pauses:
            await asyncio.wait(self._pauses, timeout=4 * self.lease_s)

    async def kill(self) -> None:
        """Kill a worker by SIGKILL; another process takes its number up again."""
        worker = self._drawn()
        if worker is None or worker.process is None:
            return
        name, process, at = worker.name, worker.process, time.time()
        worker.signal(signal.SIGKILL)
        await process.wait()
        self.did["kill"] += 1
        await self._orphaned(at, "killed", name)

    async def pause(self) -> None:
        """Stop a worker by SIGSTOP for longer than its lease, and let it go on; waits for neither.

        One at a time, so that somebody is there to take over.
        """
        worker = self._drawn()
        if worker is None or self._paused:
            return
        self._paused.add(worker.number)
        self.did["pause"] += 1
        pausing = asyncio.ensure_future(self._pause(worker))
        self._pauses.add(pausing)
        pausing.add_done_callback(self._pauses.discard)

    async def _pause(self, worker: Worker) -> None:
        name, at = worker.name, time.time()
        worker.signal(signal.SIGSTOP)
        await self._orphaned(at, "paused", name)
        await asyncio.sleep(self.lease_s * (1.4 + self.chance.random()))
        worker.signal(signal.SIGCONT)
        self._paused.discard(worker.number)

    async def restart(self) -> None:
        """Restart the server of the records, as after a crash or in good order."""
        began = time.time()
        if self.restarts and began - self.restarts[-1][1] < RESTART_EVERY_S:
            return
        mode = self.chance.choice(MODES)
        if await asyncio.to_thread(self.place.restart, mode):
            self.did[f"restart {mode}"] += 1
            self.restarts.append((began, time.time()))

    def _drawn(self) -> Worker | None:
        """Return a worker to do something to, mostly one of several: the last is often spared."""
        up = [w for w in self.workers if w.number not in self._paused and w.is_up]
        if not up or (len(up) == 1 and self.chance.random() > LAST_ONE):
            return None
        return self.chance.choice(up)

    async def _orphaned(self, at: float, how: str, name: str) -> None:
        try:
            ids = await asyncio.to_thread(self.place.held_by, name)
            over = await asyncio.to_thread(self.place.lease_over, name)
        except psycopg.Error:  # The server is being restarted: then nobody can say.
            return
        self.orphans.append(Orphans(at=at, how=how, ids=ids, free_at=max(at, over)))


_DOES: Mapping[str, Callable[[Hand], Awaitable[None]]] = {
    "kill": Hand.kill,
    "pause": Hand.pause,
    "restart": Hand.restart,
}
