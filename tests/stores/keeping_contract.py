"""What every store must do for what is over: one suite, which SQLite and Postgres both pass."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

from landed.core.changes import Changes, Kind, Record
from landed.core.erasing import Erasure, erasing
from landed.core.keeping import KeepingStore
from landed.core.session import Input, opening
from landed.testing.store_checks.suite import moved

Contract = Callable[[KeepingStore], Awaitable[None]]
KEEPING: dict[str, Contract] = {}

SECRET = "4111-1111"
ERASURE = Erasure(by="ana", why="she asked", at=9.5)


def demand(check: Contract) -> Contract:
    KEEPING[check.__name__] = check
    return check


async def heard(store: KeepingStore, id: str, *, session: str = "s", tenant: str = "t") -> Record:
    """Write an input down, and return its record."""
    said = Input(
        id=id,
        tenant=tenant,
        session=session,
        principal="ana",
        text=f"{SECRET} {id}",
        origin="user",
        delivery="",
        turn=f"turn-{id}",
        at=1.5,
    )
    record, _ = await store.commit(opening(said))
    return record


async def erase(store: KeepingStore, record: Record, erasure: Erasure = ERASURE) -> Record:
    """Append the erasure, and let the earlier bodies go."""
    erased = await append(store, record, erasure)
    await store.keeping().let_go(record.id)
    return erased


async def append(store: KeepingStore, record: Record, erasure: Erasure = ERASURE) -> Record:
    move = erasing(record, erasure)
    assert move is not None
    (erased,) = await store.commit(Changes(moves=(move,)))
    return erased


async def bodies(store: KeepingStore, id: str) -> list[str | None]:
    entries = await store.journal(record=id)
    return [None if entry.body is None else entry.body.decode() for entry in entries]


@demand
async def an_erased_record_is_what_is_left_of_it(store: KeepingStore) -> None:
    record = await heard(store, "in-1")
    before = await store.journal(record="in-1")
    await erase(store, record)
    (left,) = await store.load("in-1")
    assert left.frozen == {**record.frozen, "text": "(erased on 1970-01-01)"}
    assert (left.state, left.version, left.made) == ("received", 2, record.made)
    entries = await store.journal(record="in-1")
    assert [replace(entry, body=None) for entry in before] == list(entries[:1])
    assert (await store.session_records(tenant="t", session="s"))[0] == left
    assert SECRET not in repr(entries)


@demand
async def a_record_whose_bodies_were_not_let_go_yet_reads_as_erased(store: KeepingStore) -> None:
    record = await heard(store, "in-1")
    await append(store, record)
    (half,) = await store.load("in-1")
    assert half.frozen["text"] == "(erased on 1970-01-01)"
    (kept, _) = await store.keeping().kept(tenant="t", session="s")
    assert not kept.is_erased  # So that it is erased again.
    await erase(store, half)
    assert SECRET not in repr(await bodies(store, "in-1"))
    (whole,) = await store.load("in-1")
    assert whole.frozen == half.frozen


@demand
async def what_is_not_erased_is_left_alone(store: KeepingStore) -> None:
    records = [await heard(store, f"in-{n}") for n in range(3)]
    await erase(store, records[1])
    before = await store.journal()
    await store.keeping().let_go("in-0", "in-1", "in-2", "in-9")
    await store.keeping().let_go()
    assert await store.journal() == before
    assert await store.load("in-0", "in-2") == (records[0], records[2])


@demand
async def an_erased_record_moves_on_under_what_is_left(store: KeepingStore) -> None:
    record = await heard(store, "in-1")
    erased = await erase(store, record)
    (after,) = await store.commit(Changes(moves=(moved(erased, "noted", open=False),)))
    (found,) = await store.load("in-1")
    assert found == replace(after, frozen={**record.frozen, "text": "(erased on 1970-01-01)"})
    (kept, _) = await store.keeping().kept(tenant="t", session="s")
    assert (kept.is_erased, kept.at) == (False, 2.5)


@demand
async def who_erased_first_is_still_told_after_another_erasure(store: KeepingStore) -> None:
    record = await heard(store, "in-1")
    erased = await erase(store, record)
    (after,) = await store.commit(Changes(moves=(moved(erased, "noted", open=False),)))
    await erase(store, after, replace(ERASURE, by="bob"))
    first, by_ana, noted, by_bob = await bodies(store, "in-1")
    assert (first, noted) == (None, None)
    assert '"by":"ana"' in str(by_ana)
    assert '"by":"bob"' in str(by_bob)


@demand
async def conversations_are_listed_in_order_and_in_pages(store: KeepingStore) -> None:
    for tenant, session in (("t", "b"), ("u", "a"), ("t", "a"), ("t", "b")):
        id = f"in-{tenant}{session}{len(await store.journal())}"
        await heard(store, id, session=session, tenant=tenant)
    keeping = store.keeping()
    assert await keeping.sessions() == (("t", "a"), ("t", "b"), ("u", "a"))
    assert await keeping.sessions(after=("t", "a"), limit=1) == (("t", "b"),)
    assert await keeping.sessions(after=("u", "a")) == ()


@demand
async def what_is_kept_says_when_it_moved_and_whether_it_is_erased(store: KeepingStore) -> None:
    records = [await heard(store, f"in-{n}") for n in range(2)]
    await erase(store, records[0])
    kept = await store.keeping().kept(tenant="t", session="s")
    inputs = [each for each in kept if each.record.kind is Kind.INPUT]
    assert [(each.record.id, each.at, each.is_erased) for each in inputs] == [
        ("in-0", 9.5, True),
        ("in-1", 1.5, False),
    ]
    later = await store.keeping().kept(tenant="t", session="s", after=records[0].made, limit=1)
    assert [each.record.id for each in later] == ["turn-in-0"]


@demand
async def others_write_while_details_go(store: KeepingStore) -> None:
    records = [await heard(store, f"in-{n}", session="old") for n in range(20)]
    erasures = (erase(store, record) for record in records)
    writes = (heard(store, f"in-new{n}", session="new") for n in range(20))
    await asyncio.gather(*erasures, *writes)
    assert len(await store.session_records(tenant="t", session="new")) == 40
    old = await store.keeping().kept(tenant="t", session="old")
    assert sum(each.is_erased for each in old) == 20
