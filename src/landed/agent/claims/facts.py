"""What can be compared in a sentence and in a record: figures, ids, dates, times, days.

A token is read in every way that it may be meant ("1.234" is a thousand or one and a bit), and
agrees with a record if one of these stands there. What counts something or measures time ("3 days",
"step 2", "the second") is no figure of an effect and is left out.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from landed.agent.claims.words import DAYS, PLACES, SHORT_DAYS, TOTALS, UNITS
from landed.core.canonical import Json

TOKEN_CHARS = 80
"""What is longer is compared by its beginning."""

VALUES = 10_000
"""How many values of one record are looked at."""

# Alphanumeric parts held together by signs; or a sign that ends a part of a sentence.
_TOKEN = re.compile(r"[^\W_]+(?:[-.,:/@'_+][^\W_]+)*|[.;:,()\[\]—–|\-&%]")
_NUMBER = re.compile(r"\d{1,20}(?:[.,]\d{1,20}){0,6}")
_TIME = re.compile(r"([01]?\d|2[0-3])(?:[:.h]([0-5]\d))(?::[0-5]\d)?(am|pm)?|(\d{1,2})(am|pm)")
_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?:t(\d\d:\d\d).*)?")
_SHORT_DATE = re.compile(r"(\d{1,2})[/.](\d{1,2})(?:[/.](\d{4}))?")
_MEASURED = re.compile(r"(\d[\d.,]*)(?:eur|usd|gbp|-[^\W\d_]+)")
_COUNTED = re.compile(r"\d+(?:st|nd|rd|th|º|ª|x|h|s|ms|min|k|m)|x\d+")
_PARTS = re.compile(r"[^\W_]+")
_OF_THE = ["of", "the"]  # "480 of the 600": what is left of a figure is no effect's.
_HALVES = {"am": "am", "pm": "pm", "a.m": "am", "p.m": "pm"}
_SHORTENED = {"ve": "have", "ll": "will", "d": "would", "re": "are", "m": "am", "s": "is"}
_NEGATED = {"ca": "can", "wo": "will", "sha": "shall", "cannot": "can"}


@dataclass(frozen=True, slots=True)
class Word:
    """A word in small letters, with what is shortened written out, and as it was written."""

    text: str
    shown: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A figure, an id or a day that a sentence names: as written, and what it may mean."""

    shown: str
    readings: frozenset[str]

    @property
    def is_a_day(self) -> bool:
        """Whether it is a day of the week."""
        return any(each.startswith("day:") for each in self.readings)

    def is_in(self, facts: frozenset[str]) -> bool:
        """Whether one of its meanings is among the facts; an id also if all its parts are."""
        if self.readings & facts:
            return True
        if self.is_a_day:
            return not any(fact.startswith("day:") for fact in facts)
        parts = [part for part in _PARTS.findall(self.shown.casefold()) if _has_digit(part)]
        is_id = any(each.startswith("id:") for each in self.readings)
        return is_id and len(parts) > 0 and all(f"id:{part}" in facts for part in parts)


def words_of(sentence: str) -> list[Word]:
    """Return the words and signs of a sentence, in order."""
    words: list[Word] = []
    for found in _TOKEN.finditer(sentence.replace("’", "'")):
        shown = found.group()[:TOKEN_CHARS]
        words += [Word(text, shown) for text in _written_out(shown.casefold())]
    return words


def named_in(words: Sequence[Word]) -> tuple[Named, ...]:
    """Return what can be compared with a record, in order."""
    texts = [word.text for word in words]
    found: list[Named] = []
    for place, word in enumerate(words):
        before = texts[place - 1] if place else ""
        after = texts[place + 1] if place + 1 < len(words) else ""
        if before in PLACES or before == "from" or texts[max(0, place - 2) : place] == _OF_THE:
            continue
        readings = _day(word.shown) or _in_a_sentence(word.text, after)
        if readings:
            found.append(Named(shown=word.shown, readings=readings))
    if any(text in TOTALS for text in texts):
        # A sum of several effects stands in no record.
        found = [each for each in found if not any(r.startswith("n:") for r in each.readings)]
    return tuple(found)


def facts_of(value: Json, *, name: str = "") -> frozenset[str]:
    """Return all that a sentence may name of a value: an argument, or a result."""
    facts: set[str] = set()
    left: list[tuple[str, Json]] = [(name, value)]
    for _ in range(VALUES):
        if not left:
            break
        at, each = left.pop()
        if isinstance(each, Mapping):
            left += each.items()
        elif isinstance(each, str):
            facts.update(_facts_of_text(each))
        elif isinstance(each, Sequence):
            left += ((at, one) for one in each)
        elif each is not None and not isinstance(each, bool):
            facts.update(_facts_of_number(each, at))
    return frozenset(facts)


