"""What may be shown on a terminal: everything that was written by others, without its power.

Escape sequences are left out; what else steers a terminal, turns the direction of writing or is not
seen is shown as the number that it has. So a name cannot overwrite the line that it stands in.
"""

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import cast

import click

# A control sequence, whole; of any other escape only what opens it (ECMA-48, 5.3 to 5.6), for what
# a string such as a title holds may as well be read.
_SEQUENCES = re.compile(r"(?:\x1b\[|\x9b)[0-?]{0,64}[ -/]{0,8}[@-~]|\x1b[ -/]{0,8}[0-~]")
# Controls, formats (directions, zero width), halves of characters, ends of lines and paragraphs.
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_BLANKS = {ord(blank): " " for blank in "\t\n\r\v\f"}
# Blanks that are drawn as nothing at all, though they are letters.
_EMPTY = frozenset("\u115f\u1160\u3164\uffa0\u2800\u034f\u17b4\u17b5\ufe0e\ufe0f")


def line(text: object) -> str:
    """Return a text as one line that can do nothing but be read."""
    return "".join(map(_seen, _SEQUENCES.sub("", str(text)).translate(_BLANKS)))


def lines(text: object) -> list[str]:
    """Return a text as lines that can do nothing but be read."""
    return [line(each) for each in str(text).split("\n")]


def show(text: object = "", *, indent: str = "") -> None:
    """Print a text, line by line."""
    for each in lines(text):
        click.echo(f"{indent}{each}".rstrip())


def show_json(plain: object) -> None:
    """Print plain values as JSON; what is not seen is escaped in it, so that nothing is lost."""
    written = json.dumps(plain, indent=2, ensure_ascii=False, default=_plain)
    click.echo("".join(each if each == "\n" else _escaped(each) for each in written))


def table(rows: Sequence[Sequence[object]]) -> None:
    """Print rows in columns; the first is their heading."""
    cells = [[line(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) + 2 for column in zip(*cells, strict=True)]
    for row in cells:
        padded = (f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True))
        click.echo("".join(padded).rstrip())


def _seen(letter: str) -> str:
    return f"<U+{ord(letter):04X}>" if _is_hidden(letter) else letter


def _escaped(letter: str) -> str:
    if not _is_hidden(letter):
        return letter
    return "\\u007f" if letter == "\x7f" else json.dumps(letter)[1:-1]


def _is_hidden(letter: str) -> bool:
    return unicodedata.category(letter) in _UNSEEN or letter in _EMPTY


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, object]", value))
    raise TypeError(f"{value!r} is no plain value")
