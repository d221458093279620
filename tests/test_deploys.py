"""A worker that slept past its lease: every deployment ends as its description says.

The printed form of each is kept in `tests/golden/deploys`; `python -m tests.test_deploys` refreshes
it.
"""

import logging
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import httpx2
import pytest
from click.testing import CliRunner

from landed.cli.main import landed
from landed.core.tool import Tool
from landed.testing.deploys.fleet import Fleet
from landed.testing.deploys.scenario import DeployScenario
from landed.testing.deploys.scenarios import DEPLOYS, DEPLOYS_BY_NAME
from landed.testing.deploys.stage import run
from landed.testing.deploys.tools import SAYS
from landed.testing.scenario import Ran
from landed.testing.worlds.cluster import Cluster
from landed.tools.http import HttpTool
from landed.tools.listing import Listing
from landed.tools.shaping import Shape
from tests.reading import at, held, texts

GOLDEN = Path(__file__).parent / "golden" / "deploys"
LATE = '{"release": "v2", "percent": 100}'


def _named(scenario: DeployScenario) -> str:
    return scenario.name


@cache
def ended(name: str) -> Ran:
    """Play a scenario once for all tests that look at its end."""
    return run(DEPLOYS_BY_NAME[name])


@pytest.fixture(autouse=True)
def nothing_went_wrong_unseen(caplog: pytest.LogCaptureFixture):
    """A loop that ends by a bug of ours is logged; a scenario may end well all the same."""
    yield
    errors = [r.getMessage() for r in caplog.get_records("call") if r.levelno >= logging.ERROR]
    assert not errors


@pytest.mark.req("S4-24", "S4-26", "S4-27", "S4-28", "F4-09")
@pytest.mark.field("F4")
@pytest.mark.fault("X18")
@pytest.mark.parametrize("scenario", DEPLOYS, ids=_named)
def test_it_ends_as_described(scenario: DeployScenario) -> None:
    ran = ended(scenario.name)

    assert ran.as_described is True
    assert not ran.unwitnessed
    assert not texts(ran, "crash")


@pytest.mark.services
@pytest.mark.parametrize("scenario", DEPLOYS, ids=_named)
def test_on_another_schedule_it_ends_so_too_and_two_runs_are_the_same_in_every_line(
    scenario: DeployScenario,
) -> None:
    ran = run(scenario, seed=7)

    assert ran.as_described is True
    assert run(scenario, seed=7).plain() == ran.plain()


@pytest.mark.services
@pytest.mark.parametrize("seed", range(1, 17))
@pytest.mark.parametrize("scenario", DEPLOYS, ids=_named)
def test_it_ends_as_described_on_every_schedule(scenario: DeployScenario, seed: int) -> None:
    assert run(scenario, seed=seed).as_described is True


@pytest.mark.parametrize("scenario", DEPLOYS, ids=_named)
def test_its_timeline_is_the_one_that_was_kept(scenario: DeployScenario) -> None:
    kept = (GOLDEN / f"{scenario.name}.txt").read_text("utf-8")

    assert _printed(scenario.name) == kept, "python -m tests.test_deploys refreshes it"


def test_nothing_is_kept_of_a_scenario_that_is_gone() -> None:
    assert {path.stem for path in GOLDEN.glob("*.txt")} == set(DEPLOYS_BY_NAME)


@pytest.mark.req("S4-25", "S4-27")
@pytest.mark.field("F1", "F4")
@pytest.mark.fault("X18")
@pytest.mark.parametrize("scenario", DEPLOYS, ids=_named)
def test_whoever_wakes_writes_nothing_here_and_stops_with_a_sentence(
    scenario: DeployScenario,
) -> None:
    ran = ended(scenario.name)

    woke = at(ran, "resume")
    assert at(ran, "fenced", "op-a2") > woke
    (stopped,) = texts(ran, "stopped")
    assert "another worker goes on with what it held" in stopped
    # What the sleeper had under way is told of by its successor alone.
    known = [line for line in texts(ran, "tool.result") if line.startswith("T1")]
    assert len(known) <= 2


