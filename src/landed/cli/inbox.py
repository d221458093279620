"""`landed inbox`: what waits for somebody, cases first, then questions, each oldest first.

A plan that waits for a yes is there by the question that was put about it.
"""

import asyncio
import time
from typing import TYPE_CHECKING, Any

import click

from landed.cli.opened import Place, placed, reading
from landed.cli.shown import show, show_json, table

if TYPE_CHECKING:
    from landed.core.canonical import Json

HEADS = ("id", "kind", "since", "session", "what")


@click.command()
@placed
def command(**given: Any) -> None:
    """List the cases and questions that wait for a person; nothing is claimed."""
    place = Place(**given)
    rows = asyncio.run(_rows(place))
    if place.as_json:
        show_json(rows)
    elif not rows:
        show("nothing waits for anybody")
    else:
        table([HEADS, *([row[head] for head in HEADS] for row in rows)])


async def _rows(place: Place) -> "list[dict[str, Json]]":
    from landed.runtime.inbox import Inbox

    now = time.time()
    async with reading(place) as auditor:
        inbox = Inbox(reader=auditor.reader, tenant=place.tenant)
        rows: list[dict[str, Json]] = []
        for case in await inbox.cases():
            what = f"{case.tool}: {case.says}"
            since = age(now - case.since)
            rows.append(_row(case.id, f"case: {case.why}", since, case.session, what))
        for asked in await inbox.questions():
            since, kind = age(now - asked.made_at), f"question: {asked.about}"
            rows.append(_row(asked.id, kind, since, asked.session, asked.text))
        return rows


def _row(*cells: str) -> "dict[str, Json]":
    return dict(zip(HEADS, cells, strict=True))


def age(seconds: float) -> str:
    """Return an age in one unit that a person can compare."""
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return f"{max(0, int(seconds))} s"
