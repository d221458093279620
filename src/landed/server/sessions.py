"""Sessions: what was said in one, what a model is shown of it, what the person is told."""

from datetime import datetime

from fastapi import APIRouter
from pydantic import BaseModel

from landed.agent.button import Pressed
from landed.core.errors import ProposalError
from landed.core.history import View
from landed.server.asking import Asking, Here, Id, plain, whole
from landed.server.auth import Role
from landed.server.idempotency import KeyHeader, call_id, key_of
from landed.server.models import InputBody, WhyBody, instant
from landed.server.plans import BODIES
from landed.server.problems import absent, documented

router = APIRouter(prefix="/v1/sessions", tags=["sessions"])


class InputView(BaseModel):
    """An input, durable: its id, and the turn that it opened."""

    input: str
    turn: str
    session: str
    received_at: datetime


class ItemView(BaseModel):
    """One line of a history."""

    role: str
    text: str
    happened_at: datetime
    recorded_at: datetime
    record: str


class DroppedView(BaseModel):
    """The plans of a turn that were dropped before they began."""

    turn: str
    plans: list[str]


class ReportView(BaseModel):
    """What the person is told of a turn."""

    turn: str
    text: str
    operations: list[str]
    questions: list[str]


class StopView(BaseModel):
    """What pressing the stop button of a conversation came to."""

    session: str
    stop: Pressed


@router.post("/{session}/inputs", responses=documented(*BODIES, "key-missing", "key-malformed"))
async def receive(session: Id, body: InputBody, key: KeyHeader, here: Asking) -> InputView:
    """Make what somebody said durable, and open a turn for it; the same key again is the same.

    An agent that passes on what a user typed does so with the person's token: words can be a yes.
    """
    if body.origin == "user":
        here.require(Role.PERSON)
    heard = await whole(
        here.rt.receive(
            body.text,
            session=await here.session(plain(session)),
            principal=here.who.principal,
            tenant=here.who.tenant,
            delivery=call_id(here.who.principal, "inputs", key_of(key)),
            origin=body.origin,
        )
    )
    return InputView(
        input=heard.id, turn=heard.turn, session=heard.session, received_at=instant(heard.at)
    )


@router.get("/{session}/history", responses=documented("unauthenticated", "absent", "invalid"))
async def history(session: Id, here: Asking, view: View = View.CACHE) -> list[ItemView]:
    """Return what a model is shown of a session: as it was shown, or as it happened."""
    own = await here.session(plain(session))
    items = await here.rt.history(own, tenant=here.who.tenant, view=view)
    return [
        ItemView(
            role=item.role,
            text=item.text,
            happened_at=instant(item.happened_at),
            recorded_at=instant(item.recorded_at),
            record=item.record,
        )
        for item in items
    ]


@router.post("/{session}/stop", responses=documented(*BODIES))
async def stop(session: Id, body: WhyBody, here: Asking) -> StopView:
    """Press the stop button of a conversation's agent, as a person: `asked`, then `forced`.

    The first time it is asked, has its grace, and is cancelled then; pressed again, it does not
    wait. `idle` says that no agent of this server is at work there. Each time it is pressed counts.
    """
    pressed = await here.stop(plain(session), why=body.why)
    return StopView(session=session, stop=pressed)


@router.post("/{session}/turns/{turn}/abandon", responses=documented(*BODIES))
async def abandon(session: Id, turn: Id, body: WhyBody, here: Asking) -> DroppedView:
    """End a task: drop every plan of its turn that has not begun; their tokens are good no more."""
    own = await here.session(plain(session))
    await _require_there(turn, own, here)
    try:
        verb = here.rt.abandon_turn(
            turn,
            principal=here.who.principal,
            tenant=here.who.tenant,
            **({"why": body.why} if body.why else {}),
        )
        return DroppedView(turn=turn, plans=list(await whole(verb)))
    except ProposalError:
        raise absent() from None


@router.get("/{session}/turns/{turn}/report", responses=documented("unauthenticated", "absent"))
async def report(session: Id, turn: Id, here: Asking) -> ReportView:
    """Return what the person is told of a turn, and keep that it was told."""
    own = await here.session(plain(session))
    await _require_there(turn, own, here)
    try:
        told = await whole(here.rt.report(turn))
    except ProposalError:
        raise absent() from None
    return ReportView(
        turn=told.turn,
        text=told.text,
        operations=list(told.operations),
        questions=list(told.questions),
    )


async def _require_there(turn: str, session: str, here: Here) -> None:
    """Raise `ProblemError` for a turn of another conversation."""
    for record in await here.rt.driver.store.load(plain(turn)):
        if (record.tenant, record.session) != (here.who.tenant, session):
            raise absent()
