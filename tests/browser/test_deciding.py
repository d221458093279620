"""A person presses what there is to press, with JavaScript and without, and that happens."""

from typing import Any
from uuid import uuid4

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Opens
from tests.browser.driving import APPEARS_MAX_MS, Served, Watched

pytestmark = [pytest.mark.services, pytest.mark.timeout(90)]

ON_PAPER = "on thick paper"  # The courier's printer jams at it, once.
ABROAD = "abroad"  # Of what it sends there nobody hears.


@pytest.fixture(params=(True, False), ids=("scripts", "no scripts"))
def one(request: pytest.FixtureRequest, opens: Opens) -> Watched:
    """A page in a browser that runs JavaScript, or does not."""
    return opens(java_script_enabled=request.param)


def form(page: Page, plan: str, verb: str) -> Locator:
    """Return the form for a verb about a plan."""
    return page.locator(f"main form[action$='/plans/{plan}/{verb}']").first


def press(watched: Watched, plan: str, verb: str) -> Page:
    """Open the page of a plan and press a button on it."""
    page = watched.open(f"/plans/{plan}")
    form(page, plan, verb).locator("button").click()
    page.wait_for_load_state("load")
    return page


def refund(served: Served) -> str:
    """Propose a refund; it waits for a yes."""
    return served.propose([("refund_order", {"order": "4413", "cents": 100})])


def month() -> str:
    """Return a month that nobody has asked for."""
    return f"month {uuid4().hex[:6]}"


def printing(served: Served, *, pages: int, seconds: int) -> str:
    """Have some pages printed, one after the other."""
    asked = [("print_statement", {"month": month(), "seconds": seconds}) for _ in range(pages)]
    return served.propose(asked)


def statuses(watched: Watched, *known: int) -> None:
    """Expect that the browser's console tells of answers with these statuses."""
    watched.expected += [f"status of {status}" for status in known]


@pytest.mark.req("S1-64")
def test_approve(one: Watched, demo: Served) -> None:
    plan = refund(demo)
    page = one.open(f"/plans/{plan}")
    expect(page.locator("main")).to_contain_text("refund 1.00 of 4413")
    form(page, plan, "approve").locator("button").click()

    demo.await_state(plan, "done")
    page.reload()
    expect(page.locator("main .state").first).to_have_text("done")
    assert form(page, plan, "approve").count() == 0


def test_approve_twice_is_one_refund_and_is_said(one: Watched, demo: Served) -> None:
    plan = refund(demo)
    page = one.open(f"/plans/{plan}")
    other = page.context.new_page()
    other.goto(page.url)
    for each in (page, other):
        form(each, plan, "approve").locator("button").click()
        demo.await_state(plan, "done")
        each.wait_for_load_state("load")

    expect(other.locator("[role=status]")).to_contain_text("nothing was done a second time")
    assert len(demo.plan(plan)["operations"]) == 1


def test_decline(one: Watched, demo: Served) -> None:
    plan = refund(demo)
    page = press(one, plan, "decline")

    expect(page.locator("main .state").first).to_have_text("declined")
    assert demo.plan(plan)["state"] == "declined"


def test_a_word_has_to_be_typed(one: Watched, demo: Served) -> None:
    entered = demo.propose([("create_expense", {"what": "pen", "cents": n}) for n in (1, 2, 3)])
    made = demo.await_state(entered, "done")["steps"]
    plan = demo.propose([("delete_expenses", {"expenses": [step["made"] for step in made]})])
    statuses(one, 422)

    page = one.open(f"/plans/{plan}")
    box = form(page, plan, "approve").get_by_role("textbox")
    box.fill("yes")
    form(page, plan, "approve").locator("button").click()
    expect(page.locator("[role=alert]")).to_contain_text("nothing was done")
    assert demo.plan(plan)["state"] == "proposed"

    form(page, plan, "approve").get_by_role("textbox").fill("3")
    form(page, plan, "approve").locator("button").click()
    demo.await_state(plan, "done")


def test_cancel_what_runs(one: Watched, demo: Served) -> None:
    plan = printing(demo, pages=3, seconds=30)
    demo.await_state(plan, "running")

    page = press(one, plan, "cancel")

    stopped = demo.await_state(plan, "stopped")
    page.reload()
    expect(page.locator("main .state").first).to_have_text("cancelled")
    assert [step["at"] for step in stopped["steps"]][1:] == ["waiting", "waiting"]


def test_undo(one: Watched, demo: Served) -> None:
    plan = printing(demo, pages=1, seconds=0)
    demo.await_state(plan, "done")

    page = press(one, plan, "undo")

    demo.await_state(plan, "undone")
    page.reload()
    expect(page.locator("main .state").first).to_have_text("undone")


def test_retry(one: Watched, demo: Served) -> None:
    jams = f"{month()} {ON_PAPER}"
    asked = [("print_statement", {"month": each}) for each in (month(), jams)]
    plan = demo.propose(asked)
    demo.await_state(plan, "partial")

    page = press(one, plan, "retry")

    done = demo.await_state(plan, "done")
    page.reload()
    expect(page.locator("main .state").first).to_have_text("done")
    assert done["attempt"] == 2


