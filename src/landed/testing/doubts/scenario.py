"""A scenario of doubt as values: who says what, what goes wrong, and how it must end."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from landed.runtime.opened import Settings
from landed.testing.designs import RIGHT, Design
from landed.testing.doubts.places import Place
from landed.testing.sim import World


@dataclass(frozen=True, slots=True, kw_only=True)
class DoubtScenario:
    """What happens, and how it must end.

    `place` makes the far side, `design` is ours unless a wrong one is to be seen failing; `wrong`
    says of such a scenario what is wrong. `kill` are the points at which the processes are killed,
    `away_s` how long nobody is there after that, `together` how many processes start then at the
    same moment. `holds` is what the place must hold in the end and `cases` what must still wait
    for a person; `reconciled` and `says` are as in `landed.testing.scenario`.
    """

    name: str
    line: str
    script: Callable[[Any], Awaitable[None]]  # Takes the agent that its stage makes: a `Teller`.
    place: Callable[[World], Place]
    service: str = "payments"
    design: Design = RIGHT
    wrong: str = ""
    settings: Settings = field(default_factory=Settings)
    kill: tuple[str, ...] = ()
    away_s: float = 0.0
    together: int = 1
    holds: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()
    reconciled: bool = True
    says: tuple[str, ...] = ()
    tabulated: bool = True
    asked: int | None = None

    @property
    def wanted(self) -> Mapping[str, tuple[str, ...]]:
        """What must be held in the end, by where."""
        return {self.service: self.holds, "cases": self.cases}
