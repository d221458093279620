"""What a store must do about workers: epochs, leases and taking over."""

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from landed.core.changes import Changes
from landed.core.errors import LeaseLostError
from landed.core.store import Store
from landed.testing.store_checks.suite import (
    FAR,
    check,
    inserted,
    made,
    moved,
    refusal,
)


async def left(store: Store, counts: Mapping[str, int]) -> None:
    """Leave so many open records of each tenant to nobody, one tenant after the other."""
    for tenant, count in counts.items():
        moves = (made(f"op-{tenant}-{n}", worker="gone", tenant=tenant) for n in range(count))
        await store.commit(Changes(moves=tuple(moves)))


async def claimed(store: Store, *, limit: int) -> dict[str, int]:
    """Claim, and return how much of each tenant it was."""
    records = await store.claim(worker="me", now=1.0, limit=limit)
    return dict(sorted(Counter(record.tenant for record in records).items()))


@check
async def epochs_only_rise(store: Store) -> None:
    """Every claim, by inserting or by taking over, has a larger epoch than the last."""
    await store.renew(worker="w", until=FAR)
    drawn = [(await inserted(store, f"op-{n}")).epoch for n in range(3)]
    both = await store.commit(Changes(moves=(made("op-3"), made("op-4"))))
    drawn.append(both[0].epoch)
    assert both[0].epoch == both[1].epoch, "one unit draws one epoch"
    await store.retire(worker="w")
    claimed = await store.claim(worker="v", now=1.0)
    drawn.append(claimed[0].epoch)
    drawn.append((await inserted(store, "op-5", worker="v")).epoch)
    assert drawn == sorted(set(drawn)), f"epochs must rise strictly: {drawn}"


@check
async def inserts_under_a_claim_carry_it(store: Store) -> None:
    """What is inserted under a claim has its epoch; born closed, none."""
    plan = await inserted(store, "plan-1")
    moves = (made("op-1"), made("message-1", open=False))
    under = await store.commit(Changes(moves=moves, epoch=plan.epoch))
    assert [record.epoch for record in under] == [plan.epoch, 0]
    assert (await inserted(store, "op-2")).epoch == plan.epoch + 1, "nothing was drawn for those"


@check
async def a_claim_takes_only_from_the_dead(store: Store) -> None:
    """Only what nobody living holds is claimed, and never one's own."""
    await store.renew(worker="alive", until=FAR)
    await store.renew(worker="late", until=10.0)
    await store.renew(worker="me", until=10.0)
    for worker in ("alive", "late", "me", "unknown"):
        await inserted(store, f"op-{worker}", worker=worker)
    claimed = await store.claim(worker="me", now=9.0)
    assert [record.id for record in claimed] == ["op-unknown"]
    claimed = await store.claim(worker="me", now=10.0)
    assert [record.id for record in claimed] == ["op-late"]
    assert await store.claim(worker="me", now=11.0) == ()
    await store.retire(worker="alive")
    claimed = await store.claim(worker="me", now=11.0)
    assert [record.id for record in claimed] == ["op-alive"]


@check
async def a_claim_is_no_event(store: Store) -> None:
    """A claim changes the worker and the epoch of a record, and nothing else."""
    record = await inserted(store, "op-1", worker="gone")
    await store.commit(Changes(moves=(made("op-2", worker="gone", open=False),)))
    entries = await store.journal()
    (claimed,) = await store.claim(worker="me", now=1.0)
    assert claimed == replace(record, worker="me", epoch=claimed.epoch)
    assert await store.load("op-1") == (claimed,)
    assert await store.journal() == entries


@check
async def who_lost_a_claim_writes_nothing(store: Store) -> None:
    """The worker that was paused is refused; the new one goes on."""
    await store.renew(worker="a", until=10.0)
    paused = await inserted(store, "op-1", worker="a")
    (claimed,) = await store.claim(worker="b", now=11.0)
    error = await refusal(store, Changes(moves=(moved(paused, "confirmed"),)))
    assert isinstance(error, LeaseLostError), f"LeaseLostError expected, not {error!r}"
    assert (error.held, error.found) == (paused.epoch, claimed.epoch)
    (record,) = await store.commit(Changes(moves=(moved(claimed, "unknown"),)))
    assert (record.version, record.worker) == (2, "b")


@check
async def an_ended_registration_is_told(store: Store) -> None:
    """A lease can be extended until another worker claimed from it."""
    await store.renew(worker="a", until=10.0)
    await store.renew(worker="a", until=20.0)
    await inserted(store, "op-1", worker="a")
    assert await store.claim(worker="b", now=19.0) == (), "the lease was extended"
    assert len(await store.claim(worker="b", now=20.0)) == 1
    try:
        await store.renew(worker="a", until=30.0)
    except LeaseLostError:
        return
    raise AssertionError("a worker whose records were claimed could renew its lease")


@check
async def a_claim_is_bounded_and_oldest_first(store: Store) -> None:
    """`limit` bounds a claim; what is left is for the next one."""
    for n in range(5):
        await inserted(store, f"op-{n}", worker="gone")
    pages = [await store.claim(worker="me", now=1.0, limit=2) for _ in range(4)]
    ids = [[record.id for record in page] for page in pages]
    assert ids == [["op-0", "op-1"], ["op-2", "op-3"], ["op-4"], []]
    epochs = [{record.epoch for record in page} for page in pages[:3]]
    assert all(len(drawn) == 1 for drawn in epochs), "one call draws one epoch"


@check
async def tenants_share_a_claim(store: Store) -> None:
    """One tenant's many keep no other waiting; what one leaves of its share goes to the others."""
    await left(store, {"many": 9, "few": 1, "some": 3})
    first, second, third = [await claimed(store, limit=6) for _ in range(3)]
    assert first == {"few": 1, "many": 3, "some": 2}, f"it was not shared: {first}"
    assert second == {"many": 5, "some": 1}, f"what a tenant leaves is for the others: {second}"
    assert third == {"many": 1}, f"nothing may be left behind: {third}"


@check
async def in_each_tenant_the_oldest_goes_first(store: Store) -> None:
    """Whoever left it, and whatever it is called."""
    for n, worker in enumerate(("gone", "lost", "gone", "lost")):
        for tenant in ("a", "b"):
            move = made(f"op-{9 - n}{tenant}", worker=worker, tenant=tenant)
            await store.commit(Changes(moves=(move,)))
    pages = [await store.claim(worker="me", now=1.0, limit=4) for _ in range(3)]
    ids = [[record.id for record in page] for page in pages]
    assert ids == [["op-9a", "op-9b", "op-8a", "op-8b"], ["op-7a", "op-7b", "op-6a", "op-6b"], []]


@check
async def more_tenants_than_places_take_turns(store: Store) -> None:
    """The next claim begins with those that the last one did not reach."""
    await left(store, dict.fromkeys("abcde", 2))
    turns = ["".join(await claimed(store, limit=2)) for _ in range(6)]
    assert turns == ["ab", "cd", "ae", "bc", "de", ""], f"not in turns: {turns}"


@check
async def one_of_ten_claims_wins(store: Store) -> None:
    """Ten workers claim one record at once: one gets it."""
    workers = [f"w{n}" for n in range(10)]
    for worker in workers:
        await store.renew(worker=worker, until=FAR)
    for n in range(10):
        await inserted(store, f"op-{n}", worker="gone")
        claims = (store.claim(worker=worker, now=1.0) for worker in workers)
        won = [claimed for claimed in await asyncio.gather(*claims) if claimed]
        assert [len(claimed) for claimed in won] == [1], f"{len(won)} workers claimed one record"
