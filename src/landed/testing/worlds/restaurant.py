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
    POST   /reservations/R1/cancel       Idempotency-Key; {fee_cents}; DELETE is the same
    GET    /keys/KEY                     lookup: did it land?
    POST   /keys/KEY/close               the same answer, and the key is refused from now on
    GET    /log?after=0                  what it did, numbered
    POST   /settings                     {fee_cents?, full?}: the owner's desk, not the agent's
"""

import asyncio
import json
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from landed.testing.worlds.faults import Clock, Fault, Faults, Sleep

if TYPE_CHECKING:
    import sqlite3
else:
    try:
        from pysqlite3 import dbapi2 as sqlite3
    except ImportError:
        import sqlite3

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
PARTY_MAX, TEXT_MAX, BODY_MAX, PAGE_MAX = 20, 200, 10_000, 1_000

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Restaurant:
    """How one restaurant behaves.

    `strict`: a key reused with other details is refused (else the first answer is replayed).
    `full`: days without a free table. `fee_cents`: what a cancellation costs. `can_look_up`,
    `can_close`: whether those endpoints exist. `refuses_after_s`: requests with an effect must
    carry `X-Sent-At`, UTC seconds since the epoch, and are refused once older than this.
    `retention_s`: a key, closed or not, is forgotten this long after its first use.
    Raises ValueError for a day that doesn't exist or a negative number.
    """

    strict: bool = False
    full: tuple[str, ...] = ()
    fee_cents: int = 0
    can_look_up: bool = True
    can_close: bool = True
    refuses_after_s: float | None = None
    retention_s: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "full", tuple(self.full))  # JSON knows only lists.
        if unknown := [day for day in self.full if day not in DAYS]:
            raise ValueError(f"no such day: {', '.join(map(str, unknown))}")
        for name in ("fee_cents", "refuses_after_s", "retention_s"):
            if (getattr(self, name) or 0) < 0:
                raise ValueError(f"{name} must be 0 or more")


@dataclass(eq=False)
class ProblemError(Exception):
    """A refusal, made before any effect: an RFC 9457 problem with a `code` for programs.

    `refused` names in the log what was refused ("a late request"); `more` are further members.
    """

    status: int
    code: str
    detail: str
    refused: str = field(default="a request", kw_only=True)
    more: Json = field(default_factory=dict[str, Any], kw_only=True)


def problem(error: ProblemError) -> JSONResponse:
    """The refusal as an HTTP answer."""
    members = {"status": error.status, "code": error.code, "detail": error.detail} | error.more
    return JSONResponse(members, error.status, media_type="application/problem+json")


class Ledger:
    """The file of a far side: what each key did, and a numbered log, beside the world's own tables.

    `schema` holds the world's own tables. Within `unit` everything is written together or not at
    all; outside of it nothing but the log may be written. `path` may be ":memory:".
    """

    def __init__(
        self, path: str, clock: Clock, *, schema: str, retention_s: float | None = None
    ) -> None:
        self._clock = clock
        self._retention_s = retention_s
        self.sql = sqlite3.connect(path, isolation_level=None, timeout=5.0)
        self.sql.execute("PRAGMA journal_mode = WAL")
        self.sql.execute("PRAGMA synchronous = FULL")
        self.sql.executescript(_SHARED_SCHEMA + schema)

    @contextmanager
    def unit(self) -> Generator[None]:
        """One transaction. Keys past their retention are forgotten first."""
        self.sql.execute("BEGIN IMMEDIATE")
        try:
            if self._retention_s is not None:
                forgotten = self._clock.now() - self._retention_s
                self.sql.execute("DELETE FROM key WHERE at < ?", (forgotten,))
            yield
            self.sql.execute("COMMIT")
        except BaseException:
            # As SQL: after `rollback()`, pysqlite3 0.6.1 trips over cursors that are still open.
            self.sql.execute("ROLLBACK")
            raise

    def note(self, kind: str, text: str, key: str | None = None) -> int:
        """Add an entry to the log; returns its number, which is the position of this moment."""
        row = self.sql.execute(
            "INSERT INTO log (at, kind, text, key) VALUES (?, ?, ?, ?) RETURNING n",
            (self._clock.now(), kind, text, key),
        ).fetchone()
        return int(row[0])

    def log(self, *, after: int) -> list[Json]:
        """The entries that follow number `after`, at most PAGE_MAX."""
        rows = self.sql.execute(
            "SELECT n, at, kind, text, key FROM log WHERE n > ? ORDER BY n LIMIT ?",
            (after, PAGE_MAX),
        )
        return [dict(zip(("n", "at", "kind", "text", "key"), row, strict=True)) for row in rows]

    def earlier(self, key: str, action: str, request: Json, *, strict: bool) -> Json | None:
        """What this key did before, or None for a new key.

        Raises ProblemError for a key that is closed, was used for another action or, where
        `strict`, came with another request.
        """
        select = "SELECT action, request, answer, closed FROM key WHERE key = ?"
        row = self.sql.execute(select, (key,)).fetchone()
        if row is None:
            return None
        old_action, old_request, answer, closed = row
        if closed:
            raise ProblemError(422, "key-closed", f"key {key} is closed", refused="a late request")
        if old_action != action or (strict and old_request != json.dumps(request, sort_keys=True)):
            raise ProblemError(422, "key-mismatch", f"key {key} was used with other details")
        return _object(answer)

    def bind(self, key: str, action: str, request: Json, answer: Json) -> None:
        """Store what a new key did, in the same unit as the effect itself."""
        insert = "INSERT INTO key (key, action, request, answer, at) VALUES (?, ?, ?, ?, ?)"
        asked, did = json.dumps(request, sort_keys=True), json.dumps(answer)
        self.sql.execute(insert, (key, action, asked, did, self._clock.now()))

    def look(self, key: str, *, shut: bool = False) -> tuple[Json | None, int]:
        """What this key did, and the position at which that was read.

        With `shut` the key is refused from now on; this may be repeated.
        """
        row = self.sql.execute("SELECT answer FROM key WHERE key = ?", (key,)).fetchone()
        answer = None if row is None or row[0] is None else _object(row[0])
        if shut:
            self.sql.execute(
                "INSERT INTO key (key, closed, at) VALUES (?, 1, ?) "
                "ON CONFLICT (key) DO UPDATE SET closed = 1",
                (key, self._clock.now()),
            )
        kind, did = ("closed", "closed") if shut else ("looked", "looked up")
        what = "nothing has landed" if answer is None else answer["id"]
        return answer, self.note(kind, f"{did} {key}: {what}", key)


_SHARED_SCHEMA = """
CREATE TABLE IF NOT EXISTS key (
    key TEXT PRIMARY KEY, action TEXT, request TEXT, answer TEXT,
    closed INTEGER NOT NULL DEFAULT 0, at REAL NOT NULL
);
CREATE TABLE IF NOT EXISTS log (
    n INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL,
    kind TEXT NOT NULL, text TEXT NOT NULL, key TEXT
);
"""

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
        self.ledger = Ledger(path, clock, schema=_SCHEMA, retention_s=settings.retention_s)

    async def availability(self, request: Request) -> Response:
        query = request.query_params
        wanted = _wanted({**query, "party": _integer(query.get("party", ""))})
        return JSONResponse(wanted | {"available": wanted["day"] not in self.settings.full})

    async def reserve(self, request: Request) -> Response:
        key = _key(request.headers.get("idempotency-key", ""))
        wanted = _wanted(await _body(request))
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
        fee_cents = _count((await _body(request)).get("fee_cents", 0), "fee_cents")
        wanted: Json = {"id": request.path_params["id"], "fee_cents": fee_cents}
        self._check_age(request, key)
        with self.ledger.unit():
            if earlier := self._earlier(key, "cancel", wanted):
                return earlier
            held = self._held(str(wanted["id"]))
            if fee_cents != (now_cents := self.settings.fee_cents):
                detail = f"cancelling {held['id']} costs {_money(now_cents)} now"
                raise ProblemError(422, "fee-changed", detail, more={"fee_cents": now_cents})
            cancelled = "UPDATE reservation SET cancelled = 1 WHERE 'R' || number = ?"
            self.ledger.sql.execute(cancelled, (held["id"],))
            gone: Json = {**held, "cancelled": True, "fee_cents": fee_cents}
            self.ledger.bind(key, "cancel", wanted, gone)
            fee = f" (fee {_money(fee_cents)})" if fee_cents else ""
            position = self.ledger.note("cancelled", f"cancelled {held['id']}{fee}", key)
        return _done(gone, position)

    async def look(self, request: Request) -> Response:
        return self._tell(request, shut=False, offered=self.settings.can_look_up)

    async def close(self, request: Request) -> Response:
        return self._tell(request, shut=True, offered=self.settings.can_close)

    async def reservations(self, request: Request) -> Response:
        rows = self.ledger.sql.execute(
            f"SELECT {_COLUMNS}, key FROM reservation "
            "WHERE NOT cancelled AND number > ? ORDER BY number LIMIT ?",
            (_after(request), PAGE_MAX),
        )
        held = [(_reservation(row), row[-1]) for row in rows]
        listed = [one | {"text": _text(one), "key": key} for one, key in held]
        return JSONResponse({"reservations": listed, "fee_cents": self.settings.fee_cents})

    async def log(self, request: Request) -> Response:
        return JSONResponse({"log": self.ledger.log(after=_after(request))})

    async def change(self, request: Request) -> Response:
        """Change the fee or the full days, until the restaurant restarts."""
        wanted = asdict(self.settings) | await _body(request)
        fee_cents = _count(wanted["fee_cents"], "fee_cents")
        try:
            full: tuple[str, ...] = tuple(wanted["full"])
            self.settings = replace(self.settings, fee_cents=fee_cents, full=full)
        except (TypeError, ValueError) as error:
            raise ProblemError(400, "bad-settings", str(error)) from error
        days = ", ".join(full) or "on no day"
        self.ledger.note("changed", f"changed: fee {_money(fee_cents)}, full {days}")
        return JSONResponse({"fee_cents": fee_cents, "full": full})

    async def refuse(self, request: Request, error: Exception) -> Response:
        """Answer a ProblemError, and log what it refused."""
        assert isinstance(error, ProblemError)
        key = request.headers.get("idempotency-key")
        self.ledger.note("refused", f"refused {error.refused}: {error.detail}", key)
        return problem(error)

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
    restaurant = Starlette(
        routes=[
            Route("/availability", desk.availability, methods=["GET"]),
            Route("/reservations", desk.reserve, methods=["POST"]),
            Route("/reservations", desk.reservations, methods=["GET"]),
            Route("/reservations/{id}/cancel", desk.cancel, methods=["POST", "DELETE"]),
            Route("/keys/{key:path}/close", desk.close, methods=["POST"]),
            Route("/keys/{key:path}", desk.look, methods=["GET"]),
            Route("/log", desk.log, methods=["GET"]),
            Route("/settings", desk.change, methods=["POST"]),
        ],
        middleware=[Middleware(Faults, rules=faults, sleep=sleep)],
        exception_handlers={ProblemError: desk.refuse},
    )
    restaurant.state.desk = desk
    return restaurant


def _key(text: str) -> str:
    if not (0 < len(text) <= TEXT_MAX and text.isascii() and text.isprintable()):
        raise ProblemError(400, "bad-key", f"a key has 1 to {TEXT_MAX} ASCII characters")
    return text


async def _body(request: Request) -> Json:
    raw = bytearray()
    async for chunk in request.stream():
        raw += chunk
        if len(raw) > BODY_MAX:
            raise ProblemError(413, "too-large", f"the body may have {BODY_MAX} bytes")
    try:
        return _object(bytes(raw) or b"{}")
    except (ValueError, RecursionError):
        raise ProblemError(400, "bad-body", "the body must be a JSON object") from None


_TIME = "([01][0-9]|2[0-3]):[0-5][0-9]"
_CHECKS: tuple[tuple[str, Callable[[object], bool], str], ...] = (
    ("day", lambda it: it in DAYS, f"one of {', '.join(DAYS)}"),
    ("time", lambda it: re.fullmatch(_TIME, str(it)) is not None, "such as 19:00"),
    ("party", lambda it: type(it) is int and 1 <= it <= PARTY_MAX, f"from 1 to {PARTY_MAX}"),
    ("name", lambda it: it is None or _is_text(it), f"text of at most {TEXT_MAX} characters"),
)


def _wanted(asked: Mapping[str, object]) -> Json:
    """The table that was asked for, checked; members that we don't know are left out."""
    for name, fits, rule in _CHECKS:
        if not fits(asked.get(name)):
            raise ProblemError(400, f"bad-{name}", f"{name} must be {rule}")
    return {name: asked[name] for name, _, _ in _CHECKS if asked.get(name) is not None}


def _is_text(it: object) -> bool:
    return isinstance(it, str) and it.isprintable() and len(it) <= TEXT_MAX


def _count(value: object, name: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**53:
        raise ProblemError(400, f"bad-{name.replace('_', '-')}", f"{name} must be a whole number")
    return value


def _after(request: Request) -> int:
    return _count(_integer(request.query_params.get("after", "0")), "after")


def _integer(text: str) -> int | None:
    return int(text) if re.fullmatch("[0-9]{1,15}", text) else None


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


def _object(text: str | bytes) -> Json:
    value = json.loads(text)
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    return cast(Json, value)
