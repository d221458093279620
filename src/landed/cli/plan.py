"""`landed plan`: the plans of a store, and a person's word about one of them.

Without `--app` a decision is written down and let go: the application's own worker carries it out.
With `--app` it is carried out here, step by step. To list and to show claims nothing.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from landed.cli.opened import Place, deciding, placed, reading
from landed.cli.shown import show, show_json, table

if TYPE_CHECKING:
    from landed.core.approval import Approval
    from landed.core.canonical import Json
    from landed.core.plan import Plan
    from landed.core.value import PlanValue
    from landed.runtime.auditing import Auditor
    from landed.runtime.runtime import Runtime

WAIT_S = 300.0

AS = click.option(
    "--as",
    "principal",
    required=True,
    envvar="LANDED_AS",
    metavar="NAME",
    help="Who says so, or LANDED_AS.",
)


@click.group()
def command() -> None:
    """List the plans of a store, show one, and say yes, no, stop, once more, take it back."""


@command.command("list")
@click.option("--all", "every", is_flag=True, help="Also those that are over.")
@click.option("--session", default="", help="Only those of one conversation.")
@placed
def list_plans(every: bool, session: str, **given: Any) -> None:
    """List the plans that wait for somebody, or are being carried out."""
    place = Place(**given)
    rows = asyncio.run(_listed(place, session, every=every))
    if place.as_json:
        show_json(rows)
    elif not rows:
        show("no plan waits or is being carried out" if not every else "there is no plan")
    else:
        heads = ("plan", "state", "waits for", "done", "session", "who", "what")
        table([heads, *([row[head] for head in heads] for row in rows)])


@command.command("show")
@click.argument("plan")
@placed
def show_plan(plan: str, **given: Any) -> None:
    """Show how PLAN stands: its steps, what was told, what it waits for."""
    place = Place(**given)
    _print(place, asyncio.run(_read(place, plan)))


@command.command()
@click.argument("what", metavar="PLAN|QUESTION")
@AS
@click.option("--typed", default="", help="The words that have to be typed for this plan.")
@placed
def approve(what: str, principal: str, typed: str, **given: Any) -> None:
    """Say yes to a plan, or to a question, exactly as it was shown."""
    place = Place(**given)

    async def say(runtime: "Runtime", wait_s: float) -> "PlanValue | None":
        await _require_typed(runtime, place, what, typed)
        return await runtime.approve(
            what, principal=principal, tenant=place.tenant, patience_s=wait_s
        )

    _say(place, what, say, Said(f"approved by {principal}", ends=("done",)))


@command.command()
@click.argument("what", metavar="PLAN|QUESTION")
@AS
@placed
def decline(what: str, principal: str, **given: Any) -> None:
    """Say no to a plan, to running it once more, or to a question."""
    place = Place(**given)

    async def say(runtime: "Runtime", wait_s: float) -> "PlanValue | None":
        purpose = await _purpose(runtime, place, what)
        return await runtime.decline(
            what, principal=principal, purpose=purpose, tenant=place.tenant
        )

    _say(place, what, say, Said(f"declined by {principal}"))


@command.command()
@click.argument("plan")
@AS
@click.option("--why", default="", help="The reason, for the record.")
@click.option("--hard", is_flag=True, help="Wait for nothing that is out; leave it in doubt.")
@placed
def stop(plan: str, principal: str, why: str, hard: bool, **given: Any) -> None:
    """Stop PLAN halfway: nothing more of it is started, done stays done."""
    place = Place(**given)

    async def say(runtime: "Runtime", wait_s: float) -> "PlanValue":
        return await runtime.stop(
            plan,
            principal=principal,
            tenant=place.tenant,
            why=why,
            hard=hard,
            patience_s=wait_s,
        )

    _say(place, plan, say, Said(f"stopped by {principal}"))


@command.command()
@click.argument("plan")
@AS
@placed
def retry(plan: str, principal: str, **given: Any) -> None:
    """Run PLAN once more from where it broke off."""
    place = Place(**given)

    async def say(runtime: "Runtime", wait_s: float) -> "PlanValue":
        return await runtime.retry(
            plan, principal=principal, tenant=place.tenant, patience_s=wait_s
        )

    _say(place, plan, say, Said(f"to be run once more, says {principal}", ends=("done",)))


@command.command()
@click.argument("plan")
@AS
@placed
def undo(plan: str, principal: str, **given: Any) -> None:
    """Take back what PLAN did, last to first, within an hour of its end."""
    place = Place(**given)

    async def say(runtime: "Runtime", wait_s: float) -> "PlanValue":
        return await runtime.undo(plan, principal=principal, tenant=place.tenant, patience_s=wait_s)

    _say(place, plan, say, Said(f"to be taken back, says {principal}", ends=("undone",)))


@command.command()
@click.argument("plan")
@click.option("--as", "principal", default="", envvar="LANDED_AS", metavar="NAME")
@click.option("--why", default="", help="The reason, for the record.")
@placed
def abandon(plan: str, principal: str, why: str, **given: Any) -> None:
    """Drop PLAN before it began, as the agent's side."""
    place = Place(**given)

    async def say(runtime: "Runtime", wait_s: float) -> "PlanValue":
        return await runtime.abandon(plan, why=why, principal=principal, tenant=place.tenant)

    _say(place, plan, say, Said("abandoned"))


