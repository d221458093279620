"""What dead workers left is taken over in bites: no stampede, shared, and fair between tenants."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pytest

from landed.core.changes import Changes, Record
from landed.core.errors import StoreError
from landed.core.key import Ask
from landed.core.lease import Lease
from landed.core.operation import State
from landed.core.outcome import Absent, LookOutcome
from landed.core.plan import PlanState, Wanted
from landed.core.tool import Call
from landed.core.value import Unknown
from landed.runtime.opened import Settings
from landed.runtime.runtime import Runtime
from landed.tools.function import FunctionTool
from tests.runtime.plan_rig import ANA, calls, only_plan, propose, shelf
from tests.runtime.rig import SELDOM, UNSENT, Rig, Wire, booking, never, unkeyed
from tests.runtime.stores import Fails, TroubledStore, Wrapped, events_of

W = TypeVar("W", bound=Wrapped)

NO_ANSWER = Wire(replies_s=10_000.0)
LOOKUP_S = 0.2
AT_ONCE = 400


@dataclass
class Watched:
    """The service's own view: how much is at it at once, and who asked about what, and when."""

    rig: Rig
    at_once: int = 0
    most_at_once: int = 0
    asked: list[tuple[float, Call]] = field(default_factory=list)

    async def lookup(self, call: Call) -> LookOutcome:
        self.asked.append((self.rig.world.timeline.now_s, call))
        return await self._during(lambda: self.rig.far.lookup(call))

    async def _during(self, answer: Callable[[], Awaitable[LookOutcome]]) -> LookOutcome:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await asyncio.sleep(LOOKUP_S)  # virtual time
            return await answer()
        finally:
            self.at_once -= 1


def leave(rig: Rig, counts: dict[str, int], mine: FunctionTool[Any, Any], *, lanes: int) -> None:
    """Have a worker send so much of each tenant, and be killed before any answer comes."""
    rig.far.wire.extend([NO_ANSWER] * sum(counts.values()))
    rig.settings = Settings(patience_s=1.0, tenant_max=100_000)

    async def one(rt: Runtime, tenant: str, n: int) -> object:
        ask = Ask(tenant=tenant, session=f"s{n % lanes}")
        return await rt.perform("book", {"day": f"day {n}"}, ask=ask)

    async def script(rt: Runtime) -> None:
        calls = [(tenant, n) for tenant, count in counts.items() for n in range(count)]
        for start in range(0, len(calls), AT_ONCE):  # The writer's thread is on no virtual clock.
            some = await asyncio.gather(*(one(rt, *each) for each in calls[start:][:AT_ONCE]))
            assert {type(value) for value in some} == {Unknown}
        left.append(len(calls))
        await asyncio.sleep(10_000.0)  # virtual time

    left: list[int] = []
    process = rig.start(script, mine)
    rig.world.pass_time(2.0 + sum(counts.values()) / AT_ONCE)
    rig.kill(process)
    assert left == [sum(counts.values())]


def open_here(rt: Runtime) -> int:
    return sum(sum(1 for _ in loop.memory.mine()) for loop in rt.driver.loops.values())


async def until_nothing_is_open(rt: Runtime, sizes: list[int]) -> None:
    while not sizes or sizes[-1] or rt.worker.more:
        sizes.append(open_here(rt))
        await asyncio.sleep(0.05)  # virtual time


@pytest.mark.fault("X75")
@pytest.mark.parametrize(
    ("many", "lanes"),
    [(300, 7), (300, 300), pytest.param(10_000, 200, marks=pytest.mark.services)],
)
@pytest.mark.timeout(300)
def test_a_start_over_much_that_is_due_is_no_stampede(rig: Rig, many: int, lanes: int) -> None:
    """No pacing and no `concurrency` was given: what is bounded is what was taken over."""
    service = Watched(rig)
    mine = booking(rig.far, deadline_s=20_000.0, lookup=service.lookup)
    leave(rig, {"default": many}, mine, lanes=lanes)
    rig.settings = Settings(adopt_max=60, adopt_at_once=8)
    sizes: list[int] = []

    rig.run(lambda rt: until_nothing_is_open(rt, sizes), mine)
    assert len({call.operation for _, call in service.asked}) == many
    assert service.most_at_once == 8
    assert 30 <= max(sizes) <= 60
    assert rig.far.sends == list(dict.fromkeys(rig.far.sends))  # Found, and never sent again.


