"""`landed inspect`: whatever an id names is found, and traced to the sentence that asked for it."""

import asyncio
from typing import Any
from urllib.parse import quote

import pytest

import landed
from landed.core.visible import lines
from tests.cli.shop import DRAFT, Proposed, Shop, close_series, done, open_series, shop

__all__ = ["shop"]

SENTENCE = "invoice the logo and mail it"


def found(shop: Shop, id: str) -> dict[str, Any]:
    first: dict[str, Any] = shop.read("inspect", id)["found"][0]
    return first


def kinds(links: list[dict[str, Any]]) -> list[str]:
    return [link["kind"] for link in links]


@pytest.fixture
def carried_out(shop: Shop) -> Proposed:
    proposed = shop.propose(delivery="delivery-7")
    assert shop.run("plan", "approve", proposed.plan, "--as", "ana", app=True).exit_code == 0
    return proposed


@pytest.mark.req("S1-60")
def test_what_is_in_an_inbox_leads_to_the_sentence_that_asked_for_it(
    shop: Shop, carried_out: Proposed
) -> None:
    trace = found(shop, "<3@mail.example>")
    assert (trace["kind"], trace["state"]) == ("operation", "confirmed")
    assert [(link["relation"], link["kind"]) for link in trace["up"]] == [
        ("step 3 of", "plan"),
        ("agreed to in", "approval"),
        ("answers", "question"),
        ("of turn", "turn"),
        ("opened by", "input"),
    ]
    plan, approval, question, _, heard = trace["up"]
    assert plan["id"] == carried_out.plan
    assert "ana said yes at 20" in approval["says"]
    assert "Draft an invoice over 500" in question["says"]
    assert (heard["id"], heard["says"].endswith(f": {SENTENCE}")) == (carried_out.input, True)
    assert trace["evidence"][-1]["source"] == "reply"


@pytest.mark.req("S1-60")
@pytest.mark.parametrize("form", ["{op}", "s1:{op}", "<{op}@example.com>", "<s1%3A{op}@a.example>"])
def test_a_key_and_a_message_id_name_their_operation(
    shop: Shop, carried_out: Proposed, form: str
) -> None:
    op = found(shop, "F-2")["id"]
    assert found(shop, form.format(op=op))["id"] == op


@pytest.mark.req("S1-60")
def test_an_id_that_a_service_gave_is_looked_for_in_what_it_answered_first(
    shop: Shop, carried_out: Proposed
) -> None:
    trace = found(shop, "F-2")
    assert trace["says"] == "Done: issue(draft=D-1): id F-2."
    # Nothing made it: only a mail speaks of it.
    assert found(shop, "client@example.com")["says"].startswith("Done: mail(")


@pytest.mark.parametrize("kind", ["plan", "turn", "input", "question", "approval", "token"])
def test_each_record_is_what_it_is_and_leads_to_the_others(
    shop: Shop, carried_out: Proposed, kind: str
) -> None:
    approval = f"approval/{carried_out.plan}/confirm/1"
    id = {"approval": approval, "token": carried_out.token}.get(kind) or getattr(carried_out, kind)
    trace = found(shop, id)
    assert trace["kind"] == ("approval" if kind == "token" else kind)
    around = {trace["kind"], *kinds(trace["up"]), *kinds(trace["down"])}
    assert {"input", "plan"} <= around or kind == "input"
    if kind == "plan":
        assert kinds(trace["down"]) == ["operation", "operation", "operation"]
        assert [link["state"] for link in trace["down"]] == ["confirmed"] * 3


@pytest.mark.parametrize("id", ["-abc", "--abc", "-"])
def test_an_id_that_looks_like_an_option_is_an_id(shop: Shop, id: str) -> None:
    heard = shop.propose(delivery=id).input
    assert found(shop, id)["id"] == heard


def test_a_delivery_names_its_input(shop: Shop, carried_out: Proposed) -> None:
    assert found(shop, "delivery-7")["id"] == carried_out.input


def test_what_was_taken_back_leads_to_what_took_it_back(shop: Shop) -> None:
    plan = shop.propose(DRAFT).plan
    shop.run("plan", "undo", plan, "--as", "ana", app=True)
    assert done() == ["draft 500", "delete D-1"]
    trace = shop.read("inspect", "D-1")
    made, *others = trace["found"]
    assert made["says"] == "Done: draft(amount=500): id D-1."
    (release,) = [link for link in made["down"] if link["kind"] == "release"]
    assert release["state"] == "done"
    around = found(shop, release["id"])
    assert [link["relation"] for link in around["up"]][:2] == ["takes back", "step 1 of"]
    assert "is done by" in [link["relation"] for link in around["up"]]
    undone = [each for each in others if each["says"].startswith("Done: delete")]
    assert [link["relation"] for link in undone[0]["up"]][:2] == ["takes back", "step 1 of"]


