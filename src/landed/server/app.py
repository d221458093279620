"""The ASGI app over one runtime: the routes, the door before them, and what errors look like."""

import logging
from collections.abc import Collection
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp

from landed import __version__
from landed.agent.button import Buttons
from landed.core.errors import LandedError
from landed.runtime.runtime import Runtime
from landed.server import audit, cases, decisions, operations, plans, sessions, tools
from landed.server.asking import STREAMS_MAX, Served, Streams
from landed.server.auth import Authenticate, Identity
from landed.server.door import BODY_MAX, BODY_S, Door
from landed.server.problems import (
    MEDIA_TYPE,
    Problem,
    ProblemError,
    of_ours,
    of_validation,
    response_of,
)

log = logging.getLogger("landed")

NOBODY = Identity(principal="", tenant="default")

_ANY = {
    "description": "What went wrong.",
    "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
}
_OF_STATUS = {404: "absent", 405: "no-such-method", 413: "too-large", 415: "not-json"}


def http_app(
    rt: Runtime,
    *,
    authenticate: Authenticate | None = None,
    nobody: Identity = NOBODY,
    hosts: Collection[str] = (),
    body_max: int = BODY_MAX,
    body_s: float = BODY_S,
    streams_max: int = STREAMS_MAX,
    buttons: Buttons | None = None,
) -> ASGIApp:
    """Return the HTTP API of an open runtime, as an ASGI app.

        async with landed.open("sqlite:///agent.db", tools=[…]) as rt:
            await uvicorn.Server(uvicorn.Config(http_app(rt, authenticate=Tokens(file)))).serve()

    It runs on the event loop that the runtime was entered on. Without `authenticate` everybody is
    `nobody`, an agent that can agree to nothing; serve such a one on the loopback only. `hosts` are
    the names it may be called by (all, where there are none); a body has at most `body_max` bytes
    and `body_s` seconds; `streams_max` streams of events are open at once. `buttons` stop the
    agents of this process (`landed.agent.button`).
    """
    app = FastAPI(
        title="landed",
        version=__version__,
        summary="Agent actions that land once, and are told truthfully.",
        docs_url=None,
        redoc_url=None,
        responses={"default": {**_ANY, "model": Problem}},
    )
    app.state.served = Served(
        rt=rt,
        authenticate=authenticate,
        nobody=nobody,
        streams=Streams(streams_max),
        buttons=Buttons() if buttons is None else buttons,
    )
    _route(app)
    return Door(app=app, hosts=hosts, body_max=body_max, body_s=body_s)


def _route(app: FastAPI) -> None:
    for part in (tools, plans, decisions, operations, sessions, cases, audit):
        app.include_router(part.router)
    app.add_exception_handler(ProblemError, _problem)
    app.add_exception_handler(plans.NothingMoreError, _nothing_more)
    app.add_exception_handler(LandedError, _ours)
    app.add_exception_handler(RequestValidationError, _validation)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _fault)


async def _problem(request: Request, error: Any) -> JSONResponse:
    return response_of(error)


async def _nothing_more(request: Request, error: Any) -> Response:
    return Response(status_code=204)  # Whoever reads events takes that for "do not come again".


async def _ours(request: Request, error: Any) -> JSONResponse:
    found = of_ours(error)
    if found.kind in ("ours", "store"):
        log.warning("a request was not carried out: %s", error)
    return response_of(found)


async def _validation(request: Request, error: Any) -> JSONResponse:
    return response_of(of_validation(error.errors()))


async def _http(request: Request, error: Any) -> JSONResponse:
    kind = _OF_STATUS.get(error.status_code, "malformed")
    return response_of(ProblemError(kind, headers=error.headers))


async def _fault(request: Request, error: Any) -> JSONResponse:
    return response_of(ProblemError("ours", "it was written to the log"))