@pytest.mark.fault("X75")
def test_several_workers_share_what_a_dead_one_left(rig: Rig) -> None:
    service = Watched(rig)
    mine = booking(rig.far, deadline_s=20_000.0, lookup=service.lookup)
    leave(rig, {"default": 240}, mine, lanes=240)
    rig.settings = Settings(adopt_max=40)
    workers = [rig.start(lambda rt: until_nothing_is_open(rt, []), mine) for _ in range(3)]
    rig.world.wait(*workers)

    shares = Counter(one.worker for n in range(240) for one in rig.operations(f"s{n}"))
    assert set(shares) == {"w2", "w3", "w4"}
    assert min(shares.values()) >= 40


@pytest.mark.fault("X77")
def test_one_tenants_many_do_not_keep_anothers_few_from_being_found_out(rig: Rig) -> None:
    service = Watched(rig)
    mine = booking(rig.far, deadline_s=20_000.0, lookup=service.lookup)
    leave(rig, {"big": 300, "small": 2}, mine, lanes=50)
    rig.settings = Settings(adopt_max=40, adopt_at_once=4)
    rig.run(lambda rt: until_nothing_is_open(rt, []), mine)

    began = service.asked[0][0]
    waited = [at - began for at, call in service.asked if call.ask.tenant == "small"]
    assert len(waited) == 2
    assert max(waited) <= 2 * LOOKUP_S
    assert service.asked[-1][0] - began >= 10.0


def test_what_can_only_wait_keeps_nothing_else_from_being_taken_over(rig: Rig) -> None:
    async def absent(call: Call) -> LookOutcome:
        return Absent()

    waits = unkeyed(rig.far, lookup=absent, refuses_after_s=50_000.0, escalate_after_s=90_000.0)
    rig.far.wire.extend([Wire(arrives_s=None)] * 12)

    async def send(rt: Runtime) -> None:
        calls = [rt.perform("mail", {"to": f"{n}"}, patience_s=900.0) for n in range(12)]
        await asyncio.gather(*calls)

    process = rig.start(send, waits)
    rig.world.pass_time(1.0)
    rig.kill(process)
    rig.settings = Settings(adopt_max=3)

    async def script(rt: Runtime) -> tuple[int, int]:
        await asyncio.sleep(1.0)  # virtual time
        before = open_here(rt)
        await asyncio.sleep(600.0)  # virtual time
        return before, open_here(rt)

    assert rig.run(script, waits) == (3, 12)


def test_plans_that_wait_for_a_person_keep_nothing_else_from_being_taken_over(rig: Rig) -> None:
    mine = unkeyed(rig.far, escalate_after_s=5.0)
    rig.far.wire.extend([Wire(arrives_s=None)] * 8)

    async def send(rt: Runtime) -> None:
        calls = [Wanted(tool="mail", arguments={"to": "ana"})]
        asks = [Ask(session=f"s{n}", call_id="c") for n in range(8)]
        await asyncio.gather(*(rt.propose(calls, ask=ask, patience_s=900.0) for ask in asks))

    process = rig.start(send, mine)
    rig.world.pass_time(1.0)
    rig.kill(process)
    rig.settings = Settings(adopt_max=2)

    async def script(rt: Runtime) -> int:
        await asyncio.sleep(300.0)  # virtual time
        return len(await rt.inbox())

    assert rig.run(script, mine) == 8


