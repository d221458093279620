"""Plays a refund in two phases on the stage of `landed.testing.doubts.stage`, with a reviewer."""

from collections.abc import Sequence
from dataclasses import dataclass

from landed.runtime.runtime import Runtime
from landed.testing.doubts.scenario import DoubtScenario
from landed.testing.doubts.stage import DoubtStage, play
from landed.testing.inline import Base
from landed.testing.models import ScriptedModel
from landed.testing.refunds.scripts import PHRASES, Reviewed
from landed.testing.scenario import Ran


@dataclass(frozen=True, slots=True, kw_only=True)
class RefundScenario(DoubtScenario):
    """As a scenario of doubt; the script acts through a `Reviewed`."""


class RefundStage(DoubtStage):
    """The simulated world that such a refund is played in."""

    async def _act(self, rt: Runtime, worker: int) -> None:
        reviewed = Reviewed(
            rt=rt,
            model=ScriptedModel(script=PHRASES),
            timeline=self.timeline,
            messages=self.messages,
            place=self.place,
        )
        await self.scenario.script(reviewed)


def run(
    scenario: RefundScenario,
    *,
    kill: Sequence[str] | None = None,
    seed: int | None = None,
    base: Base | None = None,
) -> Ran:
    """Play a scenario and say how it ended; see `landed.testing.scenario.run`."""
    ran, _ = play(scenario, kill=kill, seed=seed, base=base, stage_of=RefundStage)
    return ran
