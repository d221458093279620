"""Plans run at the runtime: each step once, retried from where it broke off, never an error."""

import asyncio
from contextlib import suppress

import pytest

from landed.core.approval import ApprovalEvent, Purpose
from landed.core.changes import Changes, Record
from landed.core.errors import ProposalError, StoreError
from landed.core.key import Ask
from landed.core.lease import Lease
from landed.core.operation import State
from landed.core.plan import PlanState, Wanted
from landed.core.value import PlanValue
from landed.runtime.opened import Settings
from landed.runtime.runtime import Runtime
from tests.runtime.plan_rig import (
    ANA,
    INVOICE,
    UnitsCounted,
    act,
    at_of,
    calls,
    landed_in_order,
    office,
    propose,
)
from tests.runtime.rig import FINE, REFUSED, REPLY_LOST, Rig, Wire, no_word
from tests.runtime.stores import Fails, TroubledStore, Wrapped, events_of

CONFIRM = {"risk": "confirm"}


@pytest.mark.req("S1-02", "S1-64")
def test_later_steps_are_sent_with_the_id_of_what_an_earlier_one_made(rig: Rig) -> None:
    value = rig.run(propose, *office(rig.far))

    assert value.state is PlanState.DONE
    assert landed_in_order(rig) == ["draft logo", "issue R1", "mail R2", "remind R2"]
    assert [step.made for step in value.steps] == ["R1", "R2", "R3", "R4"]
    assert [step.type for step in value.steps] == ["draft", "invoice", "letter", ""]


@pytest.mark.req("S1-28")
def test_a_plan_of_four_steps_without_reads_costs_five_commits(rig: Rig) -> None:
    counted: list[UnitsCounted] = []

    def wrap(store: object) -> UnitsCounted:
        counted.append(UnitsCounted(store))
        return counted[-1]

    rig.wrap = wrap

    async def script(rt: Runtime) -> PlanValue:
        before = len(counted[0].units)
        value = await rt.propose(INVOICE, ask=Ask(principal=ANA))
        del counted[0].units[:before]
        return value

    value = rig.run(script, *office(rig.far))
    assert value.state is PlanState.DONE
    first, *between, last = counted[0].units
    assert first == ["planned", "stepped", "made", "sent"]
    assert between == [["acknowledged", "stepped", "stepped", "made", "sent"]] * 3
    assert last == ["acknowledged", "stepped", "finished"]


async def approved(rt: Runtime, **asked: object) -> PlanValue:
    """Propose the invoice, and say yes to it."""
    value = await propose(rt)
    assert value.state is PlanState.PROPOSED, value
    done = await rt.approve(value.plan, principal=ANA)
    assert done is not None
    return done


@pytest.mark.req("S1-37")
def test_a_plan_stops_at_the_first_failure_and_says_where(rig: Rig) -> None:
    rig.far.wire += [FINE, FINE, REFUSED]
    value = rig.run(approved, *office(rig.far, **CONFIRM))

    assert value.state is PlanState.PARTIAL
    assert at_of(value) == ["done", "done", "broken", "waiting"]
    for part in ("Done: ", "Couldn't: ", "the day is full", "Not done because of that: "):
        assert part in value.text
    assert value.text.endswith("Shall I retry?")
    assert len(rig.far.sends) == 3


@pytest.mark.req("S1-38", "S1-39", "S1-40", "S1-65", "K7")
@pytest.mark.field("A2", "B10")
def test_a_retry_is_the_same_plan_without_the_steps_that_are_done(rig: Rig) -> None:
    async def script(rt: Runtime) -> tuple[PlanValue, PlanValue, PlanValue]:
        planned = await propose(rt)
        assert planned.offer is not None
        first = await rt.approve(token=planned.offer.token, principal=ANA)
        assert first is not None
        assert first.offer is not None
        again = await rt.approve(token=first.offer.token, purpose=Purpose.RETRY, principal=ANA)
        old = await rt.approve(token=planned.offer.token, principal=ANA)
        assert again is not None
        assert old is not None
        return first, again, old

    rig.far.wire += [FINE, FINE, REFUSED]
    first, again, old = rig.run(script, *office(rig.far, **CONFIRM))

    assert (again.plan, again.attempt, again.state) == (first.plan, 2, PlanState.DONE)
    assert [step.replayed for step in again.steps] == [True, True, False, False]
    assert [step.attempt for step in again.steps] == [1, 1, 2, 2]
    assert [step.operation for step in again.steps[:2]] == [s.operation for s in first.steps[:2]]
    assert landed_in_order(rig) == ["draft logo", "issue R1", "mail R2", "remind R2"]
    assert (old.attempt, old.state, old.replayed) == (1, PlanState.PARTIAL, True)
    assert len(rig.far.sends) == 5


