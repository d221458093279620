"""What the far side of the explored world keeps, and what it does with a request that reaches it.

It is the most careless service that still keeps the promises of a contract, and no more: whatever
a contract leaves open, it does in every possible way.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from landed.core.contract import Contract
from landed.core.outcome import (
    Absent,
    Acknowledged,
    Found,
    LookOutcome,
    Refused,
    SendOutcome,
)

WRITTEN_AT = 1  # The position of the one write that the far side can make; 0 is before it.


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """What the far side holds under one key (or, without keys, of one operation).

    `effects` counts what really happened in the world. `known` is whether it remembers the key,
    `since` when it first saw it (UTC seconds), `landed_at` when the first effect happened.
    """

    effects: int = 0
    known: bool = False
    closed: bool = False
    since: float = 0.0
    landed_at: float = 0.0


@dataclass(frozen=True, slots=True)
class Done:
    """One way in which the far side may deal with a request."""

    says: str
    line: Line
    outcome: SendOutcome


def could_land(line: Line, contract: Contract, *, sent_at: float, now: float) -> bool:
    """Whether a request that says it left at `sent_at` would make an effect at `now`."""
    if line.closed or _too_old(contract, sent_at=sent_at, now=now):
        return False
    if lost_by_now(contract, from_at=sent_at, now=now):
        return False
    return not (contract.keyed and line.known)


def lost_by_now(contract: Contract, *, from_at: float, now: float) -> bool:
    """Whether a send whose deadline counts from `from_at` never arrives if it has not by now.

    Elsewhere a request may be on its way for ever. But where keys are forgotten, nothing could
    protect from one that arrives after that, so there it is lost at the deadline: the driver hangs
    up, and the network does not keep what it was not asked to keep.
    """
    return contract.retention_s is not None and now > from_at + contract.deadline_s


def is_spent(line: Line, contract: Contract, *, closes: bool, sent_at: float, now: float) -> bool:
    """Whether a send, or a close, can change nothing here any more, whenever it arrives."""
    if contract.retention_s is not None:
        return False
    return line.closed or (not closes and not could_land(line, contract, sent_at=sent_at, now=now))


def perform(line: Line, contract: Contract, *, sent_at: float, now: float) -> Iterator[Done]:
    """Yield every way in which the far side may deal with a send that arrives at `now`.

    The one without trouble comes first. A refusal for reasons of its own (the day is full, the
    limit of the hour) may come before it looks at the key.
    """
    if line.closed:
        yield Done("refuses: the key is closed", line, Refused(reason="the key is closed"))
        return
    if _too_old(contract, sent_at=sent_at, now=now):
        yield Done("refuses: too old", line, Refused(reason="too old"))
        return
    yes = Acknowledged(result=None, position=WRITTEN_AT if contract.read_back else None)
    seen = replace(line, known=True, since=line.since or now)
    if contract.keyed and line.known:
        yield Done("answers as before", line, yes)
    else:
        landed_at = line.landed_at or now
        landed = replace(seen, effects=line.effects + 1, landed_at=landed_at)
        yield Done("performs it", landed, yes)
        if contract.read_back:
            yield Done("says yes and does nothing", seen, yes)
    yield Done("refuses", line, Refused(reason="full"))


def look(line: Line, contract: Contract, *, now: float) -> LookOutcome:
    """Return what a lookup at `now` finds; an effect is shown only once the lag is over."""
    shown = now >= line.landed_at + contract.settlement_lag_s
    remembered = line.known or not contract.keyed
    if line.effects and remembered and shown:
        return Found(result=None)
    return Absent()


def close(line: Line, *, now: float) -> tuple[Line, LookOutcome]:
    """Shut the key and say what is under it, in one step."""
    shut = replace(line, closed=True, since=line.since or now)
    return shut, Found(result=None) if line.known and line.effects else Absent()


def read_back(line: Line, contract: Contract, *, now: float) -> Iterator[LookOutcome]:
    """Yield what a reader may see: the state of now, or a replica from before the write."""
    if line.effects:
        yield Found(result=None, position=WRITTEN_AT)
    elif line.known:
        yield Absent(position=WRITTEN_AT)
    if not line.known or now < line.since + contract.settlement_lag_s:
        yield Absent(position=WRITTEN_AT - 1)


def may_forget(line: Line, contract: Contract, *, now: float) -> bool:
    """Whether the far side has kept the key as long as it promised."""
    if contract.retention_s is None or not (line.known or line.closed):
        return False
    return now >= line.since + contract.retention_s


def forget(line: Line) -> Line:
    """Return the line once the key is forgotten: the effect stays, its name is gone."""
    return replace(line, known=False, closed=False, since=0.0)


def _too_old(contract: Contract, *, sent_at: float, now: float) -> bool:
    return contract.refuses_after_s is not None and now > sent_at + contract.refuses_after_s
