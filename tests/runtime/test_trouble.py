"""A store that fails, hangs or conflicts: callers hear of it, nothing hangs, no record is lost."""

import asyncio
from itertools import pairwise
from typing import Any

import pytest

from landed.core.arrival import Told
from landed.core.changes import Changes, Move, Record
from landed.core.errors import LandedError, StaleWriteError, StoreError
from landed.core.event import Event
from landed.core.key import Ask
from landed.core.next import what_next
from landed.core.operation import Evidence, Happened, Source, State, moved
from landed.core.operation_record import from_record, to_record
from landed.core.rules import Rules
from landed.core.scope import Next, Scope
from landed.core.store import Store
from landed.core.value import Confirmed, Unknown, Withdrawn
from landed.runtime.loop import CONFLICTS_MAX
from landed.runtime.opened import Settings
from landed.runtime.runtime import Runtime
from tests.runtime.rig import RESET, UNSENT, Rig, Wire, booking, unkeyed
from tests.runtime.stores import Conflicts, Fails, Hangs, SlowStore, TroubledStore, Wrapped

FRIDAY = {"day": "Fri"}


async def book_friday(rt: Runtime):
    return await rt.perform("book", FRIDAY, patience_s=60.0)


# Commits that fail.


def test_a_call_that_could_not_be_recorded_is_not_sent(rig: Rig) -> None:
    rig.wrap = lambda store: TroubledStore(store, Fails("made", times=1))

    async def script(rt: Runtime):
        with pytest.raises(StoreError, match="the disk is full"):
            await book_friday(rt)
        assert rig.far.sends == []
        return await book_friday(rt)

    assert isinstance(rig.run(script, booking(rig.far)), Confirmed)
    assert rig.states() == [State.CONFIRMED]


def test_the_same_ask_may_come_again_after_it(rig: Rig) -> None:
    rig.wrap = lambda store: TroubledStore(store, Fails("made", times=1))

    async def script(rt: Runtime):
        ask = Ask(call_id="c1")
        with pytest.raises(StoreError):
            await rt.perform("book", FRIDAY, ask=ask)
        return await rt.perform("book", FRIDAY, ask=ask)

    value = rig.run(script, booking(rig.far))
    assert isinstance(value, Confirmed)
    assert not value.replayed


def test_everybody_who_waits_hears_of_it(rig: Rig) -> None:
    rig.wrap = lambda store: TroubledStore(store, Fails("made"))

    async def script(rt: Runtime):
        calls = [rt.perform("book", {"day": f"day {n}"}) for n in range(5)]
        return await asyncio.gather(*calls, return_exceptions=True)

    errors = rig.run(script, booking(rig.far))
    assert [type(error) for error in errors] == [StoreError] * 5
    assert (rig.far.sends, rig.operations()) == ([], [])


@pytest.mark.req("S4-30")
def test_an_outcome_that_could_not_be_recorded_is_kept_and_recorded_later(rig: Rig) -> None:
    rig.wrap = lambda store: TroubledStore(store, Fails("acknowledged", times=3))
    rig.far.wire.append(Wire(replies_s=1.0))

    async def script(rt: Runtime):
        with pytest.raises(StoreError):
            await book_friday(rt)
        before = (await reader.load("op-a1"))[0].state
        await asyncio.sleep(60.0)  # virtual time
        return before, await rt.status("op-a1")

    reader = rig.base.open_again()
    before, value = rig.run(script, booking(rig.far))
    assert before == State.SENT
    assert isinstance(value, Confirmed)
    assert rig.events("op-a1") == ["made", "sent", "acknowledged"]
    assert rig.far.questions == []


def test_a_store_that_never_works_again_is_tried_at_longer_and_longer_intervals(rig: Rig) -> None:
    """Nothing spins, and the end of the block does not wait for it for ever."""
    fails = Fails("acknowledged")
    rig.wrap = lambda store: TroubledStore(store, fails)
    rig.settings = Settings(drain_s=2.0)

    async def script(rt: Runtime):
        with pytest.raises(StoreError):
            await book_friday(rt)
        await asyncio.sleep(3_600.0)  # virtual time

    rig.run(script, booking(rig.far))
    assert 50 < fails.seen < 100
    assert rig.states() == [State.SENT]
    rig.wrap = lambda store: store
    value = rig.run(lambda rt: rt.resolve("op-a1"), booking(rig.far))
    assert isinstance(value, Confirmed)
    assert rig.far.total == 1


class Forgetful(Wrapped):
    """The first commit of a call goes in, and its answer is lost."""

    lost = 0

    async def commit(self, changes: Changes) -> tuple[Record, ...]:
        stored = await self.inner.commit(changes)
        if self.lost == 0 and changes.moves[0].event.name == "made":
            self.lost += 1
            raise StoreError("the connection was lost")
        return stored


