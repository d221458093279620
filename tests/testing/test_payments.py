"""The payments service keeps its word, and breaks it in each way that its settings say."""

from pathlib import Path
from typing import Any

import httpx2
import pytest

from landed.core.outcome import Acknowledged, Found, Listed, NoAnswer
from landed.testing.check_tool import Verdict, check_tool
from landed.testing.paying import payment_tools
from landed.testing.worlds import payments, serve
from landed.testing.worlds.faults import Fault
from landed.testing.worlds.payments import Payments
from tests.testing.far_sides import FarSide, SetClock, Sleeps, code
from tests.tools.calls import SENT_AT, call_of

pytestmark = pytest.mark.anyio
URL = "http://far.test"
TEN: dict[str, Any] = {"order": "A17", "cents": 1_000}
RF1 = {"id": "RF1", **TEN, "status": "succeeded"}


class Far(FarSide):
    """A payments service in this process, and its tools."""

    def __init__(self, *faults: Fault, tool: Any = None, **settings: Any) -> None:
        self.clock, sleeps = SetClock(), Sleeps()
        kept = Payments(**settings)
        own = payments.app(":memory:", self.clock, faults, settings=kept, sleep=sleeps)
        super().__init__(own, sleeps, witness=None, before=None)
        self.total, self.refund = payment_tools(URL, kept, transport=self.transport, **(tool or {}))

    async def ask(self, body: Any = TEN, key: str = "k1", **headers: str) -> httpx2.Response:
        return await self.client.post(
            "/refunds", json=body, headers={"Idempotency-Key": key, **headers}
        )

    async def get(self, path: str) -> Any:
        return (await self.client.get(path)).raise_for_status().json()

    async def close(self, key: str) -> Any:
        return (await self.client.post(f"/keys/{key}/close")).raise_for_status().json()

    async def held(self) -> list[int]:
        return [one["cents"] for one in (await self.get("/refunds"))["refunds"]]


async def test_a_refund_is_made_once_for_each_key() -> None:
    async with Far() as far:
        made = await far.ask()
        assert (made.status_code, made.json(), made.headers["x-position"]) == (201, RF1, "1")
        again = await far.ask()
        assert (again.json(), again.headers["idempotent-replayed"]) == (RF1, "true")
        assert code(await far.ask(TEN | {"cents": 1_001})) == (422, "key-mismatch")
        assert await far.held() == [1_000]
        assert await far.get("/keys/k1") == {"found": True, "position": 3, "refund": RF1}
        assert await far.get("/keys/k2") == {"found": False, "position": 3}
        assert (await far.get("/orders/A17"))["left_cents"] == 9_000


@pytest.mark.req("S4-19")
async def test_two_keys_for_one_order_never_refund_more_than_was_paid() -> None:
    async with Far(orders={"A17": 1_500}) as far:
        assert (await far.ask()).status_code == 201
        second = await far.ask(key="k2")
        assert (code(second), second.json()["left_cents"]) == ((422, "exceeds-total"), 500)
        assert (await far.ask(TEN | {"cents": 500}, key="k3")).status_code == 201
        assert await far.held() == [1_000, 500]


REFUSED: list[tuple[Any, str, tuple[int, str]]] = [
    ({"order": "A18", "cents": 1}, "k1", (422, "no-such-order")),
    ({"order": "", "cents": 1}, "k1", (400, "bad-order")),
    ({"order": 7, "cents": 1}, "k1", (400, "bad-order")),
    (TEN | {"cents": 0}, "k1", (400, "bad-refund")),
    (TEN | {"cents": -5}, "k1", (400, "bad-cents")),
    (TEN | {"cents": 1.5}, "k1", (400, "bad-cents")),
    (TEN | {"reason": 7}, "k1", (400, "bad-refund")),
    (TEN, "", (400, "bad-key")),
    (TEN, "x" * 201, (400, "bad-key")),
    ([TEN], "k1", (400, "bad-body")),
]


@pytest.mark.parametrize(("body", "key", "expected"), REFUSED)
async def test_every_refusal_comes_before_any_effect(
    body: Any, key: str, expected: tuple[int, str]
) -> None:
    async with Far() as far:
        assert code(await far.ask(body, key)) == expected
        assert await far.held() == []
        assert (await far.get("/keys/k1"))["found"] is False


async def test_what_was_paid_is_noted_by_hand_and_stays() -> None:
    async with Far(orders={}) as far:
        for cents in (700, 900):
            said = await far.client.post("/orders", json={"order": "B1", "cents": cents})
            assert (said.status_code, said.json()["cents"]) == (201, 700)
        assert code(await far.client.get("/orders/B2")) == (422, "no-such-order")
        assert (await far.get("/refunds/RF1"))["found"] is False
        assert code(await far.client.get("/refunds?since=noon")) == (400, "bad-time")


