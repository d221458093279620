"""The stop button of a person: ask, wait for the grace, cancel; pressed again, it doesn't wait.

A terminal's Ctrl-C, a page's Stop and a request over HTTP press the same button, so that they leave
the same records. Which conversations of this process have a run is in `Buttons`, by their names.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from landed.agent.harness import Harness
from landed.agent.loop import Event
from landed.agent.stop import GRACE_S, stop_run


class Pressed(StrEnum):
    """What pressing came to."""

    IDLE = "idle"
    """Nothing runs here: nothing was stopped."""

    ASKED = "asked"
    """The run is asked to stop, and cancelled if it has not within its grace."""

    FORCED = "forced"
    """It had been asked already, and is cancelled now."""


class Work(StrEnum):
    """What the agent of a conversation is doing here."""

    IDLE = "idle"
    AT_WORK = "at_work"
    STOPPING = "stopping"
    """It was asked to stop; pressed again, it is cancelled."""


class Button:
    """Drives the runs of one conversation, and stops them.

    `grace_s` (seconds) is how long a run may take to answer the first press. Nothing here raises
    into whoever presses: what a run dies of is raised by `drive`.
    """

    def __init__(self, harness: Callable[[], Harness], *, grace_s: float = GRACE_S) -> None:
        self.grace_s = grace_s
        self._harness = harness
        self._running: asyncio.Task[None] | None = None
        self._stopping: asyncio.Task[Any] | None = None

    async def drive(self, run: AsyncIterator[Event], on_event: Callable[[Event], object]) -> None:
        """Take the events of a run until it is over, however it ends; a stop is no error.

        When this call itself is cancelled, that presses the button: the run has its grace, and is
        over before the cancel goes on.
        """
        self._running = running = asyncio.ensure_future(_taken(run, on_event))
        cancel: asyncio.CancelledError | None = None
        while not self._is_over():
            try:
                await asyncio.wait({running, *([self._stopping] if self._stopping else [])})
            except asyncio.CancelledError as asked:
                cancel = cancel or asked
                self.press()
        self._running = self._stopping = None
        if cancel is not None:
            raise cancel
        if not running.cancelled():
            running.result()

    def press(self, by: str = "", reason: str = "") -> Pressed:
        """Stop the run: politely at first, at once when pressed again."""
        running = self._running
        if running is None or running.done():
            return Pressed.IDLE
        if self._stopping is not None:
            running.cancel()
            return Pressed.FORCED
        harness = self._harness()
        harness.cancel(by, reason)  # At once: what stops the run has its turn only later.
        self._stopping = asyncio.ensure_future(
            stop_run(harness, running, grace_s=self.grace_s, by=by, reason=reason)
        )
        return Pressed.ASKED

    @property
    def work(self) -> Work:
        """What it would stop."""
        if self._running is None or self._running.done():
            return Work.IDLE
        return Work.AT_WORK if self._stopping is None else Work.STOPPING

    def _is_over(self) -> bool:
        """Whether the run is over, and whoever stops it is through."""
        stopping, running = self._stopping, self._running
        if stopping is not None and stopping.done() and not stopping.cancelled():
            stopping.exception()  # It is the run's own, and raised from there.
        return all(one is None or one.done() for one in (stopping, running))


@dataclass(slots=True, eq=False)
class Buttons:
    """The buttons of the conversations that this process runs, by tenant and session."""

    of: dict[tuple[str, str], Button] = field(default_factory=dict[tuple[str, str], Button])

    @contextmanager
    def lit(self, button: Button, *, tenant: str, session: str) -> Generator[None]:
        """Let a button be found for as long as the block runs; raises `RuntimeError` for two."""
        place = (tenant, session)
        if place in self.of:
            raise RuntimeError(f"the conversation {session!r} is led by another agent here")
        self.of[place] = button
        try:
            yield
        finally:
            del self.of[place]

    def work(self, *, tenant: str, session: str) -> Work | None:
        """Return what the agent of a conversation does; None where none is led from here."""
        button = self.of.get((tenant, session))
        return button.work if button is not None else None

    def press(self, *, tenant: str, session: str, by: str = "", reason: str = "") -> Pressed:
        """Press the button of a conversation; `IDLE` where nothing of it runs in this process."""
        button = self.of.get((tenant, session))
        return button.press(by, reason) if button is not None else Pressed.IDLE


async def _taken(run: AsyncIterator[Event], on_event: Callable[[Event], object]) -> None:
    try:
        async for event in run:
            on_event(event)
    finally:
        close = getattr(run, "aclose", None)
        if close is not None:
            await close()
