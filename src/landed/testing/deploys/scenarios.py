"""The deployments in `landed demo`: a worker sleeps past its lease, and sends when it wakes."""

from collections.abc import Callable
from dataclasses import replace

from landed.testing.deploys.designs import LEASE_ALONE
from landed.testing.deploys.fleet import Fleet, ToolsOf
from landed.testing.deploys.scenario import DeployScenario
from landed.testing.deploys.scripts import correct, moved_on, roll_back, roll_out
from landed.testing.deploys.tools import bare, fenced, versioned
from landed.testing.sim import World
from landed.testing.worlds.cluster import Cluster


def _fleet(reached: ToolsOf, **settings: bool) -> Callable[[World], Fleet]:
    how = Cluster(**settings)
    return lambda world: Fleet(world=world, reached=reached, settings=how)


STANDS = ("web runs v1 at 100 %", "wanted is v1 at 100 %")
SAYS_BACK = ("eb was set to v1 at 100 %",)

DEPLOY_ZOMBIE = DeployScenario(
    name="deploy-zombie",
    line="It wakes after the roll-back, and its update leaves: refused, its epoch is older.",
    script=roll_out,
    then=roll_back,
    place=_fleet(fenced, checks_epochs=True),
    holds=STANDS,
    says=SAYS_BACK,
)
DEPLOYS: tuple[DeployScenario, ...] = (
    DEPLOY_ZOMBIE,
    replace(
        DEPLOY_ZOMBIE,
        name="deploy-zombie-unfenced",
        line="WRONG: the lease is all there is, and no epoch is handed on: v1 is overwritten.",
        design=LEASE_ALONE,
        wrong="F4-09",
        holds=("web runs v2 at 100 %", "wanted is v1 at 100 %"),
        reconciled=False,
    ),
    replace(
        DEPLOY_ZOMBIE,
        name="deploy-zombie-versions",
        line="The service has versions instead: its update is based on one that is gone (412).",
        place=_fleet(versioned),
    ),
    replace(
        DEPLOY_ZOMBIE,
        name="deploy-zombie-bare",
        line="The service has neither: it overwrites v1, which is noticed, and a person decides.",
        place=_fleet(bare),
        then=correct,
    ),
    replace(
        DEPLOY_ZOMBIE,
        name="deploy-zombie-moved-on",
        line="The same, but v3 is wanted before somebody agrees: the correction is dropped.",
        place=_fleet(bare),
        then=moved_on,
        holds=("web runs v3 at 100 %", "wanted is v3 at 100 %"),
        says=("eb was set to v3 at 100 %",),
    ),
)
DEPLOYS_BY_NAME = {scenario.name: scenario for scenario in DEPLOYS}
