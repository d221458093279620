"""What runs and what was done, by page: a line for each plan, and for each call without one."""

from collections.abc import Sequence
from dataclasses import dataclass

from starlette.responses import Response

from landed.console.cards import PlanCard, plan_card
from landed.console.pages.live import on_change, streamed
from landed.console.pages.waiting import position
from landed.console.visit import Page, Visit
from landed.core.operation import Operation, State
from landed.runtime.listing import Line, Lines, Listing

SHOWN = 20  # lines on a page

OPERATION_TONES = {
    State.CONFIRMED: "good",
    State.FAILED: "bad",
    State.UNKNOWN: "doubt",
    State.UNDECIDED: "doubt",
    State.ASSUMED: "doubt",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LineCard:
    """A line as it is shown: with a plan that is in hand, or the one operation without a plan."""

    what: str
    text: str
    plan: PlanCard | None
    operation: Operation | None
    tone: str
    at: float


async def running(visit: Visit) -> Response:
    """Show what is under way, oldest first."""
    lines, following = await _running(visit)
    return visit.show("running.html", page="running", lines=lines, next=following)


async def running_events(visit: Visit) -> Response:
    """Send the list each time that something on it has moved."""

    async def look() -> str:
        lines, following = await _running(visit)
        return visit.part("_lines.html", lines=lines, next=following, nothing="running.none")

    return streamed(visit, on_change(visit, look))


async def done(visit: Visit) -> Response:
    """Show what is over, what ended last first."""
    page = await (await listing_of(visit)).done(position(visit), limit=SHOWN)
    lines = await _cards(visit, page)
    return visit.show("done.html", page="done", lines=lines, next=page.next)


async def listing_of(visit: Visit) -> Listing:
    """Return the lists of whoever is signed in: those of the tenant where they administer it."""
    everything = await visit.here.administers()
    return Listing(
        reader=visit.rt.driver.reader,
        tenant=visit.who.tenant,
        now=visit.console.now,
        owners=None if everything else ("", visit.who.principal),
        language=visit.console.language,
    )


async def _running(visit: Visit) -> tuple[Sequence[LineCard], int | None]:
    page = await (await listing_of(visit)).running(position(visit), limit=SHOWN)
    return await _cards(visit, page), page.next


async def _cards(visit: Visit, page: Lines) -> Sequence[LineCard]:
    return [await _card(visit, line) for line in page.lines]


async def _card(visit: Visit, line: Line) -> LineCard:
    if line.plan is not None:
        card = await plan_card(visit, line.plan)
        at = line.plan.ended_at or line.plan.made_at
        return LineCard(
            what=line.what, text=card.text, plan=card, operation=None, tone=card.tone, at=at
        )
    (held,) = line.operations
    return LineCard(
        what=line.what,
        text=line.text,
        plan=None,
        operation=held,
        tone=OPERATION_TONES.get(held.state, ""),
        at=held.made_at,
    )


PAGES = (
    Page(path="/running", answer=running, nav="nav.running"),
    Page(path="/running/events", answer=running_events, live=True),
    Page(path="/done", answer=done, nav="nav.done"),
)
