"""The restaurant: the far side that books tables over HTTP, for demos, tests and simulation.

It knows nothing of the runtime. What it promises, unless its settings take it away:

- A key and what was done under it are written in one transaction: between a look and a close no
  request slips through.
- Every refusal comes before any effect, and is a 400, 413 or 422. A 404 only ever says that there
  is no such endpoint here; what is not there is said with 200 and `"found": false`.
- Every answer about a key carries a position: the number of the log entry it was read at.

    GET    /availability?day=Fri&time=19:00&party=4
    POST   /reservations                 Idempotency-Key; {day, time, party, name?}
    GET    /reservations?after=0         what it holds, and what a cancellation costs now
    GET    /reservations/R1/fee          what cancelling this one costs now: {fee_cents}
    POST   /reservations/R1/cancel       Idempotency-Key; {fee_cents}; DELETE is the same;
                                         answers {id, day, time, party, name?, fee_cents, …}
    GET    /keys/KEY                     lookup: did it land?
    POST   /keys/KEY/close               the same answer, and the key is refused from now on
    GET    /log?after=0                  what it did, numbered
    POST   /settings                     {fee_cents?, full?}: the owner's desk, not the agent's
"""

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from landed.testing.worlds.far_side import (
    PAGE_MAX,
    TEXT_MAX,
    Json,
    KeyedLedger,
    ProblemError,
    after,
    count,
    far_side,
    integer,
    is_text,
    read_body,
)
from landed.testing.worlds.faults import Clock, Fault, Sleep

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
PARTY_MAX = 20


_FROM_ZERO = ("fee_cents", "fee_after_s", "fee_then_cents", "refuses_after_s", "retention_s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Restaurant:
    """How one restaurant behaves.

    `strict`: a key reused with other details is refused (else the first answer is replayed).
    `full`: days without a free table. `fee_cents`: what a cancellation costs; with `fee_after_s`
    it costs `fee_then_cents` from that many seconds after the restaurant opened (when its app was
    made), by the world's clock. `can_look_up`, `can_close`: whether those endpoints exist.
    `refuses_after_s`: requests with an effect must carry `X-Sent-At`, UTC seconds since the epoch,
    and are refused once older than this. `retention_s`: a key, closed or not, is forgotten this
    long after its first use.
    Raises ValueError for a day that doesn't exist, a negative number, or a later fee without its
    time.
    """

    strict: bool = False
    full: tuple[str, ...] = ()
    fee_cents: int = 0
    fee_after_s: float | None = None
    fee_then_cents: int = 0
    can_look_up: bool = True
    can_close: bool = True
    refuses_after_s: float | None = None
    retention_s: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "full", tuple(self.full))  # JSON knows only lists.
        if unknown := [day for day in self.full if day not in DAYS]:
            raise ValueError(f"no such day: {', '.join(map(str, unknown))}")
        for name in _FROM_ZERO:
            if (getattr(self, name) or 0) < 0:
                raise ValueError(f"{name} must be 0 or more")
        if self.fee_then_cents and self.fee_after_s is None:
            raise ValueError("fee_then_cents needs fee_after_s, the time from which it is asked")


_SCHEMA = """
CREATE TABLE IF NOT EXISTS reservation (
    number INTEGER PRIMARY KEY AUTOINCREMENT, day TEXT NOT NULL, time TEXT NOT NULL,
    party INTEGER NOT NULL, name TEXT, key TEXT NOT NULL, cancelled INTEGER NOT NULL DEFAULT 0
);
"""
_COLUMNS = "'R' || number, day, time, party, name"


