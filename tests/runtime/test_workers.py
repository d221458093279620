"""Drain, adoption and heartbeats: who goes on with what another worker left, and who stops."""

import asyncio
from pathlib import Path

import pytest

import landed
from landed.core.errors import LandedError, LeaseLostError, StoreError
from landed.core.key import Ask
from landed.core.lease import Lease
from landed.core.operation import State
from landed.core.pacing import Pace, Pacing
from landed.core.value import Blocked, Confirmed, Failed, Unknown, Withdrawn
from landed.runtime.opened import LOST_DRAIN_S, Settings
from landed.runtime.runtime import Runtime
from landed.testing.sim import current_process
from tests.runtime.rig import DROPPED, REPLY_LOST, UNSENT, Rig, Wire, booking, unkeyed
from tests.runtime.stores import SlowStore, Wrapped

FRIDAY = {"day": "Fri"}
SLOW = Wire(replies_s=3.0)


async def nothing(rt: Runtime) -> int:
    return rt.recovered


async def wait_for_settling(rt: Runtime) -> landed.Value:
    return await rt.resolve("op-a1", patience_s=300.0)


# Drain.


def test_what_comes_back_within_the_bound_is_recorded(rig: Rig) -> None:
    rig.far.wire.append(SLOW)

    async def script(rt: Runtime):
        call = asyncio.ensure_future(rt.perform("book", FRIDAY))
        await asyncio.sleep(1.0)  # virtual time
        await rt.drain()
        return await call, rig.world.timeline.now_s

    value, at_s = rig.run(script, booking(rig.far))
    assert isinstance(value, Confirmed)
    assert at_s == pytest.approx(3.0)
    assert rig.events("op-a1") == ["made", "sent", "acknowledged"]


def test_what_does_not_is_unknown_and_still_wanted(rig: Rig) -> None:
    rig.far.wire.append(Wire(replies_s=60.0))
    rig.settings = Settings(drain_s=2.0, patience_s=100.0)

    async def script(rt: Runtime):
        call = asyncio.ensure_future(rt.perform("book", FRIDAY))
        await asyncio.sleep(1.0)  # virtual time
        await rt.drain()
        return await call, rig.world.timeline.now_s

    value, at_s = rig.run(script, booking(rig.far, deadline_s=90.0))
    assert isinstance(value, Unknown)
    assert at_s == pytest.approx(3.0)
    assert rig.operation().wanted
    assert rig.states() == [State.UNKNOWN]


@pytest.mark.req("S0-53")
@pytest.mark.field("A14")
def test_the_next_worker_finds_out_what_a_drain_left(rig: Rig) -> None:
    rig.far.wire.append(Wire(replies_s=60.0))
    rig.settings = Settings(drain_s=1.0)
    mine = booking(rig.far, deadline_s=90.0)

    async def script(rt: Runtime):
        return await rt.perform("book", FRIDAY, patience_s=0.5)

    rig.run(script, mine)
    assert isinstance(rig.run(wait_for_settling, mine), Confirmed)
    assert rig.far.sends == ["op-a1"]


def test_a_blocked_call_is_withdrawn(rig: Rig) -> None:
    rig.far.wire.append(REPLY_LOST)
    rig.far.silent_questions = 10**9

    async def script(rt: Runtime):
        await rt.perform("book", FRIDAY)
        return await rt.perform("book", FRIDAY)

    assert isinstance(rig.run(script, booking(rig.far)), Blocked)
    assert rig.states() == [State.UNKNOWN, State.WITHDRAWN]


def test_nothing_new_is_started(rig: Rig) -> None:
    """Neither a try that was due later, nor a question, nor a call."""
    rig.far.wire.append(UNSENT)

    async def script(rt: Runtime):
        call = asyncio.ensure_future(rt.perform("book", FRIDAY))
        await asyncio.sleep(0.1)  # virtual time
        await rt.drain()
        with pytest.raises(LandedError, match="not open"):
            await rt.perform("book", {"day": "Sat"})
        return await call

    value = rig.run(script, booking(rig.far))
    assert isinstance(value, Unknown)
    assert "not sent yet" in value.text
    assert rig.far.sends == ["op-a1"]
    assert rig.states() == [State.RECORDED]


