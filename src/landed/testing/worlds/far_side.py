"""What the far sides have in common: a file with a numbered log, keys, and refusals over HTTP."""

import json
import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from starlette.applications import Starlette
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

TEXT_MAX, BODY_MAX, PAGE_MAX = 200, 10_000, 1_000

Json = dict[str, Any]


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
    """The file of a far side: a numbered log beside the world's own tables.

    `schema` holds the world's own tables. Within `unit` everything is written together or not at
    all; outside of it nothing but the log may be written. `path` may be ":memory:".
    """

    def __init__(self, path: str, clock: Clock, *, schema: str) -> None:
        self._clock = clock
        self.sql = sqlite3.connect(path, isolation_level=None, timeout=5.0)
        self.sql.execute("PRAGMA journal_mode = WAL")
        self.sql.execute("PRAGMA synchronous = FULL")
        self.sql.executescript(_LOG_SCHEMA + schema)

    @contextmanager
    def unit(self) -> Generator[None]:
        """One transaction."""
        self.sql.execute("BEGIN IMMEDIATE")
        try:
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


class KeyedLedger(Ledger):
    """A ledger that also remembers what each key did, for `retention_s` seconds or for ever."""

    def __init__(self, path: str, clock: Clock, *, schema: str, retention_s: float | None) -> None:
        super().__init__(path, clock, schema=_KEY_SCHEMA + schema)
        self._retention_s = retention_s

    @contextmanager
    def unit(self) -> Generator[None]:
        """One transaction. Keys past their retention are forgotten first."""
        with super().unit():
            if self._retention_s is not None:
                forgotten = self._clock.now() - self._retention_s
                self.sql.execute("DELETE FROM key WHERE at < ?", (forgotten,))
            yield

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


_LOG_SCHEMA = """
CREATE TABLE IF NOT EXISTS log (
    n INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL,
    kind TEXT NOT NULL, text TEXT NOT NULL, key TEXT
);
"""
_KEY_SCHEMA = """
CREATE TABLE IF NOT EXISTS key (
    key TEXT PRIMARY KEY, action TEXT, request TEXT, answer TEXT,
    closed INTEGER NOT NULL DEFAULT 0, at REAL NOT NULL
);
"""


def far_side(
    ledger: Ledger, routes: Sequence[Route], *, faults: Sequence[Fault], sleep: Sleep
) -> Starlette:
    """A world that answers at `routes` and tells its log at `GET /log?after=0`.

    `faults` happen in front of it. A ProblemError is answered, and logged as a refusal.
    """

    async def log(request: Request) -> Response:
        return JSONResponse({"log": ledger.log(after=after(request))})

    async def refuse(request: Request, error: Exception) -> Response:
        assert isinstance(error, ProblemError)
        key = request.headers.get("idempotency-key")
        ledger.note("refused", f"refused {error.refused}: {error.detail}", key)
        return problem(error)

    return Starlette(
        routes=[*routes, Route("/log", log, methods=["GET"])],
        middleware=[Middleware(Faults, rules=faults, sleep=sleep)],
        exception_handlers={ProblemError: refuse},
    )


async def read_body(request: Request) -> Json:
    """The JSON object that the request carries; no body at all is `{}`.

    Raises ProblemError: 413 above BODY_MAX bytes, 400 for anything but an object.
    """
    raw = bytearray()
    async for chunk in request.stream():
        raw += chunk
        if len(raw) > BODY_MAX:
            raise ProblemError(413, "too-large", f"the body may have {BODY_MAX} bytes")
    try:
        return _object(bytes(raw) or b"{}")
    except (ValueError, RecursionError):
        raise ProblemError(400, "bad-body", "the body must be a JSON object") from None


def is_text(it: object) -> bool:
    """Whether it is one printable line of at most TEXT_MAX characters; it may be empty."""
    return isinstance(it, str) and it.isprintable() and len(it) <= TEXT_MAX


def count(value: object, name: str) -> int:
    """The whole number from 0 that `value` must be; else a ProblemError 400 that names `name`."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**53:
        raise ProblemError(400, f"bad-{name.replace('_', '-')}", f"{name} must be a whole number")
    return value


def after(request: Request) -> int:
    """The number in `?after=`, 0 where there is none: a page begins behind it."""
    return count(integer(request.query_params.get("after", "0")), "after")


def integer(text: str) -> int | None:
    """The whole number that a query says, or None."""
    return int(text) if re.fullmatch("[0-9]{1,15}", text) else None


def _object(text: str | bytes) -> Json:
    value = json.loads(text)
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    return cast(Json, value)
