"""What runs and what was done, by page, and live: each stream is bounded and for who is there."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import pytest

from landed.console.pages import live
from landed.console.pages.lists import SHOWN
from landed.console.visit import Streams
from landed.core.key import Ask
from landed.core.plan import Wanted
from landed.server.auth import Identity
from tests.console.pressing import Console, run
from tests.server.served import WHO


async def messages(
    here: Console, path: str, *, who: str = "ana", query: str = ""
) -> AsyncGenerator[str]:
    """Yield the messages of a stream as they are sent; the test client would wait for its end."""
    client = await here.visitors._as(who)
    cookie = f"landed={client.cookies['landed']}"
    sent: asyncio.Queue[str] = asyncio.Queue()
    scope = {
        "type": "http",
        "method": "GET",
        "path": f"/console{path}",
        "raw_path": f"/console{path}".encode(),
        "query_string": query.encode(),
        "scheme": "http",
        "server": ("localhost", 80),
        "root_path": "",
        "headers": [(b"host", b"localhost"), (b"cookie", cookie.encode())],
    }
    gone = asyncio.Event()

    async def receive() -> dict[str, Any]:
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        if body := message.get("body", b""):
            await sent.put(body.decode())
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            await sent.put("")

    serving = asyncio.ensure_future(here.visitors.app(scope, receive, send))
    try:
        while message := await asyncio.wait_for(sent.get(), 10):
            yield message
    finally:
        gone.set()
        await serving


async def until(stream: AsyncGenerator[str], words: str) -> str:
    """Read on until a message has these words."""
    async for message in stream:
        if words in message:
            return message
    raise AssertionError(f"it ended without {words!r}")


def test_a_plans_page_is_told_of_each_step_until_it_is_over() -> None:
    async def script(here: Console) -> None:
        plan = await here.propose("slow", ("draft", {"what": "one"}), what="x")
        page = await here.page(f"/plans/{plan.plan}")
        (part,) = page.all("div", id="live")
        assert part.attributes["hx-sse:connect"] == f"/console/plans/{plan.plan}/events"
        assert page.all("meta", http_equiv="refresh")  # for a browser without scripts
        async with aclosing(messages(here, f"/plans/{plan.plan}/events")) as stream:
            first = await until(stream, "Step 1 of 2: slow(what=x)")
            assert all(line.startswith("data: ") for line in first.strip().splitlines())
            here.desk.opened.set()
            await until(stream, "Done: slow(what=x)")
            await until(stream, "event: over")
        over = await here.page(f"/plans/{plan.plan}")
        assert "hx-sse:connect" not in over.text
        assert not over.all("meta", http_equiv="refresh")

    run(script)


def test_the_list_of_what_runs_moves_by_itself() -> None:
    async def script(here: Console) -> None:
        async with aclosing(messages(here, "/running/events")) as stream:
            await until(stream, "Nothing is running.")
            plan = await here.propose("slow", what="x")
            shown = await until(stream, "Step 1 of 1: slow(what=x)")
            assert f"/console/plans/{plan.plan}/cancel" in shown
            here.desk.opened.set()
            await until(stream, "Nothing is running.")

    run(script)


def test_a_page_that_was_left_open_is_told_when_something_else_waits() -> None:
    async def script(here: Console) -> None:
        await here.refund(1)
        page = await here.page("/waiting")
        goal = page.one("div", id="news").attributes["hx-sse:connect"].removeprefix("/console")
        path, _, query = goal.partition("?")
        async with aclosing(messages(here, path, query=query)) as stream:
            coming = asyncio.ensure_future(anext(stream))
            done, _ = await asyncio.wait({coming}, timeout=0.3)
            assert not done
            await here.refund(2)
            assert "What waits for you has changed" in await coming
        assert "Refund 2 cents" in (await here.page("/waiting")).words

    run(script)


def test_who_is_signed_out_meanwhile_is_told_no_more() -> None:
    roles = {"ana": WHO["ana"]}

    async def today(token: str) -> Identity | None:
        return roles.get(token)

    async def script(here: Console) -> None:
        plan = await here.propose("slow", what="x")
        async with aclosing(messages(here, f"/plans/{plan.plan}/events")) as stream:
            await until(stream, "Step 1 of 1")
            roles.clear()
            here.desk.opened.set()
            rest = [message async for message in stream]
            assert not any("Done:" in message or "over" in message for message in rest)

    run(script, authenticate=today)


def test_a_stream_says_that_it_is_there_and_ends_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "BEAT_S", 0.02)
    monkeypatch.setattr(live, "STREAM_S", 1.0)

    async def script(here: Console) -> None:
        plan = await here.propose("slow", what="x")
        rest = [message async for message in messages(here, f"/plans/{plan.plan}/events")]
        assert live.BEAT in rest
        assert live.OVER not in rest  # the browser comes back: it is not over

    run(script)


def test_nobody_has_more_streams_than_a_few_and_each_is_given_back() -> None:
    streams, ana, bob = Streams(each_max=2, all_max=3), WHO["ana"], WHO["bob"]
    with streams.one_of(ana), streams.one_of(ana):
        assert not streams.has_room(ana)
        assert streams.has_room(bob)
        with streams.one_of(bob):
            assert not streams.has_room(bob)
    assert streams.of == {}


def test_who_has_too_many_open_gets_nothing_more_and_keeps_the_page() -> None:
    async def script(here: Console) -> None:
        open_now = [messages(here, "/running/events") for _ in range(Streams().each_max)]
        for each in open_now:
            await anext(each)
        answer = await here.visitors.get("/running/events")
        assert (answer.status_code, answer.content) == (204, b"")
        assert (await here.visitors.get("/running")).status_code == 200
        for each in open_now:
            await each.aclose()

    run(script)


async def drafts(here: Console, count: int, *, who: str) -> None:
    """Have so many drafts made for somebody."""
    for n in range(count):
        ask = Ask(tenant="acme", principal=who, session=f"{who}-{n}")
        await here.rt.propose([Wanted(tool="draft", arguments={"what": f"{who} {n}"})], ask=ask)


def test_what_was_done_is_listed_by_page_and_only_to_whom_it_is_for() -> None:
    async def script(here: Console) -> None:
        await drafts(here, SHOWN + 3, who="ana")
        await drafts(here, 2, who="bob")
        first = await here.page("/done")
        lines = [line.words for line in first.all("h2")]
        assert lines == [f"Draft ana {n}" for n in range(SHOWN + 2, 2, -1)]
        (more,) = [a for a in first.all("a") if a.words == "More"]
        after = more.attributes["href"].removeprefix("?after=")
        second = await here.visitors.page("/done", after=after)
        assert [line.words for line in second.all("h2")] == [
            "Draft ana 2",
            "Draft ana 1",
            "Draft ana 0",
        ]
        theirs = await here.page("/done", who="bob")
        assert [line.words for line in theirs.all("h2")] == ["Draft bob 1", "Draft bob 0"]
        every = await here.page("/done", who="boss")
        assert "for bob" in every.words
        assert len(every.all("h2")) == SHOWN
        assert (await here.page("/done", who="eve")).all("h2") == []

    run(script)


@pytest.mark.parametrize("after", ["x", "-1", "9" * 40, "1e3", "٣"])
def test_a_page_that_there_is_not_is_the_first(after: str) -> None:
    async def script(here: Console) -> None:
        await here.refund()
        for path in ("/waiting", "/running", "/done"):
            page = await here.visitors.page(path, after=after)
            assert page.text == (await here.visitors.page(path)).text

    run(script)


def test_what_waits_for_others_is_passed_over() -> None:
    async def script(here: Console) -> None:
        for _ in range(30):
            await here.refund(1, who="bob")
        await here.refund(2)
        mine = await here.page("/waiting")
        assert [line.words for line in mine.all("h2")] == ["Refund 2 cents"]
        theirs = await here.page("/waiting", who="bob")
        assert len(theirs.all("h2")) == 20
        (more,) = [a for a in theirs.all("a") if a.words == "More"]
        after = more.attributes["href"].removeprefix("?after=")
        rest = await here.visitors.page("/waiting", who="bob", after=after)
        assert len(rest.all("h2")) == 10

    run(script)


def test_streams_end_when_the_process_is_told_to_stop() -> None:
    async def script(here: Console) -> None:
        plan = await here.propose("slow", what="x")
        paths = (f"/plans/{plan.plan}/events", "/running/events")
        streams = [messages(here, path) for path in paths]
        for stream in streams:
            await anext(stream)
        stop = asyncio.Event()
        stop.set()
        await here.rt.serve(stop)
        for stream in streams:
            assert [message async for message in stream][-1:] == [live.OVER]

    run(script)
