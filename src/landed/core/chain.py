"""Checks a stretch of the journal: each entry carries its own link and body, and links to another.

One store that writes makes one chain; on a server each store that was opened makes one, whose first
link is to what was the newest entry then. So each link is to an entry further back, and one that
was taken out or put in is noticed by the links around it. What is missing at the very end leaves
no trace here; the mark outside a store tells of that.
"""

from collections import OrderedDict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from landed.core.errors import StoreError
from landed.core.journal import GENESIS, Entry, verify

REMEMBERED = 20_000  # links that the next entries are looked for among
BREAKS_MAX = 20  # that are told one by one


@dataclass(frozen=True, slots=True, kw_only=True)
class Break:
    """An entry at which the journal does not hold together: `edited`, or `unlinked`."""

    seq: int
    id: str
    why: str


@dataclass(slots=True, eq=False)
class Chain:
    """What was found out so far, from one position on; hand it the entries in order.

    `is_from_beginning` says that nothing stands before the first entry, `is_one` that there is one
    chain, in which each entry links to the one before it. `outside` counts links to what was not
    read: of one chain only the first entry's may be, of several others' as well. `checked` counts
    the entries, `erased` those of them whose body is gone; `broken` counts the breaks, of which
    `breaks` holds the first.
    """

    secrets: tuple[bytes, ...] = field(default=(b"",), repr=False)
    is_from_beginning: bool = False
    is_one: bool = False
    first: int = 0
    last: int = 0
    checked: int = 0
    erased: int = 0
    outside: int = 0
    broken: int = 0
    breaks: list[Break] = field(default_factory=list[Break])
    _known: "OrderedDict[str, None]" = field(default_factory=OrderedDict[str, None], repr=False)

    def read(self, entries: Iterable[Entry]) -> None:
        """Check these entries, which follow those before."""
        for entry in entries:
            self._read(entry)

    @property
    def holds(self) -> bool:
        """Whether all that was checked holds together."""
        return not self.broken

    def _read(self, entry: Entry) -> None:
        try:
            verify(entry, secret=self.secrets[0], older=self.secrets[1:])
        except StoreError:
            self._break(entry, "edited")
        if not self._is_linked(entry):
            self._break(entry, "unlinked")
        self.first = self.first or entry.seq
        self.last = entry.seq
        self.checked += 1
        self.erased += entry.body is None
        self._known[entry.hash] = None
        if len(self._known) > REMEMBERED:
            self._known.popitem(last=False)

    def _is_linked(self, entry: Entry) -> bool:
        if self.checked and entry.prev in self._before():
            return True
        if entry.prev == GENESIS and not self.is_one:
            return True  # Of a store that was opened when nothing was written yet.
        if not self.checked and (entry.prev == GENESIS) == self.is_from_beginning:
            self.outside += not self.is_from_beginning
            return True
        if self.is_one or (self.is_from_beginning and self.checked <= REMEMBERED):
            return False
        self.outside += 1
        return True

    def _before(self) -> Collection[str]:
        """Return the links that an entry may link to."""
        return (next(reversed(self._known)),) if self.is_one else self._known

    def _break(self, entry: Entry, why: str) -> None:
        self.broken += 1
        if len(self.breaks) < BREAKS_MAX:
            self.breaks.append(Break(seq=entry.seq, id=entry.id, why=why))
