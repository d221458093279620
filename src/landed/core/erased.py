"""What stands in a record where its details were erased: that they were, and when.

It stands where the details stood, so that whoever reads the record reads that, and nothing reads as
if there had never been anything. Of arguments their digest is kept, so that the same ask with the
same arguments still finds what it made; a digest can be guessed at by whoever can read the store.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime

from landed.core.canonical import Json, fingerprint

ERASED = "erased"
"""The event of an erasure: its body holds what is left, and every earlier body is gone."""

MARK = "(erased)"

_TEXT = re.compile(r"\(erased on \d{4}-\d\d-\d\d\)", re.ASCII)
_DIGEST = re.compile(r"(sha256:[0-9a-f]{64})?", re.ASCII)
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


def erased(value: Json, *, at: float) -> Json:
    """Return what stands for a value that is erased at `at` (UTC, seconds since the epoch).

    A text is replaced by a text, anything else by a mapping; what is erased already, and what is
    empty, stays as it is.
    """
    if value in (None, "") or erased_on(value):
        return value
    if isinstance(value, str):
        return value if _TEXT.fullmatch(value) else f"(erased on {day_of(at)})"
    return {MARK: {"on": day_of(at)}}


def erased_arguments(arguments: Json, *, at: float) -> Json:
    """Return what stands for the arguments of a call: as `erased`, with their digest."""
    if erased_on(arguments):
        return arguments
    return {MARK: {"on": day_of(at), "digest": fingerprint(arguments, domain=ERASED)}}


def erased_on(value: Json) -> str:
    """Return the day on which a value was erased (UTC, as YYYY-MM-DD), "" where it is there."""
    said = value.get(MARK) if isinstance(value, Mapping) and len(value) == 1 else None
    if not isinstance(said, Mapping) or not set(said) <= {"on", "digest"}:
        return ""
    day = str(said.get("on", ""))
    # Nothing else may stand there, for what looks erased is not erased again.
    is_so = _DAY.fullmatch(day) and _DIGEST.fullmatch(str(said.get("digest", "")))
    return day if is_so else ""


def is_same(held: Mapping[str, Json], given: Mapping[str, Json]) -> bool:
    """Whether arguments are those that are held, also where these were erased."""
    if not erased_on(held):
        return held == given
    digest = fingerprint(given, domain=ERASED)
    return held == {MARK: {"on": erased_on(held), "digest": digest}}


def day_of(at: float) -> str:
    """Return the day of a moment (UTC, seconds since the epoch)."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d")
