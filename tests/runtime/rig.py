"""What the tests of the runtime share: a simulated world, a far side that counts, and an agent."""

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from landed.core.changes import Kind
from landed.core.errors import NotSentError, RefusedError
from landed.core.lease import Lease
from landed.core.operation import Operation, State
from landed.core.operation_record import from_record
from landed.core.outcome import Absent, Acknowledged, Found, LookOutcome
from landed.core.pacing import Pacing
from landed.core.store import Store
from landed.core.tool import Call, Tool
from landed.runtime.opened import Settings
from landed.runtime.parts import assemble, register
from landed.runtime.runtime import Runtime
from landed.stores.sqlite import SqliteStore, open_sqlite
from landed.testing.faults import FaultyStore, Point, Points
from landed.testing.inline import Base
from landed.testing.sim import Process, World, current_process
from landed.tools.function import FunctionTool, tool

T = TypeVar("T")
Script = Callable[[Runtime], Awaitable[T]]

DEADLINE_S = 5.0
SELDOM = Lease(lease_s=900.0, beat_s=300.0)  # For long quiet times: a heartbeat is not free.


@dataclass(frozen=True, kw_only=True)
class Wire:
    """What happens to one request: on its way there, at the service, and on its way back.

    `arrives_s` is how long it takes to get there, None for one that never does; `reply` is what
    comes back: `yes`, `taken` (a 202), `none` (silence) or `reset` (the connection breaks).
    """

    arrives_s: float | None = 0.0
    refused: str = ""
    unsent: str = ""
    reply: str = "yes"
    replies_s: float = 0.0


FINE = Wire()
REPLY_LOST = Wire(reply="none")
RESET = Wire(reply="reset")
DROPPED = Wire(arrives_s=None)
UNSENT = Wire(unsent="connection refused")
REFUSED = Wire(refused="the day is full")
TAKEN = Wire(reply="taken")


