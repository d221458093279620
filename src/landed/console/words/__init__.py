"""Every word of the console, in English and Spanish side by side: none can be missing in one.

A key is its place; a file for each room of the console holds its part. What the runtime says of a
plan or an operation is not here but in `core.sentences` and `core.plan_sentences`.
"""

from collections.abc import Mapping

from landed.console.words import common, decisions, reading, trying

LANGUAGES = ("en", "es")

_PARTS = (
    common.WORDS,
    decisions.WORDS,
    reading.WORDS,
    trying.WORDS,
)
WORDS: Mapping[str, tuple[str, str]] = {key: both for part in _PARTS for key, both in part.items()}


def say(language: str, key: str, **fields: object) -> str:
    """Return a sentence; raises `KeyError` for a key or a field that there is not."""
    return WORDS[key][LANGUAGES.index(language)].format(**fields)
