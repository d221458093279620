"""Refunds through the runtime: whatever the service does, the money moves once and truly."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from landed.core.canonical import Json
from landed.core.case import Ruling, Why
from landed.core.key import Ask
from landed.core.operation import Source, State
from landed.core.outcome import Absent, Found, LookOutcome, NotYet
from landed.core.rules import RULES, Rules
from landed.core.value import Accepted, Confirmed, Failed, Receipt, Undecided, Unknown
from landed.runtime.parts import assemble, register
from landed.runtime.runtime import Runtime
from landed.testing import sim
from landed.testing.designs import absent_is_no, lost_is_refused
from landed.testing.paying import payment_tools
from landed.testing.sim import World
from landed.testing.worlds import payments
from landed.testing.worlds.faults import Fault
from landed.testing.worlds.payments import Payments
from landed.testing.worlds.transport import WorldTransport
from landed.tools.http import HttpTool
from tests.runtime.rig import SELDOM, Rig

URL = "http://far.test"
REFUND: dict[str, Json] = {"order": "A17", "cents": 1_000}
HOUR_S = 3_600.0


@pytest.fixture
def rig() -> Any:
    with World() as world:
        yield Rig(world, lease=SELDOM)


class Wired:
    """A payments service of the rig's world, and what it was sent and asked."""

    def __init__(self, rig: Rig, *faults: Fault, **settings: Any) -> None:
        self.settings = Payments(**settings)
        self.world = rig.world
        self.app = payments.app(":memory:", rig.world.clock, faults, settings=self.settings)
        self.books = self.app.state.desk.ledger
        self.sends: list[str] = []
        self.questions: list[str] = []
        self.transport = WorldTransport(self.app, rig.world.spawn, self._see)

    def _see(self, request: Any) -> None:
        if request.method == "POST" and request.url.path == "/refunds":
            self.sends.append(request.headers.get("idempotency-key", ""))
        else:
            self.questions.append(request.url.path)

    def tool(self, **promises: Any) -> HttpTool:
        return payment_tools(URL, self.settings, transport=self.transport, **promises)[1]

    @property
    def refunds(self) -> list[int]:
        return [one["cents"] for one in self.books.refunds(self.world.clock.now())]

    @property
    def events(self) -> list[Any]:
        """What it delivers: each event twice, and the newest first."""
        told = self.books.events(self.world.clock.now())
        return [event for event in reversed(told) for _ in range(2)]


async def refund(rt: Runtime) -> Any:
    return await rt.perform("refund_order", REFUND, ask=Ask(call_id="1"), patience_s=48 * HOUR_S)


def on_refund(kind: Any, **more: Any) -> Fault:
    return Fault(path="/refunds", kind=kind, **more)


def wrongly(rig: Rig, rules: Rules, script: Callable[[Runtime], Any], *tools: Any) -> Any:
    """Run a script under other rules, in the rig's world and store."""

    async def agent() -> Any:
        clock = sim.current_process().clock
        async with assemble(
            rig.base.open_again(),
            tools=register(tools),
            clock=clock,
            ids=rig.world.ids,
            worker="wrong",
            lease=SELDOM,
            rules=rules,
        ) as rt:
            return await script(rt)

    process = rig.world.start(agent)
    rig.world.wait(process)
    return process.result()


# What is lost on the way.


@pytest.mark.req("S4-02", "S4-40")
@pytest.mark.parametrize(
    "faults",
    [
        (on_refund("lose_reply"),),
        (on_refund("lose_reply", hang=True),),
        (on_refund("drop"),),
        (on_refund("error_after"),),
        (on_refund("duplicate", seconds=2.0),),
        (on_refund("delay_request", seconds=30.0),),
        (on_refund("delay_reply", seconds=30.0),),
        (on_refund("delay_request", seconds=30.0), on_refund("lose_reply", nth=2)),
    ],
    ids=lambda faults: "+".join(f.kind for f in faults),
)
def test_whatever_is_lost_there_is_one_refund(rig: Rig, faults: tuple[Fault, ...]) -> None:
    wired = Wired(rig, *faults)
    assert isinstance(rig.run(refund, wired.tool()), Confirmed)
    rig.world.settle()
    assert wired.refunds == [1_000]
    assert len(set(wired.sends)) == 1


# X55: a replica that lags.


LAG_S = 30.0


