"""Search: by any id; one hit is gone to, several are listed, and what is not theirs is absent."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import landed
from landed.agent.journal_log import JournalLog
from landed.runtime import auditing
from tests.console.visiting import Visitors, visited

Then = Callable[[Visitors, str], Awaitable[None]]


@landed.tool(effect="reversible", key_form="{session}:{operation}", keyed="key")
async def book(day: str, key: str = "") -> dict[str, str]:
    return {"id": f"R-{day}", "shared": "BOTH", "message_id": "<m1@example.org>"}


async def booked(there: Visitors, day: str, **asked: Any) -> str:
    whose: dict[str, Any] = {"session": "s1", "principal": "ana", "tenant": "acme", **asked}
    heard = await there.rt.receive(f"book {day}", delivery=f"d-{day}", **whose)
    return (await there.rt.perform(book, {"day": day}, ask=heard.ask("c1"))).operation


def see(then: Then) -> None:
    async def play() -> None:
        async with visited([book]) as there:
            id = await booked(there, "Fri")
            await booked(there, "Sat")
            await then(there, id)

    asyncio.run(play())


async def goes_to(there: Visitors, asked: str, who: str = "ana") -> str:
    answer = await there.get("/search", who=who, q=asked)
    return answer.headers.get("location", "") if answer.status_code == 303 else ""


def test_one_hit_is_gone_to_whichever_id_it_was_asked_for_by() -> None:
    async def look(there: Visitors, id: str) -> None:
        for asked in (id, f"s1:{id}", "R-Fri", f"<{id}@landed.example>", f" {id.upper()} "):
            assert await goes_to(there, asked) == f"/console/operations/{id}"

    see(look)


def test_a_delivery_leads_to_its_place_in_the_conversation() -> None:
    async def look(there: Visitors, id: str) -> None:
        place = await goes_to(there, "d-Sat")
        assert place.startswith("/console/sessions/s1?after=")
        page = await there.page(place.removeprefix("/console").split("#")[0])
        assert place.split("#")[1] in {each.attributes.get("id") for each in page.all("li")}

    see(look)


def test_what_a_model_was_told_of_it_is_no_place_to_go_to() -> None:
    async def look(there: Visitors, id: str) -> None:
        said = JournalLog(there.rt, "s1", tenant="acme")
        line = await said.append({"role": "user", "content": f"{id} made R-Fri"})
        assert await goes_to(there, "R-Fri") == f"/console/operations/{id}"
        assert await goes_to(there, line) == ""

    see(look)


def test_several_hits_are_listed() -> None:
    async def look(there: Visitors, id: str) -> None:
        page = await there.page("/search", q="BOTH")
        hrefs = [a.attributes["href"] for a in page.one("ul", **{"class": "links"}).all("a")]
        assert len(hrefs) == 2
        assert f"/console/operations/{id}" in hrefs

    see(look)


@pytest.mark.parametrize(
    ("who", "finds"), [("ana", True), ("boss", True), ("bob", False), ("eve", False)]
)
def test_what_is_not_theirs_is_absent(who: str, finds: bool) -> None:
    async def look(there: Visitors, id: str) -> None:
        for asked in (id, f"s1:{id}", "R-Fri", "d-Fri"):
            assert bool(await goes_to(there, asked, who)) is finds
            if not finds:
                theirs = await there.get("/search", who=who, q=asked)
                nothing = await there.get("/search", who=who, q="x" * len(asked))
                assert theirs.text.replace(asked, "") == nothing.text.replace("x" * len(asked), "")

    see(look)


def test_none_says_so_and_what_is_odd_too() -> None:
    async def look(there: Visitors, id: str) -> None:
        assert (
            "Nothing of yours is known by that id" in (await there.page("/search", q="R-9")).words
        )
        empty = await there.page("/search")
        assert [each.attributes["name"] for each in empty.all("input", type="search")] == ["q"]
        odd = await there.get("/search", q="x" * 1001)
        assert odd.status_code == 422

    see(look)


@pytest.mark.fault("X88")
def test_what_was_asked_is_shown_as_text() -> None:
    async def look(there: Visitors, id: str) -> None:
        page = await there.page("/search", q='"><script>alert(1)</script>\u202e')
        assert [each.attributes.get("src", "") for each in page.all("script")] == [
            "/console/static/htmx.min.js",
            "/console/static/hx-sse.min.js",
        ]
        assert "\u202e" not in page.text

    see(look)


def test_what_only_a_service_knows_is_looked_for_so_far_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def look(there: Visitors, id: str) -> None:
        monkeypatch.setattr(auditing, "SOUGHT_MAX", 4)
        for n in range(6):
            await booked(there, f"day{n}")
        query, tries = {"q": "R-Fri"}, 0
        while (answer := await there.get("/search", **query)).status_code == 200:
            assert "Look further back" in answer.text
            tries += 1
            assert tries < 20
            query["before"] = answer.text.split("before=")[1].split('"')[0]
        assert answer.headers["location"] == f"/console/operations/{id}"
        assert tries > 2
        for _ in range(20):
            answer = await there.get("/search", q="R-none", before=query["before"])
            if "before=" not in answer.text:
                break
            query["before"] = answer.text.split("before=")[1].split('"')[0]
        assert "Nothing of yours is known by that id" in answer.text

    see(look)