class _Desk:
    """The restaurant's endpoints, over its ledger. All of them are async and none blocks long."""

    def __init__(self, path: str, clock: Clock, settings: Restaurant) -> None:
        self.settings = settings
        self._clock = clock
        self._opened_at = clock.now()
        self.ledger = KeyedLedger(path, clock, schema=_SCHEMA, retention_s=settings.retention_s)

    async def availability(self, request: Request) -> Response:
        query = request.query_params
        wanted = _wanted({**query, "party": integer(query.get("party", ""))})
        return JSONResponse(wanted | {"available": wanted["day"] not in self.settings.full})

    async def reserve(self, request: Request) -> Response:
        key = _key(request.headers.get("idempotency-key", ""))
        wanted = _wanted(await read_body(request))
        self._check_age(request, key)
        with self.ledger.unit():
            if earlier := self._earlier(key, "reserve", wanted):
                return earlier
            if (day := wanted["day"]) in self.settings.full:
                raise ProblemError(422, "full", f"{day} is full", refused=_text(wanted))
            row = self.ledger.sql.execute(
                "INSERT INTO reservation (day, time, party, name, key) "
                "VALUES (:day, :time, :party, :name, :key) RETURNING 'R' || number",
                {"name": None, **wanted, "key": key},
            ).fetchone()
            made: Json = {"id": row[0], **wanted}
            self.ledger.bind(key, "reserve", wanted, made)
            position = self.ledger.note("committed", f"committed {_text(made)}", key)
        return _done(made, position, status=201)

    async def cancel(self, request: Request) -> Response:
        key = _key(request.headers.get("idempotency-key", ""))
        fee_cents = count((await read_body(request)).get("fee_cents", 0), "fee_cents")
        wanted: Json = {"id": request.path_params["id"], "fee_cents": fee_cents}
        self._check_age(request, key)
        with self.ledger.unit():
            if earlier := self._earlier(key, "cancel", wanted):
                return earlier
            held = self._held(str(wanted["id"]))
            if fee_cents != (now_cents := self._fee_cents()):
                detail = f"cancelling {held['id']} costs {_money(now_cents)} now"
                raise ProblemError(422, "fee-changed", detail, more={"fee_cents": now_cents})
            cancelled = "UPDATE reservation SET cancelled = 1 WHERE 'R' || number = ?"
            self.ledger.sql.execute(cancelled, (held["id"],))
            gone: Json = {**held, "cancelled": True, "fee_cents": fee_cents}
            self.ledger.bind(key, "cancel", wanted, gone)
            fee = f" (fee {_money(fee_cents)})" if fee_cents else ""
            position = self.ledger.note("cancelled", f"cancelled {held['id']}{fee}", key)
        return _done(gone, position)

    async def fee(self, request: Request) -> Response:
        self._held(request.path_params["id"])
        return JSONResponse({"fee_cents": self._fee_cents()})

    async def look(self, request: Request) -> Response:
        return self._tell(request, shut=False, offered=self.settings.can_look_up)

    async def close(self, request: Request) -> Response:
        return self._tell(request, shut=True, offered=self.settings.can_close)

    async def reservations(self, request: Request) -> Response:
        rows = self.ledger.sql.execute(
            f"SELECT {_COLUMNS}, key FROM reservation "
            "WHERE NOT cancelled AND number > ? ORDER BY number LIMIT ?",
            (after(request), PAGE_MAX),
        )
        held = [(_reservation(row), row[-1]) for row in rows]
        listed = [one | {"text": _text(one), "key": key} for one, key in held]
        return JSONResponse({"reservations": listed, "fee_cents": self._fee_cents()})

    async def change(self, request: Request) -> Response:
        """Change the full days or the fee, which then stays, until the restaurant restarts."""
        asked = await read_body(request)
        wanted = self.settings
        if "fee_cents" in asked:
            fee_cents = count(asked["fee_cents"], "fee_cents")
            wanted = replace(wanted, fee_cents=fee_cents, fee_after_s=None, fee_then_cents=0)
        try:
            self.settings = replace(wanted, full=asked.get("full", wanted.full))
        except (TypeError, ValueError) as error:
            raise ProblemError(400, "bad-settings", str(error)) from error
        full, now_cents = self.settings.full, self._fee_cents()
        days = ", ".join(full) or "on no day"
        self.ledger.note("changed", f"changed: fee {_money(now_cents)}, full {days}")
        return JSONResponse({"fee_cents": now_cents, "full": full})

    def _fee_cents(self) -> int:
        """What a cancellation costs now."""
        after_s = self.settings.fee_after_s
        if after_s is None or self._clock.now() < self._opened_at + after_s:
            return self.settings.fee_cents
        return self.settings.fee_then_cents

    def _earlier(self, key: str, action: str, wanted: Json) -> Response | None:
        answer = self.ledger.earlier(key, action, wanted, strict=self.settings.strict)
        if answer is None:
            return None
        position = self.ledger.note("replayed", f"replayed {answer['id']}", key)
        return _done(answer, position, replayed=True)

    def _held(self, name: str) -> Json:
        select = f"SELECT {_COLUMNS}, cancelled FROM reservation WHERE 'R' || number = ?"
        row = self.ledger.sql.execute(select, (name,)).fetchone()
        if row is None:
            raise ProblemError(422, "no-such-reservation", f"there is no reservation {name}")
        if row[-1]:
            raise ProblemError(422, "already-cancelled", f"{name} is cancelled already")
        return _reservation(row)

    def _check_age(self, request: Request, key: str) -> None:
        if (limit_s := self.settings.refuses_after_s) is None:
            return
        try:
            age_s = self._clock.now() - float(request.headers.get("x-sent-at", ""))
        except ValueError:
            detail = "X-Sent-At must hold UTC seconds since the epoch"
            raise ProblemError(400, "bad-sent-at", detail) from None
        if not age_s <= limit_s:
            detail = f"key {key} was sent more than {limit_s:g} s ago"
            raise ProblemError(422, "too-old", detail, refused="a late request")

    def _tell(self, request: Request, *, shut: bool, offered: bool) -> Response:
        if not offered:
            raise HTTPException(404)
        key = _key(request.path_params["key"])
        with self.ledger.unit():
            answer, position = self.ledger.look(key, shut=shut)
        found: Json = {"found": False} if answer is None else {"found": True, "reservation": answer}
        return JSONResponse(found | {"position": position})