def test_no_question_is_put_while_draining(rig: Rig) -> None:
    rig.far.wire.append(REPLY_LOST)
    rig.settings = Settings(drain_s=20.0)

    async def script(rt: Runtime):
        call = asyncio.ensure_future(rt.perform("book", FRIDAY, patience_s=100.0))
        await asyncio.sleep(1.0)  # virtual time
        await rt.drain()
        return await call

    assert isinstance(rig.run(script, booking(rig.far)), Unknown)
    assert rig.far.questions == []


def test_what_was_not_sent_yet_is_sent_by_the_next_worker(rig: Rig) -> None:
    rig.far.wire.append(UNSENT)
    mine = booking(rig.far)
    rig.run(lambda rt: rt.perform("book", FRIDAY, patience_s=0.1), mine)
    assert rig.states() == [State.RECORDED]
    assert isinstance(rig.run(wait_for_settling, mine), Confirmed)
    assert rig.far.effects == {"op-a1": 1}


def test_its_claims_are_let_go_of_before_its_process_ends(rig: Rig) -> None:
    rig.far.wire.append(Wire(replies_s=60.0))
    rig.settings = Settings(drain_s=1.0)
    mine = booking(rig.far, deadline_s=90.0)

    async def linger(rt: Runtime):
        await rt.perform("book", FRIDAY, patience_s=0.5)
        await rt.drain()
        await asyncio.sleep(20.0)  # virtual time

    one = rig.start(linger, mine)
    rig.world.pass_time(5.0)
    assert rig.run(nothing, mine) == 1
    rig.world.wait(one)


@pytest.mark.req("S1-43")
def test_what_waits_for_its_turn_is_not_begun_and_all_that_is_out_has_the_same_bound(
    rig: Rig,
) -> None:
    """In several sessions at once: some are out, some wait for a place, one for its pace."""
    rig.far.wire.extend([SLOW, SLOW, Wire(replies_s=60.0)])
    rig.settings = Settings(drain_s=10.0, patience_s=500.0)
    rig.pacing = Pacing(usual=Pace(per_s=0.001, burst=5))
    mine = booking(rig.far, concurrency=3, deadline_s=90.0)

    async def script(rt: Runtime):
        days = enumerate(("Mon", "Tue", "Wed", "Thu", "Fri"))
        asks = [({"day": day}, Ask(session=f"s{n}")) for n, day in days]
        calls = [asyncio.ensure_future(rt.perform("book", day, ask=ask)) for day, ask in asks]
        await asyncio.sleep(1.0)  # virtual time
        await rt.drain()
        return [type(value) for value in await asyncio.gather(*calls)], rig.world.timeline.now_s

    values, at_s = rig.run(script, mine)
    assert values == [Confirmed, Confirmed, Unknown, Unknown, Unknown]
    assert at_s == pytest.approx(11.0)
    states = [rig.operation(f"s{n}").state for n in range(5)]
    assert states == [State.CONFIRMED] * 2 + [State.UNKNOWN] + [State.RECORDED] * 2
    assert len(rig.far.sends) == 3


def test_drain_twice_is_drain_once(rig: Rig) -> None:
    async def script(rt: Runtime):
        await rt.perform("book", FRIDAY)
        await rt.drain()
        await rt.drain()

    rig.run(script, booking(rig.far))


