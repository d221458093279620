"""A plan on the console: what is shown of it, and that each press does what it says, once."""

import asyncio

import pytest

import landed
from landed.core.key import Ask
from landed.core.plan import At, PlanState, Wanted
from tests.console.pressing import Console, csrf_of, named, run

NOTHING = "plan-06h2r4wkmhnpcphx9yvzfr1nfm"


def test_a_plan_is_shown_with_its_figures_and_what_they_stand_on() -> None:
    async def script(here: Console) -> None:
        plan = await here.propose(
            "draft", ("refund", {"invoice": "4412", "amount_cents": 7}), what="one"
        )
        page = await here.page(f"/plans/{plan.plan}")
        assert "Draft one" in page.words
        assert "Refund 7 cents" in page.words
        assert next(cell.words for cell in page.all("td", **{"class": "amount"})) == "1,234.56"
        (facts,) = page.all("dl", aria_label="Stands on")
        assert facts.words == "left_cents 48000"
        assert "invoice/4412" in page.words
        assert "made draft D1" in page.words

    run(script)


@pytest.mark.req("S1-64")
def test_what_was_made_is_named_by_what_it_is_where_it_is_done() -> None:
    async def script(here: Console) -> None:
        await here.propose("draft", what="one")
        page = await here.page("/done")
        assert "Draft one" in page.words
        assert "op-" not in page.words
        assert "plan-" not in page.words

    run(script)


def test_what_looks_the_same_stands_beside_it() -> None:
    async def script(here: Console) -> None:
        await here.propose("draft", what="one")
        plan = await here.propose("draft", what="one", who="ana")
        page = await here.page("/waiting")
        (alike,) = page.all("section", **{"class": "alike"})
        assert [pair.words for pair in alike.all("p")] == ["Draft one", "draft of one D1"]
        await here.press("/waiting", f"/plans/{plan.plan}/approve")
        assert here.desk.drafts == ["one", "one"]

    run(script)


def test_a_yes_runs_what_was_shown_once_however_often_it_is_pressed() -> None:
    async def script(here: Console) -> None:
        plan = await here.refund()
        goal = f"/plans/{plan.plan}/approve"
        fields = await here.fields("/waiting", goal)
        first = await here.follow(await here.send(goal, fields))
        assert "You said yes." in first.words
        assert "Done: Refund 48000 cents (R1)" in first.words
        again = await here.follow(await here.send(goal, fields))
        assert "nothing was done a second time" in again.words
        assert here.desk.refunds == [48000]
        assert (await here.stored(plan)).state is PlanState.DONE
        assert "Nothing waits for you." in (await here.page("/waiting")).words

    run(script)


@pytest.mark.req("S1-20")
def test_of_a_double_click_both_get_what_it_came_to() -> None:
    async def script(here: Console) -> None:
        plan = await here.refund()
        goal = f"/plans/{plan.plan}/approve"
        fields = await here.fields("/waiting", goal)
        answers = await asyncio.gather(*(here.send(goal, fields) for _ in range(2)))
        pages = [await here.follow(answer) for answer in answers]
        assert sorted("You said yes." in page.words for page in pages) == [False, True]
        assert sorted("a second time" in page.words for page in pages) == [False, True]
        assert all("Done: Refund 48000 cents (R1)" in page.words for page in pages)
        assert here.desk.refunds == [48000]

    run(script)


def test_a_no_is_a_no_and_a_yes_after_it_does_nothing() -> None:
    async def script(here: Console) -> None:
        plan = await here.refund()
        fields = await here.fields("/waiting", f"/plans/{plan.plan}/approve")
        no = await here.follow(await here.press("/waiting", f"/plans/{plan.plan}/decline"))
        assert "You said no." in no.words
        late = await here.send(f"/plans/{plan.plan}/approve", fields)
        assert late.status_code == 409
        assert "This was declined already" in late.text
        assert (await here.stored(plan)).state is PlanState.DECLINED
        assert here.desk.refunds == []

    run(script)


def test_what_has_to_be_typed_has_to_be_typed() -> None:
    async def script(here: Console) -> None:
        plan = await here.propose("erase", what="files")
        goal = f"/plans/{plan.plan}/approve"
        assert "Type 3 or DELETE to go ahead." in (await here.page("/waiting")).words
        for word in ("", "yes", "2", "DELETE!"):
            refused = await here.press("/waiting", goal, typed=word)
            assert refused.status_code == 422
            assert "That is not one of the words" in refused.text
        fields = await here.fields("/waiting", goal)
        assert (await here.send(goal, fields)).status_code == 422
        assert here.desk.refunds == []
        done = await here.follow(await here.press("/waiting", goal, typed="delete"))
        assert "You said yes." in done.words
        assert here.desk.refunds == [3]

    run(script)


