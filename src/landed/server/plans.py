"""Plans: preview, propose, read, commit, drop, stop, change one's mind, and watch."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Query, Request, Response
from fastapi.sse import EventSourceResponse, ServerSentEvent

from landed.core.errors import ProposalError
from landed.core.key import Ask, ask_name, commit_name
from landed.core.plan import Plan, PlanState, Wanted
from landed.core.value import PlanValue
from landed.runtime.following import rests
from landed.runtime.listing import listed_as
from landed.server.asking import (
    UNDER_WAY,
    Asking,
    Here,
    Id,
    Served,
    carried_out,
    plain,
    shown,
    still_at_work,
    whole,
)
from landed.server.idempotency import (
    KeyHeader,
    MatchHeader,
    PreferHeader,
    call_id,
    key_of,
    patience_s,
    require_match,
)
from landed.server.listed import PlanPage, PlansAsked, cursor_of, listing, plan_line, position
from landed.server.models import (
    CancelBody,
    CommitBody,
    PlanBody,
    PlanView,
    ProposeBody,
    ReviseBody,
    WhyBody,
)
from landed.server.problems import ProblemError, documented

router = APIRouter(prefix="/v1/plans", tags=["plans"])

DONE = "There is nothing more to be told."
LastSeen = Annotated[
    str,
    Header(
        alias="Last-Event-ID", max_length=18, description="The id of the event that was seen last."
    ),
]
READS = documented("unauthenticated", "absent")
LISTS = ("unauthenticated", "cursor", "unknown-field", "invalid")
BODIES = ("malformed", "unknown-field", "unauthenticated", "absent", "invalid", "not-json")
PROPOSALS = (*BODIES, "forbidden", "busy")
KEYED = ("key-missing", "key-malformed", "key-used", "in-progress")
MATCHED = ("moved", "match-missing", "state")
COMMITS = documented(*PROPOSALS, *KEYED, "changed", "not-agreed", "expired", "fingerprint", "state")
PROPOSES = documented(*PROPOSALS, *KEYED)
DECIDES = documented(*PROPOSALS, *MATCHED, "expired")


@router.post("/dry-run", responses=documented(*PROPOSALS))
async def dry_run(body: PlanBody, here: Asking, response: Response) -> PlanView:
    """Say what calls would do as one plan, and keep it; has no effect, and needs no key."""
    ask = await here.ask(session=body.session, input=body.input)
    return await previewed(here, body.wanted(), ask, response, intent=body.intent)


@router.post("", responses=PROPOSES)
async def propose(
    body: ProposeBody, key: KeyHeader, here: Asking, response: Response, prefer: PreferHeader = ""
) -> PlanView:
    """Carry calls out as one plan: at once where nobody has to agree, else after one yes."""
    named = call_id(here.who.principal, "propose", key_of(key))
    ask = await here.ask(session=body.session, input=body.input, call_id=named)
    seconds = await _patience(here, ask_name(ask), prefer)
    verb = here.rt.propose(
        body.wanted(),
        ask=ask,
        intent=body.intent,
        independent=body.independent,
        patience_s=seconds,
    )
    return shown(_come_far_enough(await whole(verb)), response)


@router.get("", responses=documented(*LISTS))
async def list_plans(asked: Annotated[PlansAsked, Query()], here: Asking) -> PlanPage:
    """Return the caller's plans, all of the tenant's for who administers it, page by page.

    What waits or is under way is listed oldest first, the rest by what happened last.
    """
    of = listed_as(asked.state)
    lists = await listing(here, asked.owner)
    page = await lists.plans(asked.state, position(asked.after, of), limit=asked.limit)
    return PlanPage(plans=[plan_line(line) for line in page.lines], next=cursor_of(page, of))


@router.get("/{plan_id}", responses=READS)
async def read(plan_id: Id, here: Asking, response: Response) -> PlanView:
    """Return a plan as it stands; its ETag is what the decisions about it ask for."""
    view = shown(await here.plan(plain(plan_id)), response)
    response.status_code = 200  # Read as it is, whatever is still to come.
    return view


@router.post("/{plan_id}/commit", responses=COMMITS)
async def commit(
    plan_id: Id,
    body: CommitBody,
    key: KeyHeader,
    here: Asking,
    response: Response,
    prefer: PreferHeader = "",
) -> PlanView:
    """Carry out what a dry run showed: exactly that, once."""
    if body.plan_id != plan_id:
        raise ProblemError("invalid", "the plan in the body is not the one in the path")
    return await whole(committed(here, body, key=key, prefer=prefer, response=response))


@router.post("/{plan_id}/abandon", responses=DECIDES)
async def abandon(
    plan_id: Id, body: WhyBody, match: MatchHeader, here: Asking, response: Response
) -> PlanView:
    """Drop a plan before it began: its token and the yes to it are good no more."""
    await matched(here, plan_id, match)
    verb = here.rt.abandon(
        plan_id, why=body.why, principal=here.who.principal, tenant=here.who.tenant
    )
    return await decided(verb, response)


@router.post("/{plan_id}/cancel", responses=documented(*BODIES, "state"))
async def cancel(
    plan_id: Id, body: CancelBody, here: Asking, response: Response, prefer: PreferHeader = ""
) -> PlanView:
    """Stop a plan, from anywhere: nothing more is begun, done stays done. Needs no If-Match.

    A step that lands while somebody reaches for the button must not keep them from it. Where
    something is still in flight the state says `stopping`.
    """
    await here.plan(plain(plan_id))
    verb = here.rt.stop(
        plan_id,
        principal=here.who.principal,
        tenant=here.who.tenant,
        why=body.why,
        hard=body.hard,
        patience_s=patience_s(prefer),
    )
    return await decided(verb, response)


@router.post("/{plan_id}/revise", responses=documented(*PROPOSALS, *KEYED, *MATCHED))
async def revise(
    plan_id: Id,
    body: ReviseBody,
    key: KeyHeader,
    match: MatchHeader,
    here: Asking,
    response: Response,
    prefer: PreferHeader = "",
) -> PlanView:
    """Change what a plan's turn wants to what was heard since: kept, released, corrected, added."""
    held = await here.plan(plain(plan_id))
    heard = await here.heard(body.input, held.session)
    named = call_id(here.who.principal, "revise", key_of(key))
    name = ask_name(heard.ask(named))
    seconds = await _patience(here, name, prefer)
    if not await here.rt.driver.store.holders(name):
        require_match(match, held)
    verb = here.rt.revise(
        held.turn,
        heard,
        wanted=None if body.calls is None else [call.wanted() for call in body.calls],
        change=body.change,
        drop=body.drop,
        call_id=named,
        patience_s=seconds,
    )
    return shown(_come_far_enough(await whole(verb)), response)


