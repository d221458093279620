"""Decisions about a plan, each a person's: yes, no, once more, take it back."""

from typing import Any

from fastapi import APIRouter, Response

from landed.core.approval import Purpose
from landed.core.errors import ProposalError
from landed.core.value import PlanValue
from landed.server.asking import Asking, Here, Id
from landed.server.auth import Role
from landed.server.idempotency import MatchHeader, PreferHeader, patience_s
from landed.server.models import DecisionBody, Nothing, PlanView
from landed.server.plans import DECIDES, decided, matched

router = APIRouter(prefix="/v1/plans", tags=["decisions"])


@router.post("/{plan_id}/approve", responses=DECIDES)
async def approve(
    plan_id: Id,
    body: DecisionBody,
    match: MatchHeader,
    here: Asking,
    response: Response,
    prefer: PreferHeader = "",
) -> PlanView:
    """Say yes to a plan as it was seen, as the person it was shown to.

    One that was dry-run begins by its commit after that; any other begins now.
    """
    await _matched(here, plan_id, match)
    waits = {"patience_s": patience_s(prefer)}
    return await decided(_said(here, plan_id, body, yes=True, **waits), response)


@router.post("/{plan_id}/decline", responses=DECIDES)
async def decline(
    plan_id: Id, body: DecisionBody, match: MatchHeader, here: Asking, response: Response
) -> PlanView:
    """Say no to a plan as it was seen, as the person it was shown to."""
    await _matched(here, plan_id, match)
    return await decided(_said(here, plan_id, body, yes=False), response)


@router.post("/{plan_id}/retry", responses=DECIDES)
async def retry(
    plan_id: Id,
    body: Nothing,
    match: MatchHeader,
    here: Asking,
    response: Response,
    prefer: PreferHeader = "",
) -> PlanView:
    """Run a partial plan once more, without the steps that are done."""
    await _matched(here, plan_id, match)
    verb = here.rt.retry(
        plan_id,
        principal=here.who.principal,
        tenant=here.who.tenant,
        patience_s=patience_s(prefer),
    )
    return await decided(verb, response)


@router.post("/{plan_id}/undo", responses=DECIDES)
async def undo(
    plan_id: Id,
    body: Nothing,
    match: MatchHeader,
    here: Asking,
    response: Response,
    prefer: PreferHeader = "",
) -> PlanView:
    """Take back what a plan did, last to first."""
    await _matched(here, plan_id, match)
    verb = here.rt.undo(
        plan_id,
        principal=here.who.principal,
        tenant=here.who.tenant,
        patience_s=patience_s(prefer),
    )
    return await decided(verb, response)


async def _matched(here: Here, plan_id: str, match: str) -> PlanValue:
    """Return the plan as it was seen, for somebody who may decide; an agent may not."""
    held = await matched(here, plan_id, match)
    here.require(Role.PERSON)
    return held


async def _said(
    here: Here, plan_id: str, body: DecisionBody, *, yes: bool, **waits: Any
) -> PlanValue:
    say = here.rt.approve if yes else here.rt.decline
    value = await say(
        plan_id,
        principal=here.who.principal,
        tenant=here.who.tenant,
        purpose=Purpose(body.purpose),
        **waits,
    )
    if value is None:
        raise ProposalError(f"there is nothing to be said to {plan_id}")
    return value
