"""Tools: what there is, what a call would do, and the commit of what was previewed."""

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Response

from landed.core.canonical import Json
from landed.core.plan import Wanted
from landed.core.tool import Tool
from landed.server.asking import Asking, Here, Id, plain, whole
from landed.server.idempotency import KeyHeader, PreferHeader
from landed.server.models import CommitBody, DryRunBody, PlanView, ToolView
from landed.server.plans import COMMITS, PROPOSALS, committed, previewed
from landed.server.problems import absent, documented

router = APIRouter(prefix="/v1/tools", tags=["tools"])

FROZEN = (
    "From a dry run until its commit, what the plan was computed from is to stay as it is: reading"
    " is free; after a write to it, or when told `changed`, throw the plan token away and dry-run"
    " again."
)


@router.get("", responses=documented("unauthenticated"))
async def list_tools(here: Asking) -> list[ToolView]:
    """Return every tool, by name."""
    return [_view(tool) for _, tool in sorted(here.rt.driver.tools.items())]


@router.get("/{name}", responses=documented("unauthenticated", "absent"))
async def read_tool(name: Id, here: Asking) -> ToolView:
    """Return one tool."""
    return _view(_tool(name, here))


@router.post(
    "/{name}/dry-run",
    description=f"Has no effect, and needs no key. {FROZEN}",
    responses=documented(*PROPOSALS),
)
async def dry_run(name: Id, body: DryRunBody, here: Asking, response: Response) -> PlanView:
    """Say what a call would do, in real figures, and keep it as a plan that its token commits."""
    wanted = Wanted(tool=_tool(name, here).name, arguments=body.arguments)
    ask = await here.ask(session=body.session, input=None)
    return await previewed(here, [wanted], ask, response)


@router.post("/{name}/commit", description=FROZEN, responses=COMMITS)
async def commit(
    name: Id,
    body: CommitBody,
    key: KeyHeader,
    here: Asking,
    response: Response,
    prefer: PreferHeader = "",
) -> PlanView:
    """Carry out what a dry run of this tool showed: exactly that, once."""
    value = await here.plan(plain(body.plan_id))
    if [step.tool for step in value.steps] != [name]:
        raise absent()
    return await whole(committed(here, body, key=key, prefer=prefer, response=response))


def _tool(name: str, here: Here) -> Tool:
    tool = here.rt.driver.tools.get(name)
    if tool is None:
        raise absent()
    return tool


def _view(tool: Tool) -> ToolView:
    schema: Mapping[str, Json] = tool.schema
    plain_schema: dict[str, Any] = dict(schema)
    return ToolView(
        name=tool.name,
        effect=tool.contract.effect,
        schema_=plain_schema,
        frozen=FROZEN,
    )
