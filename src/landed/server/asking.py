"""Who asks what of which runtime: what every route begins with, and what they all answer with."""

import asyncio
import re
from collections.abc import Coroutine, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Annotated, TypeVar

from fastapi import Depends, Path, Request, Response
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from landed.agent.button import Buttons, Pressed
from landed.core.changes import Kind
from landed.core.errors import ProposalError
from landed.core.key import Ask
from landed.core.operation import Operation
from landed.core.plan import Plan, PlanState
from landed.core.session import Input, input_of
from landed.core.value import PlanValue
from landed.runtime.listing import principal_of
from landed.runtime.permissions import is_in_charge
from landed.runtime.runtime import Runtime
from landed.server.auth import Authenticate, Identity, Role
from landed.server.idempotency import etag_of
from landed.server.models import NAME_MAX, PlanView, instant, moved, plan_view
from landed.server.problems import RETRY_S, ProblemError, absent

T = TypeVar("T")

TOKEN_MAX = 4096  # characters of a bearer token

UNDER_WAY = frozenset({PlanState.RUNNING, PlanState.STOPPING, PlanState.UNDOING})

_PRINTABLE = re.compile(rf"[\x21-\x7e]{{1,{NAME_MAX}}}")

bearer = HTTPBearer(auto_error=False, description="Stands for a principal of a tenant, in a role.")


STREAMS_MAX = 100  # that are open at once, of one app


@dataclass(slots=True, eq=False)
class Streams:
    """How many streams of events are open, and how many may be."""

    most: int = STREAMS_MAX
    open: int = 0

    @contextmanager
    def room(self) -> Generator[None]:
        """Hold a place for as long as the block runs; raises `ProblemError` where there is none."""
        if self.open >= self.most:
            said = f"{self.most} streams are open here; read the plan instead, or come again"
            raise ProblemError("busy", said, headers={"Retry-After": str(RETRY_S)})
        self.open += 1
        try:
            yield
        finally:
            self.open -= 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """What an app serves; without `authenticate` everybody is `nobody`.

    `buttons` are those of the conversations that agents of this process lead.
    """

    rt: Runtime
    authenticate: Authenticate | None
    nobody: Identity
    streams: Streams
    buttons: Buttons


@dataclass(frozen=True, slots=True, kw_only=True)
class Here:
    """One caller at one runtime. What is not theirs is absent, whatever they ask.

    One who is not `known` may be anybody who can reach this machine: no two calls are taken to be
    of one conversation unless they name it.
    """

    rt: Runtime
    who: Identity
    known: bool = True
    buttons: Buttons = field(default_factory=Buttons)

    async def plan(self, id: str) -> PlanValue:
        """Return a plan of theirs, or one that they administer; raises `ProblemError`."""
        return await self.rt.plan((await self.record(id)).id, tenant=self.who.tenant)

    async def record(self, id: str) -> Plan:
        """Return the record of such a plan, and nothing around it; raises `ProblemError`."""
        try:
            held = await self.rt.driver.reader.plan(id, tenant=self.who.tenant)
        except ProposalError:
            raise absent() from None
        if held.principal in ("", self.who.principal) or await self.administers():
            return held
        raise absent()

    async def operation(self, id: str) -> Operation:
        """Return an operation of theirs, or one that they administer; raises `ProblemError`."""
        try:
            held = await self.rt.driver.reader.operation(id)
        except ProposalError:
            raise absent() from None
        theirs = held.ask.principal in ("", self.who.principal)
        if held.tenant == self.who.tenant and (theirs or await self.administers()):
            return held
        raise absent()

    async def heard(self, id: str, session: str | None = None) -> Input:
        """Return an input of theirs; raises `ProblemError`."""
        for record in await self.rt.driver.store.load(id):
            if record.kind is not Kind.INPUT or record.tenant != self.who.tenant:
                continue
            heard = input_of(record)
            if heard.principal == self.who.principal and session in (None, heard.session):
                return heard
        raise absent()

    async def session(self, named: str | None) -> str:
        """Return a conversation of theirs, or one that nobody has begun; raises `ProblemError`.

        It is whose the first record in it is. Where none is named it is called as they are.
        """
        session = named or self.who.principal or "main"
        store = self.rt.driver.store
        first = await store.session_records(tenant=self.who.tenant, session=session, limit=1)
        if any(principal_of(record) not in ("", self.who.principal) for record in first):
            raise absent()
        return session

    async def conversation(self, named: str) -> str:
        """Return one that there is, and is theirs or administered by them; or `ProblemError`."""
        first = await self.rt.driver.store.session_records(
            tenant=self.who.tenant, session=named, limit=1
        )
        if not first:
            raise absent()
        theirs = principal_of(first[0]) in ("", self.who.principal)
        if not theirs and not await self.administers():
            raise absent()
        return named

    async def stop(self, session: str, *, why: str) -> Pressed:
        """Press the stop button of a conversation, as a person does; raises `ProblemError`.

        Where no agent of this process leads it, nothing is stopped.
        """
        own = await self.conversation(session)
        self.require(Role.PERSON)
        return self.buttons.press(
            tenant=self.who.tenant, session=own, by=self.who.principal, reason=why
        )

    async def ask(self, *, session: str | None, input: str | None, call_id: str = "") -> Ask:
        """Return who wants a call: they, in a conversation, about what they said there."""
        if input is not None:
            return (await self.heard(input, session)).ask(call_id)
        if session is None and not self.known:
            session = self._apart(call_id)
        return Ask(
            tenant=self.who.tenant,
            principal=self.who.principal,
            session=await self.session(session),
            call_id=call_id,
        )

    def _apart(self, call_id: str) -> str:
        """Return a conversation of one call alone; of one with a key, the same each time."""
        if call_id:
            return f"http-{sha256(call_id.encode()).hexdigest()[:26]}"
        return self.rt.ids.new("http")

    def require(self, role: Role) -> None:
        """Raise `ProblemError` for a caller who may be told that this is there, but not do it."""
        if not self.who.may_be(role):
            raise ProblemError("forbidden", f"this takes a token of the role {role}")

    async def administers(self) -> bool:
        """Whether they may see what is not theirs: by their role, or as the application says."""
        if self.who.role is Role.ADMIN:
            return True
        permissions = self.rt.planner.foreseer.permissions
        return await is_in_charge(permissions, self.who.principal, tenant=self.who.tenant)


