"""What is allowed is said by one layer, in the same words to every agent, and a 403 over HTTP."""

import asyncio
from typing import Any

import pytest

import landed
from landed.runtime.acting import ModelTools
from landed.runtime.permissions import Permit
from tests.server.served import Office, kind_of
from tests.server.test_commits import run

CLOSE = {"year": 2026}
WHY = "step 1 (close_books): ana is not allowed books.close"


class Policy:
    """Says who may close the books; it is asked each time."""

    def __init__(self, *allowed: str) -> None:
        self.allowed = set(allowed)
        self.asked: list[str] = []

    async def allows(self, permit: Permit) -> bool:
        self.asked.append(permit.permission)
        return permit.principal in self.allowed

    async def administers(self, principal: str, *, tenant: str) -> bool:
        return False


def test_what_is_not_allowed_is_a_403_and_nothing_is_recorded() -> None:
    async def script(here: Office) -> None:
        calls = {"calls": [{"tool": "close_books", "arguments": CLOSE}]}
        for answer in (
            await here.post("/v1/plans", calls, key="p1"),
            await here.post("/v1/plans/dry-run", calls),
            await here.post("/v1/tools/close_books/dry-run", {"arguments": CLOSE}),
        ):
            assert kind_of(answer) == (403, "forbidden")
            assert answer.json()["detail"] == WHY
        assert (await here.get("/v1/plans")).json()["plans"] == []
        assert here.ledger.closed == []

    run(script, permissions=Policy("bob"))


def test_a_right_that_is_taken_away_meanwhile_keeps_the_step_from_being_done() -> None:
    policy = Policy("ana")

    async def script(here: Office) -> None:
        answer = await here.post("/v1/tools/close_books/dry-run", {"arguments": CLOSE})
        policy.allowed.clear()
        done = await here.commit(answer.json(), tool="close_books")
        assert done.json()["state"] == "partial"
        assert "ana is not allowed books.close" in done.json()["text"]
        assert here.ledger.closed == []

    run(script, permissions=policy)


@pytest.mark.req("S3-32")
def test_two_agents_meet_the_same_guard_and_are_refused_in_the_same_words() -> None:
    """One calls over HTTP, one is a model in this process; no prompt has anything to say in it."""

    async def script(here: Office) -> None:
        heard = await here.rt.receive("close it", principal="ana", tenant="acme")
        model = ModelTools(rt=here.rt, heard=heard)

        async def by_http(tool: str, arguments: Any) -> str:
            answer = await here.propose(tool, arguments, who="ana-agent", key=tool)
            said: str = answer.json().get("detail") or answer.json()["to_model"]
            return said

        async def by_model(tool: str, arguments: Any) -> str:
            return await model.call("act", {"steps": [{"tool": tool, "arguments": arguments}]})

        for say in (by_http, by_model):
            assert WHY in await say("close_books", CLOSE)
            told = await say("big_refund", {"invoice": "1", "amount_cents": 5})
            assert "only they can say yes" in told
        plans = (await here.get("/v1/plans?state=proposed")).json()["plans"]
        assert [line["principal"] for line in plans] == ["ana", "ana"]
        for line in plans:
            path = f"/v1/plans/{line['plan_id']}/approve"
            assert kind_of(await here.post(path, match="*", who="ana-agent")) == (403, "forbidden")
        assert (here.ledger.closed, here.ledger.refunds) == ([], [])
        assert policy.asked == ["books.close"] * 2

    policy = Policy()
    run(script, permissions=policy)


def test_more_than_a_tenant_may_have_in_hand_is_a_503_with_a_time() -> None:
    async def script(here: Office) -> None:
        slow = asyncio.create_task(here.propose("slow", {"what": "x"}, key="s1"))
        await here.ledger.begun.wait()
        answer = await here.propose("refund", {"invoice": "1", "amount_cents": 5}, key="r1")
        assert kind_of(answer) == (503, "busy")
        assert answer.headers["retry-after"] == "1"
        here.ledger.opened.set()
        assert (await slow).json()["state"] == "done"
        again = await here.propose("refund", {"invoice": "1", "amount_cents": 5}, key="r1")
        assert (again.json()["state"], here.ledger.refunds) == ("done", [0, 5])

    run(script, settings=landed.Settings(tenant_max=1))
