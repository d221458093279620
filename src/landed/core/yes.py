"""The strict yes: read by code, deterministically, never by a model.

A yes is made of yes-words only, at most six of them, and of nothing else: no question mark, no
quote, no second line. "Yes, but on Sunday" is a new wish, "disallow" is not "allow", and "no,
don't approve" is no approval. A no is read as strictly. Everything else is `OTHER`: whatever was
asked lapses, and the words go to the model.

The characters are a list too. A message with any other one (a digit of another script, a Cyrillic
letter that looks Latin, something without width) is `OTHER`; nothing is folded into a yes but
capital letters, and an accent that is typed as two characters.

A message is read in every language at once, for people mix them. The length is looked at first, so
that the rest is bounded: two passes over at most `TEXT_MAX` characters.
"""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from landed.core.yes_words import NO, NUMBERED, POLITE, THUMB, YES

WORDS_MAX = 6  # its number is one of them
TEXT_MAX = 80  # characters; longer is no answer, and is not even looked into


class Answer(StrEnum):
    """What a message is to the question before it."""

    YES = "yes"
    NO = "no"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a message answers, and the number of the question that it names.

    A `number` (1 to 999) answers the question that was *shown* with that number and no other; where
    none was, the reading is as good as `OTHER`, for "yes, 2" may then be about two of something.
    """

    answer: Answer
    number: int | None = None


_OTHER = Reading(answer=Answer.OTHER)

_BLANKS = " \t\r\n\u00a0"  # what may stand around an answer
_SPACES = " \t\u00a0"  # what may stand inside: a second line may be somebody else's words
_TONES = "\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff"  # skins of a thumb
_MARKS = ".,!¡" + _TONES
_COMMANDS = (".", ",", "!")  # "!approve" is typed for a program
_NUMBER = re.compile(r"(?:#|n[º°])?([1-9][0-9]{0,2})")
# "Yes.." hesitates; "No. 2" may choose the second as well as refuse it.
_UNSURE = re.compile(r"\.\.|\bno\.\s*#?[0-9]")

# Each phrase as its words, and whether it means the answer or only stands beside it.
_Phrases = Mapping[tuple[str, ...], bool]


def read(text: str) -> Answer:
    """Return what `text` answers where no question had a number and no words had to be typed."""
    reading = read_answer(text)
    return Answer.OTHER if reading.number is not None else reading.answer


def read_answer(text: str, *, typed: tuple[str, ...] = ()) -> Reading:
    """Return what `text` answers, and which numbered question it names.

    With `typed` one of these words is the only yes: the whole message, in capital letters or not.
    A plain yes is `OTHER` then, and a bare number is no yes but as one of them. A no stays a no.
    `text` is what the person typed, unchanged; never what a model or a tool says that they typed.
    """
    if len(text) > TEXT_MAX:
        return _OTHER
    said = _as_typed(text)
    if any(_same_word(said, word) for word in typed):
        return Reading(answer=Answer.YES)
    reading = _read(_words(said))
    return _OTHER if typed and reading.answer is Answer.YES else reading


def _as_typed(text: str) -> str:
    """Return the text without blanks around it, composed; "" if that would change a character.

    Unicode has letters that composing replaces (the sign for kelvin becomes K, a Greek question
    mark a semicolon). Such a text is in neither of the two forms that keyboards send.
    """
    composed = unicodedata.normalize("NFC", text)
    if text not in (composed, unicodedata.normalize("NFD", text)):
        return ""
    return composed.strip(_BLANKS)


def _same_word(said: str, word: str) -> bool:
    """Whether they differ in capitals at most; no character stands for two, or for another."""
    word = unicodedata.normalize("NFC", word).strip(_BLANKS)
    return bool(said) and len(said) == len(word) and all(map(_same_letter, said, word))


def _same_letter(said: str, letter: str) -> bool:
    return said in (letter, letter.lower(), letter.upper())


def _words(said: str) -> list[str]:
    """Return the words of an answer, none where it holds anything that answers do not hold."""
    said = said.lower()
    if not _CHARACTERS.issuperset(said) or said.startswith(_COMMANDS) or _UNSURE.search(said):
        return []
    words = said.translate(_READ_AS).split()
    return words if len(words) <= WORDS_MAX else []


def _read(words: list[str]) -> Reading:
    words, number = _numbered(words)
    for answer, phrases in ((Answer.YES, _YES), (Answer.NO, _NO)):
        if _made_of(words, phrases):
            return Reading(answer=answer, number=number)
    return _OTHER


def _numbered(words: list[str]) -> tuple[list[str], int | None]:
    """Split the number off the end. One before it stays, and is no word of any table."""
    found = _NUMBER.fullmatch(words[-1]) if words else None
    if found is None:
        return words, None
    rest = words[:-1]
    if rest and rest[-1] in _NUMBER_WORDS and words[-1].isdigit():
        rest = rest[:-1]
    return rest, int(found[1])


def _made_of(words: list[str], phrases: _Phrases) -> bool:
    """Whether the words can be parted into these phrases, with one among them that means it."""
    reached = {(0, False)}
    for at in range(len(words)):
        for phrase, means in phrases.items():
            end = at + len(phrase)
            if tuple(words[at:end]) == phrase:
                reached |= {(end, means or meant) for start, meant in reached if start == at}
    return (len(words), True) in reached


def _every(table: Mapping[str, tuple[str, ...]]) -> list[str]:
    return [phrase for phrases in table.values() for phrase in phrases]


def _phrases(table: Mapping[str, tuple[str, ...]], *beside: str) -> _Phrases:
    """Return the phrases as words; True for those of the table, which mean it."""
    meant = {tuple(phrase.split()): True for phrase in _every(table)}
    return {tuple(phrase.split()): False for phrase in beside} | meant


_YES, _NO = _phrases(YES, *POLITE, THUMB), _phrases(NO, *POLITE)
_NUMBER_WORDS = frozenset(_every(NUMBERED))

# A typographic apostrophe is the plain one; marks and blanks part words.
_READ_AS = str.maketrans({"’": "'", **dict.fromkeys(_MARKS + _SPACES, " ")})
_LETTERS = "".join((*_every(YES), *_every(NO), *POLITE, *_every(NUMBERED), THUMB))
_CHARACTERS = frozenset(_LETTERS + _MARKS + _SPACES + "’#0123456789")