@pytest.mark.req("S4-35", "S4-37")
@pytest.mark.fault("X55")
def test_a_lookup_of_a_replica_that_lags_is_no_no(rig: Rig) -> None:
    """Without keys, only the service's own deadline and the lag together make an absence a no."""
    lost = on_refund("lose_reply")
    wired = Wired(rig, lost, lag_s=LAG_S, refuses_after_s=60.0)
    tool = wired.tool(reads="/replica", settlement_lag_s=LAG_S, compares_payload=False)
    assert isinstance(rig.run(refund, tool), Confirmed)
    assert (wired.refunds, len(wired.sends)) == ([1_000], 1)
    assert rig.first_at("found") - rig.first_at("sent") >= LAG_S


@pytest.mark.req("F4-07")
@pytest.mark.fault("X55")
@pytest.mark.parametrize(("rules", "refunds"), [(RULES, 1), (None, 2)], ids=["right", "wrong"])
def test_who_reads_a_stale_replica_as_a_no_refunds_twice(
    rig: Rig, rules: Rules | None, refunds: int
) -> None:
    """The agent tries again after a definite no, as it may; so the no must be one."""
    wired = Wired(rig, on_refund("lose_reply"), lag_s=LAG_S, can_close=False)
    tool = wired.tool(reads="/replica", compares_payload=False)

    async def until_it_is_done(rt: Runtime) -> Any:
        value: Any = None
        for call_id in ("1", "2"):
            ask = Ask(call_id=call_id)
            value = await rt.perform("refund_order", REFUND, ask=ask, patience_s=HOUR_S)
            if not isinstance(value, Failed):
                break
        return value

    used = rules or replace(RULES, absorb=absent_is_no)
    assert isinstance(wrongly(rig, used, until_it_is_done, tool), Confirmed)
    assert wired.refunds == [1_000] * refunds


@pytest.mark.req("S4-35")
@pytest.mark.fault("X55")
@pytest.mark.parametrize("drops", [0, 1])
def test_a_read_back_is_yes_no_or_too_early_by_its_position(rig: Rig, drops: int) -> None:
    wired = Wired(rig, lag_s=LAG_S, drops=drops)
    tool = wired.tool(reads="/replica", read_back=True, settlement_lag_s=120.0)
    wired.books.note("earlier", "another customer's refund")

    async def script(rt: Runtime) -> Any:
        first = await rt.perform("refund_order", REFUND, ask=Ask(call_id="1"), patience_s=5.0)
        assert isinstance(first, Accepted)
        return await refund(rt)

    value = rig.run(script, tool)
    assert isinstance(value, Failed if drops else Confirmed)
    settled_at = rig.first_at("read_absent" if drops else "read_back")
    assert settled_at - rig.first_at("accepted") >= LAG_S - 1.0
    assert wired.refunds == [1_000] * (1 - drops)


# X56, X57: keys that are forgotten, payloads that are not compared.


@pytest.mark.req("S4-38")
@pytest.mark.fault("X56")
@pytest.mark.parametrize("landed", [True, False])
def test_past_its_retention_a_key_is_neither_sent_again_nor_believed(
    rig: Rig, landed: bool
) -> None:
    """The first send may have landed; the service was out of reach until it had forgotten."""
    gone = Fault(path="/keys/*", method="GET", nth=None, kind="drop")
    retention_s = 600.0
    wired = Wired(
        rig,
        on_refund("lose_reply" if landed else "drop"),
        on_refund("drop", nth=2),
        gone,
        retention_s=retention_s,
        can_close=False,
    )
    long = wired.tool(escalate_after_s=25 * HOUR_S)
    value = rig.run(refund, long)
    assert isinstance(value, Undecided)
    assert len(wired.sends) == 1
    assert wired.refunds == [1_000] * landed


@pytest.mark.req("S4-38", "S4-36")
@pytest.mark.fault("X56")
def test_what_a_service_has_forgotten_is_not_absent(rig: Rig) -> None:
    wired = Wired(rig, on_refund("lose_reply"), retention_s=60.0, can_close=False)

    async def late(rt: Runtime) -> Any:
        return await rt.perform(
            "refund_order", REFUND, ask=Ask(call_id="1"), patience_s=48 * HOUR_S
        )

    tool = wired.tool(escalate_after_s=2 * HOUR_S)
    real = tool.lookup
    started_at = rig.world.clock.now()

    async def only_late(call: Any) -> LookOutcome:
        """Nobody could be asked for an hour."""
        if rig.world.clock.now() < started_at + HOUR_S:
            return NotYet(reason="down")
        return await real(call)

    tool.lookup = only_late  # type: ignore[method-assign]
    assert isinstance(rig.run(late, tool), Undecided)
    last = rig.operation().evidence
    assert any("may have forgotten" in one.says for one in last)
    assert (wired.refunds, len(wired.sends)) == ([1_000], 1)


