"""Faults and the network between an agent and a far side, in the same process."""

import asyncio
from typing import Any

import httpx2
import pytest
from starlette.types import Receive, Scope, Send

from landed.testing import sim
from landed.testing.worlds import restaurant
from landed.testing.worlds.faults import Fault, Kind
from landed.testing.worlds.transport import WorldTransport
from tests.testing.far_sides import FRIDAY, KEY, R1, SATURDAY, World, on_reserve

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(("kind", "held"), [("lose_reply", [R1]), ("drop", [])])
async def test_a_caller_that_never_hears_is_cut_off_or_gives_up(kind: Kind, held: Any) -> None:
    async with World(on_reserve(kind), on_reserve(kind, nth=2, hang=True)) as world:
        with pytest.raises(httpx2.ReadError):
            await world.reserve()
        assert await world.holds() == held
        with pytest.raises(httpx2.ReadTimeout):
            await world.reserve(timeout=0.02)
        await world.finish()
        assert await world.holds() == held


async def test_a_delayed_reply_comes_after_the_booking() -> None:
    async with World(on_reserve("delay_reply", seconds=5.0)) as world:
        waiting, arrival = await world.delayed()
        assert await world.holds() == [R1]
        assert not waiting.done()
        arrival.set()
        assert (await waiting).status_code == 201


async def test_a_duplicate_is_the_same_bytes_again_after_the_answer() -> None:
    async with World(on_reserve("duplicate", seconds=5.0)) as world:
        assert (await world.reserve()).status_code == 201
        _, second = await world.sleeps.get()
        assert await world.log() == [f"committed {R1}"]
        second.set()
        await world.finish()
        assert await world.log() == [f"committed {R1}", "replayed R1"]


async def test_a_500_may_come_after_the_booking_and_a_200_may_mean_nothing() -> None:
    phantom = on_reserve("accept_only", nth=2, body='{"id": "R2"}')
    async with World(on_reserve("error_after"), phantom) as world:
        assert (await world.reserve()).status_code == 500
        answer = await world.reserve(SATURDAY, "s1:op-a4")
        assert (answer.status_code, answer.json()) == (200, {"id": "R2"})
        assert await world.log() == [f"committed {R1}"]


async def test_a_fault_strikes_the_nth_request_of_its_method_and_path() -> None:
    closes = Fault(path="/keys/*/close", method="POST", nth=None, kind="drop")
    async with World(on_reserve("drop", nth=2), closes) as world:
        await world.holds()  # Another method on the same path doesn't count.
        assert (await world.reserve(key="k1")).status_code == 201
        with pytest.raises(httpx2.ReadError):
            await world.reserve(key="k2")
        assert (await world.reserve(key="k3")).status_code == 201
        for key in ("k1", "k2"):
            with pytest.raises(httpx2.ReadError):
                await world.close(key)
        assert (await world.look("k1"))["found"] is True


async def test_faults_nest_in_their_order_and_rules_for_one_path_share_a_count() -> None:
    twice, late = on_reserve("duplicate", seconds=7.0), on_reserve("delay_request", seconds=5.0)
    async with World(twice, late, on_reserve("error_after", nth=2)) as world:
        waiting, asked = asyncio.ensure_future(world.reserve()), list[float]()
        for _ in range(3):
            seconds, woken = await world.sleeps.get()
            asked.append(seconds)
            woken.set()
        await world.finish()
        assert asked == [5.0, 7.0, 5.0], "two copies are made, and each is late"
        assert (await waiting).status_code == 201
        assert (await world.reserve()).status_code == 500
        assert await world.log() == [f"committed {R1}", "replayed R1", "replayed R1"]


async def test_an_answer_in_pieces_is_heard_whole_and_a_broken_app_is_a_lost_connection() -> None:
    async def pieces(_scope: Scope, receive: Receive, send: Send) -> None:
        assert (await receive())["body"] == b"hello"
        await send({"type": "http.response.start", "status": 202})
        await send({"type": "http.response.body", "body": b"ac", "more_body": True})
        await send({"type": "http.response.body", "body": b"cepted"})
        assert (await receive())["type"] == "http.disconnect"
        raise OSError("broken")

    async with World(app=pieces) as world:
        answer = await world.client.post("/", content=b"hello")
        assert (answer.status_code, answer.text) == (202, "accepted")
        with pytest.raises(OSError, match="broken"):
            await world.finish()
        with pytest.raises(httpx2.ReadError):
            await world.client.post("/", content=b"goodbye")


async def test_a_witness_sees_every_request_before_it_leaves_and_may_stop_it() -> None:
    seen: list[str | None] = []

    async def witness(request: httpx2.Request) -> None:
        seen.append(request.headers.get("idempotency-key"))
        await asyncio.sleep(0)
        assert seen[-1] != "unrecorded"

    async with World(witness=witness) as world:
        await world.reserve()
        with pytest.raises(AssertionError):
            await world.reserve(key="unrecorded")
        assert await world.holds() == [R1]
        assert seen == [KEY, "unrecorded", None]


@pytest.mark.parametrize("crashes", [False, True])
def test_a_request_of_a_simulated_process_outlives_it(crashes: bool) -> None:
    with sim.World(seed=3) as world:
        app = restaurant.app(":memory:", world.clock, [on_reserve("delay_request", seconds=60.0)])
        sent: list[httpx2.Request] = []
        transport = WorldTransport(app, world.spawn, witness=sent.append)
        client = httpx2.AsyncClient(transport=transport, timeout=90.0)

        async def agent() -> tuple[int, float]:
            if crashes:
                asyncio.get_running_loop().call_later(30.0, sim.current_process().kill)
            headers, url = {"Idempotency-Key": KEY}, "http://restaurant/reservations"
            answer = await client.post(url, json=FRIDAY, headers=headers)
            return answer.status_code, round(world.clock.now() - world.start_at, 3)

        ended = world.run(agent)
        # 60 s of delay, and 10 ms of latency on the way there and on the way back.
        assert ended.result == (None if crashes else (201, 60.02))
        assert ended.crashed_at == ("kill" if crashes else None)
        world.settle()
        assert [request.method for request in sent] == ["POST"]
        [entry] = app.state.desk.ledger.log(after=0)
        arrived_s = round(entry["at"] - world.start_at, 3)
        assert (entry["text"], arrived_s) == (f"committed {R1}", 60.01)
        app.state.desk.ledger.sql.close()
