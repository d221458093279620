"""What may be shown to a person: everything that was written by others, without its power.

Escape sequences are left out; what else steers a terminal, turns the direction of writing or is not
seen is shown as the number that it has. So a name cannot overwrite the line that it stands in, and
two names that look alike for what is not seen in them look different.
"""

import re
import unicodedata

# A control sequence, whole; of any other escape only what opens it (ECMA-48, 5.3 to 5.6), for what
# a string such as a title holds may as well be read.
_SEQUENCES = re.compile(r"(?:\x1b\[|\x9b)[0-?]{0,64}[ -/]{0,8}[@-~]|\x1b[ -/]{0,8}[0-~]")
# Controls, formats (directions, zero width), what a font may draw as anything, halves of
# characters, ends of lines and paragraphs.
_UNSEEN = frozenset({"Cc", "Cf", "Co", "Cs", "Zl", "Zp"})
_BLANKS = {ord(blank): " " for blank in "\t\n\r\v\f"}
# Blanks that are drawn as nothing at all, though they are letters.
_EMPTY = frozenset("\u115f\u1160\u3164\uffa0\u2800\u034f\u17b4\u17b5\ufe0e\ufe0f")


def line(text: object) -> str:
    """Return a text as one line that can do nothing but be read."""
    return "".join(map(_seen, _SEQUENCES.sub("", str(text)).translate(_BLANKS)))


def lines(text: object) -> list[str]:
    """Return a text as lines that can do nothing but be read."""
    return [line(each) for each in str(text).split("\n")]


def is_hidden(letter: str) -> bool:
    """Whether a letter is not seen, or does something to those around it."""
    return unicodedata.category(letter) in _UNSEEN or letter in _EMPTY


def _seen(letter: str) -> str:
    return f"<U+{ord(letter):04X}>" if is_hidden(letter) else letter