@pytest.mark.fault("X57")
@pytest.mark.parametrize("landed", [True, False])
def test_where_payloads_are_not_compared_a_key_is_not_sent_again(rig: Rig, landed: bool) -> None:
    kind = "lose_reply" if landed else "drop"
    wired = Wired(rig, on_refund(kind), strict=False, can_close=False)
    value = rig.run(refund, wired.tool())
    assert isinstance(value, Confirmed if landed else Undecided)
    assert len(wired.sends) == 1


@pytest.mark.fault("X57")
def test_the_answer_to_another_payload_is_not_taken_for_ours(rig: Rig) -> None:
    """Each call has a key of its own, so that a service that does not compare cannot mix them."""
    wired = Wired(rig, strict=False)

    async def both(rt: Runtime) -> Any:
        first = await rt.perform("refund_order", REFUND)
        return first, await rt.perform("refund_order", {**REFUND, "cents": 7})

    first, second = rig.run(both, wired.tool())
    assert (first.result["cents"], second.result["cents"]) == (1_000, 7)
    assert (wired.refunds, len(set(wired.sends))) == ([1_000, 7], 2)


# X59: 200, and nothing happened.


@pytest.mark.req("S4-32", "F4-10")
@pytest.mark.fault("X59")
@pytest.mark.field("E6")
@pytest.mark.parametrize(
    ("positions", "end"), [(True, Failed), (False, Undecided)], ids=["position", "none"]
)
def test_a_yes_to_what_never_happened_is_never_confirmed(
    rig: Rig, positions: bool, end: type
) -> None:
    wired = Wired(rig, drops=9, positions=positions)
    tool = wired.tool(read_back=True, settlement_lag_s=60.0, max_tries=2)
    value = rig.run(refund, tool)
    assert isinstance(value, end), value
    assert "confirmed" not in [one.state for one in rig.operations()]
    assert wired.refunds == []


@pytest.mark.req("F4-10")
@pytest.mark.field("E6")
def test_who_believes_the_return_value_tells_of_a_refund_that_is_not_there(rig: Rig) -> None:
    wired = Wired(rig, drops=1)
    assert isinstance(rig.run(refund, wired.tool()), Confirmed)
    assert wired.refunds == []


@pytest.mark.req("S4-33")
@pytest.mark.fault("X59")
@pytest.mark.parametrize("keyed", [True, False])
def test_what_cannot_be_read_back_goes_again_under_the_same_key_or_not_at_all(
    rig: Rig, keyed: bool
) -> None:
    wired = Wired(rig, drops=1, positions=False, keyed=keyed)
    value = rig.run(refund, wired.tool(read_back=True, settlement_lag_s=60.0))
    assert isinstance(value, Confirmed if keyed else Undecided), value
    assert (len(wired.sends), len(set(wired.sends))) == (2 if keyed else 1, 1)
    assert wired.refunds == [1_000] * keyed


@pytest.mark.req("S4-34", "S4-52")
def test_it_is_read_back_at_the_refund_and_the_evidence_says_from_where(rig: Rig) -> None:
    """Not at the key that was written to, which would say yes to what was only taken."""
    wired = Wired(rig, settles_after_s=20.0)
    assert isinstance(rig.run(refund, wired.tool(read_back=True, settlement_lag_s=60.0)), Confirmed)
    assert set(wired.questions) == {"/refunds/RF1"}
    last = rig.operation().evidence[-1]
    assert (last.source, last.position) == (Source.READ_BACK, 1)


@pytest.mark.req("S4-31")
@pytest.mark.parametrize("promised_s", [0.0, 90.0])
def test_what_turns_up_after_it_had_to_be_there_is_a_debt_that_somebody_signs_off(
    rig: Rig, promised_s: float
) -> None:
    """The replica is 90 s behind; who was told so has nothing to explain."""
    wired = Wired(rig, on_refund("lose_reply"), lag_s=90.0, can_close=False)
    tool = wired.tool(reads="/replica", settlement_lag_s=promised_s, compares_payload=False)

    async def script(rt: Runtime) -> Any:
        value = await refund(rt)
        before = await rt.inbox()
        for case in before:
            await rt.resolve(case.id, ruling=Ruling.SIGN_OFF, by="ana", note="the replica was slow")
        return value, before, await rt.inbox()

    value, before, after = rig.run(script, tool)
    assert isinstance(value, Confirmed)
    assert [case.why for case in before] == [Why.UNEXPLAINED] * (promised_s == 0.0)
    assert after == ()
    assert wired.refunds == [1_000]


# X60: 500, and it happened.


