"""One effect for each wish: who asks twice, in whatever way, joins what the first one set going."""

import asyncio
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from landed.core.canonical import Json
from landed.core.changes import Kind
from landed.core.errors import ApprovalError, ProposalError
from landed.core.key import Ask
from landed.core.operation import State
from landed.core.plan import PlanState, Wanted
from landed.core.value import PlanValue, Withdrawn
from landed.runtime.acting import ModelTools
from landed.runtime.runtime import Runtime
from landed.testing.faults import Point
from landed.testing.sim import World
from landed.tools.function import tool
from tests.runtime.plan_rig import (
    ANA,
    INVOICE,
    act,
    at_of,
    calls,
    landed_in_order,
    office,
    propose,
)
from tests.runtime.rig import FINE, REFUSED, REPLY_LOST, Rig, Wire
from tests.runtime.stores import Wrapped
from tests.sampling import sampled

LOGO = calls("draft", "logo")
STEPS: Json = {"steps": [{"tool": "draft", "arguments": {"what": "logo"}}]}
ASKED = Ask(principal=ANA, input="in-1", call_id="act")


# The six sources of duplicates.


@pytest.mark.req("S1-28")
def test_a_channel_that_delivers_a_message_twice_has_one_effect(rig: Rig) -> None:
    async def on_message(rt: Runtime) -> PlanValue:
        heard = await rt.receive("draft the logo", principal=ANA, delivery="update-17")
        return await rt.propose(LOGO, ask=heard.ask("act"))

    async def script(rt: Runtime) -> list[PlanValue]:
        return list(await asyncio.gather(on_message(rt), on_message(rt)))

    values = rig.run(script, *office(rig.far))
    later = rig.run(on_message, *office(rig.far))
    assert len({value.plan for value in (*values, later)}) == 1
    assert sorted(value.replayed for value in (*values, later)) == [False, True, True]
    assert rig.far.total == 1


@pytest.mark.req("S1-28")
def test_a_browser_that_sends_its_request_again_has_one_effect(rig: Rig) -> None:
    """The first request is cut off while it waits; the browser sends the same once more."""
    rig.far.wire.append(Wire(replies_s=4.0))

    async def request(rt: Runtime) -> PlanValue:
        heard = await rt.receive("draft the logo", principal=ANA, delivery="form-9f2")
        return await rt.propose(LOGO, ask=heard.ask("act"))

    async def script(rt: Runtime) -> PlanValue:
        first = asyncio.ensure_future(request(rt))
        await asyncio.sleep(1.0)  # virtual time
        first.cancel()
        return await request(rt)

    value = rig.run(script, *office(rig.far))
    assert (value.state, value.replayed, rig.far.total) == (PlanState.DONE, True, 1)


@pytest.mark.req("S1-28", "S4-19")
def test_a_person_who_sends_it_again_has_one_effect_where_there_may_be_only_one(
    rig: Rig,
) -> None:
    """Two messages are two wishes: only a business rule can say that they mean one thing."""
    draft = act(rig.far, "draft", unique=("draft/{what}",))

    async def script(rt: Runtime) -> tuple[PlanValue, PlanValue]:
        return await propose(rt, LOGO, text="draft it"), await propose(rt, LOGO, text="draft it!")

    first, second = rig.run(script, draft)
    assert (first.state, second.state) == (PlanState.DONE, PlanState.PARTIAL)
    assert rig.far.total == 1
    assert first.operations[0] in second.text


@pytest.mark.req("S1-28", "S1-30", "S1-34")
def test_a_model_that_calls_twice_and_loops_has_one_effect(rig: Rig) -> None:
    async def script(rt: Runtime) -> list[str]:
        heard = await rt.receive("draft the logo", principal=ANA)
        model = ModelTools(rt=rt, heard=heard)
        told = list(await asyncio.gather(*(model.call("act", STEPS) for _ in range(5))))
        return told + [await model.call("act", STEPS) for _ in range(5)]

    told = rig.run(script, *office(rig.far))
    assert len(set(told)) == 1
    assert rig.far.total == 1


