"""Who has the link is let in once, stays in, and gets out; nobody else sees a page."""

import pytest
from playwright.sync_api import Browser

from tests.browser.conftest import Opens
from tests.browser.driving import Watched, serving

pytestmark = pytest.mark.services


def test_the_link_lets_one_browser_in_and_leaves_no_key(browser: Browser, opens: Opens) -> None:
    with serving("--demo") as served:
        watched = opens(served)
        page = watched.open("/waiting")
        assert page.locator("nav").is_visible()
        assert "key" not in page.evaluate("() => JSON.stringify(history.state) + location.href")
        cookies = page.context.cookies()
        assert [(one.get("httpOnly"), one.get("sameSite")) for one in cookies] == [(True, "Strict")]
        assert page.evaluate("() => document.cookie") == ""

        other = browser.new_context().new_page()
        answer = other.goto(served.link)
        assert answer is not None
        assert answer.status in (401, 403), answer.status
        assert other.locator("nav").count() == 0
        other.context.close()
        page.goto("about:blank")  # A page that is live would miss the server that ends now.


def test_whoever_signs_out_is_out(browser: Browser) -> None:
    with serving("--demo") as served:
        page = browser.new_context().new_page()
        watched = Watched(page=page, served=served)
        page.goto(served.link)
        page.locator("form[action$='/sign-out'] button").click()
        page.wait_for_load_state("load")
        page.goto(f"{served.console}/waiting")

        assert page.url.endswith("/sign-in?next=%2Fwaiting")
        assert page.locator("nav").count() == 0
        watched.require_clean()
        page.context.close()
