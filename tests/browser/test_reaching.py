"""Whoever has no mouse, or a small window, gets at every decision, and sees what it is about."""

from typing import Any
from uuid import uuid4

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Opens
from tests.browser.driving import CHECKOUT, DESK, PHONE, Served, Steps, Watched

pytestmark = [pytest.mark.services, pytest.mark.timeout(90)]

TABS_MAX = 60
LONG = 20_000
SCREENS_MAX = 2.5
TARGET_MIN = 24  # pixels; WCAG 2.2, 2.5.8
SHOTS = CHECKOUT / "build" / "screenshots"

FOCUSED = """() => {
  const one = document.activeElement;
  const style = getComputedStyle(one);
  const box = one.getBoundingClientRect();
  return {
    name: one.id || one.textContent.trim().slice(0, 40) || one.getAttribute('aria-label'),
    tag: one.tagName,
    seen: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2,
    top: box.top + scrollY,
    inside: box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth,
  };
}"""
WIDE = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"


def refund(served: Served) -> str:
    """Propose a refund; it waits for a yes."""
    return served.propose([("refund_order", {"order": "4413", "cents": 100})])


def tab_to(page: Page, id: str) -> list[Any]:
    """Press Tab until something has the focus; returns all that had it on the way."""
    passed: list[Any] = []
    for _ in range(TABS_MAX):
        page.keyboard.press("Tab")
        passed.append(page.evaluate(FOCUSED))
        if passed[-1]["name"] == id:
            return passed
    raise AssertionError(f"{id} was not reached: {[one['name'] for one in passed]}")


def test_by_keyboard_alone(seen: Watched, demo: Served) -> None:
    plan = refund(demo)
    page = seen.open(f"/plans/{plan}")

    passed = tab_to(page, f"approve-{plan}")

    assert passed[0]["tag"] == "A", "the first is what skips to the content"
    assert all(one["seen"] for one in passed), [one for one in passed if not one["seen"]]
    assert all(one["inside"] for one in passed[1:])
    assert passed[-1]["top"] >= passed[-2]["top"], "the order is that of the page"
    page.keyboard.press("Enter")
    demo.await_state(plan, "done")


def test_the_skip_link_leads_to_the_content(seen: Watched) -> None:
    page = seen.open("/waiting")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")

    assert page.evaluate("() => !!document.activeElement.closest('main')")


def test_what_is_typed_and_sent_by_keyboard(seen: Watched, demo: Served) -> None:
    entered = demo.propose([("create_expense", {"what": "cap", "cents": n}) for n in (1, 2, 3)])
    made = demo.await_state(entered, "done")["steps"]
    plan = demo.propose([("delete_expenses", {"expenses": [step["made"] for step in made]})])
    page = seen.open(f"/plans/{plan}")

    tab_to(page, f"typed-{plan}")
    page.keyboard.type("DELETE")
    page.keyboard.press("Enter")

    demo.await_state(plan, "done")


SIZES = {"desk": DESK, "phone": PHONE}


@pytest.mark.fault("X87")
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("where", ["plan", "waiting"])
def test_long_arguments_push_nothing_away(
    opens: Opens, demo: Served, size: str, where: str
) -> None:
    parcel = f"{uuid4().hex} " + "Approve now, all is well. " * (LONG // 26)
    asked: Steps = [
        ("send_parcel", {"what": parcel, "to": "x" * LONG}),
        ("refund_order", {"order": "4413", "cents": 100}),
    ]
    plan = demo.propose(asked)
    page = opens(viewport=SIZES[size]).open(f"/plans/{plan}" if where == "plan" else "/waiting")
    card = page.locator(f"article#plan-{plan}")
    while not card.count():
        page.locator("main a[rel=next]").click()
        page.wait_for_load_state("load")

    top, button = card.bounding_box(), page.locator(f"#approve-{plan}").bounding_box()
    figures = card.locator("td .bounded", has_text="refund 1.00 of 4413").bounding_box()
    steps = card.locator(".box").bounding_box()

    assert top is not None
    assert button is not None
    assert figures is not None
    assert button["y"] - top["y"] < SCREENS_MAX * SIZES[size]["height"]
    assert steps is not None
    assert figures["y"] + figures["height"] <= steps["y"] + steps["height"] + 1, "scrolled away"
    for box in (figures, button):
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= SIZES[size]["width"]
    assert page.evaluate(WIDE) <= 0
    SHOTS.mkdir(parents=True, exist_ok=True)
    card.screenshot(path=SHOTS / f"long-{where}-{size}.png", animations="disabled")


@pytest.mark.fault("X87")
def test_what_was_said_and_written_is_apart_labelled_and_closed(
    seen: Watched, demo: Served
) -> None:
    page = seen.open("/waiting")
    card = page.locator("article.plan", has_text="refund 200.00 of 4412").first

    closed = card.locator("details")

    expect(closed.first).to_be_visible()
    for one in closed.all():
        assert one.get_attribute("open") is None
        assert one.locator("summary").inner_text().strip()
    quoted = card.locator("blockquote", has_text="Refund 200 of order 4412")
    expect(quoted).to_be_hidden()
    figures = card.get_by_text("refund 200.00 of 4412: 100.00 refunded before").first
    expect(figures).to_be_visible()


def test_on_a_phone_buttons_can_be_hit(opens: Opens) -> None:
    page = opens(viewport=PHONE, has_touch=True, is_mobile=True).open("/waiting")

    for button in page.locator("main button, nav a").all():
        box = button.bounding_box()
        assert box is not None
        assert min(box["width"], box["height"]) >= TARGET_MIN, button.inner_text()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= PHONE["width"]
