"""The hand-written floor: the very rows that `perform` wrote, written again by plain SQL.

It pays for the same statements, the same bytes, the same transactions and the same fsync, and for
nothing else: no record is made, nothing is decided, linked or encoded.
"""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from landed.stores import transaction
from landed.stores.opening import Settings, open_file
from landed.stores.queries import SQLITE
from landed.stores.unit import Rows


@dataclass(slots=True)
class Recorded:
    """The batches that a store wrote, as rows."""

    batches: list[Rows] = field(default_factory=list[Rows])


@contextmanager
def recording() -> Iterator[Recorded]:
    """Keep the rows of every batch that is written meanwhile."""
    recorded = Recorded()
    write = transaction.Writer._execute

    def keep(self: transaction.Writer, rows: Rows) -> None:
        recorded.batches.append(rows)
        write(self, rows)

    transaction.Writer._execute = keep  # type: ignore[method-assign]
    try:
        yield recorded
    finally:
        transaction.Writer._execute = write  # type: ignore[method-assign]


async def replay(recorded: Recorded, path: str) -> tuple[float, float]:
    """Write the batches into a new file, a turn of the event loop between each; seconds wall, CPU.

    The turn of the loop is what any asyncio program pays between two commits.
    """
    opened = open_file(Settings(path=path))
    connection, epoch = opened.writer, 0
    wall, cpu = time.perf_counter(), time.process_time()
    for rows in recorded.batches:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(SQLITE.head).fetchone()
        if rows.inserts:
            epoch += len(rows.inserts)
            connection.execute(SQLITE.draw_epoch, (epoch,))
            connection.executemany(SQLITE.insert_record, rows.inserts)
        if rows.updates:
            connection.executemany(SQLITE.update_record, rows.updates)
        connection.executemany(SQLITE.insert_entry, rows.entries)
        if rows.frees:
            connection.executemany(SQLITE.free_name, rows.frees)
        if rows.takes:
            connection.executemany(SQLITE.take_name, rows.takes)
        connection.execute("COMMIT")
        await asyncio.sleep(0)
    seconds = time.perf_counter() - wall, time.process_time() - cpu
    connection.close()
    opened.reader.close()
    return seconds
