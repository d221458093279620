"""The restaurant keeps its promises: as a service, under faults, in process and as a process."""

import asyncio
import functools
import random
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, Self

import httpx2
import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from landed.testing import sim
from landed.testing.worlds import restaurant, serve
from landed.testing.worlds.faults import Fault, Kind
from landed.testing.worlds.restaurant import Ledger, Restaurant
from landed.testing.worlds.transport import Witness, WorldTransport

KEY = "s1:op-a2"
FRIDAY: dict[str, Any] = {"day": "Fri", "time": "19:00", "party": 4}
SATURDAY = FRIDAY | {"day": "Sat"}
R1 = "R1 Fri 19:00 x4"
WAIT_MAX_S = 20.0

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class SetClock:
    """A clock that stands where the test put it."""

    at = 1_000.0

    def now(self) -> float:
        return self.at


class Sleeps(asyncio.Queue[tuple[float, asyncio.Event]]):
    """Delays that end when the test sets their event; no time at all passes by itself."""

    async def __call__(self, seconds: float) -> None:
        woken = asyncio.Event()
        self.put_nowait((seconds, woken))
        await woken.wait()


class World:
    """One restaurant in this process, the tasks of its world, its delays, and a client."""

    def __init__(
        self,
        *faults: Fault,
        path: str = ":memory:",
        app: ASGIApp | None = None,
        witness: Witness | None = None,
        **settings: Any,
    ) -> None:
        self.clock, self.sleeps = SetClock(), Sleeps()
        kept = Restaurant(**settings)
        self.app = restaurant.app(path, self.clock, faults, settings=kept, sleep=self.sleeps)
        self.sql = self.app.state.desk.ledger.sql
        self.tasks: list[asyncio.Task[None]] = []
        transport = WorldTransport(app or self.app, self.spawn, witness, latency_s=0.0)
        self.client = httpx2.AsyncClient(transport=transport, base_url="http://restaurant")

    def spawn(self, run: Coroutine[object, object, None]) -> asyncio.Task[None]:
        self.tasks.append(asyncio.ensure_future(run))
        return self.tasks[-1]

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        await self.client.aclose()
        self.sql.close()

    async def finish(self) -> None:
        """Let every request that has left come to its end."""
        await asyncio.wait_for(asyncio.gather(*self.tasks), WAIT_MAX_S)

    async def reserve(self, table: Any = FRIDAY, key: str = KEY, **how: Any) -> httpx2.Response:
        headers = {"Idempotency-Key": key} | how.pop("headers", {})
        body = {"content": table} if isinstance(table, bytes) else {"json": table}
        return await self.client.post("/reservations", **body, headers=headers, **how)

    async def delayed(self) -> tuple[asyncio.Future[httpx2.Response], asyncio.Event]:
        """A caller that waits for a reservation, and what lets its delay end."""
        waiting = asyncio.ensure_future(self.reserve())
        return waiting, (await self.sleeps.get())[1]

    async def cancel(self, name: str, fee: Any = 0, key: str = "s1:op-a9") -> httpx2.Response:
        body, headers = {"fee_cents": fee}, {"Idempotency-Key": key}
        return await self.client.post(f"/reservations/{name}/cancel", json=body, headers=headers)

    async def change(self, **settings: Any) -> httpx2.Response:
        return await self.client.post("/settings", json=settings)

    async def look(self, key: str = KEY) -> Any:
        return (await self.client.get(f"/keys/{key}")).raise_for_status().json()

    async def close(self, key: str = KEY) -> Any:
        return (await self.client.post(f"/keys/{key}/close")).raise_for_status().json()

    async def holds(self) -> list[str]:
        ledger = (await self.client.get("/reservations")).raise_for_status().json()
        return [one["text"] for one in ledger["reservations"]]

    async def log(self) -> list[str]:
        entries = (await self.client.get("/log")).raise_for_status().json()["log"]
        return [entry["text"] for entry in entries]


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with World() as world:
        yield world


def code(answer: httpx2.Response) -> tuple[int, str]:
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["status"] == answer.status_code
    return answer.status_code, answer.json()["code"]


# The restaurant