class FarSide:
    """A service of the world: it outlives processes, keeps keys, and counts effects.

    `wire` is what happens to the next requests, in order; those after them are fine. A request that
    left takes effect whatever becomes of its sender.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self.wire: deque[Wire] = deque()
        self.effects: Counter[str] = Counter()
        self.results: dict[str, dict[str, Any]] = {}
        self.arguments: dict[str, object] = {}
        self.closed: set[str] = set()
        self.sends: list[str] = []
        self.questions: list[str] = []
        self.silent_questions = 0
        self.shown_s = 0.0
        self.at_once = self.most_at_once = 0
        self.witness: Callable[[Call], Awaitable[None]] | None = None
        self.sent_on_a_maybe: list[str] = []
        self._maybe: set[str] = set()
        self._landed_at: dict[str, float] = {}

    @property
    def total(self) -> int:
        """How many effects there are."""
        return self.effects.total()

    async def take(self, call: Call, what: object) -> object:
        """One send, as a tool makes it."""
        self.sends.append(call.operation)
        if self.witness is not None:
            await self.witness(call)
        wire = self.wire.popleft() if self.wire else FINE
        if call.operation in self._maybe:
            self.sent_on_a_maybe.append(call.operation)
        if wire.unsent:
            raise NotSentError(wire.unsent)
        self._maybe.add(call.operation)
        if wire.arrives_s is None:
            await never()
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            return await self._world.spawn(self._serve(call, what, wire))
        finally:
            self.at_once -= 1

    async def _serve(self, call: Call, what: object, wire: Wire) -> object:
        assert wire.arrives_s is not None
        await asyncio.sleep(wire.arrives_s)  # virtual time
        if wire.refused:
            raise RefusedError(wire.refused)
        result = self._land(call, what)
        if wire.reply == "none":
            await asyncio.sleep(10 * DEADLINE_S)  # virtual time
        await asyncio.sleep(wire.replies_s)  # virtual time
        if wire.reply == "reset":
            raise ConnectionResetError("reset by peer")
        return Acknowledged(result=result, accepted=wire.reply == "taken")

    def _land(self, call: Call, what: object) -> dict[str, Any]:
        name = call.key or call.operation
        if name in self.closed:
            raise RefusedError("the key is closed")
        if call.key and name in self.results:
            if self.arguments[name] != what:
                raise RefusedError("the key was used with other arguments")
            return self.results[name]
        self.effects[name] += 1
        self.arguments[name] = what
        self._landed_at[name] = self._world.clock.now()
        return self.results.setdefault(name, {"id": f"R{self.total}"})

    async def lookup(self, call: Call) -> LookOutcome:
        """Did it land?"""
        return self._look(call, "lookup")

    async def close(self, call: Call) -> LookOutcome:
        """The same, and the key is refused from now on."""
        answer = self._look(call, "close")
        self.closed.add(call.key)
        return answer

    async def read_back(self, call: Call, result: object) -> LookOutcome:
        """Is it visible where it matters?"""
        return self._look(call, "read-back")

    def _look(self, call: Call, question: str) -> LookOutcome:
        self.questions.append(question)
        if self.silent_questions:
            self.silent_questions -= 1
            raise ConnectionResetError("reset by peer")
        name = call.key or call.operation
        self._maybe.discard(call.operation)
        shown = self._world.clock.now() >= self._landed_at.get(name, 0.0) + self.shown_s
        return Found(result=self.results[name]) if name in self.results and shown else Absent()


async def never() -> None:
    """Wait for an answer that does not come."""
    await asyncio.get_running_loop().create_future()


async def no_word(call: Call) -> LookOutcome:
    """A question that is never answered."""
    await never()
    return Absent()


def booking(far: FarSide, **promises: Any) -> FunctionTool[Any, Any]:
    """A tool with an effect, whose service has keys, compares arguments, looks up and closes."""
    kept: dict[str, Any] = {
        "effect": "reversible",
        "keyed": "key",
        "compares_payload": True,
        "lookup": far.lookup,
        "close": far.close,
        "deadline_s": DEADLINE_S,
        **promises,
    }

    @tool(**kept)
    async def book(day: str, key: str, call: Call) -> object:
        """Book a table."""
        assert key == call.key
        return await far.take(call, day)

    return book


def unkeyed(far: FarSide, **promises: Any) -> FunctionTool[Any, Any]:
    """A tool with an effect, whose service has no keys and cannot be asked."""
    kept: dict[str, Any] = {"effect": "irreversible", "deadline_s": DEADLINE_S, **promises}

    @tool(**kept)
    async def mail(to: str, call: Call) -> object:
        """Send a mail."""
        return await far.take(call, to)

    return mail


def in_memory(world: World) -> Base:
    """SQLite in memory: what a rig stands on unless its tests are told otherwise."""
    return open_sqlite(":memory:")


new_base: Callable[[World], Base] = in_memory
"""Opens an empty store for the next rig; `tests.runtime.conftest` puts Postgres in its place."""


@dataclass
class Rig:
    """A world, its store, its far side, and how to run agents in it one after the other.

    Every send is witnessed: unless its operation is durably sent by then, `check` fails; also when
    one is sent again before the service was asked about the send before it, and answered. Processes
    are killed at `kill_at`, or only paused there.
    """

    world: World
    settings: Settings | None = None
    lease: Lease | None = None
    wrap: Callable[[Store], Any] = lambda store: store
    kill_at: Point | None = None
    only_pauses: bool = False
    marks: Any = None
    pacing: Pacing | None = None

    def __post_init__(self) -> None:
        self.base = new_base(self.world)
        self.far = FarSide(self.world)
        self.workers = 0
        self.unwitnessed: list[str] = []

    @property
    def sqlite(self) -> SqliteStore:
        """Its store, for a test that reaches below the seam."""
        assert isinstance(self.base, SqliteStore)
        return self.base

    def start(self, script: Script[T], *tools: Tool) -> Process[T]:
        """Start an agent's process; `w1` is the name of the first one's worker, and so on."""
        self.workers += 1
        worker = f"w{self.workers}"
        return self.world.start(lambda: self._agent(script, tools, worker), name=worker)

    def run(self, script: Script[T], *tools: Tool) -> T:
        """Run an agent to its end, and return what its script returned."""
        process = self.start(script, *tools)
        self.world.wait(process)
        self.check()
        return process.result()

    def kill(self, process: Process[Any]) -> None:
        """End a process as SIGKILL does; the store can tell at once."""
        process.kill()
        self.base.worker_died(process.name)

    def check(self) -> None:
        """Nothing was sent before its record said so, nor again after a maybe."""
        assert self.unwitnessed == []
        assert self.far.sent_on_a_maybe == []

    def operations(self, session: str = "main") -> list[Operation]:
        """Return the operations of a session, as the store has them now."""

        async def read() -> list[Operation]:
            records = await self.base.open_again().session_records(
                tenant="default", session=session
            )
            return [from_record(one) for one in records if one.kind is Kind.OPERATION]

        return self._outside(read)

    def operation(self, session: str = "main") -> Operation:
        """Return the only operation of a session."""
        (only,) = self.operations(session)
        return only

    def states(self, session: str = "main") -> list[State]:
        """Return the states of the operations of a session, oldest first."""
        return [one.state for one in self.operations(session)]

    def events(self, record: str = "") -> list[str]:
        """Return the names of the events in the journal, of one record if named."""

        async def read() -> list[str]:
            return [one.event for one in await self.base.open_again().journal(record=record)]

        return self._outside(read)

    def first_at(self, event: str) -> float:
        """Return when the journal first tells of an event, in seconds of the world's clock."""

        async def read() -> float:
            entries = await self.base.open_again().journal()
            return next(one.at for one in entries if one.event == event)

        return self._outside(read)

    def _outside(self, read: Callable[[], Awaitable[T]]) -> T:
        process = self.world.start(read, name="reader")
        self.world.wait(process)
        return process.result()

    async def _agent(self, script: Script[T], tools: tuple[Tool, ...], worker: str) -> T:
        process = current_process()
        witness = self.base.open_again()

        async def see(call: Call) -> None:
            found = await witness.load(call.operation)
            if not found or found[0].state not in (State.SENT, State.RESENT, "answered"):
                self.unwitnessed.append(f"{call.operation} left before its record said so")

        self.far.witness = see
        points = Points(
            die=(lambda _: process.pause()) if self.only_pauses else process.crash,
            kill=self.kill_at,
        )
        store = FaultyStore(self.base.open_again(), points=points, alive=process.require_alive)
        rt = assemble(
            self.wrap(store),
            tools=register(tools),
            settings=self.settings,
            clock=process.clock,
            ids=self.world.ids,
            worker=worker,
            lease=self.lease,
            marks=self.marks,
            pacing=self.pacing,
        )
        async with rt:
            return await script(rt)


def told_nothing_wrong(text: str) -> bool:
    """Whether a sentence for a model neither calls it failed nor invites another try."""
    return not any(word in text.lower() for word in ("failed", "try again", "retry"))


def with_day(day: str) -> Mapping[str, object]:
    """The arguments of `book`."""
    return {"day": day}