def _written_out(text: str) -> list[str]:
    head, sign, tail = text.rpartition("'")
    if not sign:
        return ["can", "not"] if text == "cannot" else [text]
    if tail == "t" and head.endswith("n"):
        return [_NEGATED.get(head[:-1], head[:-1]), "not"]
    return [head, _SHORTENED[tail]] if tail in _SHORTENED else [text]


def _in_a_sentence(text: str, after: str) -> frozenset[str]:
    if not _has_digit(text) and "@" not in text:
        return frozenset()
    if after in _HALVES and (at := _times(f"{text}{_HALVES[after]}")):
        return at
    if after in UNITS or after == "%" or _COUNTED.fullmatch(text):
        return frozenset()
    if measured := _MEASURED.fullmatch(text):
        return _numbers(measured.group(1))
    return _dates(text) or _times(text) | _numbers(text) or frozenset({f"id:{text}"})


def _facts_of_text(text: str) -> Iterator[str]:
    words = words_of(text)
    for place, word in enumerate(words):
        after = words[place + 1].text if place + 1 < len(words) else ""
        yield from _day(word.shown)
        yield f"id:{word.text}"
        yield from (f"id:{part}" for part in _PARTS.findall(word.text))
        yield from _with_looser(_in_a_sentence(word.text, after if after in _HALVES else ""))
        # Also as a mere number: "table 4" of "table-4", "the 12th" of a date.
        digits = (part for part in _PARTS.findall(word.text) if re.fullmatch(r"\d{1,20}", part))
        yield from (f"n:{int(part)}" for part in digits)


def _with_looser(readings: frozenset[str]) -> Iterator[str]:
    """Yield what is said less exactly of a date or a time: its day and month, its hour."""
    for each in readings:
        yield each
        kind, _, rest = each.partition(":")
        if kind == "date":
            year, month, day = map(int, rest.split("-"))
            yield from (f"md:{month}-{day}", f"n:{day}", f"n:{year}")
            yield f"day:{date(year, month, day).weekday()}"
        if kind == "time":
            hour = int(rest.partition(":")[0])
            yield from (f"n:{hour}", f"n:{hour % 12 or 12}")


def _facts_of_number(value: int | float, name: str) -> Iterator[str]:
    if abs(value) > 10**20 or value != value:
        return
    number = Decimal(str(value))
    yield f"n:{_plain(abs(number))}"
    if name.casefold().endswith("cents"):
        yield f"n:{_plain(abs(number) / 100)}"


def _numbers(text: str) -> frozenset[str]:
    if not _NUMBER.fullmatch(text):
        return frozenset()
    parts = re.split(r"[.,]", text)
    signs = [sign for sign in text if sign in ".,"]
    readings: set[str] = set()
    if all(len(part) == 3 for part in parts[1:]):
        readings.add(f"n:{_plain(Decimal(''.join(parts)))}")
    if signs and all(len(part) == 3 for part in parts[1:-1]) and signs[-1] not in signs[:-1]:
        whole = "".join(parts[:-1])
        readings.add(f"n:{_plain(Decimal(f'{whole}.{parts[-1]}'))}")
    return frozenset(readings)


def _plain(number: Decimal) -> str:
    return format(number.normalize(), "f")


def _times(text: str) -> frozenset[str]:
    found = _TIME.fullmatch(text)
    if found is None:
        return frozenset()
    hour, minute = int(found.group(1) or found.group(4)), int(found.group(2) or 0)
    half = found.group(3) or found.group(5)
    if half:
        hours = {hour % 12 + (12 if half == "pm" else 0)}
    else:
        hours = {hour, hour + 12} if 0 < hour < 12 else {hour}
    return frozenset(f"time:{each:02d}:{minute:02d}" for each in hours)


def _dates(text: str) -> frozenset[str]:
    if found := _DATE.fullmatch(text):
        year, month, day = (int(found.group(n)) for n in (1, 2, 3))
        at = _times(found.group(4)) if found.group(4) else frozenset[str]()
        return _date(year, month, day) | at
    found = _SHORT_DATE.fullmatch(text)
    if found is None or ("." in text and not found.group(3)):
        return frozenset()
    one, other = int(found.group(1)), int(found.group(2))
    if found.group(3):
        year = int(found.group(3))
        return _date(year, one, other) | _date(year, other, one)
    return frozenset({f"md:{one}-{other}", f"md:{other}-{one}"})


def _date(year: int, month: int, day: int) -> frozenset[str]:
    try:
        return frozenset({f"date:{date(year, month, day).isoformat()}"})
    except ValueError:
        return frozenset()


def _day(shown: str) -> frozenset[str]:
    number = DAYS.get(shown.casefold(), SHORT_DAYS.get(shown))
    return frozenset() if number is None else frozenset({f"day:{number}"})


def _has_digit(text: str) -> bool:
    return any(letter.isdigit() for letter in text)
