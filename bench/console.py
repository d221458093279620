"""Measures the console's pages beside a thousand finished operations and beside a million.

    python -m bench.console [--few]

Both stores hold the same example (`landed serve --demo`) after what was finished before it. Each
page is asked for in process, without a network, as somebody sees it who administers the tenant:
the median of a page beside the million, and its ratio to the same page beside the thousand. About 1
says that no page looks at what it does not show. `--few` measures beside the thousand alone.
"""

import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace

import httpx2

import landed
from landed.console.app import OWNER, console_app
from landed.console.seal import Link
from landed.core.changes import Changes, Move, Record
from landed.core.event import Event
from landed.core.journal import Entry
from landed.core.store import Store
from landed.stores.sqlite import open_sqlite
from landed.testing.populated.place import SETTINGS, place
from landed.testing.populated.scenes import populate

FINISHED = {"a thousand": 1_000, "a million": 1_000_000}
UNIT = 1_000
SESSIONS = 1_000
TIMES = 30
PERSON = "ana"
BASE = "http://127.0.0.1"


@landed.tool(effect="reversible")
async def pay(n: int) -> dict[str, int]:
    """Pay somebody."""
    return {"n": n}


async def finish(url: str, count: int) -> None:
    """Write so many finished operations: one that was performed, over and over."""
    async with landed.open(url, tools=[pay]) as rt:
        ask = landed.Ask(session="old-0", principal=PERSON)
        done = (await rt.perform("pay", {"n": 1}, ask=ask)).operation
        moves = await moves_of(rt.driver.store, done)
    store = open_sqlite(url.removeprefix("sqlite:///"))
    for start in range(1, count, UNIT):
        copies = [copy for n in range(start, start + UNIT) for copy in copied(moves, n)]
        await store.commit(Changes(moves=tuple(copies), epoch=1))
    await store.close()


async def moves_of(store: Store, id: str) -> list[Move]:
    """Return what happened to a record, from its journal."""
    (record,) = await store.load(id)
    moves: list[Move] = []
    for entry in await store.journal(record=id):
        after = _after(record, entry)
        event = Event(name=entry.event, record=id, at=entry.at)
        moves.append(Move(after=replace(after, open=entry.seq < record.last), event=event))
    return moves


def _after(record: Record, entry: Entry) -> Record:
    changing: dict[str, object] = json.loads(entry.body or b"{}")
    if entry.version == 1:
        changing = changing.get("now", {})  # type: ignore[assignment]
    return replace(
        record,
        state=entry.state,
        version=entry.version,
        changing=changing,  # type: ignore[arg-type]
        made=0,
        last=0,
    )


def copied(moves: list[Move], number: int) -> Iterator[Move]:
    """Yield the same moves of another operation, in one of the old sessions."""
    id = f"op-old-{number}"
    session = f"old-{number % SESSIONS}"
    for move in moves:
        frozen = {**move.after.frozen, "key": id, "names": ()}
        after = replace(move.after, id=id, session=session, frozen=frozen)
        yield Move(after=after, event=replace(move.event, record=id))


async def pages(url: str) -> dict[str, float]:
    """Populate the store, and return how long each page takes, in ms."""
    link = Link()
    with place(PERSON) as there:
        async with landed.open(
            url, tools=[*there.tools, pay], permissions=there.permissions, settings=SETTINGS
        ) as rt:
            await populate(rt, person=PERSON)
            console = console_app(rt, owner=replace(OWNER, principal=PERSON), link=link)
            transport = httpx2.ASGITransport(app=console)
            async with httpx2.AsyncClient(transport=transport, base_url=BASE) as client:
                await client.get("/console/sign-in", params={"key": link.key})
                return await _timed(client, await _paths(rt))


async def _paths(rt: landed.Runtime) -> Mapping[str, str]:
    newest = await rt.driver.store.load("op-old-7")
    midst = newest[0].last
    return {
        "Waiting": "/console/waiting",
        "Running": "/console/running",
        "Done": "/console/done",
        "Done, far behind": f"/console/done?after={midst}",
        "Operation": "/console/operations/op-old-7",
        "Session": "/console/sessions/old-7",
        "Search": "/console/search?q=op-old-7",
        "Search in vain": "/console/search?q=nothing",
        "Audit": "/console/audit",
    }


async def _timed(client: httpx2.AsyncClient, paths: Mapping[str, str]) -> dict[str, float]:
    taken: dict[str, float] = {}
    for name, path in paths.items():
        each: list[float] = []
        for _ in range(TIMES):
            begun = time.perf_counter()
            answer = await client.get(path)
            each.append((time.perf_counter() - begun) * 1e3)
            assert answer.status_code < 400, (path, answer.status_code)
        taken[name] = statistics.median(each)
    return taken


async def compare(directory: str, *, only_few: bool) -> None:
    """Print what each page takes, beside the few and beside the many."""
    measured: list[dict[str, float]] = []
    for name, count in list(FINISHED.items())[: 1 if only_few else 2]:
        url = f"sqlite:///{directory}/{count}.db"
        await finish(url, count)
        measured.append(await pages(url))
        for page, taken in measured[-1].items():
            ratio = f", {taken / measured[0][page]:.2f} of it beside a thousand"
            print(f"{page}: {taken:.1f} ms beside {name}{ratio if len(measured) > 1 else ''}")


def main() -> None:
    """Run it, in a directory that is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="landed-bench-") as directory:
        asyncio.run(compare(directory, only_few="--few" in sys.argv))


if __name__ == "__main__":
    main()
