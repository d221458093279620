"""The page of a conversation: in order, with both clocks; for whose it is; a page at a time."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import landed
from landed.console.pages import session as sessions
from tests.console.visiting import SVG, Visitors, visited

Then = Callable[[Visitors], Awaitable[None]]


@landed.tool(effect="reversible")
async def book(day: str) -> dict[str, str]:
    if day == "Mon":
        raise ConnectionResetError("reset by peer")
    return {"id": f"R-{day}"}


async def say_and_book(there: Visitors, day: str, **asked: Any) -> str:
    whose: dict[str, Any] = {"session": "s 1/é", "principal": "ana", "tenant": "acme", **asked}
    heard = await there.rt.receive(f"book {day}", **whose)
    value = await there.rt.perform(book, {"day": day}, ask=heard.ask("c1"), patience_s=5)
    return value.operation


def see(then: Then, *, language: str = "") -> None:
    async def play() -> None:
        async with visited([book], language=language) as there:
            await say_and_book(there, "Fri")
            await say_and_book(there, "Sat")
            await then(there)

    asyncio.run(play())


PATH = "/sessions/s%201/%C3%A9"


def test_it_tells_what_was_said_and_done_in_order_and_what_came_of_it() -> None:
    async def look(there: Visitors) -> None:
        page = await there.page(PATH)
        (history,) = page.all("ol")
        items = [item.words for item in history.all("li")]
        assert [item.split()[0] for item in items] == ["user", "tool", "user", "tool"]
        assert "R-Fri" in items[1]
        reports = [each.words for each in page.all("section", **{"class": "card report"})]
        assert len(reports) == 2
        assert "R-Fri" in reports[0]
        times = page.all("time")
        assert len(times) >= 4

    see(look)


def test_of_many_turns_the_newest_are_told_and_it_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sessions, "REPORTS_MAX", 1)

    async def look(there: Visitors) -> None:
        page = await there.page(PATH)
        (report,) = page.all("section", **{"class": "card report"})
        assert "R-Sat" in report.words
        assert "The newest 1 of 2 turns:" in page.words

    see(look)


def test_its_picture_has_its_operations_with_a_number_for_each_turn() -> None:
    async def look(there: Visitors) -> None:
        (picture,) = (await there.page(PATH)).pictures
        shown = [text.text or "" for text in picture.iter(f"{SVG}text")]
        assert any(text.startswith("T2 book(day=Sat") for text in shown)
        assert not any("turn-" in text for text in shown)

    see(look)


@pytest.mark.parametrize(
    ("who", "status"), [("ana", 200), ("boss", 200), ("bob", 404), ("eve", 404)]
)
def test_it_is_there_for_whose_it_is_and_for_their_admin(who: str, status: int) -> None:
    async def look(there: Visitors) -> None:
        is_there = await there.get(PATH, who=who)
        is_not = await there.get("/sessions/none", who=who)
        assert (is_there.status_code, is_not.status_code) == (status, 404)
        if status == 404:
            assert is_there.text == is_not.text

    see(look)


def test_a_long_one_is_read_a_page_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "SHOWN", 4)

    async def look(there: Visitors) -> None:
        seen: list[str] = []
        path, query = PATH, dict[str, str]()
        for _ in range(10):
            page = await there.page(path, **query)
            seen += [i.attributes["id"] for i in page.one("ol").all("li") if "id" in i.attributes]
            more = page.all("a", **{"class": "button"})
            if not more:
                break
            assert not page.all("section", **{"class": "card report"})
            query = {"after": more[0].attributes["href"].split("after=")[1]}
        whole = await there.rt.driver.reader.history("s 1/é", tenant="acme", view=landed_view())
        assert seen == list(dict.fromkeys(item.record for item in whole))

    see(look)


def landed_view() -> Any:
    from landed.core.history import View

    return View.CACHE


def test_reading_it_keeps_nothing_as_told() -> None:
    async def look(there: Visitors) -> None:
        await say_and_book(there, "Mon")
        before = await there.rt.driver.store.journal(limit=1000)
        page = await there.page(PATH, view="story")
        assert "may" in page.words or "unknown" in page.words
        assert await there.rt.driver.store.journal(limit=1000) == before

    see(look)


@pytest.mark.parametrize("path", ["/sessions/%00", "/sessions/" + "x" * 3000])
def test_what_is_no_name_is_absent(path: str) -> None:
    async def look(there: Visitors) -> None:
        assert (await there.get(path)).status_code == 404

    see(look)
