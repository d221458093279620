"""What a chat looks like: live on a terminal with rich, plain lines elsewhere, JSON where asked.

Whatever was written by a model, a tool or a user is shown without its power over the terminal.
"""

import json
import sys
from typing import Protocol

import click

from landed.agent.loop import Account, Event
from landed.agent.messages import FAILED, Message, text_of
from landed.agent.render import JsonRenderer, failure_of, is_asked
from landed.cli.shown import show
from landed.core.visible import line

TITLE_MAX = 200
"""Characters of a call that are shown."""


class Screen(Protocol):
    """Where events are drawn, with a place below for what goes on just now."""

    def render(self, event: Event) -> None:
        """Draw what an event adds."""
        ...

    def say(self, text: str) -> None:
        """Say something of the chat's own."""
        ...

    def below(self, *, progress: str | None = None, typed: str | None = None) -> None:
        """Show under all else how a plan comes on, and the line that is being typed."""
        ...

    def rest(self) -> None:
        """Show nothing more of a run: it is over, however it ended."""
        ...


class Lines:
    """Draws events as lines on standard output."""

    def render(self, event: Event) -> None:
        """Print the assistant's words, and each call with how it ended."""
        message, call = event.get("message"), event.get("call")
        if message is not None and message["role"] == "assistant" and text_of(message).strip():
            show(text_of(message))
        if call is not None and event["type"] == "tool_execution_end":
            result = event.get("result")
            is_good = result is not None and not result["is_error"]
            ended = "✓" if is_good else "✗"
            if result is not None and is_asked(result):
                ended = "?"
            given = json.dumps(call["arguments"], ensure_ascii=False)
            show(f"{ended} {call['name']} {given}"[:TITLE_MAX])

    def say(self, text: str) -> None:
        """Print it."""
        show(text)

    def below(self, *, progress: str | None = None, typed: str | None = None) -> None:
        """Print a step; what is typed is not repeated."""
        if progress:
            show(progress, indent="  ")

    def rest(self) -> None:
        """Leave what is printed."""


class Quiet:
    """Draws each event as a line of JSON, and nothing else."""

    def __init__(self) -> None:
        self._events = JsonRenderer()

    def render(self, event: Event) -> None:
        """Print the event."""
        self._events.render(event)

    def say(self, text: str) -> None:
        """Say it beside the events, on standard error."""
        note(text)

    def below(self, *, progress: str | None = None, typed: str | None = None) -> None:
        """Show nothing."""

    def rest(self) -> None:
        """Show nothing."""


def screen_of(*, as_json: bool) -> Screen:
    """Return where to draw: a live one only where somebody looks at it."""
    if as_json:
        return Quiet()
    if not sys.stdout.isatty():
        return Lines()
    try:
        from landed.agent.live import LiveRenderer

        return LiveRenderer()
    except ModuleNotFoundError:
        return Lines()


class Showing:
    """A conversation before a person's eyes; `is_drawn` where it is more than JSON."""

    def __init__(self, screen: Screen) -> None:
        self.screen = screen
        self.say = screen.say
        self.is_drawn = not isinstance(screen, Quiet)
        self._answer = ""
        self.typed_at_rest = ""
        """The last words that stand on the terminal already, for they were typed there."""

    def event(self, event: Event) -> None:
        """Draw an event; the account is what the records have, and is told as such."""
        message = event.get("message")
        if message is not None and self._stands_there(message):
            self.typed_at_rest = ""
            return
        self.screen.render(event)
        if message is not None and message["role"] == "assistant":
            self._answer = text_of(message)
            if message["stop_reason"] in FAILED:
                self.say(f"! {failure_of(message)}")
        if (account := event.get("account")) is not None and self.is_drawn:
            self._account(account)

    def _stands_there(self, message: Message) -> bool:
        """Whether these are the words that were just typed, and so stand there already."""
        is_user = message["role"] == "user"
        return self.is_drawn and is_user and message["content"] == self.typed_at_rest

    def _account(self, account: Account) -> None:
        has_effects = account["operations"] or account["questions"]
        if has_effects and account["report"] != self._answer:
            for each in account["report"].split("\n"):
                self.say(f"| {each}")
        for sentence, wrong in account["unsupported"]:
            self.say(f"! the records do not bear this out: “{sentence}”: {wrong}")


def note(text: str) -> None:
    """Say something beside the answer, on standard error."""
    click.echo(line(text), err=True)
