"""Cases: what waits for a person, and their word on it; for those who administer the tenant."""

from dataclasses import asdict
from datetime import datetime
from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel

from landed.core.case import Ruling, Standing
from landed.core.errors import ProposalError
from landed.runtime.inbox import Inbox
from landed.server.asking import Asking, Here, Id, plain, whole
from landed.server.auth import Role
from landed.server.models import RulingBody, instant
from landed.server.plans import BODIES
from landed.server.problems import ProblemError, absent, documented

router = APIRouter(prefix="/v1/cases", tags=["cases"])


class CaseView(BaseModel):
    """A case, enough to decide from this alone; `may` are the rulings that can be given."""

    id: str
    why: str
    state: str
    says: str
    since: datetime
    session: str
    tool: str
    operation: str
    key: str
    known_until: datetime | None
    arguments: Any
    principal: str
    words: str
    plan_id: str
    retries: str
    undoes: str
    evidence: list[dict[str, Any]]
    may: list[Ruling]


@router.get("", responses=documented("unauthenticated", "forbidden"))
async def inbox(here: Asking) -> list[CaseView]:
    """Return the cases that wait, oldest first."""
    here.require(Role.ADMIN)
    return [_view(case) for case in await here.rt.inbox(tenant=here.who.tenant)]


@router.get("/{case:path}", responses=documented("unauthenticated", "forbidden", "absent"))
async def read(case: Id, here: Asking) -> CaseView:
    """Return a case, over or not."""
    here.require(Role.ADMIN)
    return _view(await _case(plain(case), here))


@router.post("/{case:path}/resolve", responses=documented(*BODIES, "forbidden", "state"))
async def resolve(case: Id, body: RulingBody, here: Asking) -> CaseView:
    """Say as a person how it is; it is written down under their name."""
    here.require(Role.ADMIN)
    held = await _case(plain(case), here)
    try:
        verb = here.rt.resolve(
            held.id, ruling=body.ruling, by=here.who.principal, note=body.note, made=body.made
        )
        await whole(verb)
    except ProposalError as error:
        raise ProblemError("state", str(error)) from None
    return _view(await _case(held.id, here))


async def _case(id: str, here: Here) -> Standing:
    try:
        return await Inbox(reader=here.rt.driver.reader, tenant=here.who.tenant).case(id)
    except ProposalError:
        raise absent() from None


def _view(case: Standing) -> CaseView:
    return CaseView(
        id=case.id,
        why=case.why,
        state=case.state,
        says=case.says,
        since=instant(case.since),
        session=case.session,
        tool=case.tool,
        operation=case.operation,
        key=case.key,
        known_until=instant(case.known_until) if case.known_until else None,
        arguments=case.arguments,
        principal=case.principal,
        words=case.words,
        plan_id=case.plan,
        retries=case.retries,
        undoes=case.undoes,
        evidence=[asdict(each) for each in case.evidence],
        may=list(case.may),
    )
