"""Lists over HTTP, page by page: a cursor is a position in one list, and good for that alone."""

import re
from collections.abc import Set
from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from landed.core.operation import Operation, State
from landed.core.plan import Plan, PlanState
from landed.core.store import Selection
from landed.runtime.listing import LINES_MAX, Line, Lines, Listing
from landed.server.asking import Here
from landed.server.models import NAME_MAX, instant
from landed.server.problems import ProblemError

LINES = 50  # of a page, where nothing is said

_CURSOR = re.compile(r"(waiting|open|recent)-([1-9][0-9]{0,17})", re.ASCII)


class Asked(BaseModel):
    """Which lines: whose, from where on, and at most how many."""

    model_config = ConfigDict(extra="forbid")

    owner: Annotated[str, StringConstraints(max_length=NAME_MAX)] | None = None
    after: Annotated[str, StringConstraints(max_length=40)] = ""
    limit: Annotated[int, Field(ge=1, le=LINES_MAX)] = LINES


class PlansAsked(Asked):
    """Which plans: those in a state, or all."""

    state: PlanState | None = None


class OperationsAsked(Asked):
    """Which operations: those in a state, or all, those of plans too."""

    state: State | None = None


class PlanLine(BaseModel):
    """A plan in a list; `what` is what it is about, `text` how it stands, for the person."""

    plan_id: str
    state: PlanState
    what: str
    text: str
    session: str
    principal: str
    created_at: datetime
    done: int
    of: int
    operations: list[str]
    supersedes: str
    undo_until: datetime | None


class OperationLine(BaseModel):
    """An operation in a list."""

    operation: str
    state: State
    what: str
    text: str
    tool: str
    plan_id: str
    session: str
    principal: str
    created_at: datetime


class PlanPage(BaseModel):
    """Some plans; `next` is what `after` is for the next page, null at the end.

    A page may be short, or empty, and not the last.
    """

    plans: list[PlanLine]
    next: str | None


class OperationPage(BaseModel):
    """Some operations; `next` as in a page of plans."""

    operations: list[OperationLine]
    next: str | None


async def listing(here: Here, owner: str | None) -> Listing:
    """Return the lists of what a caller may see, or of what is `owner`'s in that."""
    theirs: Set[str] | None = None
    if not await here.administers():
        theirs = {"", here.who.principal}
    if owner is not None:
        theirs = {owner} if theirs is None else theirs & {owner}
    return Listing(
        reader=here.rt.driver.reader,
        tenant=here.who.tenant,
        now=here.rt.driver.clock.now(),
        owners=theirs,
        language=here.rt.settings.language,
    )


def position(cursor: str, of: Selection) -> int:
    """Return where a page begins; raises `ProblemError` for what is no cursor of that list."""
    if not cursor:
        return 0
    found = _CURSOR.fullmatch(cursor)
    if found is None or found[1] != of:
        raise ProblemError("cursor", "take `next` of the page before, of the same list")
    return int(found[2])


def cursor_of(lines: Lines, of: Selection) -> str | None:
    """Return the cursor of the page after this one, None at the end."""
    return None if lines.next is None else f"{of}-{lines.next}"


def plan_line(line: Line) -> PlanLine:
    """Return a plan's line as it is given."""
    plan = line.subject
    assert isinstance(plan, Plan)
    return PlanLine(
        plan_id=plan.id,
        state=plan.state,
        what=line.what,
        text=line.text,
        session=plan.session,
        principal=plan.principal,
        created_at=instant(plan.made_at),
        done=plan.done,
        of=len(plan.steps),
        operations=[each.id for each in line.operations],
        supersedes=plan.supersedes,
        undo_until=None if line.undo_by is None else instant(line.undo_by),
    )


def operation_line(line: Line) -> OperationLine:
    """Return an operation's line as it is given."""
    held = line.subject
    assert isinstance(held, Operation)
    return OperationLine(
        operation=held.id,
        state=held.state,
        what=line.what,
        text=line.text,
        tool=held.tool,
        plan_id=held.plan,
        session=held.session,
        principal=held.ask.principal,
        created_at=instant(held.made_at),
    )
