"""A scenario of a stop as values, and how it is played: what happens, and how it must end."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from tempfile import TemporaryDirectory

from landed.core.canonical import Json
from landed.testing.loop import VirtualLoop
from landed.testing.stops.designs import OURS, StopDesign
from landed.testing.stops.ending import End, TurnLine
from landed.testing.stops.stage import Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class StopScenario:
    """What happens, and how it must end; `design` is ours unless a wrong one is to be seen."""

    name: str
    line: str
    script: Callable[[Stage], Awaitable[None]]
    end: End
    design: StopDesign = OURS


@dataclass(frozen=True, slots=True, kw_only=True)
class StopRan:
    """How a scenario of a stop was played."""

    scenario: StopScenario
    lines: tuple[TurnLine, ...]
    end: End

    @property
    def as_described(self) -> bool:
        """Whether it ended as its description says, in every respect."""
        return self.end == self.scenario.end

    def differences(self) -> Iterator[tuple[str, object, object]]:
        """Yield what ended otherwise: its name, how it should have ended, and how it did."""
        for each in fields(End):
            wanted, found = (getattr(end, each.name) for end in (self.scenario.end, self.end))
            if wanted != found:
                yield each.name, wanted, found

    def plain(self) -> dict[str, Json]:
        """Return it as `landed demo --json` prints it."""
        return {
            "scenario": self.scenario.name,
            "timeline": [line.plain() for line in self.lines],
            "end": self.end.plain(),
            "as_described": self.as_described,
        }


def run(scenario: StopScenario) -> StopRan:
    """Play a scenario and say how it ended."""

    async def play(folder: Path) -> StopRan:
        stage = Stage(scenario.design, folder)
        stage.turns.count()
        await scenario.script(stage)
        end = await stage.end()
        return StopRan(scenario=scenario, lines=tuple(stage.lines), end=end)

    with TemporaryDirectory() as folder, asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(play(Path(folder)))