@pytest.mark.req("S1-28")
def test_a_confirmation_that_is_clicked_twice_has_one_effect(rig: Rig) -> None:
    async def script(rt: Runtime) -> list[PlanValue | None]:
        planned = await propose(rt, LOGO)
        assert planned.offer is not None
        clicks = (rt.approve(token=planned.offer.token, principal=ANA) for _ in range(2))
        return list(await asyncio.gather(*clicks))

    values = rig.run(script, *office(rig.far, risk="confirm"))
    assert {value.state for value in values if value} == {PlanState.DONE}
    assert sorted(value.replayed for value in values if value) == [False, True]
    assert rig.far.total == 1


@pytest.mark.req("S1-28", "S1-44")
def test_a_confirmation_that_the_network_sends_again_has_one_effect(rig: Rig) -> None:
    """Its answer was lost; the same comes again to another process, when the first is dead."""
    rig.far.wire.append(Wire(replies_s=4.0))
    tokens: list[str] = []
    tools = office(rig.far, risk="confirm")

    async def confirm(rt: Runtime) -> PlanValue | None:
        if not tokens:
            planned = await propose(rt, LOGO)
            assert planned.offer is not None
            tokens.append(planned.offer.token)
        return await rt.approve(token=tokens[0], principal=ANA)

    first = rig.start(confirm, *tools)
    rig.world.pass_time(1.0)
    rig.kill(first)
    value = rig.run(confirm, *tools)
    assert value is not None
    assert (value.state, value.replayed, rig.far.total) == (PlanState.DONE, True, 1)


# The five layers, each on its own.


@pytest.mark.req("S1-27")
def test_layer_1_one_delivery_is_one_input(rig: Rig) -> None:
    """No other layer is there: nothing is proposed; only the name of the delivery is taken."""

    async def script(rt: Runtime) -> list[str]:
        heard = [await rt.receive("hello", principal=ANA, delivery="update-17") for _ in range(3)]
        return [one.id for one in heard]

    assert len(set(rig.run(script))) == 1
    assert rig.events().count("received") == 1


@pytest.mark.req("S1-27")
def test_layer_2_one_ask_is_one_plan(rig: Rig) -> None:
    """Without a delivery, a yes, a rule or a second attempt; its tools hold no name in common.

    The service has no keys, so that nothing there can hide a second send either.
    """

    @tool(effect="irreversible")
    async def note(what: str) -> dict[str, str]:
        noted.append(what)
        return {"id": f"N{len(noted)}"}

    noted: list[str] = []
    wanted = (Wanted(tool="note", arguments={"what": "x"}),)

    async def script(rt: Runtime) -> list[PlanValue]:
        same = [await rt.propose(wanted, ask=ASKED) for _ in range(3)]
        other = Ask(principal=ANA, input="in-2", call_id="act")
        return [*same, await rt.propose(wanted, ask=other)]

    *same, other = rig.run(script, note)
    assert len({value.plan for value in same}) == 1
    assert other.plan != same[0].plan
    assert noted == ["x", "x"]


@pytest.mark.req("S1-27")
def test_layer_3_one_yes_is_used_once(rig: Rig) -> None:
    """Without an ask that could be joined: what is presented again is the yes, and nothing else."""

    async def script(rt: Runtime) -> list[PlanValue | None]:
        planned = await rt.propose(LOGO, ask=Ask(principal=ANA))
        assert planned.offer is not None
        return [await rt.approve(token=planned.offer.token, principal=ANA) for _ in range(3)]

    values = rig.run(script, *office(rig.far, risk="confirm"))
    assert [value.replayed for value in values if value] == [False, True, True]
    assert rig.events().count("plan_approved") == 1
    assert len(rig.far.sends) == 1


@pytest.mark.req("S1-27", "S1-39")
def test_layer_4_one_step_runs_once_in_all_attempts(rig: Rig) -> None:
    """Without an ask and without a yes: a retry goes through the same plan a second time."""
    rig.far.wire += [FINE, REFUSED]

    async def script(rt: Runtime) -> PlanValue:
        first = await rt.propose(INVOICE, ask=Ask(principal=ANA))
        return await rt.retry(first.plan, principal=ANA)

    value = rig.run(script, *office(rig.far))
    assert [step.replayed for step in value.steps] == [True, False, False, False]
    assert landed_in_order(rig).count("draft logo") == 1