@dataclass(frozen=True, slots=True)
class Said:
    """What was said, and the states it was meant to come to; () where to have said it is all."""

    text: str
    ends: tuple[str, ...] = ()


Say = Callable[["Runtime", float], Awaitable["PlanValue | None"]]


def _say(place: Place, what: str, say: Say, said: Said) -> None:
    """Say it, print how the plan stands then, and exit with 1 where it did not come to that."""
    from landed.core.errors import ApprovalError

    try:
        plain = asyncio.run(_said(place, what, say))
    except ApprovalError as error:
        again = f"; it is shown anew as {error.again}" if error.again else ""
        raise click.ClickException(f"{error}{again}") from error
    if not plain:
        show_json({"said": said.text}) if place.as_json else show(f"{what}: {said.text}")
        return
    if not place.as_json:
        show(f"{plain['plan']}: {said.text}")
        if plain["open"] and not place.app:
            show("It is carried out by the application's own worker, as soon as one runs.")
    _print(place, plain)
    if place.app and said.ends and plain["state"] not in said.ends:
        raise SystemExit(1)


async def _said(place: Place, what: str, say: Say) -> "dict[str, Json]":
    from landed.runtime.auditing import Auditor

    async with deciding(place) as runtime, AsyncExitStack() as stack:
        if place.app and not place.as_json:
            await _show_progress(stack, runtime, place, what)
        value = await say(runtime, WAIT_S if place.app else 0.0)
        await stack.aclose()
        if value is None:
            return {}
        auditor = Auditor(reader=runtime.driver.reader, tenant=place.tenant)
        language = place.lang or runtime.settings.language
        return await _plain(auditor, value.plan, language)


async def _show_progress(
    stack: AsyncExitStack, runtime: "Runtime", place: Place, what: str
) -> None:
    from landed.cli.progress import moving, shown

    approval = await _approval(runtime, place, what)
    plan = approval.plan if approval is not None else what
    await stack.enter_async_context(shown(moving(runtime, plan, tenant=place.tenant)))


async def _require_typed(runtime: "Runtime", place: Place, what: str, typed: str) -> None:
    """Have the words typed that a plan asks for: a yes by command must not be easier than one."""
    from landed.core.yes import Answer, read_answer

    approval = await _approval(runtime, place, what)
    if approval is None or not approval.typed:
        return
    words = ", ".join(approval.typed)
    given = typed or click.prompt(f"Type one of {words}", default="", show_default=False)
    if read_answer(given, typed=approval.typed).answer is not Answer.YES:
        raise click.ClickException(f"nothing was done: one of {words} has to be typed (--typed)")


async def _approval(runtime: "Runtime", place: Place, what: str) -> "Approval | None":
    """Return the yes that a plan, or a question, is about."""
    from landed.core.approval import Purpose, approval_from, approval_id
    from landed.core.changes import Kind
    from landed.core.plan import plan_from

    store = runtime.driver.store
    for record in await store.load(what):
        if record.tenant != place.tenant:
            continue
        subject = str(record.frozen.get("subject", ""))
        if record.kind is Kind.PLAN:
            subject = approval_id(record.id, Purpose.CONFIRM, plan_from(record).attempt)
        for found in await store.load(subject) if subject else ():
            if found.kind is Kind.APPROVAL:
                return approval_from(found)
    return None


