"""A conversation: what was said and done in order, what each turn is told as, and its picture.

It is read a page of records at a time, from a journal position on: one may be as long as a store.
Reading it tells nobody anything, so nothing is kept as told.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from starlette.responses import Response

from landed.console.drawn import Drawn, drawn
from landed.console.pages.agents import require_session, work_of
from landed.console.pages.waiting import position
from landed.console.visit import Page, Visit
from landed.console.where import HELPERS
from landed.core.changes import Kind, Record
from landed.core.history import Item, View
from landed.core.question import Question, question_from
from landed.core.report import Report, report
from landed.runtime.nearby import learnt
from landed.testing.timeline import retold

SHOWN = 100  # records of one page
REPORTS_MAX = 10  # turns that are told of, the newest
VIEWS = tuple(View)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A page of a session.

    `reports` are there only where all of it is on the page: what a turn came to may stand anywhere
    behind it.
    """

    session: str
    view: View
    after: int
    next: int
    items: Sequence[Item]
    reports: Sequence[Report]
    turns: int
    questions: Sequence[Question]
    timeline: Drawn


async def session(visit: Visit) -> Response:
    """Show a conversation that is theirs, or that they administer."""
    name, after = visit.named("session"), position(visit)
    await require_session(visit, name)
    view = View(visit.asked("view")) if visit.asked("view") in VIEWS else View.CACHE
    store, reader = visit.rt.driver.store, visit.rt.driver.reader
    page = await store.session_records(
        tenant=visit.who.tenant, session=name, after=after, limit=SHOWN + 1
    )
    records = await learnt(reader, page[:SHOWN])
    is_whole = not after and len(page) <= SHOWN
    told = await retold(store, records)
    shown = Shown(
        session=name,
        view=view,
        after=after,
        next=records[-1].made if len(page) > SHOWN else 0,
        items=await reader.history_of(records, view=view),
        reports=_reports(visit, records) if is_whole else (),
        turns=sum(each.kind is Kind.TURN for each in records),
        questions=[question_from(each) for each in records if each.kind is Kind.QUESTION],
        timeline=drawn(told.lines, title=name, say=visit.say),
    )
    return visit.show(
        "session.html", page="", shown=shown, views=VIEWS, work=work_of(visit, name), **HELPERS
    )


def _reports(visit: Visit, records: Sequence[Record]) -> list[Report]:
    contracts, language = visit.rt.driver.reader.contracts, visit.console.language
    turns = [each.id for each in records if each.kind is Kind.TURN]
    return [
        report(turn, records, contracts, language=language, now=visit.console.now)
        for turn in turns[-REPORTS_MAX:]
    ]


PAGES = (Page(path="/sessions/{session:whole}", answer=session),)