def test_drop_what_nobody_has_to_agree_to(one: Watched, demo: Served) -> None:
    calls = [{"tool": "create_expense", "arguments": {"what": "ink", "cents": 5}}]
    plan = demo.ask("POST", "/plans/dry-run", {"calls": calls, "session": "dropping"})["plan_id"]

    press(one, plan, "abandon")

    assert demo.plan(plan)["state"] == "abandoned"


def lost(served: Served) -> str:
    """Have an answer get lost that nobody can ask about; returns the operation, which is a case."""
    sent = [("send_postcard", {"what": uuid4().hex[:6], "to": f"Lima, {ABROAD}"})]
    plan = served.await_state(served.propose(sent), "in_doubt")
    return str(plan["operations"][0])


RULINGS = (("landed", "confirmed"), ("absent", "failed"), ("hold", "undecided"))


@pytest.mark.parametrize(("ruling", "state"), RULINGS)
def test_settle_a_case(one: Watched, demo: Served, ruling: str, state: str) -> None:
    case = lost(demo)
    page = one.open(f"/cases/{case}")
    expect(page.locator("main")).to_contain_text("connection reset by peer")
    if made := page.locator("main [name=made]").all():
        made[0].fill("P1")
    page.locator("main textarea[name=note]").fill("I telephoned them")

    page.locator(f"main button[name=ruling][value={ruling}]").click()

    expect(page.locator("[role=status]")).to_be_visible()
    assert operation(demo, case)["state"] == state
    expect(page.locator("main")).to_contain_text("I telephoned them")


def test_a_case_wants_to_know_how_one_knows(one: Watched, demo: Served) -> None:
    case = lost(demo)
    statuses(one, 422)
    page = one.open(f"/cases/{case}")

    page.locator("main button[name=ruling][value=absent]").click()

    expect(page.locator("[role=alert]")).to_be_visible()
    assert operation(demo, case)["state"] == "undecided"


def operation(served: Served, id: str) -> Any:
    """Return an operation, as the API says."""
    return served.ask("GET", f"/operations/{id}")


ANSWERS = (("scripts", "Marta's studio"), ("no scripts", "blue folder"))


@pytest.mark.parametrize(("scripts", "words"), ANSWERS)
def test_answer_a_question(opens: Opens, scripts: str, words: str) -> None:
    page = opens(java_script_enabled=scripts == "scripts").open("/waiting")
    card = page.locator("article", has_text=words)
    if scripts == "scripts":
        card.locator("form", has=page.locator("[name=answer][value=yes]")).locator("button").click()
    else:
        card.locator("textarea").fill("The red one, please")
        card.locator("form", has=page.locator("textarea")).locator("button").click()

    expect(page.locator("[role=status]")).to_contain_text("You answered")
    page.goto(page.url.split("/questions")[0] + "/waiting")
    expect(page.locator("article", has_text=words)).to_have_count(0)


def test_from_the_list_and_back(one: Watched, demo: Served) -> None:
    plan = refund(demo)
    page = one.open("/waiting")
    while form(page, plan, "approve").count() == 0:
        page.locator("main a[rel=next]").click()
        page.wait_for_load_state("load")

    form(page, plan, "approve").locator("button").click()

    demo.await_state(plan, "done")


def test_what_moved_is_shown_and_nothing_is_done(one: Watched, demo: Served) -> None:
    plan = printing(demo, pages=1, seconds=0)
    demo.await_state(plan, "done")
    statuses(one, 409, 412)
    page = one.open(f"/plans/{plan}")
    other = page.context.new_page()
    other.goto(page.url)
    form(other, plan, "undo").locator("button").click()
    demo.await_state(plan, "undone")

    form(page, plan, "undo").locator("button").click()
    page.wait_for_load_state("load")

    expect(page.locator("main [role=status], main [role=alert]")).to_contain_text("nothing was")
    assert len(demo.plan(plan)["operations"]) == 2


def test_progress_is_live(opens: Opens, demo: Served) -> None:
    plan = printing(demo, pages=3, seconds=2)
    page = opens().open(f"/plans/{plan}")
    page.evaluate("() => { window.stays = true; }")

    for line in ("Step 2 of 3", "Step 3 of 3"):
        expect(page.locator("main")).to_contain_text(line)
    expect(page.locator("main .state").first).to_have_text("done")

    assert page.evaluate("() => window.stays"), "the page was loaded again"


def test_without_scripts_progress_comes_by_loading_again(opens: Opens, demo: Served) -> None:
    plan = printing(demo, pages=1, seconds=3)
    page = opens(java_script_enabled=False).open(f"/plans/{plan}")
    expect(page.locator("main .state").first).to_have_text("running")

    expect(page.locator("main .state").first).to_have_text("done", timeout=APPEARS_MAX_MS)
