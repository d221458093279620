"""Breadth-first through every state that the pure core can get into: protocol bugs, in seconds.

What is explored is not a model of the core but the core: `what_next`, `absorb`, `doubt` and
`changes.apply`, between two workers that crash and sleep, a network that loses, delays and copies,
and the most careless service that still keeps its contract. `python -m landed.testing.explorer`
prints what it saw, and that every wrong design of `landed.testing.variants` is caught.

Random walks miss the bugs that live here (fencing, a lookup taken for a close, a key forgotten too
early); a breadth-first search finds them by the shortest way, as TLC does for TLA+.
"""

import argparse
import sys
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from landed.core.changes import apply
from landed.core.contract import Contract
from landed.core.rules import RULES, Rules
from landed.testing.explored.cases import CASES
from landed.testing.explored.minds import say_minds
from landed.testing.explored.naming import Key, Naming
from landed.testing.explored.properties import STUCK, wrong_world
from landed.testing.explored.steps import at_rest, steps
from landed.testing.explored.world import Bounds, Driver, Setup, Step, World, first_world
from landed.testing.variants import EQUIVALENTS, LIMITS, MUTANTS, Equivalent, Mutant


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A promise that is broken, and the shortest way there, one step a line."""

    says: str
    trace: tuple[str, ...]

    def __str__(self) -> str:
        lines = (f"  {number:>2}  {step}" for number, step in enumerate(self.trace, 1))
        return "\n".join((self.says, *lines))


@dataclass(frozen=True, slots=True, kw_only=True)
class Explored:
    """What a search saw: the shortest violation of each kind, and whether it saw everything.

    `depth` is the length of the longest of the shortest ways to a state, `happened` every step that
    was taken anywhere.
    """

    states: int
    transitions: int
    depth: int
    complete: bool
    violations: tuple[Violation, ...]
    happened: frozenset[str]

    @property
    def holds(self) -> bool:
        """Whether every reachable state was seen, and nothing is wrong with any."""
        return self.complete and not self.violations


def explore(
    contract: Contract,
    *,
    rules: Rules = RULES,
    driver: Driver | None = None,
    bounds: Bounds | None = None,
    until: Sequence[str] = (),
) -> Explored:
    """Visit every state that one operation under `contract` can get into, within `bounds`.

    Times in the contract should be whole ticks (`TICK_S`), its deadline less than one. The search
    ends early, and is then not complete, once all promises in `until` are broken or
    `bounds.states_max` is reached. The same arguments give the same answer.
    """
    setup = Setup(
        contract=contract, rules=rules, driver=driver or Driver(), bounds=bounds or Bounds()
    )
    search = _Search(setup)
    search.run(until)
    return search.explored()


def explore_mutant(mutant: Mutant) -> Explored:
    """Look for the promise that a wrong design breaks, by the shortest way."""
    case = CASES[mutant.case]
    return explore(
        case.contract,
        rules=mutant.rules,
        driver=mutant.driver,
        bounds=mutant.bounds or case.bounds,
        until=mutant.breaks,
    )


def explore_equivalent(equivalent: Equivalent) -> Explored:
    """Visit every state of a design that lacks something, and should hold all the same."""
    return explore(
        CASES[equivalent.case].contract,
        rules=equivalent.rules,
        driver=equivalent.driver,
        bounds=equivalent.bounds,
    )


NOWHERE, REST = -1, -2  # Where a state without a calm step leads, and one where all is done.


class _Search:
    """A breadth-first walk. A state is known by its number, in the order in which it was found."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.naming = Naming(setup.contract, fenced=setup.driver.commit is apply)
        self.numbers: dict[Key, int] = {}
        self.found_from = array("l")
        self.found_by: list[str] = []
        self.happened: set[str] = set()
        self.calm_to = array("l")
        self.transitions = 0
        self.depth = 0
        self.complete = False
        self.wrong: dict[str, tuple[str, ...]] = {}

    def run(self, until: Sequence[str]) -> None:
        world = first_world(self.setup)
        level = [(self._add(self.naming.key(world), NOWHERE, ""), world)]
        while level:
            following: list[tuple[int, World]] = []
            for number, world in level:
                following += self._expand(number, world)
                if self._is_over(until):
                    return
            level = following
            self.depth += bool(level)
        self.complete = True
        self._find_stuck()

    def _is_over(self, until: Sequence[str]) -> bool:
        found = bool(until) and self.wrong.keys() >= set(until)
        return found or len(self.numbers) > self.setup.bounds.states_max

    def explored(self) -> Explored:
        violations = (Violation(says=says, trace=trace) for says, trace in self.wrong.items())
        return Explored(
            states=len(self.numbers),
            transitions=self.transitions,
            depth=self.depth,
            complete=self.complete,
            violations=tuple(violations),
            happened=frozenset(self.happened),
        )

    def _expand(self, number: int, world: World) -> Iterator[tuple[int, World]]:
        """Yield the new states one step further. What is past harm is not looked at."""
        for step in steps(world, self.setup):
            self.transitions += 1
            self.happened.add(step.says)
            harm = wrong_world(step.world, self.setup.contract)
            for wrong in (step.wrong, harm):
                if wrong and wrong not in self.wrong:
                    self.wrong[wrong] = (*self._trace(number), step.says)
            if harm:
                self._lead(number, step, REST)
                continue
            key = self.naming.key(step.world)
            known = self.numbers.get(key, NOWHERE)
            if known == NOWHERE:
                known = self._add(key, number, step.says)
                if at_rest(step.world):
                    self.calm_to[known] = REST
                yield known, step.world
            self._lead(number, step, known)

    def _add(self, key: Key, found_from: int, says: str) -> int:
        number = self.numbers[key] = len(self.numbers)
        self.found_from.append(found_from)
        self.found_by.append(says)
        self.calm_to.append(NOWHERE)
        return number

    def _lead(self, number: int, step: Step, to: int) -> None:
        """Remember where the first calm step leads."""
        if step.calm and self.calm_to[number] == NOWHERE:
            self.calm_to[number] = to

    def _trace(self, number: int) -> tuple[str, ...]:
        said: list[str] = []
        while number > 0:
            said.append(self.found_by[number])
            number = self.found_from[number]
        return tuple(reversed(said))

    def _find_stuck(self) -> None:
        """Follow the calm steps from every state: all of them must lead to rest."""
        ends_well = bytearray(len(self.numbers))
        for begin in range(len(self.numbers)):
            way: dict[int, None] = {}
            number = begin
            while number >= 0 and not ends_well[number] and number not in way:
                way[number] = None
                number = self.calm_to[number]
            if number != REST and (number == NOWHERE or not ends_well[number]):
                self.wrong[STUCK] = self._trace(begin)
                return
            for each in way:
                ends_well[each] = True