@pytest.mark.req("S1-39")
def test_a_step_that_is_tried_again_has_a_new_key_and_names_the_one_before(rig: Rig) -> None:
    async def script(rt: Runtime) -> PlanValue:
        first = await propose(rt, calls("draft", "logo"))
        return await rt.retry(first.plan, principal=ANA)

    rig.far.wire.append(REFUSED)
    value = rig.run(script, *office(rig.far))
    broken, made = rig.operations()

    assert (value.state, value.attempt) == (PlanState.DONE, 2)
    assert (broken.state, made.state, made.retries) == (State.FAILED, State.CONFIRMED, broken.id)
    assert broken.key != made.key
    assert rig.far.total == 1


@pytest.mark.req("S1-33", "K8")
def test_what_definitely_had_no_effect_may_be_tried_again_at_once_and_doubt_may_not(
    rig: Rig,
) -> None:
    async def script(rt: Runtime) -> tuple[PlanValue, PlanValue, PlanValue]:
        refused = await propose(rt, calls("draft", "one"), text="one")
        again = await rt.retry(refused.plan, principal=ANA)
        doubted = await propose(rt, calls("blind", "two"), text="two", patience_s=60.0)
        with pytest.raises(ProposalError, match="cannot be run again"):
            await rt.retry(doubted.plan, principal=ANA)
        return refused, again, doubted

    rig.far.wire += [REFUSED, FINE, REPLY_LOST]
    blind = act(rig.far, "blind", keyed="key", compares_payload=False, lookup=None, close=None)
    refused, again, doubted = rig.run(script, *office(rig.far), blind)

    assert (refused.state, again.state) == (PlanState.PARTIAL, PlanState.DONE)
    assert doubted.state is PlanState.IN_DOUBT
    assert rig.far.arguments.keys() == rig.far.effects.keys()
    assert set(rig.far.effects.values()) == {1}


# In trouble, at the end of a process, and in the next one.


@pytest.mark.req("S1-41", "K21")
@pytest.mark.parametrize("event", ["made", "sent", "acknowledged", "stepped", "finished"])
@pytest.mark.parametrize("nth", [1, 2, 3])
def test_a_plan_that_ran_a_step_never_ends_in_an_error_when_the_store_fails(
    rig: Rig, event: str, nth: int
) -> None:
    struck = Fails(event, times=3)
    left = [nth]

    def trouble(changes: Changes) -> None:
        if event in events_of(changes):
            left[0] -= 1
            if left[0] < 0:
                struck(changes)

    rig.wrap = lambda store: TroubledStore(store, trouble)

    async def script(rt: Runtime) -> PlanValue:
        with suppress(StoreError):
            await propose(rt)
        for _ in range(5):  # The caller asks again, as it would after any error.
            with suppress(StoreError):
                return await propose(rt)
            await asyncio.sleep(30.0)  # virtual time
        raise AssertionError("the store has been well for minutes")

    value = rig.run(script, *office(rig.far))

    assert struck.seen == 3 or event == "finished"
    assert (value.state, at_of(value)) == (PlanState.DONE, ["done"] * 4)
    assert landed_in_order(rig) == ["draft logo", "issue R1", "mail R2", "remind R2"]


@pytest.mark.req("S1-42")
def test_where_no_retry_can_be_handed_out_what_was_done_is_saved_all_the_same(rig: Rig) -> None:
    rig.wrap = lambda store: TroubledStore(store, Fails(ApprovalEvent.RENEWED))

    async def script(rt: Runtime) -> tuple[PlanValue, PlanValue]:
        first = await approved(rt)
        return first, await rt.plan(first.plan)

    rig.far.wire += [FINE, FINE, REFUSED]
    first, held = rig.run(script, *office(rig.far, **CONFIRM))

    assert (first.state, first.offer) == (PlanState.PARTIAL, None)
    assert at_of(first) == at_of(held) == ["done", "done", "broken", "waiting"]
    assert rig.far.total == 2


@pytest.mark.req("S1-42")
def test_a_store_that_is_gone_after_the_second_step_makes_a_later_ask_a_replay(rig: Rig) -> None:
    gone = Fails("acknowledged")
    left = [2]

    def trouble(changes: Changes) -> None:
        if "acknowledged" in events_of(changes):
            left[0] -= 1
            if left[0] < 0:
                gone(changes)

    rig.wrap = lambda store: TroubledStore(store, trouble)

    async def until_it_fails(rt: Runtime) -> None:
        with pytest.raises(StoreError):
            await propose(rt)

    process = rig.start(until_it_fails, *office(rig.far))
    rig.world.pass_time(60.0)
    rig.kill(process)
    rig.wrap = lambda store: store
    value = rig.run(propose, *office(rig.far))

    assert (value.state, value.replayed) == (PlanState.DONE, True)
    assert landed_in_order(rig) == ["draft logo", "issue R1", "mail R2", "remind R2"]


