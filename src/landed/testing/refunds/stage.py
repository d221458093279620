"""Plays a refund in two phases on the stage of `landed.testing.doubts.stage`, with a reviewer."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from landed.runtime.runtime import Runtime
from landed.testing.doubts.scenario import DoubtScenario
from landed.testing.doubts.stage import DoubtStage, play
from landed.testing.inline import Base
from landed.testing.models import ScriptedModel
from landed.testing.refunds.places import PlanBank
from landed.testing.refunds.scripts import PHRASES, Reviewed
from landed.testing.scenario import Ran


@dataclass(frozen=True, slots=True, kw_only=True)
class RefundScenario(DoubtScenario):
    """As a scenario of doubt, with a reviewer."""

    script: Callable[[Reviewed], Awaitable[None]]


class RefundStage(DoubtStage):
    """The simulated world that such a refund is played in."""

    scenario: RefundScenario

    async def _act(self, rt: Runtime, worker: int) -> None:
        assert isinstance(self.place, PlanBank)
        reviewed = Reviewed(
            rt=rt,
            model=ScriptedModel(script=PHRASES),
            timeline=self.timeline,
            messages=self.messages,
            by_hand=self.place.refund_by_hand,
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
