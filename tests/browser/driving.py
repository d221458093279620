"""How a test drives the console: a real `landed serve`, its API as the agent, a real browser.

A `Watched` page remembers what must not happen on any page: an error of a script, a violation of
the policy, a dialog, a request to elsewhere. Whoever uses one calls `require_clean` at the end.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page

CHECKOUT = Path(__file__).parents[2]
CHROMIUM = "/usr/bin/chromium"
STARTS_MAX_S = 30.0
ENDS_MAX_S = 15.0
ANSWERS_MAX_S = 10.0
APPEARS_MAX_MS = 10_000
EVIL = "evil.test"
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--force-color-profile=srgb",
    f"--host-resolver-rules=MAP {EVIL} 127.0.0.1",  # As a rebound name would.
)
DESK = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}
_LINK = re.compile(r"http://\S+/console/sign-in\?key=\S+")

Steps = Sequence[tuple[str, Mapping[str, Any]]]


@dataclass(slots=True, eq=False)
class Served:
    """A server that runs: where, and the cookies of the browser that its link let in."""

    base: str
    link: str
    pid: int
    state: Any = None

    @property
    def console(self) -> str:
        """Where the pages are."""
        return f"{self.base}/console"

    def ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Call the API as the agent."""
        headers = {"Content-Type": "application/json", "Idempotency-Key": uuid4().hex}
        headers["Prefer"] = "wait=0"
        sent = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            f"{self.base}/v1{path}", data=sent, headers=headers, method=method
        )
        with urllib.request.urlopen(request, timeout=ANSWERS_MAX_S) as answer:
            return json.load(answer)

    def propose(self, steps: Steps, *, session: str = "") -> str:
        """Propose a plan as the agent, and return its id."""
        calls = [{"tool": tool, "arguments": dict(arguments)} for tool, arguments in steps]
        body = {"calls": calls, "session": session or f"test-{uuid4().hex[:8]}"}
        return str(self.ask("POST", "/plans", body)["plan_id"])

    def plan(self, plan: str) -> Any:
        """Return how a plan stands, as the API says."""
        return self.ask("GET", f"/plans/{plan}")

    def await_state(self, plan: str, *states: str) -> Any:
        """Ask the API until a plan is in one of these states."""
        until = time.monotonic() + ANSWERS_MAX_S
        while (seen := self.plan(plan))["state"] not in states:
            assert time.monotonic() < until, f"{plan} is {seen['state']}, and not {states}"
        return seen


@contextmanager
def serving(*arguments: str) -> Generator[Served]:
    """Start `landed serve` on a free port, wait for the line with its link, and end it after."""
    command = [sys.executable, "-c", "from landed.cli.main import main; main()", "serve"]
    command += ["--port", "0", *arguments]
    environment = {**os.environ, "PYTHONPATH": f"{CHECKOUT / 'src'}:{CHECKOUT}"}
    with subprocess.Popen(
        command, cwd=CHECKOUT, env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            link = _link_of(process)
            yield Served(base=link.split("/console/")[0], link=link, pid=process.pid)
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(ENDS_MAX_S)
            except subprocess.TimeoutExpired:
                process.kill()


def _link_of(process: "subprocess.Popen[str]") -> str:
    said: list[str] = []
    assert process.stdout is not None
    for line in process.stdout:
        said.append(line)
        if found := _LINK.search(line):
            return found[0]
    raise AssertionError(f"landed serve ended before it printed a link: {''.join(said)}")


@dataclass(eq=False)  # Playwright wants to write on whoever listens.
class Watched:
    """A page, and what went wrong on it."""

    page: Page
    served: Served
    wrong: list[str] = field(default_factory=list[str])
    expected: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        page = self.page
        page.on("pageerror", lambda error: self.wrong.append(f"an error: {error}"))
        page.on("console", self._heard)
        page.on("dialog", self._asked)
        page.on("request", lambda request: self._left(request.url))

    def open(self, path: str) -> Page:
        """Open a page of the console."""
        self.page.goto(f"{self.served.console}{path}", wait_until="load")
        return self.page

    def require_clean(self) -> None:
        """Fail where anything went wrong that is not among what was `expected`."""
        wrong = [one for one in self.wrong if not any(known in one for known in self.expected)]
        assert not wrong, "\n".join(wrong)

    def _heard(self, said: ConsoleMessage) -> None:
        if said.type in ("error", "warning"):
            where = said.location.get("url", "")
            self.wrong.append(f"the console: {said.type}: {said.text} ({where})")

    def _asked(self, dialog: Any) -> None:
        self.wrong.append(f"a dialog: {dialog.message}")
        dialog.dismiss()

    def _left(self, url: str) -> None:
        if not url.startswith((self.served.base, "data:", "about:")):
            self.wrong.append(f"a request to {url}")


def entered(browser: Browser, served: Served, **options: Any) -> BrowserContext:
    """Return a browser context that is signed in; the link itself is used once."""
    if served.state is None:
        context = browser.new_context()
        page = context.new_page()
        page.goto(served.link)
        assert "key=" not in page.url, "the key stays in the address"
        served.state = context.storage_state()
        context.close()
    options.setdefault("viewport", DESK)
    context = browser.new_context(storage_state=served.state, **options)
    context.set_default_timeout(APPEARS_MAX_MS)
    return context