async def test_a_closed_key_is_refused_from_then_on() -> None:
    async with Far() as far:
        assert (await far.close("k1"))["found"] is False
        assert code(await far.ask()) == (422, "key-closed")
        await far.ask(key="k2")
        assert (await far.close("k2"))["refund"] == RF1
        assert await far.held() == [1_000]


@pytest.mark.parametrize("setting", ["can_look_up", "can_close"])
async def test_what_it_does_not_offer_is_not_there(setting: str) -> None:
    async with Far(**{setting: False}) as far:
        method = "GET" if setting == "can_look_up" else "POST"
        path = "/keys/k1" if setting == "can_look_up" else "/keys/k1/close"
        assert (await far.client.request(method, path)).status_code == 404
        assert far.refund.contract.lookup is (setting != "can_look_up")
        assert far.refund.contract.close is (setting != "can_close")


# How it misbehaves.


@pytest.mark.fault("X56")
async def test_a_key_is_forgotten_after_its_time_and_the_refund_is_not() -> None:
    async with Far(retention_s=60.0) as far:
        await far.ask()
        far.clock.at += 61.0
        assert (await far.get("/keys/k1"))["found"] is False
        assert (await far.ask()).json()["id"] == "RF2"
        assert await far.held() == [1_000, 1_000]


@pytest.mark.fault("X57")
async def test_without_comparing_it_replays_the_first_answer_to_anything() -> None:
    async with Far(strict=False) as far:
        await far.ask()
        assert (await far.ask(TEN | {"cents": 7})).json() == RF1
        assert await far.held() == [1_000]


async def test_without_keys_every_request_is_a_refund() -> None:
    async with Far(keyed=False) as far:
        for _ in range(2):
            assert (await far.ask()).status_code == 201
        assert await far.held() == [1_000, 1_000]
        kept = far.refund.contract
        assert (kept.keyed, kept.lookup, kept.close) == ("", False, False)


@pytest.mark.fault("X55")
@pytest.mark.req("S4-35")
async def test_the_replica_is_behind_and_says_how_far() -> None:
    async with Far(lag_s=10.0) as far:
        far.clock.at += 20.0
        made = await far.ask()
        assert await far.get("/keys/k1") == {"found": True, "position": 1, "refund": RF1}
        assert await far.get("/replica/keys/k1") == {"found": False, "position": 0}
        assert (await far.get("/replica/refunds"))["refunds"] == []
        assert (await far.get("/replica/refunds/RF1"))["found"] is False
        far.clock.at += 10.0
        seen = await far.get("/replica/keys/k1")
        assert (seen["found"], seen["position"]) == (True, int(made.headers["x-position"]))


@pytest.mark.fault("X59")
async def test_it_may_say_yes_and_do_nothing() -> None:
    async with Far(drops=1) as far:
        yes = await far.ask()
        assert (yes.status_code, yes.json()) == (201, RF1 | {"id": "RF9001"})
        assert await far.held() == []
        assert (await far.get("/refunds/RF9001"))["found"] is False
        assert (await far.ask()).json() == RF1


@pytest.mark.fault("X60")
async def test_it_may_say_500_and_have_done_it_and_say_it_again() -> None:
    async with Far(breaks=1) as far:
        assert [(await far.ask()).status_code for _ in range(3)] == [500, 500, 500]
        assert await far.held() == [1_000]
        assert (await far.get("/keys/k1"))["refund"] == RF1
        assert (await far.ask(key="k2")).status_code == 201


@pytest.mark.fault("X61")
@pytest.mark.parametrize("ends", ["succeeded", "failed"])
async def test_it_may_take_a_refund_and_decide_later(ends: str) -> None:
    bounces = ["A17"] if ends == "failed" else []
    async with Far(settles_after_s=30.0, bounces=bounces, orders={"A17": 1_500}) as far:
        taken = await far.ask()
        assert (taken.status_code, taken.json()["status"]) == (202, "pending")
        assert (await far.get("/refunds/RF1"))["found"] is None
        assert code(await far.ask(key="k2")) == (422, "exceeds-total")
        far.clock.at += 30.0
        assert (await far.get("/refunds/RF1"))["found"] is (ends == "succeeded")
        assert (await far.get("/orders/A17"))["left_cents"] == (
            500 if ends == "succeeded" else 1_500
        )
        told = (await far.get("/events"))["events"]
        assert [(one["type"], one["version"]) for one in told] == [
            ("refund.pending", 1),
            (f"refund.{ends}", 2),
        ]


