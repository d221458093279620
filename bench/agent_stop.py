"""Measures how soon a stop ends a command that sleeps, and what waiting for one costs.

    python -m bench.agent_stop

stops an agent's `sleep` thirty times, from the button to the end of the run, against killing such a
process by hand and reaping it; and waits some seconds for one, in CPU of this process.
"""

import asyncio
import os
import signal
import statistics
import subprocess
import time
from pathlib import Path

from landed.agent.bash import LocalShell, bash_tool
from landed.agent.harness import Harness
from landed.agent.messages import tool_call
from landed.agent.stop import stop_run
from landed.testing.scripted import ScriptedReplies, asks, says

STOPS = 30
SETTLE_S = 0.02  # until the shell has become `sleep`
WAIT_S = 5
A_MINUTE_S = 60


def _harness(command: str) -> Harness:
    called = asks(tool_call("c1", "bash", {"command": command}))
    model = ScriptedReplies(called, says("It slept."))
    return Harness(model=model, tools=[bash_tool(LocalShell(Path.cwd()))])


async def stop_s() -> float:
    """Return how long it takes from the button until the run is over."""
    harness, begun = _harness(f"sleep {A_MINUTE_S}"), asyncio.Event()

    async def drive() -> None:
        async for event in harness.prompt("Sleep."):
            if event["type"] == "tool_execution_start":
                begun.set()

    running = asyncio.create_task(drive())
    await begun.wait()
    await asyncio.sleep(SETTLE_S)
    at = time.perf_counter()
    ending = await stop_run(harness, running)
    taken = time.perf_counter() - at
    if ending != "clean":
        raise RuntimeError(f"the stop was {ending}")
    return taken


def by_hand_s() -> float:
    """Return how long it takes to kill such a process and reap it."""
    process = subprocess.Popen(["/bin/bash", "-c", f"sleep {A_MINUTE_S}"], start_new_session=True)
    time.sleep(SETTLE_S)
    at = time.perf_counter()
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return time.perf_counter() - at


async def wait_s() -> float:
    """Return the CPU that waiting `WAIT_S` seconds for a command takes, its start left out."""
    harness, spent = _harness(f"sleep {WAIT_S}"), [0.0]

    async def drive() -> None:
        async for event in harness.prompt("Sleep."):
            if event["type"] == "tool_execution_end":
                spent.append(time.process_time())

    running = asyncio.create_task(drive())
    await asyncio.sleep(WAIT_S / 10)
    begun = time.process_time()
    await running
    return spent[-1] - begun


def main() -> None:
    """Print both, the stops in turns with those by hand."""
    pairs = [(asyncio.run(stop_s()), by_hand_s()) for _ in range(STOPS)]
    ours, floor = (statistics.median(side) for side in zip(*pairs, strict=True))
    print(
        f"stop of a sleeping command: {ours / floor:.2f} of kill and wait by hand;"
        f" {ours * 1e3:.1f} ms against {floor * 1e3:.1f} ms, at most"
        f" {max(ours for ours, _ in pairs) * 1e3:.1f} ms"
    )
    spent = asyncio.run(wait_s())
    print(
        f"waiting {WAIT_S} s for a command: {spent * 1e3:.1f} ms of CPU, which makes"
        f" {spent * 1e3 * A_MINUTE_S / (WAIT_S * 0.9):.0f} ms for a minute"
    )


if __name__ == "__main__":
    main()
