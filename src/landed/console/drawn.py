"""Timelines on a page: the picture, and the same lines as a table for whoever cannot see it."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup

from landed.console.shown import visible
from landed.testing.axis import axis_of
from landed.testing.picture import ALONE, BESIDE, Look, Told, inline, told
from landed.testing.timeline import Line

Say = Callable[[str], str]

_TURN = re.compile(r"turn-[0-9a-z]{20,}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A timeline as a page shows it: what the picture is of, the picture, and its lines."""

    title: str
    picture: Markup
    rows: tuple[Told, ...]


def drawn(lines: Sequence[Line], *, title: str, say: Say) -> Drawn:
    """Return a timeline, drawn; `say` are the words of the page."""
    return _drawn(inline(_short(lines), title=title, look=_look(ALONE, say)), lines, title)


def drawn_beside(timelines: Sequence[tuple[str, Sequence[Line]]], *, say: Say) -> list[Drawn]:
    """Return timelines that share one time axis, each with its title."""
    axis, look = axis_of(*(lines for _, lines in timelines)), _look(BESIDE, say)
    return [
        _drawn(inline(lines, title=title, axis=axis, beside=n, look=look), lines, title)
        for n, (title, lines) in enumerate(timelines)
    ]


def _short(lines: Sequence[Line]) -> list[Line]:
    """Return the lines with a number for each turn, where ids would leave no room for words."""
    numbers: dict[str, str] = {}

    def number(found: re.Match[str]) -> str:
        return numbers.setdefault(found[0], f"T{len(numbers) + 1}")

    return [replace(line, text=_TURN.sub(number, line.text)) for line in lines]


def _drawn(picture: str, lines: Sequence[Line], title: str) -> Drawn:
    # All that is text in it was made visible and escaped where it was drawn.
    return Drawn(title=title, picture=Markup(picture), rows=told(lines))


def _look(look: Look, say: Say) -> Look:
    def seen(text: str) -> str:
        return str(visible(text))

    def names(name: str) -> str:
        return say(f"picture.{name}")

    return replace(look, seen=seen, names=names)
