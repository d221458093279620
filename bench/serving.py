"""Measures what HTTP adds: dry run and commit of a no-op over the loopback, beside the verbs alone.

    python -m bench.serving

What HTTP adds is the time over HTTP less that of the same verbs in process; it is compared with two
requests to an app of the same make, door and all, whose routes do nothing. Client and servers share
one event loop, so the client's own work is in both.
"""

import asyncio
import statistics
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from fastapi import FastAPI, Response
from starlette.types import ASGIApp

import landed
from landed.server.app import http_app
from landed.server.door import Door
from landed.server.idempotency import KeyHeader
from landed.server.listening import listen_at, listening
from landed.server.models import CommitBody, DryRunBody, PlanView

ROUNDS = 5
PAIRS = 20
TOOL = "/v1/tools/nothing"


@landed.tool(effect="reversible")
async def nothing(n: int) -> dict[str, int]:
    """Do nothing, and say so."""
    return {"n": n}


def idle(answer: dict[str, Any]) -> ASGIApp:
    """Return an app that answers the same two requests, always with this."""
    app = FastAPI()
    view = PlanView.model_validate(answer)

    @app.post(f"{TOOL}/dry-run")
    async def dry_run(body: DryRunBody, response: Response) -> PlanView:
        return view

    @app.post(f"{TOOL}/commit")
    async def commit(body: CommitBody, key: KeyHeader, response: Response) -> PlanView:
        return view

    return Door(app=app)


@asynccontextmanager
async def served(app: ASGIApp) -> AsyncGenerator[httpx2.AsyncClient]:
    """Serve an app on the loopback, and yield a client of it."""
    begun = asyncio.Event()
    with listen_at("127.0.0.1", 0) as door:
        server = listening(app, farewell_s=1, begun=begun.set)
        serving = asyncio.ensure_future(server.serve(sockets=[door]))
        await begun.wait()
        url = f"http://127.0.0.1:{door.getsockname()[1]}"
        async with httpx2.AsyncClient(base_url=url) as client:
            yield client
        server.should_exit = True
        await serving


async def over_http(client: httpx2.AsyncClient, n: int) -> dict[str, Any]:
    """Dry-run and commit over HTTP, and return the last answer."""
    first = await client.post(f"{TOOL}/dry-run", json={"arguments": {"n": n}, "session": f"h{n}"})
    plan: dict[str, Any] = first.json()
    body = {name: plan[name] for name in ("plan_id", "plan_token", "input_fingerprint")}
    body["plan_token"] = body["plan_token"] or "none"
    keyed = {"Idempotency-Key": f"k{n}"}
    last = await client.post(f"{TOOL}/commit", json=body, headers=keyed)
    assert last.status_code == 200, last.text
    return plan


async def in_process(rt: landed.Runtime, n: int) -> None:
    """The same by the verbs."""
    wanted = [landed.Wanted(tool="nothing", arguments={"n": n})]
    plan = await rt.preview(wanted, ask=landed.Ask(session=f"s{n}"), keep=True)
    assert plan.offer is not None
    await rt.commit(
        plan.plan,
        token=plan.offer.token,
        fingerprint=plan.fingerprint,
        principal="",
        call_id=f"{n}",
    )


async def timed(doing: Callable[[int], Awaitable[object]], start: int) -> float:
    """Return how long one takes, in seconds."""
    begun = time.perf_counter()
    for n in range(start, start + PAIRS):
        await doing(n)
    return (time.perf_counter() - begun) / PAIRS


async def compare(directory: str) -> None:
    """Print what HTTP adds, as a ratio."""
    async with (
        landed.open(f"sqlite:///{directory}/serving.db", tools=[nothing]) as rt,
        served(http_app(rt)) as client,
    ):
        plan = await over_http(client, 0)
        async with served(idle(plan)) as other:
            await over_http(other, 0)
            ratios: list[float] = []
            for number in range(ROUNDS):
                start = 1 + 2 * number * PAIRS
                whole = await timed(lambda n: over_http(client, n), start)
                verbs = await timed(lambda n: in_process(rt, n), start + PAIRS)
                empty = await timed(lambda n: over_http(other, n), start)
                ratios.append((whole - verbs) / empty)
    print(
        f"HTTP adds {statistics.median(ratios):.2f} of an app that does nothing"
        f" ({min(ratios):.2f} to {max(ratios):.2f}); the last: {whole * 1e3:.1f} ms over HTTP,"
        f" {verbs * 1e3:.1f} ms by the verbs, {empty * 1e3:.1f} ms for nothing"
    )


def main() -> None:
    """Run it, in a directory that is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="landed-bench-") as directory:
        asyncio.run(compare(directory))


if __name__ == "__main__":
    main()
