"""What telemetry remembers of what is going on: bounded, for nobody may depend on it."""

from typing import TypeVar

V = TypeVar("V")

REMEMBERED_MAX = 10_000
"""Callers, sends and doubts of each kind that are remembered; the oldest are forgotten."""


def keep(kept: dict[str, V], id: str, value: V) -> None:
    """Remember this as the newest, and forget the oldest where there are too many."""
    kept.pop(id, None)
    kept[id] = value
    if len(kept) > REMEMBERED_MAX:
        del kept[next(iter(kept))]
