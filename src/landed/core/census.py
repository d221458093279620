"""A census of a store: what is open, what waits for a person, and the oldest doubt with its owner.

Stores count and find; what they found becomes facts here, so that all stores say the same.
"""

from collections.abc import Iterable, Sequence

from landed.core.changes import Record
from landed.core.operation import State
from landed.core.store import Fact

OPEN, WAITING, OLDEST_UNKNOWN = "open", "waiting", "oldest_unknown"
IN_DOUBT = (State.UNKNOWN, State.RESENT)
FIRST_SENT_AT = "first_sent_at"

COUNTED_MAX = 10_000
"""Records that are counted of what is open, and of what waits: a count must not become a scan."""

Counted = tuple[str, str, int]  # A kind of records, a state of theirs, and how many there are.


def census(
    *, open: Iterable[Counted], waiting: Iterable[Counted], oldest: Sequence[Record]
) -> tuple[Fact, ...]:
    """Return the facts of what was counted, and of the record that is in doubt longest, if any.

    The numbers of `open` and `waiting` are named `<kind>/<state>`; that of the oldest is when it
    was first sent (UTC, seconds since the epoch), which only a reader with a clock can make an age.
    """
    return (_counts(OPEN, open), _counts(WAITING, waiting), _oldest(oldest))


def _counts(name: str, counted: Iterable[Counted]) -> Fact:
    numbers = {f"{kind}/{state}": float(count) for kind, state, count in counted}
    every = sum(numbers.values())
    said = [f"{int(count)} {named}" for named, count in sorted(numbers.items())]
    more = "at least " if every >= COUNTED_MAX else ""
    return Fact(name=name, value=more + (", ".join(said) or "nothing"), ok=True, numbers=numbers)


def _oldest(oldest: Sequence[Record]) -> Fact:
    if not oldest:
        return Fact(name=OLDEST_UNKNOWN, value="nothing is in doubt", ok=True)
    (record,) = oldest
    owner = f"worker {record.worker}" if record.worker else "no worker: it is taken over next"
    value = f"{record.id} ({record.frozen['tool']}), in the hands of {owner}"
    at = record.changing.get(FIRST_SENT_AT, 0.0)
    return Fact(name=OLDEST_UNKNOWN, value=value, ok=True, numbers={FIRST_SENT_AT: float(str(at))})
