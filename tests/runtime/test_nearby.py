"""What stands near a record is read in bounds, however long its session is."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import landed
from landed.core.changes import Record
from landed.runtime import nearby
from landed.runtime.nearby import near
from landed.runtime.runtime import Runtime


@landed.tool(effect="reversible")
async def book(day: str) -> dict[str, str]:
    return {"id": day}


async def booked(rt: Runtime, day: str, session: str = "s1") -> Record:
    heard = await rt.receive(f"book {day}", session=session)
    id = (await rt.perform(book, {"day": day}, ask=heard.ask("c1"))).operation
    (record,) = await rt.driver.store.load(id)
    return record


def see(then: Callable[[Runtime], Awaitable[None]]) -> None:
    async def play() -> None:
        async with landed.open("sqlite://:memory:", tools=[book]) as rt:
            await then(rt)

    asyncio.run(play())


def test_it_has_what_the_record_speaks_of_and_what_was_made_after_that() -> None:
    async def look(rt: Runtime) -> None:
        await booked(rt, "before")
        record = await booked(rt, "it")
        after = await booked(rt, "after")
        await booked(rt, "elsewhere", session="s2")
        found = await near(rt.driver.reader, record)
        ids = [each.id for each in found.records]
        assert found.whole
        assert {record.id, after.id, str(record.frozen["turn"])} <= set(ids)
        assert [each.made for each in found.records] == sorted(each.made for each in found.records)
        assert {each.session for each in found.records} == {"s1"}
        assert not any("before" in str(each.frozen) for each in found.records)

    see(look)


def test_of_a_long_session_no_more_is_read_than_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nearby, "NEAR_MAX", 10)

    async def look(rt: Runtime) -> None:
        record = await booked(rt, "it")
        for n in range(20):
            await booked(rt, f"d{n}")
        store, read = rt.driver.reader.store, 0

        async def counted(**how: Any) -> Any:
            nonlocal read
            page = await type(store).session_records(store, **how)
            read += len(page)
            return page

        monkeypatch.setattr(store, "session_records", counted)
        found = await near(rt.driver.reader, record)
        assert not found.whole
        assert record in found.records
        assert 0 < read <= 2 * (10 + 1)

    see(look)
