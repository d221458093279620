"""When sends may leave: paced, held after a 429, and again for at most a tenth of them."""

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from landed.core import pacing
from landed.core.pacing import RETRY_AFTER_MAX_S, SLICES, Backoff, Leaving, Pace, Pacing
from landed.tools.retry_after import retry_after_s

NOW = 1_000.0
FIRST, AGAIN, QUESTION = Leaving.FIRST, Leaving.AGAIN, Leaving.QUESTION


def chance_of(number: int) -> float:
    """Return what looks like chance, and is the same each time."""
    return (number * 0.618_033_988_75) % 1.0


def kind_of(again: bool) -> Leaving:
    return AGAIN if again else FIRST


@dataclass
class Crowd:
    """Many who wait for one service, and come back when they were told to."""

    paces: Pacing
    left: list[tuple[float, str]] = field(default_factory=list)
    asked: int = 0
    now: float = NOW
    waiting: list[tuple[float, int, str, bool]] = field(default_factory=list)

    def tenant(self, key: str) -> str:
        return ""

    def join(self, key: str, *, at: float, again: bool = False) -> None:
        heapq.heappush(self.waiting, (at, len(self.waiting) + self.asked, key, again))

    def go_on(
        self, *, until: float = math.inf, then: Callable[[str, float], None] | None = None
    ) -> None:
        while self.waiting and self.waiting[0][0] <= until:
            at, _, key, again = heapq.heappop(self.waiting)
            self.now = max(self.now, at)
            self.asked += 1
            chance = chance_of(self.asked)
            turn = self.paces.turn(
                "shop",
                key,
                kind=kind_of(again),
                now=self.now,
                chance=chance,
                tenant=self.tenant(key),
            )
            if turn > self.now:
                self.join(key, at=turn, again=again)
                continue
            self.left.append((self.now, key))
            if then is not None:
                then(key, self.now)


def most_in(moments: list[float], window_s: float) -> int:
    """Return the most moments in any window of that length, its ends included."""
    return max(
        (sum(1 for at in moments if start <= at <= start + window_s) for start in moments),
        default=0,
    )


# The pace.


@given(
    st.lists(st.floats(0.0, 20.0), min_size=1, max_size=60),
    st.sampled_from([0.5, 1.0, 3.0, 10.0]),
    st.integers(1, 8),
    st.sampled_from([0.5, 2.0, 10.0]),
)
def test_in_no_window_leaves_more_than_the_pace_allows(
    comings: list[float], per_s: float, burst: int, window_s: float
) -> None:
    crowd = Crowd(Pacing(usual=Pace(per_s=per_s, burst=burst)))
    for number, coming in enumerate(comings):
        crowd.join(f"op-{number}", at=NOW + coming)
    crowd.go_on()
    assert len(crowd.left) == len(comings)
    allowed = burst + per_s * window_s
    assert most_in([at for at, _ in crowd.left], window_s) <= allowed + 1e-6
    # Nobody asks more than twice, and nobody waits for longer than all before it take.
    assert crowd.asked <= 2 * len(comings)
    assert crowd.now <= NOW + max(comings) + len(comings) / per_s + 1e-6


@given(st.lists(st.tuples(st.integers(0, 9), st.floats(0.0, 3.0)), max_size=150))
def test_who_asks_whenever_it_likes_is_paced_too(program: list[tuple[int, float]]) -> None:
    pace, paces, now = Pace(per_s=2.0, burst=3), Pacing(usual=Pace(per_s=2.0, burst=3)), NOW
    left: list[float] = []
    for who, later_s in program:
        now += later_s
        if paces.turn("shop", f"op-{who}", kind=FIRST, now=now, chance=0.5) <= now:
            left.append(now)
    for window_s in (1.0, 5.0):
        assert most_in(left, window_s) <= 2 * pace.burst + 1 + pace.per_s * window_s


def test_seats_that_were_missed_are_not_used_all_at_once() -> None:
    """A hundred have seats, and the process sleeps for longer than all of them."""
    paces = Pacing(usual=Pace(per_s=10.0, burst=3))
    turns: list[float] = []
    for now in (NOW, NOW + 1000.0):
        turns = [paces.turn("shop", f"op-{n}", kind=FIRST, now=now, chance=0.0) for n in range(100)]
    assert sum(1 for turn in turns if turn <= NOW + 1000.0) == 3


