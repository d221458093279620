"""What others wrote is shown as text, on every page: nothing runs, leaves, or hides."""

import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from urllib.parse import quote
from zlib import crc32

import pytest
from playwright.sync_api import Page

from landed.console.shown import visible
from tests.browser.conftest import Opens
from tests.browser.driving import CHECKOUT, Served, Watched, serving
from tests.browser.hostile import PERSON
from tests.browser.payloads import HIDDEN, PAYLOADS

pytestmark = [pytest.mark.services, pytest.mark.timeout(240)]

LISTS: tuple[str, ...] = ("/waiting", "/running", "/done", "/audit", "/search?q=x", "/try")
PAGES_MAX = 250
SAMPLED = {"/operations": 20, "/cases": 5, "/questions": 8, "/sessions": 5, "/audit": 12}
"""Of how many of a kind one is looked at; of plans and lists all."""

FILLS_MAX_S = 60
STARTED = "() => window.pwned !== undefined"
STRANGE = """() => {
  const found = [];
  for (const each of document.querySelectorAll('*')) {
    for (const {name, value} of each.attributes) {
      if (name.startsWith('on') || name === 'style' || name === 'srcdoc' || name === 'formaction')
        found.push(`${each.tagName} ${name}`);
      if (['href', 'src', 'action', 'xlink:href'].includes(name)) {
        const url = new URL(value, location.href);
        if (url.origin !== location.origin) found.push(`${each.tagName} ${name}=${value}`);
      }
    }
  }
  const never = 'iframe,object,embed,base,style,plaintext,xmp,template,video,audio,img';
  for (const each of document.querySelectorAll(`${never},script:not([src])`))
    found.push(each.tagName);
  if (document.querySelectorAll('h1').length !== 1) found.push('not one h1');
  if (document.querySelectorAll('main').length !== 1) found.push('not one main');
  return found;
}"""


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Generator[Served]:
    """A server whose store is full of them."""
    url = f"sqlite:///{tmp_path_factory.mktemp('hostile')}/hostile.db"
    command = [sys.executable, "-m", "tests.browser.hostile", url]
    environment = {"PYTHONPATH": f"{CHECKOUT / 'src'}:{CHECKOUT}", "PATH": str(Path("/usr/bin"))}
    subprocess.run(command, cwd=CHECKOUT, env=environment, check=True, timeout=FILLS_MAX_S)
    with serving("--app", "tests.browser.hostile", "--store", url, "--as", PERSON) as served:
        yield served


def links(page: Page) -> list[str]:
    """Return where a page leads within the console, as paths below it."""
    hrefs: list[str] = page.eval_on_selector_all("a[href]", "all => all.map(one => one.href)")
    within = [href.split("#")[0].split("/console", 1) for href in hrefs if "/console/" in href]
    return [path for _, path in within]


def worth(path: str, seen: set[str]) -> bool:
    """Whether a page is looked at: all plans and lists, and some of what is many and alike."""
    if path in seen or path.startswith(("/static", "/sign")) or "/audit." in path:
        return False
    kind = "/audit" if "/audit" in path else f"/{path.split('/')[1].split('?')[0]}"
    return crc32(path.encode()) % SAMPLED.get(kind, 1) == 0


@pytest.mark.fault("X88")
def test_nothing_of_them_runs_leaves_or_hides_on_any_page(hostile: Served, opens: Opens) -> None:
    watched = opens(hostile)
    asked, seen, shown = list(LISTS), set[str](LISTS), list[str]()

    while asked and len(shown) < PAGES_MAX:
        path = asked.pop(0)
        page = watched.open(path)
        shown.append(text_of(watched, path))
        for link in links(page):
            if worth(link, seen):
                seen.add(link)
                asked.append(link)

    assert len(PAYLOADS) >= 150
    whole = "\n".join(shown)
    missing = [text for text in PAYLOADS if squeezed(str(visible(text))) not in whole]
    assert not missing, f"{len(missing)} are shown on no page: {missing[:5]}"


def text_of(watched: Watched, path: str) -> str:
    """Return the text of a page, having seen that nothing of what it shows has become of it."""
    page = watched.page
    assert not page.evaluate(STARTED), f"{path}: something ran"
    assert page.evaluate(STRANGE) == [], path
    text = str(page.evaluate("() => document.body.textContent"))
    assert not HIDDEN & set(text), f"{path}: {sorted(HIDDEN & set(text))!a}"
    return squeezed(text)


def squeezed(text: str) -> str:
    """Return a text with one blank where there are several, as a page shows it."""
    return " ".join(text.split())


@pytest.mark.fault("X88")
def test_what_is_searched_for_is_shown_as_text(hostile: Served, opens: Opens) -> None:
    watched = opens(hostile)
    for text in PAYLOADS[::3]:
        watched.open(f"/search?q={quote(text[:200], safe='')}")
        text_of(watched, f"a search for {text!a}")