# The face.


def main(arguments: Sequence[str] | None = None) -> int:
    """Explore, print what was seen, and return 0 when all is as it should be, else 1."""
    parser = argparse.ArgumentParser(prog="landed.testing.explorer", description=__doc__)
    parser.add_argument("--deep", action="store_true", help="more trouble; takes many minutes")
    parser.add_argument("--traces", action="store_true", help="print how each mutant is caught")
    parser.add_argument("--case", choices=sorted(CASES), help="only this contract, no mutants")
    chosen = parser.parse_args(arguments)
    names = [chosen.case] if chosen.case else list(CASES)
    _say(f"{'contract':<26}{'states':>10}{'transitions':>13}{'depth':>7}  result")
    good = [_say_case(name, deep=chosen.deep) for name in names]
    if not chosen.case:
        _say(f"\n{'wrong design':<26}{'contract':<26}{'steps':>5}  caught by")
        good += [_say_mutant(name, MUTANTS[name], traces=chosen.traces) for name in MUTANTS]
        _say("\nwhat no design survives")
        good += [_say_mutant(name, LIMITS[name], traces=chosen.traces) for name in LIMITS]
        _say("\nwhat may be taken out")
        good += [_say_equivalent(name, EQUIVALENTS[name]) for name in EQUIVALENTS]
        good.append(say_minds(deep=chosen.deep, traces=chosen.traces))
    return 0 if all(good) else 1


def _say_case(name: str, *, deep: bool) -> bool:
    case = CASES[name]
    seen = explore(case.contract, bounds=case.deep if deep else case.bounds)
    result = "holds" if seen.complete else "not complete"
    _say(
        f"{name:<26}{seen.states:>10,}{seen.transitions:>13,}{seen.depth:>7}  "
        f"{'BROKEN' if seen.violations else result}"
    )
    for violation in seen.violations:
        _say(str(violation))
    return seen.holds


def _say_mutant(name: str, mutant: Mutant, *, traces: bool) -> bool:
    for violation in explore_mutant(mutant).violations:
        if violation.says == mutant.breaks[-1]:
            _say(f"{name:<26}{mutant.case:<26}{len(violation.trace):>5}  {violation.says}")
            if traces:
                _say("\n".join(str(violation).splitlines()[1:]))
            return True
    _say(f"{name:<26}{mutant.case:<26}    -  NOT CAUGHT: {mutant.breaks[-1]}")
    return False


def _say_equivalent(name: str, equivalent: Equivalent) -> bool:
    holds = explore_equivalent(equivalent).holds
    _say(f"{name:<26}{equivalent.case:<26}       {equivalent.reason if holds else 'CAUGHT'}")
    return holds


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
