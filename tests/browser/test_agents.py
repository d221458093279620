"""A person presses Stop on the page of a conversation in which an agent is at work."""

import asyncio
import contextlib
import os
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

import landed
from landed.agent.button import Button, Buttons
from landed.agent.session import AgentSession, Setting
from landed.agent.signal import cancelled
from landed.agent.tool import AgentTool
from landed.console.app import OWNER, console_app
from landed.console.seal import Link
from landed.server.listening import listen_at, listening
from landed.testing.scripted import ScriptedReplies, asks, call, says
from landed.testing.shapes import shape
from tests.browser.driving import Served, Watched, entered

pytestmark = [pytest.mark.services, pytest.mark.timeout(90)]
STARTS_MAX_S = 30.0


class Office(threading.Thread):
    """A console on a loop of its own, and an agent that builds until it is stopped."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.door = listen_at("127.0.0.1", 0)
        self.link = Link()
        self.begun = threading.Event()
        self.server: Any = None
        self.told = ""

    def run(self) -> None:
        """Serve."""
        asyncio.run(self._serve())

    async def _builds(self, arguments: Any, signal: Any = None) -> str:
        await cancelled(signal)
        await asyncio.Event().wait()  # It takes its time to end.
        return "never"

    async def _serve(self) -> None:
        build = AgentTool(
            name="build", description="", parameters={"properties": {}}, execute=self._builds
        )
        model = ScriptedReplies(asks(call("c1", "build")), forever=says("Built."))
        buttons = Buttons()
        async with landed.open("sqlite://:memory:") as rt:
            session = await AgentSession.begin(
                rt, model=model, session="monday", setting=Setting(tools=[build])
            )
            button = Button(lambda: session.harness, grace_s=600.0)
            app = console_app(rt, owner=OWNER, link=self.link, buttons=buttons)
            self.server = listening(app, farewell_s=1, begun=self.begun.set)
            with buttons.lit(button, tenant="default", session="monday"):
                run = await session.prompt("Build it.")
                driving = asyncio.ensure_future(button.drive(run, lambda event: None))
                with contextlib.suppress(asyncio.CancelledError):
                    await self.server.serve(sockets=[self.door])
                if not driving.done():
                    driving.cancel()
                    driving.cancel()
                await asyncio.wait({driving})
            self.told = shape(session.harness.messages)


@contextmanager
def office() -> Generator[tuple[Office, Served]]:
    there = Office()
    there.start()
    assert there.begun.wait(STARTS_MAX_S)
    base = f"http://127.0.0.1:{there.door.getsockname()[1]}"
    link = f"{base}/console/sign-in?key={there.link.key}"
    try:
        yield there, Served(base=base, link=link, pid=os.getpid())
    finally:
        there.server.should_exit = True
        there.join(STARTS_MAX_S)


@pytest.mark.req("S2-109")
@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
def test_stop_then_stop_at_once(browser: Browser, scripts: bool) -> None:
    with office() as (there, served):
        watched = Watched(
            page=entered(browser, served, java_script_enabled=scripts).new_page(), served=served
        )
        page = watched.open("/sessions/monday")
        part, button = page.locator("#agent"), page.locator("#stop-agent")
        expect(part).to_contain_text("An agent is at work here.")
        expect(button).to_have_text("Stop")
        button.click()
        expect(part).to_contain_text("press again to stop it at once")
        expect(button).to_have_text("Stop at once")
        button.click()
        if not scripts:
            page.reload()
        expect(part).to_have_text("No agent is at work here now.")
        watched.page.context.close()
        watched.require_clean()
    assert there.told == "U A[c1]"
