"""A console over a runtime, and people who visit it, for the tests of its reading pages."""

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Any

import httpx2

import landed
from landed.console.app import console_app
from landed.runtime.runtime import Runtime
from tests.server.served import known

URL = "http://localhost"
SVG = "{http://www.w3.org/2000/svg}"


@dataclass
class Visitors:
    """A served console; each of `WHO` may sign in to it."""

    rt: Runtime
    app: Any
    signed_in: dict[str, httpx2.AsyncClient]

    async def get(self, path: str, *, who: str = "ana", **query: str) -> httpx2.Response:
        """Read a page as somebody."""
        return await (await self._as(who)).get(f"/console{path}", params=query)

    async def post(self, path: str, form: dict[str, str], *, who: str) -> httpx2.Response:
        """Send a form, with the value that its page has."""
        client = await self._as(who)
        page = await client.get("/console/waiting")
        (csrf,) = set(re.findall(r'name="csrf" value="([^"]+)"', page.text))
        headers = {"Origin": URL, "Sec-Fetch-Site": "same-origin"}
        body = {"csrf": csrf, **form}
        return await client.post(f"/console{path}", data=body, headers=headers)

    async def page(self, path: str, *, who: str = "ana", **query: str) -> "Page":
        """Read a page that there is."""
        answer = await self.get(path, who=who, **query)
        assert answer.status_code == 200, (answer.status_code, answer.text)
        return Page(answer.text)

    async def _as(self, who: str) -> httpx2.AsyncClient:
        if who not in self.signed_in:
            client = httpx2.AsyncClient(
                transport=httpx2.ASGITransport(app=self.app), base_url=URL, follow_redirects=False
            )
            self.signed_in[who] = client
            headers = {"Origin": URL, "Sec-Fetch-Site": "same-origin"}
            form = {"token": who}
            said = await client.post("/console/sign-in", data=form, headers=headers)
            assert said.status_code == 303, said.text
        return self.signed_in[who]


@asynccontextmanager
async def visited(tools: Sequence[Any] = (), **options: Any) -> AsyncGenerator[Visitors]:
    """Open a runtime with these tools and serve its console in this process."""
    language = options.pop("language", "")
    store = options.pop("store", "sqlite://:memory:")
    async with landed.open(store, tools=tools, **options) as rt:
        app = console_app(rt, authenticate=known, language=language)
        visitors = Visitors(rt=rt, app=app, signed_in={})
        yield visitors
        for client in visitors.signed_in.values():
            await client.aclose()


class Page:
    """A page as a browser reads it: its elements, each with its attributes and the text in it."""

    def __init__(self, text: str) -> None:
        self.text = text
        reading = _Reading()
        reading.feed(text)
        reading.close()
        self.elements = reading.elements

    def all(self, name: str = "", **attributes: str) -> list["Element"]:
        """Return the elements of a name with these attributes (`data_says` is `data-says`)."""
        wanted = {key.replace("_", "-"): value for key, value in attributes.items()}
        return [
            each
            for each in self.elements
            if name in ("", each.name)
            and all(each.attributes.get(key) == value for key, value in wanted.items())
        ]

    def one(self, name: str = "", **attributes: str) -> "Element":
        """Return the only one."""
        (found,) = self.all(name, **attributes)
        return found

    @property
    def words(self) -> str:
        """All that is read in it, with single blanks."""
        return self.one("main").words

    @property
    def pictures(self) -> list[ElementTree.Element]:
        """Its pictures, parsed as XML."""
        found = re.findall(r"<svg .*?</svg>", self.text, re.DOTALL)
        return [ElementTree.fromstring(each) for each in found]


@dataclass
class Element:
    """One element of a page."""

    name: str
    attributes: dict[str, str]
    inside: list["Element"]
    texts: list[str]

    @property
    def words(self) -> str:
        """The text in it, with single blanks."""
        return " ".join(" ".join(self.texts).split())

    def all(self, name: str = "", **attributes: str) -> list["Element"]:
        """Return the elements in it, as `Page.all` does."""
        wanted = {key.replace("_", "-"): value for key, value in attributes.items()}
        return [
            each
            for each in self.inside
            if name in ("", each.name)
            and all(each.attributes.get(key) == value for key, value in wanted.items())
        ]


VOID = {"meta", "link", "input", "br", "hr", "img"}


class _Reading(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[Element] = []
        self._open: list[Element] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs}, [], [])
        self.elements.append(element)
        for outer in self._open:
            outer.inside.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        while self._open:
            if self._open.pop().name == tag:
                break

    def handle_data(self, data: str) -> None:
        for outer in self._open:
            outer.texts.append(data)
