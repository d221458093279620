"""A store behind a thread is to a simulation what SQLite in memory is: the same, and at once."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from landed.core.changes import Changes
from landed.core.errors import LeaseLostError, StaleWriteError, StoreError
from landed.core.store import Store
from landed.stores.sqlite import open_sqlite
from landed.testing import inline as inlined
from landed.testing.check_store import CHECKS, Maker
from landed.testing.inline import InlineStore, inline
from landed.testing.sim import World
from landed.testing.store_checks.suite import inserted, made, moved

pytestmark = pytest.mark.usefixtures("quiet")

# Of random programs there are enough without a thread.
CHECKED = [name for name in CHECKS if name != "programs_do_what_apply_does"]


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "agent.db")


@pytest.fixture
def base(path: str) -> Iterator[InlineStore]:
    """A store in a file, for only its own loop's thread may use it."""

    async def open_one() -> Store:
        return open_sqlite(path)

    with inline(open_one) as one:
        yield one


@pytest.mark.parametrize("name", CHECKED)
def test_it_keeps_the_contract_of_the_store_behind_it(name: str, base: InlineStore) -> None:
    async def make() -> Store:
        return base.open_again()

    async def again(store: Store) -> Store:
        assert isinstance(store, InlineStore)
        return store.open_again()

    async def check() -> None:
        await CHECKS[name](Maker(make=make, again=again))

    asyncio.run(check())


def test_to_the_simulation_no_time_goes_by(base: InlineStore) -> None:
    async def commits() -> None:
        for n in range(3):
            await inserted(base, f"op-{n}")
        assert len(await base.load("op-0", "op-1", "op-2")) == 3

    with World() as world:
        world.run(commits)
        assert world.timeline.now_s == 0.0


def test_what_is_committed_in_one_tick_is_handed_over_together(base: InlineStore) -> None:
    together: list[int] = []
    hand_over = base._home.ask

    def counted(act: Any) -> Any:
        together.append(1)
        return hand_over(act)

    async def commits() -> None:
        base._home.ask = counted  # type: ignore[method-assign]
        await asyncio.gather(*(inserted(base, f"op-{n}") for n in range(20)))

    with World() as world:
        world.run(commits)
    assert len(together) == 2, "the first goes alone, for nobody knows of company yet"


def test_an_error_comes_through_as_it_was_raised(base: InlineStore) -> None:
    async def commits() -> None:
        record = await inserted(base, "op-1")
        await base.commit(Changes(moves=(moved(record, "sent"),)))
        with pytest.raises(StaleWriteError) as refused:
            await base.commit(Changes(moves=(moved(record, "sent"),)))
        stale = refused.value
        assert (stale.record, stale.expected, stale.found) == ("op-1", 1, 2)

    with World() as world:
        world.run(commits)


def test_a_caller_that_is_cancelled_undoes_nothing(base: InlineStore) -> None:
    async def commits() -> None:
        await asyncio.gather(*(inserted(base, f"op-{n}") for n in range(2)))
        waiting = [asyncio.ensure_future(inserted(base, f"late-{n}")) for n in range(2)]
        await asyncio.sleep(0)
        for one in waiting:
            one.cancel()
        ended = await asyncio.gather(*waiting, return_exceptions=True)
        assert all(isinstance(one, asyncio.CancelledError) for one in ended)
        assert len(await base.open_again().load("late-0", "late-1")) == 2

    with World() as world:
        world.run(commits)


def test_what_a_killed_worker_held_may_be_claimed_at_once(base: InlineStore) -> None:
    async def one() -> None:
        mine, other = base.open_again(), base.open_again()
        await mine.renew(worker="w1", until=1e12)
        await other.renew(worker="w2", until=1e12)
        await inserted(mine, "op-1", worker="w1")
        assert await other.claim(worker="w2", now=1.0) == ()
        base.worker_died("w2-of-another-world")
        base.worker_died("w1")
        (taken,) = await other.claim(worker="w2", now=1.0)
        assert (taken.id, taken.worker) == ("op-1", "w2")
        with pytest.raises(LeaseLostError):
            await mine.renew(worker="w1", until=1e12)

    with World() as world:
        world.run(one)


def test_to_bury_a_worker_ends_no_other_of_its_name(base: InlineStore) -> None:
    async def one() -> None:
        first, second, third = (base.open_again() for _ in range(3))
        await first.renew(worker="w", until=1e12)
        await first.retire(worker="w")
        await second.renew(worker="w", until=1e12)
        await inserted(second, "op-1", worker="w")
        await first.close()
        first.end_lease("w")
        await third.renew(worker="w3", until=1e12)
        assert await third.claim(worker="w3", now=1.0) == ()

    with World() as world:
        world.run(one)


def test_in_the_end_every_store_is_closed_and_the_thread_is_over(path: str) -> None:
    async def open_one() -> Store:
        return open_sqlite(path)

    with inline(open_one) as base:
        again = base.open_again()
        assert any(one.name == "landed-inline" for one in threading.enumerate())
    assert not any(one.name == "landed-inline" for one in threading.enumerate())
    assert again._home.opened


def test_a_store_that_is_closed_says_so(base: InlineStore) -> None:
    async def one() -> None:
        again = base.open_again()
        await again.close()
        with pytest.raises(StoreError, match="was closed"):
            await again.load("op-1")
        assert await base.load("op-1") == ()

    with World() as world:
        world.run(one)


def test_a_store_that_cannot_be_opened_leaves_no_thread(tmp_path: Path) -> None:
    async def open_one() -> Store:
        return open_sqlite(str(tmp_path))

    with pytest.raises(StoreError), inline(open_one):
        pass
    assert not any(one.name == "landed-inline" for one in threading.enumerate())


def test_a_store_that_does_not_answer_holds_the_simulation_up_within_a_bound(
    base: InlineStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(*ids: str) -> Any:
        await asyncio.Event().wait()

    monkeypatch.setattr(inlined, "ANSWER_MAX_S", 0.05)
    monkeypatch.setattr(base._inner, "load", never)
    with World() as world, pytest.raises(StoreError, match="did not answer"):
        world.run(lambda: base.load("op-1"))


def test_units_of_one_tick_are_judged_each_for_itself(base: InlineStore) -> None:
    async def commits() -> None:
        units = [Changes(moves=(made(id),)) for id in ("op-1", "op-2", "op-1", "op-3")]
        ended = await asyncio.gather(*map(base.commit, units), return_exceptions=True)
        assert [isinstance(one, StaleWriteError) for one in ended] == [False, False, True, False]

    with World() as world:
        world.run(commits)
