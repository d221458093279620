"""An office with a console, and people who press what is on its pages."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

import httpx2

import landed
from landed.console.app import console_app
from landed.core.key import Ask
from landed.core.plan import Plan, Wanted
from landed.core.preview import Preview, Previewing, Similar, typed_count
from landed.core.value import PlanValue
from landed.runtime.runtime import Runtime
from tests.console.visiting import URL, Element, Page, Visitors
from tests.server.served import Ledger, known

OWN = {"Origin": URL, "Sec-Fetch-Site": "same-origin"}


@dataclass
class Desk(Ledger):
    """What is outside, with drafts that can be thrown away, and files that are gone for good."""

    drafts: list[str] = field(default_factory=list[str])
    jams: int = 0
    mails: list[str] = field(default_factory=list[str])

    def every(self) -> list[Any]:
        """All its tools."""
        return [*self.tools(), *self._drafting(), self._erasing(), self._mailing()]

    def _drafting(self) -> list[Any]:
        def see(asked: Previewing) -> Preview:
            return Preview(summary=f"Draft {asked.arguments['what']}", cost_cents=123_456)

        def alike(asked: Previewing) -> list[Similar]:
            there = enumerate(self.drafts, 1)
            what = asked.arguments["what"]
            return [
                Similar(id=f"D{n}", text=f"draft of {each}") for n, each in there if each == what
            ]

        @landed.tool(
            effect="reversible",
            preview=see,
            look_alike=alike,
            makes_type="draft",
            undo="drop",
            undo_arguments={"id": "{result.id}"},
        )
        async def draft(what: str) -> dict[str, str]:
            if self.jams:
                self.jams -= 1
                raise landed.RefusedError("the drawer is jammed")
            self.drafts.append(what)
            return {"id": f"D{len(self.drafts)}"}

        @landed.tool(effect="irreversible")
        async def drop(id: str) -> dict[str, str]:
            self.drafts.pop(int(id[1:]) - 1)
            return {"id": id}

        return [draft, drop]

    def _erasing(self) -> Any:
        def see(asked: Previewing) -> Preview:
            return Preview(summary="Erase 3 files", typed=typed_count(3))

        @landed.tool(effect="irreversible", risk="confirm", preview=see)
        async def erase(what: str) -> dict[str, str]:
            self.refunds.append(3)
            return {"id": what}

        return erase

    def _mailing(self) -> Any:
        @landed.tool(
            effect="irreversible",
            keyed="key",
            when_unknown="escalate",
            deadline_s=0.02,
            retention_s=3600.0,
        )
        async def mail(to: str, key: str) -> dict[str, str]:
            self.mails.append(to)
            raise TimeoutError("no answer")

        return mail


@dataclass
class Console:
    """A served console, the outside, and people who press."""

    visitors: Visitors
    desk: Desk

    @property
    def rt(self) -> Runtime:
        return self.visitors.rt

    async def propose(
        self, tool: str, /, *more: tuple[str, dict[str, Any]], who: str = "ana", **arguments: Any
    ) -> PlanValue:
        """Propose a call, and others after it, for somebody of acme."""
        calls = [(tool, arguments), *more]
        wanted = [Wanted(tool=name, arguments=given) for name, given in calls]
        ask = Ask(tenant="acme", principal=who, session=f"at-{who}")
        return await self.rt.propose(wanted, ask=ask, patience_s=1.0)

    async def refund(self, cents: int = 48000, **how: Any) -> PlanValue:
        """Propose a refund that needs a yes."""
        return await self.propose("big_refund", invoice="4412", amount_cents=cents, **how)

    async def stored(self, plan: PlanValue | str) -> Plan:
        """The plan as the store has it."""
        id = plan if isinstance(plan, str) else plan.plan
        return await self.rt.driver.reader.plan(id, tenant="acme")

    async def page(self, path: str, *, who: str = "ana") -> Page:
        """Read a page as somebody."""
        return await self.visitors.page(path, who=who)

    async def press(
        self, path: str, goal: str, *, who: str = "ana", **typed: str
    ) -> httpx2.Response:
        """Press the one button on a page whose form goes to `goal`, with what is typed in it."""
        return await self.send(goal, await self.fields(path, goal, who=who, **typed), who=who)

    async def fields(
        self, path: str, goal: str, *, who: str = "ana", **typed: str
    ) -> dict[str, str]:
        """What the form on a page that goes to `goal` sends."""
        return fields_of(form_of(await self.page(path, who=who), goal, **typed)) | typed

    async def send(
        self, goal: str, fields: dict[str, str], *, who: str = "ana", **headers: str
    ) -> httpx2.Response:
        """Send a form as a page of the console would."""
        client = await self.visitors._as(who)
        sent = {**OWN, **{name.replace("_", "-"): value for name, value in headers.items()}}
        kept = {name: value for name, value in sent.items() if value}
        return await client.post(f"/console{goal}", data=fields, headers=kept)

    async def follow(self, answer: httpx2.Response, *, who: str = "ana") -> Page:
        """Go where a press led."""
        assert answer.status_code == 303, (answer.status_code, answer.text)
        path, _, query = answer.headers["location"].removeprefix("/console").partition("?")
        return await self.visitors.page(path, who=who, **dict(parse_qsl(query)))


def form_of(page: Page, goal: str, **typed: str) -> Element:
    """The one form of a page that goes to `goal`, and has places for what is typed."""
    goals = page.all("form", action=f"/console{goal}", method="post")
    fits = [each for each in goals if set(typed) <= named(each)]
    plain = [each for each in fits if "hard" not in named(each)] if "hard" not in typed else fits
    (found,) = [each for each in plain if _says(each, typed)]
    return found


def named(form: Element) -> set[str]:
    """The names of the fields of a form."""
    inside = (*form.all("input"), *form.all("textarea"), *form.all("button"))
    return {each.attributes["name"] for each in inside if "name" in each.attributes}


def fields_of(form: Element) -> dict[str, str]:
    """What a form sends that nobody typed anything into."""
    hidden = (each for each in form.all("input") if each.attributes.get("type") == "hidden")
    return {each.attributes["name"]: each.attributes["value"] for each in hidden}


def csrf_of(page: Page) -> str:
    """The value that the forms of a page bring back."""
    (value,) = {fields_of(form)["csrf"] for form in page.all("form")}
    return value


def _says(form: Element, typed: dict[str, str]) -> bool:
    fixed = fields_of(form)
    return all(fixed.get(name, value) == value for name, value in typed.items())


@asynccontextmanager
async def open_console(**options: Any) -> AsyncGenerator[Console]:
    """Open the office and its console in this process; the console is called localhost."""
    desk = Desk()
    authenticate = options.pop("authenticate", known)
    shown = {name: options.pop(name) for name in ("language", "secret") if name in options}
    async with landed.open("sqlite://:memory:", tools=desk.every(), **options) as rt:
        app = console_app(rt, authenticate=authenticate, hosts={"localhost"}, **shown)
        visitors = Visitors(rt=rt, app=app, signed_in={})
        yield Console(visitors=visitors, desk=desk)
        desk.opened.set()
        for client in visitors.signed_in.values():
            await client.aclose()


def run(script: Callable[[Console], Coroutine[Any, Any, None]], **options: Any) -> None:
    """Play a script in a console."""

    async def play() -> None:
        async with open_console(**options) as here:
            await script(here)

    asyncio.run(play())
