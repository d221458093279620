"""What a service holds is compared with the records: on demand, on schedule, by two at once."""

import asyncio
from typing import Any

import pytest

from landed.core.case import Ruling, Why
from landed.core.errors import ProposalError
from landed.core.key import Ask
from landed.core.operation import State
from landed.core.outcome import (
    Listed,
    ListedEffect,
    NoAnswer,
)
from landed.core.plan import Wanted
from landed.core.preview import Previewing, Similar
from landed.core.tool import Call
from landed.core.value import Confirmed, Failed, Unknown
from landed.runtime import settling
from landed.runtime.opened import Settings
from landed.runtime.runtime import Runtime
from landed.tools.function import FunctionTool
from tests.runtime.rig import (
    FINE,
    REFUSED,
    REPLY_LOST,
    SELDOM,
    FarSide,
    Rig,
    Wire,
    booking,
    never,
    unkeyed,
)
from tests.runtime.stores import Fails, TroubledStore

FRIDAY = {"day": "Fri"}
LATER = Wire(arrives_s=20.0)


async def book_friday(rt: Runtime):
    return await rt.perform("book", FRIDAY, ask=Ask(call_id="c1"))


class Listing:
    """The list that a service gives of its effects: those of a far side, and strangers."""

    def __init__(self, far: FarSide) -> None:
        self.far = far
        self.strangers: list[ListedEffect] = []
        self.asked: list[float] = []
        self.at_once = self.most_at_once = 0
        self.takes_s = 0.0
        self.fails = 0
        self.garbage: object = None

    async def __call__(self, since: float) -> object:
        self.asked.append(since)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(self.takes_s)  # virtual time
        self.at_once -= 1
        if self.fails:
            self.fails -= 1
            raise ConnectionResetError("reset by peer")
        if self.garbage is not None:
            return self.garbage
        held = [
            ListedEffect(id=result["id"], key=key, result=result, says=f"a table, {result['id']}")
            for key, result in self.far.results.items()
        ]
        return [*held, *self.strangers]


def listed(rig: Rig, **promises: Any) -> tuple[Listing, FunctionTool[Any, Any]]:
    listing = Listing(rig.far)

    async def down(call: Call) -> NoAnswer:
        return NoAnswer(reason="down")

    kept = {"lookup": down, "close": None, "list_effects": listing, "max_tries": 1, **promises}
    return listing, booking(rig.far, **kept)


# The schedule.


@pytest.mark.req("S4-09")
@pytest.mark.fault("X59")
def test_on_schedule_what_a_service_holds_settles_what_is_in_doubt(rig: Rig) -> None:
    _, book = listed(rig)
    rig.far.wire.append(REPLY_LOST)
    rig.settings = Settings(sweep_every_s=60.0)

    async def script(rt: Runtime):
        assert isinstance(await book_friday(rt), Unknown)
        await asyncio.sleep(70.0)  # virtual time
        return await rt.status("op-a1")

    assert isinstance(rig.run(script, book), Confirmed)
    assert rig.far.total == 1


def test_without_a_setting_nothing_is_swept(rig: Rig) -> None:
    listing, book = listed(rig)

    async def script(rt: Runtime) -> None:
        await asyncio.sleep(100_000.0)  # virtual time

    rig.lease = SELDOM
    rig.run(script, book)
    assert listing.asked == []


def test_a_round_never_overlaps_the_one_before_and_ends_with_the_runtime(rig: Rig) -> None:
    """The list takes four times as long as the round."""
    listing, book = listed(rig, deadline_s=100.0)
    listing.takes_s = 40.0
    rig.settings = Settings(sweep_every_s=10.0, drain_s=1.0)

    async def script(rt: Runtime) -> None:
        await asyncio.sleep(500.0)  # virtual time

    rig.run(script, book)
    rig.world.pass_time(500.0)
    assert (listing.most_at_once, len(listing.asked)) == (1, 10)


