"""A worker as a process of its own, which can stop itself as it sends; run by `test_asleep`.

python sleeper.py STORE WORLD URL sleep    sends, and stops (SIGSTOP) just before that leaves
python sleeper.py STORE WORLD URL work     takes over, settles what it found, prints how

Each prints one JSON object a line; `sleep` ends with 3 once it heard that it was replaced.
"""

import asyncio
import json
import os
import signal
import sys

import httpx2

from landed.core.canonical import Json
from landed.core.errors import LeaseLostError
from landed.core.key import Ask
from landed.core.lease import Lease
from landed.core.tool import Tool
from landed.runtime.parts import assemble, register
from landed.runtime.runtime import Runtime
from landed.stores.urls import open_store
from landed.testing.deploys.tools import fenced
from landed.testing.paying import payment_tools

LEASE = Lease(lease_s=2.0, beat_s=0.5)
LONG_S = 60.0  # Longer than it sleeps: its own deadline must not save the service.
CALLS: dict[str, tuple[str, dict[str, Json]]] = {
    "cluster": ("deploy", {"name": "web", "release": "v2", "percent": 100}),
    "payments": ("refund_order", {"order": "A17", "cents": 4000}),
}
BACK: dict[str, Json] = {"name": "web", "release": "v1", "percent": 100}


class StopsBeforeItSends(httpx2.AsyncHTTPTransport):
    """Stops this process at the last moment before its first request with an effect leaves."""

    stopped = False

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.method != "GET" and not self.stopped:
            self.stopped = True
            os.kill(os.getpid(), signal.SIGSTOP)
            late = await super().handle_async_request(request)
            say(answered=late.status_code)
            return late
        return await super().handle_async_request(request)


def tools(world: str, url: str, transport: httpx2.AsyncBaseTransport) -> list[Tool]:
    if world == "cluster":
        return fenced(url, transport, deadline_s=LONG_S)
    return list(payment_tools(url, transport=transport, deadline_s=LONG_S))


def say(**what: Json) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


async def sleep(rt: Runtime, world: str) -> None:
    tool, arguments = CALLS[world]
    try:
        value = await rt.perform(tool, arguments, ask=Ask(call_id="c1"), patience_s=5.0)
        say(value=type(value).__name__)
        await rt.serve(asyncio.Event())
    except LeaseLostError as lost:
        say(lost=str(lost))
        raise SystemExit(3) from None


async def work(rt: Runtime, world: str) -> None:
    tool, arguments = CALLS[world]
    # The lease of the one before may have a moment to go: the same call waits for its end.
    value = await rt.perform(tool, arguments, ask=Ask(call_id="c1"), patience_s=LONG_S)
    if world == "cluster":
        value = await rt.perform("deploy", BACK, ask=Ask(call_id="c2"))
    say(value=type(value).__name__)
    sys.stdin.readline()


async def main(store: str, world: str, url: str, role: str) -> None:
    transport = StopsBeforeItSends() if role == "sleep" else httpx2.AsyncHTTPTransport()
    rt = assemble(
        await open_store(store), tools=register(tools(world, url, transport)), lease=LEASE
    )
    async with rt:
        await (sleep if role == "sleep" else work)(rt, world)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:5]))
