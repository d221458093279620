"""The chat with a person: what is typed is said, during a run too, and Esc or Ctrl-C stops it."""

import asyncio
import signal
import sys
import uuid
from collections import deque
from collections.abc import AsyncIterator

import click

from landed.agent.button import Pressed
from landed.agent.effects import Seen
from landed.agent.loop import Event
from landed.cli.chatting.asked import Asked
from landed.cli.chatting.beside import console_of
from landed.cli.chatting.driving import ENDS, Driving, heeding
from landed.cli.chatting.keys import Hears, Keys
from landed.cli.chatting.once import status_of
from landed.cli.chatting.opening import talking
from landed.cli.chatting.showing import Showing, note, screen_of
from landed.cli.chatting.talks import Talk
from landed.core.errors import LandedError
from landed.core.value import PlanValue
from landed.core.yes import Answer, read

HINT = "Enter sends, also while it works; Esc or Ctrl-C stops it; Ctrl-D leaves"
PRESSED = {
    Pressed.ASKED: "stopping… (again: now)",
    Pressed.FORCED: "stopped without waiting",
    Pressed.IDLE: "",
}
HEARD = "heard; it goes in as soon as the calls are answered"
UNSEEN = "nothing was asked that you have seen: this was not taken for an answer"


async def chat(asked: Asked, *, as_json: bool) -> int:
    """Lead the conversation by what is typed, until it ends; return the exit status."""
    showing = Showing(screen_of(as_json=as_json))
    async with talking(asked) as talk:
        with Keys(sys.stdin.fileno()) as keys:
            room = Room(talk, keys, showing, asked)
            with heeding(room.interrupt, signal.SIGINT), heeding(room.end, *ENDS):
                async with console_of(talk, room.driving.button, asked, showing.say):
                    await room.lead()
            if keys.is_terminal:
                showing.say("leaving; what is under way goes on with the next worker or chat")
                return 0
            return await status_of(room.driving, note)


class Room:
    """One conversation and the terminal in front of it."""

    def __init__(self, talk: Talk, keys: Keys, showing: Showing, asked: Asked) -> None:
        self.driving = Driving(talk, showing.event, grace_s=asked.grace_s, by=asked.principal)
        self._talk = talk
        self._keys = keys
        self._showing = showing
        self._is_running = False
        self._asked_now = 0
        self._begun_at: int | None = None
        self._next: deque[tuple[str, str]] = deque()
        self._steering: set[asyncio.Task[None]] = set()
        talk.watch(
            Seen(plan=self._plan, progress=lambda step: showing.screen.below(progress=step.text))
        )

    async def lead(self) -> None:
        """Finish what was left, and then act on each line."""
        if self._keys.is_terminal:
            self._showing.say(HINT)
        if left := await self._talk.left():
            self._showing.say(f"finishing what was left: {left[-1]}")
            await self._run(self._talk.finish())
        while (said := await self._said()) is not None:
            words, delivery = said
            await self._run(self._talk.hear(words, delivery=delivery))

    def interrupt(self, reason: str) -> None:
        """Press the button during a run, and leave while nothing runs."""
        if self._is_running:
            self._press(reason)
        elif self.driving.is_pressed:
            # It was meant for the run, which has just ended of the press before.
            self.driving.is_pressed = False
            self._showing.say("nothing runs any more (again: leaves)")
        else:
            self._keys.leave()

    def end(self, reason: str) -> None:
        """Stop the run, and leave once it is over."""
        if self._is_running:
            self._press(reason)
        self._keys.leave()

    def _press(self, reason: str) -> None:
        if said := PRESSED[self.driving.press(reason)]:
            self._showing.say(said)

    async def _said(self) -> tuple[str, str] | None:
        """Return the next words with their delivery, None at the end."""
        while not self._next:
            if self._keys.is_terminal and self._showing.is_drawn:
                click.echo(f"> {self._keys.typed}", nl=False)
            words = await self._keys.line()
            if words is None:
                return None
            if words.strip():
                self._showing.typed_at_rest = words if self._keys.is_terminal else ""
                self._next.append((words, _new_delivery()))
        return self._next.popleft()

    async def _run(self, run: AsyncIterator[Event]) -> None:
        """Take a run to its end, with ears open; trouble is said, and the chat goes on."""
        self._is_running, self.driving.is_pressed, self._asked_now = True, False, 0
        hears = Hears(line=self._line, escape=lambda: self._press("Esc"), typed=self._typed)
        asked_before = len(self.driving.accounts)
        try:
            with self._keys.during(hears):
                await self.driving.take(run)
                if self._steering:
                    await asyncio.wait(self._steering)
        except LandedError as error:
            self._showing.say(f"! {error}")
        finally:
            self._is_running = False
            self._showing.screen.rest()  # One that was cut off has not said that it is over.
        if any(each["questions"] for each in self.driving.accounts[asked_before:]):
            self._keys.forget()

    # While a run goes on.

    def _plan(self, value: PlanValue) -> None:
        """Show a question as soon as it is asked: only what was seen can be answered."""
        if value.questions:
            self._asked_now += 1
            self._showing.say(f"? {value.text}")

    def _typed(self, text: str) -> None:
        if text and self._begun_at is None:
            self._begun_at = self._asked_now
        if not text:
            self._begun_at = None
        self._showing.screen.below(typed=text)

    def _line(self, words: str) -> None:
        begun_at = self._asked_now if self._begun_at is None else self._begun_at
        self._begun_at = None
        if not words.strip():
            return
        is_seen = 0 < self._asked_now == begun_at
        if read(words) is not Answer.OTHER and not is_seen:
            self._showing.say(f"{UNSEEN}: {words}")
            return
        steering = asyncio.ensure_future(self._steer(words))
        self._steering.add(steering)
        steering.add_done_callback(self._steering.discard)

    async def _steer(self, words: str) -> None:
        delivery = _new_delivery()
        try:
            if await self._talk.steer(words, delivery=delivery):
                self._showing.say(HEARD)
            else:
                self._next.append((words, delivery))
        except LandedError as error:
            self._showing.say(f"! {error}")


def _new_delivery() -> str:
    return f"chat-{uuid.uuid4()}"
