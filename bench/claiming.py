"""Measures what taking over costs beside finished records, on both stores: by itself.

    python -m bench.claiming

The same claims, of a hundred records each, that a dead worker left in three tenants, are made
beside a thousand finished records and beside a million, and the medians are compared: a ratio of
about 1 says that the finished ones are not looked at. So is an idle heartbeat, which claims and
finds nothing.
"""

import asyncio
import statistics
import tempfile
import time
from collections.abc import Callable

from bench.doubts import FINISHED, finish
from landed.core.changes import Changes
from landed.core.store import Store
from landed.stores.postgres import open_postgres
from landed.stores.sqlite import open_sqlite
from landed.testing.store_checks.suite import made
from tests.stores.postgres.embedded import Server, serving

LEFT = 3_000
BITE = 100
TENANTS = ("a", "b", "c")

FINISH = (
    "INSERT INTO landed.record (id, kind, tenant, session, state, version, epoch, worker, open,"
    " made, last) SELECT 'old-' || i, 'operation', 'default', 's' || (i % 1000), 'confirmed', 3, 1,"
    " 'w' || (i % 7), 0, 1000000 + i, 1000000 + i FROM generate_series(1, {count}) AS n (i)"
)


async def leave(store: Store) -> None:
    """Leave open records to nobody, in turns of the tenants."""
    for start in range(0, LEFT, BITE):
        moves = [
            made(f"left-{n}", worker="gone", tenant=TENANTS[n % len(TENANTS)], session=f"s{n % 50}")
            for n in range(start, start + BITE)
        ]
        await store.commit(Changes(moves=tuple(moves)))


async def claims(store: Store) -> dict[str, float]:
    """Return the median time of a claim of a bite, and of one that finds nothing, in µs."""
    await leave(store)
    taken: dict[str, list[float]] = {"a hundred taken over": [], "nothing to take over": []}
    for name, count in (("a hundred taken over", BITE), ("nothing to take over", 0)):
        for _ in range(LEFT // BITE):
            begun = time.perf_counter()
            assert len(await store.claim(worker="me", now=1.0, limit=BITE)) == count
            taken[name].append((time.perf_counter() - begun) * 1e6)
    await store.close()
    return {name: statistics.median(each) for name, each in taken.items()}


async def on_sqlite(count: int) -> dict[str, float]:
    """Measure on a new file with so many finished records."""
    with tempfile.TemporaryDirectory() as directory:
        path = f"{directory}/agent.db"
        await open_sqlite(path).close()
        finish(path, count)
        return await claims(open_sqlite(path))


async def on_postgres(server: Server, count: int) -> dict[str, float]:
    """Measure on a new database with so many finished records."""
    url = server.database()
    await (await open_postgres(url)).close()
    server.execute(url, FINISH.format(count=count))
    server.execute(url, "ANALYZE landed.record")
    return await claims(await open_postgres(url))


def compare(store: str, measure: Callable[[int], dict[str, float]]) -> None:
    """Print what each claim takes among the many, and by how much more than among the few."""
    few, many = (measure(count) for count in FINISHED.values())
    for name, taken in many.items():
        print(
            f"{store}, {name}: {taken:.0f} µs beside a million finished records,"
            f" {taken / few[name]:.2f} of what it takes beside a thousand"
        )


def main() -> None:
    """Run everything on a file and on a server that are removed afterwards."""
    compare("SQLite", lambda count: asyncio.run(on_sqlite(count)))
    with serving() as server:
        compare("Postgres", lambda count: asyncio.run(on_postgres(server, count)))


if __name__ == "__main__":
    main()