async def asking(
    request: Request,
    given: Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)],
) -> Here:
    """Return who calls; raises `ProblemError` for whoever that is not known of."""
    served: Served = request.app.state.served
    if served.authenticate is None:
        return Here(rt=served.rt, who=served.nobody, known=False, buttons=served.buttons)
    token = given.credentials if given is not None else ""
    who = None
    if token.isascii() and 0 < len(token) <= TOKEN_MAX:
        who = await served.authenticate(token)
    if who is None:
        raise ProblemError("unauthenticated", headers={"WWW-Authenticate": "Bearer"})
    return Here(rt=served.rt, who=who, buttons=served.buttons)


Asking = Annotated[Here, Depends(asking)]
Id = Annotated[str, Path(max_length=NAME_MAX)]


def plain(id: str) -> str:
    """Return an id that may be one of ours; raises `ProblemError`, as for one that there is not."""
    if _PRINTABLE.fullmatch(id) is None:
        raise absent()
    return id


async def whole(verb: Coroutine[None, None, T]) -> T:
    """Wait for a verb that goes on whether or not anybody waits: a caller may hang up."""
    return await asyncio.shield(asyncio.ensure_future(verb))


def shown(value: PlanValue, response: Response) -> PlanView:
    """Return a plan as it stands, with the headers that go with that."""
    response.headers["Cache-Control"] = "no-store"
    response.headers["ETag"] = etag_of(value)
    if value.replayed:
        response.headers["Idempotent-Replayed"] = "true"
    if value.state in UNDER_WAY:
        response.status_code = 202
        response.headers["Location"] = f"/v1/plans/{value.plan}"
        response.headers["Retry-After"] = str(RETRY_S)
    return plan_view(value)


def carried_out(value: PlanValue, response: Response) -> PlanView:
    """Return what a commit came to; raises `ProblemError` where the world had moved before it."""
    if value.changed and not any(step.operation for step in value.steps):
        raise ProblemError(
            "changed",
            "nothing was done: preview it again, and look at what it says now",
            changed=[each.model_dump() for each in moved(value)],
            plan_id=value.plan,
            plan_created_at=instant(value.made_at).isoformat(),
            again=value.again,
        )
    return shown(value, response)


def still_at_work(value: PlanValue) -> ProblemError:
    """Return what is said to a key whose first request is still being carried out."""
    headers = {"Retry-After": str(RETRY_S), "Location": f"/v1/plans/{value.plan}"}
    return ProblemError("in-progress", headers=headers, plan_id=value.plan)
