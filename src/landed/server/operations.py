"""Operations: how one stands, and to find out now."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from landed.runtime.listing import listed_as
from landed.server.asking import Asking, Here, Id, plain, whole
from landed.server.idempotency import PreferHeader, patience_s
from landed.server.listed import (
    OperationPage,
    OperationsAsked,
    cursor_of,
    listing,
    operation_line,
    position,
)
from landed.server.models import Nothing, OperationView, operation_view
from landed.server.plans import LISTS
from landed.server.problems import documented

router = APIRouter(prefix="/v1/operations", tags=["operations"])


@router.get("", responses=documented(*LISTS))
async def list_operations(
    asked: Annotated[OperationsAsked, Query()], here: Asking
) -> OperationPage:
    """Return the caller's operations, all of the tenant's for who administers it, page by page.

    What is in front of a person or open is listed oldest first, the rest by what happened last.
    """
    of = listed_as(asked.state)
    lists = await listing(here, asked.owner)
    page = await lists.operations(asked.state, position(asked.after, of), limit=asked.limit)
    lines = [operation_line(line) for line in page.lines]
    return OperationPage(operations=lines, next=cursor_of(page, of))


@router.get("/{operation}", responses=documented("unauthenticated", "absent"))
async def read(operation: Id, here: Asking) -> OperationView:
    """Return an operation as it stands; nothing is sent."""
    return await _view(plain(operation), here)


@router.post(
    "/{operation}/resolve",
    responses=documented("malformed", "unknown-field", "unauthenticated", "absent", "invalid"),
)
async def resolve(
    operation: Id, body: Nothing, here: Asking, response: Response, prefer: PreferHeader = ""
) -> OperationView:
    """Put the next question about an operation in doubt now; changes nothing but what is known."""
    held = await here.operation(plain(operation))
    await whole(here.rt.resolve(held.id, patience_s=patience_s(prefer)))
    return await _view(held.id, here)


async def _view(operation: str, here: Here) -> OperationView:
    held = await here.operation(operation)
    return operation_view(held, here.rt.driver.reader.value(held))
