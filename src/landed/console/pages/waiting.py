"""What waits for a person: plans to agree to, questions, and the cases of those who administer."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from starlette.responses import Response

from landed.console.cards import plan_card, waits_for_yes
from landed.console.pages.live import on_change, streamed
from landed.console.pages.questions import question_card
from landed.console.visit import Page, Visit
from landed.core.approval import Purpose, approval_from
from landed.core.changes import Kind, Record
from landed.core.plan import Plan, plan_from
from landed.core.question import About, Question, question_from
from landed.core.store import Selection
from landed.runtime.inbox import Inbox
from landed.server.auth import Role

READS_MAX = 20  # pages of the store for one of ours: what waits for others is passed over
SHOWN = 20  # how many are shown on a page


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One thing that waits: its `kind` says by which template it is shown."""

    id: str
    kind: str
    card: Any


async def waiting(visit: Visit) -> Response:
    """Show what waits for whoever is signed in, oldest first."""
    records, following = await waiting_for(visit, after=position(visit))
    items = [item for record in records if (item := await _item(visit, record)) is not None]
    return visit.show(
        "waiting.html",
        page="waiting",
        items=items,
        next=following,
        after=position(visit),
        seen=_digest(records),
    )


async def waiting_events(visit: Visit) -> Response:
    """Say once that what waits is not what the page has; what is typed there is left alone."""

    async def look() -> str:
        records, _ = await waiting_for(visit, after=position(visit))
        is_news = _digest(records) != visit.asked("seen")
        return visit.part("_news.html", after=position(visit)) if is_news else ""

    return streamed(visit, on_change(visit, look))


async def waiting_for(visit: Visit, *, after: int) -> tuple[list[Record], int]:
    """Return what waits for somebody after a position, and where the next page begins (0: none)."""
    found: list[Record] = []
    store = visit.rt.driver.store
    for _ in range(READS_MAX):
        page = await store.listed(
            tenant=visit.who.tenant, of=Selection.WAITING, after=after, limit=SHOWN - len(found)
        )
        theirs = [record for record in page.records if _is_theirs(visit, record)]
        asked = await _confirms(visit, theirs)
        found += [record for record in theirs if record.id not in asked]
        after = page.next
        if not after or len(found) >= SHOWN:
            break
    return found, after


def position(visit: Visit) -> int:
    """Return which position a page is asked for from, 0 for the beginning."""
    asked = visit.asked("after")
    return int(asked) if asked.isascii() and asked.isdigit() and len(asked) < 19 else 0


def _digest(records: Sequence[Record]) -> str:
    return sha256("\n".join(each.id for each in records).encode()).hexdigest()[:16]


def _is_theirs(visit: Visit, record: Record) -> bool:
    """Whether a record waits for whoever is signed in."""
    mine = ("", visit.who.principal)
    match record.kind:
        case Kind.PLAN:
            plan = plan_from(record)
            waits = waits_for_yes(plan) and not plan.expired(visit.console.now)
            return waits and plan.principal in mine
        case Kind.QUESTION:
            return question_from(record).principal in mine
        case Kind.OPERATION | Kind.CASE:
            return visit.who.may_be(Role.ADMIN)
        case _:
            return False


async def _confirms(visit: Visit, records: Sequence[Record]) -> frozenset[str]:
    """Return those of the questions that ask for the yes to a plan that waits by itself."""
    questions = [question_from(each) for each in records if each.kind is Kind.QUESTION]
    about = {each.subject: each.id for each in questions if each.about is About.PLAN}
    approvals = await visit.rt.driver.store.load(*about) if about else ()
    return frozenset(
        about[each.id] for each in approvals if approval_from(each).purpose is Purpose.CONFIRM
    )


async def _item(visit: Visit, record: Record) -> Item | None:
    match record.kind:
        case Kind.PLAN:
            return await _plan(visit, plan_from(record))
        case Kind.QUESTION:
            return await _question(visit, question_from(record))
        case _:
            inbox = Inbox(reader=visit.rt.driver.reader, tenant=visit.who.tenant)
            return Item(id=record.id, kind="case", card=await inbox.case(record.id))


async def _plan(visit: Visit, plan: Plan) -> Item | None:
    card = await plan_card(visit, plan)
    return Item(id=plan.id, kind="plan", card=card) if card.may else None


async def _question(visit: Visit, asked: Question) -> Item | None:
    """Return a question; one whether to run a plan once more is shown as that plan."""
    if asked.about is not About.PLAN:
        return Item(id=asked.id, kind="question", card=question_card(asked))
    (approval,) = await visit.rt.driver.store.load(asked.subject)
    plan = await visit.rt.driver.reader.plan(approval_from(approval).plan, tenant=asked.tenant)
    return await _plan(visit, plan)


PAGES = (
    Page(path="/waiting", answer=waiting, nav="nav.waiting"),
    Page(path="/waiting/events", answer=waiting_events, live=True),
)
