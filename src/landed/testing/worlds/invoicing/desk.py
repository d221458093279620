"""The endpoints of the invoicing service: the actions under their keys, the editor, the readers."""

from dataclasses import dataclass
from datetime import date

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from landed.testing.worlds.far_side import TEXT_MAX, Json, ProblemError, count, integer, read_body
from landed.testing.worlds.faults import Clock
from landed.testing.worlds.invoicing import asking, figures, rules
from landed.testing.worlds.invoicing.actions import ACTIONS, Action
from landed.testing.worlds.invoicing.books import KINDS, Books, shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Invoicing:
    """How one invoicing service behaves.

    `today`: the day it always is there (YYYY-MM-DD), "" for the clock's own. `strict`: a key reused
    with other details is refused (else the first answer is replayed). `can_look_up`, `can_close`:
    whether those endpoints exist. `refuses_after_s`: requests with an effect must carry
    `X-Sent-At`, UTC seconds since the epoch, and are refused once older than this. `retention_s`: a
    key, closed or not, is forgotten this long after its first use. Raises ValueError for a day that
    does not exist or a negative number.
    """

    today: str = ""
    strict: bool = True
    can_look_up: bool = True
    can_close: bool = True
    refuses_after_s: float | None = None
    retention_s: float | None = None

    def __post_init__(self) -> None:
        if self.today:
            date.fromisoformat(self.today)
        for name in ("refuses_after_s", "retention_s"):
            if (getattr(self, name) or 0) < 0:
                raise ValueError(f"{name} must be 0 or more")