async def test_a_table_is_booked_listed_and_logged(world: World) -> None:
    made = await world.reserve()
    assert (made.status_code, made.json()) == (201, {"id": "R1", **FRIDAY})
    assert made.headers["x-position"] == "1"
    named = await world.reserve(SATURDAY | {"name": "Ada", "wishes": "window"}, "s1:op-a4")
    assert named.json() == {"id": "R2", **SATURDAY, "name": "Ada"}
    ledger = (await world.client.get("/reservations")).json()
    assert ledger["reservations"][0] == {"id": "R1", **FRIDAY, "text": R1, "key": KEY}
    entry = {"n": 1, "at": 1_000.0, "kind": "committed", "text": f"committed {R1}", "key": KEY}
    assert (await world.client.get("/log")).json()["log"][0] == entry


@pytest.mark.parametrize("strict", [False, True])
async def test_a_key_again_is_replayed_and_with_other_details_only_if_lenient(strict: bool) -> None:
    async with World(strict=strict) as world:
        first, again = await world.reserve(), await world.reserve()
        assert (again.status_code, again.json()) == (200, first.json())
        assert again.headers["idempotent-replayed"] == "true"
        assert "idempotent-replayed" not in first.headers
        assert await world.log() == [f"committed {R1}", "replayed R1"]
        other = await world.reserve(SATURDAY)
        if strict:
            assert code(other) == (422, "key-mismatch")
        else:
            assert (other.status_code, other.json()) == (200, first.json())
        # A key belongs to one kind of request, also where details are not compared.
        assert code(await world.cancel("R1", key=KEY)) == (422, "key-mismatch")
        assert await world.holds() == [R1]


REFUSED: list[tuple[object, tuple[int, str]]] = [
    *((FRIDAY | {"day": day}, (400, "bad-day")) for day in ("Someday", ["Fri"])),
    *((FRIDAY | {"time": time}, (400, "bad-time")) for time in ("25:00", "19:00\n", 19)),
    *((FRIDAY | {"party": party}, (400, "bad-party")) for party in (0, 21, True, "4", None)),
    *((FRIDAY | {"name": name}, (400, "bad-name")) for name in ("x" * 201, "A\nB", 7)),
    (FRIDAY | {"note": "x" * 10_000}, (413, "too-large")),
    *((body, (400, "bad-body")) for body in ([FRIDAY], b"{", b"\xff", b"[" * 9_000)),
    (FRIDAY | {"day": "Sun"}, (422, "full")),
]


@pytest.mark.parametrize(("table", "expected"), REFUSED)
async def test_a_refused_table_leaves_only_a_line_in_the_log_and_its_key_unused(
    table: object, expected: tuple[int, str]
) -> None:
    async with World(full=("Sun",)) as world:
        assert code(await world.reserve(table)) == expected
        assert await world.holds() == []
        assert (await world.log())[-1].startswith("refused ")
        assert (await world.look())["found"] is False
        assert (await world.reserve()).status_code == 201


@pytest.mark.parametrize("key", [None, b"", b"x" * 201, b"schl\xfcssel"])
async def test_a_missing_or_unfit_key_is_refused(key: bytes | None, world: World) -> None:
    headers = {} if key is None else {b"Idempotency-Key": key}
    answer = await world.client.post("/reservations", json=FRIDAY, headers=headers)
    assert code(answer) == (400, "bad-key")
    assert await world.holds() == []


async def test_availability_knows_the_full_days_and_has_no_effect() -> None:
    async with World(full=("Sat",)) as world:
        friday = await world.client.get("/availability", params=FRIDAY)
        saturday = await world.client.get("/availability", params=SATURDAY)
        assert (friday.json()["available"], saturday.json()["available"]) == (True, False)
        nobody = await world.client.get("/availability", params=FRIDAY | {"party": ""})
        assert code(nobody) == (400, "bad-party")
        await world.reserve(SATURDAY)
        assert (await world.log())[-1] == "refused Sat 19:00 x4: Sat is full"
        assert await world.holds() == []


