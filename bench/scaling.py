"""Measures how four worker processes scale on Postgres, each doing one thing at a time: by itself.

    python -m bench.scaling

One process performs a no-op tool again and again, then four do so at once, in turns; the ratio of
what they get done is printed, beside that of a floor which commits two rows by hand for each. What
one alone spends its time on says what bounds it: where its own CPU is most of it, more processes
than processors bring nothing; where it waits for COMMIT, Postgres writes the waiting ones together.
"""

import asyncio
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack

import psycopg

import landed
from bench.run import nothing
from tests.stores.postgres.embedded import Server, serving

PERFORMS = 150
WARM = 20
WORKERS = 4
ROUNDS = 3
ANSWER_MAX_S = 300.0

_MADE = "CREATE TABLE IF NOT EXISTS floor (lane TEXT, n INT, state TEXT, PRIMARY KEY (lane, n))"


async def ours(url: str, lane: str) -> tuple[float, float]:
    """Perform one after the other; return the wall and the CPU seconds it took."""
    ask = landed.Ask(session=lane)
    async with landed.open(url, tools=[nothing]) as rt:
        for n in range(WARM):
            await rt.perform(nothing, {"n": -n}, ask=ask)
        await _told_to_begin()
        wall, cpu = time.perf_counter(), time.process_time()
        for n in range(PERFORMS):
            await rt.perform(nothing, {"n": n}, ask=ask)
        return time.perf_counter() - wall, time.process_time() - cpu


async def floor(url: str, lane: str) -> tuple[float, float]:
    """Commit a row and then its outcome, one after the other, as one would by hand."""
    connection = await psycopg.AsyncConnection.connect(url, autocommit=True)
    await _told_to_begin()
    wall, cpu = time.perf_counter(), time.process_time()
    for n in range(PERFORMS):
        await connection.execute("INSERT INTO floor VALUES (%s, %s, 'sent')", (lane, n))
        await connection.execute(
            "UPDATE floor SET state = 'confirmed' WHERE lane = %s AND n = %s", (lane, n)
        )
    took = time.perf_counter() - wall, time.process_time() - cpu
    await connection.close()
    return took


SIDES: Mapping[str, Callable[[str, str], Awaitable[tuple[float, float]]]] = {
    "ours": ours,
    "floor": floor,
}


async def _told_to_begin() -> None:
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)


def at_once(side: str, url: str, *, workers: int) -> tuple[float, float]:
    """Run so many processes; return how many performs a second, and the CPU share of each."""
    with ExitStack() as stack:
        started = [
            stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-m", "bench.scaling", side, url, f"lane-{n}"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            for n in range(workers)
        ]
        for process in started:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        said = _answers(started)
    walls, cpus = zip(*said, strict=True)
    return workers * PERFORMS / max(walls), sum(cpus) / sum(walls)


def _answers(started: list["subprocess.Popen[str]"]) -> list[tuple[float, float]]:
    """Have all of them begin, and return what each of them measured."""
    for process in started:
        assert process.stdin is not None
        process.stdin.write("begin\n")
        process.stdin.flush()
    answers = []
    for process in started:
        text, _ = process.communicate(timeout=ANSWER_MAX_S)
        wall, cpu = map(float, text.split())
        answers.append((wall, cpu))
    return answers


def compare(server: Server, side: str) -> None:
    """Print how a side scales, and what one alone spends its time on."""
    ratios: list[float] = []
    shares: list[float] = []
    for _ in range(ROUNDS):
        url = server.database()
        server.execute(url, _MADE)
        one, share = at_once(side, url, workers=1)
        server.execute(url, "TRUNCATE floor")
        four, _ = at_once(side, url, workers=WORKERS)
        ratios.append(four / one)
        shares.append(share)
    print(
        f"{side:5} on Postgres: {WORKERS} workers do {statistics.median(ratios):.2f} times what one"
        f" does (rounds {', '.join(f'{each:.2f}' for each in ratios)}); one alone is on the CPU"
        f" {statistics.median(shares):.0%} of its time"
    )


def main() -> None:
    """Compare both sides; with arguments, be one of the processes."""
    if len(sys.argv) > 1:
        side, url, lane = sys.argv[1:]
        wall, cpu = asyncio.run(_measured(side, url, lane))
        print(wall, cpu)
        return
    with serving() as server:
        for side in SIDES:
            compare(server, side)


async def _measured(side: str, url: str, lane: str) -> tuple[float, float]:
    return await SIDES[side](url, lane)


if __name__ == "__main__":
    main()