@pytest.mark.fault("X18")
def test_what_a_dead_worker_left_is_taken_over_within_a_lease_and_a_heartbeat(rig: Rig) -> None:
    """Nobody can tell that it is dead, but for its lease."""
    rig.lease = Lease(lease_s=9.0, beat_s=3.0)
    rig.far.wire.append(NO_ANSWER)
    mine = booking(rig.far, deadline_s=20_000.0)
    one = rig.start(lambda rt: rt.perform("book", {"day": "Fri"}, patience_s=900.0), mine)
    two = rig.start(lambda rt: asyncio.sleep(60.0), mine)  # virtual time
    rig.world.pass_time(7.0)
    one.kill()
    killed_at = rig.world.clock.now()
    rig.world.wait(two)
    assert rig.first_at("answer_lost") <= killed_at + rig.lease.lease_s + rig.lease.beat_s


def test_a_plan_that_was_taken_over_goes_on_and_gives_its_place_back(rig: Rig) -> None:
    rig.far.wire.append(NO_ANSWER)
    mine = booking(rig.far, deadline_s=20_000.0)
    calls = [Wanted(tool="book", arguments={"day": f"day {n}"}) for n in range(3)]
    first = rig.start(lambda rt: rt.propose(calls, ask=Ask(session="s", call_id="c")), mine)
    rig.world.pass_time(1.0)
    rig.kill(first)
    rig.settings = Settings(adopt_max=2, adopt_at_once=1)

    async def script(rt: Runtime):
        value = await rt.propose(calls, ask=Ask(session="s", call_id="c"))
        await asyncio.sleep(2.0)  # virtual time
        return value.state, rt.driver.setting.sharing.room_left, open_here(rt)

    assert rig.run(script, mine) == (PlanState.DONE, 2, 0)
    assert len(rig.operations("s")) == 3


def test_a_step_is_not_sent_by_one_worker_once_its_plan_was_stopped_at_another(rig: Rig) -> None:
    """What belongs together may be taken over by two, a bite each: the first send asks the plan."""
    rig.far.wire.append(UNSENT)
    mine = booking(rig.far)
    ask = Ask(session="s", call_id="c")
    calls = [Wanted(tool="book", arguments={"day": "Fri"})]
    one = rig.start(lambda rt: rt.propose(calls, ask=ask), mine)
    rig.world.pass_time(0.1)
    rig.kill(one)
    assert rig.states("s") == [State.RECORDED]
    rig.settings = Settings(adopt_max=1)

    async def stop(rt: Runtime) -> None:
        (plan,) = (p for loop in rt.driver.loops.values() for p in loop.memory.plans)
        await rt.stop(plan, principal="", patience_s=0.1)
        await asyncio.sleep(60.0)  # virtual time

    async def held(rt: Runtime) -> list[str]:
        mine = [id for loop in rt.driver.loops.values() for id in loop.memory.operations]
        await asyncio.sleep(30.0)  # virtual time
        return mine

    two = rig.start(stop, mine)
    three = rig.start(held, mine)
    rig.world.wait(two, three)
    two.result()
    assert three.result() == ["op-a1"]
    assert rig.far.sends == ["op-a1"]
    assert rig.far.total == 0
    assert rig.states("s") == [State.WITHDRAWN]


def inner(rt: Runtime, kind: type[W]) -> W:
    """Return the store of that kind that lies under the runtime's own."""
    store: Any = rt.driver.store
    while not isinstance(store, kind):
        store = store.inner
    return store


class OneBite(Wrapped):
    """Only the oldest record is ever taken over."""

    bites = 0

    async def claim(self, **asked: Any) -> tuple[Record, ...]:
        self.bites += 1
        return await self.inner.claim(**{**asked, "limit": 1}) if self.bites == 1 else ()


class Meanwhile(Wrapped):
    """While the first unit with `event` in it is being written, something else happens."""

    def __init__(self, inner: Any, event: str) -> None:
        super().__init__(inner)
        self.event = event
        self.happens: Callable[[], Awaitable[object]] = never

    async def commit(self, changes: Changes) -> tuple[Record, ...]:
        stored = await self.inner.commit(changes)
        if self.event in events_of(changes):
            self.event = ""
            await self.happens()
        return stored