@pytest.mark.req("S1-43")
@pytest.mark.fault("X10")
def test_the_end_of_a_process_lets_the_step_in_flight_finish_and_starts_no_other(
    rig: Rig,
) -> None:
    rig.far.wire += [FINE, Wire(replies_s=5.0)]

    async def script(rt: Runtime) -> PlanValue:
        running = asyncio.ensure_future(propose(rt))
        await asyncio.sleep(1.0)  # virtual time
        await rt.drain()
        return await running

    tools = office(rig.far, deadline_s=100.0)
    value = rig.run(script, *tools)

    assert (value.state, at_of(value)) == (
        PlanState.RUNNING,
        ["done", "done", "waiting", "waiting"],
    )
    assert rig.world.timeline.now_s == pytest.approx(5.0)
    after = rig.run(propose, *tools)
    assert (after.state, after.replayed, rig.far.total) == (PlanState.DONE, True, 4)


@pytest.mark.req("S1-43", "K8")
@pytest.mark.fault("X10")
def test_a_step_that_outlasts_the_drain_is_in_doubt_and_the_plan_is_not_lost(rig: Rig) -> None:
    rig.far.wire += [FINE, Wire(replies_s=60.0)]
    rig.settings = Settings(drain_s=30.0)

    async def script(rt: Runtime) -> float:
        running = asyncio.ensure_future(propose(rt))
        await asyncio.sleep(1.0)  # virtual time
        await rt.drain()
        await running
        return rig.world.timeline.now_s

    tools = office(rig.far, deadline_s=100.0)
    at_s = rig.run(script, *tools)
    assert at_s == pytest.approx(31.0)
    assert rig.states() == [State.CONFIRMED, State.UNKNOWN]

    after = rig.run(propose, *tools)
    assert (after.state, after.replayed, rig.far.total) == (PlanState.DONE, True, 4)


@pytest.mark.req("S1-32", "S1-44")
@pytest.mark.fault("X03")
def test_another_process_takes_a_plan_over_once_the_lease_of_the_dead_one_is_over(
    rig: Rig,
) -> None:
    rig.far.wire += [FINE, Wire(replies_s=4.0)]
    tools = office(rig.far)
    rig.lease = Lease(lease_s=30.0, beat_s=10.0)
    first = rig.start(propose, *tools)
    rig.world.pass_time(1.0)
    first.kill()  # Of this the store knows nothing: only the lease tells.

    async def wait_for_it(rt: Runtime) -> tuple[PlanValue, PlanValue]:
        at_once = await propose(rt, patience_s=5.0)
        return at_once, await propose(rt)

    at_once, value = rig.run(wait_for_it, *tools)

    assert (at_once.state, at_once.replayed) == (PlanState.RUNNING, True)
    assert rig.world.timeline.now_s > 30.0
    assert (value.state, value.replayed) == (PlanState.DONE, True)
    assert landed_in_order(rig) == ["draft logo", "issue R1", "mail R2", "remind R2"]


def test_a_plan_whose_tool_is_gone_when_it_is_taken_over_ends_partial_and_says_why(
    rig: Rig,
) -> None:
    rig.far.wire += [FINE, Wire(replies_s=4.0)]
    tools = office(rig.far)
    first = rig.start(propose, *tools)
    rig.world.pass_time(1.0)
    rig.kill(first)

    (plan,) = {one.plan for one in rig.operations()}

    async def look(rt: Runtime) -> PlanValue:
        await asyncio.sleep(60.0)  # virtual time
        return await rt.plan(plan)

    draft, issue, _, remind = tools
    value = rig.run(look, draft, issue, remind)
    assert value.state is PlanState.PARTIAL
    assert at_of(value) == ["done", "done", "broken", "waiting"]
    assert "'mail' is not registered" in value.text


class DeafStore(Wrapped):
    """Reads of single records fail for as long as it is `deaf`."""

    deaf = False

    async def load(self, *ids: str) -> tuple[Record, ...]:
        if DeafStore.deaf:
            raise StoreError("the disk does not answer")
        return await self.inner.load(*ids)


