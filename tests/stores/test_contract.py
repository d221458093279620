"""The SQLite store keeps the contract of the seam, on disk and in memory; the suite sees if not."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings

from landed.core.census import census
from landed.core.changes import Changes, Record
from landed.core.errors import StoreError
from landed.core.store import Fact, Store
from landed.stores.opening import Settings, open_memory
from landed.stores.sqlite import SqliteStore, open_sqlite
from landed.testing.check_store import CHECKS, Maker, check_store
from landed.testing.store_checks.programs import Step, Unit, compare, programs
from landed.testing.store_checks.suite import inserted

pytestmark = pytest.mark.anyio

SECRET = b"a secret of the test"


async def open_again(store: Store) -> Store:
    assert isinstance(store, SqliteStore)
    return store.open_again()


async def in_memory() -> Store:
    return open_sqlite(":memory:", secret=SECRET)


@pytest.fixture(params=["file", "memory"])
def maker(request: pytest.FixtureRequest, tmp_path: Path) -> Maker:
    numbers = itertools.count()

    async def on_disk() -> Store:
        return open_sqlite(str(tmp_path / f"{next(numbers)}.db"), secret=SECRET)

    make = on_disk if request.param == "file" else in_memory
    return Maker(make=make, again=open_again, secret=SECRET)


CLAIMED = {
    "one_of_ten_claims_wins": pytest.mark.fault("X19"),
    "who_lost_a_claim_writes_nothing": pytest.mark.req("S4-25"),
    "claims_of_two_handles_exclude_each_other": pytest.mark.req("S4-24"),
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=CLAIMED.get(name, ())) for name in CHECKS]
)
async def test_the_store_keeps_its_contract(name: str, maker: Maker) -> None:
    await CHECKS[name](maker)


async def test_the_suite_names_what_it_ran() -> None:
    assert await check_store(in_memory, again=open_again, secret=SECRET) == tuple(CHECKS)
    alone = await check_store(in_memory, secret=SECRET)
    assert set(CHECKS) - set(alone) == {
        "handles_see_each_other",
        "handles_leave_whole_chains",
        "a_living_worker_is_left_alone",
        "claims_of_two_handles_exclude_each_other",
        "a_cancelled_caller_undoes_nothing",
    }


async def test_two_stores_on_one_file_write_one_chain(tmp_path: Path) -> None:
    first = open_sqlite(str(tmp_path / "agent.db"), secret=SECRET)
    second = first.open_again()
    for n in range(4):
        await inserted((first, second)[n % 2], f"op-{n}")
    entries = await first.journal()
    assert [entry.prev for entry in entries] == ["", *(entry.hash for entry in entries[:-1])]
    await second.close()
    await first.close()


@pytest.mark.fault("X19")
async def test_of_ten_claims_at_once_one_wins_a_thousand_times() -> None:
    store = open_sqlite(":memory:")
    workers = [f"w{n}" for n in range(10)]
    for worker in workers:
        await store.renew(worker=worker, until=1e12)
    epochs = [0]
    for n in range(1000):
        await inserted(store, f"op-{n}", worker="gone")
        claims = (store.claim(worker=worker, now=1.0) for worker in workers)
        (won,) = [claimed for claimed in await asyncio.gather(*claims) if claimed]
        epochs.append(won[0].epoch)
    assert epochs == sorted(set(epochs))
    await store.close()


@settings(max_examples=150)
@given(programs())
def test_units_committed_together_do_what_apply_does_one_after_the_other(
    program: list[Unit],
) -> None:
    asyncio.run(compare(in_memory, program, at_once=4))


# Planted bugs: a suite that finds none of them would prove nothing.


class Broken(SqliteStore):
    """Breaks one promise; each subclass another."""


class IgnoresGuards(Broken):
    async def commit(self, changes: Changes) -> tuple[Record, ...]:
        return await super().commit(replace(changes, guards=()))


class TellsBeforeItIsStored(Broken):
    async def commit(self, changes: Changes) -> tuple[Record, ...]:
        try:
            return await super().commit(changes)
        except StoreError:
            return tuple(move.after for move in changes.moves)


class SplitsUnits(Broken):
    async def commit(self, changes: Changes) -> tuple[Record, ...]:
        if len(changes.moves) < 2:
            return await super().commit(changes)
        first = await super().commit(replace(changes, moves=changes.moves[:1], takes=(), frees=()))
        return first + await super().commit(replace(changes, moves=changes.moves[1:]))


class FreesLate(Broken):
    async def commit(self, changes: Changes) -> tuple[Record, ...]:
        moved = await super().commit(replace(changes, frees=()))
        await super().commit(Changes(frees=changes.frees))
        return moved


class ClaimsFromTheLiving(Broken):
    async def claim(self, *, worker: str, now: float, limit: int = 100) -> tuple[Record, ...]:
        return await super().claim(worker=worker, now=2e12, limit=limit)


class ClaimsAll(Broken):
    async def claim(self, *, worker: str, now: float, limit: int = 100) -> tuple[Record, ...]:
        return await super().claim(worker=worker, now=now)


class KeepsTheEpoch(Broken):
    async def claim(self, *, worker: str, now: float, limit: int = 100) -> tuple[Record, ...]:
        claimed = await super().claim(worker=worker, now=now, limit=limit)
        return tuple(replace(record, epoch=1) for record in claimed)


class RenewsForEver(Broken):
    async def renew(self, *, worker: str, until: float) -> None:
        try:
            await super().renew(worker=worker, until=until)
        except StoreError:
            await super().renew(worker=worker, until=until)


class MixesSessions(Broken):
    async def session_records(
        self, *, tenant: str, session: str, after: int = 0, limit: int = 1000
    ) -> tuple[Record, ...]:
        mine = await super().session_records(tenant=tenant, session=session, after=after)
        others = await super().session_records(tenant=tenant, session="s2", after=after)
        return (mine + others)[:limit]


class CountsTheFinished(Broken):
    async def facts(self) -> tuple[Fact, ...]:
        every = await self.session_records(tenant="t", session="s")
        return census(open=[("operation", one.state, 1) for one in every], waiting=[], oldest=[])


PLANTED: list[tuple[type[Broken], str]] = [
    (IgnoresGuards, "guards_hold_or_refuse"),
    (TellsBeforeItIsStored, "a_stale_unit_leaves_nothing"),
    (SplitsUnits, "a_stale_unit_leaves_nothing"),
    (FreesLate, "a_name_is_held_by_one"),
    (ClaimsFromTheLiving, "a_claim_takes_only_from_the_dead"),
    (ClaimsAll, "a_claim_is_bounded_and_oldest_first"),
    (KeepsTheEpoch, "a_claim_is_no_event"),
    (RenewsForEver, "an_ended_registration_is_told"),
    (MixesSessions, "sessions_and_tenants_are_apart"),
    (CountsTheFinished, "what_is_open_is_counted"),
]


@pytest.mark.parametrize(("broken", "finds"), PLANTED)
async def test_the_suite_finds_planted_bugs(broken: type[Broken], finds: str) -> None:
    maker = Maker(make=maker_of(broken), secret=SECRET)
    with pytest.raises((AssertionError, StoreError, ValueError)):
        await CHECKS[finds](maker)
    with pytest.raises((AssertionError, StoreError, ValueError)) as caught:
        await check_store(maker.make, secret=SECRET)
    assert caught.value.__notes__[0].removeprefix("check_store: ") in CHECKS


@pytest.mark.parametrize("broken", [IgnoresGuards, TellsBeforeItIsStored, SplitsUnits, FreesLate])
async def test_programs_find_planted_bugs(broken: type[Broken]) -> None:
    step = Step(id="a", state="sent", open=True, changing={})
    program = [
        Unit(steps=(step,), takes=(("x", "a"),)),
        Unit(steps=(step,), frees=(("x", "a"),), takes=(("x", "b"),)),
        Unit(steps=(replace(step, id="b"), replace(step, off=1))),
        Unit(steps=(step,), guards=(("a", 1),)),
    ]
    await compare(in_memory, program)
    with pytest.raises((AssertionError, StoreError)):
        await compare(maker_of(broken), program)


def maker_of(broken: type[Broken]) -> Callable[[], Awaitable[Store]]:
    async def make() -> Store:
        return broken(open_memory(Settings(path=":memory:", secret=SECRET)), owns=True)

    return make
