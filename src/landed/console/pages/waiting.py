"""What waits for a person: plans to agree to, questions, and the cases of those who administer."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from starlette.responses import Response

from landed.console.cards import plan_card, waits_for_yes
from landed.console.pages.live import on_change, streamed
from landed.console.pages.questions import QuestionCard, question_card
from landed.console.visit import Page, Visit
from landed.core.approval import approval_from
from landed.core.case import Standing
from landed.core.changes import Kind, Record
from landed.core.plan import Plan, PlanState, plan_from
from landed.core.question import About, question_from
from landed.core.store import Listed
from landed.runtime.inbox import Inbox
from landed.server.auth import Role

READ = 50  # records that are read at a time
READS_MAX = 20  # how often for one page: what waits for others is passed over
SHOWN = 20  # how many are shown on a page


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One thing that waits: its `kind` says by which template it is shown."""

    id: str
    kind: str
    card: Any


async def waiting(visit: Visit) -> Response:
    """Show what waits for whoever is signed in, oldest first."""
    items, following = await waiting_for(visit, after=position(visit))
    return visit.show(
        "waiting.html",
        page="waiting",
        items=items,
        next=following,
        after=position(visit),
        seen=_digest(items),
    )


async def waiting_events(visit: Visit) -> Response:
    """Say once that what waits is not what the page has; what is typed there is left alone."""

    async def look() -> str:
        items, _ = await waiting_for(visit, after=position(visit))
        is_news = _digest(items) != visit.asked("seen")
        return visit.part("_news.html", after=position(visit)) if is_news else ""

    return streamed(visit, on_change(visit, look))


async def waiting_for(visit: Visit, *, after: int) -> tuple[list[Item], int]:
    """Return what waits for somebody after a position, and where the next page begins (0: none)."""
    items: list[Item] = []
    store = visit.rt.driver.store
    for _ in range(READS_MAX):
        left = SHOWN - len(items)
        page = await store.listed(
            tenant=visit.who.tenant, of=Listed.WAITING, after=after, limit=min(READ, left)
        )
        for record in page.records:
            item = await _item(visit, record)
            items += [item] if item is not None else []
        after = page.next
        if not after or len(items) >= SHOWN:
            break
    return items, after


def position(visit: Visit) -> int:
    """Return which position a page is asked for from, 0 for the beginning."""
    asked = visit.asked("after")
    return int(asked) if asked.isascii() and asked.isdigit() and len(asked) < 19 else 0


def _digest(items: Sequence[Item]) -> str:
    return sha256("\n".join(each.id for each in items).encode()).hexdigest()[:16]


async def _item(visit: Visit, record: Record) -> Item | None:
    """Return a record as what waits for whoever is signed in, None where it does not."""
    match record.kind:
        case Kind.PLAN:
            plan = plan_from(record)
            return await _plan(visit, plan) if waits_for_yes(plan) else None
        case Kind.QUESTION:
            return await _question(visit, record)
        case Kind.OPERATION | Kind.CASE if visit.who.may_be(Role.ADMIN):
            return Item(id=record.id, kind="case", card=await _case(visit, record.id))
        case _:
            return None


async def _plan(visit: Visit, plan: Plan) -> Item | None:
    if plan.principal not in ("", visit.who.principal):
        return None
    card = await plan_card(visit, plan)
    return Item(id=plan.id, kind="plan", card=card) if card.may else None


async def _question(visit: Visit, record: Record) -> Item | None:
    """Return a question; one about a plan is that plan, unless it is there by itself."""
    asked = question_from(record)
    if asked.principal not in ("", visit.who.principal):
        return None
    if asked.about is not About.PLAN:
        card: QuestionCard = question_card(asked)
        return Item(id=asked.id, kind="question", card=card)
    (approval,) = await visit.rt.driver.store.load(asked.subject)
    plan = await visit.rt.driver.reader.plan(approval_from(approval).plan, tenant=asked.tenant)
    return None if plan.state is PlanState.PROPOSED else await _plan(visit, plan)


async def _case(visit: Visit, id: str) -> Standing:
    return await Inbox(reader=visit.rt.driver.reader, tenant=visit.who.tenant).case(id)


PAGES = (
    Page(path="/waiting", answer=waiting, nav="nav.waiting"),
    Page(path="/waiting/events", answer=waiting_events, live=True),
)
