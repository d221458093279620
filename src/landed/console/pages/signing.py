"""Signing in and out: a token is pasted once, or the start-up link is opened once."""

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from landed.console.seal import LIFETIME_S, TOKEN_MAX, Kept, new_csrf
from landed.console.visit import ROOT, Page, Visit
from landed.server.auth import Role
from landed.server.problems import ProblemError

SECURE = "__Host-landed"


def cookie_of(request: Request) -> str:
    """Return what a browser sent of a sign-in, "" for nothing."""
    return request.cookies.get(_name(request), "")


def sign_out(answer: Response) -> Response:
    """Have the browser forget the sign-in."""
    for name, path in ((SECURE, "/"), ("landed", ROOT)):
        secure = name == SECURE
        answer.delete_cookie(name, path=path, secure=secure, httponly=True, samesite="strict")
    return answer


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
    return _signed_in(visit, Kept(token=token, csrf=new_csrf()))


async def leave(visit: Visit) -> Response:
    """Sign out."""
    return sign_out(visit.go("/sign-in"))


def _form(visit: Visit, *, status: int = 200, wrong: str = "") -> Response:
    text = visit.console.render(
        "sign_in.html",
        signed_in=False,
        nav=(),
        page="sign-in",
        by_link=visit.console.authenticate is None,
        wrong=wrong,
    )
    return Response(text, status_code=status, media_type="text/html")


def _signed_in(visit: Visit, kept: Kept) -> Response:
    answer = RedirectResponse(f"{ROOT}/waiting", status_code=303)
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


def _name(request: Request) -> str:
    """Return the cookie's name: over https one that no other host can set.

    Over plain http, as on the loopback, a browser takes no `__Host-` and no `Secure`.
    """
    return SECURE if request.url.scheme == "https" else "landed"


PAGES = (
    Page(path="/sign-in", answer=form, open=True),
    Page(path="/sign-in", answer=take, method="POST", open=True),
    Page(path="/sign-out", answer=leave, method="POST"),
)
