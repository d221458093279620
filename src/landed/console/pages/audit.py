"""The audit: the journal from its newest entry back, whether it holds together, and that of a plan.

The journal is for administrators; the audit of a plan is for whoever may see the plan.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from starlette.responses import Response

from landed.console.exported import csv_file, json_file
from landed.console.pages.waiting import position
from landed.console.visit import Page, Visit
from landed.console.where import HELPERS, place_of
from landed.core.audit_rows import Audit
from landed.core.chain import Chain
from landed.runtime.auditing import Auditor
from landed.runtime.checking import Checker, Row
from landed.server.asking import plain
from landed.server.auth import Role

CHECK_S = 10.0  # how long one check goes on

ENTRY_COLUMNS = ("position", "at", "event", "kind", "id", "state", "tool", "session", "link")
EVENT_COLUMNS = ("seq", "at", "event", "actor", "reason", "attempt", "purpose", "record")


async def journal(visit: Visit) -> Response:
    """Show the tenant's entries, newest first, and whether all of that stretch holds together."""
    rows = await _checker(visit).rows(before=position(visit))
    return visit.show(
        "audit.html",
        page="audit",
        rows=[_plain(row) for row in rows.rows],
        before=position(visit),
        next=rows.next,
        chain=rows.chain,
        checked=None,
        **HELPERS,
    )


async def journal_csv(visit: Visit) -> Response:
    """Return the same entries as a CSV file."""
    rows = await _checker(visit).rows(before=position(visit))
    return csv_file([_plain(row) for row in rows.rows], ENTRY_COLUMNS, name="audit.csv")


async def journal_json(visit: Visit) -> Response:
    """Return the same entries as a JSON file."""
    rows = await _checker(visit).rows(before=position(visit))
    plain_rows = [_plain(row) for row in rows.rows]
    kept = [{name: row[name] for name in ENTRY_COLUMNS} for row in plain_rows]
    return json_file({"entries": kept, "next": rows.next}, name="audit.json")


async def check(visit: Visit) -> Response:
    """Check the whole journal, or what is left of it from an earlier check, and say what was."""
    asked = visit.form.get("after", "")
    after = int(asked) if asked.isascii() and asked.isdigit() and len(asked) < 19 else 0
    if visit.console.checking.locked():
        return _checked(visit, None, after, status=503)
    checker, until = _checker(visit), time.monotonic() + CHECK_S
    async with visit.console.checking:
        chain = await checker.check(after=after, in_time=lambda: time.monotonic() < until)
        is_over = not chain.checked or await checker.is_over(chain.last)
    return _checked(visit, chain, after, is_over=is_over)


def _checked(
    visit: Visit, chain: Chain | None, after: int, *, status: int = 200, is_over: bool = False
) -> Response:
    return visit.show(
        "audit_check.html", status=status, page="audit", chain=chain, after=after, is_over=is_over
    )


async def of_plan(visit: Visit) -> Response:
    """Show the audit of a plan that is theirs, or that they administer."""
    return visit.show("audit_plan.html", page="", audit=await _audit(visit), **HELPERS)


async def of_plan_json(visit: Visit) -> Response:
    """Return the audit of a plan as `landed audit show --json` prints it."""
    return json_file(asdict(await _audit(visit)), name="plan-audit.json")


async def of_plan_csv(visit: Visit) -> Response:
    """Return the events of a plan as a CSV file."""
    events = [asdict(event) for event in (await _audit(visit)).events]
    return csv_file(events, EVENT_COLUMNS, name="plan-audit.csv")


async def _audit(visit: Visit) -> Audit:
    held = await visit.here.plan(plain(visit.named("id")))
    auditor = Auditor(reader=visit.rt.driver.reader, tenant=visit.who.tenant)
    return await auditor.audit(held.plan, now=visit.console.now)


def _checker(visit: Visit) -> Checker:
    return Checker(reader=visit.rt.driver.reader, tenant=visit.who.tenant)


def _plain(row: Row) -> Mapping[str, Any]:
    """Return an entry as a page and a file show it; of a record that was edited only the place."""
    entry, record = row.entry, row.record
    shown: dict[str, Any] = {
        "position": entry.seq,
        "at": entry.at,
        "event": entry.event if record else "",
        "kind": record.kind if record else "",
        "id": entry.id if record else "",
        "state": entry.state if record else "",
        "tool": str(record.frozen.get("tool", "")) if record else "",
        "session": record.session if record else "",
        "link": entry.hash,
        "is_erased": entry.body is None,
        "href": place_of(record) if record else "",
    }
    return shown


def _page(path: str, answer: Any, **more: Any) -> Page:
    return Page(path=path, answer=answer, role=Role.ADMIN, **more)


PAGES: Sequence[Page] = (
    _page("/audit", journal, nav="nav.audit"),
    _page("/audit.csv", journal_csv),
    _page("/audit.json", journal_json),
    _page("/audit/check", check, method="POST"),
    Page(path="/plans/{id}/audit", answer=of_plan),
    Page(path="/plans/{id}/audit.json", answer=of_plan_json),
    Page(path="/plans/{id}/audit.csv", answer=of_plan_csv),
)
