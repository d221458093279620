"""Dry run, then commit: nothing before it, exactly that by it, once, and the truth about it."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from landed.runtime.clock import WallClock
from tests.server.served import Office, commit_of, kind_of, office

Script = Callable[[Office], Awaitable[None]]


def run(script: Script, **how: object) -> None:
    """Run a script in an office."""

    async def main() -> None:
        async with office(**how) as here:  # type: ignore[arg-type]
            await script(here)

    asyncio.run(main())


@pytest.mark.req("S3-01", "S3-04", "S3-18", "S3-29")
def test_a_dry_run_returns_the_plan_and_does_nothing() -> None:
    async def script(here: Office) -> None:
        plan = await here.dry_run()
        assert {"plan_id", "plan_token", "expires_at", "input_fingerprint"} <= plan.keys()
        assert plan["expires_at"].endswith("Z")
        assert plan["actions"] == [
            {"op": "refund", "target": "invoice/4412", "field": "amount_cents", "to": 48000}
        ]
        seen = (await here.get(f"/v1/plans/{plan['plan_id']}")).json()
        assert (seen["state"], seen["plan_token"]) == ("proposed", None)
        assert here.ledger.refunds == []

    run(script)


@pytest.mark.req("S3-16", "S3-19", "S3-21")
@pytest.mark.field("G6")
def test_the_same_commit_again_is_the_same_and_its_key_no_other_ones() -> None:
    async def script(here: Office) -> None:
        plan, other = await here.dry_run(), await here.dry_run(cents=5)
        first, again = await here.commit(plan), await here.commit(plan, key='"idem_7a12"')
        assert (first.status_code, first.json()["state"]) == (200, "done")
        assert "idempotent-replayed" not in first.headers
        assert again.headers["idempotent-replayed"] == "true"
        assert again.json()["operations"] == first.json()["operations"]
        assert kind_of(await here.commit(other)) == (422, "key-used")
        assert here.ledger.refunds == [48000]

    run(script)


@pytest.mark.req("S3-12", "S3-29", "S3-31")
@pytest.mark.parametrize(
    ("change", "key", "problem"),
    [
        ({"amount": 1}, "k", (400, "unknown-field")),
        ({"plan_token": None}, "k", (422, "invalid")),
        ({"plan_token": "x"}, "k", (404, "absent")),
        ({"input_fingerprint": "sha256:x"}, "k", (412, "fingerprint")),
        ({"plan_id": "plan-nothing"}, "k", (404, "absent")),
        ({}, "", (400, "key-missing")),
        ({}, "k" * 256, (400, "key-malformed")),
        ({}, '"k', (400, "key-malformed")),
    ],
)
def test_a_commit_takes_what_was_previewed_and_nothing_else(
    change: dict[str, object], key: str, problem: tuple[int, str]
) -> None:
    async def script(here: Office) -> None:
        plan = await here.dry_run()
        assert kind_of(await here.commit(plan, key=key, more=change)) == problem
        assert here.ledger.refunds == []
        assert (await here.commit(plan, key="good")).json()["state"] == "done"

    run(script)


@pytest.mark.req("S3-13", "S3-15", "S3-20", "S3-25")
@pytest.mark.field("C21", "C29")
def test_a_world_that_moved_is_a_409_that_names_what_did() -> None:
    async def script(here: Office) -> None:
        plan = await here.dry_run()
        here.ledger.left_cents = 28000
        answer = await here.commit(plan)
        assert kind_of(answer) == (409, "changed")
        body = answer.json()
        assert body["changed"] == [{"step": 1, "field": "left_cents", "was": 48000, "now": 28000}]
        assert body["plan_created_at"].startswith(plan["created_at"][:19])
        assert here.ledger.refunds == []
        assert (await here.commit(await here.dry_run(cents=28000), key="k2")).status_code == 200
        assert here.ledger.refunds == [28000]

    run(script)


@pytest.mark.req("S3-26", "K14")
def test_what_needs_a_yes_is_committed_only_after_the_persons_own() -> None:
    async def script(here: Office) -> None:
        plan = await here.dry_run("big_refund", who="ana-agent")
        path = f"/v1/plans/{plan['plan_id']}"
        early = await here.commit(plan, tool="big_refund", who="ana-agent")
        assert kind_of(early) == (409, "not-agreed")
        match = (await here.get(path)).headers["etag"]
        asked = {"match": match}
        assert kind_of(await here.post(f"{path}/approve", who="ana-agent", **asked))[0] == 403
        assert kind_of(await here.post(f"{path}/approve", who="bob", **asked))[0] == 404
        agreed = await here.post(f"{path}/approve", **asked)
        assert (agreed.json()["state"], agreed.json()["agreed_by"]) == ("proposed", "ana")
        assert here.ledger.refunds == []
        done = await here.commit(plan, tool="big_refund", who="ana-agent")
        assert (done.json()["state"], here.ledger.refunds) == ("done", [48000])

    run(script)


@pytest.mark.req("S3-14", "K15")
def test_a_token_whose_time_is_over_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    async def script(here: Office) -> None:
        plan = await here.dry_run()
        over = here.rt.driver.clock.now() + 600.0
        monkeypatch.setattr(WallClock, "now", lambda self: over)
        assert kind_of(await here.commit(plan)) == (410, "expired")
        assert here.ledger.refunds == []

    run(script)


@pytest.mark.req("S3-24", "S4-23")
@pytest.mark.field("A6")
def test_what_nobody_knows_is_a_state_and_no_error() -> None:
    async def script(here: Office) -> None:
        here.ledger.reply_lost = True
        plan = await here.dry_run()
        answer = await here.commit(plan, Prefer="wait=1")
        assert (answer.status_code, answer.json()["state"]) == (200, "in_doubt")
        (operation,) = answer.json()["operations"]
        seen = (await here.get(f"/v1/operations/{operation}")).json()
        assert seen["state"] in ("unknown", "undecided")
        assert "failed" not in f"{seen['text']} {answer.json()['to_model']}"
        again = await here.commit(plan, Prefer="wait=0")
        assert (again.status_code, again.json()["state"]) == (200, "in_doubt")
        assert here.ledger.refunds == [48000]

    run(script)


@pytest.mark.req("S3-16", "S3-17")
def test_a_second_request_with_the_key_of_one_at_work_is_told_to_wait() -> None:
    async def script(here: Office) -> None:
        asked = {"what": "x"}
        first = await here.propose("slow", asked, Prefer="respond-async")
        assert (first.status_code, first.json()["state"]) == (202, "running")
        where = first.headers["location"]
        again = await here.propose("slow", asked)
        assert kind_of(again) == (409, "in-progress")
        assert (again.headers["location"], again.headers["retry-after"]) == (where, "1")
        assert kind_of(await here.propose("slow", {"what": "y"})) == (422, "key-used")
        assert (await here.get(where)).status_code == 200
        here.ledger.opened.set()
        async for seen in here.rt.progress(first.json()["plan_id"], tenant="acme"):
            state = seen.state
        assert state == "done"
        last = await here.propose("slow", asked)
        assert (last.status_code, last.json()["state"]) == (200, "done")
        assert last.headers["idempotent-replayed"] == "true"
        assert len(here.ledger.refunds) == 1

    run(script)


def test_who_hangs_up_changes_nothing() -> None:
    async def script(here: Office) -> None:
        asking = asyncio.ensure_future(here.propose("slow", {"what": "x"}))
        await here.ledger.begun.wait()
        asking.cancel()
        await asyncio.wait([asking])
        here.ledger.opened.set()
        while (again := await here.propose("slow", {"what": "x"})).status_code == 409:
            assert again.json()["plan_id"]
        assert (again.json()["state"], here.ledger.refunds) == ("done", [0])

    run(script)


def test_a_verb_that_was_asked_for_goes_on_when_its_caller_is_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def script(here: Office) -> None:
        plan = await here.dry_run()
        asked, gone, over = asyncio.Event(), asyncio.Event(), asyncio.Event()
        commit = type(here.rt).commit

        async def slowly(*given: Any, **named: Any) -> Any:
            asked.set()
            await gone.wait()
            value = await commit(*given, **named)
            over.set()
            return value

        monkeypatch.setattr(type(here.rt), "commit", slowly)
        asking = asyncio.ensure_future(here.commit(plan))
        await asked.wait()
        asking.cancel()
        await asyncio.wait([asking])
        gone.set()
        await asyncio.wait_for(over.wait(), 10)
        assert here.ledger.refunds == [48000]

    run(script)


@pytest.mark.req("S3-33", "S3-04")
@pytest.mark.fault("X94")
def test_no_line_of_a_log_holds_a_token(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)

    async def script(here: Office) -> None:
        plan = await here.dry_run()
        token = plan["plan_token"]
        answers = [
            await here.commit(plan, who="bob"),
            await here.commit(plan, more={"input_fingerprint": "x"}),
            await here.commit(plan, more={"amount": token}),
            await here.commit(plan),
            await here.get(f"/v1/plans/{plan['plan_id']}"),
            await here.get(f"/v1/plans/{plan['plan_id']}/audit"),
            await here.get("/v1/sessions/ana/history"),
        ]
        assert token not in "".join(answer.text for answer in answers) + caplog.text
        assert "Bearer ana" not in caplog.text

    run(script)


@pytest.mark.req("S3-02", "S3-36")
def test_a_plan_of_several_calls_is_previewed_and_committed_as_one() -> None:
    async def script(here: Office) -> None:
        calls = [
            {"tool": "refund", "arguments": {"invoice": str(n), "amount_cents": n}} for n in (1, 2)
        ]
        plan = (await here.post("/v1/plans/dry-run", {"calls": calls})).json()
        assert [action["to"] for action in plan["actions"]] == [1, 2]
        path = f"/v1/plans/{plan['plan_id']}/commit"
        done = await here.post(path, commit_of(plan), key="k")
        assert (done.json()["state"], here.ledger.refunds) == ("done", [1, 2])

    run(script)


def test_what_is_missing_is_asked_for_and_nothing_is_kept() -> None:
    async def script(here: Office) -> None:
        answer = await here.post("/v1/tools/vague/dry-run", {"arguments": {"what": "x"}})
        assert kind_of(answer) == (422, "invalid")
        assert answer.json()["questions"] == ["Which one?"]

    run(script)