def test_a_commit_that_went_in_after_all_is_found_out(rig: Rig) -> None:
    """It is recorded as sent and never left; nobody is left to say so but the record."""
    rig.wrap = Forgetful

    async def script(rt: Runtime):
        with pytest.raises(StoreError):
            await book_friday(rt)
        await asyncio.sleep(60.0)  # virtual time

    rig.run(script, booking(rig.far))
    assert rig.states() == [State.CONFIRMED]
    assert rig.far.effects == {"op-a1": 1}


def test_a_place_that_a_failed_commit_had_taken_is_given_back(rig: Rig) -> None:
    rig.wrap = lambda store: TroubledStore(store, Fails("made", times=3))

    async def script(rt: Runtime):
        for _ in range(3):
            with pytest.raises(StoreError):
                await book_friday(rt)
        return await book_friday(rt)

    assert isinstance(rig.run(script, booking(rig.far, concurrency=1)), Confirmed)


def test_one_sessions_trouble_is_not_anothers(rig: Rig) -> None:
    def trouble(changes: Changes) -> None:
        if changes.moves[0].after.session == "s1":
            raise StoreError("the disk is full")

    rig.wrap = lambda store: TroubledStore(store, trouble)

    async def script(rt: Runtime):
        calls = [rt.perform("book", {"day": s}, ask=Ask(session=s)) for s in ("s1", "s2")]
        return await asyncio.gather(*calls, return_exceptions=True)

    bad, good = rig.run(script, booking(rig.far))
    assert isinstance(bad, StoreError)
    assert isinstance(good, Confirmed)


def test_a_store_that_cannot_be_read_is_a_typed_error_for_who_follows(rig: Rig) -> None:
    class Unreadable(Wrapped):
        async def load(self, *ids: str) -> tuple[Record, ...]:
            if rig.world.timeline.now_s > 2.0 and "op-a1" in ids:
                raise StoreError("the file is gone")
            return await self.inner.load(*ids)

    rig.far.wire.append(Wire(replies_s=30.0))
    mine, ask = booking(rig.far, deadline_s=60.0), Ask(call_id="c1")
    one = rig.start(lambda rt: rt.perform("book", FRIDAY, ask=ask), mine)
    rig.world.pass_time(1.0)
    rig.wrap = Unreadable

    async def follow(rt: Runtime):
        with pytest.raises(StoreError, match="the file is gone"):
            await rt.perform("book", FRIDAY, ask=ask)

    two = rig.start(follow, mine)
    rig.world.wait(one, two)
    assert isinstance(one.result(), Confirmed)


