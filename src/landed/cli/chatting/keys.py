"""What is typed: whole lines while nothing runs, letter by letter while a run goes on.

At rest the terminal is as it always is, and edits the line itself. During a run it hands over each
letter as it is typed, so that Esc is heard; whatever happens, it is put back afterwards. Nothing
polls: the event loop wakes when there is something to read.
"""

import asyncio
import codecs
import os
import re
import signal
import stat
import termios
import tty
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Self

from landed.core.visible import is_hidden

ESCAPE = "\x1b"
LEAVES = "\x04"  # Ctrl-D
ESCAPE_S = 0.05
"""How long after an Esc the rest of a key's sequence may come, in seconds."""

CHUNK_BYTES = 65_536
TYPED_MAX = 10_000
"""Letters of a line that is typed during a run; what is more is dropped."""

_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|O[@-~])")
_UNFINISHED = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|O)?\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hears:
    """Who hears what is typed during a run: each line, each Esc, and the line as it grows."""

    line: Callable[[str], object]
    escape: Callable[[], object]
    typed: Callable[[str], object]


class Keys:
    """What comes from a file descriptor; enter it on the event loop that reads.

    `typed` is half a line that was typed during a run: it begins the next one.
    """

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.is_terminal = os.isatty(fd)
        self.typed = ""
        self._usual = termios.tcgetattr(fd) if self.is_terminal else None
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._lines: deque[str] = deque()
        self._came = asyncio.Event()
        self._is_over = False
        self._hears: Hears | None = None
        self._begun = ""
        self._waiting: asyncio.TimerHandle | None = None

    def __enter__(self) -> Self:
        if stat.S_ISREG(os.fstat(self.fd).st_mode):
            while not self._is_over:  # A file never makes one wait, and no loop watches it.
                self._read()
        else:
            asyncio.get_running_loop().add_reader(self.fd, self._read)
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        self._restore()

    def close(self) -> None:
        """Take nothing more: `line` returns None once the lines are taken that have come."""
        self._is_over = True
        self._came.set()
        asyncio.get_running_loop().remove_reader(self.fd)

    def leave(self) -> None:
        """Take nothing more, and forget what has come."""
        self._lines.clear()
        self.close()

    async def line(self) -> str | None:
        """Return the next line, None at the end."""
        while not self._lines:
            if self._is_over:
                return None
            self._came.clear()
            await self._came.wait()
        return self._lines.popleft()

    def forget(self) -> None:
        """Drop what was typed ahead: whoever typed it had not seen what is asked now."""
        if self.is_terminal:
            termios.tcflush(self.fd, termios.TCIFLUSH)
            self._lines.clear()
            self.typed = ""

    @contextmanager
    def during(self, hears: Hears) -> Generator[None]:
        """Let a terminal hand over each letter while the block runs; what else it is goes on."""
        if not self.is_terminal:
            yield
            return
        loop = asyncio.get_running_loop()
        self._hears = hears
        self._letters()
        loop.add_signal_handler(signal.SIGCONT, self._letters)  # It was stopped by Ctrl-Z.
        try:
            yield
        finally:
            loop.remove_signal_handler(signal.SIGCONT)
            self._cleared()
            self._hears = None
            self._restore()

    def _letters(self) -> None:
        with suppress(termios.error):  # The terminal is gone: SIGHUP says so.
            tty.setcbreak(self.fd, termios.TCSADRAIN)

    def _restore(self) -> None:
        if self._usual is not None:
            with suppress(termios.error):
                termios.tcsetattr(self.fd, termios.TCSADRAIN, self._usual)

    def _read(self) -> None:
        try:
            chunk = os.read(self.fd, CHUNK_BYTES)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        text = self._decoder.decode(chunk, final=not chunk)
        if self._hears is not None:
            self._cleared()
            self._take(self._begun + text, self._hears)
        else:
            # Typed as a letter, a moment before the run was over and the line was edited again.
            is_left = self.is_terminal and text.endswith(LEAVES)
            text = text.removesuffix(LEAVES) if is_left else text
            *whole, self.typed = (self.typed + text).split("\n")
            self._is_over |= is_left and not self.typed
            if not chunk and self.typed:
                whole, self.typed = [*whole, self.typed], ""
            self._lines += [each.rstrip("\r") for each in whole]
            self._came.set()
        if not chunk or (self._is_over and self._hears is None):
            self.close()

    def _take(self, text: str, hears: Hears) -> None:
        """Take letters as an editor of one line does, and leave half a sequence for later."""
        text = _SEQUENCE.sub("", text)
        half = _UNFINISHED.search(text)
        self._begun = half.group() if half else ""
        for letter in text[: half.start()] if half else text:
            self._press(letter, hears)
        hears.typed(self.typed)
        if self._begun:
            loop = asyncio.get_running_loop()
            self._waiting = loop.call_later(ESCAPE_S, self._escaped, hears)

    def _escaped(self, hears: Hears) -> None:
        self._begun = ""
        hears.escape()

    def _cleared(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _press(self, letter: str, hears: Hears) -> None:
        match letter:
            case "\r" | "\n":
                line, self.typed = self.typed, ""
                hears.line(line)
            case "\x7f" | "\b":
                self.typed = self.typed[:-1]
            case "\x15":  # Ctrl-U
                self.typed = ""
            case "\x17":  # Ctrl-W
                self.typed = self.typed.rstrip().rpartition(" ")[0]
            case "\x04" if not self.typed:  # LEAVES: it ends once the run does.
                self._is_over = True
            case "\x1b":
                hears.escape()
            case _ if not is_hidden(letter) and len(self.typed) < TYPED_MAX:
                self.typed += letter
            case _:
                pass
