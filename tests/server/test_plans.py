"""Plans over HTTP: proposed, decided, stopped, revised, watched; conversations, cases, audits."""

import json
from typing import Any

import pytest

from landed.runtime.clock import WallClock
from tests.server.served import Office, commit_of, kind_of
from tests.server.test_commits import run

REFUND = {"invoice": "4412", "amount_cents": 100}


async def etag(here: Office, path: str) -> str:
    tag: str = (await here.get(path)).headers["etag"]
    return tag


@pytest.mark.req("S3-38")
def test_a_plan_is_proposed_agreed_to_and_run() -> None:
    async def script(here: Office) -> None:
        shown = await here.propose("big_refund", REFUND)
        assert (shown.status_code, shown.json()["state"]) == (200, "proposed")
        assert shown.json()["plan_token"] is None
        path = f"/v1/plans/{shown.json()['plan_id']}"
        done = await here.post(f"{path}/approve", match=shown.headers["etag"])
        assert (done.json()["state"], here.ledger.refunds) == ("done", [100])
        again = await here.post(f"{path}/approve", match="*")
        assert (again.json()["state"], again.headers["idempotent-replayed"]) == ("done", "true")
        assert here.ledger.refunds == [100]

    run(script)


@pytest.mark.field("C29")
@pytest.mark.parametrize("verb", ["approve", "decline", "abandon", "retry", "undo"])
def test_a_decision_is_about_the_plan_as_it_was_seen(verb: str) -> None:
    async def script(here: Office) -> None:
        shown = await here.propose("big_refund", REFUND)
        path = f"/v1/plans/{shown.json()['plan_id']}"
        assert kind_of(await here.post(f"{path}/{verb}")) == (428, "match-missing")
        stale = await here.post(f"{path}/{verb}", match='"9-0000000000000000"')
        assert kind_of(stale) == (412, "moved")
        assert stale.headers["etag"] == shown.headers["etag"]
        assert (await here.get(path)).json()["state"] == "proposed"

    run(script)


def test_a_no_is_a_no() -> None:
    async def script(here: Office) -> None:
        shown = await here.propose("big_refund", REFUND)
        path = f"/v1/plans/{shown.json()['plan_id']}"
        declined = await here.post(f"{path}/decline", match=shown.headers["etag"])
        assert declined.json()["state"] == "declined"
        assert declined.headers["etag"] != shown.headers["etag"]
        late = await here.post(f"{path}/approve", match="*")
        assert kind_of(late) == (409, "state")
        assert late.json()["problem"] == "declined"
        assert here.ledger.refunds == []

    run(script)


@pytest.mark.req("S3-27")
def test_what_was_abandoned_is_not_committed() -> None:
    async def script(here: Office) -> None:
        plan = await here.dry_run()
        path = f"/v1/plans/{plan['plan_id']}"
        dropped = await here.post(f"{path}/abandon", {"why": "no"}, match=await etag(here, path))
        assert dropped.json()["state"] == "abandoned"
        answer = await here.commit(plan)
        assert (kind_of(answer), answer.json()["problem"]) == ((409, "state"), "over")

    run(script)


@pytest.mark.req("S3-27", "S3-34")
def test_an_agent_whose_task_is_over_says_so_and_its_tokens_are_good_no_more() -> None:
    async def script(here: Office) -> None:
        said = {"text": "refund it"}
        heard = (await here.post("/v1/sessions/s1/inputs", said, key="i1")).json()
        plan = await here.dry_run(who="ana-agent", more={"session": "s1"})
        asked = {"calls": [{"tool": "refund", "arguments": REFUND}], "input": heard["input"]}
        kept = (await here.post("/v1/plans/dry-run", asked, who="ana-agent")).json()
        path = f"/v1/sessions/s1/turns/{heard['turn']}/abandon"
        assert kind_of(await here.post(path, who="bob")) == (404, "absent")
        ended = await here.post(path, {"why": "found out otherwise"}, who="ana-agent")
        assert ended.json() == {"turn": heard["turn"], "plans": [kept["plan_id"]]}
        assert (await here.post(path, who="ana-agent")).json()["plans"] == []
        state = (await here.get(f"/v1/plans/{kept['plan_id']}")).json()["state"]
        assert (state, here.ledger.refunds) == ("abandoned", [])
        late = await here.post(
            f"/v1/plans/{kept['plan_id']}/commit", commit_of(kept), who="ana-agent", key="c1"
        )
        assert (kind_of(late), late.json()["problem"]) == ((409, "state"), "over")
        assert (await here.commit(plan, who="ana-agent")).json()["state"] == "done"
        assert kind_of(await here.post("/v1/sessions/s1/turns/turn-9/abandon")) == (404, "absent")

    run(script)


@pytest.mark.req("S1-51", "S1-56")
@pytest.mark.field("D3")
def test_a_plan_is_stopped_from_anywhere_and_says_what_is_in_flight() -> None:
    async def script(here: Office) -> None:
        begun = await here.propose("slow", {"what": "x"}, Prefer="respond-async")
        path = f"/v1/plans/{begun.json()['plan_id']}"
        await here.ledger.begun.wait()
        stopping = await here.post(f"{path}/cancel", {"why": "enough"}, Prefer="respond-async")
        assert (stopping.status_code, stopping.json()["state"]) == (202, "stopping")
        here.ledger.opened.set()
        stopped = await here.post(f"{path}/cancel")
        assert (stopped.status_code, stopped.json()["state"]) == (200, "stopped")
        before = stopped.headers["etag"]
        assert (await here.post(f"{path}/cancel")).headers["etag"] == before
        assert kind_of(await here.post(f"{path}/undo", match="*")) == (409, "state")

    run(script)


