"""Who listens to the plans that this process carries out: told after each commit, never waited for.

A listener that is slow loses what lies in between, and always has the latest. Nothing here writes,
and nothing here can hold a loop up or raise into it.
"""

import asyncio
from collections import deque
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from landed.core.plan import Plan

HEARD_MAX = 128  # states of one plan that wait for a slow listener; older ones are dropped


@dataclass(slots=True, eq=False)
class Listener:
    """Somebody who wants to know how a plan goes on."""

    heard: deque[Plan] = field(default_factory=lambda: deque[Plan](maxlen=HEARD_MAX))
    bell: asyncio.Event = field(default_factory=asyncio.Event)

    version: int = 0

    def hear(self, plan: Plan) -> None:
        """Take note of the plan as it stands now, unless that is known already."""
        if plan.version > self.version:
            self.version = plan.version
            self.heard.append(plan)
            self.bell.set()

    async def wait(self, seconds: float) -> None:
        """Return when there is something to be heard, or after `seconds`."""
        self.bell.clear()
        timer = asyncio.get_running_loop().call_later(seconds, self.bell.set)
        try:
            await self.bell.wait()
        finally:
            timer.cancel()


@dataclass(slots=True, eq=False)
class Listeners:
    """Those who listen, by plan; `over` once this process carries out nothing any more."""

    of: dict[str, list[Listener]] = field(default_factory=dict[str, list[Listener]])
    over: bool = False

    def tell(self, plans: Mapping[str, Plan]) -> None:
        """Tell of plans as they are durable now."""
        for id, listeners in self.of.items():
            for listener in listeners if id in plans else ():
                listener.hear(plans[id])

    def end(self) -> None:
        """Let everybody go who listens: nothing more comes from here."""
        self.over = True
        for listeners in self.of.values():
            for listener in listeners:
                listener.bell.set()

    @contextmanager
    def listening(self, plan: str) -> Generator[Listener]:
        """Listen to a plan for as long as the block runs."""
        listener = Listener()
        self.of.setdefault(plan, []).append(listener)
        try:
            yield listener
        finally:
            self.of[plan].remove(listener)
            if not self.of[plan]:
                del self.of[plan]
