"""Crash points: where a process can be killed, around each commit and each call to the world.

A point is `before|after:<event or command>[:tool][#n]`, such as `after:sent:reserve_table` (right
after the commit that holds that event is durable) or `before:send#2` (the second send is about to
leave). The faults wrap a store and tools from outside; the runtime knows nothing of them.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from landed.core.approval import ApprovalEvent
from landed.core.canonical import Json
from landed.core.case import CaseEvent
from landed.core.changes import Changes, Kind, Move, Record
from landed.core.errors import LeaseLostError
from landed.core.incarnation import IncarnationEvent
from landed.core.journal import Entry
from landed.core.operation import Happened
from landed.core.outcome import LookOutcome, SendOutcome
from landed.core.plan import PlanEvent
from landed.core.question import QuestionEvent
from landed.core.store import Fact, Page, Selection, Store
from landed.core.tool import Call
from landed.core.undo import ReleaseEvent
from landed.testing.around import Around

COMMANDS = ("send", "lookup", "close", "read-back")
_KINDS = (
    Happened,
    PlanEvent,
    ApprovalEvent,
    QuestionEvent,
    ReleaseEvent,
    CaseEvent,
    IncarnationEvent,
)
_EVENTS = {
    *(str(event) for kind in _KINDS for event in kind),
    # What is born closed: inputs, turns, observations, messages and contracts.
    *("received", "opened", "answered", "unanswered", "dropped", "said", "announced", "seen"),
}
_FORM = re.compile(r"(before|after):([a-z_-]+)(?::([A-Za-z0-9_.-]+))?(?:#([1-9][0-9]*))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One place to be killed at. Without a tool it is any tool's; `nth` counts from 1."""

    side: str
    name: str
    tool: str = ""
    nth: int = 1

    def __str__(self) -> str:
        tool = f":{self.tool}" if self.tool else ""
        nth = f"#{self.nth}" if self.nth > 1 else ""
        return f"{self.side}:{self.name}{tool}{nth}"


def parse_point(text: str) -> Point:
    """Read a point; raises `ValueError` saying what one looks like."""
    match = _FORM.fullmatch(text)
    if match is None or match[2] not in _EVENTS.union(COMMANDS):
        raise ValueError(
            f"{text!r} is no point: write before|after:<event or command>[:tool][#n], such as"
            f" after:sent:reserve_table; commands are {', '.join(COMMANDS)}"
        )
    return Point(side=match[1], name=match[2], tool=match[3] or "", nth=int(match[4] or 1))


@dataclass(slots=True, eq=False)
class Points:
    """Counts the points that are passed, and calls `die` at the one that is asked for."""

    die: Callable[[str], None]
    kill: Point | None = None
    passed: list[Point] = field(default_factory=list[Point])
    _seen: Counter[tuple[str, str, str]] = field(default_factory=Counter[tuple[str, str, str]])

    def at(self, side: str, name: str, tool: str) -> None:
        """Pass one point, or die there."""
        self._seen[side, name, tool] += 1
        nth = self._seen[side, name, tool]
        self.passed.append(Point(side=side, name=name, tool=tool, nth=nth))
        if self.kill is None or (self.kill.side, self.kill.name) != (side, name):
            return
        counted = nth if self.kill.tool else self._any_tool(side, name)
        if self.kill.tool in ("", tool) and self.kill.nth == counted:
            self.die(str(self.kill))

    def _any_tool(self, side: str, name: str) -> int:
        return sum(n for (s, e, _), n in self._seen.items() if (s, e) == (side, name))


