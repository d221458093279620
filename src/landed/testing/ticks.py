"""Turns of the event loop instead of seconds, and runs that go on in the background."""

import asyncio
from collections.abc import AsyncIterator

from landed.agent.loop import Event


async def tick() -> None:
    """Let everybody else have one turn of the event loop."""
    await asyncio.sleep(0)


async def ticks(turns: int) -> None:
    """Let everybody else have so many turns of the event loop."""
    for _ in range(turns):
        await tick()


async def driven(run: AsyncIterator[Event]) -> list[Event]:
    """Take all events of a run, and return them."""
    return [event async for event in run]


class Background:
    """Drives a run beside the test; `events` is what it took so far, `running` what drives it."""

    def __init__(self, run: AsyncIterator[Event]) -> None:
        self.events: list[Event] = []
        self.running = asyncio.ensure_future(self._drive(run))

    async def _drive(self, run: AsyncIterator[Event]) -> None:
        async for event in run:
            self.events.append(event)

    async def until(self, type: str, nth: int = 1) -> Event:
        """Wait until the run has come to its nth event of that type; return it."""
        while not self.running.done():
            found = [event for event in self.events if event["type"] == type]
            if len(found) >= nth:
                return found[nth - 1]
            await tick()
        raise AssertionError(f"the run is over, without event {nth} of type {type}")
