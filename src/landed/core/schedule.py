"""The seam to whoever calls the loop: which session's lap is taken next, where and when.

A lap is called when its session is *rung* (something arrived, a signal) and when it is *due* (a
timer). Where: in the process that holds the claims, for only its laps can write; another process
takes over by claiming, and rings what it claimed. `landed.runtime.schedule` does this with an event
loop, an engine with its own signals and durable timers. The core decides nothing here: a lap that
comes too often finds nothing to do, one that comes late is late.
"""

import math
from typing import Protocol

Place = tuple[str, str]
"""A session: its tenant and its name."""

AT_ONCE = 0.0
"""Due now: there is more to absorb."""

WHEN_RUNG = math.inf
"""Due at no time by itself."""


class Laps(Protocol):
    """What a schedule calls. Laps of one place must never overlap."""

    async def lap(self, place: Place) -> float | None:
        """Take one lap, and return when the next is due (UTC, seconds since the epoch).

        None: nothing is open there, and the place need not be kept until it is rung again. Trouble
        with a store is dealt with inside; what is raised is a bug, and the place is given up.
        """
        ...

    async def last_lap(self, place: Place) -> None:
        """Write down what the end of this process leaves; bounded, and called at most once."""
        ...

    def give_up(self, place: Place) -> None:
        """Leave nobody waiting there: no lap of it is called any more in this process."""
        ...


class Schedule(Protocol):
    """Says who calls the loop next, where and when.

    Held to by `landed.testing.check_schedule`: run it over your own.
    """

    @property
    def over(self) -> bool:
        """Whether no lap begins any more: it was ended, or whatever carries it was."""
        ...

    def begin(self, laps: Laps) -> None:
        """From now on, call these. Once, before the first ring."""
        ...

    def ring(self, place: Place) -> bool:
        """Have a lap begin there after this moment, also when one is under way; soon, not now.

        Several rings may be answered by one lap that begins after the last of them. False: it is
        over, and no lap will come.
        """
        ...

    async def end(self, *, bound_s: float) -> None:
        """Begin no lap any more, and have each place that is kept take its last one.

        Returns once all are given up, or after `bound_s` seconds. Ending again does nothing.
        """
        ...