def test_who_waits_for_another_process_is_told_how_it_stands(rig: Rig) -> None:
    rig.far.wire.append(Wire(replies_s=60.0))
    mine = booking(rig.far, deadline_s=90.0)
    ask = Ask(call_id="c1")

    async def leave(rt: Runtime):
        call = asyncio.ensure_future(rt.perform("book", FRIDAY, ask=ask))
        await asyncio.sleep(2.0)  # virtual time
        await rt.drain()
        return await call, rig.world.timeline.now_s

    one = rig.start(lambda rt: rt.perform("book", FRIDAY, ask=ask), mine)
    rig.world.pass_time(1.0)
    two = rig.start(leave, mine)
    rig.world.wait(one, two)
    value, at_s = two.result()
    assert isinstance(value, Unknown)
    assert at_s < 4.1
    assert isinstance(one.result(), Confirmed)


# Adoption.


@pytest.mark.req("S0-18", "S0-53")
@pytest.mark.fault("X03")
@pytest.mark.field("B12")
def test_a_killed_worker_leaves_it_sent_and_the_next_one_finds_out(rig: Rig) -> None:
    rig.far.wire.append(SLOW)
    mine = booking(rig.far)
    process = rig.start(lambda rt: rt.perform("book", FRIDAY), mine)
    rig.world.pass_time(1.0)
    rig.kill(process)
    assert rig.states() == [State.SENT]

    async def script(rt: Runtime):
        return rt.recovered, await wait_for_settling(rt)

    recovered, value = rig.run(script, mine)
    assert recovered == 1
    assert isinstance(value, Confirmed)
    assert rig.events("op-a1") == ["made", "sent", "answer_lost", "found"]
    assert rig.far.sends == ["op-a1"]


@pytest.mark.field("A14", "F5")
@pytest.mark.fault("X18")
def test_the_end_of_a_lease_means_resolve_and_never_run_again(rig: Rig) -> None:
    """Nobody can tell that the first worker is dead: it is only not heard of any more."""
    rig.far.wire.append(REPLY_LOST)
    mine = unkeyed(rig.far, lookup=rig.far.lookup)
    process = rig.start(lambda rt: rt.perform("mail", {"to": "ana"}), mine)
    rig.world.pass_time(1.0)
    process.kill()

    async def wait_for_lease(rt: Runtime):
        early = rt.recovered, await rt.status("op-a1")
        await asyncio.sleep(60.0)  # virtual time
        return early, await rt.status("op-a1")

    (recovered, before), after = rig.run(wait_for_lease, mine)
    assert recovered == 0
    assert isinstance(before, Unknown)
    assert isinstance(after, Confirmed)
    assert rig.far.sends == ["op-a1"]
    assert rig.far.questions == ["lookup"]


def test_what_a_dead_worker_had_blocked_is_withdrawn_and_never_fires(rig: Rig) -> None:
    rig.far.wire.append(SLOW)
    mine = booking(rig.far)

    async def script(rt: Runtime):
        calls = [rt.perform("book", FRIDAY) for _ in range(2)]
        return await asyncio.gather(*calls)

    process = rig.start(script, mine)
    rig.world.pass_time(1.0)
    rig.kill(process)

    async def look(rt: Runtime):
        return await wait_for_settling(rt), await rt.status("op-a2")

    first, second = rig.run(look, mine)
    assert isinstance(first, Confirmed)
    assert isinstance(second, Withdrawn)
    assert rig.far.sends == ["op-a1"]


def test_to_adopt_withdraws_nothing_of_ones_own(rig: Rig) -> None:
    """One that is blocked here may be asked for again; its caller is alive."""
    rig.far.wire.extend([Wire(replies_s=60.0), REPLY_LOST])
    rig.far.silent_questions = 10**9
    mine = booking(rig.far, deadline_s=90.0)
    one = rig.start(lambda rt: rt.perform("book", {"day": "Sat"}, patience_s=500.0), mine)
    rig.world.pass_time(1.0)

    async def script(rt: Runtime):
        ask = Ask(call_id="c1")
        first = asyncio.ensure_future(rt.perform("book", FRIDAY, patience_s=200.0))
        await asyncio.sleep(1.0)  # virtual time
        blocked = await rt.perform("book", FRIDAY, ask=ask)
        rig.kill(one)
        await asyncio.sleep(30.0)  # virtual time
        rig.far.silent_questions = 0
        await first
        return blocked, await rt.perform("book", FRIDAY, ask=ask)

    two = rig.start(script, mine)
    rig.world.wait(two)
    blocked, again = two.result()
    assert isinstance(blocked, Blocked)
    assert isinstance(again, Confirmed)
    assert (again.operation, again.replayed) == (blocked.operation, True)