class NothingMoreError(Exception):
    """There is nothing that this reader of events has not seen, and there will be nothing."""


async def _watched(
    plan_id: Id, here: Asking, request: Request, seen: LastSeen = ""
) -> AsyncIterator[tuple[Plan, int | None]]:
    """Hold a place for whoever watches, with the version that they saw last."""
    held = await here.record(plain(plan_id))
    after = int(seen) if seen.isascii() and seen.isdecimal() else None
    if after is not None and after >= held.version and await rests(here.rt.driver.store, held):
        raise NothingMoreError
    served: Served = request.app.state.served
    with served.streams.room():
        yield held, after


@router.get(
    "/{plan_id}/events",
    response_class=EventSourceResponse,
    responses={
        **documented("unauthenticated", "absent", "invalid", "busy"),
        204: {"description": DONE},
    },
)
async def events(
    watched: Annotated[tuple[Plan, int | None], Depends(_watched)], here: Asking
) -> AsyncIterator[ServerSentEvent]:
    """Say how a plan stands, and each time it has come further, until it is at rest.

    The id of an event is the plan's version. Whoever comes again with it (`Last-Event-ID`) is told
    what came since; where that is nothing, and nothing will come, the answer is a 204.
    """
    held, after = watched
    async for now in here.rt.progress(held.id, tenant=here.who.tenant, after=after):
        plain_values = {k: v for k, v in asdict(now).items() if k != "version"}
        yield ServerSentEvent(event="progress", id=str(now.version), data=plain_values)


# What these routes, and those of the tools and decisions, share.


async def previewed(
    here: Here,
    wanted: Sequence[Wanted],
    ask: Ask,
    response: Response,
    *,
    intent: dict[str, Any] | None = None,
) -> PlanView:
    """Preview calls and keep them as a plan; raises `ProblemError` where something is missing."""
    value = await whole(here.rt.preview(wanted, ask=ask, intent=intent or {}, keep=True))
    if value.state is PlanState.INVALID:
        raise ProblemError("invalid", value.text, questions=value.text.split("\n"))
    return shown(value, response)


async def committed(
    here: Here, body: CommitBody, *, key: str, prefer: str, response: Response
) -> PlanView:
    """Commit a plan by its token and its fingerprint."""
    named = call_id(here.who.principal, "commit", key_of(key))
    name = commit_name(tenant=here.who.tenant, principal=here.who.principal, call_id=named)
    value = await here.rt.commit(
        body.plan_id,
        token=body.plan_token,
        fingerprint=body.input_fingerprint,
        principal=here.who.principal,
        tenant=here.who.tenant,
        call_id=named,
        patience_s=await _patience(here, name, prefer),
    )
    return carried_out(_come_far_enough(value), response)


async def matched(here: Here, plan_id: str, match: str) -> PlanValue:
    """Return a plan of theirs that is as they saw it; raises `ProblemError`."""
    held = await here.plan(plain(plan_id))
    require_match(match, held)
    return held


async def decided(verb: Any, response: Response) -> PlanView:
    """Return what a decision came to; raises `ProblemError` where it cannot be taken as it is."""
    try:
        return shown(await whole(verb), response)
    except ProposalError as error:
        raise ProblemError("state", str(error)) from None


async def _patience(here: Here, name: str, prefer: str) -> float:
    """Return how long to wait: who comes again while the first is at work is told so at once."""
    is_known = bool(await here.rt.driver.store.holders(name))
    return 0.0 if is_known else patience_s(prefer)


def _come_far_enough(value: PlanValue) -> PlanValue:
    if value.replayed and value.state in UNDER_WAY:
        raise still_at_work(value)
    return value
