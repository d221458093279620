"""A person stops the agent of a conversation: from a page, over HTTP, or as a terminal does."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import httpx2
import pytest

import landed
from landed.agent.button import Button, Buttons, Pressed, Work
from landed.agent.owned import as_tool
from landed.agent.session import AgentSession, Setting
from landed.agent.signal import cancelled
from landed.agent.tool import AgentTool
from landed.console.app import beside, console_app
from landed.console.pages import live
from landed.server.app import http_app
from landed.testing.scripted import ScriptedReplies, asks, call, says
from landed.testing.shapes import shape
from tests.console.pressing import Console, Desk
from tests.console.test_live import messages, until
from tests.console.visiting import URL, Visitors
from tests.server.served import kind_of, known

SESSION = "monday 9/é"
PLAIN = "monday"
WHY = "wrong branch"


@dataclass
class Led:
    """An agent at work in a conversation of ana's, and every way to stop it."""

    session: AgentSession
    button: Button
    buttons: Buttons
    visitors: Visitors
    http: httpx2.AsyncClient
    runs: asyncio.Event = field(default_factory=asyncio.Event)
    heard: asyncio.Event = field(default_factory=asyncio.Event)
    may_end: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def console(self) -> Console:
        return Console(visitors=self.visitors, desk=Desk())

    async def patient(self, arguments: Any, signal: Any = None) -> str:
        """Hear a stop, and take a moment to end."""
        self.runs.set()
        await cancelled(signal)
        self.heard.set()
        await self.may_end.wait()
        return "half of it"

    async def deaf(self, arguments: Any, signal: Any = None) -> str:
        """Hear nothing."""
        self.runs.set()
        await asyncio.Event().wait()
        return "never"

    async def post(self, path: str, body: object, *, who: str = "ana") -> httpx2.Response:
        """Post a body to the API as somebody."""
        headers = {"Authorization": f"Bearer {who}"}
        return await self.http.post(path, json=body, headers=headers)


@asynccontextmanager
async def led(*, name: str = PLAIN, grace_s: float = 600.0) -> AsyncGenerator[Led]:
    """Open a runtime, its API and its console, and an agent whose model asks for a build."""
    holds: dict[str, Led] = {}

    def tool(name: str) -> AgentTool:
        async def execute(arguments: Any, signal: Any = None) -> str:
            way = getattr(holds["led"], name)
            return cast("str", await way(arguments, signal))

        return AgentTool(
            name=name, description="Builds.", parameters={"properties": {}}, execute=execute
        )

    @landed.tool(effect="irreversible")
    async def far() -> str:
        """Do what nobody hears of."""
        holds["led"].runs.set()
        await asyncio.Event().wait()
        return "never"

    buttons = Buttons()
    tools = [as_tool(tool("patient"), effect="irreversible"), far]
    async with landed.open("sqlite://:memory:", tools=tools) as rt:
        session = await AgentSession.begin(
            rt,
            model=ScriptedReplies(),
            session=name,
            principal="ana",
            tenant="acme",
            setting=Setting(tools=[tool("deaf")]),
        )
        button = Button(lambda: session.harness, grace_s=grace_s)
        app = beside(
            console_app(rt, authenticate=known, buttons=buttons),
            http_app(rt, authenticate=known, buttons=buttons),
        )
        http = httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url=URL)
        visitors = Visitors(rt=rt, app=app, signed_in={})
        holds["led"] = Led(session, button, buttons, visitors, http)
        with buttons.lit(button, tenant="acme", session=name):
            yield holds["led"]
        for client in (http, *visitors.signed_in.values()):
            await client.aclose()


@asynccontextmanager
async def at_work(here: Led, tool: str) -> AsyncGenerator[None]:
    """Have the agent run a tool until it is stopped in the block; it is over at the end."""
    here.session._model = ScriptedReplies(asks(call("c1", tool)), forever=says("I see."))
    run = await here.session.prompt("Build.")
    driving = asyncio.ensure_future(here.button.drive(run, lambda event: None))
    await here.runs.wait()
    yield
    if here.button.work is Work.AT_WORK:
        here.button.press()
    here.may_end.set()
    await driving


async def by_terminal(here: Led) -> Pressed:
    """Press as Ctrl-C does."""
    return here.button.press("ana", WHY)


async def by_http(here: Led) -> Pressed:
    """Press over HTTP."""
    answer = await here.post(f"/v1/sessions/{PLAIN}/stop", {"why": WHY})
    assert answer.status_code == 200, answer.text
    assert answer.json()["session"] == PLAIN
    return Pressed(answer.json()["stop"])


async def by_console(here: Led) -> Pressed:
    """Press on the page of the conversation."""
    seen = await here.console.fields(f"/sessions/{PLAIN}", f"/agents/stop/{PLAIN}")
    answer = await here.console.send(f"/agents/stop/{PLAIN}", {**seen, "why": WHY})
    assert answer.headers["location"] == f"/console/sessions/{PLAIN}"
    return Pressed.ASKED if seen["seen"] == "at_work" else Pressed.FORCED


async def recorded(here: Led) -> Any:
    """Return what is left of it, without ids and times."""
    journal = await here.session.rt.driver.store.journal(limit=1000)
    messages = here.session.harness.messages
    return (
        shape(messages, errors=True),
        [message.get("error_message") for message in messages],
        [(entry.id.partition("-")[0], entry.event, entry.state) for entry in journal],
    )