@pytest.mark.fault("X60")
@pytest.mark.parametrize("can_look_up", [True, False])
def test_a_500_that_is_replayed_is_never_taken_for_a_no(rig: Rig, can_look_up: bool) -> None:
    wired = Wired(rig, breaks=1, can_look_up=can_look_up, can_close=False)
    value = rig.run(refund, wired.tool())
    assert isinstance(value, Confirmed if can_look_up else Undecided)
    assert wired.refunds == [1_000]


@pytest.mark.fault("X60")
def test_who_takes_a_500_for_a_no_tells_of_no_refund_where_there_is_one(rig: Rig) -> None:
    wired = Wired(rig, breaks=1)
    value = wrongly(rig, replace(RULES, absorb=lost_is_refused), refund, wired.tool())
    assert isinstance(value, Failed)
    assert wired.refunds == [1_000]


# X61: taken now, decided later, told twice and the wrong way round.


@pytest.mark.fault("X61")
@pytest.mark.parametrize("bounces", [False, True])
def test_what_is_taken_is_accepted_until_it_is_read_back(rig: Rig, bounces: bool) -> None:
    wired = Wired(rig, settles_after_s=90.0, bounces=["A17"] * bounces)
    tool = wired.tool(read_back=True, settlement_lag_s=600.0)

    async def script(rt: Runtime) -> Any:
        first = await rt.perform("refund_order", REFUND, ask=Ask(call_id="1"), patience_s=30.0)
        assert isinstance(first, Accepted)
        return await refund(rt)

    assert isinstance(rig.run(script, tool), Failed if bounces else Confirmed)
    assert len(wired.sends) == 1


@pytest.mark.fault("X61")
@pytest.mark.parametrize("bounces", [False, True])
def test_events_that_come_twice_and_the_wrong_way_round_settle_it_once(
    rig: Rig, bounces: bool
) -> None:
    wired = Wired(rig, settles_after_s=90.0, bounces=["A17"] * bounces, events="shuffled")

    async def told(rt: Runtime) -> Any:
        first = await rt.perform("refund_order", REFUND, ask=Ask(call_id="1"), patience_s=30.0)
        assert isinstance(first, Accepted)
        await asyncio.sleep(90.0)  # virtual time
        for event in wired.events:
            await rt.receive(
                event["type"],
                principal="payments",
                delivery=f"{event['id']}/{event['version']}",
                origin="webhook",
                evidence=Receipt(outcome=said_by(event), key=event["refund"]["key"]),
            )
        return await refund(rt)

    value = rig.run(told, wired.tool())
    assert isinstance(value, Failed if bounces else Confirmed), value
    settling = [one for one in rig.events("op-a1") if one not in ("made", "sent", "looked", "told")]
    assert settling[0] == "accepted"
    assert len(settling) == 2, settling


def said_by(event: Any) -> LookOutcome:
    """What an application reads from an event, once it has verified where it came from."""
    match event["type"]:
        case "refund.succeeded":
            return Found(result=event["refund"])
        case "refund.failed":
            return Absent()
        case _:
            return NotYet(reason="pending")


# What two refunds come to, and refunds that nobody asked for.


@pytest.mark.req("S4-19")
def test_two_wishes_for_one_order_never_refund_more_than_was_paid(rig: Rig) -> None:
    wired = Wired(rig, orders={"A17": 1_500})

    async def both(rt: Runtime) -> Any:
        first = await rt.perform("refund_order", REFUND, ask=Ask(call_id="1"))
        return first, await rt.perform("refund_order", REFUND, ask=Ask(call_id="2"))

    first, second = rig.run(both, wired.tool())
    assert (type(first), type(second)) == (Confirmed, Failed)
    assert "500 cents of A17 are left" in second.reason
    assert (wired.refunds, len(set(wired.sends))) == ([1_000], 2)


def test_a_sweep_finds_what_nobody_recorded_and_what_was_in_doubt(rig: Rig) -> None:
    silent = Fault(path="/keys/*", method="GET", nth=None, kind="drop")
    wired = Wired(rig, on_refund("lose_reply"), on_refund("drop", nth=2), silent, can_close=False)

    async def script(rt: Runtime) -> Any:
        first = await rt.perform("refund_order", REFUND, ask=Ask(call_id="1"), patience_s=9.0)
        assert isinstance(first, Unknown)
        wired.books.refund({"order": "A17", "cents": 5, "reason": None}, "by-hand", 1.0)
        swept = await rt.sweep("refund_order")
        return swept, await refund(rt)

    swept, value = rig.run(script, wired.tool())
    assert (swept.listed, swept.settled, swept.cases) == (2, 1, 1)
    assert isinstance(value, Confirmed)
    assert rig.states() == [State.CONFIRMED]
