"""The console's door: what a browser is told of each page, and from where a form may come.

Around the door of the API (`server.door`), which bounds a body and turns away hosts and origins
that are not ours. A form has to come from a page of this very place: browsers say so in
`Sec-Fetch-Site`, or at least in `Origin`. Nothing here is meant to be framed, read or called by
another site, so no answer allows it.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from landed.server.problems import ProblemError

BODY_MAX = 64_000  # bytes of a form
FORM_TYPES = ("application/x-www-form-urlencoded",)

CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
    " form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
# With `no-referrer` a browser would send `Origin: null` with our own forms; this tells others no
# more than that does.
HEADERS = (
    ("Content-Security-Policy", CONTENT_POLICY),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "same-origin"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=()"),
)
OWN = frozenset({"same-origin", "none"})

Refuse = Callable[[ProblemError], Response]


@dataclass(slots=True, eq=False)
class Framed:
    """Puts the headers on every answer, and lets a form in only from a page of this place."""

    app: ASGIApp
    refuse: Refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, or answer with why not; either way with the headers."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        framed = _framing(send)
        if scope["method"] not in ("GET", "HEAD") and not is_from_here(Headers(scope=scope)):
            refused = self.refuse(ProblemError("elsewhere"))
            await refused(scope, receive, framed)
            return
        await self.app(scope, receive, framed)


def is_from_here(headers: Headers) -> bool:
    """Whether a form was sent by a page of this place, as far as the browser says."""
    origin, site = headers.get("origin"), headers.get("sec-fetch-site")
    if site is not None and site not in OWN:
        return False
    if origin is None:
        return site is not None
    try:
        return urlsplit(origin).netloc.lower() == headers.get("host", "").lower() != ""
    except ValueError:
        return False


def _framing(send: Send) -> Callable[[Message], Awaitable[None]]:
    async def framed(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS:
                headers[name] = value
            headers.setdefault("Cache-Control", "no-store")
        await send(message)

    return framed
