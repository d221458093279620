"""One request to the console: who it is, what they sent, and how they are answered.

A page is a function of a `Visit`. It reads through `visit.here`, so that what is not theirs is
absent, and answers with `visit.show(template)` or `visit.go(path)`.
"""

import asyncio
import hmac
import logging
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from jinja2 import Environment
from starlette.convertors import Convertor, register_url_convertor
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from landed.agent.button import Buttons
from landed.console.seal import Kept, Link, Seal
from landed.console.trials import Trials
from landed.console.words import WORDS, say
from landed.runtime.runtime import Runtime
from landed.server.asking import Here
from landed.server.auth import Authenticate, Identity, Role
from landed.server.problems import KINDS, ProblemError

log = logging.getLogger("landed")

T = TypeVar("T")

ROOT = "/console"
FIELDS_MAX = 50


class Whole(Convertor[str]):
    """What is left of a path, whatever it is: what a service calls something may hold anything."""

    regex = "(?s:.+)"

    def convert(self, value: str) -> str:
        """Return it as it is."""
        return value

    def to_string(self, value: str) -> str:
        """Return it as it is."""
        return value


register_url_convertor("whole", Whole())


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page or a form's goal: where it is, what answers, and who may be there.

    `path` is below `/console`. With `nav`, a key of the words, it stands in the navigation. An
    `open` one needs no sign-in, and no CSRF value. A `live` one is a stream for a page that is
    there already: whom it is not for gets nothing.
    """

    path: str
    answer: "Callable[[Visit], Awaitable[Response]]"
    method: str = "GET"
    role: Role = Role.PERSON
    nav: str = ""
    open: bool = False
    live: bool = False


@dataclass(slots=True, eq=False)
class Streams:
    """How many live streams are open, of each person: each has a bound."""

    each_max: int = 8
    all_max: int = 200
    of: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])

    def has_room(self, who: Identity) -> bool:
        """Whether one more may be opened."""
        named = (who.tenant, who.principal)
        return self.of.get(named, 0) < self.each_max and sum(self.of.values()) < self.all_max

    @contextmanager
    def one_of(self, who: Identity) -> Generator[None]:
        """Count one more for as long as the block runs."""
        named = (who.tenant, who.principal)
        self.of[named] = self.of.get(named, 0) + 1
        try:
            yield
        finally:
            self.of[named] -= 1
            if not self.of[named]:
                del self.of[named]


@dataclass(frozen=True, slots=True, kw_only=True)
class Console:
    """What a console serves; `owner` is who the start-up `link` lets in, where nobody has a token.

    `pages` are those in the navigation, `buttons` those of the agents of this process.
    """

    rt: Runtime
    authenticate: Authenticate | None
    owner: Identity
    link: Link | None
    seal: Seal
    language: str
    templates: Environment
    pages: tuple[Page, ...]
    buttons: Buttons
    streams: Streams = field(default_factory=Streams)
    trials: Trials = field(default_factory=Trials)
    checking: asyncio.Lock = field(default_factory=asyncio.Lock)
    going_on: "set[asyncio.Task[Any]]" = field(default_factory=set["asyncio.Task[Any]"])

    async def carried(self, verb: Coroutine[Any, Any, T], *, patience_s: float) -> T | None:
        """Return what a verb comes to, None where it is not over within `patience_s`.

        It goes on whether or not anybody waits. Raises what it raises within that time.
        """
        carrying = asyncio.ensure_future(verb)
        self.going_on.add(carrying)
        carrying.add_done_callback(self._over)
        await asyncio.wait({carrying}, timeout=patience_s)
        return carrying.result() if carrying.done() else None

    def _over(self, carried: "asyncio.Task[Any]") -> None:
        self.going_on.discard(carried)
        if not carried.cancelled() and (error := carried.exception()) is not None:
            log.info("what was pressed came to an error: %s", error)

    @property
    def now(self) -> float:
        """The runtime's own time (UTC seconds)."""
        return self.rt.driver.clock.now()

    async def known(self, kept: Kept | None) -> Identity | None:
        """Return who a cookie stands for today, None for nobody (any more)."""
        if kept is None:
            return None
        if self.authenticate is None:
            return self.owner if kept.owner else None
        return None if kept.owner else await self.authenticate(kept.token)

    def render(self, template: str, **values: Any) -> str:
        """Return a template's text, in the language of the console."""

        def said(key: str, **fields: object) -> str:
            return say(self.language, key, **fields)

        return self.templates.get_template(template).render(
            say=said, language=self.language, root=ROOT, now=self.now, **values
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """A request by somebody who is signed in; `form` is what they sent."""

    console: Console
    request: Request
    here: Here
    kept: Kept
    form: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def rt(self) -> Runtime:
        """The runtime that is served."""
        return self.console.rt

    @property
    def who(self) -> Identity:
        """Who it is."""
        return self.here.who

    def asked(self, name: str) -> str:
        """Return a value of the query, "" for none."""
        return self.request.query_params.get(name, "")

    def named(self, name: str) -> str:
        """Return a part of the path."""
        return str(self.request.path_params[name])

    def say(self, key: str, **fields: object) -> str:
        """Return a sentence, in the language of the console."""
        return say(self.console.language, key, **fields)

    def part(self, template: str, **values: Any) -> str:
        """Return a template's text with what every page knows."""
        who = self.who
        pages = [page for page in self.console.pages if who.may_be(page.role)]
        return self.console.render(
            template, who=who, csrf=self.kept.csrf, nav=pages, signed_in=True, **values
        )

    def show(self, template: str, *, status: int = 200, **values: Any) -> Response:
        """Answer with a page."""
        return HTMLResponse(self.part(template, **values), status_code=status)

    def go(self, path: str) -> Response:
        """Send the browser to another page, which it gets."""
        return RedirectResponse(f"{ROOT}{path}", status_code=303)

    def require_csrf(self) -> None:
        """Raise `ProblemError` for a form that is not one of this sign-in's."""
        given = self.form.get("csrf", "")
        if not hmac.compare_digest(given.encode(), self.kept.csrf.encode()):
            raise ProblemError("elsewhere")


async def form_of(request: Request) -> Mapping[str, str]:
    """Return the fields of a form; raises `ProblemError` for one that is none."""
    if request.method != "POST":
        return {}
    try:
        text = (await request.body()).decode("utf-8")
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=FIELDS_MAX, errors="strict")
    except ValueError:
        raise ProblemError("malformed") from None
    return dict(pairs)


def problem_page(console: Console, error: ProblemError, visit: Visit | None = None) -> Response:
    """Return a problem as a page: what is wrong, and what to do next."""
    status = KINDS[error.kind][0]
    kind = error.kind if f"problem.{error.kind}" in WORDS else "invalid"
    values = {"kind": kind, "page": "", "status": status}
    if visit is None:
        text = console.render("problem.html", signed_in=False, nav=(), **values)
    else:
        text = visit.part("problem.html", **values)
    headers = {name: value for name, value in error.headers.items() if name != "WWW-Authenticate"}
    return HTMLResponse(text, status_code=status, headers=headers)
