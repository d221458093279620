"""The demo's tools reach their far sides, and say in words what became of each call."""

from typing import Any

import pytest

from landed.core.outcome import Absent, Acknowledged, AnswerLost, Found, Refused
from landed.core.value import Assumed, Confirmed, Failed, Value
from landed.runtime.parts import assemble, register
from landed.stores.sqlite import open_sqlite
from landed.testing import sim
from landed.testing.booking import booking_tools, text_tools
from landed.testing.worlds import texts
from landed.testing.worlds.faults import Fault, Kind
from landed.testing.worlds.restaurant import Restaurant
from landed.testing.worlds.texts import Texts
from landed.testing.worlds.transport import WorldTransport
from landed.tools.http import HttpTool
from tests.testing.far_sides import R1, TextWorld, World
from tests.tools.calls import call_of

URL = "http://far.test"
HELLO = {"to": "group", "text": "table for 4, Fri 19:00"}
SAID = "Texted group 'table for 4, Fri 19:00'"


def cancelling(world: World, **settings: Any) -> HttpTool:
    tools = booking_tools(URL, Restaurant(**settings), transport=world.transport)
    return {tool.name: tool for tool in tools}["cancel_reservation"]


@pytest.mark.anyio
async def test_a_cancellation_is_sent_looked_up_and_closed_under_its_key() -> None:
    async with World(strict=True, fee_cents=2_000) as world:
        made = (await world.reserve()).json()
        tool = cancelling(world, strict=True)
        call = call_of(tool.check({"id": "R1", "fee_cents": 2_000}), key="s1:op-a9")
        assert await tool.lookup(call) == Absent(position=2)
        gone = made | {"cancelled": True, "fee_cents": 2_000}
        assert await tool.send(call) == Acknowledged(result=gone, position=3)
        assert await tool.lookup(call) == Found(result=gone, position=4)
        assert await tool.close(call) == Found(result=gone, position=5)
        assert isinstance(await tool.send(call), Refused)
        assert await world.holds() == []


@pytest.mark.anyio
async def test_a_cancellation_without_the_fee_of_now_is_refused() -> None:
    async with World(fee_cents=2_000) as world:
        await world.reserve()
        tool = cancelling(world)
        outcome = await tool.send(call_of(tool.check({"id": "R1"})))
        assert isinstance(outcome, Refused)
        assert "cancelling R1 costs 20 now" in outcome.reason
        assert await world.holds() == [R1]


@pytest.mark.parametrize(("can_look_up", "can_close"), [(True, False), (False, True)])
def test_both_keyed_tools_promise_what_the_restaurant_offers(
    can_look_up: bool, can_close: bool
) -> None:
    offered = Restaurant(
        strict=True,
        can_look_up=can_look_up,
        can_close=can_close,
        retention_s=60.0,
        refuses_after_s=9.0,
    )
    for tool in booking_tools(URL, offered)[1:3]:
        kept = tool.contract
        assert (kept.lookup, kept.close) == (can_look_up, can_close), tool.name
        assert (kept.compares_payload, kept.retention_s, kept.refuses_after_s) == (True, 60.0, 9.0)
        assert kept.key_form == "{session}:{operation}"


@pytest.mark.anyio
async def test_a_text_is_sent_without_a_key_and_nobody_can_ask_about_it() -> None:
    async with TextWorld(Fault(path="/texts", nth=2, kind="lose_reply")) as world:
        [tool] = text_tools(URL, transport=world.transport)
        call = call_of(tool.check(HELLO), key="")
        receipt = {"id": "M1", **HELLO}
        assert await tool.send(call) == Acknowledged(result=receipt, position=1)
        assert isinstance(await tool.send(call), AnswerLost)
        assert len(await world.sent()) == 2
        kept = tool.contract
        assert (kept.keyed, kept.lookup, kept.close) == ("", False, False)


def on_text(kind: Kind, **more: Any) -> tuple[Fault]:
    return (Fault(path="/texts", kind=kind, **more),)


ASSUMED = f"{SAID}, though I couldn't confirm it, so I've treated it as sent."
ENDS: list[tuple[tuple[Fault, ...], Texts, type, str, int]] = [
    ((), Texts(), Confirmed, f"{SAID}.", 1),
    (on_text("delay_reply", seconds=0.02), Texts(), Confirmed, f"{SAID}.", 1),
    (on_text("lose_reply"), Texts(), Assumed, ASSUMED, 1),
    (on_text("lose_reply", hang=True), Texts(), Assumed, ASSUMED, 1),
    # It is harmless to be wrong about a text; this is what that looks like.
    (on_text("drop"), Texts(), Assumed, ASSUMED, 0),
    ((), Texts(unreachable=("group",)), Failed, "Group was not texted", 0),
]


@pytest.mark.parametrize(("faults", "settings", "end", "said", "delivered"), ENDS)
def test_the_runtime_tells_a_receipt_from_an_assumption_and_never_texts_twice(
    faults: tuple[Fault, ...], settings: Texts, end: type, said: str, delivered: int
) -> None:
    with sim.World() as world:
        app = texts.app(":memory:", world.clock, faults, settings=settings)
        tools = text_tools(URL, transport=WorldTransport(app, world.spawn))

        async def agent() -> Value:
            clock, store = sim.current_process().clock, open_sqlite(":memory:")
            async with assemble(
                store, tools=register(tools), clock=clock, ids=world.ids, worker="w1"
            ) as rt:
                return await rt.perform("text_group", HELLO)

        value = world.run(agent).result
        assert value is not None
        assert isinstance(value, end)
        assert value.text.startswith(said)
        world.settle()
        texted = [one for one in app.state.desk.ledger.log(after=0) if one["kind"] == "texted"]
        assert len(texted) == delivered
        app.state.desk.ledger.sql.close()
