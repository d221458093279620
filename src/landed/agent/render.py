"""What a run looks like to whoever watches it: a renderer is told each event, and then the end.

    async for event in harness.prompt("…"):
        renderer.render(event)
    sys.exit(0 if renderer.finish() else 1)

A run that was stopped or has failed did not end well, nor did one that broke off before an answer:
`finish` says so, and a script that looks at the exit code hears of it.
"""

import json
import sys
from collections.abc import AsyncIterable
from typing import Protocol, TextIO

from landed.agent.loop import Event
from landed.agent.messages import FAILED, AssistantMessage, ToolResultMessage, calls_of, text_of
from landed.core.visible import lines

UNANSWERED = "the run ended before an answer"


class Renderer(Protocol):
    """A fold over the events of runs."""

    def render(self, event: Event) -> None:
        """Take the next event."""
        ...

    def finish(self) -> bool:
        """Show what is left to show, and say whether it ended well."""
        ...


async def show(run: AsyncIterable[Event], renderer: Renderer) -> bool:
    """Drive a run to its end before a renderer's eyes; say whether it ended well."""
    async for event in run:
        renderer.render(event)
    return renderer.finish()


def failure_of(message: AssistantMessage | None) -> str:
    """Return why a run that ended with this message did not end well, "" if it did."""
    if message is None:
        return UNANSWERED
    if (reason := message["stop_reason"]) in FAILED:
        return message.get("error_message") or str(reason)
    return UNANSWERED if calls_of(message) else ""


class FinalTextRenderer:
    """Shows nothing until the end; then the answer, or "Error: " and the reason."""

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = out or sys.stdout
        self._last: AssistantMessage | None = None

    def render(self, event: Event) -> None:
        """Remember an assistant's message; show nothing."""
        self._last = answered(event) or self._last

    def finish(self) -> bool:
        """Print the last answer and return True, or the error and return False."""
        failure = failure_of(self._last)
        text = f"Error: {failure}" if failure or self._last is None else text_of(self._last)
        # A pipe is given the text as it is; a terminal only what it can show and not obey.
        shown = "\n".join(lines(text)) if self._out.isatty() else text
        print(_encodable(shown, self._out), file=self._out, flush=True)
        return not failure


class JsonRenderer:
    """Prints each event as one line of JSON, at once."""

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = out or sys.stdout
        self._last: AssistantMessage | None = None
        self._has_failed = False

    def render(self, event: Event) -> None:
        """Print the event."""
        print(json.dumps(event, default=str), file=self._out, flush=True)
        if message := answered(event):
            self._last = message
            self._has_failed |= message["stop_reason"] in FAILED

    def finish(self) -> bool:
        """Say whether no message ended in an error or aborted, and the last one was an answer."""
        return not (self._has_failed or failure_of(self._last))


def answered(event: Event) -> AssistantMessage | None:
    """Return the assistant's message that an event completes, if it does."""
    message = event.get("message")
    return message if message is not None and message["role"] == "assistant" else None


def is_asked(result: ToolResultMessage) -> bool:
    """Whether a result is of an effect that waits for a person's yes: nothing of it was done."""
    return "proposed" in result.get("tells", {}).values()


def _encodable(text: str, out: TextIO) -> str:
    encoding = out.encoding or "utf-8"
    return text.encode(encoding, "replace").decode(encoding)