@pytest.mark.req("S1-27", "S4-39")
def test_layer_5_a_rule_allows_one_effect_whoever_asks(rig: Rig) -> None:
    """Other persons, sessions and asks, so that nothing but the rule can tell them to be one."""
    draft = act(rig.far, "draft", unique=("draft/{what}",), target=())

    async def script(rt: Runtime) -> list[PlanValue]:
        asks = [Ask(principal=f"p{n}", session=f"s{n}") for n in range(3)]
        return [await rt.propose(LOGO, ask=ask) for ask in asks]

    values = rig.run(script, draft)
    assert [value.state for value in values] == [PlanState.DONE, *[PlanState.PARTIAL] * 2]
    assert len(rig.far.sends) == 1


# Many at once, and slow ones.


@pytest.mark.req("S1-29", "S1-34")
def test_of_ten_who_ask_at_once_one_acts_and_nine_get_what_it_came_to(rig: Rig) -> None:
    rig.far.wire.append(Wire(replies_s=3.0))
    tools = office(rig.far)

    async def ask_twice(rt: Runtime) -> list[PlanValue]:
        return list(await asyncio.gather(*(rt.propose(LOGO, ask=ASKED) for _ in range(2))))

    processes = [rig.start(ask_twice, *tools) for _ in range(5)]
    rig.world.wait(*processes)
    rig.check()
    values = [value for process in processes for value in process.result()]

    assert len({value.plan for value in values}) == 1
    assert {value.state for value in values} == {PlanState.DONE}
    assert sorted(value.replayed for value in values) == [False, *[True] * 9]
    assert len(rig.far.sends) == rig.far.total == 1


@pytest.mark.req("S1-31")
def test_who_waits_for_a_slow_one_gets_how_it_stands_and_later_the_result(rig: Rig) -> None:
    rig.far.wire.append(Wire(replies_s=60.0))
    tools = office(rig.far, deadline_s=100.0)
    owner = rig.start(lambda rt: rt.propose(LOGO, ask=ASKED), *tools)
    rig.world.pass_time(1.0)

    async def wait(rt: Runtime) -> tuple[PlanValue, float, PlanValue]:
        before = rig.world.timeline.now_s
        value = await rt.propose(LOGO, ask=ASKED, patience_s=4.0)
        waited_s = rig.world.timeline.now_s - before
        return value, waited_s, await rt.propose(LOGO, ask=ASKED)

    waiter = rig.start(wait, *tools)
    rig.world.wait(owner, waiter)
    early, waited_s, later = waiter.result()
    assert (early.state, early.replayed) == (PlanState.RUNNING, True)
    assert waited_s == pytest.approx(4.0, abs=1.1)
    assert (later.state, later.replayed, rig.far.total) == (PlanState.DONE, True, 1)


# A process that dies, anywhere.


async def to_the_end(rt: Runtime) -> PlanValue:
    """Ask, agree, retry what broke off: as a person does who is asked again after each crash."""
    value = await propose(rt, patience_s=100.0)
    for _ in range(5):
        if value.state is PlanState.PROPOSED:
            await _quietly(rt.approve(value.plan, principal=ANA))
        elif value.state is PlanState.PARTIAL:
            await _quietly(rt.retry(value.plan, principal=ANA))
        value = await propose(rt, patience_s=100.0)
    return value


async def _quietly(word: Any) -> None:
    try:
        await word
    except (ApprovalError, ProposalError):
        await asyncio.sleep(1.0)  # virtual time


def passed_points() -> list[Point]:
    """A point of each side of every commit of a run with a yes, a refusal and a retry.

    Those before one commit are passed with nothing happening in between, and those after it
    likewise: the first stands for all of them.
    """
    kept: list[list[Point]] = []

    def wrap(store: Any) -> Any:
        kept.append(store.points.passed)
        return store

    with World() as world:
        rig = Rig(world, wrap=wrap)
        rig.far.wire += WIRES
        assert rig.run(to_the_end, *office(rig.far, risk="confirm")).attempt == 2
    passed = kept[0]
    return [point for n, point in enumerate(passed) if not n or passed[n - 1].side != point.side]


WIRES = (FINE, REFUSED)
POINTS = passed_points()


