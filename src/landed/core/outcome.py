"""What comes back from a send and from a question to the service: values, never exceptions.

A send comes back *acknowledged*, *refused*, *not sent* or *answer lost*. A question (lookup, close,
read-back) comes back *found*, *absent*, *not yet* or *no answer*. Only a few of these settle an
operation, and only in some states: that is decided in `landed.core.operation`, not here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from landed.core.canonical import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledged:
    """The service answered yes.

    `position` is the service's own version or sequence number of the write, where it gives one: a
    read at or after it that does not show the effect is taken for a no, however soon it is made.
    `complete` is False when the effect was ended early and may have happened in part.
    `accepted` says that the answer is a receipt only (a 202): the effect is still to come.
    """

    result: Json
    position: int | None = None
    complete: bool = True
    accepted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """The service answered no, before any effect; `reason` is its own words, bounded.

    `changed` is what has moved since the plan was previewed, where the service says so: for each
    fact `{field, was, now}`. A plan that is refused with it is not run again as it is.
    """

    reason: str
    changed: tuple[Mapping[str, Json], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NotSent:
    """Nothing left this machine (connection refused, name not resolved), or it was turned away.

    `wait_s` is above 0 where a service did not take it up and asked to come back later (a 429): the
    same call, under the same key, goes again, and not before so many seconds.
    """

    reason: str
    wait_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerLost:
    """No answer that says whether the effect happened: a time-out, a reset, a 5xx, a crash."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """What every send of an operation uses, computed once: signed bytes, a nonce, a remote id.

    It may be a capability, so it is in no repr.
    """

    value: Json = field(repr=False)


SendOutcome = Acknowledged | Refused | NotSent | AnswerLost


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The effect is there; `result` is what a reply would have said."""

    result: Json
    position: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Absent:
    """The effect was not there when the service looked, at `position` where it gives one.

    That is a no only when nothing can still arrive; `landed.core.operation` decides it.
    """

    position: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NotYet:
    """The service cannot know yet (its own request is running, or the reader lags)."""

    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoAnswer:
    """The question itself came back without an answer; nothing was learnt."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedEffect:
    """One effect that a service holds: its `id`, and the `key` it was made under ("" for none)."""

    id: str
    key: str = ""
    result: Json = None
    says: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """What a service holds, as far as it was asked."""

    effects: tuple[ListedEffect, ...]


LookOutcome = Found | Absent | NotYet | NoAnswer
