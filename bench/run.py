"""Measures `landed` against floors, as ratios within one run: `make bench`.

    one durable perform of a no-op tool, against the same rows written by hand, at concurrency 1
    and 64; the CPU it costs; plans beside single performs (`bench.plans`); a round over ten
    thousand doubts (`bench.doubts`); an agent's log, turns and stops (`bench.agent_log`,
    `bench.agent_turn`, `bench.agent_stop`); and how long `import landed` and `landed --version`
    take.

The machine is shared and noisy, so both sides run in turns and the medians are compared.
"""

import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import landed
from bench import agent_log, agent_stop, agent_turn, doubts, plans
from bench.floor import Recorded, recording, replay

PERFORMS = {1: 300, 64: 1920}
ROUNDS = 5


@landed.tool(effect="reversible")
async def nothing(n: int) -> dict[str, int]:
    """Do nothing, and say so."""
    return {"n": n}


async def performs(path: str, *, at_once: int) -> tuple[float, float]:
    """Perform a no-op tool many times, `at_once` at a time, each lane a session of its own."""
    count = PERFORMS[at_once]
    async with landed.open(f"sqlite:///{path}", tools=[nothing]) as rt:

        async def lane(number: int, calls: int) -> None:
            ask = landed.Ask(session=f"s{number}")
            for n in range(calls):
                await rt.perform(nothing, {"n": n}, ask=ask)

        await lane(0, 20)  # Warm: schemas are built, the file has grown.
        wall, cpu = time.perf_counter(), time.process_time()
        await asyncio.gather(*(lane(number, count // at_once) for number in range(at_once)))
        return time.perf_counter() - wall, time.process_time() - cpu


async def rows_of(path: str, *, at_once: int) -> Recorded:
    """Return the rows of those performs, without what opening and warming wrote."""
    with recording() as recorded:
        await performs(path, at_once=at_once)
    written = sum(len(rows.inserts) for rows in recorded.batches)
    spare = written - PERFORMS[at_once]
    while spare > 0:
        spare -= len(recorded.batches.pop(0).inserts)
    return recorded


async def compare(directory: Path, *, at_once: int) -> None:
    """Print the ratio of the floor's time to ours, and what one perform costs."""
    recorded = await rows_of(str(directory / f"rows-{at_once}.db"), at_once=at_once)
    ours: list[tuple[float, float]] = []
    floor: list[tuple[float, float]] = []
    for n in range(ROUNDS):
        ours.append(await performs(str(directory / f"ours-{at_once}-{n}.db"), at_once=at_once))
        floor.append(await replay(recorded, str(directory / f"floor-{at_once}-{n}.db")))
    count = PERFORMS[at_once]
    wall, cpu = (statistics.median(side) for side in zip(*ours, strict=True))
    floor_wall, floor_cpu = (statistics.median(side) for side in zip(*floor, strict=True))
    pairs = [f[0] / o[0] for f, o in zip(floor, ours, strict=True)]
    print(
        f"perform, {at_once:2} at once: {statistics.median(pairs):.2f} of the floor"
        f" ({min(pairs):.2f} to {max(pairs):.2f});"
        f" {wall / count * 1e6:.0f} µs against {floor_wall / count * 1e6:.0f} µs,"
        f" CPU {cpu / count * 1e6:.0f} µs against {floor_cpu / count * 1e6:.0f} µs"
    )


def start_up() -> None:
    """Print how long starting takes, beside Python's own start."""
    python = [sys.executable, "-c", "pass"]
    script = str(Path(sys.executable).with_name("landed"))
    for name, command in (
        ("import landed", [sys.executable, "-c", "import landed"]),
        ("landed --version", [script, "--version"]),
    ):
        taken = _median_ms(command) - _median_ms(python)
        print(f"{name}: {taken:.0f} ms more than Python itself")


def _median_ms(command: list[str]) -> float:
    taken: list[float] = []
    for _ in range(7):
        begun = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        taken.append((time.perf_counter() - begun) * 1e3)
    return statistics.median(taken)


def main() -> None:
    """Run everything, in a directory that is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="landed-bench-") as directory:
        for at_once in PERFORMS:
            asyncio.run(compare(Path(directory), at_once=at_once))
        asyncio.run(plans.compare(directory))
        asyncio.run(doubts.compare(directory))
    asyncio.run(plans.preview())
    for bench in (agent_log, agent_turn, agent_stop):
        bench.main()
    start_up()


if __name__ == "__main__":
    main()
