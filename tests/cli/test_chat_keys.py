"""What is typed into a chat: lines at rest, letters during a run, and the terminal put back."""

import asyncio
import os
import pty
import termios
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from landed.cli.chatting.keys import Hears, Keys

Play = Callable[[int, Keys, "Heard"], Awaitable[None]]


@dataclass(slots=True, eq=False)
class Heard:
    lines: list[str] = field(default_factory=list)
    escapes: int = 0
    typed: str = ""
    came: asyncio.Event = field(default_factory=asyncio.Event)

    def hears(self) -> Hears:
        return Hears(line=self._line, escape=self._escape, typed=self._typed)

    async def until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            self.came.clear()
            await asyncio.wait_for(self.came.wait(), 10)

    def _line(self, line: str) -> None:
        self.lines.append(line)
        self.came.set()

    def _escape(self) -> None:
        self.escapes += 1
        self.came.set()

    def _typed(self, text: str) -> None:
        self.typed = text
        self.came.set()


def at_a_terminal(play: Play) -> list[object]:
    """Play at a terminal of its own; return how it was set afterwards, and before."""
    person, terminal = pty.openpty()
    before = termios.tcgetattr(terminal)

    async def act() -> None:
        with Keys(terminal) as keys:
            await play(person, keys, Heard())

    try:
        asyncio.run(act())
        return [termios.tcgetattr(terminal), before]
    finally:
        os.close(person)
        os.close(terminal)


def test_letters_are_heard_during_a_run_and_lines_before_and_after_it() -> None:
    async def play(person: int, keys: Keys, heard: Heard) -> None:
        os.write(person, b"Book Friday.\n")
        assert await keys.line() == "Book Friday."
        with keys.during(heard.hears()):
            os.write(person, "für vier\x7f\x7f\x7f\x7facht\n".encode())
            await heard.until(lambda: heard.lines == ["für acht"])
            os.write(person, b"one two\x17three\x15hal")
            await heard.until(lambda: heard.typed == "hal")
        os.write(person, b"f a line\n")
        assert await keys.line() == "half a line"

    after, before = at_a_terminal(play)
    assert after == before


def test_an_escape_is_a_press_and_the_keys_that_begin_with_one_are_not() -> None:
    async def play(person: int, keys: Keys, heard: Heard) -> None:
        with keys.during(heard.hears()):
            os.write(person, b"\x1b[A\x1b[1;5C\x1bOPx")
            await heard.until(lambda: heard.typed == "x")
            assert heard.escapes == 0
            os.write(person, b"\x1b")
            await heard.until(lambda: heard.escapes == 1)
            os.write(person, b"\x1b\x1b")
            await heard.until(lambda: heard.escapes == 3)
            os.write(person, b"\x1b[")  # The rest of the key comes late, as over a slow line.
            os.write(person, b"By\n")
            await heard.until(lambda: heard.lines == ["xy"])
            assert heard.escapes == 3

    at_a_terminal(play)


def test_what_hides_in_what_is_typed_is_left_out() -> None:
    async def play(person: int, keys: Keys, heard: Heard) -> None:
        with keys.during(heard.hears()):
            os.write(person, "y\u202ee\u200bs\x07\n".encode())
            await heard.until(lambda: heard.lines == ["yes"])

    at_a_terminal(play)


def test_the_terminal_is_put_back_whatever_happens() -> None:
    kept: list[list[object]] = []

    async def play(person: int, keys: Keys, heard: Heard) -> None:
        def fails() -> None:
            with keys.during(heard.hears()):
                kept.append(termios.tcgetattr(keys.fd))
                raise ZeroDivisionError

        usual = termios.tcgetattr(keys.fd)
        with pytest.raises(ZeroDivisionError):
            fails()
        assert termios.tcgetattr(keys.fd) == usual

    after, before = at_a_terminal(play)
    assert after == before
    assert kept != [before]


def test_what_was_typed_ahead_of_a_question_is_forgotten() -> None:
    async def play(person: int, keys: Keys, heard: Heard) -> None:
        with keys.during(heard.hears()):
            os.write(person, b"ye")
            await heard.until(lambda: heard.typed == "ye")
        keys.forget()
        os.write(person, b"no\n")
        assert await keys.line() == "no"

    at_a_terminal(play)


def test_control_d_at_the_very_end_of_a_run_is_heard() -> None:
    async def play(person: int, keys: Keys, heard: Heard) -> None:
        with keys.during(heard.hears()):
            os.write(person, b"\x04")  # Nobody has read it when the terminal is put back.
        assert await asyncio.wait_for(keys.line(), 10) is None

    at_a_terminal(play)


def test_control_d_and_leaving_end_the_lines() -> None:
    async def play(person: int, keys: Keys, heard: Heard) -> None:
        waiting = asyncio.ensure_future(keys.line())
        os.write(person, b"\x04")
        assert await asyncio.wait_for(waiting, 10) is None

    at_a_terminal(play)

    async def leaves(person: int, keys: Keys, heard: Heard) -> None:
        waiting = asyncio.ensure_future(keys.line())
        await asyncio.sleep(0)
        keys.leave()
        assert await asyncio.wait_for(waiting, 10) is None

    at_a_terminal(leaves)


@pytest.mark.parametrize("is_pipe", [True, False])
def test_what_is_no_terminal_is_read_line_by_line_to_its_end(tmp_path: Path, is_pipe: bool) -> None:
    text = b"one\r\ntwo\nthree"

    async def read(fd: int) -> list[str | None]:
        with Keys(fd) as keys:
            return [await keys.line() for _ in range(4)]

    (tmp_path / "lines").write_bytes(text)
    fd = os.open(tmp_path / "lines", os.O_RDONLY)
    if is_pipe:
        os.close(fd)
        fd, writer = os.pipe()
        os.write(writer, text)
        os.close(writer)
    try:
        assert asyncio.run(read(fd)) == ["one", "two", "three", None]
    finally:
        os.close(fd)
