"""`landed inspect`: what an id names, whosever id it is, and what it leads to, up and down."""

import asyncio
import time
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from landed.cli.opened import Place, placed, reading
from landed.cli.shown import show, show_json

if TYPE_CHECKING:
    from landed.runtime.tracing import Trace

SHOWN_MAX = 5  # of those that one id names, how many are told in full


# An id may begin with a dash; a token does, now and then, and must not be told in an error.
@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("id")
@placed
def command(id: str, **given: Any) -> None:
    """Say what ID is, how it stands and why, and trace it to the sentence that asked for it.

    ID is that of a record (an operation, a plan, an approval, a question, …), a key, a Message-ID,
    or the id that a service gave. Nothing is claimed or changed.
    """
    place = Place(**given)
    traces, others = asyncio.run(_traced(place, id))
    if place.as_json:
        found = [asdict(each) for each in traces]
        show_json({"found": found, "others": others})
        return
    for each in traces:
        for text in written(each):
            show(text)
    for other in others:
        show(f"also: {other}")


async def _traced(place: Place, id: str) -> "tuple[list[Trace], list[str]]":
    now = time.time()
    async with reading(place) as auditor:
        found = await auditor.find(id)
        language = place.lang or "en"
        traces = [
            await auditor.trace(record, now=now, language=language) for record in found[:SHOWN_MAX]
        ]
    return traces, [record.id for record in found[SHOWN_MAX:]]


def written(trace: "Trace") -> Iterator[str]:
    """Yield a trace as lines."""
    from landed.runtime.tracing import instant

    yield f"{trace.id}: {trace.kind}, {trace.state}"
    if trace.says:
        yield f"  {_flat(trace.says)}"
    for evidence in trace.evidence:
        by = f" by {evidence.by}" if evidence.by else ""
        yield f"  {instant(evidence.at)}  {evidence.source}{by}: {evidence.says}"
    for way, links in (("up", trace.up), ("down", trace.down)):
        if links:
            yield way
        for link in links:
            says = f": {_flat(link.says)}" if link.says else ""
            yield f"  {link.relation} {link.kind} {link.id} ({link.state}){says}"


def _flat(text: str) -> str:
    return " / ".join(text.splitlines())