def test_a_step_that_was_tried_again_leads_to_the_first_try(shop: Shop) -> None:
    plan = shop.propose().plan
    close_series()
    shop.run("plan", "approve", plan, "--as", "ana", app=True)
    (broken,) = [
        link for link in found(shop, plan)["down"] if link["says"].startswith("It had no effect")
    ]
    assert broken["state"] == "failed"
    open_series()
    shop.run("plan", "retry", plan, "--as", "ana", app=True)
    assert found(shop, broken["id"])["up"][0]["relation"] == "step 2 of"
    again = found(shop, "F-2")["up"]
    assert ("retries", broken["id"]) in [(link["relation"], link["id"]) for link in again]


def test_a_yes_that_may_be_given_says_until_when(shop: Shop) -> None:
    plan = shop.propose().plan
    approval = found(shop, f"approval/{plan}/confirm/1")
    says = "running it may be agreed to until 20"
    assert (approval["state"], approval["says"][: len(says)]) == ("open", says)
    shop.run("plan", "decline", plan, "--as", "ana")
    assert "ana said no at 20" in found(shop, approval["id"])["says"]


def test_who_said_yes_stays_who_said_it_when_others_present_it_later(
    shop: Shop, carried_out: Proposed
) -> None:
    shop.run("plan", "approve", carried_out.plan, "--as", "mallory")
    approval = found(shop, f"approval/{carried_out.plan}/confirm/1")
    assert (approval["state"], "ana said yes" in approval["says"]) == ("taken", True)
    assert "mallory" not in approval["says"]


def test_a_lone_call_a_read_and_a_message_are_found(shop: Shop) -> None:
    @landed.tool(effect="none")
    async def rate(country: str) -> dict[str, str]:
        return {"id": "rate-es", "percent": "21"}

    @landed.tool(effect="reversible")
    async def note(text: str) -> dict[str, str]:
        return {"id": "N-77"}

    async def act() -> str:
        async with landed.open(shop.url, tools=[rate, note]) as rt:
            heard = await rt.receive("note the rate", principal="ana", session="s1")
            await rt.perform(rate, {"country": "ES"}, ask=heard.ask("rate"))
            await rt.perform(note, {"text": "21"}, ask=heard.ask("note"))
            return (await rt.report(heard.turn)).turn

    turn = asyncio.run(act())
    read, noted = found(shop, "rate-es"), found(shop, "N-77")
    assert (read["kind"], read["state"]) == ("observation", "answered")
    assert read["says"].startswith("The answer to rate(country=ES)")
    for trace in (read, noted):
        assert kinds(trace["up"]) == ["turn", "input"]
    told = found(shop, turn)
    (message,) = [link for link in told["down"] if link["kind"] == "message"]
    assert found(shop, message["id"])["says"].startswith("Done: note(")


def test_a_bound_number_of_what_one_id_names_is_told_and_the_rest_is_named(shop: Shop) -> None:
    for number in range(7):
        shop.propose(DRAFT, session=f"s{number}")
    answer = shop.read("inspect", "500")
    assert (len(answer["found"]), len(answer["others"])) == (5, 2)
    text = shop.run("inspect", "500").output
    assert text.count("also: op-") == 2


@pytest.mark.req("K12")
@pytest.mark.parametrize(
    "id", ["plan-nobody", "F-22", "%", "' OR 1=1", "op-x", "\ud800", "a" * 2000, "<@>", ""]
)
def test_what_is_known_by_nothing_is_one_line_that_does_not_repeat_it(shop: Shop, id: str) -> None:
    shop.propose()
    said = shop.run("inspect", id)
    assert said.exit_code == 1
    assert said.output.startswith("Error: ")
    assert len(id) < 3 or id not in said.output


def test_nobody_sees_what_is_another_tenants(shop: Shop) -> None:
    proposed = shop.propose(DRAFT, tenant="acme")
    for id in (proposed.plan, proposed.input, "D-1", quote(proposed.turn)):
        assert shop.run("inspect", id).exit_code == 1
        assert shop.run("inspect", id, "--tenant", "acme").exit_code == 0


def test_as_text_it_is_the_same_told_line_by_line(shop: Shop, carried_out: Proposed) -> None:
    trace = found(shop, "F-2")
    text = shop.run("inspect", "F-2").output.splitlines()
    assert text[0] == f"{trace['id']}: operation, confirmed"
    assert text[1] == f"  {trace['says']}"
    assert "up" in text
    for link in trace["up"]:
        (told,) = [each for each in text if f" {link['id']} (" in each]
        assert lines(link["says"])[0].split(" / ")[0] in told
