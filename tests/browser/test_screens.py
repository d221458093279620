"""How each page looks: readable in light and dark, whole on a phone, labelled, in two languages.

A picture of each is left in `build/screenshots`, for whoever wants to see it.
"""

import re
from collections.abc import Generator, Mapping
from typing import Any

import pytest
from playwright.sync_api import Page

from tests.browser.conftest import Opens
from tests.browser.driving import CHECKOUT, DESK, PHONE, Served, serving

pytestmark = [pytest.mark.services, pytest.mark.timeout(120)]

SHOTS = CHECKOUT / "build" / "screenshots"
LOOKS: Mapping[str, Mapping[str, Any]] = {
    "light": {"viewport": DESK, "color_scheme": "light"},
    "dark": {"viewport": DESK, "color_scheme": "dark"},
    "phone": {"viewport": PHONE, "color_scheme": "light", "has_touch": True, "is_mobile": True},
}
CONTRAST_MIN = 4.5  # WCAG 2.2, 1.4.3
GROUND = "() => getComputedStyle(document.body).backgroundColor"

# Every text that is seen, with too little contrast to what is behind it.
PALE = """least => {
  const rgba = text => {
    const parts = text.match(/[\\d.]+/g).map(Number);
    const scale = text.startsWith('color(srgb') ? 255 : 1;
    return [...parts.slice(0, 3).map(x => x * scale), parts[3] ?? 1];
  };
  const over = ([r, g, b, a], below) =>
    [r, g, b].map((x, i) => x * a + below[i] * (1 - a));
  const ground = node => {
    const colours = [];
    for (let each = node; each; each = each.parentElement)
      colours.unshift(rgba(getComputedStyle(each).backgroundColor));
    return colours.reduce((below, colour) => over(colour, below), [255, 255, 255]);
  };
  const light = rgb => {
    const [r, g, b] = rgb.map(x => x / 255)
      .map(x => x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const found = new Set();
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const node = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || !node.checkVisibility()) continue;
    const behind = ground(node.closest('svg') ? node.closest('svg') : node);
    const style = getComputedStyle(node);
    const [one, two] = [light(over(rgba(node.closest('svg') ? style.fill : style.color), behind)),
                        light(behind)];
    const ratio = (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05);
    const named = node.className?.baseVal ?? node.className;
    if (ratio < least) found.add(`${node.tagName}.${named}: ${ratio.toFixed(2)}`);
  }
  return [...found];
}"""
UNLABELLED = """() => [...document.querySelectorAll('input:not([type=hidden]),textarea,select')]
  .filter(one => !one.labels?.length && !one.getAttribute('aria-label'))
  .map(one => one.outerHTML)"""
WIDE = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"


NAMES = (
    *("waiting", "running", "done", "plan", "plan-alike", "plan-typed", "plan-doubt", "plan-done"),
    *("question", "case", "operation", "session", "search", "audit", "try"),
)


def lines(served: Served, state: str) -> dict[str, Any]:
    """Return the plans in a state, by their session."""
    found = served.ask("GET", f"/plans?state={state}&limit=50")["plans"]
    return {line["session"]: line for line in found}


@pytest.fixture(scope="session")
def paths(demo: Served) -> Mapping[str, str]:
    """Where each page is, by the name of its picture."""
    waits, doubts, done = (lines(demo, state) for state in ("proposed", "in_doubt", "done"))
    mail = doubts["marta-hosting"]
    return {
        **{name: f"/{name}" for name in ("waiting", "running", "done", "audit", "try")},
        "plan": f"/plans/{waits['marta-site']['plan_id']}",
        "plan-alike": f"/plans/{waits['marta-again']['plan_id']}",
        "plan-typed": f"/plans/{waits['trip']['plan_id']}",
        "plan-doubt": f"/plans/{mail['plan_id']}",
        "plan-done": f"/plans/{done['marta-logo']['plan_id']}",
        "case": f"/cases/{mail['operations'][-1]}",
        "operation": f"/operations/{mail['operations'][-1]}",
        "session": f"/sessions/{mail['session']}",
        "search": f"/search?q={mail['operations'][-1]}",
        "question": "/waiting",
    }


def shoot(page: Page, name: str) -> None:
    """Leave a picture of a page."""
    SHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SHOTS / f"{name}.png", full_page=True, animations="disabled")


def require_readable(page: Page) -> None:
    """See that a page is one: a title, one heading, a landmark, and nothing without a name."""
    assert page.locator("h1").count() == 1
    assert page.locator("main").count() == page.locator("nav").count() == 1
    assert page.title().endswith("landed")
    assert page.evaluate(UNLABELLED) == []
    assert page.evaluate(PALE, CONTRAST_MIN) == []


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("name", NAMES)
def test_each_page_can_be_read(
    opens: Opens, paths: Mapping[str, str], name: str, look: str
) -> None:
    page = opens(**LOOKS[look]).open(paths[name])
    if name == "question":
        id = page.locator("article.asked").first.get_attribute("id")
        page.goto(page.url.replace("/waiting", f"/questions/{id}"))

    require_readable(page)
    assert page.evaluate(WIDE) <= 0, "the page is wider than its window"
    shoot(page, f"{name}-{look}")


def test_dark_is_dark(opens: Opens) -> None:
    grounds = [opens(**LOOKS[look]).open("/waiting").evaluate(GROUND) for look in ("light", "dark")]

    light, dark = [sum(map(int, re.findall(r"\d+", each)[:3])) for each in grounds]
    assert dark < 150 < 600 < light


@pytest.fixture(scope="module")
def spanish() -> Generator[Served]:
    """The demo, in Spanish."""
    with serving("--demo", "--lang", "es") as served:
        yield served


def test_in_spanish_every_word_is(opens: Opens, spanish: Served) -> None:
    watched = opens(spanish)
    said = ""
    for path in ("/waiting", "/running", "/done", "/audit", "/try", "/search"):
        page = watched.open(path)
        assert page.locator("html").get_attribute("lang") == "es"
        require_readable(page)
        said += page.locator("body").inner_text()
        shoot(page, f"{path[1:]}-es")

    for word in ("Te esperan", "Aprobar", "Rechazar", "¿Lo hago?", "Borrador"):
        assert word in said, word
    for word in ("Approve", "Decline", "Shall I do it", "Waiting", "Search", "Undo", "Since"):
        assert not re.search(rf"\b{word}\b", said), word
