"""Plays simulated scenarios for a page: off the event loop, one at a time, and each once.

A simulation changes nothing but its own memory, and with the same switches it goes the same way; so
what it came to is kept.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from landed.testing.timeline import Line

if TYPE_CHECKING:
    from landed.testing.playing import AnyScenario
    from landed.testing.scenario import Ran

KEPT_MAX = 200
WAITING_MAX = 8
TRIAL_MAX_S = 20.0
LINES_MAX = 500


class CrowdedError(Exception):
    """Too many scenarios are being played, or one takes longer than it may."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """How a scenario went: its timeline, what is held where, and whether that agrees.

    `reconciled` is whether the agent's records and the services pair one to one with nothing in
    doubt, `as_described` whether it ended as tabulated; None where nothing is tabulated.
    """

    lines: tuple[Line, ...]
    message: str
    world: tuple[tuple[str, tuple[str, ...]], ...]
    reconciled: bool
    as_described: bool | None


@dataclass(slots=True, eq=False)
class Trials:
    """Those that were played; `waiting` is how many somebody waits for."""

    kept: OrderedDict[object, Trial] = field(default_factory=OrderedDict[object, Trial])
    waiting: int = 0
    turn: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(1))

    async def of(self, key: object, scenario: "Callable[[], AnyScenario]") -> Trial:
        """Return how a scenario went; `key` names it with its switches.

        Raises `CrowdedError` where too many are waited for, or this one takes longer than it may.
        """
        if key in self.kept:
            self.kept.move_to_end(key)
            return self.kept[key]
        if self.waiting >= WAITING_MAX:
            raise CrowdedError
        self.waiting += 1
        playing = asyncio.ensure_future(self._play(key, scenario))
        playing.add_done_callback(self._played)
        try:
            return await asyncio.wait_for(asyncio.shield(playing), TRIAL_MAX_S)
        except TimeoutError:
            raise CrowdedError from None

    async def _play(self, key: object, scenario: "Callable[[], AnyScenario]") -> Trial:
        async with self.turn:
            if key not in self.kept:
                self.kept[key] = await asyncio.to_thread(_trial, scenario)
            while len(self.kept) > KEPT_MAX:
                self.kept.popitem(last=False)
        return self.kept[key]

    def _played(self, playing: "asyncio.Future[Trial]") -> None:
        self.waiting -= 1
        if not playing.cancelled():
            playing.exception()  # Whoever still waits is told; nobody else has to be.


def _trial(scenario: "Callable[[], AnyScenario]") -> Trial:
    from landed.testing.playing import played

    ran: Ran = played(scenario())
    return Trial(
        lines=tuple(ran.timeline.lines[:LINES_MAX]),
        message=ran.message,
        world=tuple(
            (service, tuple(str(one["text"]) for one in held))
            for service, held in ran.world.items()
        ),
        reconciled=ran.reconciled,
        as_described=ran.as_described,
    )
