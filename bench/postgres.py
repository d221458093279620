"""Measures one durable `perform` on Postgres against the same rows written by hand: by itself.

    python -m bench.postgres

The floor is what one would write with the same driver: the rows of the very batches that `perform`
wrote, table by table, in a transaction for each batch. It decides, links and encodes nothing, and
draws no numbers. Both sides run in turns on an embedded server, and the medians are compared.
"""

import asyncio
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

import landed
from bench.run import nothing
from landed.stores import postgres_writing
from landed.stores.postgres import open_postgres
from landed.stores.postgres_line import Connection
from landed.stores.postgres_transaction import Last
from landed.stores.unit import Rows
from tests.stores.postgres.embedded import Server, serving

PERFORMS = {1: 200, 64: 1280}
ROUNDS = 3

INSERT = (
    "INSERT INTO landed.record (id, kind, tenant, session, state, version, epoch, worker, open,"
    " made, last) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s::boolean::int, %s, %s)"
)
UPDATE = (
    "UPDATE landed.record SET state = %s, version = %s, epoch = %s, worker = %s,"
    " open = %s::boolean::int, last = %s WHERE id = %s AND version = %s AND epoch = %s"
    " AND made = %s AND last = %s"
)
APPEND = (
    "INSERT INTO landed.journal (seq, id, version, before, event, state, at, body, body_digest,"
    " prev, hash) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"
)
TAKE = "INSERT INTO landed.name (name, record) VALUES (%s, %s)"
FREE = "DELETE FROM landed.name WHERE name = %s AND record = %s"


async def performs(url: str, *, at_once: int) -> float:
    """Perform a no-op tool many times, `at_once` at a time; return the seconds it took."""
    async with landed.open(url, tools=[nothing]) as rt:

        async def lane(number: int, calls: int) -> None:
            ask = landed.Ask(session=f"s{number}")
            for n in range(calls):
                await rt.perform(nothing, {"n": n}, ask=ask)

        await lane(0, 20)
        begun = time.perf_counter()
        await asyncio.gather(
            *(lane(number, PERFORMS[at_once] // at_once) for number in range(at_once))
        )
        return time.perf_counter() - begun


@contextmanager
def recording() -> Iterator[list[Rows]]:
    """Keep the rows of every batch that is written meanwhile."""
    batches: list[Rows] = []
    write = postgres_writing.all_but_last

    async def keep(connection: Connection, laid: Rows) -> Last | None:
        batches.append(laid)
        return await write(connection, laid)

    postgres_writing.all_but_last = keep
    try:
        yield batches
    finally:
        postgres_writing.all_but_last = write


async def replay(batches: list[Rows], url: str) -> float:
    """Write the batches into a new database; return the seconds it took."""
    await (await open_postgres(url)).close()
    connection = await psycopg.AsyncConnection.connect(url, prepare_threshold=None)
    cursor = connection.cursor()
    begun = time.perf_counter()
    for laid in batches:
        for query, parameters in (
            (INSERT, laid.inserts),
            (UPDATE, laid.updates),
            (APPEND, laid.entries),
            (FREE, laid.frees),
            (TAKE, laid.takes),
        ):
            if len(parameters) == 1:
                await cursor.execute(query.encode(), parameters[0])
            elif parameters:
                await cursor.executemany(query.encode(), parameters)
        await connection.commit()
    seconds = time.perf_counter() - begun
    await connection.close()
    return seconds


async def compare(server: Server, *, at_once: int) -> None:
    """Print the ratio of the floor's time to ours, and what one perform costs."""
    url = server.database()
    with recording() as batches:
        await performs(url, at_once=at_once)
    spare = sum(len(laid.inserts) for laid in batches) - PERFORMS[at_once]
    while spare > 0:
        spare -= len(batches.pop(0).inserts)
    ours: list[float] = []
    floor: list[float] = []
    for _ in range(ROUNDS):
        server.clear(url)
        ours.append(await performs(url, at_once=at_once))
        server.clear(url)
        floor.append(await replay(batches, url))
    server.give_back(url)
    ratios = [by_hand / own for by_hand, own in zip(floor, ours, strict=True)]
    own_us, by_hand_us = (
        statistics.median(side) / PERFORMS[at_once] * 1e6 for side in (ours, floor)
    )
    print(
        f"perform on Postgres, {at_once:2} at once: {statistics.median(ratios):.2f} of the floor"
        f" ({min(ratios):.2f} to {max(ratios):.2f}); {own_us:.0f} µs against {by_hand_us:.0f} µs"
    )


def main() -> None:
    """Run everything on a server that is removed afterwards."""
    with serving() as server:
        for at_once in PERFORMS:
            asyncio.run(compare(server, at_once=at_once))


if __name__ == "__main__":
    main()
