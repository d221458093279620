"""Every scenario takes the same course on Postgres as on SQLite: line for line, and to one end.

The stores differ in how they number the journal, who may write at once and what tells the dead from
the living; a run shows none of that. So whole runs are compared, and nothing is left out.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeAlias

import pytest

from landed.stores.postgres import open_postgres
from landed.testing import scenario as restaurant
from landed.testing.deploys import stage as deploys
from landed.testing.deploys.scenarios import DEPLOYS
from landed.testing.doubts import stage as doubts
from landed.testing.doubts.scenarios import DOUBTS
from landed.testing.inline import InlineStore, inline
from landed.testing.invoices import stage as invoices
from landed.testing.invoices.scenarios import INVOICES
from landed.testing.refunds import stage as refunds
from landed.testing.refunds.scenarios import REFUNDS
from landed.testing.scenario import Ran
from landed.testing.scenarios import SCENARIOS
from tests.stores.postgres.embedded import Server

pytestmark = [pytest.mark.services, pytest.mark.req("K29")]

Play: TypeAlias = Callable[..., Ran]
EVERY: dict[str, Play] = {
    **{one.name: partial(restaurant.run, one) for one in SCENARIOS},
    **{one.name: partial(invoices.run, one) for one in INVOICES},
    **{one.name: partial(doubts.run, one) for one in DOUBTS},
    **{one.name: partial(deploys.run, one) for one in DEPLOYS},
    **{one.name: partial(refunds.run, one) for one in REFUNDS},
}
KILLED = (
    *("revise-in-flight", "fee-consent", "double-dispatch", "request-delayed"),
    *("invoice", "invoice-undo", "refund-timeout", "changed-amount"),
)
POINTS = 8  # of each, about


@pytest.fixture
def base(url: str) -> Iterator[InlineStore]:
    with inline(partial(open_postgres, url)) as one:
        yield one


@pytest.mark.parametrize("name", EVERY)
def test_it_takes_the_same_course_to_the_described_end(name: str, base: InlineStore) -> None:
    ran = EVERY[name](base=base)

    assert ran.as_described is True
    assert not ran.unwitnessed
    assert ran.plain() == EVERY[name]().plain()


@pytest.mark.parametrize("name", EVERY)
def test_it_does_so_on_another_schedule(name: str, base: InlineStore) -> None:
    ran = EVERY[name](base=base, seed=3)

    assert ran.as_described is True
    assert ran.plain() == EVERY[name](seed=3).plain()


@pytest.mark.timeout(180)
@pytest.mark.parametrize("name", KILLED)
def test_it_does_so_wherever_it_is_killed(name: str, url: str, server: Server) -> None:
    play = EVERY[name]
    points = [str(point) for point in play(kill=()).points[0]]
    assert len(points) >= POINTS
    for point in points[:: len(points) // POINTS]:
        with inline(partial(open_postgres, url)) as base:
            ran = play(kill=(point,), base=base)
        server.clear(url)
        assert ran.plain() == play(kill=(point,)).plain(), point
        assert [line.text for line in ran.timeline.lines if line.type == "crash"] == [point]