def test_a_bug_in_what_decides_is_told_and_hangs_nobody(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    async def script(rt: Runtime):
        def broken(*_: Any) -> Any:
            raise ZeroDivisionError

        decide, rt.driver.setting.what_next = rt.driver.setting.what_next, broken
        with pytest.raises(LandedError, match="bug"):
            await book_friday(rt)
        rt.driver.setting.what_next = decide
        return await book_friday(rt)

    assert isinstance(rig.run(script, booking(rig.far)), Confirmed)
    assert "lap failed" in caplog.text


def test_a_store_that_hangs_does_not_hang_the_end_of_the_block(rig: Rig) -> None:
    rig.wrap = lambda store: TroubledStore(store, Hangs("acknowledged"))
    rig.settings = Settings(drain_s=2.0, patience_s=1.0)

    async def script(rt: Runtime):
        call = asyncio.ensure_future(rt.perform("book", FRIDAY))
        await asyncio.sleep(1.0)  # virtual time
        call.cancel()
        await asyncio.wait({call})
        return rig.world.timeline.now_s

    left_s = rig.run(script, booking(rig.far))
    assert left_s == pytest.approx(6.0)
    assert rig.world.timeline.now_s < left_s + 15.0
    assert rig.states() == [State.SENT]


# Writers that were quicker.


async def move_by_another(store: Store, id: str, event: Happened, **changed: Any) -> None:
    """Move a record as another handle of the same worker would."""
    (record,) = await store.load(id)
    operation = from_record(record)
    at = operation.made_at
    evidence = Evidence(source=Source.RUNTIME, at=at, says="by another")
    after = moved(operation, event, at=at, evidence=evidence, **changed)
    happened = Event(name=event, record=id, at=at)
    await store.commit(Changes(moves=(Move(after=to_record(after), event=happened),)))


def test_a_record_that_another_handle_moved_is_read_again(rig: Rig) -> None:
    rig.far.wire.append(Wire(replies_s=3.0))

    async def script(rt: Runtime):
        call = asyncio.ensure_future(book_friday(rt))
        await asyncio.sleep(1.0)  # virtual time
        await move_by_another(other, "op-a1", Happened.TOLD, told="sent")
        return await call

    other = rig.base.open_again()
    assert isinstance(rig.run(script, booking(rig.far)), Confirmed)
    assert rig.events("op-a1") == ["made", "sent", "told", "acknowledged"]
    assert rig.far.sends == ["op-a1"]


def test_one_that_another_handle_withdrew_is_not_sent(rig: Rig) -> None:
    """The conflict comes in a lap for which nothing arrived but the time."""
    rig.far.wire.append(UNSENT)

    async def script(rt: Runtime):
        call = asyncio.ensure_future(book_friday(rt))
        await asyncio.sleep(0.2)  # virtual time
        await move_by_another(other, "op-a1", Happened.WITHDRAWN)
        return await call, rig.world.timeline.now_s

    other = rig.base.open_again()
    value, at_s = rig.run(script, booking(rig.far))
    assert isinstance(value, Withdrawn)
    assert at_s == pytest.approx(0.5)
    assert rig.far.sends == ["op-a1"]


def test_the_lap_after_a_conflict_needs_no_bell(rig: Rig) -> None:
    """The call waits for a place; when it gets one, its record was withdrawn meanwhile."""
    rig.far.wire.append(Wire(replies_s=3.0))

    async def script(rt: Runtime):
        first = asyncio.ensure_future(book_friday(rt))
        second = asyncio.ensure_future(
            rt.perform("book", {"day": "Sat"}, ask=Ask(session="s2"), patience_s=60.0)
        )
        await asyncio.sleep(1.0)  # virtual time
        await move_by_another(other, "op-a2", Happened.WITHDRAWN)
        return await first, await second, rig.world.timeline.now_s

    other = rig.base.open_again()
    first, second, at_s = rig.run(script, booking(rig.far, concurrency=1))
    assert isinstance(first, Confirmed)
    assert isinstance(second, Withdrawn)
    assert at_s == pytest.approx(3.0)


def test_conflicts_without_end_are_told_within_the_bound(rig: Rig) -> None:
    conflicts = Conflicts("made")
    rig.wrap = lambda store: TroubledStore(store, conflicts)

    async def script(rt: Runtime):
        with pytest.raises(StaleWriteError):
            await book_friday(rt)
        return rig.world.timeline.now_s

    assert rig.run(script, booking(rig.far)) == 0.0
    assert conflicts.seen == CONFLICTS_MAX + 1
    assert rig.far.sends == []


def test_conflicts_that_end_are_told_to_nobody(rig: Rig) -> None:
    rig.wrap = lambda store: TroubledStore(store, Conflicts("acknowledged", times=CONFLICTS_MAX))
    assert isinstance(rig.run(book_friday, booking(rig.far)), Confirmed)
    assert rig.far.sends == ["op-a1"]


def test_conflicts_far_apart_are_not_counted_together(rig: Rig) -> None:
    few = CONFLICTS_MAX * 2 // 3
    first, second = Conflicts("made", times=few), Conflicts("acknowledged", times=few)
    rig.wrap = lambda store: TroubledStore(TroubledStore(store, first), second)
    assert isinstance(rig.run(book_friday, booking(rig.far)), Confirmed)
    assert (first.seen, second.seen) == (few, few)


def test_what_arrives_while_records_are_being_loaded_is_loaded_for_too(rig: Rig) -> None:
    """Word of two settled operations, the second of which comes during the load of the first."""
    rig.wrap = SlowStore

    async def script(rt: Runtime):
        for day in ("Fri", "Sat"):
            await rt.perform("book", {"day": day})
        loop = rt.driver.loop_of(tenant="default", session="main")
        for id in ("op-a1", "op-a2"):
            loop.tell(Told(operation=id, state="confirmed"))
            await asyncio.sleep(SlowStore.load_s / 2)  # virtual time
        return await rt.perform("book", {"day": "Sun"})

    assert isinstance(rig.run(script, booking(rig.far)), Confirmed)


def test_an_unknown_is_still_answered_for_after_trouble(rig: Rig) -> None:
    rig.far.wire.append(RESET)
    rig.wrap = lambda store: TroubledStore(store, Fails("told", times=1))

    async def script(rt: Runtime):
        with pytest.raises(StoreError):
            await rt.perform("mail", {"to": "ana"})
        return await rt.resolve("op-a1")

    value = rig.run(script, unkeyed(rig.far))
    assert isinstance(value, Unknown)
    assert rig.far.sends == ["op-a1"]


# Bugs.


@pytest.mark.parametrize("times", [1, 4])
def test_after_a_bug_what_is_open_is_read_anew_and_seen_to(rig: Rig, times: int) -> None:
    """It is held by this worker, which lives: nobody else would take it over."""
    rig.far.wire.append(Wire(replies_s=1.0))
    seen: list[float] = []

    async def script(rt: Runtime) -> Any:
        def with_a_bug(scope: Scope, rules: Rules, now: float) -> Next:
            if scope.operations and len(seen) < times:
                seen.append(now)
                raise IndexError("a bug")
            return what_next(scope, rules, now)

        call = asyncio.ensure_future(book_friday(rt))
        await asyncio.sleep(0.5)  # virtual time
        rt.driver.setting.what_next = with_a_bug
        with pytest.raises(LandedError, match="failed by a bug: IndexError"):
            await call
        await asyncio.sleep(60.0)  # virtual time
        return await rt.status("op-a1")

    assert isinstance(rig.run(script, booking(rig.far)), Confirmed)
    assert rig.far.effects == {"op-a1": 1}
    assert len(seen) == times
    assert all(b - a >= 0.1 for a, b in pairwise(seen)), "nothing spins"