@pytest.mark.fault("X61")
async def test_events_may_come_twice_and_the_wrong_way_round() -> None:
    async with Far(settles_after_s=30.0, events="shuffled") as far:
        await far.ask()
        assert [one["version"] for one in (await far.get("/events"))["events"]] == [1, 1]
        far.clock.at += 30.0
        told = (await far.get("/events"))["events"]
        assert [one["version"] for one in told] == [2, 2, 1, 1]
        assert told[0]["refund"] == {"id": "RF1", **TEN, "key": "k1"}
        assert len((await far.get("/events?after=3"))["events"]) == 1


async def test_it_may_refuse_what_was_sent_too_long_ago() -> None:
    async with Far(refuses_after_s=60.0) as far:
        assert (await far.ask(**{"X-Sent-At": "950"})).status_code == 201
        assert code(await far.ask(key="k2", **{"X-Sent-At": "900"})) == (422, "too-old")
        assert code(await far.ask(key="k2", **{"X-Sent-At": "now"})) == (400, "bad-time")
        assert await far.held() == [1_000]


@pytest.mark.parametrize("wrong", [{"lag_s": -1}, {"drops": -1}, {"orders": {"A17": -1}}])
async def test_settings_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="0 or more"):
        Payments(**wrong)


# Its tools.


@pytest.mark.parametrize(
    "settings",
    [
        {"refuses_after_s": 60.0},
        {"can_look_up": False, "can_close": False},
        {"settles_after_s": 0.0},
        {"retention_s": 900.0},
    ],
)
async def test_its_tools_promise_what_it_offers(settings: dict[str, Any]) -> None:
    async with Far(orders={"A17": 10**6}, tool={"read_back": True}, **settings) as far:
        far.clock.at = SENT_AT

        async def no_time(seconds: float) -> None:
            """Nothing has to pass here."""

        found = await check_tool(
            far.refund,
            TEN,
            changed=TEN | {"cents": 7},
            refused=TEN | {"order": "none"},
            holds=far.held,
            clock=far.clock.now,
            sleep=no_time,
        )
        assert found.ok, found
        assert found.of(Verdict.SKIPPED) <= {"a key is remembered"}


@pytest.mark.parametrize(
    ("settings", "broken"),
    [
        ({"drops": 1}, "a send is acknowledged, and does what its effect says"),
        ({"breaks": 1}, "a send is acknowledged, and does what its effect says"),
        ({"keyed": False}, "one key, one effect"),
        ({"strict": False}, "another payload under one key is refused"),
    ],
)
async def test_a_promise_that_it_breaks_is_found(settings: dict[str, Any], broken: str) -> None:
    async with Far(**settings) as far:
        promised = payment_tools(URL, Payments(), transport=far.transport)[1]
        found = await check_tool(
            promised, TEN, changed=TEN | {"cents": 7}, holds=far.held, clock=lambda: SENT_AT
        )
        assert broken in found.of(Verdict.BROKEN), found


async def test_what_is_left_can_be_asked() -> None:
    async with Far() as far:
        said = await far.total.send(call_of(far.total.check({"order": "A17"})))
        assert isinstance(said, Acknowledged)
        assert said.result == {
            "order": "A17",
            "cents": 10_000,
            "refunded_cents": 0,
            "left_cents": 10_000,
        }


async def test_what_it_holds_can_be_listed_with_the_keys() -> None:
    async with Far() as far:
        await far.ask(key="k1")
        far.clock.at += 60.0
        await far.ask(key="k2")
        listed = await far.refund.list_effects(0.0)
        assert isinstance(listed, Listed)
        assert [(one.id, one.key) for one in listed.effects] == [("RF1", "k1"), ("RF2", "k2")]
        assert listed.effects[0].says == "1000 cents of A17 were refunded (RF1)"
        later = await far.refund.list_effects(1_030.0)
        assert isinstance(later, Listed)
        assert [one.id for one in later.effects] == ["RF2"]


async def test_a_list_that_does_not_come_is_no_answer() -> None:
    async with Far(Fault(path="/refunds", method="GET", kind="drop")) as far:
        assert isinstance(await far.refund.list_effects(0.0), NoAnswer)


async def test_it_is_served_as_a_process_of_its_own(tmp_path: Path) -> None:
    path = str(tmp_path / "payments.db")
    with serve.start("payments", db=path, settings=Payments(orders={"B1": 5})) as far:
        refund = payment_tools(far.url)[1]
        sent = await refund.send(call_of(refund.check({"order": "B1", "cents": 5}), key="k1"))
        assert isinstance(sent, Acknowledged)
        found = await refund.lookup(call_of({"order": "B1", "cents": 5}, key="k1"))
        assert isinstance(found, Found)
        assert isinstance(await refund.list_effects(0.0), Listed)
        await refund.aclose()
