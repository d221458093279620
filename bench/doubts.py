"""Measures doubt: a round over ten thousand unknown operations, and finding the few among many.

a process comes up over ten thousand operations that another one left in doubt: how many
questions that takes (one each), how long, and what it adds to memory; and how long the store
takes to say what is open, and what waits for a person, beside a million finished records.
"""

import asyncio
import os
import statistics
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path

import landed
from landed.core.key import Ask
from landed.core.outcome import LookOutcome
from landed.core.store import Page, Selection
from landed.runtime.opened import Settings
from landed.stores.driver import connect
from landed.stores.sqlite import open_sqlite

UNKNOWN = 10_000
SESSIONS = 500
FINISHED = {"a thousand": 1_000, "a million": 1_000_000}
TIMES = 20
NOTHING = ((), Page(records=(), next=0))
ROUND_MAX_S = 300.0


async def never_answered(call: landed.Call) -> LookOutcome:
    """Leave the question open for as long as the process lives."""
    await asyncio.Event().wait()
    return landed.NoAnswer(reason="the end")


@landed.tool(name="pay", effect="irreversible", keyed="key", lookup=never_answered)
async def lost(n: int, key: str) -> None:
    """Pay, and hear nothing."""
    raise TimeoutError("no answer")


class Counted:
    """A lookup that finds everything, and counts how often it is asked about each."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()

    async def lookup(self, call: landed.Call) -> LookOutcome:
        """Say that it landed."""
        self.asked[call.operation] += 1
        return landed.Found(result={"id": call.key})


async def leave_unknown(path: str) -> None:
    """Have a process leave so many operations in doubt."""
    settings = Settings(drain_s=0.1)
    async with landed.open(f"sqlite:///{path}", tools=[lost], settings=settings) as rt:

        async def lane(number: int) -> None:
            ask = Ask(session=f"s{number}")
            for n in range(UNKNOWN // SESSIONS):
                await rt.perform("pay", {"n": n}, ask=ask, patience_s=0.0)

        await asyncio.gather(*map(lane, range(SESSIONS)))


async def find_out(path: str) -> None:
    """Find them all out, as the next process, and print what that took."""
    counted = Counted()

    @landed.tool(name="pay", effect="irreversible", keyed="key", lookup=counted.lookup)
    async def pay(n: int, key: str) -> None:
        """Pay."""

    before, begun = rss_mb(), time.perf_counter()
    async with landed.open(f"sqlite:///{path}", tools=[pay]) as rt:
        most = rss_mb()
        while time.perf_counter() - begun < ROUND_MAX_S:
            most = max(most, rss_mb())
            if len(counted.asked) == UNKNOWN and not (await rt.in_doubt()).unknown:
                break
            await asyncio.sleep(0.1)
        taken = time.perf_counter() - begun
        left = (await rt.in_doubt()).unknown
        after = rss_mb()
    print(
        f"{len(counted.asked)} unknown operations found out in {taken:.1f} s, {left} left:"
        f" {counted.asked.total()} questions, at most {max(counted.asked.values(), default=0)}"
        f" each; memory {most - before:+.0f} MB at most, {after - before:+.0f} MB after"
    )


def rss_mb() -> float:
    """Return what this process holds in memory now, in MB."""
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def finish(path: str, count: int) -> None:
    """Write so many finished records into a store, of each nothing but its row."""
    connection = connect(path, wait_ms=1_000)
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)"
        " INSERT INTO record (id, kind, tenant, session, state, version, epoch, worker, open,"
        " made, last) SELECT 'op-' || i, 'operation', 'default', 's' || (i % 1000), 'confirmed',"
        " 3, 1, 'w' || (i % 7), 0, 1000000 + i, 1000000 + i FROM n",
        (count,),
    )
    connection.execute("COMMIT")
    connection.close()


async def looked_up(path: str, count: int) -> dict[str, float]:
    """Return how long the store takes over each question, in µs, beside so many finished ones."""
    await open_sqlite(path).close()
    finish(path, count)
    store = open_sqlite(path)
    questions: dict[str, Callable[[], Awaitable[object]]] = {
        "claim": lambda: store.claim(worker="w", now=0.0),
        "what is open": lambda: store.open_records(tenant="default", session="s1", worker="w1"),
        "what waits": lambda: store.listed(tenant="default", of=Selection.WAITING),
        "what is open of all": lambda: store.listed(tenant="default", of=Selection.OPEN),
    }
    taken: dict[str, float] = {}
    for name, ask in questions.items():
        each: list[float] = []
        for _ in range(TIMES):
            begun = time.perf_counter()
            assert await ask() in NOTHING
            each.append((time.perf_counter() - begun) * 1e6)
        taken[name] = statistics.median(each)
    await store.close()
    return taken


async def compare(directory: str) -> None:
    """Print what a round takes, and what finding the few among many does."""
    await leave_unknown(f"{directory}/doubts.db")
    # In a process of its own: what another round had in memory would hide what this one needs.
    command = (sys.executable, "-m", "bench.doubts", f"{directory}/doubts.db")
    process = await asyncio.create_subprocess_exec(*command)
    assert await process.wait() == 0
    few, many = [
        await looked_up(f"{directory}/finished-{count}.db", count) for count in FINISHED.values()
    ]
    for name, taken in many.items():
        print(
            f"{name}: {taken:.0f} µs among a million finished records, {taken / few[name]:.1f}"
            " of what it takes among a thousand"
        )


if __name__ == "__main__":
    asyncio.run(find_out(sys.argv[1]))