async def test_booking_and_key_are_written_together_or_not_at_all(
    monkeypatch: pytest.MonkeyPatch, world: World
) -> None:
    def broken(*_: object) -> None:
        raise OSError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "bind", broken)
        assert (await world.reserve()).status_code == 500
    assert await world.holds() == []
    assert (await world.look())["found"] is False
    assert (await world.reserve()).json()["id"] == "R1"


async def test_ids_keys_and_log_go_on_after_a_restart(tmp_path: Path) -> None:
    path = str(tmp_path / "restaurant.db")
    async with World(path=path) as world:
        await world.reserve()
        await world.close("s1:op-a3")
    async with World(path=path) as world:
        assert (await world.reserve()).headers["idempotent-replayed"] == "true"
        assert code(await world.reserve(SATURDAY, "s1:op-a3")) == (422, "key-closed")
        assert (await world.reserve(SATURDAY, "s1:op-a4")).json()["id"] == "R2"
        entries = (await world.client.get("/log", params={"after": "2"})).json()["log"]
        assert [entry["n"] for entry in entries] == [3, 4, 5]
        later = (await world.client.get("/reservations", params={"after": "1"})).json()
        assert [one["id"] for one in later["reservations"]] == ["R2"]


async def test_no_endpoint_starts_a_thread(world: World) -> None:
    before = set(threading.enumerate())
    acts = (world.reserve, world.look, world.close, world.holds, world.log, world.change)
    for act in acts:
        await act()
    await world.cancel("R1")
    assert (await world.client.get("/nowhere")).status_code == 404
    assert (await world.client.put("/reservations")).status_code == 405
    assert set(threading.enumerate()) == before


async def test_a_lookup_tells_what_landed_with_a_position_and_never_by_a_404(world: World) -> None:
    before, made, after = await world.look(), await world.reserve(), await world.look()
    assert before == {"found": False, "position": 1}
    assert after == {"found": True, "reservation": made.json(), "position": 3}
    assert (made.status_code, made.headers["x-position"]) == (201, "2")
    assert (await world.log())[-1] == f"looked up {KEY}: R1"


@pytest.mark.req("S0-24")
async def test_a_request_that_arrives_after_its_key_was_closed_is_refused_and_logged() -> None:
    async with World(on_reserve("delay_request", seconds=30.0)) as world:
        waiting, arrival = await world.delayed()
        waiting.cancel()
        first, second = await world.close(), await world.close()
        assert (first, second) == ({"found": False, "position": 1}, first | {"position": 2})
        arrival.set()
        await world.finish()
        assert await world.holds() == []
        closed, refused = f"closed {KEY}: nothing has landed", f"key {KEY} is closed"
        assert await world.log() == [closed, closed, f"refused a late request: {refused}"]


async def test_closing_a_landed_key_tells_what_landed_and_refuses_a_resend(world: World) -> None:
    made = (await world.reserve()).json()
    assert await world.close() == {"found": True, "reservation": made, "position": 2}
    assert code(await world.reserve()) == (422, "key-closed")
    assert (await world.look())["reservation"] == made
    await world.close("s1:op-a9")
    assert code(await world.cancel("R1", key="s1:op-a9")) == (422, "key-closed")
    assert await world.holds() == [R1]


async def test_a_key_with_a_slash_is_looked_up_and_closed_like_any_other(world: World) -> None:
    await world.reserve(key="release/op-a2")
    assert (await world.look("release%2Fop-a2"))["found"] is True
    assert (await world.close("release/op-a2"))["found"] is True
    assert code(await world.client.get("/keys/" + "x" * 201)) == (400, "bad-key")


async def test_what_a_restaurant_does_not_offer_is_no_endpoint() -> None:
    async with World(can_look_up=False, can_close=False) as world:
        assert (await world.client.get(f"/keys/{KEY}")).status_code == 404
        assert (await world.client.post(f"/keys/{KEY}/close")).status_code == 404
        assert (await world.reserve()).status_code == 201


def assert_one_truth(closed: Any, sends: Sequence[httpx2.Response], held: int) -> None:
    """Either the close told of the effect, or every send was refused; never both, never neither."""
    landed = [answer.json() for answer in sends if answer.status_code == 201]
    refused = [code(answer) for answer in sends if answer.status_code not in (200, 201)]
    assert len(landed) == held == int(closed["found"])
    assert set(refused) <= {(422, "key-closed")}
    assert landed == [closed["reservation"]] if landed else len(refused) == len(sends)