def test_a_yes_to_something_else_than_what_was_shown_is_none() -> None:
    async def script(here: Console) -> None:
        plan, other = await here.refund(), await here.refund(5)
        goal = f"/plans/{plan.plan}/approve"
        fields = await here.fields("/waiting", goal)
        theirs = await here.fields("/waiting", f"/plans/{other.plan}/approve")
        for shown in ({}, {"fingerprint": theirs["fingerprint"]}, {"fingerprint": ""}):
            sent = {"csrf": fields["csrf"], **shown}
            answer = await here.send(goal, sent)
            assert answer.status_code == 412
            assert "This is not what was shown to you" in answer.text
        assert here.desk.refunds == []

    run(script)


def test_where_the_world_moved_it_says_what_moved_and_shows_it_anew() -> None:
    async def script(here: Console) -> None:
        plan = await here.refund()
        fields = await here.fields("/waiting", f"/plans/{plan.plan}/approve")
        here.desk.left_cents = 100
        moved = await here.send(f"/plans/{plan.plan}/approve", fields)
        assert moved.status_code == 409
        assert "The world moved since it was shown, so nothing was done." in moved.text
        assert here.desk.refunds == []
        page = await here.page(f"/plans/{plan.plan}")
        (changed,) = page.all("table", **{"class": "changed"})
        assert [cell.words for cell in changed.all("td")] == ["1", "left_cents", "48000", "100"]
        (anew,) = [a for a in page.all("a") if a.words == "Look at it as it is now"]
        path = anew.attributes["href"].removeprefix("/console")
        done = await here.follow(await here.press(path, f"{path}/approve"))
        assert "Done: Refund 48000 cents" in done.words
        assert here.desk.refunds == [48000]

    run(script)


def test_a_yes_that_comes_too_late_leads_to_the_plan_as_it_is_now() -> None:
    async def script(here: Console) -> None:
        plan = await here.refund()
        fields = await here.fields("/waiting", f"/plans/{plan.plan}/approve")
        await asyncio.wait({asyncio.ensure_future(_expired(here, plan.plan))})
        late = await here.send(f"/plans/{plan.plan}/approve", fields)
        assert late.status_code == 410
        assert "The time to answer is over, so nothing was done." in late.text
        assert here.desk.refunds == []
        assert f"/console/plans/{plan.plan}/approve" not in late.text
        assert "Look at it as it is now" in late.text

    run(script, settings=landed.Settings(answer_within_s=0.3))


async def _expired(here: Console, plan: str) -> None:
    held = await here.stored(plan)
    loop = asyncio.get_running_loop()
    over: asyncio.Future[None] = loop.create_future()
    loop.call_later(held.answer_by - here.rt.driver.clock.now() + 0.01, over.set_result, None)
    await over


@pytest.mark.field("D3")
def test_cancel_says_cancelling_until_nothing_is_in_flight() -> None:
    async def script(here: Console) -> None:
        plan = await here.propose("slow", ("refund", {"invoice": "1", "amount_cents": 1}), what="x")
        await here.desk.begun.wait()
        page = await here.page("/running")
        assert "Step 1 of 2:" in page.words
        stopping = await here.follow(await here.press("/running", f"/plans/{plan.plan}/cancel"))
        assert "You cancelled it: nothing more of it is begun." in stopping.words
        assert "cancelling: 1 in flight" in stopping.words
        assert "cancelling: 1 in flight" in (await here.page("/running")).words
        here.desk.opened.set()
        async for _ in here.rt.progress(plan.plan, tenant="acme"):
            pass
        over = await here.page(f"/plans/{plan.plan}")
        assert "cancelling" not in over.words
        assert "Stopped: 1 of 2 done." in over.words
        assert (await here.stored(plan)).state is PlanState.STOPPED
        assert here.desk.refunds == [0]

    run(script)


def test_a_second_cancel_may_wait_for_nothing_and_leaves_it_in_doubt() -> None:
    async def script(here: Console) -> None:
        plan = await here.propose("slow", what="x")
        await here.desk.begun.wait()
        path, goal = f"/plans/{plan.plan}", f"/plans/{plan.plan}/cancel"
        await here.press(path, goal)
        page = await here.page(path)
        assert "Cancel now, wait for nothing" in page.words
        await here.press(path, goal, hard="yes")
        held = await here.stored(plan)
        operation = await here.rt.driver.reader.operation(held.places[0].record)
        assert operation.state == "unknown"

    run(script)


def test_retry_goes_on_from_where_it_broke_off_once() -> None:
    async def script(here: Console) -> None:
        here.desk.jams = 1
        plan = await here.propose("refund", ("draft", {"what": "one"}), invoice="1", amount_cents=7)
        goal = f"/plans/{plan.plan}/retry"
        fields = await here.fields("/done", goal)
        done = await here.follow(await here.send(goal, fields))
        assert "You had it retried." in done.words
        twice = await here.follow(await here.send(goal, fields))
        assert "nothing was done a second time" in twice.words
        held = await here.stored(plan)
        assert (held.state, held.attempt) == (PlanState.DONE, 2)
        assert (here.desk.refunds, here.desk.drafts) == ([7], ["one"])

    run(script)


