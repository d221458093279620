"""`landed audit show`: from the journal alone, the story of each plan as it was."""

import json
from typing import Any

import pytest

from landed.core.canonical import fingerprint
from tests.cli.shop import DRAFT, INVOICE, Shop, close_series, done, open_series, shop

__all__ = ["shop"]


def story(audit: dict[str, Any]) -> list[tuple[str, str, int]]:
    return [(row["event"], row["actor"], row["attempt"]) for row in audit["events"]]


def steps(audit: dict[str, Any]) -> list[tuple[int, int, str]]:
    return [(row["attempt"], row["step"], row["status"]) for row in audit["steps"]]


def broken_then_done(shop: Shop) -> dict[str, Any]:
    plan = shop.propose().plan
    close_series()
    assert shop.run("plan", "approve", plan, "--as", "ana", app=True).exit_code == 1
    open_series()
    assert shop.run("plan", "retry", plan, "--as", "ana", app=True).exit_code == 0
    audit: dict[str, Any] = shop.read("audit", "show", plan)
    return audit


@pytest.mark.req("S1-59", "S1-65")
def test_a_plan_that_broke_off_and_was_retried_is_told_event_by_event(shop: Shop) -> None:
    audit = broken_then_done(shop)
    assert story(audit) == [
        ("proposed", "ana", 1),
        ("approved", "ana", 1),
        ("broke off", "runtime", 1),
        ("offered", "runtime", 2),
        ("offered anew", "runtime", 2),
        ("retried", "ana", 2),
        ("approved", "ana", 2),
        ("finished", "runtime", 2),
    ]
    assert steps(audit) == [
        (1, 1, "done"),
        (1, 2, "failed"),
        (1, 3, "not done"),
        (2, 1, "replayed"),
        (2, 2, "done"),
        (2, 3, "done"),
    ]
    assert len({(row["at"], row["seq"]) for row in audit["events"]}) == 8


@pytest.mark.req("S1-65")
def test_how_often_a_step_really_ran_can_be_counted(shop: Shop) -> None:
    rows = broken_then_done(shop)["steps"]
    effects = [(row["attempt"], row["step"], row["effects"]) for row in rows if row["effects"]]
    assert effects == [
        (1, 1, [{"type": "draft", "id": "D-1"}]),
        (2, 2, [{"type": "invoice", "id": "F-2"}]),
        (2, 3, [{"type": "mail", "id": "<3@mail.example>"}]),
    ]
    assert [row["operation"] == rows[0]["operation"] for row in rows if row["step"] == 1] == [
        True,
        True,
    ]
    assert [row["sends"] for row in rows] == [1, 1, 0, 0, 1, 1]
    assert rows[4]["retries"] == rows[1]["operation"]
    assert done() == ["draft 500", "issue D-1", "mail F-2 client@example.com"]


@pytest.mark.req("S1-59")
def test_each_step_has_its_checks_and_its_evidence(shop: Shop) -> None:
    rows = broken_then_done(shop)["steps"]
    asked = [[(check["check"], check["came"]) for check in row["checks"]] for row in rows]
    assert asked == [
        [("basis", "passed")],
        [("permission", "passed"), ("basis", "passed")],
        [],
        [("basis", "not asked")],
        [("permission", "passed"), ("basis", "passed")],
        [],
    ]
    assert [row["evidence"][-1]["says"] for row in rows if row["attempt"] == 1 and row["evidence"]]
    assert "the series is closed" in rows[1]["reason"]
    assert "the series is closed" in rows[1]["evidence"][-1]["says"]


@pytest.mark.req("S4-48")
def test_what_was_authorised_is_there_to_the_byte(shop: Shop) -> None:
    audit = broken_then_done(shop)
    plan, yes = audit["plan"], audit["authorised"]
    assert fingerprint(json.loads(plan["shown"]), domain="plan") == plan["hash"]
    assert [step["arguments"] for step in json.loads(plan["shown"])] == [
        dict(call.arguments) for call in INVOICE
    ]
    assert [(one["purpose"], one["by"], one["hash"]) for one in yes] == [
        ("confirm", "ana", plan["hash"]),
        ("retry", "ana", plan["hash"]),
    ]
    assert "Draft an invoice over 500" in yes[0]["asked"]
    assert yes[0]["at"] >= plan["made_at"]
    assert plan["asked"] == "invoice the logo and mail it"
    assert plan["basis"].startswith("sha256:")