@pytest.mark.req("S1-32", "S1-41", "S1-44", "S1-40")
@pytest.mark.fault("X03", "X04")
@pytest.mark.parametrize("point", POINTS, ids=str)
def test_killed_at_any_point_of_yes_run_and_retry_each_step_has_one_effect(point: Point) -> None:
    with World() as world:
        rig = Rig(world, kill_at=point)
        rig.far.wire += WIRES
        tools = office(rig.far, risk="confirm")
        first = rig.start(to_the_end, *tools)
        world.wait(first)
        rig.base.worker_died(first.name)
        rig.kill_at = None
        value = rig.run(to_the_end, *tools)

        assert first.ended().crashed_at == str(point)
        assert (value.state, at_of(value)) == (PlanState.DONE, ["done"] * 4)
        assert landed_in_order(rig) == ["draft logo", "issue R1", "mail R2", "remind R2"]
        assert set(rig.far.effects.values()) == {1}


MAIL = """
import asyncio, os, signal, sys
import landed
from landed.core.key import Ask
from landed.core.plan import Wanted

store, outbox, dies = sys.argv[1:]

def sent():
    with open(outbox, "a+") as file:
        file.seek(0)
        return file.read().split()

async def lookup(call):
    return landed.Found(result={"id": call.key}) if call.key in sent() else landed.Absent()

@landed.tool(effect="irreversible", keyed="key", lookup=lookup)
async def mail(to: str, key: str) -> dict[str, str]:
    with open(outbox, "a") as file:
        file.write(key + "\\n")
    if dies == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    return {"id": key}

async def main():
    async with landed.open(f"sqlite:///{store}", tools=[mail]) as rt:
        ask = Ask(principal="ana", input="in-1", call_id="act")
        value = await rt.propose([Wanted(tool="mail", arguments={"to": "a@b.c"})], ask=ask)
        print(value.state, value.replayed)

asyncio.run(main())
"""


