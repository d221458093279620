"""The ASGI app of the console: its routes, its templates, and what stands before them."""

import logging
import secrets
from collections.abc import Awaitable, Callable, Collection
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

from landed.agent.button import Buttons
from landed.console import shown
from landed.console.door import BODY_MAX, FORM_TYPES, Framed
from landed.console.pages import PAGES
from landed.console.pages.signing import cookie_of, to_sign_in
from landed.console.seal import SECRET_BYTES, Kept, Link, Seal
from landed.console.visit import ROOT, Console, Page, Visit, form_of, problem_page
from landed.core.errors import LandedError
from landed.runtime.runtime import Runtime
from landed.server.asking import Here
from landed.server.auth import Authenticate, Identity, Role
from landed.server.door import Door
from landed.server.problems import ProblemError, of_ours

log = logging.getLogger("landed")

HERE = Path(__file__).parent
OWNER = Identity(principal="", tenant="default", role=Role.ADMIN)
NOBODY = Identity(principal="")


def console_app(
    rt: Runtime,
    *,
    authenticate: Authenticate | None = None,
    owner: Identity = OWNER,
    link: Link | None = None,
    hosts: Collection[str] = (),
    secret: bytes = b"",
    language: str = "",
    buttons: Buttons | None = None,
) -> ASGIApp:
    """Return the console of an open runtime, as an ASGI app that answers below `/console`.

        app = beside(console_app(rt, authenticate=tokens), http_app(rt, authenticate=tokens))

    It runs on the event loop that the runtime was entered on. Who signs in with a token that
    `authenticate` knows is that person. Without `authenticate` nobody has one: the `link` lets its
    `owner` in, once; serve such a console on the loopback only. `hosts` are the names it may be
    called by (all, where there are none). Processes with one `secret` take each other's cookies;
    without one a restart signs everybody out. `language` is the runtime's, where none is given.
    With the `buttons` of the agents of this process (`landed.agent.button`) they can be stopped.
    """
    console = Console(
        rt=rt,
        authenticate=authenticate,
        owner=owner,
        link=link,
        seal=Seal(secret=secret or secrets.token_bytes(SECRET_BYTES)),
        language=language or rt.settings.language,
        templates=_templates(),
        pages=tuple(page for page in PAGES if page.nav),
        buttons=Buttons() if buttons is None else buttons,
    )
    app = _routed(console)

    def refuse(error: ProblemError) -> Response:
        return problem_page(console, error)

    door = Door(app=app, hosts=hosts, body_max=BODY_MAX, types=FORM_TYPES, answer=refuse)
    return Framed(app=door, refuse=refuse)


def _routed(console: Console) -> Starlette:
    routes = [_route(console, page) for page in PAGES]
    static = Mount(f"{ROOT}/static", StaticFiles(directory=HERE / "static"))
    homes = [Route("/", _home), Route(ROOT, _home)]
    return Starlette(routes=[*homes, static, *routes], exception_handlers=_turned(console))


def beside(console: ASGIApp, api: ASGIApp) -> ASGIApp:
    """Return one app of two: the console below `/console`, where `/` leads, and all else the API's.

    The API never looks at a cookie, and the console at no `Authorization`.
    """

    async def both(scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        if path in ("/", ROOT) or path.startswith(f"{ROOT}/"):
            await console(scope, receive, send)
        else:
            await api(scope, receive, send)

    return both


def _templates() -> Environment:
    templates = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        auto_reload=False,
        finalize=shown.visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    held: Any = templates  # Jinja2 does not say what its filters are.
    filters: dict[str, Any] = held.filters
    for name in ("amount", "moment", "machine_time", "plain", "rows"):
        filters[name] = getattr(shown, name)
    return templates


async def _home(request: Request) -> Response:
    return RedirectResponse(f"{ROOT}/waiting", status_code=303)


def _route(console: Console, page: Page) -> Route:
    async def answer(request: Request) -> Response:
        visit: Visit | None = None
        try:
            visit = await _visit(console, page, request)
            return await page.answer(visit)
        except ProblemError as error:
            return _refused(console, page, request, visit, error)
        except LandedError as error:
            found = of_ours(error)
            if found.kind in ("ours", "store"):
                log.warning("a page of the console could not be shown: %s", error)
            return _refused(console, page, request, visit, found)

    return Route(f"{ROOT}{page.path}", answer, methods=[page.method])


async def _visit(console: Console, page: Page, request: Request) -> Visit:
    """Return the request as one of somebody's; raises `ProblemError` for what is none."""
    form = await form_of(request)
    kept = console.seal.open(cookie_of(request), now=console.now)
    who = await console.known(kept)
    if page.open:
        here = Here(rt=console.rt, who=who or NOBODY, buttons=console.buttons)
        anonymous = Kept(token="", csrf="")
        return Visit(console=console, request=request, here=here, kept=kept or anonymous, form=form)
    if kept is None or who is None:
        raise ProblemError("unauthenticated")
    here = Here(rt=console.rt, who=who, buttons=console.buttons)
    visit = Visit(console=console, request=request, here=here, kept=kept, form=form)
    if page.method != "GET":
        visit.require_csrf()
    here.require(page.role)
    return visit


def _refused(
    console: Console, page: Page, request: Request, visit: Visit | None, error: ProblemError
) -> Response:
    if page.live:
        return Response(status_code=204)
    if error.kind == "unauthenticated" and page.method == "GET":
        return to_sign_in(console, request)
    return problem_page(console, error, None if page.open else visit)


_OF_STATUS = {404: "absent", 405: "no-such-method", 413: "too-large"}


def _turned(console: Console) -> dict[Any, Callable[[Request, Exception], Awaitable[Response]]]:
    async def http(request: Request, error: Any) -> Response:
        kind = _OF_STATUS.get(error.status_code, "malformed")
        return problem_page(console, ProblemError(kind))

    async def fault(request: Request, error: Exception) -> Response:
        return problem_page(console, ProblemError("ours"))

    return {404: http, 405: http, Exception: fault}
