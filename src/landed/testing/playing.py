"""Every simulated scenario by name, and how each is played: on the stage it was written for.

ran = played(SCENARIOS["reply-lost"])

Those of an agent's stop have no world to be drawn, and are not among them: `landed.testing.stops`.
"""

from collections.abc import Mapping, Sequence

from landed.testing import scenario as restaurant
from landed.testing import scenarios
from landed.testing.deploys import scenarios as deploys_told
from landed.testing.deploys import stage as deploys
from landed.testing.deploys.scenario import DeployScenario
from landed.testing.doubts import scenarios as doubts_told
from landed.testing.doubts import stage as doubts
from landed.testing.doubts.scenario import DoubtScenario
from landed.testing.inline import Base
from landed.testing.invoices import scenarios as invoices_told
from landed.testing.invoices import stage as invoices
from landed.testing.invoices.scenario import InvoiceScenario
from landed.testing.refunds import scenarios as refunds_told
from landed.testing.refunds import stage as refunds
from landed.testing.refunds.stage import RefundScenario
from landed.testing.scenario import Ran, Scenario

AnyScenario = Scenario | InvoiceScenario | DoubtScenario | DeployScenario | RefundScenario


def every() -> tuple[AnyScenario, ...]:
    """Return them all, in the order in which they are told."""
    return (
        *scenarios.SCENARIOS,
        *invoices_told.INVOICES,
        *doubts_told.DOUBTS,
        *deploys_told.DEPLOYS,
        *refunds_told.REFUNDS,
    )


def known() -> dict[str, AnyScenario]:
    """Return them all by name."""
    families: tuple[Mapping[str, AnyScenario], ...] = (
        scenarios.BY_NAME,
        invoices_told.INVOICES_BY_NAME,
        doubts_told.DOUBTS_BY_NAME,
        deploys_told.DEPLOYS_BY_NAME,
        refunds_told.REFUNDS_BY_NAME,
    )
    return {name: one for family in families for name, one in family.items()}


def played(
    scenario: AnyScenario,
    *,
    kill: Sequence[str] | None = None,
    seed: int | None = None,
    base: Base | None = None,
) -> Ran:
    """Simulate a scenario and say how it ended; `kill`, `seed` and `base` as for `scenario.run`."""
    match scenario:
        case RefundScenario():
            return refunds.run(scenario, kill=kill, seed=seed, base=base)
        case DeployScenario():  # Both also scenarios of doubt; on stages of their own.
            return deploys.run(scenario, kill=kill, seed=seed, base=base)
        case DoubtScenario():
            return doubts.run(scenario, kill=kill, seed=seed, base=base)
        case InvoiceScenario():
            return invoices.run(scenario, kill=kill, seed=seed, base=base)
        case _:
            return restaurant.run(scenario, kill=kill, seed=seed, base=base)