def test_what_is_adopted_during_a_commit_of_its_session_is_not_lost(rig: Rig) -> None:
    class VerySlow(SlowStore):
        commit_s = 4.0

    rig.far.wire.append(Wire(replies_s=60.0))
    mine = booking(rig.far, deadline_s=90.0)
    one = rig.start(lambda rt: rt.perform("book", {"day": "Sat"}, patience_s=500.0), mine)
    rig.world.pass_time(1.0)
    rig.wrap = VerySlow

    async def script(rt: Runtime):
        await asyncio.sleep(3.0)  # virtual time
        rig.kill(one)
        await asyncio.sleep(5.0)  # virtual time
        # The heartbeat, 10 s after the start, adopts while the first commit of this is under way.
        await rt.perform("book", FRIDAY, patience_s=60.0)
        await asyncio.sleep(60.0)  # virtual time

    rig.run(script, mine)
    assert rig.states() == [State.CONFIRMED, State.CONFIRMED]


def test_a_tool_that_is_not_registered_here_is_not_guessed_at(rig: Rig) -> None:
    rig.far.wire.append(SLOW)
    process = rig.start(lambda rt: rt.perform("book", FRIDAY), booking(rig.far))
    rig.world.pass_time(1.0)
    rig.kill(process)

    async def script(rt: Runtime):
        await asyncio.sleep(20.0)  # virtual time
        return await rt.status("op-a1")

    assert isinstance(rig.run(script), Unknown)
    assert isinstance(rig.run(wait_for_settling, booking(rig.far)), Confirmed)


@pytest.mark.req("S4-08")
def test_doubt_is_judged_by_the_contract_it_was_made_under(rig: Rig) -> None:
    """Today's deploy has no lookup any more; the promise of yesterday's call stands."""
    rig.far.wire.append(SLOW)
    process = rig.start(lambda rt: rt.perform("book", FRIDAY), booking(rig.far))
    rig.world.pass_time(1.0)
    rig.kill(process)
    today = booking(rig.far, keyed="key", close=None, escalate_after_s=5.0)
    assert isinstance(rig.run(wait_for_settling, today), Confirmed)
    assert rig.operation().contract != ""


# Two at once.


@pytest.mark.fault("X19")
def test_two_on_one_store_leave_each_other_alone(rig: Rig) -> None:
    rig.far.wire.append(Wire(replies_s=40.0))
    mine = booking(rig.far, deadline_s=60.0)

    async def watch(rt: Runtime):
        await asyncio.sleep(100.0)  # virtual time
        return rt.recovered

    one = rig.start(lambda rt: rt.perform("book", FRIDAY, patience_s=90.0), mine)
    rig.world.pass_time(1.0)
    two = rig.start(watch, mine)
    rig.world.wait(one, two)
    assert isinstance(one.result(), Confirmed)
    assert two.result() == 0
    assert rig.events("op-a1") == ["made", "sent", "acknowledged"]
    assert rig.far.questions == []


def test_two_serve_one_session_and_hold_each_others_names(rig: Rig) -> None:
    rig.far.wire.append(SLOW)
    mine = booking(rig.far)
    one = rig.start(lambda rt: rt.perform("book", FRIDAY), mine)
    rig.world.pass_time(1.0)
    two = rig.start(lambda rt: rt.perform("book", FRIDAY), mine)
    rig.world.wait(one, two)
    value = two.result()
    assert isinstance(value, Blocked)
    assert value.by == "op-a1"
    assert rig.far.total == 1


