"""What a store must do when it is opened twice, as by two processes."""

import asyncio

from landed.core.changes import Changes
from landed.core.journal import GENESIS
from landed.core.store import Store
from landed.testing.store_checks.suite import (
    FAR,
    check_handles,
    demand_stale,
    inserted,
    made,
    moved,
    refusal,
)


@check_handles
async def handles_see_each_other(first: Store, second: Store) -> None:
    """What one handle wrote, the other reads and goes on from."""
    record = await inserted(first, "op-1")
    assert await second.load("op-1") == (record,)
    (record_2,) = await second.commit(Changes(moves=(moved(record, "sent"),)))
    error = await refusal(first, Changes(moves=(moved(record, "unknown"),)))
    demand_stale(error, record="op-1", expected=1, found=2)
    assert await first.load("op-1") == (record_2,)


@check_handles
async def handles_leave_whole_chains(first: Store, second: Store) -> None:
    """Two handles that write at once leave one chain or two, and no epoch drawn twice."""

    async def write(store: Store, name: str) -> None:
        for n in range(5):
            await inserted(store, f"{name}-{n}")

    await asyncio.gather(write(first, "a"), write(second, "b"))
    entries = await first.journal()
    earlier = {GENESIS}
    for entry in entries:
        assert entry.prev in earlier, "an entry is linked to one before it"
        earlier.add(entry.hash)
    ends = earlier - {entry.prev for entry in entries}
    assert 1 <= len(ends) <= 2, "a handle goes on from its own last entry, or from the last of all"
    assert len({entry.id for entry in entries}) == 10
    epochs = {record.epoch for record in await first.load(*(entry.id for entry in entries))}
    assert len(epochs) == 10, "no epoch was drawn twice"


@check_handles
async def a_living_worker_is_left_alone(first: Store, second: Store) -> None:
    """The worker of another handle keeps its records until it retires."""
    await first.renew(worker="a", until=FAR)
    record = await inserted(first, "op-1", worker="a")
    await second.renew(worker="b", until=FAR)
    assert await second.claim(worker="b", now=1.0) == ()
    await first.retire(worker="a")
    (claimed,) = await second.claim(worker="b", now=1.0)
    assert claimed.epoch > record.epoch


@check_handles
async def claims_of_two_handles_exclude_each_other(first: Store, second: Store) -> None:
    """Two handles claim one record at once: one gets it."""
    await first.renew(worker="a", until=FAR)
    await second.renew(worker="b", until=FAR)
    for n in range(10):
        await inserted(first, f"op-{n}", worker="gone")
        claims = (first.claim(worker="a", now=1.0), second.claim(worker="b", now=1.0))
        won = [claimed for claimed in await asyncio.gather(*claims) if claimed]
        assert [len(claimed) for claimed in won] == [1], f"{len(won)} handles claimed one record"


@check_handles
async def a_cancelled_caller_undoes_nothing(first: Store, second: Store) -> None:
    """What was handed over is written, whoever stopped waiting."""
    units = [Changes(moves=(made(f"op-{n}"),)) for n in range(5)]
    callers = [asyncio.ensure_future(second.commit(unit)) for unit in units]
    await asyncio.sleep(0)  # Each has handed over its unit.
    for caller in callers:
        caller.cancel()
    await asyncio.gather(*callers, return_exceptions=True)
    await second.close()
    assert len(await first.load(*(f"op-{n}" for n in range(5)))) == 5
