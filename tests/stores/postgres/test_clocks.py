"""Leases are kept in the server's time: clocks that are off neither take over nor hold on."""

import pytest

from landed.core.changes import Changes
from landed.core.errors import LeaseLostError
from landed.stores.postgres import PostgresStore
from landed.testing.store_checks.suite import inserted, moved, refusal

pytestmark = [pytest.mark.services, pytest.mark.anyio]

HOUR_S, DAY_S, LEASE_S = 3_600.0, 86_400.0, 30.0


class Clock:
    """A machine's clock, off by as much as it is told; the server's own does not move here."""

    def __init__(self, server_at: float) -> None:
        self.at = server_at

    def __call__(self) -> float:
        return self.at


@pytest.fixture
async def clocks(opened) -> tuple[Clock, Clock, PostgresStore, PostgresStore]:
    """Two machines' clocks, right for now, and a store on each."""
    first = await opened()
    ((now,),) = await first._rows("SELECT extract(epoch FROM clock_timestamp())::float8", ())
    mine, theirs = Clock(now), Clock(now)
    return mine, theirs, await opened(clock=mine), await opened(clock=theirs)


@pytest.mark.fault("X15", "X16")
@pytest.mark.parametrize("off_s", [HOUR_S, -HOUR_S, DAY_S, -DAY_S])
async def test_a_worker_whose_clock_is_off_takes_nothing_from_the_living(clocks, off_s) -> None:
    mine, theirs, one, two = clocks
    theirs.at += off_s
    await one.renew(worker="a", until=mine() + LEASE_S)
    await two.renew(worker="b", until=theirs() + LEASE_S)
    await inserted(one, "op-1", worker="a")
    await inserted(two, "op-2", worker="b")
    assert await two.claim(worker="b", now=theirs()) == ()
    assert await one.claim(worker="a", now=mine()) == ()


@pytest.mark.fault("X15", "X16")
@pytest.mark.parametrize("off_s", [HOUR_S, -HOUR_S, DAY_S, -DAY_S])
async def test_a_lease_ends_in_time_whatever_its_workers_clock_showed(clocks, off_s) -> None:
    mine, theirs, one, two = clocks
    mine.at += off_s
    await one.renew(worker="a", until=mine() + LEASE_S)
    held = await inserted(one, "op-1", worker="a")
    assert await two.claim(worker="b", now=theirs() + LEASE_S - 5) == ()
    (claimed,) = await two.claim(worker="b", now=theirs() + LEASE_S + 5)
    assert claimed.epoch > held.epoch


@pytest.mark.fault("X15")
@pytest.mark.parametrize("jump_s", [HOUR_S, -DAY_S])
async def test_a_jump_neither_extends_a_lease_nor_revives_one(clocks, jump_s) -> None:
    mine, theirs, one, two = clocks
    await one.renew(worker="a", until=mine() + LEASE_S)
    held = await inserted(one, "op-1", worker="a")
    mine.at += jump_s
    assert len(await two.claim(worker="b", now=theirs() + LEASE_S + 5)) == 1
    with pytest.raises(LeaseLostError):
        await one.renew(worker="a", until=mine() + LEASE_S)
    refused = await refusal(one, Changes(moves=(moved(held, "confirmed"),)))
    assert isinstance(refused, LeaseLostError)
