"""Bad weather in front of a world: a seeded share of its requests goes wrong, until called off.

Where a `Fault` names one request, the weather draws for each one that comes whether something
happens to it, and what. It is for long runs under load; `POST /weather {"share": 0}` makes it calm,
and `GET /weather` counts what it did.
"""

import json
import random
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Receive, Scope, Send

from landed.testing.worlds.far_side import read_body
from landed.testing.worlds.faults import Fault, Faults, Kind, Sleep

PATH = "/weather"

# What happens, how often among all that happens; a number is the status that a proxy answers with
# in the service's place, so that nothing reached it.
_HAPPENS: Mapping[Kind | int, int] = {
    "lose_reply": 5,
    "drop": 3,
    "delay_request": 3,
    "delay_reply": 3,
    "duplicate": 4,
    "error_after": 3,
    503: 2,
    429: 2,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Weather:
    """How bad it is: the `share` of the requests that something happens to, drawn from `seed`.

    Delays, and the time until a duplicate, are drawn up to `late_s` seconds. Raises ValueError for
    a share that is none, or a negative time.
    """

    share: float = 0.1
    late_s: float = 1.5
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1 or not self.late_s >= 0:
            raise ValueError("a share is from 0 to 1, and late_s is 0 or more")


class Weathered:
    """A world in the weather. `sleep` is awaited for every delay and is the only clock here."""

    def __init__(self, app: ASGIApp, weather: Weather, sleep: Sleep) -> None:
        self._app = app
        self._share = weather.share
        self._late_s = weather.late_s
        self._sleep = sleep
        self._chance = random.Random(weather.seed)
        self._counts: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on, with what happens to it."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        if scope["path"] == PATH:
            return await self._change(scope, receive, send)
        kind = self._drawn()
        self._counts[str(kind or "passed")] += 1
        with suppress(ClientDisconnect):  # A caller may die in the middle of its request.
            await self._happens(kind, scope, receive, send)
        return None

    async def _happens(
        self, kind: Kind | int | None, scope: Scope, receive: Receive, send: Send
    ) -> None:
        if kind is None:
            return await self._app(scope, receive, send)
        if isinstance(kind, int):
            return await _turned_away(kind, send)
        fault = Fault(
            path=scope["path"],
            method=scope["method"],
            nth=None,
            kind=kind,
            seconds=self._chance.random() * self._late_s,
        )
        return await Faults(self._app, (fault,), self._sleep)(scope, receive, send)

    def _drawn(self) -> Kind | int | None:
        if self._chance.random() >= self._share:
            return None
        (kind,) = self._chance.choices(tuple(_HAPPENS), tuple(_HAPPENS.values()))
        return kind

    async def _change(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "POST":
            self._share = float((await read_body(Request(scope, receive)))["share"])
        await _answered(200, {"share": self._share, "happened": dict(self._counts)}, send)


async def _turned_away(status: int, send: Send) -> None:
    await _answered(status, {"detail": "come back later"}, send)


async def _answered(status: int, body: Mapping[str, object], send: Send) -> None:
    headers = [(b"content-type", b"application/json"), (b"retry-after", b"0")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps(body).encode()})
