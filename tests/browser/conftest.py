"""What the tests in a browser share: Debian's Chromium, the demo that it looks at, watched pages.

The browser lives for one module: while it is open its own event loop runs in this thread.
"""

from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.browser.driving import CHROMIUM, FLAGS, Served, Watched, entered, serving

Opens = Callable[..., Watched]


@pytest.fixture(scope="module")
def browser() -> Generator[Browser]:
    """Chromium, as the system has it; `make test-services` installs it."""
    assert Path(CHROMIUM).exists(), f"there is no {CHROMIUM}: `make test-services` installs it"
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def demo() -> Generator[Served]:
    """`landed serve --demo`, one for all tests of this process."""
    with serving("--demo") as served:
        yield served


@pytest.fixture
def opens(browser: Browser, demo: Served) -> Generator[Opens]:
    """Open pages that are signed in; each must stay clean to the end of the test."""
    watched: list[Watched] = []

    def open_one(served: Served = demo, **options: Any) -> Watched:
        page = entered(browser, served, **options).new_page()
        watched.append(Watched(page=page, served=served))
        return watched[-1]

    yield open_one
    for one in watched:
        one.page.context.close()
    for one in watched:
        one.require_clean()


@pytest.fixture
def seen(opens: Opens) -> Watched:
    """A page at a desk."""
    return opens()