@pytest.mark.fault("X19", "X20")
def test_two_runtimes_on_one_file(tmp_path: Path, quiet: None) -> None:
    """On a real loop and a real file: names come from host, process and chance."""
    out, goes_on = asyncio.Event(), asyncio.Event()

    @landed.tool(effect="irreversible")
    async def pay(cents: int) -> str:
        """Pay."""
        out.set()
        await goes_on.wait()
        return "paid"

    async def main() -> None:
        url = f"sqlite:///{tmp_path / 'a.db'}"
        async with landed.open(url, tools=[pay]) as one, landed.open(url, tools=[pay]) as two:
            assert one.worker.name != two.worker.name
            call = asyncio.ensure_future(one.perform(pay, {"cents": 1}))
            await out.wait()
            assert await two.worker.adopt() == 0
            goes_on.set()
            value = await call
            assert isinstance(value, Confirmed)
            assert await two.status(value.operation) == value

    asyncio.run(main())


# Heartbeats.


def test_a_worker_that_lives_keeps_its_claims_however_long_it_takes(rig: Rig) -> None:
    rig.lease = Lease(lease_s=3.0, beat_s=1.0)
    rig.far.wire.append(Wire(replies_s=80.0))
    mine = booking(rig.far, deadline_s=100.0)

    async def watch(rt: Runtime):
        await asyncio.sleep(60.0)  # virtual time
        return (await rt.driver.store.load("op-a1"))[0].worker

    one = rig.start(lambda rt: rt.perform("book", FRIDAY), mine)
    rig.world.pass_time(1.0)
    two = rig.start(watch, mine)
    rig.world.wait(one, two)
    assert two.result() == "w1"


@pytest.mark.field("F2")
@pytest.mark.fault("X18")
def test_a_worker_that_was_taken_for_dead_stops(rig: Rig) -> None:
    """The other's clock is an hour ahead, so that it sees a lease that is long over."""
    rig.far.wire.append(Wire(replies_s=80.0))
    mine = booking(rig.far, deadline_s=100.0)

    async def zombie(rt: Runtime):
        call = asyncio.ensure_future(rt.perform("book", FRIDAY, patience_s=200.0))
        await asyncio.sleep(30.0)  # virtual time
        errors = []
        for verb in (rt.perform("book", {"day": "Sat"}), rt.status("op-a1"), rt.receive("hello")):
            with pytest.raises(LeaseLostError) as raised:
                await verb
            errors.append(str(raised.value))
        return await call, errors

    async def take_over(rt: Runtime):
        return rt.recovered, await wait_for_settling(rt)

    one = rig.start(zombie, mine)
    rig.world.pass_time(1.0)
    two = rig.start(take_over, mine)
    two.clock.shift(3_600.0)
    rig.world.wait(one, two)
    recovered, value = two.result()
    theirs, errors = one.result()
    assert recovered == 1
    assert isinstance(value, Confirmed)
    assert isinstance(theirs, Confirmed)
    assert len(errors) == 3
    assert rig.far.effects == {"op-a1": 1}
    assert [one.worker for one in rig.operations()] == ["w2"]


@pytest.mark.field("F2")
def test_a_process_that_only_works_ends_when_it_was_taken_for_dead(rig: Rig) -> None:
    rig.far.wire.append(Wire(replies_s=80.0))
    mine = booking(rig.far, deadline_s=100.0)

    async def zombie(rt: Runtime):
        call = asyncio.ensure_future(rt.perform("book", FRIDAY, patience_s=200.0))
        with pytest.raises(LeaseLostError, match="w1"):
            await rt.serve(asyncio.Event())
        call.cancel()

    one = rig.start(zombie, mine)
    rig.world.pass_time(1.0)
    two = rig.start(lambda rt: wait_for_settling(rt), mine)
    two.clock.shift(3_600.0)
    rig.world.wait(one, two)
    one.result()
    assert isinstance(two.result(), Confirmed)


