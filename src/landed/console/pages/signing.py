"""Signing in and out: a token is pasted once, or the start-up link is opened once."""

import re
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from landed.console.seal import LIFETIME_S, TOKEN_MAX, Kept, new_csrf
from landed.console.visit import ROOT, Console, Page, Visit
from landed.server.auth import Role
from landed.server.problems import ProblemError

SECURE = "__Host-landed"

_PATH = re.compile(r"(?:/[A-Za-z0-9%._~-]{1,200}){1,4}")


def cookie_of(request: Request) -> str:
    """Return what a browser sent of a sign-in, "" for nothing."""
    return request.cookies.get(_name(request), "")


def sign_out(request: Request, answer: Response) -> Response:
    """Have the browser forget the sign-in."""
    name = _name(request)
    answer.delete_cookie(
        name,
        path="/" if name == SECURE else ROOT,
        secure=name == SECURE,
        httponly=True,
        samesite="strict",
    )
    return answer


def to_sign_in(console: Console, request: Request) -> Response:
    """Return where somebody goes who is not signed in: to sign in, and then to where they were.

    Who follows a link on another site comes without the cookie, which is `SameSite=Strict`: the
    page is asked for once more by itself, and then comes with it.
    """
    path = request.url.path.removeprefix(ROOT)
    if request.headers.get("sec-fetch-site") == "cross-site":
        text = console.render("again.html", signed_in=False, nav=(), page="", path=path)
        return HTMLResponse(text)
    there = f"?{urlencode({'next': path})}" if _is_ours(path) else ""
    return sign_out(request, RedirectResponse(f"{ROOT}/sign-in{there}", status_code=303))


async def form(visit: Visit) -> Response:
    """Show the form for a token, or let in whoever comes with the start-up link."""
    key, link = visit.asked("key"), visit.console.link
    if key:
        if visit.console.authenticate is None and link is not None and link.take(key):
            return _signed_in(visit, Kept(token="", csrf=new_csrf(), owner=True))
        return _form(visit, status=401, wrong="link")
    return _form(visit)


async def take(visit: Visit) -> Response:
    """Let in whoever pastes a token of a person; an agent's decides nothing here."""
    authenticate = visit.console.authenticate
    token = visit.form.get("token", "").strip()
    who = None
    if authenticate is not None and token.isascii() and 0 < len(token) <= TOKEN_MAX:
        who = await authenticate(token)
    if who is None:
        return _form(visit, status=401, wrong="token")
    if not who.may_be(Role.PERSON):
        raise ProblemError("forbidden")
    there = visit.form.get("next", "")
    return _signed_in(visit, Kept(token=token, csrf=new_csrf()), there)


async def leave(visit: Visit) -> Response:
    """Sign out."""
    return sign_out(visit.request, visit.go("/sign-in"))


def _form(visit: Visit, *, status: int = 200, wrong: str = "") -> Response:
    text = visit.console.render(
        "sign_in.html",
        signed_in=False,
        nav=(),
        page="sign-in",
        by_link=visit.console.authenticate is None,
        wrong=wrong,
        next=visit.form.get("next") or visit.asked("next"),
    )
    return HTMLResponse(text, status_code=status)


def _signed_in(visit: Visit, kept: Kept, there: str = "") -> Response:
    path = there if _is_ours(there) else "/waiting"
    answer = RedirectResponse(f"{ROOT}{path}", status_code=303)
    name = _name(visit.request)
    answer.set_cookie(
        name,
        visit.console.seal.shut(kept, now=visit.console.now),
        max_age=LIFETIME_S,
        path="/" if name == SECURE else ROOT,
        secure=name == SECURE,
        httponly=True,
        samesite="strict",
    )
    return answer


def _is_ours(path: str) -> bool:
    """Whether it is a path below the console, and leads nowhere else."""
    return _PATH.fullmatch(path) is not None and ".." not in path


def _name(request: Request) -> str:
    """Return the cookie's name: over https one that no other host can set.

    Over plain http, as on the loopback, a browser takes no `__Host-` and no `Secure`. There it
    sends a cookie to every port of a host, so each has its own name.
    """
    if request.url.scheme == "https":
        return SECURE
    return f"landed-{request.url.port}" if request.url.port else "landed"


PAGES = (
    Page(path="/sign-in", answer=form, open=True),
    Page(path="/sign-in", answer=take, method="POST", open=True),
    Page(path="/sign-out", answer=leave, method="POST"),
)
