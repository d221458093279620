"""Plans and operations are listed over HTTP by page: one's own, or all for who administers."""

from typing import Any
from urllib.parse import quote

import pytest

from tests.server.served import Office, kind_of
from tests.server.test_commits import run

REFUND = {"invoice": "4412", "amount_cents": 100}


async def three_plans(here: Office) -> list[str]:
    """Have Ana's agent do two things and Bob one, in this order: ids of the plans."""
    made = [
        await here.propose("refund", REFUND, who=who, key=key)
        for who, key in (("ana-agent", "a1"), ("ana-agent", "a2"), ("bob", "b1"))
    ]
    return [answer.json()["plan_id"] for answer in made]


async def listed(here: Office, path: str, **how: Any) -> list[str]:
    """Return the ids of a page."""
    answer = await here.get(path, **how)
    assert answer.status_code == 200, answer.text
    lines = answer.json().get("plans") or answer.json().get("operations") or []
    return [line.get("plan_id") if "of" in line else line["operation"] for line in lines]


def test_plans_are_listed_to_whose_they_are() -> None:
    async def script(here: Office) -> None:
        first, second, bobs = await three_plans(here)
        assert await listed(here, "/v1/plans") == [second, first]
        assert await listed(here, "/v1/plans", who="ana-agent") == [second, first]
        assert await listed(here, "/v1/plans", who="bob") == [bobs]
        assert await listed(here, "/v1/plans?owner=ana", who="bob") == []
        assert await listed(here, "/v1/plans", who="eve") == []
        assert await listed(here, "/v1/plans", who="boss") == [bobs, second, first]
        assert await listed(here, "/v1/plans?owner=ana", who="boss") == [second, first]
        assert (await here.get("/v1/plans", who="")).status_code == 401

    run(script)


def test_plans_are_listed_by_state() -> None:
    async def script(here: Office) -> None:
        (first, second, _), asked = await three_plans(here), await here.dry_run()
        waits = await here.propose("big_refund", REFUND, key="w1")
        waiting = [asked["plan_id"], waits.json()["plan_id"]]
        assert await listed(here, "/v1/plans?state=proposed") == waiting
        assert await listed(here, "/v1/plans?state=done") == [second, first]
        assert await listed(here, "/v1/plans?state=running") == []
        assert kind_of(await here.get("/v1/plans?state=lost")) == (422, "invalid")

    run(script)


def test_a_page_leads_to_the_next_and_a_cursor_is_good_for_one_list() -> None:
    async def script(here: Office) -> None:
        first, second, bobs = await three_plans(here)
        page = (await here.get("/v1/plans?limit=2", who="boss")).json()
        assert [line["plan_id"] for line in page["plans"]] == [bobs, second]
        rest = (await here.get(f"/v1/plans?limit=2&after={page['next']}", who="boss")).json()
        assert [line["plan_id"] for line in rest["plans"]] == [first]
        assert rest["next"] is None
        for wrong in ("7", "recent-", "recent-x", "recent-٣", "open-7", "recent-0", "recent--1"):
            answer = await here.get(f"/v1/plans?after={quote(wrong)}")
            assert kind_of(answer) == (400, "cursor")
        other = await here.get(f"/v1/plans?state=proposed&after={page['next']}")
        assert kind_of(other) == (400, "cursor")

    run(script)


@pytest.mark.parametrize("path", ["/v1/plans", "/v1/operations"])
@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("limit=0", (422, "invalid")),
        ("limit=201", (422, "invalid")),
        ("limit=many", (422, "invalid")),
        ("stat=done", (400, "unknown-field")),
        (f"after={'9' * 41}", (422, "invalid")),
    ],
)
def test_what_does_not_fit_a_list_is_refused(
    path: str, query: str, problem: tuple[int, str]
) -> None:
    async def script(here: Office) -> None:
        assert kind_of(await here.get(f"{path}?{query}")) == problem

    run(script)


def test_operations_are_listed_those_of_plans_too() -> None:
    async def script(here: Office) -> None:
        await three_plans(here)
        here.ledger.reply_lost = True
        lost = await here.propose("refund", REFUND, key="a3", Prefer="wait=2")
        (unknown,) = lost.json()["operations"]
        assert (await listed(here, "/v1/operations"))[0] == unknown
        every = (await here.get("/v1/operations", who="boss")).json()["operations"]
        assert [line["principal"] for line in every] == ["ana", "bob", "ana", "ana"]
        assert every[0]["what"] == "refund(invoice=4412, amount_cents=100)"
        state = every[0]["state"]
        assert await listed(here, f"/v1/operations?state={state}") == [unknown]
        assert len(await listed(here, "/v1/operations?state=confirmed&owner=ana")) == 2

    run(script)