@pytest.mark.req("S1-32", "S1-44")
@pytest.mark.fault("X03")
def test_two_real_processes_and_a_kill_between_effect_and_record_make_one_mail(
    tmp_path: Path,
) -> None:
    store, outbox = tmp_path / "agent.db", tmp_path / "outbox"

    def process(dies: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", MAIL, str(store), str(outbox), dies]
        return subprocess.run(command, capture_output=True, text=True, timeout=60.0)

    killed, next_one = process("dies"), process("lives")
    assert killed.returncode == -signal.SIGKILL
    assert next_one.stdout.split() == ["done", "True"], next_one.stderr
    assert len(outbox.read_text().split()) == 1


# Rules of the business, and things that two touch at once.


@pytest.mark.req("S4-16", "S4-39")
def test_another_amount_under_the_same_rule_is_refused_and_names_what_is_there(rig: Rig) -> None:
    @tool(effect="irreversible", unique=("refund/{order}/{reason}",))
    async def refund(order: str, reason: str, cents: int) -> dict[str, str]:
        paid.append(cents)
        return {"id": f"P{len(paid)}"}

    paid: list[int] = []

    def wanted(cents: int, order: str = "A1") -> tuple[Wanted, ...]:
        given: dict[str, Json] = {"order": order, "reason": "late", "cents": cents}
        return (Wanted(tool="refund", arguments=given),)

    async def script(rt: Runtime) -> tuple[PlanValue, ...]:
        return (
            await propose(rt, wanted(10_000), text="refund 100"),
            await propose(rt, wanted(12_000), text="refund 120", session="other"),
            await propose(rt, wanted(12_000, order="A2"), text="refund of the other order"),
        )

    first, more, other = rig.run(script, refund)
    assert [one.state for one in (first, more, other)] == [
        PlanState.DONE,
        PlanState.PARTIAL,
        PlanState.DONE,
    ]
    assert paid == [10_000, 12_000]
    assert f"there may be one refund/A1/late, and {first.operations[0]} is that" in more.text


@pytest.mark.req("S4-39")
@pytest.mark.field("D11")
def test_of_two_workers_under_one_rule_the_database_refuses_the_second(rig: Rig) -> None:
    """Both decide before either has written: nothing but the insert of the name can tell."""
    rig.wrap = Slow

    def asking(session: str) -> Any:
        return lambda rt: rt.propose(LOGO, ask=Ask(principal=ANA, session=session))

    draft = act(rig.far, "draft", unique=("draft/{what}",))
    both = [rig.start(asking(session), draft) for session in ("s1", "s2")]
    rig.world.wait(*both)
    rig.check()
    states = sorted(process.result().state for process in both)
    assert states == [PlanState.DONE, PlanState.PARTIAL]
    assert len(rig.far.sends) == rig.far.total == 1


class Slow(Wrapped):
    """Each commit waits, so that others can decide on the same records meanwhile."""

    async def commit(self, changes: Any) -> Any:
        await asyncio.sleep(1.0)  # virtual time
        return await self.inner.commit(changes)


@pytest.mark.req("S4-16", "S4-39")
def test_a_rule_is_free_again_only_once_it_is_certain_that_nothing_happened(rig: Rig) -> None:
    rig.far.wire += [REPLY_LOST, REFUSED]
    rig.far.silent_questions = 5
    draft = act(rig.far, "draft", unique=("draft/{what}",))

    async def script(rt: Runtime) -> list[PlanValue]:
        doubted = await propose(rt, LOGO, text="one", patience_s=5.5, session="s1")
        while_unknown = await propose(rt, LOGO, text="two", session="s2")
        poster = calls("draft", "poster")
        refused = await propose(rt, poster, text="three", session="s3")
        after = await propose(rt, poster, text="four", session="s4")
        return [doubted, while_unknown, refused, after]

    doubted, while_unknown, refused, after = rig.run(script, draft)
    assert doubted.state in (PlanState.RUNNING, PlanState.IN_DOUBT)
    assert while_unknown.state is PlanState.PARTIAL
    assert "may turn out to be" in while_unknown.text
    assert (refused.state, after.state) == (PlanState.PARTIAL, PlanState.DONE)


@pytest.mark.field("D11")
def test_two_sessions_that_touch_one_thing_do_so_one_after_the_other(rig: Rig) -> None:
    """The second plan does not wait in the dark: it ends, and says which call is in the way."""
    rig.far.wire.append(Wire(replies_s=20.0))
    thing: dict[str, Any] = {"service": "bank", "target": ("order/{what}",), "deadline_s": 100.0}
    capture, refund = act(rig.far, "capture", **thing), act(rig.far, "refund", **thing)

    async def script(rt: Runtime) -> tuple[PlanValue, PlanValue, PlanValue]:
        first = asyncio.ensure_future(propose(rt, calls("capture", "A1"), session="s1"))
        await asyncio.sleep(1.0)  # virtual time
        blocked = await propose(rt, calls("refund", "A1"), session="s2")
        done = await first
        assert isinstance(await rt.status(blocked.operations[0]), Withdrawn)
        return done, blocked, await rt.retry(blocked.plan, principal=ANA)

    done, blocked, after = rig.run(script, capture, refund)
    assert (done.state, blocked.state, after.state) == (
        PlanState.DONE,
        PlanState.PARTIAL,
        PlanState.DONE,
    )
    assert f"{done.operations[0]} touches the same thing" in blocked.text
    assert rig.states("s2") == [State.WITHDRAWN, State.CONFIRMED]
    assert landed_in_order(rig) == ["capture A1", "refund A1"]


# A stop that comes at any moment.


@pytest.mark.req("S1-51", "S1-52", "S1-53")
@pytest.mark.field("D1")
@pytest.mark.parametrize("dies", [False, True])
@pytest.mark.parametrize("steps", sampled(range(64), every=3))
def test_after_a_stop_from_elsewhere_nothing_is_sent_for_the_first_time(
    steps: int, dies: bool
) -> None:
    """The other process stops after so many steps of the world; the first one may die of it."""
    with World() as world:
        rig = Rig(world)
        rig.far.wire += [Wire(replies_s=0.5)] * 4
        tools = office(rig.far)
        runs = rig.start(propose, *tools)
        world.timeline.drive(lambda: world.timeline.steps >= steps)
        stops = rig.start(stop_what_there_is, *tools)
        world.wait(stops)
        if dies:
            rig.kill(runs)
            world.settle()
            rig.run(stop_what_there_is, *tools)
        else:
            world.wait(runs)
            assert runs.result().state in (PlanState.STOPPED, PlanState.DONE)
        rig.check()
        events = rig.events()
        if "stop_asked" in events:
            assert "sent" not in events[events.index("stop_asked") :]


async def stop_what_there_is(rt: Runtime) -> None:
    held = await rt.driver.store.session_records(tenant="default", session="main")
    for record in held:
        if record.kind is Kind.PLAN:
            value = await rt.stop(record.id, principal=ANA)
            assert value.state in (PlanState.STOPPED, PlanState.DONE)