def test_those_who_wait_leave_in_the_order_in_which_they_came() -> None:
    crowd = Crowd(Pacing(usual=Pace(per_s=1.0, burst=2)))
    for number in range(50):
        crowd.join(f"op-{number:02}", at=NOW + number / 100)
    crowd.go_on()
    assert [key for _, key in crowd.left] == sorted(key for _, key in crowd.left)
    assert [round(at - NOW) for at, _ in crowd.left] == [0, *range(49)]


def test_asking_again_early_gives_the_same_seat() -> None:
    paces = Pacing(usual=Pace(per_s=1.0, burst=1))
    turns = [paces.turn("shop", "a", kind=FIRST, now=NOW, chance=0.0)]
    turns += [paces.turn("shop", "b", kind=FIRST, now=NOW + n / 10, chance=0.9) for n in range(5)]
    assert turns == [NOW, *[NOW + 1.0] * 5]


def test_each_service_has_a_pace_of_its_own() -> None:
    paces = Pacing(usual=Pace(per_s=1.0, burst=1), paces={"fast": Pace(per_s=100.0, burst=50)})
    for service, at_once in (("shop", 1), ("bank", 1), ("fast", 50)):
        turns = [paces.turn(service, f"op-{n}", kind=FIRST, now=NOW, chance=0.0) for n in range(60)]
        assert sum(1 for turn in turns if turn <= NOW) == at_once


def test_a_seat_that_is_given_up_is_forgotten() -> None:
    paces = Pacing(usual=Pace(per_s=1.0, burst=1))
    for key in ("a", "b"):
        paces.turn("shop", key, kind=FIRST, now=NOW, chance=0.0)
    paces.leave("shop", "b")
    assert not list(paces._lane("shop").seats)
    paces.leave("shop", "never there")


def test_ten_thousand_that_wait_ask_twice_each_and_are_then_forgotten() -> None:
    crowd = Crowd(Pacing(usual=Pace(per_s=50.0, burst=20)))
    for number in range(10_000):
        crowd.join(f"op-{number}", at=NOW)
    crowd.go_on()
    assert crowd.asked <= 20_000
    assert crowd.now - NOW == pytest.approx((10_000 - 20) / 50.0)
    assert not list(crowd.paces._lane("shop").seats)
    assert len(crowd.paces._lane("shop").sent._slices) <= SLICES + 1


def test_seats_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pacing, "SEATS_MAX", 10)
    paces = Pacing(usual=Pace(per_s=1.0, burst=1))
    for number in range(100):
        paces.turn("shop", f"op-{number}", kind=FIRST, now=NOW, chance=0.0)
    assert len(paces._lane("shop").seats) == 10


# Holds.


@pytest.mark.fault("X66")
@given(
    st.integers(1, 40),
    st.floats(0.0, 100.0),
    st.floats(0.0, 0.999),
    st.sampled_from([1.0, 5.0]),
    st.integers(1, 10),
)
@example(40, 30.0, 0.0, 5.0, 10)
def test_after_a_429_nothing_leaves_before_its_time_and_then_no_burst(
    many: int, wait_s: float, chance: float, per_s: float, burst: int
) -> None:
    crowd = Crowd(Pacing(usual=Pace(per_s=per_s, burst=burst)))
    for number in range(many):
        crowd.join(f"op-{number}", at=NOW)
    crowd.go_on(until=NOW)
    until = crowd.paces.slow_down("shop", now=NOW, chance=chance, wait_s=wait_s)
    assert until == pytest.approx(NOW + wait_s * (1.0 + chance / 10.0))
    before = len(crowd.left)
    crowd.go_on()
    later = [at for at, _ in crowd.left[before:]]
    assert len(crowd.left) == many
    assert all(at >= until for at in later)
    for window_s in (1.0, 10.0):
        assert most_in(later, window_s) <= 1 + per_s * window_s + 1e-6


