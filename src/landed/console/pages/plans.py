"""A plan: its page, and what is pressed about it. Each press comes to one sentence.

A press is a form with what was seen. What was pressed before comes to what that came to, and is
said to; what moved since comes back as it stands now, and nothing is done.
"""

from collections.abc import Coroutine
from typing import Any

from starlette.responses import Response

from landed.console.cards import plan_card
from landed.console.visit import Page, Visit
from landed.core.approval import Problem, Purpose
from landed.core.errors import ApprovalError, ProposalError
from landed.core.plan import Plan, PlanState
from landed.core.value import PlanValue
from landed.core.yes import Answer, read_answer
from landed.runtime.planning import typed_words
from landed.server.asking import plain

PATIENCE_S = 2.0  # how long a page waits for what was pressed; it goes on anyhow, and is watched

NOTES = frozenset(
    {"approve", "decline", "cancel", "retry", "undo", "abandon", "answer", "replayed"}
)

_TAKEN_BACK = frozenset({PlanState.UNDOING, PlanState.UNDONE, PlanState.UNDO_PARTIAL})


async def show(visit: Visit) -> Response:
    """Show a plan as it stands."""
    return await plan_page(visit, await _held(visit), note=visit.asked("note"))


async def approve(visit: Visit) -> Response:
    """Say yes to a plan as it was shown."""
    plan = await _held(visit)
    if visit.form.get("fingerprint") != plan.hash:
        return await plan_page(visit, plan, problem="fingerprint", status=412)
    typed = typed_words(plan)
    said = read_answer(visit.form.get("typed", ""), typed=typed)
    if typed and plan.state is PlanState.PROPOSED and said.answer is not Answer.YES:
        return await plan_page(visit, plan, problem="typed", status=422)
    verb = visit.rt.approve(
        plan.id, principal=visit.who.principal, tenant=plan.tenant, purpose=Purpose.CONFIRM
    )
    return await _pressed(visit, plan, verb, "approve")


async def decline(visit: Visit) -> Response:
    """Say no to a plan, or to running it once more."""
    plan = await _held(visit)
    again = plan.state is PlanState.PARTIAL
    verb = visit.rt.decline(
        plan.id,
        principal=visit.who.principal,
        tenant=plan.tenant,
        purpose=Purpose.RETRY if again else Purpose.CONFIRM,
    )
    return await _pressed(visit, plan, verb, "decline")


async def cancel(visit: Visit) -> Response:
    """Stop a plan halfway; with `hard` without waiting for what is in flight."""
    plan = await _held(visit)
    verb = visit.rt.stop(
        plan.id,
        principal=visit.who.principal,
        tenant=plan.tenant,
        why=visit.form.get("why", ""),
        hard="hard" in visit.form,
    )
    return await _pressed(visit, plan, verb, "cancel")


async def retry(visit: Visit) -> Response:
    """Run a partial plan once more, without the steps that are done."""
    plan = await _held(visit)
    if _attempt_seen(visit) < plan.attempt:
        return visit.go(f"/plans/{plan.id}?note=replayed")
    if moved := await _moved(visit, plan):
        return moved
    verb = visit.rt.retry(plan.id, principal=visit.who.principal, tenant=plan.tenant)
    return await _pressed(visit, plan, verb, "retry")


async def undo(visit: Visit) -> Response:
    """Take back what a plan did, last to first."""
    plan = await _held(visit)
    if plan.state in _TAKEN_BACK:
        return visit.go(f"/plans/{plan.id}?note=replayed")
    if moved := await _moved(visit, plan):
        return moved
    verb = visit.rt.undo(plan.id, principal=visit.who.principal, tenant=plan.tenant)
    return await _pressed(visit, plan, verb, "undo")


async def abandon(visit: Visit) -> Response:
    """Drop a plan before it began."""
    plan = await _held(visit)
    if plan.state is PlanState.ABANDONED:
        return visit.go(f"/plans/{plan.id}?note=replayed")
    if moved := await _moved(visit, plan):
        return moved
    verb = visit.rt.abandon(plan.id, principal=visit.who.principal, tenant=plan.tenant)
    return await _pressed(visit, plan, verb, "abandon")


async def plan_page(
    visit: Visit,
    plan: Plan,
    *,
    note: str = "",
    problem: str = "",
    again: str = "",
    status: int = 200,
) -> Response:
    """Return the page of a plan, with what was pressed, or why it was not taken."""
    card = await plan_card(visit, plan)
    return visit.show(
        "plan.html",
        page="plan",
        card=card,
        note=note if note in NOTES else "",
        problem=problem,
        again=again or card.again,
        alone=True,
        status=status,
    )


async def _held(visit: Visit) -> Plan:
    return await visit.here.record(plain(visit.named("id")))


async def _pressed(
    visit: Visit, plan: Plan, verb: Coroutine[Any, Any, PlanValue | None], name: str
) -> Response:
    """Return what a press comes to: the plan's page, or why it was not taken."""
    try:
        value = await visit.console.carried(verb, patience_s=PATIENCE_S)
    except ApprovalError as error:
        return await _not_agreed(visit, plan, error)
    except ProposalError:
        return await _not_as_it_stands(visit, plan, name)
    if value is not None and value.changed and not any(step.operation for step in value.steps):
        now = await visit.here.record(plan.id)
        return await plan_page(visit, now, problem="changed", again=value.again, status=409)
    replayed = value is not None and value.replayed
    return visit.go(f"/plans/{plan.id}?note={'replayed' if replayed else name}")


async def _not_agreed(visit: Visit, plan: Plan, error: ApprovalError) -> Response:
    now = await visit.here.record(plan.id)
    problem = "absent" if error.problem == Problem.MISMATCH else str(error.problem)
    status = 410 if error.problem == Problem.EXPIRED else 409
    return await plan_page(visit, now, problem=problem, again=error.again, status=status)


async def _not_as_it_stands(visit: Visit, plan: Plan, name: str) -> Response:
    """Return how it stands where a verb was refused; the same pressed twice at once is said so."""
    now = await visit.here.record(plan.id)
    twice = {
        "retry": now.attempt > plan.attempt,
        "undo": now.state in _TAKEN_BACK,
        "abandon": now.state is PlanState.ABANDONED,
    }
    if twice.get(name):
        return visit.go(f"/plans/{plan.id}?note=replayed")
    return await plan_page(visit, now, problem="state", status=409)


def _attempt_seen(visit: Visit) -> int:
    seen = visit.form.get("attempt", "")
    return int(seen) if seen.isascii() and seen.isdigit() and len(seen) < 10 else 0


async def _moved(visit: Visit, plan: Plan) -> Response | None:
    """Return the page that shows what moved, None for a plan that is as it was seen."""
    if visit.form.get("version") == str(plan.version):
        return None
    return await plan_page(visit, plan, problem="moved", status=412)


_FORMS = (approve, decline, cancel, retry, undo, abandon)

PAGES = (
    Page(path="/plans/{id}", answer=show),
    *(Page(path=f"/plans/{{id}}/{each.__name__}", answer=each, method="POST") for each in _FORMS),
)