def test_undo_takes_it_back_once_while_that_is_offered() -> None:
    async def script(here: Console) -> None:
        plan = await here.propose("draft", what="one")
        assert "Can be undone until" in (await here.page("/done")).words
        goal = f"/plans/{plan.plan}/undo"
        fields = await here.fields("/done", goal)
        undone = await here.follow(await here.send(goal, fields))
        assert "You had it undone." in undone.words
        twice = await here.follow(await here.send(goal, fields))
        assert "nothing was done a second time" in twice.words
        held = await here.stored(plan)
        assert (held.state, held.places[0].at) == (PlanState.UNDONE, At.UNDONE)
        assert here.desk.drafts == []
        assert goal not in (await here.page("/done")).text

    run(script)


def test_what_is_final_offers_no_undo_and_refuses_one() -> None:
    async def script(here: Console) -> None:
        plan = await here.propose("refund", invoice="1", amount_cents=7)
        page = await here.page(f"/plans/{plan.plan}")
        assert not page.all("form", action=f"/console/plans/{plan.plan}/undo")
        csrf = csrf_of(page)
        version = str((await here.stored(plan)).version)
        sent = {"csrf": csrf, "version": version}
        refused = await here.send(f"/plans/{plan.plan}/undo", sent)
        assert refused.status_code == 409
        assert "It cannot be done as it stands now, so nothing was done." in refused.text
        stale = await here.send(f"/plans/{plan.plan}/undo", {"csrf": csrf, "version": "0"})
        assert stale.status_code == 412
        assert "It moved since you saw it, so nothing was done." in stale.text

    run(script)


def test_what_code_begins_can_be_dropped_by_a_person() -> None:
    async def script(here: Console) -> None:
        calls = [Wanted(tool="refund", arguments={"invoice": "1", "amount_cents": 7})]
        ask = Ask(tenant="acme", principal="ana", session="s")
        kept = await here.rt.preview(calls, ask=ask, keep=True)
        assert "Nothing waits for you." in (await here.page("/waiting")).words
        path = f"/plans/{kept.plan}"
        assert (
            "It begins when the program that previewed it commits it."
            in (await here.page(path)).words
        )
        dropped = await here.follow(await here.press(path, f"{path}/abandon"))
        assert "You dropped it." in dropped.words
        assert (await here.stored(kept)).state is PlanState.ABANDONED

    run(script)


@pytest.mark.req("S1-55")
@pytest.mark.parametrize("who", ["bob", "eve"])
def test_a_plan_of_somebody_else_is_one_that_there_is_not(who: str) -> None:
    async def script(here: Console) -> None:
        plan = await here.refund()
        before = await here.stored(plan)
        fingerprint = before.hash
        csrf = (await here.fields("/waiting", "/sign-out", who=who))["csrf"]
        bodies = set()
        for id in (plan.plan, NOTHING):
            answer = await here.visitors.get(f"/plans/{id}", who=who)
            assert answer.status_code == 404
            bodies.add(answer.content)
            for verb in ("approve", "decline", "cancel", "retry", "undo", "abandon"):
                sent = {"csrf": csrf, "fingerprint": fingerprint, "version": "1", "attempt": "1"}
                answer = await here.send(f"/plans/{id}/{verb}", sent, who=who)
                assert answer.status_code == 404
                bodies.add(answer.content)
        assert len(bodies) == 1
        events = [
            await here.visitors.get(f"/plans/{id}/events", who=who) for id in (plan.plan, NOTHING)
        ]
        assert {(each.status_code, each.content) for each in events} == {(204, b"")}
        assert await here.stored(plan) == before
        assert "Nothing waits for you." in (await here.page("/waiting", who=who)).words

    run(script)


def test_who_administers_sees_it_and_cannot_say_yes_for_somebody() -> None:
    async def script(here: Console) -> None:
        plan = await here.refund()
        path = f"/plans/{plan.plan}"
        page = await here.page(path, who="boss")
        assert "This waits for ana, whose yes it needs." in page.words
        assert not page.all("form", action=f"/console{path}/approve")
        csrf = (await here.fields("/waiting", "/sign-out", who="boss"))["csrf"]
        sent = {"csrf": csrf, "fingerprint": plan.fingerprint}
        refused = await here.send(f"{path}/approve", sent, who="boss")
        assert refused.status_code == 409
        assert "There is nothing here that you could agree to" in refused.text
        assert (await here.stored(plan)).state is PlanState.PROPOSED
        assert here.desk.refunds == []

    run(script)


def test_each_form_says_what_it_is_for_and_has_its_csrf_value() -> None:
    async def script(here: Console) -> None:
        await here.refund()
        await here.propose("erase", what="files")
        page = await here.page("/waiting")
        for form in page.all("form"):
            assert form.attributes["method"] == "post"
            assert "csrf" in named(form)
            assert all(button.words for button in form.all("button"))
        labelled = {label.attributes["for"] for label in page.all("label")}
        typed = [each for each in page.all("input") if each.attributes.get("type") != "hidden"]
        assert {each.attributes["id"] for each in typed} <= labelled

    run(script)
