"""Search: whatever an id names, ours or a service's; one hit is gone to, several are listed.

An id of ours, a key, a Message-ID are found by an index. What only a service knows by its own id
is looked for in the journal, from the newest entry back, so far at a time.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from starlette.responses import RedirectResponse, Response

from landed.console.visit import Page, Visit
from landed.console.where import HELPERS, place_of
from landed.core.case import case_from
from landed.core.changes import Kind, Record
from landed.runtime.auditing import ID_MAX, Auditor, Sought, is_text
from landed.runtime.listing import principal_of
from landed.runtime.nearby import learnt
from landed.runtime.tracing import trace

HITS_MAX = 50
_NUMBER = re.compile(r"[1-9][0-9]{0,17}", re.ASCII)
_BY_SESSION = frozenset({Kind.TURN, Kind.MESSAGE, Kind.RELEASE, Kind.APPROVAL})


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One record that was found: where it is, what it is, how it stands, what it says."""

    href: str
    kind: str
    id: str
    state: str
    says: str


async def search(visit: Visit) -> Response:
    """Look for what `q` names among what is theirs; `before` goes on from an earlier search."""
    asked = visit.asked("q").strip()
    if not asked:
        return _page(visit, asked, [], None)
    if len(asked) > ID_MAX or not is_text(asked):
        return _page(visit, asked[:ID_MAX], [], None, status=422, is_odd=True)
    auditor = Auditor(reader=visit.rt.driver.reader, tenant=visit.who.tenant)
    found: Sequence[Record] = ()
    sought: Sought | None = None
    before = int(visit.asked("before")) if _NUMBER.fullmatch(visit.asked("before")) else 0
    if not before:
        found = await _theirs(visit, await auditor.known(asked))
    if not found:
        sought = await auditor.sought(asked, before=before)
        found = await _theirs(visit, sought.records)
    learned = await learnt(visit.rt.driver.reader, found[:HITS_MAX])
    hits = [_hit(visit, each) for each in learned]
    if len(hits) == 1:
        return RedirectResponse(hits[0].href, status_code=303)
    return _page(visit, asked, hits, sought)


def _page(
    visit: Visit,
    asked: str,
    hits: Sequence[Hit],
    sought: Sought | None,
    *,
    status: int = 200,
    is_odd: bool = False,
) -> Response:
    return visit.show(
        "search.html",
        status=status,
        page="search",
        asked=asked,
        hits=hits,
        sought=sought,
        is_odd=is_odd,
        **HELPERS,
    )


async def _theirs(visit: Visit, found: Sequence[Record]) -> list[Record]:
    """Return those that have a page, and are theirs or administered by them."""
    shown = [each for each in found if each.tenant == visit.who.tenant and place_of(each)]
    if await visit.here.administers():
        return shown
    return [each for each in shown if await _is_theirs(visit, each)]


async def _is_theirs(visit: Visit, record: Record) -> bool:
    """Whether it is whoever's is signed in; what names nobody is whose its conversation is."""
    if record.kind is Kind.CASE:
        return False
    if record.kind not in _BY_SESSION:
        return principal_of(record) in ("", visit.who.principal)
    first = await visit.rt.driver.store.session_records(
        tenant=record.tenant, session=record.session, limit=1
    )
    return all(principal_of(each) in ("", visit.who.principal) for each in first)


def _hit(visit: Visit, record: Record) -> Hit:
    contracts = visit.rt.driver.reader.contracts
    if record.kind is Kind.CASE:
        said, state = case_from(record).says, record.state
    else:
        told = trace(
            record, [record], contracts, now=visit.console.now, language=visit.console.language
        )
        said, state = told.says, told.state
    return Hit(href=place_of(record), kind=record.kind, id=record.id, state=state, says=said)


PAGES = (Page(path="/search", answer=search, nav="nav.search"),)
