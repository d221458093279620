"""Calls the laps of each session in this process: on its event loop, when rung and when due."""

import asyncio
import logging
from dataclasses import dataclass, field
from functools import partial

from landed.core.schedule import AT_ONCE, WHEN_RUNG, Laps, Place
from landed.runtime.clock import Clock

log = logging.getLogger("landed")


@dataclass(slots=True, eq=False)
class LocalSchedule:
    """One asyncio task for each session in which something is open, and none for the others.

    Its timers die with the process: whoever claims what it held rings it anew.
    """

    clock: Clock
    over: bool = False
    _laps: Laps | None = None
    _bells: dict[Place, asyncio.Event] = field(default_factory=dict[Place, asyncio.Event])
    _runs: "dict[Place, asyncio.Task[None]]" = field(
        default_factory=dict[Place, "asyncio.Task[None]"]
    )

    def begin(self, laps: Laps) -> None:
        """Call these from now on."""
        self._laps = laps

    def ring(self, place: Place) -> bool:
        """Have a lap begin there; False when it is over."""
        bell = self._bells.get(place)
        if bell is None:
            if self.over or self._laps is None:
                return False
            bell = self._bells[place] = asyncio.Event()
            run = self._runs[place] = asyncio.ensure_future(self._run(place, bell, self._laps))
            run.add_done_callback(partial(self._ended, place, self._laps))
        bell.set()
        return True

    async def end(self, *, bound_s: float) -> None:
        """Begin no lap any more; each place takes its last one."""
        self.over = True
        if self._laps is None or not self._runs:
            return
        places = {run: place for place, run in self._runs.items()}
        for run in places:
            run.cancel()
        ended, _ = await asyncio.wait(places, timeout=bound_s)
        for run in ended:
            self._ended(places[run], self._laps, run)

    async def _run(self, place: Place, bell: asyncio.Event, laps: Laps) -> None:
        try:
            while bell.is_set():
                bell.clear()
                due = await laps.lap(place)
                if due is not None:
                    await self._until(due, bell)
        except asyncio.CancelledError:
            self.over = True  # Nobody but `end` and the end of the event loop does that.
            await laps.last_lap(place)
            raise
        self._forget(place)  # In the same step, so that a ring that comes next begins anew.

    async def _until(self, due: float, bell: asyncio.Event) -> None:
        """Wait for the bell, which rings by itself when it is time."""
        if due == AT_ONCE:
            bell.set()
        if due == WHEN_RUNG:
            await bell.wait()
            return
        seconds = max(0.0, due - self.clock.now())
        timer = asyncio.get_running_loop().call_later(seconds, bell.set)
        try:
            await bell.wait()
        finally:
            timer.cancel()

    def _ended(self, place: Place, laps: Laps, run: "asyncio.Task[None]") -> None:
        """See to a run that ended otherwise than because nothing was open any more."""
        if self._runs.get(place) is not run:
            return
        self._forget(place)
        if run.cancelled():
            self.over = True
        elif (error := run.exception()) is not None:
            log.error("a session's lap ended by a bug: %s", error, exc_info=error)
        laps.give_up(place)

    def _forget(self, place: Place) -> None:
        del self._bells[place], self._runs[place]
