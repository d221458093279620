"""Live pages: server-sent events, each the part of the page that moved, rendered again.

A stream is bounded in time and in number; the browser comes back by itself, and a browser without
JavaScript loads the page again every few seconds. Who is signed out meanwhile is told no more.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import Any

from starlette.responses import Response, StreamingResponse

from landed.console.cards import plan_card
from landed.console.visit import Page, Visit
from landed.server.asking import plain
from landed.server.auth import Role

STREAM_S = 600.0  # how long one stream lasts
LOOK_S = 1.0  # how often a list is read again; a plan that is carried out here is told at once

BEAT_S = 5.0  # how often it is asked whether somebody is still there, and still signed in

BEAT = ": still here\n\n"
OVER = "event: over\ndata: over\n\n"


async def plan_events(visit: Visit) -> Response:
    """Send how a plan stands each time it has come further, until it is at rest."""
    plan = await visit.here.record(plain(visit.named("id")))
    return streamed(visit, _of_plan(visit, plan.id))


def streamed(visit: Visit, parts: AsyncGenerator[str]) -> Response:
    """Return a stream of these parts, or nothing where somebody has too many open."""
    if not visit.console.streams.has_room(visit.who):
        return Response(status_code=204)
    headers = {"X-Accel-Buffering": "no"}
    return StreamingResponse(
        _bounded(visit, parts), media_type="text/event-stream", headers=headers
    )


async def on_change(
    visit: Visit, look: Callable[[], Coroutine[Any, Any, str]]
) -> AsyncGenerator[str]:
    """Yield what `look` returns, again whenever that is another."""
    shown = ""
    listeners = visit.rt.driver.setting.listeners
    while not listeners.over:
        part = await look()
        if part != shown:
            shown = part
            yield part
        await asyncio.sleep(LOOK_S)


async def _of_plan(visit: Visit, id: str) -> AsyncGenerator[str]:
    async for _ in visit.rt.progress(id, tenant=visit.who.tenant):
        card = await plan_card(visit, await visit.here.record(id))
        yield visit.part("_plan.html", card=card, alone=True, again="")


async def _bounded(visit: Visit, parts: AsyncGenerator[str]) -> AsyncGenerator[str]:
    """Yield the parts as messages for as long as the stream may last and they are signed in."""
    loop = asyncio.get_running_loop()
    ends_at = loop.time() + STREAM_S
    coming: asyncio.Future[str] | None = None
    with visit.console.streams.one_of(visit.who):
        try:
            while loop.time() < ends_at and await _still_in(visit):
                coming = coming or asyncio.ensure_future(anext(parts))
                await asyncio.wait({coming}, timeout=BEAT_S)
                if not coming.done():
                    yield BEAT
                    continue
                part, coming = coming.result(), None
                if await _still_in(visit):
                    yield event(part)
        except StopAsyncIteration:
            yield OVER
        finally:
            if coming is not None:
                coming.cancel()


async def _still_in(visit: Visit) -> bool:
    who = await visit.console.known(visit.kept)
    return who is not None and who == visit.who and who.may_be(Role.PERSON)


def event(part: str) -> str:
    """Return a part of a page as one message."""
    lines = "".join(f"data: {line}\n" for line in part.splitlines())
    return f"{lines}\n"


PAGES = (Page(path="/plans/{id}/events", answer=plan_events, live=True),)