@pytest.mark.fault("X66")
def test_a_storm_of_429s_is_met_by_fewer_and_fewer_requests() -> None:
    """The service refuses everything for five minutes, and names no time."""
    crowd = Crowd(Pacing(usual=Pace(per_s=50.0, burst=20, again_share=1.0)))
    over_at = NOW + 300.0
    refused: list[float] = []

    def answer(key: str, at: float) -> None:
        if at >= over_at:
            crowd.paces.went_well("shop")
            return
        refused.append(at)
        crowd.paces.slow_down("shop", now=at, chance=chance_of(len(refused)))
        crowd.join(key, at=at, again=True)

    for number in range(200):
        crowd.join(f"op-{number}", at=NOW)
    crowd.go_on(then=answer)
    assert {key for _, key in crowd.left} == {f"op-{n}" for n in range(200)}
    # 200 that each try again by themselves, up to a minute apart, would send over 2,000.
    assert len(refused) <= 20
    pauses = [b - a for a, b in pairwise(refused)]
    assert max(pauses[-3:]) > 10 * max(min(pauses), 1.0)
    assert most_in([at for at, _ in crowd.left if at >= over_at], 1.0) <= 52


@pytest.mark.fault("X66")
def test_holds_without_a_time_double_and_one_good_answer_ends_that() -> None:
    backoff = Backoff(first_s=2.0, longest_s=16.0)
    paces, now, holds = Pacing(usual=Pace(backoff=backoff)), NOW, list[float]()
    for _ in range(6):
        until = paces.slow_down("shop", now=now, chance=0.0)
        holds.append(until - now)
        now = until
    assert holds == [2.0, 4.0, 8.0, 16.0, 16.0, 16.0]
    paces.went_well("shop")
    assert paces.slow_down("shop", now=now, chance=0.0) - now == 2.0


@pytest.mark.fault("X66")
def test_many_429s_to_what_left_together_are_one_trouble() -> None:
    backoff = Backoff(first_s=2.0, longest_s=600.0)
    paces = Pacing(usual=Pace(backoff=backoff))
    for number in range(20):
        assert paces.slow_down("shop", now=NOW + number / 100, chance=0.0) == NOW + 2.0
    assert paces.slow_down("shop", now=NOW + 2.0, chance=0.0) == NOW + 6.0
    # One of them that names a time is believed all the same.
    assert paces.slow_down("shop", now=NOW + 3.0, chance=0.0, wait_s=60.0) == NOW + 63.0


@pytest.mark.fault("X66")
def test_a_hold_is_never_made_shorter() -> None:
    paces = Pacing()
    assert paces.slow_down("shop", now=NOW, chance=0.0, wait_s=60.0) == NOW + 60.0
    assert paces.slow_down("shop", now=NOW, chance=0.0, wait_s=1.0) == NOW + 60.0
    assert paces.turn("shop", "a", kind=FIRST, now=NOW + 1.0, chance=0.0) == NOW + 60.0
    assert paces.turn("bank", "a", kind=FIRST, now=NOW + 1.0, chance=0.0) == NOW + 1.0


@pytest.mark.fault("X66")
@pytest.mark.parametrize("wait_s", [-1.0, 0.0, 1e12])
def test_a_hold_is_bounded_whatever_the_service_says(wait_s: float) -> None:
    until = Pacing().slow_down("shop", now=NOW, chance=0.0, wait_s=wait_s)
    assert NOW <= until <= NOW + RETRY_AFTER_MAX_S


# The budget.

BUDGETED = Pace(per_s=1e6, burst=10**6, again_floor=0)


