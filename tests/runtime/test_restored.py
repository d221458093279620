"""A store that was put back to an earlier time knows it, and sends nothing before it found out."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import landed
from landed.core.errors import RestoredError, StoreError
from landed.core.incarnation import INCARNATION, NEVER_RESTORED
from landed.core.key import Ask
from landed.core.next import what_next
from landed.core.operation import State
from landed.core.outcome import ListedEffect
from landed.core.rules import Rules
from landed.core.scope import Next, Scope
from landed.core.value import Blocked, Confirmed, Unknown
from landed.runtime import parts
from landed.runtime.lookout import declare
from landed.runtime.runtime import Runtime
from tests.runtime.restoring import MemoryMarks, backup, incarnation, restore
from tests.runtime.rig import DROPPED, FINE, REPLY_LOST, TAKEN, UNSENT, Rig, Wire, booking, unkeyed

FRIDAY = {"day": "Fri"}
SUNDAY = {"day": "Sun"}
LOST = [DROPPED] * 9


@pytest.fixture
def kept(rig: Rig) -> Rig:
    """A rig whose mark is kept outside the store."""
    rig.marks = MemoryMarks()
    return rig


async def until_reconciled(rt: Runtime) -> None:
    while rt.worker.lookout.incarnation.reconciling:
        await asyncio.sleep(0.5)  # virtual time


async def idle(rt: Runtime) -> None:
    await asyncio.sleep(30.0)  # virtual time


async def perform(rt: Runtime) -> landed.Value:
    return await rt.perform("book", FRIDAY, ask=Ask(call_id="c1"), patience_s=100.0)


def run_then_restore(rig: Rig, script: Any, *tools: Any, backup_at_s: float, kill_at_s: float):
    """Run an agent, copy the store at one time, kill the agent at another, put the copy back."""
    process = rig.start(script, *tools)
    rig.world.pass_time(backup_at_s)
    saved = backup(rig)
    rig.world.pass_time(kill_at_s - backup_at_s)
    rig.kill(process)
    rig.world.settle()
    restore(rig, saved)


# What became of an operation between the backup and the restore, by its state in the backup: the
# requests of its life, when the backup is made, and what it comes to in the end.
LIVES: dict[str, tuple[list[Wire], float, State]] = {
    "recorded, then sent and landed": ([UNSENT, FINE], 0.1, State.CONFIRMED),
    "recorded, then sent and lost": ([UNSENT, *LOST], 0.1, State.FAILED),
    "recorded, then sent, its reply lost": ([UNSENT, REPLY_LOST], 0.1, State.CONFIRMED),
    "sent, then answered": ([Wire(replies_s=3.0)], 1.0, State.CONFIRMED),
    "sent, and it never arrives": (LOST, 1.0, State.FAILED),
    "sent, and sent again": ([DROPPED, FINE], 1.0, State.CONFIRMED),
    "in doubt, then sent again": ([DROPPED, UNSENT, UNSENT, FINE], 5.3, State.CONFIRMED),
    "sent again, then answered": ([DROPPED, Wire(replies_s=3.0)], 6.0, State.CONFIRMED),
}


@pytest.mark.req("S4-30")
@pytest.mark.fault("X38")
@pytest.mark.parametrize("life", LIVES)
def test_nothing_is_sent_again_whatever_became_of_it_after_the_backup(kept: Rig, life: str) -> None:
    wires, at_s, ends = LIVES[life]
    kept.far.wire.extend(wires)
    book = booking(kept.far)
    run_then_restore(kept, perform, book, backup_at_s=at_s, kill_at_s=30.0)
    sent, landed_before = list(kept.far.sends), kept.far.total
    kept.far.wire.clear()

    kept.run(until_reconciled, book)
    assert kept.far.sends == sent
    assert kept.far.total == landed_before
    assert kept.states() == [ends]
    assert "restored" in kept.events("op-a1")
    assert not incarnation(kept).reconciling


@pytest.mark.fault("X38")
def test_a_design_without_the_mark_sends_it_a_second_time(rig: Rig) -> None:
    """What the mark is for: an unkeyed mail that was recorded in the backup, and sent since."""
    mail = unkeyed(rig.far)
    rig.far.wire.extend([UNSENT, FINE])

    async def script(rt: Runtime) -> landed.Value:
        return await rt.perform("mail", {"to": "ana"}, patience_s=100.0)

    run_then_restore(rig, script, mail, backup_at_s=0.1, kill_at_s=30.0)
    rig.start(idle, mail)
    rig.world.pass_time(30.0)
    assert rig.far.total == 2


@pytest.mark.fault("X38")
def test_with_the_mark_that_mail_is_put_before_a_person(kept: Rig) -> None:
    mail = unkeyed(kept.far, escalate_after_s=60.0)
    kept.far.wire.extend([UNSENT, FINE])

    async def script(rt: Runtime) -> landed.Value:
        return await rt.perform("mail", {"to": "ana"}, patience_s=100.0)

    run_then_restore(kept, script, mail, backup_at_s=0.1, kill_at_s=30.0)
    kept.run(until_reconciled, mail)
    assert kept.far.total == 1
    assert kept.states() == [State.UNDECIDED]


def test_one_accepted_in_the_backup_is_read_back_and_not_sent(kept: Rig) -> None:
    book = booking(kept.far, read_back=kept.far.read_back, settlement_lag_s=60.0)
    kept.far.wire.append(TAKEN)
    kept.far.shown_s = 20.0
    run_then_restore(kept, perform, book, backup_at_s=1.0, kill_at_s=15.0)
    kept.run(until_reconciled, book)
    assert kept.states() == [State.CONFIRMED]
    assert len(kept.far.sends) == 1


@pytest.mark.fault("X38")
def test_new_calls_are_blocked_meanwhile_and_go_out_when_asked_again(kept: Rig) -> None:
    book = booking(kept.far)
    kept.far.wire.extend(LOST)
    run_then_restore(kept, perform, book, backup_at_s=1.0, kill_at_s=12.0)
    kept.far.wire.clear()
    ask = Ask(call_id="c2")
    kept.far.silent_questions = 3

    async def script(rt: Runtime) -> tuple[landed.Value, landed.Value]:
        before = await rt.perform("book", SUNDAY, ask=ask)
        await until_reconciled(rt)
        return before, await rt.perform("book", SUNDAY, ask=ask)

    before, after = kept.run(script, book)
    assert isinstance(before, Blocked)
    assert before.by == INCARNATION
    assert "the store was restored" in before.text
    assert isinstance(after, Confirmed)
    assert kept.far.arguments == {after.operation: "Sun"}


def test_a_store_that_was_not_restored_is_left_alone(kept: Rig) -> None:
    book = booking(kept.far)
    kept.run(perform, book)
    kept.run(until_reconciled, book)
    assert incarnation(kept) == NEVER_RESTORED
    assert "restored" not in kept.events()


@pytest.mark.fault("X38")
def test_a_fork_is_told_from_the_store_that_it_began_as(kept: Rig) -> None:
    """Both have an entry at that position; only its link says that it is another."""
    book = booking(kept.far)

    async def twice(rt: Runtime) -> None:
        for call_id in ("c1", "c2"):
            await rt.perform("book", FRIDAY, ask=Ask(call_id=call_id))
            await asyncio.sleep(5.0)  # virtual time

    run_then_restore(kept, twice, book, backup_at_s=1.0, kill_at_s=30.0)
    marks, kept.marks = kept.marks, None
    kept.run(twice, book)  # A host without the mark goes on with the copy.
    kept.run(twice, book)
    kept.marks = marks
    kept.run(until_reconciled, book)
    assert incarnation(kept).number == 1


def test_the_same_restore_is_written_down_once(kept: Rig) -> None:
    book = booking(kept.far)
    kept.far.wire.extend(LOST)
    run_then_restore(kept, perform, book, backup_at_s=1.0, kill_at_s=12.0)
    kept.far.silent_questions = 10**6
    known = kept.marks.mark
    for _ in range(2):  # It crashes before the mark is written anew.
        kept.kill(kept.start(until_reconciled, book))
        process = kept.start(until_reconciled, book)
        kept.world.pass_time(3.0)
        kept.kill(process)
        kept.marks.mark = known
    assert kept.events(INCARNATION) == ["store_restored"]


def test_a_restore_during_a_reconciliation_begins_it_anew(kept: Rig) -> None:
    book = booking(kept.far)
    kept.far.wire.extend(LOST)
    run_then_restore(kept, perform, book, backup_at_s=1.0, kill_at_s=12.0)
    kept.far.silent_questions = 10**6
    kept.far.wire.clear()
    run_then_restore(kept, until_reconciled, book, backup_at_s=3.0, kill_at_s=25.0)
    kept.far.silent_questions = 0
    kept.run(until_reconciled, book)
    assert incarnation(kept).number == 2
    assert kept.states() == [State.FAILED]


# What its services hold.


@pytest.mark.fault("X37", "X38")
def test_an_effect_of_the_lost_time_is_found_by_its_list_and_put_before_a_person(kept: Rig) -> None:
    async def effects(since: float) -> list[ListedEffect]:
        assert since <= kept.world.clock.now() - 86_400.0
        return [ListedEffect(id=key, key=key, result=made) for key, made in results()]

    def results() -> list[tuple[str, Any]]:
        return list(kept.far.results.items())

    book = booking(kept.far, list_effects=effects)

    async def late(rt: Runtime) -> None:
        await asyncio.sleep(5.0)  # virtual time
        await perform(rt)

    run_then_restore(kept, late, book, backup_at_s=1.0, kill_at_s=20.0)
    assert kept.operations() == []

    async def script(rt: Runtime) -> list[str]:
        await until_reconciled(rt)
        return [case.key for case in await rt.inbox()]

    assert kept.run(script, book) == ["op-a1"]
    assert "compared with what their services hold: book" in incarnation(kept).why


def test_it_is_not_reconciled_before_every_list_was_compared(kept: Rig) -> None:
    fails = 3

    async def effects(since: float) -> list[ListedEffect]:
        nonlocal fails
        fails -= 1
        if fails >= 0:
            raise ConnectionResetError("reset by peer")
        return []

    book = booking(kept.far, list_effects=effects)
    kept.far.wire.extend(LOST)
    run_then_restore(kept, perform, book, backup_at_s=1.0, kill_at_s=20.0)
    kept.run(until_reconciled, book)
    assert fails == -1


# The mark.


def test_a_mark_that_cannot_be_read_keeps_everything_from_being_sent(kept: Rig) -> None:
    book = booking(kept.far)
    kept.marks.broken = "read"
    with pytest.raises(StoreError, match="cannot be read"):
        kept.run(perform, book)
    assert kept.far.sends == []


def test_a_mark_that_cannot_be_written_at_the_start_does_too(kept: Rig) -> None:
    book = booking(kept.far)
    kept.marks.broken = "write"
    with pytest.raises(StoreError, match="cannot be written"):
        kept.run(perform, book)
    assert kept.far.sends == []


def test_one_that_cannot_be_written_later_is_said_and_stops_nobody(
    kept: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    book = booking(kept.far)

    async def script(rt: Runtime) -> landed.Value:
        kept.marks.broken = "write"
        value = await perform(rt)
        await asyncio.sleep(15.0)  # virtual time: a heartbeat
        return value

    assert isinstance(kept.run(script, book), Confirmed)
    assert "would be noticed less well" in caplog.text


def test_the_mark_goes_along_with_the_heartbeat_and_with_the_end(kept: Rig) -> None:
    book = booking(kept.far)
    seen: list[int] = []

    async def script(rt: Runtime) -> None:
        seen.append(kept.marks.mark.position)
        await perform(rt)
        await asyncio.sleep(12.0)  # virtual time
        seen.append(kept.marks.mark.position)
        await asyncio.sleep(30.0)  # virtual time: nothing is committed, so nothing is written
        seen.append(kept.marks.written)
        await rt.perform("book", SUNDAY)

    kept.run(script, book)
    assert seen == [1, 4, 2]
    assert kept.marks.mark.position == 7


# Under a process that lives.


def failing_over(standbys: list[Any]) -> Callable[[Any], Any]:
    """Wrap the store of a process so that it can be exchanged under it, as a standby takes over."""

    class Line:
        def __init__(self, inner: Any) -> None:
            self.inner = inner

        def __getattr__(self, name: str) -> Any:
            if standbys:
                self.inner = standbys.pop()

                async def broken(*_: Any, **__: Any) -> Any:
                    raise StoreError("the connection was lost")

                return broken
            return getattr(self.inner, name)

    return Line


@pytest.mark.req("S4-30")
@pytest.mark.fault("X37")
def test_a_worker_whose_store_went_back_under_it_stops_and_its_next_one_finds_out(rig: Rig) -> None:
    """No mark is kept: what the process itself wrote is enough."""
    mail = unkeyed(rig.far, escalate_after_s=60.0)
    rig.far.wire.extend([UNSENT, Wire(replies_s=40.0)])
    standbys: list[Any] = []
    rig.wrap = failing_over(standbys)

    async def script(rt: Runtime) -> None:
        call = asyncio.ensure_future(rt.perform("mail", {"to": "ana"}, patience_s=100.0))
        await asyncio.sleep(0.1)  # virtual time
        saved = backup(rig)
        await asyncio.sleep(1.0)  # virtual time
        assert len(rig.far.sends) == 2
        restore(rig, saved)
        standbys.append(rig.base.open_again())
        with pytest.raises(RestoredError, match="went back to an earlier time"):
            await rt.serve(asyncio.Event())
        with pytest.raises(StoreError):
            await call
        with pytest.raises(RestoredError):
            await rt.status("op-a1")

    rig.run(script, unkeyed(rig.far, escalate_after_s=60.0, deadline_s=60.0))
    assert len(rig.far.sends) == 2
    rig.wrap = lambda store: store
    rig.run(until_reconciled, mail)
    assert len(rig.far.sends) == 2
    assert rig.states() == [State.UNDECIDED]


def test_a_worker_hears_of_a_restore_that_somebody_else_wrote_down(kept: Rig) -> None:
    book = booking(kept.far)
    kept.far.wire.append(Wire(replies_s=3.0))
    kept.far.silent_questions = 2

    async def script(rt: Runtime) -> list[landed.Value]:
        values = [await rt.perform("book", FRIDAY, patience_s=0.1)]
        store = kept.base.open_again()
        await declare(store, missed=None, by="ana", why="so", at=kept.world.clock.now())
        await rt.worker.lookout.beat()
        values.append(await rt.perform("book", SUNDAY))
        await until_reconciled(rt)
        return values

    first, second = kept.run(script, book)
    assert isinstance(first, Unknown)
    assert isinstance(second, Blocked)


# A core that forgets.


def test_a_core_that_ignores_the_restore_is_caught(
    kept: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ignores(scope: Scope, rules: Rules, now: float) -> Next:
        return what_next(replace(scope, incarnation=NEVER_RESTORED), rules, now)

    mail = unkeyed(kept.far, escalate_after_s=60.0)
    kept.far.wire.extend([UNSENT, FINE])

    async def script(rt: Runtime) -> landed.Value:
        return await rt.perform("mail", {"to": "ana"}, patience_s=100.0)

    run_then_restore(kept, script, mail, backup_at_s=0.1, kill_at_s=30.0)
    monkeypatch.setattr(parts, "what_next", ignores)
    kept.start(idle, mail)
    kept.world.pass_time(30.0)
    assert kept.far.total == 2
