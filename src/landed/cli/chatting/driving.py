"""Drives the runs of a conversation, with the button of whoever sits in front of it."""

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import contextmanager

from landed.agent.button import Button, Pressed
from landed.agent.loop import Account, Event
from landed.cli.chatting.talks import Talk

ENDS = (signal.SIGTERM, signal.SIGHUP)
"""What ends the process: the run is stopped first."""


class Driving:
    """The runs of one conversation, each shown as it goes on.

    `accounts` are what the records have of each turn so far. A press counts from the moment a run
    is taken, also before it has made its first step.
    """

    def __init__(
        self, talk: Talk, show: Callable[[Event], object], *, grace_s: float, by: str
    ) -> None:
        self.talk = talk
        self.accounts: list[Account] = []
        self.is_pressed = False
        self.button = Button(lambda: talk.harness, grace_s=grace_s)
        self._show = show
        self._by = by

    async def take(self, run: AsyncIterator[Event]) -> None:
        """Take a run to its end; a stop is no error."""
        await self.button.drive(run, self._on_event)

    def press(self, reason: str = "") -> Pressed:
        """Stop the run: politely at first, at once when pressed again."""
        self.is_pressed = True
        return self.button.press(self._by, reason)

    def _on_event(self, event: Event) -> None:
        if event["type"] == "agent_start" and self.is_pressed:
            # Pressed while the words were being received: the run has a flag only now.
            self.talk.harness.cancel(self._by)
        if (account := event.get("account")) is not None:
            self.accounts.append(account)
        self._show(event)


@contextmanager
def heeding(press: Callable[[str], object], *signals: signal.Signals) -> Generator[None]:
    """Press for each of these signals that comes while the block runs."""
    loop = asyncio.get_running_loop()
    for each in signals:
        loop.add_signal_handler(each, press, each.name)
    try:
        yield
    finally:
        for each in signals:
            loop.remove_signal_handler(each)
