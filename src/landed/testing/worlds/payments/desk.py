"""The endpoints of the payments service, over its ledger: what is asked, refused and answered."""

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from landed.testing.worlds.far_side import (
    PAGE_MAX,
    TEXT_MAX,
    Json,
    ProblemError,
    after,
    count,
    is_text,
    read_body,
)
from landed.testing.worlds.faults import Clock
from landed.testing.worlds.payments.books import Books
from landed.testing.worlds.payments.plans import Plans
from landed.testing.worlds.payments.settings import Payments

REFUND = "refund"
BROKEN: Json = {"status": 500, "detail": "something went wrong"}


class Desk:
    """All endpoints are async and none blocks long."""

    def __init__(self, path: str, clock: Clock, settings: Payments) -> None:
        self.settings = settings
        self._clock = clock
        self.ledger = Books(path, clock, settings)
        self._dropped = self._broken = 0

    def routes(self) -> list[Route]:
        """Return the addresses; the replica has those that only read."""
        return [
            Route("/orders", self.pay, methods=["POST"]),
            Route("/orders/{order}", self.order, methods=["GET"]),
            Route("/refunds", self.refund, methods=["POST"]),
            Route("/keys/{key:path}/close", self.close, methods=["POST"]),
            Route("/events", self.events, methods=["GET"]),
            *Plans(self.ledger, self._clock, self.settings).routes(),
            *(
                Route(f"{where}{path}", answer, methods=["GET"])
                for where in ("", "/replica")
                for path, answer in (
                    ("/refunds", self.refunds),
                    ("/refunds/{id}", self.read),
                    ("/keys/{key:path}", self.look),
                )
            ),
        ]

    async def pay(self, request: Request) -> Response:
        """Note what was paid for an order."""
        asked = await read_body(request)
        order = _line(asked.get("order"), "order")
        self.ledger.pay(order, count(asked.get("cents"), "cents"))
        return JSONResponse(self.ledger.order(order, self._clock.now()), 201)

    async def order(self, request: Request) -> Response:
        """Say what was paid, and what is left of it."""
        return JSONResponse(self.ledger.order(request.path_params["order"], self._clock.now()))

    async def refund(self, request: Request) -> Response:
        """Refund, once for each key."""
        asked = await read_body(request)
        wanted: Json = {
            "order": _line(asked.get("order"), "order"),
            "cents": count(asked.get("cents"), "cents"),
            "reason": asked.get("reason"),
        }
        if not (wanted["reason"] is None or is_text(wanted["reason"])) or not wanted["cents"]:
            raise ProblemError(
                400, "bad-refund", "a refund has cents, and a line of reason at most"
            )
        key = self._key(request)
        self._check_age(request)
        with self.ledger.unit():
            if key is not None and (earlier := self._earlier(key, wanted)):
                return self._said(earlier, replayed=True)
            if self._dropped < self.settings.drops:
                return self._nothing_happens(wanted)
            return self._said(self._made(wanted, key))

    async def read(self, request: Request) -> Response:
        """Say what became of a refund: true, false, or null where that is still open."""
        at = self._seen_at(request)
        with self.ledger.unit():
            found = self.ledger.found(request.path_params["id"], at)
        there: bool | None = False
        if found is not None:
            there = {"succeeded": True, "failed": False}.get(found["status"])
        return self._found(found, at, there=there)

    async def refunds(self, request: Request) -> Response:
        """List what is held, from `?since=` (UTC seconds) on."""
        at, since = self._seen_at(request), _seconds(request.query_params.get("since", "0"))
        listed = self.ledger.refunds(at, since=since)
        return JSONResponse({"refunds": listed, "position": self.ledger.position(at)})

    async def look(self, request: Request) -> Response:
        """Say what a key did."""
        if not self.settings.can_look_up:
            raise HTTPException(404)
        at, key = self._seen_at(request), _line(request.path_params["key"], "key")
        with self.ledger.unit():
            found = self.ledger.keyed_at(key, at)
        return self._found(found, at, there=found is not None)

    async def close(self, request: Request) -> Response:
        """Say what a key did, and refuse it from now on."""
        if not self.settings.can_close:
            raise HTTPException(404)
        key, now = _line(request.path_params["key"], "key"), self._clock.now()
        with self.ledger.unit():
            found = self.ledger.keyed_at(key, now)
            self.ledger.look(key, shut=True)
        return self._found(found, now, there=found is not None)

    async def events(self, request: Request) -> Response:
        """Tell what was delivered behind number `?after=`."""
        told = self.ledger.events(self._clock.now())
        if self.settings.events == "shuffled":
            told = [event for event in reversed(told) for _ in range(2)]
        return JSONResponse({"events": told[after(request) :][:PAGE_MAX]})

    def _made(self, wanted: Json, key: str | None) -> Json:
        made = self.ledger.refund(wanted, key, self._clock.now())
        answer = _shown(made)
        if self._broken < self.settings.breaks:
            self._broken += 1
            answer = answer | BROKEN
        if key is not None:
            self.ledger.bind(key, REFUND, wanted, answer)
        text = f"refunded {made['cents']} cents of {made['order']}: {made['id']}"
        self.ledger.note("refunded", text, key)
        return answer

    def _earlier(self, key: str, wanted: Json) -> Json | None:
        earlier = self.ledger.earlier(key, REFUND, wanted, strict=self.settings.strict)
        if earlier:
            self.ledger.note("replayed", f"replayed {earlier['id']}", key)
        return earlier

    def _nothing_happens(self, wanted: Json) -> Response:
        self._dropped += 1
        self.ledger.note("dropped", f"said yes to {wanted['cents']} cents, and did nothing")
        return self._said({"id": f"RF9{self._dropped:03}", **_known(wanted), "status": "succeeded"})

    def _said(self, answer: Json, *, replayed: bool = False) -> Response:
        headers = {"Idempotent-Replayed": "true"} if replayed else {}
        if self.settings.positions:
            headers["X-Position"] = str(self.ledger.position(self._clock.now()))
        if answer["status"] == BROKEN["status"]:
            return JSONResponse(BROKEN, 500)
        status = 202 if answer["status"] == "pending" else 201
        return JSONResponse(answer, status, headers=headers)

    def _found(self, found: Json | None, at: float, *, there: bool | None) -> Response:
        answer: Json = {"found": there, "position": self.ledger.position(at)}
        return JSONResponse(answer | ({"refund": _shown(found)} if found else {}))

    def _seen_at(self, request: Request) -> float:
        lag_s = self.settings.lag_s if request.url.path.startswith("/replica/") else 0.0
        return self._clock.now() - lag_s

    def _key(self, request: Request) -> str | None:
        if not self.settings.keyed:
            return None
        return _line(request.headers.get("idempotency-key", ""), "key")

    def _check_age(self, request: Request) -> None:
        limit_s = self.settings.refuses_after_s
        if limit_s is None:
            return
        age_s = self._clock.now() - _seconds(request.headers.get("x-sent-at", ""))
        if age_s > limit_s:
            raise ProblemError(422, "too-old", f"it was sent more than {limit_s:g} s ago")


def _shown(refund: Json) -> Json:
    return {name: refund[name] for name in ("id", "order", "cents")} | {
        "status": refund["status"],
        **({"reason": refund["reason"]} if refund["reason"] else {}),
    }


def _known(wanted: Json) -> Json:
    return {name: value for name, value in wanted.items() if value is not None}


def _line(value: object, name: str) -> str:
    if not isinstance(value, str) or not value or not is_text(value):
        raise ProblemError(
            400, f"bad-{name}", f"{name} must be one line of 1 to {TEXT_MAX} characters"
        )
    return value


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ProblemError(400, "bad-time", "times are UTC seconds since the epoch") from None