async def _purpose(runtime: "Runtime", place: Place, what: str) -> Any:
    """Return what a no to a plan is about: running it once more, where it ended halfway."""
    from landed.core.approval import Purpose
    from landed.core.changes import Kind

    for record in await runtime.driver.store.load(what):
        if record.kind is Kind.PLAN and record.state == "partial":
            return Purpose.RETRY
    return Purpose.CONFIRM


# Reading.


async def _read(place: Place, plan: str) -> "dict[str, Json]":
    async with reading(place) as auditor:
        return await _plain(auditor, plan, place.lang or "en")


async def _listed(place: Place, session: str, *, every: bool) -> "list[dict[str, Json]]":
    from landed.core.telling import as_of_now, summaries

    now = time.time()
    async with reading(place) as auditor:
        rows: list[dict[str, Json]] = []
        asked = auditor.plans(session) if session or every else auditor.at_hand()
        for held in await asked:
            plan = as_of_now(held, now)
            waits = await _waits_for(auditor, plan, now)
            if not (every or waits or plan.open):
                continue
            rows.append(
                {
                    "plan": plan.id,
                    "state": plan.state,
                    "waits for": waits,
                    "done": f"{plan.done}/{len(plan.steps)}",
                    "session": plan.session,
                    "who": plan.principal,
                    "what": "; ".join(summaries(plan)),
                }
            )
        return rows


async def _waits_for(auditor: "Auditor", plan: "Plan", now: float) -> str:
    """Return which yes a plan waits for: to run it, to retry; "" for none that could be given."""
    from landed.core.approval import ApprovalState, Purpose, approval_from, approval_id
    from landed.core.plan import PlanState

    purposes = {PlanState.PROPOSED: (Purpose.CONFIRM, 0), PlanState.PARTIAL: (Purpose.RETRY, 1)}
    if plan.state not in purposes:
        return ""
    purpose, ahead = purposes[plan.state]
    id = approval_id(plan.id, purpose, plan.attempt + ahead)
    for record in await auditor.reader.store.load(id):
        approval = approval_from(record)
        if approval.state is ApprovalState.OPEN and now < approval.answer_by:
            return f"a yes to {purpose}"
    return ""


async def _plain(auditor: "Auditor", id: str, language: str) -> "dict[str, Json]":
    """Return a plan as plain values, as it stands."""
    from landed.core.plan import At
    from landed.core.telling import as_of_now, summaries

    now = time.time()
    plan = as_of_now(await auditor.reader.plan(id, tenant=auditor.tenant), now)
    told = await auditor.reader.report(plan.turn, language=language, now=now)
    lines = summaries(plan)
    steps: list[Json] = [
        {
            "step": number,
            "tool": step.tool,
            "summary": lines[number - 1],
            "at": place.at,
            "operation": "" if step.reads or place.at is At.WAITING else place.record,
            "attempt": place.attempt,
            "made": place.made,
        }
        for number, (step, place) in enumerate(zip(plan.steps, plan.places, strict=True), 1)
    ]
    return {
        "plan": plan.id,
        "state": plan.state,
        "open": plan.open,
        "attempt": plan.attempt,
        "session": plan.session,
        "principal": plan.principal,
        "waits_for": await _waits_for(auditor, plan, now),
        "answer_by": plan.answer_by,
        "by": plan.by,
        "why": plan.why,
        "supersedes": plan.supersedes,
        "hash": plan.hash,
        "questions": list(told.questions),
        "text": told.text,
        "steps": steps,
    }


def _print(place: Place, plain: "dict[str, Any]") -> None:
    if place.as_json:
        show_json(plain)
        return
    waits = f", waits for {plain['waits_for']}" if plain["waits_for"] else ""
    show(f"{plain['plan']}: {plain['state']}, attempt {plain['attempt']}{waits}")
    for step in plain["steps"]:
        made = "" if step["made"] is None else f": {step['made']}"
        show(f"{step['step']:3}  {step['at']:<8} {step['summary']}{made}")
    for question in plain["questions"]:
        show(f"     question {question}")
    show(plain["text"])
