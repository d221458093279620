"""A run on a terminal as it happens: what was said, each call and how it ended, what runs now.

`rich` draws it; it comes with the extra `cli` and is imported when a `LiveRenderer` is made.
"""

import json
from typing import TYPE_CHECKING

from landed.agent.loop import Event
from landed.agent.messages import AssistantMessage, Message, ToolCall, ToolResultMessage, text_of
from landed.agent.render import failure_of, is_asked
from landed.core.visible import line, lines

if TYPE_CHECKING:
    from rich.console import Console

_LINE_MAX_CHARS = 200


class LiveRenderer:
    """Draws events as they come, on `console` or on standard output.

    Whatever was written by a model, a tool or a user is shown without its power over the terminal.
    Raises `ModuleNotFoundError` where `rich` is not installed.
    """

    def __init__(self, console: "Console | None" = None) -> None:
        try:
            from rich.console import Console
            from rich.live import Live
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError("a live view needs rich: install landed[cli]") from error
        self._console = console or Console(highlight=False)
        self._running: dict[str, str] = {}
        # What runs now stands below all that was printed, and is gone when nothing runs.
        self._below = Live(console=self._console, refresh_per_second=8, transient=True)
        self._last: AssistantMessage | None = None
        self._progress = self._typed = ""
        self._is_asking = False

    def say(self, text: str) -> None:
        """Print something that is no event, above what runs."""
        self._print(text)

    def below(self, *, progress: str | None = None, typed: str | None = None) -> None:
        """Show under all else how a plan comes on, and what somebody types during the run."""
        self._progress = self._progress if progress is None else progress
        self._typed = self._typed if typed is None else typed
        self._draw()

    def render(self, event: Event) -> None:
        """Draw what the event adds; what it is not about stays as it is."""
        if message := event.get("message"):
            self._message(message)
        if call := event.get("call"):
            if event["type"] == "tool_execution_start":
                self._start(call)
            else:
                self._end(call, event.get("result"))
        if event["type"] in ("turn_start", "turn_end"):
            self._is_asking = event["type"] == "turn_start"
            self._draw()
        if event["type"] == "agent_end":
            self.rest()

    def rest(self) -> None:
        """Take what still runs off the screen: the run is over, also one that never said so."""
        self._running.clear()
        self._progress = self._typed = ""
        self._is_asking = False
        self._below.stop()

    def finish(self) -> bool:
        """Take what still runs off the screen; say whether it ended well."""
        self.rest()
        failure = failure_of(self._last)
        if failure:
            self._print(f"Error: {failure}", style="bold red")
        return not failure

    def _message(self, message: Message) -> None:
        if message["role"] == "user":
            self._print(message["content"], style="bold", before="> ")
        elif message["role"] == "assistant":
            self._last = message
            self._is_asking = False
            self._draw()
            if text := text_of(message).strip():
                self._print(text)

    def _start(self, call: ToolCall) -> None:
        self._running[call["id"]] = _title(call)
        self._draw()

    def _end(self, call: ToolCall, result: ToolResultMessage | None) -> None:
        self._running.pop(call["id"], None)
        self._draw()
        if result is not None and not result["is_error"]:
            waits = is_asked(result)
            style = "yellow" if waits else "green"
            self._print(_title(call), style=style, before="? " if waits else "✓ ")
            return
        self._print(_title(call), style="red", before="✗ ")
        if result is not None:
            self._print(_short(result["content"]), style="red", before="  ")

    def _draw(self) -> None:
        from rich.console import Group
        from rich.spinner import Spinner
        from rich.text import Text

        names = " · ".join(self._running.values()) or ("…" if self._is_asking else "")
        told = [f"  {line(self._progress)}"] if self._progress else []
        told += [f"> {line(self._typed)}"] if self._typed else []
        if not names and not told:
            self._below.stop()
            return
        shown = Group(Spinner("dots", text=Text(names)), *map(Text, told))
        self._below.update(shown, refresh=self._below.is_started)
        self._below.start(refresh=True)

    def _print(self, text: str, *, style: str = "", before: str = "") -> None:
        from rich.text import Text

        self._console.print(Text("\n".join(before + each for each in lines(text)), style=style))


def _title(call: ToolCall) -> str:
    return _short(f"{call['name']} {json.dumps(call['arguments'], ensure_ascii=False)}")


def _short(text: str) -> str:
    shown = line(text)
    return shown if len(shown) <= _LINE_MAX_CHARS else f"{shown[: _LINE_MAX_CHARS - 1]}…"
