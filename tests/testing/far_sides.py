"""What the tests of the far sides share: each world in this process, its delays, and a client."""

import asyncio
from collections.abc import Coroutine
from typing import Any, Self

import httpx2
from starlette.applications import Starlette
from starlette.types import ASGIApp

from landed.testing.worlds import restaurant, texts
from landed.testing.worlds.faults import Fault, Kind
from landed.testing.worlds.restaurant import Restaurant
from landed.testing.worlds.texts import Texts
from landed.testing.worlds.transport import Witness, WorldTransport

KEY = "s1:op-a2"
FRIDAY: dict[str, Any] = {"day": "Fri", "time": "19:00", "party": 4}
SATURDAY = FRIDAY | {"day": "Sat"}
R1 = "R1 Fri 19:00 x4"
WAIT_MAX_S = 20.0


class SetClock:
    """A clock that stands where the test put it."""

    at = 1_000.0

    def now(self) -> float:
        return self.at


class Sleeps(asyncio.Queue[tuple[float, asyncio.Event]]):
    """Delays that end when the test sets their event; no time at all passes by itself."""

    async def __call__(self, seconds: float) -> None:
        woken = asyncio.Event()
        self.put_nowait((seconds, woken))
        await woken.wait()


class FarSide:
    """One world in this process, its delays, what it still does, and a client that reaches it."""

    def __init__(
        self, app: Starlette, sleeps: Sleeps, *, witness: Witness | None, before: ASGIApp | None
    ) -> None:
        self.app, self.sleeps = app, sleeps
        self.sql = app.state.desk.ledger.sql
        self.tasks: list[asyncio.Task[None]] = []
        self.transport = WorldTransport(before or app, self.spawn, witness, latency_s=0.0)
        self.client = httpx2.AsyncClient(transport=self.transport, base_url="http://far.test")

    def spawn(self, run: Coroutine[object, object, None]) -> asyncio.Task[None]:
        self.tasks.append(asyncio.ensure_future(run))
        return self.tasks[-1]

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        await self.client.aclose()
        self.sql.close()

    async def finish(self) -> None:
        """Let every request that has left come to its end."""
        await asyncio.wait_for(asyncio.gather(*self.tasks), WAIT_MAX_S)

    async def log(self) -> list[str]:
        entries = (await self.client.get("/log")).raise_for_status().json()["log"]
        return [entry["text"] for entry in entries]


class World(FarSide):
    """A restaurant in this process; `app` stands in its place where a test says so."""

    def __init__(
        self,
        *faults: Fault,
        path: str = ":memory:",
        app: ASGIApp | None = None,
        witness: Witness | None = None,
        **settings: Any,
    ) -> None:
        self.clock, sleeps = SetClock(), Sleeps()
        kept = Restaurant(**settings)
        own = restaurant.app(path, self.clock, faults, settings=kept, sleep=sleeps)
        super().__init__(own, sleeps, witness=witness, before=app)

    async def reserve(self, table: Any = FRIDAY, key: str = KEY, **how: Any) -> httpx2.Response:
        headers = {"Idempotency-Key": key} | how.pop("headers", {})
        body = {"content": table} if isinstance(table, bytes) else {"json": table}
        return await self.client.post("/reservations", **body, headers=headers, **how)

    async def delayed(self) -> tuple[asyncio.Future[httpx2.Response], asyncio.Event]:
        """A caller that waits for a reservation, and what lets its delay end."""
        waiting = asyncio.ensure_future(self.reserve())
        return waiting, (await self.sleeps.get())[1]

    async def cancel(self, name: str, fee: Any = 0, key: str = "s1:op-a9") -> httpx2.Response:
        body, headers = {"fee_cents": fee}, {"Idempotency-Key": key}
        return await self.client.post(f"/reservations/{name}/cancel", json=body, headers=headers)

    async def fee(self, name: str) -> httpx2.Response:
        return await self.client.get(f"/reservations/{name}/fee")

    async def change(self, **settings: Any) -> httpx2.Response:
        return await self.client.post("/settings", json=settings)

    async def look(self, key: str = KEY) -> Any:
        return (await self.client.get(f"/keys/{key}")).raise_for_status().json()

    async def close(self, key: str = KEY) -> Any:
        return (await self.client.post(f"/keys/{key}/close")).raise_for_status().json()

    async def holds(self) -> list[str]:
        ledger = (await self.client.get("/reservations")).raise_for_status().json()
        return [one["text"] for one in ledger["reservations"]]


class TextWorld(FarSide):
    """A group-text service in this process."""

    def __init__(self, *faults: Fault, path: str = ":memory:", **settings: Any) -> None:
        sleeps = Sleeps()
        own = texts.app(path, SetClock(), faults, settings=Texts(**settings), sleep=sleeps)
        super().__init__(own, sleeps, witness=None, before=None)

    async def deliver(self, body: Any, **how: Any) -> httpx2.Response:
        wire = {"content": body} if isinstance(body, bytes) else {"json": body}
        return await self.client.post("/texts", **wire, **how)

    async def sent(self, **query: str) -> list[str]:
        answer = (await self.client.get("/texts", params=query)).raise_for_status().json()
        return [one["text"] for one in answer["texts"]]


def code(answer: httpx2.Response) -> tuple[int, str]:
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["status"] == answer.status_code
    return answer.status_code, answer.json()["code"]


def on_reserve(kind: Kind, **more: Any) -> Fault:
    return Fault(path="/reservations", method="POST", kind=kind, **more)