@pytest.mark.req("S0-25")
async def test_1000_interleavings_of_commit_and_close_never_disagree(world: World) -> None:
    chance = random.Random(25)

    async def after_a_while(act: Callable[[], Awaitable[Any]]) -> Any:
        for _ in range(chance.randrange(12)):
            await asyncio.sleep(0)
        return await act()

    found = 0
    for n in range(1_000):
        key = f"s1:op-{n}"
        send = functools.partial(world.reserve, FRIDAY, key)
        acts = [functools.partial(world.close, key), *[send] * chance.choice((1, 1, 2))]
        closed, *sends = await asyncio.gather(*map(after_a_while, acts))
        count = "SELECT count(*) FROM reservation WHERE key = ?"
        assert_one_truth(closed, sends, world.sql.execute(count, (key,)).fetchone()[0])
        found += closed["found"]
    assert 200 < found < 800, "the interleavings must go both ways to prove anything"


async def test_a_cancellation_costs_what_was_agreed_and_is_done_once() -> None:
    async with World(fee_cents=2_000) as world:
        made = (await world.reserve()).json()
        gone = await world.cancel("R1", 2_000)
        assert gone.json() == made | {"cancelled": True, "fee_cents": 2_000}
        assert await world.holds() == []
        again = await world.cancel("R1", 2_000)
        assert (again.status_code, again.json()) == (200, gone.json())
        assert again.headers["idempotent-replayed"] == "true"
        assert code(await world.cancel("R1", 2_000, key="s1:op-b1")) == (422, "already-cancelled")
        done = [f"committed {R1}", "cancelled R1 (fee 20)", "replayed R1"]
        assert await world.log() == [*done, "refused a request: R1 is cancelled already"]
        assert (await world.look("s1:op-a9"))["reservation"] == gone.json()


@pytest.mark.parametrize("agreed_cents", [0, 2_000, 3_000, 3_051])
async def test_a_fee_other_than_the_agreed_one_cancels_nothing(agreed_cents: int) -> None:
    async with World(fee_cents=2_000) as world:
        await world.reserve()
        await world.change(fee_cents=3_050)
        assert (await world.log())[-1] == "changed: fee 30.50, full on no day"
        refused = await world.cancel("R1", agreed_cents)
        assert code(refused) == (422, "fee-changed")
        assert refused.json()["fee_cents"] == 3_050
        assert await world.holds() == [R1]
        assert (await world.client.get("/reservations")).json()["fee_cents"] == 3_050
        assert (await world.cancel("R1", 3_050)).status_code == 200


async def test_a_free_cancellation_needs_no_body_and_delete_does_the_same(world: World) -> None:
    await world.reserve()
    headers = {"Idempotency-Key": "s1:op-a9"}
    await world.client.delete("/reservations/R1/cancel", headers=headers)
    assert (await world.log())[-1] == "cancelled R1"


UNDONE: list[tuple[str, object, tuple[int, str]]] = [
    *((name, 0, (422, "no-such-reservation")) for name in ("R2", "R0", "1", "R1x", "r1")),
    *(("R1", fee, (400, "bad-fee-cents")) for fee in (-1, 1.5, "20", True, None, 2**53)),
]


@pytest.mark.parametrize(("name", "fee", "expected"), UNDONE)
async def test_an_unknown_reservation_or_no_amount_cancels_nothing(
    name: str, fee: object, expected: tuple[int, str], world: World
) -> None:
    await world.reserve()
    assert code(await world.cancel(name, fee)) == expected
    assert await world.holds() == [R1]


@pytest.mark.parametrize("full", [["Someday"], 6, "Sat", None])
async def test_settings_that_make_no_sense_change_nothing(full: object) -> None:
    async with World(full=("Sat",)) as world:
        assert code(await world.change(full=full)) == (400, "bad-settings")
        assert code(await world.reserve(SATURDAY)) == (422, "full")
        assert (await world.change(full=["Fri"])).json() == {"fee_cents": 0, "full": ["Fri"]}
        assert (await world.reserve(SATURDAY)).status_code == 201


