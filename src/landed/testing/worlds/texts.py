"""The group-text service: the far side whose effect nobody can ask about or take back.

It knows nothing of the runtime. A text has gone out at the moment its request is processed; the
answer is the delivery receipt, and it is the only one there will ever be. There are no keys (an
Idempotency-Key is not read: a second request is a second text), no lookup and no close. Every
refusal comes before any effect, and is a 400, 413 or 422.

    POST   /texts                        {to, text}; 201 {id, to, text}: the receipt
    GET    /texts?after=0                what went out: {id, to, said, text}, `text` in one line
    GET    /log?after=0                  what it did, numbered

`GET` is for whoever watches the scenario, not for the agent. A late receipt is the fault
`delay_reply`, one that never comes is `lose_reply`.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from landed.testing.worlds.far_side import (
    PAGE_MAX,
    TEXT_MAX,
    Ledger,
    ProblemError,
    after,
    far_side,
    is_text,
    read_body,
)
from landed.testing.worlds.faults import Clock, Fault, Sleep


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """How one text service behaves.

    `unreachable`: to whom no text can go; those are refused with 422. Raises ValueError for one
    that isn't text.
    """

    unreachable: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "unreachable", tuple(self.unreachable))  # JSON knows only lists.
        if not all(map(is_text, self.unreachable)):
            raise ValueError("unreachable must be a list of texts")


_SCHEMA = """
CREATE TABLE IF NOT EXISTS text (
    number INTEGER PRIMARY KEY AUTOINCREMENT, recipient TEXT NOT NULL, said TEXT NOT NULL
);
"""


class _Desk:
    """The service's endpoints, over its ledger. All of them are async and none blocks long."""

    def __init__(self, path: str, clock: Clock, settings: Texts) -> None:
        self._settings = settings
        self.ledger = Ledger(path, clock, schema=_SCHEMA)

    async def deliver(self, request: Request) -> Response:
        body = await read_body(request)
        to, text = _line(body.get("to"), "to"), _line(body.get("text"), "text")
        if to in self._settings.unreachable:
            raise ProblemError(422, "unreachable", f"no text can go to {to}", refused="a text")
        with self.ledger.unit():
            row = self.ledger.sql.execute(
                "INSERT INTO text (recipient, said) VALUES (?, ?) RETURNING 'M' || number",
                (to, text),
            ).fetchone()
            position = self.ledger.note("texted", f"texted {to} '{text}'")
        receipt = {"id": row[0], "to": to, "text": text}
        return JSONResponse(receipt, 201, headers={"X-Position": str(position)})

    async def texts(self, request: Request) -> Response:
        rows = self.ledger.sql.execute(
            "SELECT 'M' || number, recipient, said FROM text "
            "WHERE number > ? ORDER BY number LIMIT ?",
            (after(request), PAGE_MAX),
        )
        listed = [
            {"id": name, "to": to, "said": said, "text": f"{name} {to}: {said}"}
            for name, to, said in rows
        ]
        return JSONResponse({"texts": listed})


def app(
    path: str,
    clock: Clock,
    faults: Sequence[Fault] = (),
    *,
    settings: Texts | None = None,
    sleep: Sleep = asyncio.sleep,
) -> Starlette:
    """A text service that keeps what it sent in the SQLite file `path` (or ":memory:").

    Time comes from `clock` alone and delays go through `sleep`; no thread is started, so that it
    runs on a virtual event loop. Whoever is done with it closes `app.state.desk.ledger.sql`; what
    was delivered is safe without. Raises the driver's error when the file can't be opened.
    """
    desk = _Desk(path, clock, settings or Texts())
    routes = [
        Route("/texts", desk.deliver, methods=["POST"]),
        Route("/texts", desk.texts, methods=["GET"]),
    ]
    service = far_side(desk.ledger, routes, faults=faults, sleep=sleep)
    service.state.desk = desk
    return service


def _line(value: object, name: str) -> str:
    if not isinstance(value, str) or not value or not is_text(value):
        rule = f"{name} must be one line of 1 to {TEXT_MAX} characters"
        raise ProblemError(400, f"bad-{name}", rule, refused="a text")
    return value
