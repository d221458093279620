"""What two processes on one Postgres share: tools whose effects are lines of a file.

python -m tests.stores.postgres.outside URL DIRECTORY VERB   plays the first of the two, as `w1`

`propose` starts a plan of four steps and prints what it came to; `agree` waits at the pipe `go`
before it says yes to that plan, which it needs then; `deliver` receives one delivery and performs
what it asks for. A step that finds a named pipe of its name in the directory says that
it is out, by its effect, and waits until somebody writes to the pipe.
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import landed
from landed.core.contract import Risk
from landed.core.errors import ApprovalError
from landed.core.lease import Lease
from landed.core.outcome import Absent, Found, LookOutcome, NotYet
from landed.core.plan import Wanted
from landed.core.tool import Call, Tool
from landed.core.value import PlanValue, Value
from landed.runtime.parts import assemble, register
from landed.runtime.runtime import Runtime
from landed.stores.postgres import open_postgres

STEPS = ("draft", "issue", "mail", "remind")
PLAN = tuple(Wanted(tool=name, arguments={"what": "logo"}) for name in STEPS)
LEASE = Lease(lease_s=3.0, beat_s=0.5)
PRINCIPAL = "ana"


class Outside:
    """Effects in the order in which they took place, each one line: its key and what it is."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._file = directory / "effects"
        self._file.touch()

    def effects(self) -> list[str]:
        return [line.split(" ", 1)[1] for line in self._file.read_text().splitlines()]

    def gate(self, step: str) -> Path:
        """Make the step wait for this pipe."""
        path = self._directory / step
        os.mkfifo(path)
        return path

    def fall_silent(self) -> None:
        """From now on the service does not say what became of anything."""
        (self._directory / "silent").touch()

    def tools(self, risk: Risk) -> dict[str, Tool]:
        return register([self._tool(name, risk) for name in STEPS])

    def _tool(self, name: str, risk: Risk) -> Tool:
        @landed.tool(
            name=name,
            risk=risk,
            effect="irreversible",
            keyed="key",
            compares_payload=True,
            lookup=self._look,
            on_interrupt="finish",
            deadline_s=60.0,
            escalate_after_s=12.0,
        )
        async def step(what: str, key: str) -> dict[str, str]:
            if not self._has(key):
                with self._file.open("a") as file:
                    file.write(f"{key} {name} {what}\n")
            gate = self._directory / name
            if gate.exists():
                await asyncio.to_thread(gate.read_text)
            return {"id": f"{name}-1"}

        return step

    def _has(self, key: str) -> bool:
        return any(line.startswith(f"{key} ") for line in self._file.read_text().splitlines())

    async def _look(self, call: Call) -> LookOutcome:
        if (self._directory / "silent").exists():
            return NotYet()
        return Found(result={"id": f"{call.tool}-1"}) if self._has(call.key) else Absent()


@asynccontextmanager
async def at_work(
    url: str, outside: Outside, worker: str, *, risk: Risk = Risk.SAFE
) -> AsyncIterator[Runtime]:
    store, tools = await open_postgres(url), outside.tools(risk)
    async with assemble(store, tools=tools, worker=worker, lease=LEASE) as runtime:
        yield runtime


async def propose(rt: Runtime) -> PlanValue:
    heard = await rt.receive("invoice the logo", principal=PRINCIPAL, delivery="d1")
    return await rt.propose(PLAN, ask=heard.ask("act"), patience_s=100.0)


async def deliver(rt: Runtime) -> Value:
    heard = await rt.receive("draft the logo", principal=PRINCIPAL, delivery="d1")
    return await rt.perform("draft", {"what": "logo"}, ask=heard.ask("c1"), patience_s=100.0)


async def agree(rt: Runtime, go: Path) -> str:
    planned = await propose(rt)
    await asyncio.to_thread(go.read_text)
    try:
        value = await rt.approve(planned.plan, principal=PRINCIPAL)
    except ApprovalError as error:
        return f"refused: {error.problem}"
    return str(value and value.state)


async def _play(url: str, directory: str, verb: str) -> None:
    outside = Outside(Path(directory))
    async with at_work(
        url, outside, "w1", risk=Risk.CONFIRM if verb == "agree" else Risk.SAFE
    ) as rt:
        match verb:
            case "propose":
                said = str((await propose(rt)).state)
            case "agree":
                said = await agree(rt, Path(directory, "go"))
            case _:
                value = await deliver(rt)
                said = f"{type(value).__name__} {value.operation}"
    sys.stdout.write(said)


if __name__ == "__main__":
    asyncio.run(_play(*sys.argv[1:]))
