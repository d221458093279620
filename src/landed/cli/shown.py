"""Prints on a terminal: everything that was written by others, without its power."""

import json
from collections.abc import Mapping, Sequence
from typing import cast

import click

from landed.core.visible import is_hidden, line, lines


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


def _escaped(letter: str) -> str:
    if not is_hidden(letter):
        return letter
    return "\\u007f" if letter == "\x7f" else json.dumps(letter)[1:-1]


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, object]", value))
    raise TypeError(f"{value!r} is no plain value")
