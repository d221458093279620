"""Where tenants wait for one service, each has its turn: one's many keep no other waiting."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from landed.core.pacing import Pace, Pacing
from landed.core.seats import Seats
from tests.core.test_pacing import FIRST, NOW, Crowd, most_in

PER_S = 10.0


@dataclass
class Tenants(Crowd):
    """A crowd in which who waits is named `tenant/number`."""

    def tenant(self, key: str) -> str:
        return key.split("/")[0]

    def join_many(self, tenant: str, count: int, *, at: float) -> None:
        for n in range(count):
            self.join(f"{tenant}/{n:05}", at=at)

    def left_at(self, tenant: str) -> list[float]:
        return [at - NOW for at, key in self.left if self.tenant(key) == tenant]


def crowd(*, burst: int = 1) -> Tenants:
    return Tenants(Pacing(usual=Pace(per_s=PER_S, burst=burst)))


@pytest.mark.fault("X77")
def test_ten_thousand_of_one_tenant_do_not_keep_anothers_single_one_waiting() -> None:
    crowd_ = crowd()
    crowd_.join_many("big", 10_000, at=NOW)
    crowd_.join("small/1", at=NOW + 50.0)
    crowd_.go_on()
    (waited_s,) = (at - 50.0 for at in crowd_.left_at("small"))
    assert waited_s <= 2 / PER_S + 1e-6
    assert len(crowd_.left) == 10_001


@pytest.mark.fault("X77")
def test_the_nth_of_a_tenant_waits_for_about_n_of_each_other() -> None:
    crowd_ = crowd()
    crowd_.join_many("big", 2_000, at=NOW)
    crowd_.join_many("some", 20, at=NOW + 1.0)
    crowd_.join_many("few", 5, at=NOW + 1.0)
    crowd_.go_on()
    for tenant, share in (("some", 3), ("few", 3)):
        for n, at in enumerate(crowd_.left_at(tenant), 1):
            assert at - 1.0 <= (share * n + 3) / PER_S + 1e-6
    # What waits longest goes on: it has what the others leave, and ends when all of it has left.
    assert crowd_.now - NOW == pytest.approx(2_024 / PER_S)
    assert crowd_.asked <= 3 * 2_025


@pytest.mark.fault("X77")
def test_a_tenant_that_always_has_one_more_leaves_the_others_every_second_seat() -> None:
    crowd_ = crowd()
    crowd_.join_many("big", 100, at=NOW)

    def again(key: str, at: float) -> None:
        if crowd_.tenant(key) == "busy" and at < NOW + 10.0:
            crowd_.join(f"busy/{at}", at=at)

    crowd_.join("busy/0", at=NOW)
    crowd_.go_on(then=again)
    before = [at for at in crowd_.left_at("big") if at <= 10.0]
    assert len(before) >= 45
    assert max(b - a for a, b in pairwise(crowd_.left_at("big"))) <= 3 / PER_S + 1e-6


def test_in_a_tenant_they_leave_in_the_order_in_which_they_came() -> None:
    crowd_ = crowd()
    crowd_.join_many("big", 50, at=NOW)
    crowd_.join_many("small", 10, at=NOW + 1.0)
    crowd_.go_on()
    for tenant in ("big", "small"):
        keys = [key for _, key in crowd_.left if crowd_.tenant(key) == tenant]
        assert keys == sorted(keys)


@pytest.mark.fault("X77")
@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.floats(0.0, 5.0), st.booleans()),
        min_size=1,
        max_size=60,
    ),
    st.integers(1, 4),
)
def test_however_they_come_and_go_the_pace_is_kept_and_nobody_is_forgotten(
    comings: list[tuple[str, float, bool]], burst: int
) -> None:
    """Some never come back for their seat: they were settled otherwise."""
    crowd_ = crowd(burst=burst)
    stays = {f"{tenant}/{n}" for n, (tenant, _, stays) in enumerate(comings) if stays}
    turn = crowd_.paces.turn

    for n, (tenant, at, _) in enumerate(comings):
        crowd_.join(f"{tenant}/{n}", at=NOW + at)
    crowd_.paces.turn = _forgetting(turn, stays)  # type: ignore[method-assign]
    crowd_.go_on()
    moments = [at for at, key in crowd_.left]
    assert stays <= {key for _, key in crowd_.left}
    for window_s in (0.5, 2.0):
        assert most_in(moments, window_s) <= 2 * burst + 1 + PER_S * window_s
    assert crowd_.now <= NOW + 5.0 + 2 * len(comings) / PER_S + burst / PER_S


def _forgetting(turn: Callable[..., float], stays: set[str]) -> Callable[..., float]:
    def asked(service: str, key: str, **asking: float) -> float:
        at = turn(service, key, **asking)
        return at if key in stays else min(at, asking["now"])  # It takes its leave either way.

    return asked


def test_who_does_not_come_to_its_seat_loses_it_and_holds_up_nobody() -> None:
    seats = Seats(late_s=1.0, most=100)
    for n in range(4):
        seats.give(f"gone-{n}", tenant="big", late=NOW + n, now=NOW)
    assert seats.give("new", tenant="small", late=NOW + 9.0, now=NOW + 3.5) == NOW + 9.0
    assert list(seats) == ["gone-3", "new"]
    assert seats.of("gone-3", NOW + 4.5) is None
    assert seats.of("gone-0", NOW) is None


def test_asking_for_a_tenant_is_asking_in_its_name() -> None:
    paces = Pacing(usual=Pace(per_s=1.0, burst=1))

    def turn(key: str, tenant: str) -> float:
        return paces.turn("shop", key, kind=FIRST, now=NOW, chance=0.0, tenant=tenant) - NOW

    assert [turn(f"a-{n}", "a") for n in range(4)] == [0.0, 1.0, 2.0, 3.0]
    assert [turn("b", "b"), turn("a-2", "a"), turn("a-3", "a")] == [2.0, 3.0, 4.0]
