"""Reads the corpus of messages that are no yes: language, kind and text of each."""

import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

CORPUS = Path(__file__).parent / "corpus" / "not_a_yes.txt"
ESCAPED = re.compile(r"\\u([0-9a-f]{4})|\\(r)|\\(n)")
# Two escapes may spell one character beyond the first plane, as in JSON.
PAIR = re.compile(r"[\ud800-\udbff][\udc00-\udfff]")


class Message(NamedTuple):
    """One message of the corpus."""

    language: str
    kind: str
    text: str


@cache
def messages() -> tuple[Message, ...]:
    """Read the corpus: `;` opens a comment, `[language kind]` a part, else a line is a message."""
    found, language, kind = list[Message](), "", ""
    for line in CORPUS.read_text("utf-8").split("\n"):
        if head := re.fullmatch(r"\[(\w\w) (\w+)\]", line):
            language, kind = head.groups()
        elif line and not line.startswith(";"):
            found.append(Message(language, kind, plain(line)))
    return tuple(found)


def plain(line: str) -> str:
    """Return what a line of the corpus spells, its escapes read."""
    text = ESCAPED.sub(_character, line)
    return PAIR.sub(lambda pair: pair[0].encode("utf-16", "surrogatepass").decode("utf-16"), text)


def _character(escape: re.Match[str]) -> str:
    code, carriage, _ = escape.groups()
    return chr(int(code, 16)) if code else "\r" if carriage else "\n"
