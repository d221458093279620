"""Breadth-first through every world in which a mind is changed: the shortest way to each harm."""

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from landed.testing.explored.minds_naming import Key, Naming
from landed.testing.explored.minds_properties import STUCK, wrong_rest
from landed.testing.explored.minds_steps import steps
from landed.testing.explored.minds_world import Setup, Step, World, first_world

NOWHERE = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What a search saw: the shortest way to each broken promise, and whether it saw everything.

    `rests` counts the worlds in which nothing happens any more by itself, `happened` has every step
    that was taken anywhere.
    """

    states: int
    transitions: int
    depth: int
    rests: int
    complete: bool
    wrong: dict[str, tuple[str, ...]]
    happened: frozenset[str]

    @property
    def holds(self) -> bool:
        """Whether every reachable world was seen, and nothing is wrong with any."""
        return self.complete and not self.wrong


class Search:
    """A breadth-first walk. A world is known by its number, in the order in which it was found."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.naming = Naming(setup)
        self.numbers: dict[Key, int] = {}
        self.found_from = array("l")
        self.found_by: list[str] = []
        self.calm: list[tuple[int, int]] = []
        self.rests: set[int] = set()
        self.happened: set[str] = set()
        self.wrong: dict[str, tuple[str, ...]] = {}
        self.transitions = 0
        self.depth = 0
        self.complete = False

    def run(self, until: Sequence[str] = ()) -> Seen:
        """Search until all is seen, all promises in `until` are broken, or the bound is reached."""
        world = first_world(self.setup)
        level = [(self._add(self.naming.key(world), NOWHERE, ""), world)]
        while level and not self._is_over(until):
            level = [found for number, world in level for found in self._expand(number, world)]
            self.depth += bool(level)
        self.complete = not level
        if self.complete:
            self._find_stuck()
        return self._seen()

    def _is_over(self, until: Sequence[str]) -> bool:
        found = bool(until) and self.wrong.keys() >= set(until)
        return found or len(self.numbers) > self.setup.bounds.states_max

    def _expand(self, number: int, world: World) -> Iterator[tuple[int, World]]:
        """Yield the new worlds one step further. What is past harm is not looked at."""
        for step in steps(world, self.setup):
            self.transitions += 1
            self.happened.add(step.says)
            wrong = step.wrong or (wrong_rest(step.world) if step.world.quiet else "")
            if wrong:
                self.wrong.setdefault(wrong, (*self._trace(number), step.says))
                self.rests.add(number)
                continue
            yield from self._lead(number, step)

    def _lead(self, number: int, step: Step) -> Iterator[tuple[int, World]]:
        key = self.naming.key(step.world)
        known = self.numbers.get(key, NOWHERE)
        if known == NOWHERE:
            known = self._add(key, number, step.says)
            if step.world.quiet:
                self.rests.add(known)
            yield known, step.world
        if step.calm:
            self.calm.append((known, number))

    def _add(self, key: Key, found_from: int, says: str) -> int:
        number = self.numbers[key] = len(self.numbers)
        self.found_from.append(found_from)
        self.found_by.append(says)
        return number

    def _trace(self, number: int) -> tuple[str, ...]:
        said: list[str] = []
        while number > 0:
            said.append(self.found_by[number])
            number = self.found_from[number]
        return tuple(reversed(said))

    def _find_stuck(self) -> None:
        """Go back along the calm steps from all worlds at rest: every world must be met."""
        before: dict[int, list[int]] = {}
        for after, number in self.calm:
            before.setdefault(after, []).append(number)
        met = set(self.rests)
        front = list(met)
        while front:
            new = [n for each in front for n in before.get(each, ()) if n not in met]
            front = list(dict.fromkeys(new))
            met.update(front)
        stuck = next((n for n in range(len(self.numbers)) if n not in met), None)
        if stuck is not None:
            self.wrong.setdefault(STUCK, self._trace(stuck))

    def _seen(self) -> Seen:
        return Seen(
            states=len(self.numbers),
            transitions=self.transitions,
            depth=self.depth,
            rests=len(self.rests),
            complete=self.complete,
            wrong=self.wrong,
            happened=frozenset(self.happened),
        )