class Desk:
    """The endpoints, over the books. All of them are async and none blocks long."""

    def __init__(self, path: str, clock: Clock, settings: Invoicing) -> None:
        self.settings = settings
        self.books = Books(
            path,
            clock,
            retention_s=settings.retention_s,
            today=date.fromisoformat(settings.today) if settings.today else None,
        )
        self.ledger = self.books.ledger

    def routes(self) -> list[Route]:
        """Return where it answers."""
        return [
            *(self._route(action) for action in ACTIONS),
            Route("/drafts/preview", self.preview, methods=["POST"]),
            Route("/drafts/{id}", self.edit_draft, methods=["PATCH"]),
            Route("/contacts", self.add_contact, methods=["POST"]),
            Route("/contacts/{id}", self.edit_contact, methods=["PATCH"]),
            Route("/contacts/find", self.find_contact, methods=["GET"]),
            Route("/records/{id}", self.record, methods=["GET"]),
            Route("/similar", self.similar, methods=["GET"]),
            Route("/auto-send", self.auto_send, methods=["GET"]),
            Route("/books", self.all_of_it, methods=["GET"]),
            Route("/keys/{key:path}/close", self.close, methods=["POST"]),
            Route("/keys/{key:path}", self.look, methods=["GET"]),
        ]

    # The actions: each under a key, once.

    def _route(self, action: Action) -> Route:
        async def act(request: Request) -> Response:
            key = _key(request.headers.get("idempotency-key", ""))
            asked = action.asked({**await read_body(request), **request.path_params})
            self._check_age(request, key)
            with self.ledger.unit():
                earlier = self.ledger.earlier(key, action.path, asked, strict=self.settings.strict)
                if earlier is not None:
                    position = self.ledger.note("replayed", f"replayed {earlier['id']}", key)
                    return _done(earlier, position, replayed=True)
                made = action.answer(action.act(self.books, asked))
                self.ledger.bind(key, action.path, asked, made)
                position = self.ledger.note("committed", made["summary"], key)
            return _done(made, position)

        return Route(action.path, act, methods=["POST"])

    def _check_age(self, request: Request, key: str) -> None:
        if (limit_s := self.settings.refuses_after_s) is None:
            return
        try:
            age_s = self.books.clock.now() - float(request.headers.get("x-sent-at", ""))
        except ValueError:
            detail = "X-Sent-At must hold UTC seconds since the epoch"
            raise ProblemError(400, "bad-sent-at", detail) from None
        if not age_s <= limit_s:
            detail = f"key {key} was sent more than {limit_s:g} s ago"
            raise ProblemError(422, "too-old", detail, refused="a late request")

    async def look(self, request: Request) -> Response:
        """Say whether a key did something, and what."""
        return self._tell(request, shut=False, offered=self.settings.can_look_up)

    async def close(self, request: Request) -> Response:
        """Say the same, and refuse the key from now on."""
        return self._tell(request, shut=True, offered=self.settings.can_close)

    def _tell(self, request: Request, *, shut: bool, offered: bool) -> Response:
        if not offered:
            raise HTTPException(404)
        key = _key(request.path_params["key"])
        with self.ledger.unit():
            answer, position = self.ledger.look(key, shut=shut)
        found: Json = {"found": False} if answer is None else {"found": True, "result": answer}
        return JSONResponse(found | {"position": position})

    # The editor: what a person does by hand. It has no keys.

    async def preview(self, request: Request) -> Response:
        """Say what a draft would come to, and which days its invoice would have; writes nothing."""
        asked = asking.draft_asked(await read_body(request))
        contact = self.books.record("contact", asked["contact"])
        said: Json = {
            "customer": contact["name"],
            **shown(figures.totals(figures.lines_of(asked["lines"]))),
            "missing": list(figures.missing(contact, figures.ISSUE_NEEDS)),
        }
        if contact["terms_days"] is not None:
            days = figures.days_of(today=self.books.today, terms_days=contact["terms_days"])
            said["due_on"] = days.due_on.isoformat()
            said["due"] = figures.written_day(days.due_on)
        return JSONResponse(said)

    async def edit_draft(self, request: Request) -> Response:
        """Change the lines of an open draft."""
        id, lines = request.path_params["id"], asking.lines_asked(await read_body(request))
        with self.ledger.unit():
            rules.open_draft(self.books.record("draft", id))
            self.books.change("draft", id, lines=lines)
            self.ledger.note("changed", f"changed {id}")
        return JSONResponse(self.books.record("draft", id))

    async def add_contact(self, request: Request) -> Response:
        """Add a contact, under a name that is free."""
        asked = asking.contact_asked(await read_body(request))
        name = asking.text_asked(asked, "name")
        with self.ledger.unit():
            self._check_name(name)
            id = self.books.insert("contact", **asked)
            self.ledger.note("changed", f"added {name}")
        return JSONResponse(self.books.record("contact", id), 201)

    async def edit_contact(self, request: Request) -> Response:
        """Change what is known of a contact."""
        id, asked = request.path_params["id"], asking.contact_asked(await read_body(request))
        with self.ledger.unit():
            if self.books.record("contact", id)["name"] != asked.get("name"):
                self._check_name(asked.get("name"))
            self.books.change("contact", id, **asked)
            self.ledger.note("changed", f"changed {id}")
        return JSONResponse(self.books.record("contact", id))

    def _check_name(self, name: object) -> None:
        if any(one["name"] == name for one in self.books.every("contact")):
            raise ProblemError(422, "name-taken", f"there is a contact {name} already")

    # The readers.

    async def find_contact(self, request: Request) -> Response:
        """Return the one contact of that name; refused where there is none, or more than one."""
        name = request.query_params.get("name", "").casefold()
        every = self.books.every("contact")
        found = [one for one in every if one["name"].casefold() == name]
        found = found or [one for one in every if name in one["name"].casefold()]
        if len(found) != 1:
            names = ", ".join(one["name"] for one in found[:5]) or "none"
            detail = f"which contact is {request.query_params.get('name')!r}? found: {names}"
            raise ProblemError(422, "which-contact", detail)
        return self._with_day(found[0])

    async def record(self, request: Request) -> Response:
        """Return one record of any kind."""
        return self._with_day(self.books.of_id(request.path_params["id"]))

    def _with_day(self, one: Json) -> Response:
        return JSONResponse(one | {"today": self.books.today.isoformat()})

    async def similar(self, request: Request) -> Response:
        """Return what looks like a draft of that customer and total."""
        asked = request.query_params
        total_cents = count(integer(asked.get("total_cents", "")), "total_cents")
        found = self.books.alike(contact=asked.get("contact", ""), total_cents=total_cents)
        return JSONResponse({"similar": found})

    async def auto_send(self, request: Request) -> Response:
        """Say whether invoices are sent by themselves."""
        return JSONResponse({"on": self.books.sends()})

    async def all_of_it(self, request: Request) -> Response:
        """Return all that the books hold, for whoever watches."""
        held: Json = {f"{kind}s": self.books.every(kind) for kind in KINDS}
        return JSONResponse(held | {"auto_send": self.books.sends()})


def _key(text: str) -> str:
    if not (0 < len(text) <= TEXT_MAX and text.isascii() and text.isprintable()):
        raise ProblemError(400, "bad-key", f"a key has 1 to {TEXT_MAX} ASCII characters")
    return text


def _done(answer: Json, position: int, *, replayed: bool = False) -> Response:
    headers = {"X-Position": str(position)} | ({"Idempotent-Replayed": "true"} if replayed else {})
    return JSONResponse(answer, 200 if replayed else 201, headers=headers)
