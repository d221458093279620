"""The second explorer: a change of mind anywhere, with its releases, prices, answers and crashes.

The first one sees a single operation in every kind of trouble. This one sees the whole of a small
conversation, through the same real core: a table on Friday, "actually, Saturday" at any moment, a
cancellation that is owed, what it costs, and what the user says to that.

Reading order: minds_restaurant · minds_world · minds_properties · minds_laps · minds_steps ·
minds_naming · minds_search · minds_cases · wrong_minds.
"""

import sys
from dataclasses import replace

from landed.testing.explored.minds_cases import CASES
from landed.testing.explored.minds_search import Search, Seen
from landed.testing.explored.minds_world import Bounds, Setup
from landed.testing.explored.wrong_minds import WRONG_MINDS, WrongMind


def explore_minds(name: str, *, bounds: Bounds | None = None) -> Seen:
    """Visit every world that the case of that name can come to, within its bounds or others."""
    return Search(_setup(name, bounds)).run()


def explore_wrong_mind(wrong: WrongMind) -> Seen:
    """Look for the promise that a wrong design breaks, by the shortest way."""
    setup = replace(_setup(wrong.case, None), rules=wrong.rules, driver=wrong.driver)
    return Search(setup).run(until=(wrong.breaks,))


def _setup(name: str, bounds: Bounds | None) -> Setup:
    case = CASES[name]
    return Setup(reserve=case.reserve, house=case.house, bounds=bounds or case.bounds)


def say_minds(*, deep: bool = False, traces: bool = False) -> bool:
    """Explore, print what was seen, and return whether all is as it should be."""
    _say(f"\n{'a change of mind':<26}{'states':>10}{'transitions':>13}{'depth':>7}  result")
    names = [name for name in CASES if CASES[name].deep or not deep]
    good = [_say_case(name, deep=deep) for name in names]
    _say(f"\n{'wrong design':<26}{'case':<26}{'steps':>5}  caught by")
    good += [_say_wrong(name, wrong, traces=traces) for name, wrong in WRONG_MINDS.items()]
    return all(good)


def _say_case(name: str, *, deep: bool) -> bool:
    seen = explore_minds(name, bounds=CASES[name].deep if deep else None)
    result = "holds" if seen.complete else "not complete"
    _say(
        f"{name:<26}{seen.states:>10,}{seen.transitions:>13,}{seen.depth:>7}  "
        f"{'BROKEN' if seen.wrong else result}"
    )
    for says, trace in seen.wrong.items():
        _say(says)
        _say_trace(trace)
    return seen.holds


def _say_wrong(name: str, wrong: WrongMind, *, traces: bool) -> bool:
    trace = explore_wrong_mind(wrong).wrong.get(wrong.breaks)
    if trace is None:
        _say(f"{name:<26}{wrong.case:<26}    -  NOT CAUGHT: {wrong.breaks}")
        return False
    _say(f"{name:<26}{wrong.case:<26}{len(trace):>5}  {wrong.breaks}")
    if traces:
        _say_trace(trace)
    return True


def _say_trace(trace: tuple[str, ...]) -> None:
    for number, step in enumerate(trace, 1):
        _say(f"  {number:>2}  {step}")


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