@pytest.mark.req("S2-109")
@pytest.mark.parametrize(
    ("tool", "presses", "told"),
    [
        ("patient", 1, "U A[c1] R(c1) A(aborted)"),
        ("patient", 2, "U A[c1]"),
        ("deaf", 1, "U A[c1]"),
        ("deaf", 2, "U A[c1]"),
        ("far", 1, "U A[c1] R(c1) A(aborted)"),
    ],
)
def test_a_terminal_a_page_and_http_stop_it_alike(tool: str, presses: int, told: str) -> None:
    async def stopped(press: Callable[[Led], Coroutine[Any, Any, Pressed]]) -> Any:
        grace_s = 0.02 if (tool, presses) == ("deaf", 1) else 600.0
        async with led(grace_s=grace_s) as here:
            async with at_work(here, tool):
                assert await press(here) is Pressed.ASKED
                if tool == "patient":
                    await here.heard.wait()
                if presses == 2:
                    assert await press(here) is Pressed.FORCED
            await here.session.rt.drain()
            return await recorded(here)

    async def all_three() -> None:
        ways = [await stopped(press) for press in (by_terminal, by_http, by_console)]
        assert ways[0][0] == told
        assert ways[1] == ways[0]
        assert ways[2] == ways[0]

    asyncio.run(all_three())


def test_only_a_person_whose_conversation_it_is_may_stop_its_agent() -> None:
    async def asked() -> None:
        async with led() as here, at_work(here, "patient"):
            path = f"/v1/sessions/{PLAIN}/stop"
            assert kind_of(await here.post(path, {}, who="ana-agent")) == (403, "forbidden")
            assert kind_of(await here.post(path, {}, who="bob")) == (404, "absent")
            assert kind_of(await here.post(path, {}, who="eve")) == (404, "absent")
            assert kind_of(await here.post(path, {}, who="nobody"))[0] == 401
            assert kind_of(await here.post("/v1/sessions/none/stop", {}, who="boss"))[0] == 404
            assert not here.heard.is_set()
            said = await here.post(path, {"why": WHY}, who="boss")
            assert said.json() == {"session": PLAIN, "stop": "asked"}
            await here.heard.wait()
            signal = here.session.harness.signal
            assert (getattr(signal, "by", ""), getattr(signal, "reason", "")) == ("boss", WHY)

    asyncio.run(asked())


def test_nothing_is_stopped_where_no_agent_is_at_work() -> None:
    async def asked() -> None:
        async with led() as here:
            await here.session.rt.receive("Hm.", session=PLAIN, principal="ana", tenant="acme")
            said = await here.post(f"/v1/sessions/{PLAIN}/stop", {})
            assert said.json()["stop"] == "idle"
            page = await here.visitors.page(f"/sessions/{PLAIN}")
            assert page.one("section", id="agent").words == "No agent is at work here now."
            await here.session.rt.receive("Hm.", session="other", principal="ana", tenant="acme")
            assert not (await here.visitors.page("/sessions/other")).all("section", id="agent")

    asyncio.run(asked())


def test_a_page_stops_it_step_by_step_and_a_double_click_is_one_press() -> None:
    async def pressed() -> None:
        async with led(name=SESSION) as here, at_work(here, "patient"):
            path, goal = "/sessions/monday%209/%C3%A9", "/agents/stop/monday%209/%C3%A9"
            page = await here.visitors.page(path)
            part = page.one("section", id="agent")
            assert "An agent is at work here." in part.words
            assert page.all("meta", http_equiv="refresh")  # for a browser without scripts
            seen = await here.console.fields(path, goal)
            first = await here.console.send(goal, seen)
            again = await here.console.send(goal, seen)
            assert first.status_code == again.status_code == 303
            await here.heard.wait()
            now = await here.console.follow(again)
            assert "press again to stop it at once" in now.one("section", id="agent").words
            assert here.session.harness.is_running
            await here.console.press(path, goal)

    asyncio.run(pressed())


def test_a_forged_press_and_somebody_elses_stop_nothing() -> None:
    async def pressed() -> None:
        async with led() as here, at_work(here, "patient"):
            goal = f"/agents/stop/{PLAIN}"
            seen = await here.console.fields(f"/sessions/{PLAIN}", goal)
            forged = await here.console.send(goal, {**seen, "csrf": "x"})
            assert forged.status_code == 403
            other = await here.console.fields("/waiting", "/sign-out", who="bob")
            not_theirs = await here.console.send(goal, {**seen, **other}, who="bob")
            assert not_theirs.status_code == 404
            assert here.button.work == "at_work"

    asyncio.run(pressed())


def test_a_page_that_is_open_is_told_what_the_agent_does(monkeypatch) -> None:
    monkeypatch.setattr(live, "LOOK_S", 0.02)

    async def told() -> None:
        async with led() as here:
            await here.session.rt.receive("Hm.", session=PLAIN, principal="ana", tenant="acme")
            page = await here.visitors.page(f"/sessions/{PLAIN}")
            goal = page.one("section", id="agent").attributes["hx-sse:connect"]
            path = goal.removeprefix("/console")
            async with aclosing(messages(here.console, path)) as stream:
                await until(stream, "No agent is at work here now.")
                async with at_work(here, "patient"):
                    await until(stream, "An agent is at work here.")
                    here.button.press("ana")
                    await until(stream, "press again to stop it at once")
                await until(stream, "No agent is at work here now.")

    asyncio.run(told())