def test_a_round_looks_back_behind_the_last_that_came_to_its_end(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    listing, book = listed(rig)
    listing.fails = 1
    rig.settings = Settings(sweep_every_s=200_000.0)
    rig.lease = SELDOM
    began = rig.world.clock.now()

    async def script(rt: Runtime) -> None:
        await asyncio.sleep(700_000.0)  # virtual time

    rig.run(script, book)
    back = began + 400_000.0 - settling.SWEEPS_BACK_S
    assert listing.asked == [0.0, 0.0, pytest.approx(back)]
    assert "could not all be compared" in caplog.text


@pytest.mark.parametrize(
    ("garbage", "says"),
    [
        ([{"id": "R1"}], "is to hold ListedEffects"),
        ([ListedEffect(id="")], "is to hold ListedEffects"),
        ([ListedEffect(id=7)], "is to hold ListedEffects"),  # type: ignore[arg-type]
        (7, ""),
    ],
)
def test_a_list_of_garbage_is_no_answer_and_no_case(rig: Rig, garbage: object, says: str) -> None:
    listing, book = listed(rig)
    listing.garbage = garbage

    async def script(rt: Runtime):
        return await rt.sweep("book"), await rt.inbox()

    swept, cases = rig.run(script, book)
    assert (swept.listed, swept.settled, swept.cases, cases) == (0, 0, 0, ())
    assert swept.why_not
    assert says in swept.why_not


class Raw:
    """A tool that is no function's, and whose list raises, or hangs."""

    def __init__(self, inner: FunctionTool[Any, Any], hangs: bool) -> None:
        self.inner = inner
        self.hangs = hangs

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    async def list_effects(self, since: float) -> Listed | NoAnswer:
        if self.hangs:
            await never()
        raise KeyError("id")


@pytest.mark.parametrize(("hangs", "why"), [(True, "no answer within 5 s"), (False, "KeyError")])
def test_a_list_that_raises_or_hangs_is_no_answer(rig: Rig, hangs: bool, why: str) -> None:
    raw: Any = Raw(listed(rig)[1], hangs)
    swept = rig.run(lambda rt: rt.sweep("book"), raw)
    assert why in swept.why_not


def test_a_list_that_is_too_long_says_so(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    listing, book = listed(rig)
    listing.strangers = [ListedEffect(id=f"R{n}") for n in range(5)]
    monkeypatch.setattr(settling, "LISTED_MAX", 3)
    swept = rig.run(lambda rt: rt.sweep("book"), book)
    assert (swept.listed, swept.cases, swept.why_not) == (5, 3, "only 3 of 5 were compared")


def test_a_tool_that_lists_nothing_cannot_be_swept(rig: Rig) -> None:
    async def script(rt: Runtime) -> None:
        with pytest.raises(ProposalError, match="no list_effects"):
            await rt.sweep("book")
        with pytest.raises(ProposalError, match="there is no tool"):
            await rt.sweep("pay")

    rig.run(script, booking(rig.far))


def test_a_round_that_could_not_be_written_down_is_logged_and_made_again(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    listing, book = listed(rig)
    listing.strangers = [ListedEffect(id="R77")]
    rig.settings = Settings(sweep_every_s=10.0, tenants=())
    rig.wrap = lambda store: TroubledStore(store, Fails("case_opened", times=2))

    async def script(rt: Runtime):
        await asyncio.sleep(45.0)  # virtual time
        return await rt.inbox()

    (case,) = rig.run(script, book)
    assert (case.key, case.tenant) == ("R77", "default")
    assert caplog.text.count("could not be compared: the disk is full") == 2
    assert listing.asked[:3] == [0.0, 0.0, 0.0]


# Effects that no record speaks of.


@pytest.mark.req("S4-14")
def test_an_effect_that_nobody_recorded_is_one_case_however_often_it_is_seen(rig: Rig) -> None:
    listing, book = listed(rig)
    listing.strangers = [ListedEffect(id="R77", says="a table for nine")]

    async def script(rt: Runtime):
        swept = [await rt.sweep("book") for _ in range(3)]
        (case,) = await rt.inbox()
        await rt.resolve(case.id, ruling=Ruling.SIGN_OFF, by="ana", note="by telephone")
        return [one.cases for one in swept], case, await rt.sweep("book"), await rt.inbox()

    counts, case, after, inbox = rig.run(script, book)
    assert (counts, after.cases, inbox) == ([1, 0, 0], 0, ())
    assert (case.why, case.key, case.says) == (Why.UNRECORDED, "R77", "a table for nine")


@pytest.mark.req("S4-14")
def test_a_lost_record_is_seen_by_its_key_and_the_same_call_again_is_another_operation(
    rig: Rig,
) -> None:
    """The store came back from a backup: what the service holds under the lost key is a case."""
    _, book = listed(rig)

    async def first(rt: Runtime):
        return await book_friday(rt)

    rig.run(first, book)
    restored = Rig(rig.world)
    restored.far = rig.far
    swept = restored.run(lambda rt: rt.sweep("book"), book)
    assert (swept.listed, swept.cases) == (1, 1)
    (case,) = restored.run(lambda rt: rt.inbox(), book)
    assert (case.why, case.key, case.says) == (Why.UNRECORDED, "op-a1", "a table, R1")


@pytest.mark.req("S4-14")
def test_after_a_lost_record_the_same_action_looks_alike_and_is_not_done_again(rig: Rig) -> None:
    """An identity that is derived from the arguments finds it; the key is another one."""
    listing = Listing(rig.far)

    async def alike(previewing: Previewing) -> list[Similar]:
        held = await listing(0.0)
        assert isinstance(held, list)
        return [Similar(id=one.id, text=one.says) for one in held]

    book = booking(rig.far, list_effects=listing, look_alike=alike, if_alike="block")
    wanted = [Wanted(tool="book", arguments=FRIDAY)]

    async def propose(rt: Runtime):
        value = await rt.propose(wanted, ask=Ask(call_id="p1"))
        return value, await rt.sweep("book"), await rt.inbox()

    value, swept, _ = rig.run(propose, book)
    assert (value.state, swept.cases) == ("done", 0)
    restored = Rig(rig.world)
    restored.far = rig.far
    value, swept, (case,) = restored.run(propose, book)
    assert value.state == "invalid"
    assert "a table, R1" in value.text
    assert (rig.far.total, case.why) == (1, Why.UNRECORDED)


@pytest.mark.req("S4-08", "S4-52")
def test_what_was_settled_as_absent_and_is_listed_is_a_case_and_not_rewritten(rig: Rig) -> None:
    """A service that tells a refusal and does it all the same."""
    _, book = listed(rig)
    rig.far.wire.append(REFUSED)

    async def script(rt: Runtime):
        failed = await book_friday(rt)
        rig.far.results["op-a1"] = {"id": "R9"}
        swept = [await rt.sweep("book"), await rt.sweep("book")]
        (case,) = await rt.inbox()
        return failed, swept, case, await rt.status("op-a1")

    failed, swept, case, after = rig.run(script, book)
    assert isinstance(failed, Failed)
    assert isinstance(after, Failed)
    assert [one.cases for one in swept] == [1, 0]
    assert (case.why, case.operation) == (Why.CONTRADICTED, "op-a1")


def test_an_effect_of_what_was_taken_back_unsent_is_a_case_too(rig: Rig) -> None:
    _, book = listed(rig)

    async def script(rt: Runtime):
        value = await rt.perform("book", FRIDAY, ask=Ask(send_by=0.0))
        rig.far.results[value.operation] = {"id": "R9"}
        return await rt.sweep("book"), await rt.inbox()

    swept, (case,) = rig.run(script, book)
    assert (swept.cases, case.why) == (1, Why.UNRECORDED)
    assert rig.states() == [State.WITHDRAWN]


def test_a_key_of_another_services_operation_is_no_record_of_it(rig: Rig) -> None:
    listing, book = listed(rig)
    rig.far.wire.append(FINE)

    async def script(rt: Runtime):
        sent = await rt.perform("mail", {"to": "ana"})
        listing.strangers = [ListedEffect(id="R1", key=sent.operation)]
        return await rt.sweep("book")

    assert rig.run(script, book, unkeyed(rig.far)).cases == 1


def test_two_tools_of_one_service_list_each_others_effects(rig: Rig) -> None:
    _, book = listed(rig, service="restaurant")
    other = booking(rig.far, service="restaurant", name="book_bar")

    async def script(rt: Runtime):
        await rt.perform("book_bar", FRIDAY)
        return await rt.sweep("book")

    swept = rig.run(script, book, other)
    assert (swept.listed, swept.cases) == (1, 0)


def test_an_id_of_any_length_is_one_case(rig: Rig) -> None:
    listing, book = listed(rig)
    listing.strangers = [ListedEffect(id="x" * 5_000 + end, says="y" * 5_000) for end in "ab"]

    async def script(rt: Runtime):
        return await rt.sweep("book"), await rt.inbox()

    swept, cases = rig.run(script, book)
    assert (swept.cases, len({one.id for one in cases})) == (2, 2)
    assert max(len(one.id) for one in cases) < 500
    assert max(len(one.says) for one in cases) <= 500


@pytest.mark.parametrize("at_s", [1.0, 30.0], ids=["in flight", "in doubt"])
def test_what_another_worker_has_in_hand_is_left_to_it(rig: Rig, at_s: float) -> None:
    _, book = listed(rig)
    rig.far.wire.append(REPLY_LOST)

    async def own(rt: Runtime):
        return await rt.perform("book", FRIDAY, patience_s=100.0)

    owner = rig.start(own, book)
    rig.world.pass_time(at_s)
    swept = rig.run(lambda rt: rt.sweep("book"), book)
    assert (swept.listed, swept.settled, swept.cases) == (1, 0, 0)
    rig.world.wait(owner)
    assert isinstance(owner.result(), Unknown)


@pytest.mark.req("S4-14", "S4-09")
def test_two_processes_that_sweep_at_once_open_one_case_and_settle_once(rig: Rig) -> None:
    listing, book = listed(rig)
    listing.strangers = [ListedEffect(id="R77")]
    rig.far.wire.append(REPLY_LOST)

    async def own(rt: Runtime):
        assert isinstance(await book_friday(rt), Unknown)
        return await rt.sweep("book")

    async def sweep(rt: Runtime):
        await asyncio.sleep(10.0)  # virtual time
        return await rt.sweep("book")

    both = [rig.start(own, book), rig.start(sweep, book)]
    for process in both:
        rig.world.wait(process)
    swept = [process.result() for process in both]
    assert sum(one.cases for one in swept) == 1
    assert sum(one.settled for one in swept) == 1
    assert rig.events("op-a1").count("found") == 1
