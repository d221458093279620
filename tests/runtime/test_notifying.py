"""The application is told of a case: after it is durable, at least once, and never in the way."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pytest

from landed.core.case import Ruling, Standing
from landed.core.changes import Changes
from landed.core.errors import StoreError
from landed.core.key import Ask
from landed.core.outcome import Found
from landed.core.tool import Tool
from landed.core.value import Receipt, Undecided
from landed.runtime import notifying
from landed.runtime.opened import Settings
from landed.runtime.parts import assemble, register
from landed.runtime.runtime import Runtime
from landed.testing.faults import FaultyStore, Point, Points
from landed.testing.sim import World, current_process
from tests.runtime.rig import DROPPED, Rig, Script, never, unkeyed
from tests.runtime.stores import Fails, TroubledStore

T = TypeVar("T")
ANA = {"to": "ana"}


@dataclass
class Listener:
    """An application that is told; the first `fails` times it cannot be, and it may hang."""

    told: list[Standing] = field(default_factory=list[Standing])
    asked: int = 0
    fails: int = 0
    hangs: int = 0
    at_once: int = 0
    most_at_once: int = 0
    takes_s: float = 0.0
    sees: Callable[[Standing], None] = lambda standing: None

    async def opened(self, standing: Standing) -> None:
        self.asked += 1
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            if self.hangs:
                self.hangs -= 1
                await never()
            await asyncio.sleep(self.takes_s)  # virtual time
        finally:
            self.at_once -= 1
        if self.fails:
            self.fails -= 1
            raise ConnectionResetError("reset by peer")
        self.told.append(standing)

    @property
    def ids(self) -> list[str]:
        return [standing.id for standing in self.told]


@dataclass
class Informed(Rig):
    """A rig whose agents tell `listener` of cases, unless it is None."""

    listener: Listener | None = field(default_factory=Listener)

    async def _agent(self, script: Script[T], tools: tuple[Tool, ...], worker: str) -> T:
        process = current_process()
        points = Points(die=process.crash, kill=self.kill_at)
        store = FaultyStore(self.base.open_again(), points=points, alive=process.require_alive)
        rt = assemble(
            self.wrap(store),
            tools=register(tools),
            settings=self.settings,
            clock=process.clock,
            ids=self.world.ids,
            worker=worker,
            lease=self.lease,
            notify=self.listener,
        )
        async with rt:
            return await script(rt)


@pytest.fixture
def rig() -> Iterator[Informed]:
    with World() as world:
        yield Informed(world)


def mailing(rig: Rig) -> Any:
    return unkeyed(rig.far, when_unknown="escalate")


async def doubt(rt: Runtime, **asked: Any) -> str:
    value = await rt.perform("mail", ANA, **asked)
    assert isinstance(value, Undecided)
    return value.operation


def heard_by(rig: Informed) -> Listener:
    assert rig.listener is not None
    return rig.listener


async def quiet(rt: Runtime) -> None:
    await asyncio.sleep(30.0)  # virtual time


@pytest.mark.req("S4-53")
def test_it_is_told_once_with_all_that_there_is_to_decide_by(rig: Informed) -> None:
    rig.far.wire.append(DROPPED)

    async def script(rt: Runtime) -> None:
        heard = await rt.receive("Tell Ana.", principal="cleo")
        id = await doubt(rt, ask=heard.ask("c1"))
        await quiet(rt)
        # What is noted about it afterwards opens nothing.
        await rt.resolve(id, ruling=Ruling.HOLD, by="bo")
        await rt.resolve(id)
        await quiet(rt)

    rig.run(script, mailing(rig))
    (told,) = heard_by(rig).told
    assert (told.operation, told.words, told.arguments) == ("op-a1", "Tell Ana.", ANA)
    assert told.may
    assert rig.events("notified/op-a1") == ["notified"]


def test_what_was_told_is_no_part_of_the_conversation(rig: Informed) -> None:
    rig.far.wire.append(DROPPED)

    async def script(rt: Runtime):
        before = (await doubt(rt), await rt.history())
        await quiet(rt)
        return before[1], await rt.history()

    before, after = rig.run(script, mailing(rig))
    assert before == after


def test_every_kind_of_case_is_told_of(rig: Informed) -> None:
    rig.far.wire.append(DROPPED)

    async def script(rt: Runtime) -> None:
        id = await doubt(rt)
        await rt.resolve(id, ruling=Ruling.ABSENT, by="bo")
        said = Found(result=None)
        for receipt in (Receipt(operation=id, outcome=said), Receipt(key="pi_7", outcome=said)):
            await rt.receive("{}", principal="hook", origin="webhook", evidence=receipt)
        await quiet(rt)

    rig.run(script, mailing(rig))
    assert heard_by(rig).ids == [
        "op-a1",
        "case/contradicted/mail/op-a1",
        "case/unrecorded/hook/pi_7",
    ]


def test_it_is_told_only_after_the_commit(rig: Informed) -> None:
    rig.far.wire.append(DROPPED)
    fails = Fails("gave_up", times=3)
    rig.wrap = lambda store: TroubledStore(store, fails)
    asked_before: list[int] = []

    def count(changes: Changes) -> None:
        asked_before.append(heard_by(rig).asked)
        return fails(changes)

    rig.wrap = lambda store: TroubledStore(store, count)

    async def script(rt: Runtime) -> None:
        await asyncio.gather(rt.perform("mail", ANA), return_exceptions=True)
        await quiet(rt)

    rig.run(script, mailing(rig))
    assert fails.seen == 3
    assert heard_by(rig).ids == ["op-a1"]
    assert asked_before[-2:] == [0, 1]  # The case, and then its mark.


@pytest.mark.parametrize("fails", [1, 3, notifying.TRIES_MAX - 1])
def test_one_that_cannot_be_told_is_tried_again_and_the_loop_goes_on(
    rig: Informed, fails: int, caplog: pytest.LogCaptureFixture
) -> None:
    rig.far.wire.append(DROPPED)
    heard_by(rig).fails = fails

    async def script(rt: Runtime):
        await doubt(rt)
        other = await rt.perform("mail", {"to": "bo"})
        await asyncio.sleep(600.0)  # virtual time
        return other

    other = rig.run(script, mailing(rig))
    assert type(other).__name__ == "Confirmed"
    assert (heard_by(rig).asked, heard_by(rig).ids) == (fails + 1, ["op-a1"])
    assert "could not be told" in caplog.text


def test_the_tries_have_a_bound_and_the_next_start_tells_it_again(
    rig: Informed, caplog: pytest.LogCaptureFixture
) -> None:
    rig.far.wire.append(DROPPED)
    heard_by(rig).fails = notifying.TRIES_MAX

    async def script(rt: Runtime) -> None:
        await doubt(rt)
        await asyncio.sleep(3_600.0)  # virtual time

    rig.run(script, mailing(rig))
    assert (heard_by(rig).asked, heard_by(rig).told) == (notifying.TRIES_MAX, [])
    assert "it is tried again at the next start" in caplog.text
    rig.run(quiet, mailing(rig))
    assert heard_by(rig).ids == ["op-a1"]
    rig.run(quiet, mailing(rig))
    assert heard_by(rig).ids == ["op-a1"]


def test_one_that_hangs_holds_up_nobody_and_not_the_end(rig: Informed) -> None:
    rig.far.wire.extend([DROPPED] * 3)
    heard_by(rig).hangs = 1

    async def script(rt: Runtime) -> float:
        for n in range(3):
            await doubt(rt, ask=Ask(session=f"s{n}"))
        await quiet(rt)
        return rig.world.clock.now()

    ended_at = rig.run(script, mailing(rig))
    assert len(heard_by(rig).told) == 2
    assert rig.world.clock.now() - ended_at <= notifying.LAST_WORDS_S + 1.0


def test_one_that_hangs_is_given_up_in_time_and_told_again(rig: Informed) -> None:
    rig.far.wire.append(DROPPED)
    heard_by(rig).hangs = 1

    async def script(rt: Runtime) -> None:
        await doubt(rt)
        await asyncio.sleep(notifying.TELLING_MAX_S + 60.0)  # virtual time

    rig.run(script, mailing(rig))
    assert (heard_by(rig).asked, heard_by(rig).ids) == (2, ["op-a1"])


def test_many_at_once_are_told_a_few_at_a_time(rig: Informed) -> None:
    rig.far.wire.extend([DROPPED] * 20)
    heard_by(rig).takes_s = 1.0

    async def script(rt: Runtime) -> None:
        await asyncio.gather(*(doubt(rt, ask=Ask(session=f"s{n}")) for n in range(20)))
        await quiet(rt)

    rig.run(script, mailing(rig))
    assert len(set(heard_by(rig).ids)) == len(heard_by(rig).ids) == 20
    assert heard_by(rig).most_at_once == notifying.AT_ONCE_MAX


def test_one_that_is_being_told_is_not_told_beside_that(rig: Informed) -> None:
    rig.far.wire.append(DROPPED)
    heard_by(rig).takes_s = 5.0

    async def script(rt: Runtime) -> None:
        await doubt(rt)
        assert rt.notifier is not None
        await rt.notifier.recall()
        await quiet(rt)
        await rt.notifier.recall()
        await quiet(rt)

    rig.run(script, mailing(rig))
    assert heard_by(rig).ids == ["op-a1"]


@pytest.mark.fault("X04")
@pytest.mark.parametrize(("side", "times"), [("before", 2), ("after", 1)])
def test_a_crash_between_the_telling_and_its_mark_tells_it_twice_under_one_id(
    rig: Informed, side: str, times: int
) -> None:
    rig.far.wire.append(DROPPED)
    rig.kill_at = Point(side=side, name="notified")

    async def script(rt: Runtime) -> None:
        await doubt(rt)
        await quiet(rt)

    process = rig.start(script, mailing(rig))
    rig.world.pass_time(20.0)
    assert not process.alive
    rig.base.worker_died(process.name)
    rig.kill_at = None
    rig.run(quiet, mailing(rig))
    assert heard_by(rig).ids == ["op-a1"] * times


@pytest.mark.parametrize("point", ["gave_up", "answer_lost"])
def test_a_crash_before_anybody_was_told_is_made_up_for_at_the_start(
    rig: Informed, point: str
) -> None:
    rig.far.wire.append(DROPPED)
    rig.kill_at = Point(side="after", name=point)
    process = rig.start(doubt, mailing(rig))
    rig.world.pass_time(20.0)
    assert not process.alive
    assert heard_by(rig).told == []
    rig.base.worker_died(process.name)
    rig.kill_at = None
    rig.run(quiet, mailing(rig))
    assert heard_by(rig).ids == ["op-a1"]


def test_what_nobody_was_told_of_is_told_when_somebody_begins_to_listen(rig: Informed) -> None:
    rig.far.wire.extend([DROPPED] * 2)
    listener, rig.listener = rig.listener, None
    rig.run(doubt, mailing(rig))

    async def elsewhere(rt: Runtime) -> None:
        await doubt(rt, ask=Ask(tenant="other"))
        stranger = Receipt(key="pi_7", outcome=Found(result=None))
        await rt.receive("{}", principal="hook", tenant="other", evidence=stranger)

    rig.run(elsewhere, mailing(rig))
    rig.listener = listener
    rig.run(quiet, mailing(rig))
    assert heard_by(rig).ids == ["op-a1"]
    rig.settings = Settings(tenants=("default", "other"))
    rig.run(quiet, mailing(rig))
    assert heard_by(rig).ids == ["op-a1", "op-a2", "case/unrecorded/hook/pi_7"]


def test_what_is_over_by_then_is_not_told(rig: Informed) -> None:
    """A person ruled on what was still being found out: the case opened and closed in one unit."""
    rig.far.wire.append(DROPPED)

    async def script(rt: Runtime) -> None:
        value = await rt.perform("mail", ANA)
        await rt.resolve(value.operation, ruling=Ruling.ABSENT, by="bo")
        await quiet(rt)

    rig.run(script, unkeyed(rig.far, when_unknown="block"))
    assert (heard_by(rig).asked, rig.events("op-a1")[-2:]) == (0, ["gave_up", "ruled_absent"])


def test_a_store_in_trouble_at_the_start_is_logged_and_stops_nothing(
    rig: Informed, caplog: pytest.LogCaptureFixture
) -> None:
    class Unreadable(TroubledStore):
        async def listed(self, **asked: Any) -> Any:
            raise StoreError("the disk is gone")

    rig.wrap = lambda store: Unreadable(store, lambda changes: None)
    value = rig.run(lambda rt: rt.perform("mail", ANA), mailing(rig))
    assert type(value).__name__ == "Confirmed"
    assert "could not be told again: the disk is gone" in caplog.text


def test_a_mark_that_cannot_be_written_tells_it_again(rig: Informed) -> None:
    rig.far.wire.append(DROPPED)
    rig.wrap = lambda store: TroubledStore(store, Fails("notified", times=1))

    async def script(rt: Runtime) -> None:
        await doubt(rt)
        await quiet(rt)

    rig.run(script, mailing(rig))
    assert heard_by(rig).ids == ["op-a1"] * 2
    assert rig.events("notified/op-a1") == ["notified"]


def test_two_processes_leave_one_mark(rig: Informed) -> None:
    rig.far.wire.append(DROPPED)
    listener, rig.listener = rig.listener, None
    rig.run(doubt, mailing(rig))
    rig.listener = listener
    both = [rig.start(quiet, mailing(rig)) for _ in range(2)]
    for process in both:
        rig.world.wait(process)
        process.result()
    assert set(heard_by(rig).ids) == {"op-a1"}
    assert rig.events("notified/op-a1") == ["notified"]
