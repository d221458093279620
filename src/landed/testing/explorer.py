"""Breadth-first through every state that the pure core can get into: protocol bugs, in seconds."""

from array import array
from collections.abc import Iterator
from dataclasses import dataclass

from landed.core.changes import apply
from landed.core.contract import Contract
from landed.core.rules import RULES, Rules
from landed.testing.explored.naming import Key, Naming
from landed.testing.explored.properties import wrong_world
from landed.testing.explored.steps import at_rest, steps
from landed.testing.explored.world import (
    Bounds,
    Driver,
    Setup,
    Step,
    World,
    first_world,
)

STUCK = "once all trouble is over it is neither settled nor with a person"


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A promise that is broken, and the shortest way there."""

    says: str
    trace: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explored:
    """What a search saw: the shortest violation of each kind, and whether it saw everything."""

    states: int
    transitions: int
    depth: int
    complete: bool
    violations: tuple[Violation, ...]


def explore(
    contract: Contract,
    *,
    rules: Rules = RULES,
    driver: Driver | None = None,
    bounds: Bounds | None = None,
    until: str = "",
) -> Explored:
    setup = Setup(
        contract=contract, rules=rules, driver=driver or Driver(), bounds=bounds or Bounds()
    )
    search = _Search(setup)
    search.run(until)
    return search.explored()


class _Search:
    """A breadth-first walk. A state is known by its number, in the order in which it was found."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.naming = Naming(setup.contract, fenced=setup.driver.commit is apply)
        self.numbers: dict[Key, int] = {}
        self.found_from = array("l")
        self.found_by: list[str] = []
        self.depths = array("l")
        self.calm_to = array("l")
        self.transitions = 0
        self.complete = True
        self.wrong: dict[str, tuple[str, ...]] = {}

    def run(self, until: str) -> None:
        level = [(self._add(first_world(self.setup), -1, ""), first_world(self.setup))]
        while level:
            following: list[tuple[int, World]] = []
            for number, world in level:
                following += self._expand(number, world)
                if until in self.wrong:
                    self.complete = False
                    return
                if len(self.numbers) > self.setup.bounds.states_max:
                    self.complete = False
                    return
            level = following
        self._find_stuck()

    def _expand(self, number: int, world: World) -> Iterator[tuple[int, World]]:
        for step in steps(world, self.setup):
            self.transitions += 1
            harm = wrong_world(step.world, self.setup.contract)
            for wrong in (step.wrong, harm):
                if wrong and wrong not in self.wrong:
                    self.wrong[wrong] = (*self._trace(number), step.says)
            if harm:
                self._calm(number, step, REST)
                continue
            key = self.naming.key(step.world)
            known = self.numbers.get(key)
            if known is None:
                known = self._add_key(key, number, step.says)
                if at_rest(step.world):
                    self.calm_to[known] = REST
                yield known, step.world
            self._calm(number, step, known)

    def _calm(self, number: int, step: Step, to: int) -> None:
        if step.calm and self.calm_to[number] == NOWHERE:
            self.calm_to[number] = to

    def _add(self, world: World, number: int, says: str) -> int:
        return self._add_key(self.naming.key(world), number, says)

    def _add_key(self, key: Key, number: int, says: str) -> int:
        known = self.numbers[key] = len(self.numbers)
        self.found_from.append(number)
        self.found_by.append(says)
        self.depths.append(self.depths[number] + 1 if number >= 0 else 0)
        self.calm_to.append(NOWHERE)
        return known

    def _trace(self, number: int) -> tuple[str, ...]:
        said: list[str] = []
        while number > 0:
            said.append(self.found_by[number])
            number = self.found_from[number]
        return tuple(reversed(said))

    def _find_stuck(self) -> None:
        settles = bytearray(len(self.numbers))
        for start in range(len(self.numbers)):
            path: list[int] = []
            number = start
            seen: set[int] = set()
            while number >= 0 and not settles[number] and number not in seen:
                seen.add(number)
                path.append(number)
                number = self.calm_to[number]
            if number == REST or (number >= 0 and settles[number]):
                for each in path:
                    settles[each] = 1
            else:
                self.wrong.setdefault(
                    STUCK, (*self._trace(start), "…", *(self.found_by[n] for n in path[:20]))
                )
                return

    def explored(self) -> Explored:
        return Explored(
            states=len(self.numbers),
            transitions=self.transitions,
            depth=max(self.depths),
            complete=self.complete,
            violations=tuple(Violation(says=s, trace=t) for s, t in self.wrong.items()),
        )


NOWHERE, REST = -1, -2