@pytest.mark.req("S4-26", "S4-27")
@pytest.mark.field("F4")
def test_a_receiver_that_checks_epochs_refuses_what_leaves_late() -> None:
    ran = ended("deploy-zombie")

    # The roll-back is a new plan of the successor, and its epoch the larger one.
    assert at(ran, "cluster", "refused a late update: epoch 2 is older than 4") > at(ran, "resume")
    assert held(ran, "cluster")[0] == "web runs v1 at 100 %"


def over_http(url: str, transport: httpx2.AsyncBaseTransport) -> list[Tool]:
    """The same deployment without code: `fence` names the header that carries the epoch."""
    history = Listing(
        url=f"{url}/objects/{{name}}/history",
        items="versions",
        id="metadata.resourceVersion",
        key="metadata.annotations.updated-by",
    )
    deploy = HttpTool(
        name="deploy",
        effect="reversible",
        url=f"PATCH {url}/objects/{{name}}",
        arguments={"name": str, "release": str, "percent": int},
        shape=Shape(fills={"spec.release": "{release}", "spec.percent": "{percent}"}),
        keyed="Idempotency-Key",
        compares_payload=True,
        fence="X-Epoch",
        lookup=history,
        transport=transport,
        target=("{name}",),
        says=SAYS,
    )
    return [deploy]


@pytest.mark.req("S4-26", "S4-27")
def test_the_epoch_reaches_an_http_service_in_the_header_that_the_contract_names() -> None:
    """As by the parameter of a function."""
    settings = Cluster(checks_epochs=True)
    there = partial(Fleet, reached=over_http, settings=settings)
    ran = run(replace(DEPLOYS_BY_NAME["deploy-zombie"], place=lambda world: there(world=world)))

    assert ran.as_described is True
    assert at(ran, "cluster", "refused a late update: epoch 2 is older than 4") > at(ran, "resume")


@pytest.mark.req("F4-09", "S4-26")
def test_the_same_service_is_overwritten_where_nobody_hands_the_epoch_on() -> None:
    """Every write of the sleeper here is refused as well: that is not what saves the service."""
    wrong, ours = DEPLOYS_BY_NAME["deploy-zombie-unfenced"], DEPLOYS_BY_NAME["deploy-zombie"]
    went = ended(wrong.name)

    assert wrong.wrong == "F4-09"
    assert wrong.place is ours.place
    assert at(went, "fenced") > at(went, "resume")
    assert at(went, "cluster", f"web is at 8: {LATE}") > at(went, "resume")
    assert run(replace(wrong, design=ours.design)).as_described is False


@pytest.mark.req("S4-28")
def test_an_update_on_a_version_that_is_gone_overwrites_nothing() -> None:
    ran = ended("deploy-zombie-versions")

    assert at(ran, "cluster", 'it is at 7, not at "4"') > at(ran, "resume")


@pytest.mark.req("S4-27")
def test_where_nothing_stops_it_the_drift_is_seen_by_reading_and_a_person_decides() -> None:
    ran = ended("deploy-zombie-bare")

    order = [
        at(ran, "resume"),
        at(ran, "cluster", f"web is at 7: {LATE}"),
        at(ran, "drift", "web runs v2 at 100 %, and v1 at 100 % is wanted"),
        at(ran, "plan.ask", "set it to v1"),
        at(ran, "approval", "ana said yes"),
        at(ran, "tool.sent", "correct"),
    ]
    assert order == sorted(order)


@pytest.mark.req("S4-29")
def test_a_correction_is_dropped_when_something_else_is_wanted_by_then() -> None:
    ran = ended("deploy-zombie-moved-on")

    assert at(ran, "approval", "ana said yes") > at(ran, "cluster", "v3")
    assert at(ran, "skip", "wanted has changed")
    assert not [line for line in texts(ran, "tool.sent") if "correct" in line]


def _printed(name: str) -> str:
    return CliRunner().invoke(landed, ["demo", name, "--history"]).stdout


def main() -> None:
    """Keep how each scenario is printed now."""
    GOLDEN.mkdir(parents=True, exist_ok=True)
    for scenario in DEPLOYS:
        (GOLDEN / f"{scenario.name}.txt").write_text(_printed(scenario.name), "utf-8")


if __name__ == "__main__":
    main()
