"""The strict yes: read by code, deterministically, never by a model.

A yes is made of yes-words only, at most six of them, without a question mark. Anything else is not
one: "yes, but on Sunday" is a new wish, "disallow" is not "allow", and "no, don't approve" is no
approval. A no is read as strictly. The word tables are data, one for each language; a message is
read in every language at once, for people mix them.
"""

import re
import unicodedata
from collections.abc import Mapping
from enum import StrEnum

WORDS_MAX = 6
TEXT_MAX = 80  # characters; longer is no yes, and is not even split


class Answer(StrEnum):
    """What a message is to the question before it."""

    YES = "yes"
    NO = "no"
    OTHER = "other"


# Each phrase is a yes or a no by itself; phrases may follow one another ("yes, please").
YES: Mapping[str, tuple[str, ...]] = {
    "en": (
        "yes",
        "yes please",
        "confirm",
        "confirmed",
        "i confirm",
        "approve",
        "approved",
        "i approve",
        "go ahead",
        "please do",
        "do it",
    ),
    "es": (
        "sí",
        "si",
        "sí por favor",
        "confirmo",
        "lo confirmo",
        "confirmado",
        "apruebo",
        "adelante",
        "vale adelante",
        "hazlo",
    ),
}
NO: Mapping[str, tuple[str, ...]] = {
    "en": ("no", "no thanks", "no thank you", "don't", "do not", "decline", "keep it"),
    "es": ("no", "no gracias", "no lo hagas", "déjalo", "consérvalo"),
}
POLITE = ("please", "por favor", "thanks", "thank you", "gracias")

_ASKS = frozenset("?¿\uff1f\u061f\u037e")  # Question marks, also of other scripts.
_WORDS = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")


def read(text: str) -> Answer:
    """Return what `text` answers. Linear in its length, and bounded."""
    if len(text) > TEXT_MAX or any(each in _ASKS or each.isdigit() for each in text):
        return Answer.OTHER
    plain = unicodedata.normalize("NFC", text).casefold()
    words = [word.replace("’", "'") for word in _WORDS.findall(plain)]
    if not words or len(words) > WORDS_MAX:
        return Answer.OTHER
    for answer, phrases in ((Answer.YES, _YES), (Answer.NO, _NO)):
        if _made_of(words, phrases):
            return answer
    return Answer.OTHER


def _phrases(table: Mapping[str, tuple[str, ...]]) -> tuple[tuple[str, ...], ...]:
    every = [tuple(p.split()) for phrases in table.values() for p in phrases]
    return tuple(sorted(every, key=len, reverse=True))


_YES, _NO = _phrases(YES), _phrases(NO)
_POLITE = tuple(tuple(p.split()) for p in POLITE)


def _made_of(words: list[str], phrases: tuple[tuple[str, ...], ...]) -> bool:
    """Whether the words are these phrases and polite ones only, with at least one of these."""
    at, meant = 0, False
    while at < len(words):
        step = _next_phrase(words, at, phrases)
        meant = meant or step > 0
        step = step or _next_phrase(words, at, _POLITE)
        if not step:
            return False
        at += step
    return meant


def _next_phrase(words: list[str], at: int, phrases: tuple[tuple[str, ...], ...]) -> int:
    for phrase in phrases:
        if tuple(words[at : at + len(phrase)]) == phrase:
            return len(phrase)
    return 0