@pytest.mark.req("S1-59", "S1-62", "S1-21", "K12")
def test_a_yes_in_vain_is_there_with_its_reason_and_told_alike(shop: Shop) -> None:
    plan = shop.propose().plan
    strange = shop.run("plan", "approve", plan, "--as", "mallory")
    absent = shop.run("plan", "approve", "plan-nobody", "--as", "mallory")
    assert strange.output == absent.output
    assert strange.exit_code == absent.exit_code == 1
    shop.run("plan", "approve", plan, "--as", "ana", app=True)
    shop.run("plan", "approve", plan, "--as", "ana")
    rows = shop.read("audit", "show", plan)["events"]
    rejected = [(row["actor"], row["reason"]) for row in rows if row["event"] == "rejected"]
    assert rejected == [("mallory", "mismatch"), ("ana", "used")]
    assert [one["by"] for one in shop.read("audit", "show", plan)["authorised"]] == ["ana"]


@pytest.mark.req("S1-59")
@pytest.mark.field("C20")
def test_an_expiry_is_the_clocks_doing_before_and_after_anybody_notices(shop: Shop) -> None:
    plan = shop.propose(answer_within_s=0.0).plan
    audit = shop.read("audit", "show", plan)
    assert story(audit) == [("proposed", "ana", 1), ("expired", "clock", 1)]
    assert audit["events"][-1]["seq"] == 0
    assert audit["plan"]["state"] == "expired"
    assert steps(audit) == [(1, 1, "not done"), (1, 2, "not done"), (1, 3, "not done")]

    late = shop.run("plan", "approve", plan, "--as", "ana")
    assert (late.exit_code, "the time to answer is over" in late.output) == (1, True)
    rows = shop.read("audit", "show", plan)["events"]
    assert [(row["event"], row["actor"]) for row in rows] == [
        ("proposed", "ana"),
        ("rejected", "ana"),
        ("expired", "clock"),
    ]
    assert rows[1]["reason"] == "expired"
    assert all(row["seq"] for row in rows)


@pytest.mark.req("S1-59")
@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("decline", "--as", "ana"), ("declined", "ana")),
        (("abandon", "--as", "bot", "--why", "no use"), ("abandoned", "bot")),
        (("abandon",), ("abandoned", "agent")),
    ],
)
def test_a_plan_that_never_began_says_who_ended_it(
    shop: Shop, words: tuple[str, ...], told: tuple[str, str]
) -> None:
    plan = shop.propose().plan
    assert shop.run("plan", words[0], plan, *words[1:]).exit_code == 0
    rows = shop.read("audit", "show", plan)["events"]
    assert (rows[-1]["event"], rows[-1]["actor"]) == told
    assert len(rows) == 2


@pytest.mark.req("S1-59")
def test_an_undo_is_told_and_names_what_took_each_step_back(shop: Shop) -> None:
    plan = shop.propose(DRAFT).plan
    assert shop.run("plan", "undo", plan, "--as", "ana", app=True).exit_code == 0
    audit = shop.read("audit", "show", plan)
    assert story(audit) == [
        ("proposed", "ana", 1),
        ("finished", "runtime", 1),
        ("undo asked", "ana", 1),
        ("undone", "runtime", 1),
    ]
    (row,) = audit["steps"]
    took_back = shop.read("inspect", row["undone_by"])["found"][0]
    assert (took_back["state"], took_back["says"]) == ("confirmed", "Done: delete(id=D-1): id D-1.")
    assert done() == ["draft 500", "delete D-1"]


@pytest.mark.req("S1-59")
def test_as_text_it_has_the_same_rows(shop: Shop) -> None:
    audit = broken_then_done(shop)
    text = shop.run("audit", "show", audit["plan"]["plan"]).output
    for row in audit["steps"]:
        assert f"  {row['attempt']}.{row['step']}  {row['summary']}: {row['status']}" in text
    for row in audit["events"]:
        assert f"{row['seq']:>8}  " in text
    assert audit["plan"]["hash"] in text


@pytest.mark.parametrize("tenant", ["other", "default"])
def test_a_plan_that_is_not_there_or_not_yours_is_one_error(shop: Shop, tenant: str) -> None:
    plan = shop.propose(tenant="acme").plan
    said = shop.run("audit", "show", plan, "--tenant", tenant)
    assert said.exit_code == 1
    assert said.output == f"Error: there is no plan '{plan}'\n"
