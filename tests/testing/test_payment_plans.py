"""The plans of the payments service: what a commit is refused for, and what each slip lets by."""

from typing import Any

import httpx2
import pytest

from landed.testing.worlds import payments
from landed.testing.worlds.payments import Payments
from tests.testing.far_sides import FarSide, SetClock, Sleeps, code

pytestmark = pytest.mark.anyio
ORDER = "4412"
WANTED: dict[str, Any] = {"order": ORDER, "cents": 20_000}


class Far(FarSide):
    """A payments service in this process, and a client of its plans."""

    def __init__(self, **settings: Any) -> None:
        self.clock, sleeps = SetClock(), Sleeps()
        kept = Payments(orders={ORDER: 48_000}, addresses={ORDER: "Elm 1"}, **settings)
        own = payments.app(":memory:", self.clock, (), settings=kept, sleep=sleeps)
        super().__init__(own, sleeps, witness=None, before=None)

    async def plan(self, **more: Any) -> Any:
        reply = await self.client.post("/refund-plans", json=WANTED | more)
        return reply.raise_for_status().json()

    async def commit(
        self, plan: Any, key: str = "k1", without: str = "", **more: Any
    ) -> httpx2.Response:
        said = {name: plan[name] for name in ("plan_id", "plan_token", "input_fingerprint")} | more
        said.pop(without, None)
        headers = {"Idempotency-Key": key} if key else {}
        path = f"/refund-plans/{plan['plan_id']}/commit"
        return await self.client.post(path, json=said, headers=headers)

    async def read(self, plan: Any) -> Any:
        return (await self.client.get(f"/refund-plans/{plan['plan_id']}")).json()

    async def abandon(self, plan: Any) -> Any:
        return await self.client.post(f"/refund-plans/{plan['plan_id']}/abandon")

    async def held(self) -> list[int]:
        return [one["cents"] for one in (await self.client.get("/refunds")).json()["refunds"]]


@pytest.mark.req("S3-01", "S3-18", "S3-38")
async def test_a_dry_run_says_what_it_would_do_and_does_nothing() -> None:
    async with Far() as far:
        for _ in range(100):
            plan = await far.plan()
        assert plan["actions"] == [
            {
                "op": "refund",
                "target": "order/4412",
                "field": "refunded_cents",
                "from": 0,
                "to": 20_000,
            }
        ]
        assert plan["expires_at"] > plan["created_at"]
        assert await far.held() == []
        assert (await far.client.get("/orders/4412")).json()["left_cents"] == 48_000
        assert await far.log() == []


@pytest.mark.req("S3-07")
async def test_the_fingerprint_is_of_the_state_and_not_of_how_one_asks() -> None:
    async with Far() as far:
        one, two = await far.plan(), await far.plan(cents=1)
        assert one["input_fingerprint"] == two["input_fingerprint"]
        assert one["plan_token"] != two["plan_token"]
        await far.client.post("/orders/4412/address", json={"address": "Oak 2"})
        assert (await far.plan())["input_fingerprint"] != one["input_fingerprint"]
        shipped = (await far.client.get("/orders/4412/shipping")).json()
        assert shipped == {"order": ORDER, "shipped": True, "address": "Oak 2"}


@pytest.mark.req("S3-16")
async def test_a_commit_is_done_once_and_its_answer_replayed() -> None:
    async with Far() as far:
        plan = await far.plan()
        made = await far.commit(plan)
        assert (made.status_code, made.json()["id"]) == (201, "RF1")
        far.clock.at += 10_000
        again = await far.commit(plan)
        assert (again.json(), again.headers["idempotent-replayed"]) == (made.json(), "true")
        assert code(await far.commit(plan, key="k2")) == (410, "plan-applied")
        assert code(await far.commit(await far.plan())) == (422, "key-mismatch")
        assert await far.held() == [20_000]
        assert (await far.read(plan))["result"] == made.json()


@pytest.mark.req("S3-12", "S3-31")
@pytest.mark.parametrize(
    ("how", "refused"),
    [
        ({"amount": 1}, (400, "unexpected-field")),
        ({"cents": 48_000}, (400, "unexpected-field")),
        ({"without": "input_fingerprint"}, (400, "unexpected-field")),
        ({"without": "plan_token"}, (401, "wrong-token")),
        ({"plan_token": "ptk_guessed"}, (401, "wrong-token")),
        ({"input_fingerprint": "sha256:0"}, (409, "plan-mismatch")),
        ({"key": ""}, (400, "bad-key")),
    ],
    ids=str,
)
async def test_a_commit_with_more_less_or_other_things_is_refused(how: Any, refused: Any) -> None:
    async with Far() as far:
        plan = await far.plan()
        assert code(await far.commit(plan, **how)) == refused
        assert await far.held() == []
        assert (await far.commit(plan)).status_code == 201


