"""Plays a deployment by two workers: the first stands still past its lease, the second takes over.

As `landed.testing.doubts.stage`, but nobody is killed: the first process goes on when the second
one's script lets it.
"""

import logging
from collections.abc import Sequence
from functools import partial

from landed.core.errors import LeaseLostError
from landed.core.lease import Lease
from landed.runtime.runtime import Runtime
from landed.testing.deploys.scenario import DeployScenario
from landed.testing.deploys.scripts import PHRASES, Operator
from landed.testing.doubts.stage import DoubtStage, play
from landed.testing.inline import Base
from landed.testing.models import ScriptedModel
from landed.testing.scenario import Ran
from landed.testing.sim import Process

LEASE = Lease()
ASLEEP_S = 2 * LEASE.lease_s


class DeployStage(DoubtStage):
    """The simulated world that a deployment is played in."""

    lease = LEASE
    scenario: DeployScenario

    def play(self, kill: Sequence[str]) -> None:
        """Run the sleeper until it stands still, and its successor once the lease is over."""
        self._sleeper: Process[None] = self.world.start(
            partial(self._process, "", 1), name="agent-0"
        )
        self.world.pass_time(ASLEEP_S)
        self.timeline.add("pause", f"worker-1 stood still for {ASLEEP_S:g} s, past its lease")
        successor = self.world.start(partial(self._process, "", 2), name="agent-1")
        self.world.wait(successor, self._sleeper)
        self.world.settle()

    async def _act(self, rt: Runtime, worker: int) -> None:
        operator = Operator(
            rt=rt,
            model=ScriptedModel(script=PHRASES),
            timeline=self.timeline,
            messages=self.messages,
            place=self.place,
            sleeper=self._sleeper,
        )
        await (self.scenario.script if worker == 1 else self.scenario.then)(operator)


def run(
    scenario: DeployScenario,
    *,
    kill: Sequence[str] | None = None,
    seed: int | None = None,
    base: Base | None = None,
) -> Ran:
    """Play a scenario and say how it ended; nobody is killed in these."""
    log = logging.getLogger("landed")
    log.addFilter(_is_news)
    try:
        ran, _ = play(scenario, kill=kill, seed=seed, base=base, stage_of=DeployStage)
    finally:
        log.removeFilter(_is_news)
    return ran


def _is_news(record: logging.LogRecord) -> bool:
    """Leave out that a worker stops because it was replaced: it is a line of the timeline."""
    said = record.args if isinstance(record.args, tuple) else ()
    return not any(isinstance(one, LeaseLostError) for one in said)
