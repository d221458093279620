"""The restaurant keeps its promises about tables, keys, fees and refusals."""

import asyncio
import functools
import random
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import httpx2
import pytest

from landed.testing.worlds.far_side import KeyedLedger
from tests.testing.far_sides import FRIDAY, KEY, R1, SATURDAY, World, code, on_reserve

pytestmark = pytest.mark.anyio


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with World() as world:
        yield world


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
        patched.setattr(KeyedLedger, "bind", broken)
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


async def test_the_fee_of_a_reservation_is_told_and_changes_at_its_time() -> None:
    async with World(fee_cents=2_000, fee_after_s=60.0, fee_then_cents=3_000) as world:
        await world.reserve()
        world.clock.at += 59.0
        assert (await world.fee("R1")).json() == {"fee_cents": 2_000}
        world.clock.at += 1.0
        assert (await world.fee("R1")).json() == {"fee_cents": 3_000}
        assert (await world.client.get("/reservations")).json()["fee_cents"] == 3_000
        refused = await world.cancel("R1", 2_000)
        assert (code(refused), refused.json()["fee_cents"]) == ((422, "fee-changed"), 3_000)
        assert (await world.change(full=["Sat"])).json()["fee_cents"] == 3_000
        await world.change(fee_cents=0)  # What the owner says, stays.
        assert (await world.fee("R1")).json() == {"fee_cents": 0}
        assert (await world.cancel("R1", 0)).json()["fee_cents"] == 0
        assert code(await world.fee("R1")) == (422, "already-cancelled")
        assert code(await world.fee("R2")) == (422, "no-such-reservation")


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
