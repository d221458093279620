"""What the sessions of one process share: places at tools and services, and how much is in hand.

Where more wait than there are places, tenants take turns, and in each the one that came first. A
place that becomes free is kept for whoever's turn it is, and rings it: nobody comes in between, and
nobody else is woken. What its session does not use, once it decided with it in hand, goes to the
next. Only new work is refused for load, never what stops, answers or takes back.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from landed.core.errors import BusyError
from landed.core.schedule import Place

ADOPT_MAX = 500
ADOPT_AT_ONCE = 20
TENANT_MAX = 10_000

Key = tuple[str, ...]  # The tenant first: a place, or a place and an operation of it.


@dataclass(slots=True, eq=False)
class Line:
    """A line of those who wait, in which tenants take turns."""

    _waiting: dict[str, dict[Key, None]] = field(default_factory=dict[str, dict[Key, None]])

    def join(self, key: Key) -> None:
        """Wait; who does already keeps its turn."""
        self._waiting.setdefault(key[0], {})[key] = None

    def leave(self, key: Key) -> None:
        """Wait no longer."""
        if theirs := self._waiting.get(key[0]):
            theirs.pop(key, None)
            if not theirs:
                del self._waiting[key[0]]

    def next(self) -> Key | None:
        """Return whose turn it is, who waits no longer then; None where nobody does."""
        if not self._waiting:
            return None
        tenant = next(iter(self._waiting))
        theirs = self._waiting.pop(tenant)
        key = next(iter(theirs))
        del theirs[key]
        if theirs:
            self._waiting[tenant] = theirs  # Behind the others.
        return key


@dataclass(slots=True, eq=False)
class Places:
    """The places at one service: at most `most` sends and questions are out at once.

    Each is held by a key, and is True once its session has decided with it in hand.
    """

    most: int
    ring: Callable[[Place], bool]
    held: dict[Key, bool] = field(default_factory=dict[Key, bool])
    line: Line = field(default_factory=Line)

    def take(self, key: Key) -> bool:
        """Take a place, or wait in line for one; return whether there was one."""
        if key in self.held or len(self.held) < self.most:
            self.held[key] = True
            self.line.leave(key)
            return True
        self.line.join(key)
        return False

    def decide(self, place: Place) -> None:
        """A session decides now what to do with the places that were kept for it."""
        self.held.update({key: True for key in self.held if key[:2] == place})

    def settle(self, place: Place, out: Collection[str]) -> None:
        """Pass on what a session held and did not use, or no longer does; `out` are in use."""
        for key in [k for k, seen in self.held.items() if seen and k[:2] == place]:
            if key[2] not in out:
                del self.held[key]
        while len(self.held) < self.most and (waits := self.line.next()) is not None:
            if self.ring((waits[0], waits[1])):
                self.held[waits] = False


@dataclass(slots=True, eq=False)
class InHand:
    """What one session has open, and how much of it was taken over and is in motion."""

    open: int = 0
    moving: int = 0


@dataclass(slots=True, eq=False)
class Sharing:
    """What is shared out between the sessions of one process.

    slots           free places of the tools that bound them (`concurrency`)
    adopt_max       how much of what dead workers left is in motion here at a time
    adopt_at_once   how much of that is out at one service at a time
    tenant_max      how much of one tenant is in hand: calls that wait, and what is open
    """

    slots: dict[str, int]
    ring: Callable[[Place], bool]
    adopt_max: int
    adopt_at_once: int
    tenant_max: int
    room: asyncio.Event = field(default_factory=asyncio.Event)
    calls: Counter[str] = field(default_factory=Counter[str])
    _in_hand: dict[Place, InHand] = field(default_factory=dict[Place, InHand])
    _open: Counter[str] = field(default_factory=Counter[str])
    _moving: int = 0
    _kept: dict[tuple[str, Place], bool] = field(default_factory=dict[tuple[str, Place], bool])
    _starved: dict[str, Line] = field(default_factory=dict[str, Line])
    _places: dict[str, Places] = field(default_factory=dict[str, Places])

    # Places of a tool.

    def slots_of(self, place: Place) -> Mapping[str, int]:
        """Return how many places of each tool a session may take: free ones, and what is kept."""
        if not self._kept:
            return self.slots
        return {tool: n + ((tool, place) in self._kept) for tool, n in self.slots.items()}

    def occupy(self, place: Place, tool: str) -> None:
        """Take a place of a tool, where it bounds them."""
        if tool in self.slots and self._kept.pop((tool, place), None) is None:
            self.slots[tool] -= 1

    def free(self, tool: str) -> None:
        """Give a place of a tool to whoever's turn it is."""
        if tool in self.slots:
            self.slots[tool] += 1
            self._pass_on(tool)

    def starve(self, place: Place, before: Collection[str], now: Collection[str]) -> None:
        """Have a session wait for places of the tools `now`, and for no others of `before`."""
        for tool in {*before, *now}:
            line = self._starved.setdefault(tool, Line())
            waits = tool in now and (tool, place) not in self._kept
            (line.join if waits else line.leave)(place)
            self._pass_on(tool)  # One may have become free meanwhile.

    def _pass_on(self, tool: str) -> None:
        line = self._starved.get(tool)
        while line is not None and self.slots[tool] > 0 and (waits := line.next()) is not None:
            place = (waits[0], waits[1])
            if self.ring(place):
                self.slots[tool] -= 1
                self._kept[tool, place] = False

    # Places for what was taken over from dead workers.

    def places(self, service: str) -> Places:
        """Return the places that there are at a service for what was taken over."""
        found = self._places.get(service)
        if found is None:
            found = self._places[service] = Places(most=self.adopt_at_once, ring=self.ring)
        return found

    def decide(self, place: Place) -> None:
        """A session decides now what to do with the places that are kept for it."""
        self._kept.update({kept: True for kept in self._kept if kept[1] == place})
        for each in self._places.values():
            each.decide(place)

    def settle(self, place: Place, out: Collection[str]) -> None:
        """Pass on the places that a session does not use; `out` are its operations that do."""
        for kept in [kept for kept, seen in self._kept.items() if seen and kept[1] == place]:
            del self._kept[kept]
            self.free(kept[0])
        for each in self._places.values():
            each.settle(place, out)

    @property
    def room_left(self) -> int:
        """How much more may be taken over now."""
        return self.adopt_max - self._moving

    # What is in hand.

    def note(self, place: Place, *, open: int, moving: int) -> None:
        """Note what a session has open, and how much of it was taken over and is in motion."""
        before = self._in_hand.pop(place, None) or InHand()
        self._moving += moving - before.moving
        self._open[place[0]] += open - before.open
        if open or moving:
            self._in_hand[place] = InHand(open=open, moving=moving)
        elif not self._open[place[0]]:
            del self._open[place[0]]
        if moving < before.moving:
            self.room.set()

    @contextmanager
    def call(self, tenant: str) -> Generator[None]:
        """Count a call that waits; raises `BusyError` where too much of its tenant is in hand."""
        if max(self.calls[tenant], self._open[tenant]) >= self.tenant_max:
            raise BusyError(tenant=tenant, most=self.tenant_max)
        self.calls[tenant] += 1
        try:
            yield
        finally:
            self.calls[tenant] -= 1
            if not self.calls[tenant]:
                del self.calls[tenant]