@pytest.mark.req("S3-13", "S3-15")
async def test_a_conflict_names_each_field_that_moved_and_when_the_plan_was_made() -> None:
    async with Far() as far:
        plan = await far.plan()
        await far.client.post("/orders/4412/address", json={"address": "Oak 2"})
        no = await far.commit(plan)
        assert code(no) == (409, "conflict")
        assert no.json()["changed"] == [{"field": "address", "was": "Elm 1", "now": "Oak 2"}]
        assert no.json()["plan_created_at"] == plan["created_at"]
        headers = {"Idempotency-Key": "other"}
        await far.client.post("/refunds", json=WANTED, headers=headers)
        named = [fact["field"] for fact in (await far.commit(plan)).json()["changed"]]
        assert named == ["address", "left_cents", "refunded_cents"]
        assert await far.held() == [20_000]


@pytest.mark.req("S3-14", "S3-38")
async def test_what_has_expired_or_was_given_up_is_refused_though_nothing_changed() -> None:
    async with Far() as far:
        late, dropped = await far.plan(), await far.plan()
        assert (await far.abandon(dropped)).json()["state"] == "abandoned"
        assert code(await far.commit(dropped)) == (410, "plan-abandoned")
        far.clock.at += 599.0
        assert (await far.read(late))["state"] == "open"
        far.clock.at += 1.0
        assert (await far.read(late))["state"] == "expired"
        assert code(await far.commit(late, key="k2")) == (410, "plan-expired")
        assert (await far.abandon(late)).json()["state"] == "expired"
        assert await far.held() == []


async def test_what_was_applied_cannot_be_given_up() -> None:
    async with Far() as far:
        plan = await far.plan()
        await far.commit(plan)
        assert (await far.abandon(plan)).json()["state"] == "applied"


@pytest.mark.parametrize(
    ("body", "refused"),
    [
        ({"order": "A1"}, (422, "no-such-order")),
        ({"order": ""}, (400, "bad-order")),
        ({"cents": 48_001}, (422, "exceeds-total")),
        ({"cents": 0}, (400, "bad-refund")),
        ({"cents": "1"}, (400, "bad-cents")),
        ({"reason": 7}, (400, "bad-refund")),
    ],
    ids=str,
)
async def test_a_dry_run_is_refused_where_a_refund_would_be(body: Any, refused: Any) -> None:
    async with Far() as far:
        assert code(await far.client.post("/refund-plans", json=WANTED | body)) == refused


async def test_what_is_not_there_is_said() -> None:
    async with Far(can_abandon=False) as far:
        plan = await far.plan()
        assert (await far.abandon(plan)).status_code == 405
        assert code(await far.client.get("/refund-plans/PL9")) == (404, "no-such-plan")
        for body in ({}, {"address": ""}):
            said = await far.client.post("/orders/4412/address", json=body)
            assert code(said) == (400, "bad-address")


@pytest.mark.req("F3-01", "F3-02", "F3-04", "F3-06", "F3-07")
async def test_each_slip_lets_one_thing_through() -> None:
    async with Far(plan_slips=["expiry", "inputs"]) as far:
        plan = await far.plan()
        far.clock.at += 10_000
        assert (await far.commit(plan, cents=30_000)).json()["cents"] == 30_000
    async with Far(plan_slips=["once"]) as far:
        plan = await far.plan()
        assert [(await far.commit(plan, key=key)).status_code for key in "ab"] == [201, 201]
    async with Far(plan_slips=["fingerprint"]) as far:
        plan = await far.plan()
        await far.client.post("/orders/4412/address", json={"address": "Oak 2"})
        now = (await far.plan())["input_fingerprint"]
        assert (await far.commit(plan, input_fingerprint=now)).status_code == 201
    async with Far(plan_slips=["bare"]) as far:
        plan = await far.plan()
        await far.client.post("/orders/4412/address", json={"address": "Oak 2"})
        assert "changed" not in (await far.commit(plan)).json()
