"""The page of an operation: what it is, why it is so, what it leads to; for whose it is."""

import asyncio
import inspect
import re
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest

import landed
from landed.console.where import relation_of, stands
from landed.console.words import LANGUAGES, say
from landed.core.changes import Kind
from landed.core.operation import State
from landed.core.plan import PlanState
from landed.runtime import tracing
from landed.runtime.tracing import Link
from tests.console.visiting import SVG, Visitors, visited

HOSTILE = '<img src=x onerror="window.pwned=1">\u202egnp.exe\u200b{{7*7}}'


@landed.tool(effect="reversible", undo="cancel", makes="id", target=("table/{day}",))
async def book(day: str, note: str = "") -> dict[str, str]:
    if day == "Sun":
        raise landed.RefusedError(f"closed on Sundays {HOSTILE}")
    if day == "Mon":
        raise ConnectionResetError("reset by peer")
    return {"id": "R1", "confirmation": "C-77", "note": note}


@landed.tool(effect="irreversible")
async def cancel(id: str) -> None: ...


Then = Callable[[Visitors, str], Awaitable[None]]


def see(then: Then, arguments: dict[str, str], *, language: str = "", **ask: Any) -> None:
    """Book as ana does, and look at the operation."""

    async def play() -> None:
        async with visited([book, cancel], language=language) as there:
            asked: dict[str, Any] = {"session": "s1", "principal": "ana", "tenant": "acme", **ask}
            heard = await there.rt.receive(f"book {arguments['day']} {HOSTILE}", **asked)
            value = await there.rt.perform(book, arguments, ask=heard.ask("c1"), patience_s=5)
            await then(there, value.operation)

    asyncio.run(play())


def test_it_says_how_it_stands_why_and_what_to_look_for() -> None:
    async def look(there: Visitors, id: str) -> None:
        page = await there.page(f"/operations/{id}")
        assert "It took effect." in page.words
        assert page.one("h1").words.startswith("Done: book(day=Fri")
        keys = {each.words for each in page.all("code")}
        assert {id, "R1", "C-77"} <= keys
        (evidence,) = page.all("table", **{"class": "evidence"})
        assert "its answer" in evidence.words
        assert "It is undone by cancel." in page.words
        assert "The service has no keys" in page.words

    see(look, {"day": "Fri"})


def test_it_leads_up_to_the_words_that_asked_for_it() -> None:
    async def look(there: Visitors, id: str) -> None:
        page = await there.page(f"/operations/{id}")
        links = page.all("ul", **{"class": "links"})
        assert "opened by input" in links[0].words
        assert "book Fri" in links[0].words
        hrefs = [a.attributes["href"] for a in links[0].all("a")]
        assert all(href.startswith("/console/sessions/s1") for href in hrefs)

    see(look, {"day": "Fri"})


def test_its_part_of_the_conversation_is_drawn() -> None:
    async def look(there: Visitors, id: str) -> None:
        page = await there.page(f"/operations/{id}")
        (picture,) = page.pictures
        shown = [text.text or "" for text in picture.iter(f"{SVG}text")]
        assert any("book(day=Mon" in text for text in shown)
        assert len([r for r in picture.iter(f"{SVG}rect") if r.get("class") == "doubt"]) == 2
        (state,) = page.all("span", **{"class": "state doubt"})[:1]
        assert state.words in ("in doubt", "not found out")

    see(look, {"day": "Mon"})


@pytest.mark.fault("X88")
def test_what_others_wrote_is_text_and_can_be_seen() -> None:
    async def look(there: Visitors, id: str) -> None:
        answer = await there.get(f"/operations/{id}")
        page = await there.page(f"/operations/{id}")
        assert not page.all("img")
        assert "<U+202E>" in page.words
        assert "{{7*7}}" in page.words
        assert not re.search("[\u202e\u200b]", answer.text)
        assert page.pictures
        assert not [e for e in page.elements if any(a.startswith("on") for a in e.attributes)]

    see(look, {"day": "Sun", "note": HOSTILE})


@pytest.mark.parametrize(
    ("who", "status"),
    [("ana", 200), ("boss", 200), ("bob", 404), ("eve", 404)],
)
def test_it_is_there_for_whose_it_is_and_for_their_admin(who: str, status: int) -> None:
    async def look(there: Visitors, id: str) -> None:
        there_is = await there.get(f"/operations/{id}", who=who)
        there_is_not = await there.get("/operations/op-nothing", who=who)
        assert (there_is.status_code, there_is_not.status_code) == (status, 404)
        if status == 404:
            assert there_is.text == there_is_not.text

    see(look, {"day": "Fri"})


def test_an_agent_sees_none_of_it() -> None:
    async def look(there: Visitors, id: str) -> None:
        with pytest.raises(AssertionError):
            await there.get(f"/operations/{id}", who="ana-agent")

    see(look, {"day": "Fri"})


def test_every_state_has_its_words_in_both_languages() -> None:
    for language in LANGUAGES:
        for state in State:
            assert say(language, f"op.means.{state}")
            assert say(language, f"is.{state}")


def test_it_is_told_in_spanish() -> None:
    async def look(there: Visitors, id: str) -> None:
        page = await there.page(f"/operations/{id}")
        assert "Tuvo efecto." in page.words
        assert "La deshace cancel." in page.words

    see(look, {"day": "Fri"}, language="es")


def test_every_way_that_one_record_leads_to_another_has_its_words() -> None:
    ways = set(re.findall(r'yield "([a-z ]+)", ', inspect.getsource(tracing))) - {"step of"}
    assert len(ways) > 10
    for language in LANGUAGES:
        said = partial(say, language)
        for way in (*ways, "step 3 of", "its operation"):
            link = Link(relation=way, kind=Kind.PLAN, id="p", state="done", says="")
            assert "plan" in relation_of(said, link)
        assert all(stands(said, Kind.PLAN, state) for state in PlanState)
        assert all(stands(said, Kind.OPERATION, state) for state in State)
        assert stands(said, Kind.RELEASE, "owed") == "owed"
