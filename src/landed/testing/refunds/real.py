"""Refunds in two phases with the service and the other refunder as processes, over real HTTP.

What ends it is the service's own books, fetched over HTTP. The agent is this process, on a store of
its own; nobody waits for minutes here: the reviewer agrees at once.
"""

import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx2

from landed.core.canonical import Json
from landed.core.history import View
from landed.core.operation import State
from landed.core.store import Store
from landed.core.tool import Tool
from landed.runtime.parts import assemble, register
from landed.stores.urls import open_store
from landed.testing.agent import die
from landed.testing.beside import store_beside
from landed.testing.faults import FaultyStore, Points
from landed.testing.models import ScriptedModel
from landed.testing.refunds.places import ADDRESS, ORDER, PAID
from landed.testing.refunds.scenarios import APPLIED, NEVER_CAME
from landed.testing.refunds.scripts import PHRASES, Reviewed
from landed.testing.refunds.stage import RefundScenario
from landed.testing.refunds.tools import money, refund_tools
from landed.testing.scenario import Ran, read_session
from landed.testing.timeline import Line, Timeline
from landed.testing.worlds import serve
from landed.testing.worlds.faults import Fault
from landed.testing.worlds.payments import Payments

REAL: Mapping[str, tuple[Fault, ...]] = {
    "refund-planned": (),
    "refund-conflict": (),
    "refund-commit-timeout": (replace(APPLIED, hang=False),),
    "refund-commit-dropped": (replace(NEVER_CAME, hang=False),),
}
"""The scenarios that are played for real unless a simulation is asked for, and what goes wrong in
them: connections that are dropped, which nobody has to wait for."""

ANSWER_MAX_S = 10.0


def tell(scenario: RefundScenario, say: Callable[[Line], None], *, store: str = "") -> Ran:
    """Let a scenario happen, handing each line to `say` as it does, and return how it ended.

    With the URL of a `store` it is told on one of its own beside that. Raises `WorldStartError`
    where the service does not start, and as `store_beside` does.
    """
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="landed-refund-")))
        own = stack.enter_context(store_beside(store)) if store else f"sqlite:///{place}/agent.db"
        served = stack.enter_context(
            serve.start(
                "payments",
                db=str(place / "payments.db"),
                faults=REAL[scenario.name],
                settings=Payments(orders=PAID, addresses={ORDER: ADDRESS}),
            )
        )
        client = stack.enter_context(httpx2.Client(base_url=served.url, timeout=ANSWER_MAX_S))
        bank = ServedBank(client=client, url=served.url, say=say)
        bank.timeline.add("process", f"payments: process {served.pid} at {served.url}")
        return asyncio.run(bank.play(scenario, own))


@dataclass(slots=True, eq=False, kw_only=True)
class ServedBank:
    """The payments service as a process, and the timeline of what happens there and here."""

    client: httpx2.Client
    url: str
    say: Callable[[Line], None]
    began: float = field(default_factory=time.time)
    heard: int = 0
    timeline: Timeline = field(init=False)

    def __post_init__(self) -> None:
        now, listen = (lambda: time.time() - self.began), self.say
        self.timeline = Timeline(now=now, listener=listen, services=self._services)

    async def play(self, scenario: RefundScenario, url: str) -> Ran:
        """Run the script, and read what is recorded and what is held."""
        opened = await open_store(url)
        points = Points(die=die)  # At none of them, here.
        store = FaultyStore(opened, points=points, committed=self.timeline.committed)
        try:
            async with httpx2.AsyncHTTPTransport(retries=0) as transport:
                tools = refund_tools(self.url, transport=transport)
                return await self._played(scenario, store, tools)
        finally:
            await store.close()

    async def _played(self, scenario: RefundScenario, store: Store, tools: Sequence[Tool]) -> Ran:
        messages: list[str] = []
        rt = assemble(store, tools=register(tools), settings=scenario.settings)
        async with rt:
            reviewed = Reviewed(
                rt=rt,
                model=ScriptedModel(script=PHRASES),
                timeline=self.timeline,
                messages=messages,
                by_hand=self.refund_by_hand,
                waits=False,
            )
            await scenario.script(reviewed)
            self.timeline.services(self.timeline)
            items, operations = await read_session(store)
            story, _ = await read_session(store, view=View.STORY)
            waiting = await rt.inbox()
        held, landed = self.holds(), [o for o in operations if o.state is State.CONFIRMED]
        ids = sorted(_made(one.result) for one in landed)
        settled = all(operation.final for operation in operations)
        return Ran(
            scenario=scenario,
            timeline=self.timeline,
            world={
                "payments": held,
                "cases": [{"id": one.id, "text": one.why.value} for one in waiting],
            },
            reconciled=settled and ids == sorted(str(one["id"]) for one in held if one["keyed"]),
            history=items,
            story=story,
            message=messages[-1] if messages else "",
            points=(),
        )

    def holds(self) -> list[dict[str, Any]]:
        """Return the refunds, each with the plan it was made by, if any."""
        plans = {made["id"]: f" by {made['plan_id']}" for made in self._committed()}
        refunds = self._get("/refunds")["refunds"]
        return [
            {
                "id": one["id"],
                "text": f"{one['id']} {one['order']} {money(one['cents'])}"
                f"{plans.get(one['id'], '')}",
                "keyed": one["id"] in plans,
            }
            for one in refunds
        ]

    def refund_by_hand(self, cents: int) -> None:
        """Have another process refund some of it, over HTTP and under a key of its own."""
        command = [sys.executable, "-m", "landed.testing.refunds.real", self.url, str(cents)]
        self.timeline.add("process", f"another process refunds {money(cents)} of {ORDER}")
        subprocess.run(command, check=True, timeout=ANSWER_MAX_S)

    def _committed(self) -> list[dict[str, Any]]:
        """Return what the commits answered, plan by plan."""
        made: list[dict[str, Any]] = []
        for number in range(1, 100):
            reply = self.client.get(f"/refund-plans/PL{number}")
            if reply.status_code == 404:
                break
            made += [reply.json()["result"]] if "result" in reply.json() else []
        return made

    def _services(self, timeline: Timeline) -> None:
        new: list[dict[str, Any]] = self._get(f"/log?after={self.heard}")["log"]
        for one in new:
            self.heard = one["n"]
            timeline.append("payments", one["text"], at_s=one["at"] - self.began)

    def _get(self, path: str) -> Any:
        return self.client.get(path).raise_for_status().json()


def _made(result: Json) -> str:
    return str(result.get("id", "")) if isinstance(result, Mapping) else ""


def main(arguments: Sequence[str]) -> None:
    """Be the other process: refund so many cents at that address."""
    url, cents = arguments
    wanted = {"order": ORDER, "cents": int(cents)}
    key = {"Idempotency-Key": "another-process"}
    reply = httpx2.post(f"{url}/refunds", json=wanted, headers=key, timeout=ANSWER_MAX_S)
    reply.raise_for_status()


if __name__ == "__main__":
    main(sys.argv[1:])