@pytest.mark.parametrize("event", ["answer_lost", "release_done"])
def test_a_plan_that_is_taken_over_while_a_unit_is_written_is_seen_to(rig: Rig, event: str) -> None:
    """Its release was here already, with what was known then of a plan that another held."""
    tools = shelf(rig.far, lookup=rig.far.lookup)
    rig.lease = SELDOM

    async def taken_back(rt: Runtime) -> None:
        done = await propose(rt, calls("put", "a"))
        rig.far.wire.append(NO_ANSWER)
        await rt.undo(done.plan, principal=ANA)

    first = rig.start(taken_back, *tools)
    rig.world.pass_time(1.0)
    rig.kill(first)
    rig.wrap = OneBite
    with_the_plan = rig.start(lambda rt: never(), *tools)
    rig.world.pass_time(0.5)
    rig.wrap = lambda store: Meanwhile(store, event)

    async def with_the_release(rt: Runtime) -> PlanState:
        async def happens() -> None:
            rig.kill(with_the_plan)
            assert await rt.worker.adopt() == 0
            adopted.append(open_here(rt))

        inner(rt, Meanwhile).happens = happens
        await asyncio.sleep(60.0)  # virtual time
        return (await rt.plan(await only_plan(rt))).state

    adopted: list[int] = []
    assert rig.run(with_the_release, *tools) is PlanState.UNDONE
    assert adopted == [3]


class ReadMeanwhile(TroubledStore):
    """One commit fails; while what is open is read after that, something else happens."""

    happens: Callable[[], Awaitable[object]] | None = None

    async def open_records(self, **asked: Any) -> tuple[Record, ...]:
        found: tuple[Record, ...] = await self.inner.open_records(**asked)
        if self.happens is not None:
            happens, self.happens = self.happens, None
            await happens()
        return found


def test_what_is_taken_over_while_a_loop_reads_its_records_anew_is_seen_to(rig: Rig) -> None:
    rig.lease = SELDOM
    rig.far.wire.append(NO_ANSWER)
    mine = booking(rig.far)
    first = rig.start(lambda rt: rt.perform("book", {"day": "Fri"}, patience_s=900.0), mine)
    rig.world.pass_time(1.0)
    rig.wrap = lambda store: ReadMeanwhile(store, Fails("made", times=1))

    async def script(rt: Runtime) -> None:
        async def happens() -> None:
            rig.kill(first)
            assert await rt.worker.adopt() == 1
            adopted.append(open_here(rt))

        inner(rt, ReadMeanwhile).happens = happens
        with pytest.raises(StoreError):
            await rt.perform("book", {"day": "Sat"})
        await asyncio.sleep(60.0)  # virtual time

    adopted: list[int] = []
    rig.run(script, mine)
    assert adopted == [1]
    assert rig.states() == [State.CONFIRMED]


class Unreadable(Wrapped):
    """The contracts of what is taken over cannot be read at first."""

    times = 1

    async def load(self, *ids: str) -> tuple[Record, ...]:
        if self.times and ids[0].startswith("contract/") and not self.is_beginning:
            self.times -= 1
            raise StoreError("the connection was lost")
        return await self.inner.load(*ids)

    is_beginning = True

    async def claim(self, **asked: Any) -> tuple[Record, ...]:
        self.is_beginning = False
        return await self.inner.claim(**asked)


def test_what_could_not_be_read_when_it_was_taken_over_is_tried_at_the_next_heartbeat(
    rig: Rig,
) -> None:
    rig.lease = Lease(lease_s=9.0, beat_s=3.0)
    rig.far.wire.append(NO_ANSWER)
    of_before = booking(rig.far, deadline_s=4.0)
    first = rig.start(lambda rt: rt.perform("book", {"day": "Fri"}, patience_s=900.0), of_before)
    rig.world.pass_time(1.0)
    rig.kill(first)
    rig.wrap = Unreadable
    rig.run(lambda rt: asyncio.sleep(60.0), booking(rig.far))  # virtual time
    assert rig.states() == [State.CONFIRMED]