@pytest.mark.field("F2")
def test_who_was_taken_for_dead_leaves_without_waiting_for_what_it_cannot_write(rig: Rig) -> None:
    """Its send is out for longer than a drain may take; nobody needs its answer from here."""
    rig.far.wire.append(Wire(replies_s=80.0))
    mine = booking(rig.far, deadline_s=100.0)

    async def zombie(rt: Runtime):
        call = asyncio.ensure_future(rt.perform("book", FRIDAY, patience_s=200.0))
        with pytest.raises(LeaseLostError, match="w1"):
            await rt.serve(asyncio.Event())
        began_s = rig.world.timeline.now_s
        await rt.drain()
        await asyncio.gather(call, return_exceptions=True)
        return rig.world.timeline.now_s - began_s

    one = rig.start(zombie, mine)
    rig.world.pass_time(1.0)
    two = rig.start(lambda rt: wait_for_settling(rt), mine)
    two.clock.shift(3_600.0)
    rig.world.wait(one, two)
    assert one.result() <= 3 * LOST_DRAIN_S
    assert isinstance(two.result(), Confirmed)
    assert rig.far.effects == {"op-a1": 1}


def test_a_process_that_only_works_goes_on_until_it_is_told_to_stop(rig: Rig) -> None:
    async def work(rt: Runtime):
        stop = asyncio.Event()
        serving = asyncio.ensure_future(rt.serve(stop))
        value = await rt.perform("book", FRIDAY)
        assert not serving.done()
        stop.set()
        await serving
        return value

    assert isinstance(rig.run(work, booking(rig.far)), Confirmed)


@pytest.mark.field("F2")
def test_what_a_zombie_hears_changes_nothing_that_was_taken_over(rig: Rig) -> None:
    rig.far.wire.append(Wire(arrives_s=6.0))
    mine = booking(rig.far, deadline_s=20.0)

    one = rig.start(lambda rt: rt.perform("book", FRIDAY), mine)
    rig.world.pass_time(1.0)
    two = rig.start(wait_for_settling, mine)
    two.clock.shift(3_600.0)
    rig.world.wait(one, two)
    rig.world.settle()
    assert isinstance(two.result(), Failed)  # Past its time by that clock: closed, not sent.
    assert one.result() == two.result()
    assert (rig.states(), rig.far.total) == ([State.FAILED], 0)
    assert rig.events("op-a1")[-1] == "closed_empty"


def test_a_lease_that_could_not_be_renewed_is_renewed_later(rig: Rig) -> None:
    failures = iter([False, True, True, False])

    async def script(rt: Runtime):
        store = rt.worker.store
        renew = store.renew

        async def troubled(**asked):
            if next(failures, False):
                raise StoreError("the disk is busy")
            await renew(**asked)

        store.renew = troubled  # type: ignore[method-assign]
        await asyncio.sleep(60.0)  # virtual time
        return await rt.perform("book", FRIDAY)

    rig.wrap = Wrapped
    assert isinstance(rig.run(script, booking(rig.far)), Confirmed)


def test_a_request_lost_with_its_worker_is_sent_once_by_the_next(rig: Rig) -> None:
    rig.far.wire.append(DROPPED)
    mine = booking(rig.far)
    process = rig.start(lambda rt: rt.perform("book", FRIDAY), mine)
    rig.world.pass_time(1.0)
    rig.kill(process)
    assert isinstance(rig.run(wait_for_settling, mine), Confirmed)
    assert rig.far.sends == ["op-a1", "op-a1"]
    assert rig.far.effects == {"op-a1": 1}


def test_the_clock_of_a_process_is_its_own(rig: Rig) -> None:
    """The rig itself: what shifts one clock leaves the others as they are."""

    async def script(rt: Runtime):
        current_process().clock.shift(60.0)
        return rt.driver.clock.now() - rig.world.clock.now()

    assert rig.run(script) == pytest.approx(60.0)
