"""What a store must do when it writes: whole units, on their conditions."""

import asyncio
from dataclasses import replace

from landed.core.changes import Changes, Guard, Hold
from landed.core.errors import LeaseLostError, StaleWriteError
from landed.core.store import Store
from landed.testing.store_checks.suite import (
    check,
    demand_stale,
    inserted,
    made,
    moved,
    refusal,
)


@check
async def a_unit_is_written_whole(store: Store) -> None:
    """Two moves and a name go in together, and come back as one record."""
    first = made("op-1")
    second = moved(first.after, "sent")
    hold = Hold(name="target/1", record="op-1")
    returned = await store.commit(Changes(moves=(first, second), takes=(hold,)))
    (record,) = returned
    assert (record.version, record.state, record.changing) == (2, "sent", {"state": "sent"})
    assert (record.made, record.last, record.epoch > 0) == (1, 2, True)
    assert await store.load("op-1") == returned
    assert await store.holders("target/1", "target/2") == {"target/1": "op-1"}


@check
async def records_are_returned_as_stored(store: Store) -> None:
    """What `commit` returns is what `load` finds, event after event."""
    record = await inserted(store, "op-1")
    (record,) = await store.commit(Changes(moves=(moved(record, "sent"),)))
    (record,) = await store.commit(Changes(moves=(moved(record, "confirmed", open=False),)))
    assert (record.version, record.open, record.made, record.last) == (3, False, 1, 3)
    assert record.frozen == made("op-1").after.frozen
    assert await store.load("absent", "op-1", "op-1") == (record, record)


@check
async def a_stale_unit_leaves_nothing(store: Store) -> None:
    """A unit with one stale move leaves no record, no name and no event."""
    record = await inserted(store, "op-1")
    await store.commit(Changes(moves=(moved(record, "sent"),)))
    hold = Hold(name="x", record="op-2")
    stale = Changes(moves=(made("op-2"), moved(record, "unknown")), takes=(hold,))
    demand_stale(await refusal(store, stale), record="op-1", expected=1, found=2)
    assert await store.load("op-2") == ()
    assert await store.holders("x") == {}
    assert len(await store.journal()) == 2


@check
async def an_existing_record_is_not_made_again(store: Store) -> None:
    """A record is made once, and only what exists moves."""
    await inserted(store, "op-1")
    again = Changes(moves=(made("op-1"),))
    demand_stale(await refusal(store, again), record="op-1", expected=0, found=1)
    absent = Changes(moves=(moved(made("op-2").after, "sent"),))
    demand_stale(await refusal(store, absent), record="op-2", expected=1, found=0)


@check
async def another_claim_is_refused(store: Store) -> None:
    """A move under another epoch is refused, and both epochs are named."""
    record = await inserted(store, "op-1")
    other = replace(record, epoch=record.epoch + 1)
    error = await refusal(store, Changes(moves=(moved(other, "sent"),)))
    assert isinstance(error, LeaseLostError), f"LeaseLostError expected, not {error!r}"
    assert (error.record, error.held, error.found) == ("op-1", other.epoch, record.epoch)
    assert await store.load("op-1") == (record,)


@check
async def guards_hold_or_refuse(store: Store) -> None:
    """A unit goes in only while what it guards is at that version, or absent."""
    record = await inserted(store, "plan-1")
    absent = Guard(id="stop-1", version=0)
    there = Guard(id="plan-1", version=1)
    await store.commit(Changes(moves=(made("op-1"),), guards=(absent, there)))
    await store.commit(Changes(moves=(moved(record, "stopping"),)))
    late = Changes(moves=(made("op-2"),), guards=(absent, there))
    demand_stale(await refusal(store, late), record="plan-1", expected=1, found=2)
    exists = Changes(moves=(made("op-2"),), guards=(Guard(id="op-1", version=0),))
    demand_stale(await refusal(store, exists), record="op-1", expected=0, found=1)
    assert await store.load("op-2") == ()


@check
async def a_name_is_held_by_one(store: Store) -> None:
    """A held name is refused, freed only by its holder, and handed on in one unit."""
    first, second = Hold(name="x", record="op-1"), Hold(name="x", record="op-2")
    await store.commit(Changes(moves=(made("op-1"),), takes=(first,)))
    error = await refusal(store, Changes(moves=(made("op-2"),), takes=(second,)))
    assert isinstance(error, StaleWriteError), f"StaleWriteError expected, not {error!r}"
    assert (error.name, error.holder) == ("x", "op-1")
    await store.commit(Changes(frees=(second,)))
    assert await store.holders("x") == {"x": "op-1"}, "a name was freed by another record"
    await store.commit(Changes(frees=(first,), takes=(second,)))
    assert await store.holders("x") == {"x": "op-2"}, "one unit can hand a name on"


@check
async def a_bad_unit_disturbs_no_neighbour(store: Store) -> None:
    """Of nine units committed together, only the stale one is refused."""
    record = await inserted(store, "op-0")
    await store.commit(Changes(moves=(moved(record, "sent"),)))
    units = [Changes(moves=(made(f"op-{n}"),)) for n in range(1, 10)]
    units[4] = Changes(moves=(made("op-5"), moved(record, "unknown")))
    outcomes = await asyncio.gather(*map(store.commit, units), return_exceptions=True)
    bad = [n for n, outcome in enumerate(outcomes) if isinstance(outcome, BaseException)]
    assert bad == [4], f"the fifth of nine was stale; refused were {bad}"
    ids = {record.id for record in await store.session_records(tenant="t", session="s")}
    assert ids == {"op-0", *(f"op-{n}" for n in (1, 2, 3, 4, 6, 7, 8, 9))}


@check
async def one_of_many_equal_moves_wins(store: Store) -> None:
    """Ten moves from one version: one is written."""
    record = await inserted(store, "op-1")
    units = [Changes(moves=(moved(record, f"by-{n}"),)) for n in range(10)]
    outcomes = await asyncio.gather(*map(store.commit, units), return_exceptions=True)
    won = [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]
    assert len(won) == 1, f"{len(won)} of 10 moves from one version were written"
    assert await store.load("op-1") == won[0]


@check
async def one_of_many_takes_wins(store: Store) -> None:
    """Ten units take one name: one gets it, the others are told who."""
    units = [
        Changes(moves=(made(f"op-{n}"),), takes=(Hold(name="x", record=f"op-{n}"),))
        for n in range(10)
    ]
    outcomes = await asyncio.gather(*map(store.commit, units), return_exceptions=True)
    won = [outcome[0].id for outcome in outcomes if not isinstance(outcome, BaseException)]
    assert len(won) == 1, f"{len(won)} of 10 took one name"
    assert await store.holders("x") == {"x": won[0]}
    refused = [outcome for outcome in outcomes if isinstance(outcome, StaleWriteError)]
    assert {error.holder for error in refused} == set(won), "the holder is named"


@check
async def guards_see_their_neighbours(store: Store) -> None:
    """Of two units that guard what the other moves, one is refused."""
    one, two = await inserted(store, "op-1"), await inserted(store, "op-2")
    units = [
        Changes(moves=(moved(one, "sent"),), guards=(Guard(id="op-2", version=1),)),
        Changes(moves=(moved(two, "sent"),), guards=(Guard(id="op-1", version=1),)),
    ]
    await store.commit(Changes(moves=(made("op-0"),)))
    outcomes = await asyncio.gather(*map(store.commit, units), return_exceptions=True)
    won = [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]
    assert len(won) == 1, "each guards what the other moves, so that one of them must be refused"