def test_reads_that_fail_while_a_step_is_out_trouble_nobody(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """They only tell early whether it was stopped elsewhere: the next write finds out too."""
    rig.far.wire.append(Wire(replies_s=10.0))
    rig.wrap = DeafStore

    async def script(rt: Runtime) -> PlanValue:
        running = asyncio.ensure_future(propose(rt))
        await asyncio.sleep(0.5)  # virtual time
        monkeypatch.setattr(DeafStore, "deaf", True)
        await asyncio.sleep(5.0)  # virtual time
        monkeypatch.setattr(DeafStore, "deaf", False)
        return await running

    value = rig.run(script, *office(rig.far, deadline_s=100.0))
    assert (value.state, rig.far.total) == (PlanState.DONE, 4)
    assert "could not be read" in caplog.text


def test_who_waits_for_the_plan_of_another_process_is_told_when_it_cannot_be_read(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.far.wire.append(Wire(replies_s=10.0))
    rig.wrap = DeafStore
    tools = office(rig.far, deadline_s=100.0)
    runs = rig.start(propose, *tools)
    rig.world.pass_time(1.0)

    async def script(rt: Runtime) -> PlanValue:
        waiting = asyncio.ensure_future(propose(rt))
        await asyncio.sleep(1.0)  # virtual time
        monkeypatch.setattr(DeafStore, "deaf", True)
        with pytest.raises(StoreError, match="does not answer"):
            await waiting
        monkeypatch.setattr(DeafStore, "deaf", False)
        return await propose(rt)

    waits = rig.start(script, *tools)
    rig.world.wait(runs, waits)
    rig.check()
    value = waits.result()
    assert (value.state, value.replayed, rig.far.total) == (PlanState.DONE, True, 4)


def test_who_waits_for_a_plan_that_waits_for_a_person_elsewhere_is_not_kept(rig: Rig) -> None:
    rig.far.wire.append(REPLY_LOST)
    tools = office(rig.far, lookup=no_word, close=None, escalate_after_s=30.0)
    runs = rig.start(lambda rt: propose(rt, patience_s=10_000.0), *tools)
    rig.world.pass_time(8.0)
    waits = rig.start(lambda rt: propose(rt, patience_s=10_000.0), *tools)
    rig.world.wait(runs, waits)
    assert rig.world.timeline.now_s < 300.0
    assert runs.result().state is waits.result().state is PlanState.IN_DOUBT
    assert rig.states() == [State.UNDECIDED]


# Bounds.


@pytest.mark.fault("X70")
def test_a_hundred_steps_are_carried_out_and_one_more_is_refused(rig: Rig) -> None:
    hundred = calls("draft", *map(str, range(100)))

    async def script(rt: Runtime) -> PlanValue:
        with pytest.raises(ProposalError, match="at most 100 steps, not 101"):
            await propose(rt, (*hundred, *calls("draft", "100")), text="too many")
        return await propose(rt, hundred)

    value = rig.run(script, *office(rig.far))
    assert value.state is PlanState.DONE
    assert rig.far.total == len(rig.far.sends) == 100


@pytest.mark.fault("X84")
@pytest.mark.parametrize(
    "reference",
    ["$3", "$2", "$0", "$-1", "$1.__class__", "$../7", "$1.id", "$plan-a1", "$01", "$ 1", "$1$1"],
)
def test_a_reference_to_anything_but_an_earlier_step_runs_nothing(rig: Rig, reference: str) -> None:
    wanted = (INVOICE[0], Wanted(tool="issue", arguments={"what": reference}), INVOICE[2])

    async def script(rt: Runtime) -> None:
        with pytest.raises(ProposalError):
            await propose(rt, wanted)

    rig.run(script, *office(rig.far))
    assert rig.far.sends == []


# Steps that depend on each other, and steps that do not.


@pytest.mark.req("S4-44", "K30")
def test_steps_behind_one_that_nobody_can_tell_about_are_not_started(rig: Rig) -> None:
    rig.far.wire.append(REPLY_LOST)
    tools = office(rig.far, lookup=no_word, close=None)

    async def script(rt: Runtime) -> PlanValue:
        return await propose(rt, patience_s=120.0)

    value = rig.run(script, *tools)
    assert (value.state, at_of(value)) == (PlanState.IN_DOUBT, ["out", *["waiting"] * 3])
    assert len(set(rig.far.sends)) == 1
    assert "Not done before that is known" in value.text


@pytest.mark.req("K30")
def test_independent_steps_wait_only_for_those_they_refer_to(rig: Rig) -> None:
    rig.far.wire += [REFUSED, FINE]
    wanted = (
        *calls("draft", "logo"),
        Wanted(tool="issue", arguments={"what": "$1"}),
        *calls("draft", "poster"),
        Wanted(tool="issue", arguments={"what": "$3"}),
    )

    async def script(rt: Runtime) -> PlanValue:
        return await propose(rt, wanted, independent=True)

    value = rig.run(script, *office(rig.far))
    assert (value.state, at_of(value)) == (
        PlanState.PARTIAL,
        ["broken", "waiting", "done", "done"],
    )
    assert landed_in_order(rig) == ["draft poster", "issue R1"]