@pytest.mark.fault("X76")
@given(
    st.lists(st.tuples(st.booleans(), st.floats(0.0, 15.0)), max_size=200),
    st.sampled_from([0.0, 0.1, 0.5, 1.0]),
    st.integers(0, 3),
)
def test_sends_again_are_within_their_share_over_any_window_that_ends_with_one(
    program: list[tuple[bool, float]], share: float, floor: int
) -> None:
    pace = Pace(per_s=1e6, burst=10**6, again_share=share, again_floor=floor, window_s=60.0)
    paces, now = Pacing(usual=pace), NOW
    first: list[float] = []
    more: list[float] = []
    for number, (again, later_s) in enumerate(program):
        now += later_s
        turn = paces.turn("shop", f"op-{number}", kind=kind_of(again), now=now, chance=0.5)
        if turn > now:
            assert again  # First sends are never held up by a budget.
            continue
        (more if again else first).append(now)
        if again:
            recent = [sum(1 for at in each if at > now - pace.window_s) for each in (first, more)]
            assert recent[1] <= max(floor, share * recent[0])


@pytest.mark.fault("X76")
def test_after_an_outage_a_service_gets_a_tenth_more_and_no_storm() -> None:
    """A thousand operations, one each 50 ms; for 20 s all fail, and each wants to go again."""
    crowd = Crowd(Pacing(usual=BUDGETED))
    kinds: dict[str, int] = {"first": 0, "again": 0}
    tries: dict[str, int] = {}
    down = (NOW + 10.0, NOW + 30.0)
    moments: list[float] = []

    def answer(key: str, at: float) -> None:
        tries[key] = tries.get(key, 0) + 1
        kinds["first" if tries[key] == 1 else "again"] += 1
        if tries[key] > 1:
            moments.append(at)
        if down[0] <= at < down[1]:
            crowd.join(key, at=at, again=True)

    for number in range(1000):
        crowd.join(f"op-{number}", at=NOW + number / 20)
    crowd.go_on(until=NOW + 60.0, then=answer)
    assert kinds["first"] == 1000
    assert 0 < kinds["again"] <= 100
    assert most_in(moments, 1.0) <= 60


@pytest.mark.fault("X76")
def test_who_waits_for_the_budget_is_spread_over_a_window() -> None:
    paces = Pacing(usual=BUDGETED)
    turns = [
        paces.turn("shop", f"op-{n}", kind=AGAIN, now=NOW, chance=chance_of(n)) for n in range(600)
    ]
    assert min(turns) >= NOW + BUDGETED.window_s / SLICES
    assert max(turns) <= NOW + BUDGETED.window_s * 1.1
    assert most_in(turns, 1.0) <= 20
    assert not list(paces._lane("shop").seats)


@pytest.mark.fault("X76")
def test_what_was_sent_a_window_ago_earns_nothing_any_more() -> None:
    for later_s, may in ((59.9, True), (60.0, False)):
        paces = Pacing(usual=BUDGETED)
        for number in range(10):
            assert paces.turn("shop", f"op-{number}", kind=FIRST, now=0.0, chance=0.0) == 0.0
        turn = paces.turn("shop", "op-0", kind=AGAIN, now=later_s, chance=0.0)
        assert (turn <= later_s) is may


@pytest.mark.fault("X76")
def test_questions_are_paced_and_earn_no_sends_again() -> None:
    paces = Pacing(usual=BUDGETED)
    for number in range(100):
        assert paces.turn("shop", f"op-{number}", kind=QUESTION, now=NOW, chance=0.0) == NOW
    assert paces.turn("shop", "op-0", kind=AGAIN, now=NOW, chance=0.0) > NOW
    slow = Pacing(usual=Pace(per_s=1.0, burst=1, again_floor=0))
    turns = [slow.turn("shop", f"op-{n}", kind=QUESTION, now=NOW, chance=0.0) for n in range(3)]
    assert turns == [NOW, NOW + 1.0, NOW + 2.0]


@pytest.mark.fault("X76")
def test_a_seat_that_the_budget_overtook_is_given_up() -> None:
    paces = Pacing(usual=Pace(per_s=1.0, burst=1, again_floor=1))
    turns = [paces.turn("shop", key, kind=AGAIN, now=NOW, chance=0.0) for key in ("a", "b")]
    assert turns == [NOW, NOW + BUDGETED.window_s / SLICES]  # The floor is used up at once.
    paces = Pacing(usual=Pace(per_s=1.0, burst=1, again_floor=1))
    paces.turn("shop", "first", kind=FIRST, now=NOW, chance=0.0)
    seats = [paces.turn("shop", key, kind=AGAIN, now=NOW, chance=0.0) for key in ("a", "b")]
    assert seats == [NOW + 1.0, NOW + 2.0]
    assert paces.turn("shop", "a", kind=AGAIN, now=NOW + 1.0, chance=0.0) == NOW + 1.0
    assert paces.turn("shop", "b", kind=AGAIN, now=NOW + 2.0, chance=0.0) > NOW + 2.0
    assert not list(paces._lane("shop").seats)