DEADLINE = [("940", None), ("939.9", "too-old"), ("nan", "too-old"), ("soon", "bad-sent-at")]


@pytest.mark.parametrize(("sent_at", "expected"), DEADLINE)
async def test_a_request_past_the_deadline_is_refused(sent_at: str, expected: str | None) -> None:
    async with World(refuses_after_s=60.0) as world:
        assert code(await world.reserve()) == (400, "bad-sent-at")
        assert code(await world.cancel("R1")) == (400, "bad-sent-at")
        sent = {"X-Sent-At": sent_at}
        assert (await world.reserve(headers=sent)).json().get("code") == expected
        assert await world.holds() == ([] if expected else [R1])
        world.clock.at += 120.0  # A resend can be too late, too.
        assert code(await world.reserve(headers=sent))[1] in ("too-old", expected)


async def test_a_key_past_its_retention_is_forgotten_and_would_book_twice() -> None:
    async with World(retention_s=3_600.0) as world:
        await world.reserve()
        world.clock.at += 3_600.0
        assert (await world.look())["found"] is True
        world.clock.at += 1.0
        assert (await world.look())["found"] is False
        assert (await world.reserve()).json()["id"] == "R2"


# Faults and the network


def on_reserve(kind: Kind, **more: Any) -> Fault:
    return Fault(path="/reservations", method="POST", kind=kind, **more)


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


# As a process of its own


def reserve_at(url: str, key: str, timeout_s: float = WAIT_MAX_S) -> httpx2.Response:
    headers = {"Idempotency-Key": key}
    return httpx2.post(f"{url}/reservations", json=FRIDAY, headers=headers, timeout=timeout_s)


def test_a_served_restaurant_loses_replies_and_keeps_its_file(tmp_path: Path) -> None:
    path = str(tmp_path / "restaurant.db")
    lost = on_reserve("lose_reply"), on_reserve("drop", nth=2)
    hangs = on_reserve("lose_reply", nth=3, hang=True)
    with serve.start("restaurant", db=path, faults=[*lost, hangs]) as far:
        for key in ("k1", "k2"):
            with pytest.raises((httpx2.ReadError, httpx2.RemoteProtocolError)):
                reserve_at(far.url, key)
        with pytest.raises(httpx2.ReadTimeout):
            reserve_at(far.url, "k3", timeout_s=0.5)
        assert reserve_at(far.url, "k1").headers["idempotent-replayed"] == "true"
        assert httpx2.get(f"{far.url}/keys/k2").json()["found"] is False
        far.process.kill()
    with serve.start("restaurant", db=path, settings=Restaurant(full=("Fri",))) as far:
        held = httpx2.get(f"{far.url}/reservations").json()["reservations"]
        assert [one["key"] for one in held] == ["k1", "k3"]
        assert reserve_at(far.url, "k4").json()["code"] == "full"
        # The child ends when its parent does, which is when this stream ends.
        assert far.process.stdin is not None
        far.process.stdin.close()
        assert far.process.wait(WAIT_MAX_S) == 0


def test_a_world_that_can_not_start_is_an_error_and_leaves_no_process(tmp_path: Path) -> None:
    with pytest.raises(serve.WorldStartError, match="restaurant did not start"):
        serve.start("restaurant", db=str(tmp_path / "no" / "such" / "folder.db"))


UNREADABLE = [
    *(["--faults", text] for text in ("7", "[7]", '[{"kind": "explode", "path": "/"}]')),
    ["--faults", '[{"kind": "drop", "path": "/", "nth": 0}]'],
    ["--faults", '[{"kind": "drop", "path": "/", "seconds": -1}]'],
    *(["--settings", text] for text in ("{", '{"stars": 3}', '{"full": ["Someday"]}')),
    *(["--settings", text] for text in ('{"fee_cents": -1}', '{"retention_s": -1}')),
]


@pytest.mark.parametrize("wrong", UNREADABLE)
def test_a_command_line_that_makes_no_sense_is_refused(
    wrong: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        serve.main(["restaurant", "--db", ":memory:", *wrong])
    assert stopped.value.code == 2
    assert "bad --faults or --settings" in capsys.readouterr().err