def app(
    path: str,
    clock: Clock,
    faults: Sequence[Fault] = (),
    *,
    settings: Restaurant | None = None,
    sleep: Sleep = asyncio.sleep,
) -> Starlette:
    """A restaurant whose reservations live in the SQLite file `path` (or ":memory:").

    Time comes from `clock` alone and delays go through `sleep`; no thread is started, so that it
    runs on a virtual event loop. Whoever is done with it closes `app.state.desk.ledger.sql`; what
    was committed is safe without. Raises the driver's error when the file can't be opened.
    """
    desk = _Desk(path, clock, settings or Restaurant())
    routes = [
        Route("/availability", desk.availability, methods=["GET"]),
        Route("/reservations", desk.reserve, methods=["POST"]),
        Route("/reservations", desk.reservations, methods=["GET"]),
        Route("/reservations/{id}/fee", desk.fee, methods=["GET"]),
        Route("/reservations/{id}/cancel", desk.cancel, methods=["POST", "DELETE"]),
        Route("/keys/{key:path}/close", desk.close, methods=["POST"]),
        Route("/keys/{key:path}", desk.look, methods=["GET"]),
        Route("/settings", desk.change, methods=["POST"]),
    ]
    restaurant = far_side(desk.ledger, routes, faults=faults, sleep=sleep)
    restaurant.state.desk = desk
    return restaurant


def _key(text: str) -> str:
    if not (0 < len(text) <= TEXT_MAX and text.isascii() and text.isprintable()):
        raise ProblemError(400, "bad-key", f"a key has 1 to {TEXT_MAX} ASCII characters")
    return text


_TIME = "([01][0-9]|2[0-3]):[0-5][0-9]"
_CHECKS: tuple[tuple[str, Callable[[object], bool], str], ...] = (
    ("day", lambda it: it in DAYS, f"one of {', '.join(DAYS)}"),
    ("time", lambda it: re.fullmatch(_TIME, str(it)) is not None, "such as 19:00"),
    ("party", lambda it: type(it) is int and 1 <= it <= PARTY_MAX, f"from 1 to {PARTY_MAX}"),
    ("name", lambda it: it is None or is_text(it), f"text of at most {TEXT_MAX} characters"),
)


def _wanted(asked: Mapping[str, object]) -> Json:
    """The table that was asked for, checked; members that we don't know are left out."""
    for name, fits, rule in _CHECKS:
        if not fits(asked.get(name)):
            raise ProblemError(400, f"bad-{name}", f"{name} must be {rule}")
    return {name: asked[name] for name, _, _ in _CHECKS if asked.get(name) is not None}


def _done(answer: Json, position: int, *, status: int = 200, replayed: bool = False) -> Response:
    headers = {"X-Position": str(position)} | ({"Idempotent-Replayed": "true"} if replayed else {})
    return JSONResponse(answer, status_code=status, headers=headers)


def _reservation(row: Sequence[object]) -> Json:
    members = zip(("id", "day", "time", "party", "name"), row[:5], strict=True)
    return {name: value for name, value in members if value is not None}


def _text(one: Json) -> str:
    table = f"{one['day']} {one['time']} x{one['party']}"
    return f"{one['id']} {table}" if "id" in one else table


def _money(cents: int) -> str:
    return str(cents // 100) if cents % 100 == 0 else f"{cents / 100:.2f}"