@pytest.mark.fault("X76")
def test_one_operation_alone_is_tried_again_within_the_floor() -> None:
    paces, now, left = Pacing(), NOW, 0
    for number in range(200):
        now = NOW + number
        again = number > 0
        left += paces.turn("shop", "op-1", kind=kind_of(again), now=now, chance=0.0) <= now
    # One first, then 3 in each window of 60 s (and the slice that is counted with it).
    assert 1 + 3 * 3 <= left <= 1 + 3 * 4


@pytest.mark.fault("X76")
def test_a_send_again_that_the_budget_holds_up_takes_no_place_from_a_first_one() -> None:
    paces = Pacing(usual=Pace(per_s=1.0, burst=1, again_floor=0))
    for number in range(50):
        assert paces.turn("shop", f"a-{number}", kind=AGAIN, now=NOW, chance=0.0) > NOW
    assert paces.turn("shop", "b", kind=FIRST, now=NOW, chance=0.0) == NOW


# Pauses and headers.


@given(st.integers(-5, 10**6), st.floats(0.0, 1.0, exclude_max=True))
def test_a_pause_grows_to_its_bound_and_chance_takes_at_most_half(fails: int, luck: float) -> None:
    backoff = Backoff(first_s=0.5, longest_s=60.0)
    whole = backoff.wait_s(fails, 0.0)
    assert 0.5 <= whole <= 60.0
    assert whole / 2 <= backoff.wait_s(fails, luck) <= whole
    assert backoff.wait_s(fails + 1, 0.0) >= whole


AT = 784_111_777.0  # Sun, 06 Nov 1994 08:49:37 GMT, the date of RFC 9110.


@pytest.mark.fault("X66")
@pytest.mark.parametrize(
    ("header", "wait_s"),
    [
        ("0", 0.0),
        ("120", 120.0),
        (" 7 ", 7.0),
        ("999999999999", RETRY_AFTER_MAX_S),
        ("Sun, 06 Nov 1994 08:50:37 GMT", 60.0),
        ("Sun, 06 Nov 1994 08:50:37 -0000", 60.0),
        ("Sunday, 06-Nov-94 08:50:37 GMT", 60.0),
        ("Sun Nov  6 08:50:37 1994", 60.0),
        ("Sun, 06 Nov 1994 07:00:00 GMT", 0.0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", RETRY_AFTER_MAX_S),
        ("", None),
        ("soon", None),
        ("-1", None),
        ("1.5", None),
        ("1e3", None),
        ("\u0661\u0662", None),
        ("9" * 13, None),
        ("Sun, 99 Nov 1994 08:50:37 GMT", None),
        ("inf", None),
        ("nan", None),
    ],
)
def test_a_retry_after_is_read_as_the_standard_says(header: str, wait_s: float | None) -> None:
    assert retry_after_s(header, AT) == wait_s


@given(st.text(max_size=60))
@example("Sun, 06 Nov 1994 08:49:37 +9999999999")
@example("1 Jan 99999999999999999999")
def test_no_header_escapes(header: str) -> None:
    wait_s = retry_after_s(header, AT)
    assert wait_s is None or 0.0 <= wait_s <= RETRY_AFTER_MAX_S


@pytest.mark.parametrize(
    "wrong",
    [
        {"per_s": 0.0},
        {"per_s": -1.0},
        {"per_s": math.inf},
        {"per_s": math.nan},
        {"burst": 0},
        {"window_s": 0.0},
        {"again_share": -0.1},
        {"again_share": 1.1},
        {"again_floor": -1},
    ],
)
def test_a_pace_at_which_nothing_could_leave_is_none(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError):
        Pace(**wrong)  # type: ignore[arg-type]
