"""`landed audit show`: who was shown what, who agreed, and what each step of a plan came to."""

import asyncio
import time
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from landed.cli.opened import Place, placed, reading
from landed.cli.shown import show, show_json

if TYPE_CHECKING:
    from landed.core.audit_rows import Audit, StepRow


@click.group()
def command() -> None:
    """Print what the journal says about a plan."""


@command.command("show")
@click.argument("plan")
@placed
def show_audit(plan: str, **given: Any) -> None:
    """Print the audit of PLAN: its hash and basis, its events, a row for each step and attempt.

    It is read from the journal; nothing is claimed or changed.
    """
    place = Place(**given)
    audit = asyncio.run(_audited(place, plan))
    if place.as_json:
        show_json(asdict(audit))
        return
    for text in written(audit):
        show(text)


async def _audited(place: Place, plan: str) -> "Audit":
    async with reading(place) as auditor:
        return await auditor.audit(plan, now=time.time())


def written(audit: "Audit") -> Iterator[str]:
    """Yield an audit as lines."""
    from landed.runtime.tracing import instant

    plan = audit.plan
    yield f"{plan.plan}: {plan.state}, attempt {plan.attempt}"
    yield f"  for {plan.principal or plan.origin} in {plan.session}, made {instant(plan.made_at)}"
    yield f"  asked: {_flat(plan.asked) or '-'}"
    yield f"  hash {plan.hash}"
    yield f"  basis {plan.basis}"
    if plan.supersedes:
        yield f"  supersedes {plan.supersedes}"
    yield "events"
    for row in audit.events:
        of = f" {row.purpose}" if row.purpose else ""
        why = f": {row.reason}" if row.reason else ""
        what = f"{row.event}{of} by {row.actor or '-'}, attempt {row.attempt}{why}"
        yield f"  {row.seq or '-':>6}  {instant(row.at)}  {what}"
    yield "authorised"
    for yes in audit.authorised:
        yield f"  {instant(yes.at)}  {yes.purpose}, attempt {yes.attempt}, by {yes.by}: {yes.hash}"
        yield f"          to: {_flat(yes.asked) or '-'}"
        yield f"          in the words: {_flat(yes.said) or '- (pressed)'}"
    yield "steps"
    for step in audit.steps:
        yield from _step(step)


def _step(row: "StepRow") -> Iterator[str]:
    from landed.runtime.tracing import instant

    effects = ", ".join(f"{effect.type} {effect.id}" for effect in row.effects)
    parts = [row.status, row.operation or row.observation, effects]
    yield f"  {row.attempt}.{row.step}  {row.summary}: {', '.join(filter(None, parts))}"
    if row.reason:
        yield f"       because {row.reason}"
    if row.undone_by:
        yield f"       taken back by {row.undone_by}"
    for check in row.checks:
        about = f" ({check.about})" if check.about else ""
        yield f"       checked {check.check}{about}: {check.came}"
    for evidence in row.evidence:
        by = f" by {evidence.by}" if evidence.by else ""
        yield f"       {instant(evidence.at)}  {evidence.source}{by}: {evidence.says}"


def _flat(text: str) -> str:
    return " / ".join(text.splitlines())
