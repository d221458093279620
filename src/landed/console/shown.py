"""How values look on a page: what cannot be seen is made visible, amounts and times in one form.

Every value that a template prints goes through `visible` (it is Jinja's `finalize`), so that no
template can forget it: characters that turn the direction of the text, that have no width, that a
terminal obeys, and letters of another alphabet inside a Latin word stand as `<U+202E>`. What is
hidden is what `core.visible` says, for every face alike.
"""

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from markupsafe import Markup

from landed.core.sentences import money
from landed.core.visible import line

TEXT_MAX = 20_000  # characters of one value on a page
MARKS_MAX = 2  # accents on one letter; more are piled up to hide what stands around them

# Whatever is in none of these ranges (Latin, punctuation, arrows) is looked at one by one.
_ODD = re.compile(
    "[^\n\t -~\u00a1-\u00ac\u00ae-\u024f\u2010-\u2027\u2030-\u205e\u20ac\u2190-\u21ff]"
)
_ASCII_LETTER = re.compile(r"[A-Za-z]")
_WORD = re.compile(r"\w+")
_ALPHABETS = ("CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "FULLWIDTH LATIN", "MATHEMATICAL")


def visible(value: object) -> object:
    """Return a value as it may stand on a page; what templates made themselves stays as it is."""
    if isinstance(value, Markup):
        return value
    text = "" if value is None else str(value)
    if len(text) > TEXT_MAX:
        text = f"{text[:TEXT_MAX]}… (+{len(text) - TEXT_MAX})"
    return "\n".join(map(_escaped, text.split("\n"))) if _ODD.search(text) else text


def plain(value: object) -> str:
    """Return a JSON value as a person reads it: text as it is, all else as JSON."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, indent=None, default=str)


def amount(cents: int | None) -> str:
    """Return an amount with two decimals and a thin gap for each thousand, "" for none."""
    if cents is None:
        return ""
    sign = "-" if cents < 0 else ""
    whole, _, rest = money(abs(cents)).partition(".")
    return f"{sign}{int(whole):,}.{rest}"


def moment(at: float) -> str:
    """Return a moment (UTC seconds) to the second, "" for none."""
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC" if at else ""


def machine_time(at: float) -> str:
    """Return a moment as the `datetime` of a `<time>`."""
    return datetime.fromtimestamp(at, UTC).isoformat()


def rows(values: Mapping[str, Any]) -> Sequence[tuple[str, str]]:
    """Return names and values, each as a person reads it."""
    return [(name, plain(value)) for name, value in values.items()]


def _escaped(text: str) -> str:
    text = line(text)
    mixed = _mixed(text)
    out: list[str] = []
    marks = 0
    for place, character in enumerate(text):
        marks = marks + 1 if unicodedata.category(character).startswith("M") else 0
        hidden = _is_odd_space(character) or marks > MARKS_MAX or place in mixed
        out.append(f"<U+{ord(character):04X}>" if hidden else character)
    return "".join(out)


def _is_odd_space(character: str) -> bool:
    return character != " " and unicodedata.category(character) == "Zs"


def _mixed(text: str) -> frozenset[int]:
    """Return where letters of another alphabet stand inside a word with Latin letters in it."""
    found: set[int] = set()
    for word in _WORD.finditer(text):
        if _ASCII_LETTER.search(word[0]) and not word[0].isascii():
            places = enumerate(word[0], word.start())
            found.update(place for place, character in places if _is_foreign(character))
    return frozenset(found)


def _is_foreign(character: str) -> bool:
    return not character.isascii() and unicodedata.name(character, "").startswith(_ALPHABETS)
