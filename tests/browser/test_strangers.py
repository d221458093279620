"""Pages of others get nothing out of the console, and nothing done: forms, fetch, frames, names."""

import http.client
import threading
from collections.abc import Generator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from playwright.sync_api import Browser, Page

from tests.browser.conftest import Opens
from tests.browser.driving import EVIL, Served, Watched, entered

pytestmark = [pytest.mark.services, pytest.mark.timeout(120)]

REFUND = (("refund_order", {"order": "4413", "cents": 100}),)
POSTS = """([url, fields]) => {
  const form = document.createElement('form');
  form.method = 'post'; form.action = url;
  for (const [name, value] of Object.entries(fields)) {
    const field = document.createElement('input');
    field.name = name; field.value = value; form.append(field);
  }
  document.body.append(form); form.submit();
}"""
FETCHES = """async ([url, fields, mode]) => {
  const body = new URLSearchParams(fields);
  try {
    const answer = await fetch(url, {method: 'POST', mode, credentials: 'include', body});
    return `${answer.type} ${answer.status} ${await answer.text()}`;
  } catch (error) { return String(error); }
}"""
READS = """async url => {
  try { return await (await fetch(url, {credentials: 'include'})).text(); }
  catch (error) { return String(error); }
}"""
FRAMES = """url => new Promise(done => {
  const frame = document.createElement('iframe');
  frame.onload = () => done(); frame.src = url; document.body.append(frame);
})"""


class _Elsewhere(BaseHTTPRequestHandler):
    """A page of somebody else's."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>elsewhere</title><p>Press here.")

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def port() -> Generator[int]:
    """Where somebody else serves pages."""
    with HTTPServer(("127.0.0.1", 0), _Elsewhere) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        yield server.server_address[1]
        server.shutdown()
        serving.join()


@pytest.fixture(params=("another site", "another port of this machine"))
def elsewhere(
    request: pytest.FixtureRequest, browser: Browser, demo: Served, port: int
) -> Generator[Page]:
    """A page of another origin, in the browser of somebody who is signed in."""
    host = EVIL if request.param == "another site" else "127.0.0.1"
    context = entered(browser, demo)
    page = context.new_page()
    page.goto(f"http://{host}:{port}/")
    yield page
    context.close()


@pytest.fixture
def asked(demo: Served, opens: Opens) -> tuple[str, str, dict[str, str]]:
    """A plan that waits: its id, where a yes to it goes, and all that the real form would send."""
    plan = demo.propose(REFUND)
    watched: Watched = opens()
    page = watched.open(f"/plans/{plan}")
    form = page.locator(f"main form[action$='/plans/{plan}/approve']")
    fields: dict[str, str] = form.evaluate("one => Object.fromEntries(new FormData(one))")
    assert fields["csrf"]
    return plan, f"{demo.console}/plans/{plan}/approve", fields


Asked = tuple[str, str, dict[str, str]]


@pytest.mark.fault("X89")
def test_a_form_of_another_origin_decides_nothing(
    elsewhere: Page, asked: Asked, demo: Served
) -> None:
    plan, url, fields = asked

    with elsewhere.expect_navigation():
        elsewhere.evaluate(POSTS, [url, fields])

    assert elsewhere.locator("main form[action$='/approve']").count() == 0
    assert demo.plan(plan)["state"] == "proposed"


@pytest.mark.fault("X89")
@pytest.mark.parametrize("mode", ["cors", "no-cors"])
def test_a_fetch_of_another_origin_decides_nothing(
    elsewhere: Page, asked: Asked, demo: Served, mode: str
) -> None:
    plan, url, fields = asked

    heard = elsewhere.evaluate(FETCHES, [url, fields, mode])

    assert heard.strip() in ("TypeError: Failed to fetch", "opaque 0")
    assert demo.plan(plan)["state"] == "proposed"


@pytest.mark.fault("X89")
def test_another_origin_reads_nothing(elsewhere: Page, demo: Served) -> None:
    for path in ("/console/waiting", "/v1/plans/x"):
        heard = elsewhere.evaluate(READS, f"{demo.base}{path}")

        assert heard == "TypeError: Failed to fetch"


@pytest.mark.fault("X91")
def test_no_page_is_framed_by_others(elsewhere: Page, asked: Asked, demo: Served) -> None:
    plan, _, _ = asked
    for path in ("waiting", f"plans/{plan}", "sign-in"):
        with elsewhere.expect_console_message(lambda said: "frame-ancestors" in said.text):
            elsewhere.evaluate(FRAMES, f"{demo.console}/{path}")

        framed = elsewhere.frames[-1]
        assert framed.parent_frame is not None
        assert not framed.url.startswith(demo.base)


@pytest.mark.fault("X90")
def test_a_name_that_was_rebound_shows_nothing(browser: Browser, demo: Served) -> None:
    port = demo.base.rpartition(":")[2]
    context = entered(browser, demo)
    page = context.new_page()
    for path in ("/console/waiting", "/console/sign-in", "/v1/plans/x", "/"):
        answer = page.goto(f"http://{EVIL}:{port}{path}")

        assert answer is not None
        assert answer.status in (403, 421)
        assert page.locator("form, nav").count() == 0
    context.close()


@pytest.mark.fault("X90")
@pytest.mark.parametrize("host", [EVIL, f"{EVIL}:80", "127.0.0.1.evil.test", ""])
def test_raw_http_by_another_name_is_refused(demo: Served, host: str) -> None:
    where = demo.base.removeprefix("http://")
    for method, path in (("GET", "/console/waiting"), ("POST", "/console/sign-in"), ("GET", "/")):
        with closing(http.client.HTTPConnection(where, timeout=5)) as connection:
            connection.putrequest(method, path, skip_host=True)
            connection.putheader("Host", host)
            connection.putheader("Content-Length", "0")
            connection.endheaders()
            with connection.getresponse() as answer:
                names = {name.lower() for name, _ in answer.getheaders()}

        assert answer.status in (400, 403, 421)
        assert "set-cookie" not in names
