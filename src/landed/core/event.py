"""What happened to one record, in the past tense, with the time it happened."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened to the record `record` at `at` (UTC, seconds since the epoch).

    `name` is in the past tense. What the record became is not repeated here: it is the `after` of
    the move that carries the event, and the journal's body for it.
    """

    name: str
    record: str
    at: float