@dataclass(slots=True, eq=False)
class FaultyStore:
    """A store that passes points around each commit, and tells a listener what was committed.

    `alive` is called before every verb: a process that is dead may not act any more. `fenced` is
    told of each unit that was refused because another worker has claimed what it moves.
    """

    inner: Store
    points: Points
    committed: Callable[[Changes], None] = lambda changes: None
    alive: Callable[[], None] = lambda: None
    fenced: Callable[[LeaseLostError], None] = lambda lost: None

    async def commit(self, changes: Changes) -> tuple[Record, ...]:
        """Pass the points before and after each event of the unit."""
        self.alive()
        for move in changes.moves:
            self.points.at("before", move.event.name, _tool_of(move))
        try:
            stored = await self.inner.commit(changes)
        except LeaseLostError as lost:
            self.fenced(lost)
            raise
        self.alive()
        self.committed(changes)
        for move in changes.moves:
            self.points.at("after", move.event.name, _tool_of(move))
        return stored

    async def load(self, *ids: str) -> tuple[Record, ...]:
        """As the inner store; here and below."""
        self.alive()
        return await self.inner.load(*ids)

    async def open_records(self, *, tenant: str, session: str, worker: str) -> tuple[Record, ...]:
        """See `load`."""
        self.alive()
        return await self.inner.open_records(tenant=tenant, session=session, worker=worker)

    async def session_records(
        self, *, tenant: str, session: str, after: int = 0, limit: int = 1000
    ) -> tuple[Record, ...]:
        """See `load`."""
        self.alive()
        return await self.inner.session_records(
            tenant=tenant, session=session, after=after, limit=limit
        )

    async def listed(
        self, *, tenant: str, of: Selection, after: int = 0, limit: int = 1000
    ) -> Page:
        """See `load`."""
        self.alive()
        return await self.inner.listed(tenant=tenant, of=of, after=after, limit=limit)

    async def journal(
        self, *, after: int = 0, limit: int = 1000, record: str = ""
    ) -> tuple[Entry, ...]:
        """See `load`."""
        self.alive()
        return await self.inner.journal(after=after, limit=limit, record=record)

    async def holders(self, *names: str) -> Mapping[str, str]:
        """See `load`."""
        self.alive()
        return await self.inner.holders(*names)

    async def claim(self, *, worker: str, now: float, limit: int = 100) -> tuple[Record, ...]:
        """See `load`."""
        self.alive()
        return await self.inner.claim(worker=worker, now=now, limit=limit)

    async def renew(self, *, worker: str, until: float) -> None:
        """See `load`."""
        self.alive()
        await self.inner.renew(worker=worker, until=until)

    async def retire(self, *, worker: str) -> None:
        """See `load`."""
        self.alive()
        await self.inner.retire(worker=worker)

    async def facts(self) -> tuple[Fact, ...]:
        """See `load`."""
        return await self.inner.facts()

    async def close(self) -> None:
        """See `load`."""
        await self.inner.close()


@dataclass(slots=True, eq=False)
class FaultyTool(Around):
    """A tool that passes points around each send and each question."""

    points: Points

    async def send(self, call: Call) -> SendOutcome:
        """Pass the points before the send leaves and after its answer came."""
        self.points.at("before", "send", self.name)
        outcome = await self.inner.send(call)
        self.points.at("after", "send", self.name)
        return outcome

    async def lookup(self, call: Call) -> LookOutcome:
        """Pass the points around the question; here and below."""
        self.points.at("before", "lookup", self.name)
        outcome = await self.inner.lookup(call)
        self.points.at("after", "lookup", self.name)
        return outcome

    async def close(self, call: Call) -> LookOutcome:
        """See `lookup`."""
        self.points.at("before", "close", self.name)
        outcome = await self.inner.close(call)
        self.points.at("after", "close", self.name)
        return outcome

    async def read_back(self, call: Call, result: Json) -> LookOutcome:
        """See `lookup`."""
        self.points.at("before", "read-back", self.name)
        outcome = await self.inner.read_back(call, result)
        self.points.at("after", "read-back", self.name)
        return outcome


def _tool_of(move: Move) -> str:
    if move.after.kind in (Kind.OPERATION, Kind.OBSERVATION):
        return str(move.after.frozen["tool"])
    return ""