def test_a_partial_plan_is_run_once_more() -> None:
    async def script(here: Office) -> None:
        here.ledger.refuses = True
        partial = await here.propose("refund", REFUND)
        assert partial.json()["state"] == "partial"
        here.ledger.refuses = False
        path = f"/v1/plans/{partial.json()['plan_id']}"
        done = await here.post(f"{path}/retry", match=partial.headers["etag"])
        assert (done.json()["state"], done.json()["attempt"]) == ("done", 2)
        assert here.ledger.refunds == [100]

    run(script)


@pytest.mark.req("S1-51")
def test_progress_is_told_until_the_plan_is_at_rest() -> None:
    async def script(here: Office) -> None:
        done = await here.propose("refund", REFUND)
        events = await here.get(f"/v1/plans/{done.json()['plan_id']}/events")
        assert events.headers["content-type"].startswith("text/event-stream")
        seen = [line for line in events.text.splitlines() if line.startswith("data: ")]
        last: dict[str, Any] = json.loads(seen[-1].removeprefix("data: "))
        assert (last["state"], last["step"], last["of"]) == ("done", 1, 1)

    run(script)


async def _said(here: Office, text: str, key: str) -> dict[str, Any]:
    answer = await here.post("/v1/sessions/s1/inputs", {"text": text}, key=key)
    assert answer.status_code == 200
    heard: dict[str, Any] = answer.json()
    return heard


def test_words_are_durable_once_and_answer_what_was_asked() -> None:
    async def script(here: Office) -> None:
        heard = await _said(here, "refund it", "m1")
        assert await _said(here, "refund it", "m1") == heard
        body = {"calls": [{"tool": "big_refund", "arguments": REFUND}], "input": heard["input"]}
        shown = await here.post("/v1/plans", body, key="p1")
        assert (shown.json()["state"], shown.json()["session"]) == ("proposed", "s1")
        await _said(here, "yes", "m2")
        async for seen in here.rt.progress(shown.json()["plan_id"], tenant="acme"):
            state = seen.state
        assert (state, here.ledger.refunds) == ("done", [100])
        told = (await here.get(f"/v1/sessions/s1/turns/{heard['turn']}/report")).json()
        assert told["text"].startswith("Done")
        roles = [item["role"] for item in (await here.get("/v1/sessions/s1/history")).json()]
        assert "user" in roles

    run(script)


def test_a_change_of_mind_is_one_request_however_often_it_comes() -> None:
    async def script(here: Office) -> None:
        heard = await _said(here, "refund it", "m1")
        call = {"tool": "big_refund", "arguments": REFUND}
        body = {"calls": [call], "input": heard["input"]}
        shown = await here.post("/v1/plans", body, key="p1")
        path = f"/v1/plans/{shown.json()['plan_id']}"
        other = await _said(here, "make it 50", "m2")
        call = {"tool": "refund", "arguments": {**REFUND, "amount_cents": 50}}
        new = {"input": other["input"], "calls": [call]}
        stale = await here.post(f"{path}/revise", new, key="r1", match='"0-0"')
        assert kind_of(stale) == (412, "moved")
        match = await etag(here, path)
        first = await here.post(f"{path}/revise", new, key="r1", match=match)
        assert (first.status_code, first.json()["state"]) == (200, "done"), first.text
        again = await here.post(f"{path}/revise", new, key="r1", match=match)
        assert again.json()["plan_id"] == first.json()["plan_id"]
        assert here.ledger.refunds == [50]

    run(script)


@pytest.mark.req("S4-53")
def test_a_case_is_resolved_by_who_administers_and_under_their_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def script(here: Office) -> None:
        here.ledger.reply_lost = True
        plan = (await here.propose("refund", REFUND, Prefer="wait=1")).json()
        (operation,) = plan["operations"]
        later = here.rt.driver.clock.now() + 7200.0
        monkeypatch.setattr(WallClock, "now", lambda self: later)
        asked = await here.post(f"/v1/operations/{operation}/resolve", Prefer="wait=0")
        assert asked.json()["state"] == "undecided"
        (case,) = (await here.get("/v1/cases", who="boss")).json()
        assert (case["arguments"], case["principal"]) == (REFUND, "ana")
        assert "landed" in case["may"]
        path = f"/v1/cases/{case['id']}"
        said = {"ruling": "landed", "note": "seen in the ledger", "made": "R1"}
        over = await here.post(f"{path}/resolve", said, who="boss")
        assert (over.status_code, over.json()["state"]) == (200, "confirmed"), over.text
        assert over.json()["evidence"][-1]["by"] == "boss"
        assert kind_of(await here.post(f"{path}/resolve", said, who="boss"))[0] == 409
        assert (await here.get(path, who="boss")).json()["may"] == []
        assert kind_of(await here.get("/v1/cases/case/none", who="boss")) == (404, "absent")
        assert (await here.get("/v1/cases", who="eve")).json() == []

    run(script)


def test_an_audit_says_what_was_shown_and_who_committed_it() -> None:
    async def script(here: Office) -> None:
        plan = await here.dry_run(who="ana-agent")
        await here.commit(plan, who="ana-agent")
        told = (await here.get(f"/v1/plans/{plan['plan_id']}/audit")).json()
        events = [(row["event"], row["actor"]) for row in told["events"]]
        assert ("committed", "ana") in events
        assert told["authorised"] == []

    run(script)
