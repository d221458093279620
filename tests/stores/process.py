"""A process of its own that uses a store and nothing else of `landed`; run by `test_processes`.

python process.py PATH hold WORKER    registers, inserts one operation, waits to be killed
python process.py PATH write NAME N   commits N operations as fast as it can, from the word go
"""

import asyncio
import sys

from landed.core.changes import Changes, Kind, Move, Record
from landed.core.event import Event
from landed.stores.sqlite import SqliteStore, open_sqlite


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


async def insert(store: SqliteStore, id: str, worker: str) -> Record:
    record = Record(
        id=id,
        kind=Kind.OPERATION,
        tenant="t",
        session="s",
        state="sent",
        version=1,
        epoch=0,
        worker=worker,
        open=True,
        frozen={"tool": "book"},
        changing={},
    )
    move = Move(after=record, event=Event(name="sent", record=id, at=1.5))
    (stored,) = await store.commit(Changes(moves=(move,)))
    return stored


async def hold(path: str, worker: str) -> None:
    store = open_sqlite(path)
    await store.renew(worker=worker, until=1e12)
    record = await insert(store, "op-1", worker)
    say(f"holds {record.id} under {record.epoch}")
    sys.stdin.read()


async def write(path: str, name: str, count: int) -> None:
    store = open_sqlite(path)
    say("ready")
    sys.stdin.readline()
    for n in range(count):
        await insert(store, f"{name}-{n}", "")
    await store.close()
    say("done")


if __name__ == "__main__":
    if sys.argv[2] == "hold":
        asyncio.run(hold(sys.argv[1], sys.argv[3]))
    else:
        asyncio.run(write(sys.argv[1], sys.argv[3], int(sys.argv[4])))
