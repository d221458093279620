"""The cluster of these scenarios: what runs, what is wanted, and the update that is held back."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx2
from starlette.applications import Starlette

from landed.core.operation import Operation
from landed.core.tool import Tool
from landed.testing.deploys.tools import WANTED, mark_of, runs
from landed.testing.doubts.places import Held, Logged
from landed.testing.sim import World, current_process
from landed.testing.worlds import cluster
from landed.testing.worlds.cluster import Cluster
from landed.testing.worlds.transport import WorldTransport

URL = "http://cluster.test"
FIRST = {"release": "v1", "percent": 100}

ToolsOf = Callable[[str, httpx2.AsyncBaseTransport], list[Tool]]


@dataclass(slots=True, eq=False, kw_only=True)
class Fleet:
    """A cluster on which `web` runs. `reached` makes the tools by which it is reached.

    The process that sends the update number `stalls` stands still at the last moment before that
    leaves, as if it were stopped by the machine: whatever it had checked before was true then.
    """

    world: World
    reached: ToolsOf
    settings: Cluster = field(default_factory=Cluster)
    stalls: int = 2
    name: str = "cluster"
    _updates: int = 0
    _app: Starlette = field(init=False)

    def __post_init__(self) -> None:
        self._app = cluster.app(":memory:", self.world.clock, settings=self.settings)
        for object in ("web", WANTED):
            self._desk.set_by_hand("ana", object, FIRST)

    def tools(self) -> list[Tool]:
        """Return the tools of one process."""
        return self.reached(URL, WorldTransport(self._app, self.world.spawn, witness=self._see))

    def decide(self, release: str, percent: int) -> None:
        """Say what is wanted from now on, as ana does in the fleet's configuration."""
        self._desk.set_by_hand("ana", WANTED, {"release": release, "percent": percent})

    def holds(self) -> Held:
        """Return what runs, and what is wanted."""
        names = {"web": "web runs", WANTED: "wanted is"}
        return [
            {"id": name, "text": f"{said} {runs(self._desk.there(name))}"}
            for name, said in names.items()
        ]

    def made(self) -> list[str]:
        """Return each update that an operation made, in a line."""
        rows = self._ledger.sql.execute("SELECT body FROM object WHERE name = 'web'")
        versions = [json.loads(body) for (body,) in rows]
        return [f"{mark_of(one)} {runs(one)}" for one in versions if mark_of(one)]

    def made_by(self, operation: Operation) -> str:
        """Return the update as the record says it."""
        return f"{operation.id} {runs(operation.arguments)}"

    def log(self) -> Logged:
        """Return what it did."""
        return [(one["at"], one["text"]) for one in self._ledger.log(after=0)]

    def close(self) -> None:
        """Close its ledger."""
        self._ledger.sql.close()

    @property
    def _desk(self) -> Any:
        return self._app.state.desk

    @property
    def _ledger(self) -> Any:
        return self._desk.ledger

    async def _see(self, request: httpx2.Request) -> None:
        if request.method != "PATCH":
            return
        self._updates += 1
        if self._updates == self.stalls:
            current_process().pause()
            await asyncio.sleep(0)
