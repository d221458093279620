"""The switches of `landed demo`: another rule, contract, world or process for one scenario."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from landed.testing.scenario import Scenario

Command = Callable[..., None]

# Options in the order they are listed; the names are those of `landed.testing.switches.Switches`.
OPTIONS = (
    click.option(
        "--no-reconcile",
        "reconcile",
        is_flag=True,
        flag_value=False,
        default=None,
        help="Rule: take a stopped wait for a cancellation.",
    ),
    click.option(
        "--no-fencing",
        "fencing",
        is_flag=True,
        flag_value=False,
        default=None,
        help="Rule: never close a key; take 'not found' for a no.",
    ),
    click.option(
        "--key",
        type=click.Choice(("operation", "step", "turn")),
        help="Rule: what a key names.",
    ),
    click.option(
        "--order",
        type=click.Choice(("secure-first", "release-first")),
        help="Contract: which goes first.",
    ),
    click.option(
        "--delayed",
        is_flag=True,
        default=None,
        help="World: the first request is long on its way.",
    ),
    click.option("--full", multiple=True, metavar="DAY", help="World: no table on that day."),
    click.option("--fee", type=click.IntRange(0), help="World: what cancelling costs."),
    click.option(
        "--strict-keys/--lenient-keys",
        "strict_keys",
        default=None,
        help="World: refuse a key reused with other details, or not.",
    ),
    click.option(
        "--lose-ops",
        is_flag=True,
        default=None,
        help="Store: it loses its operations at a restart.",
    ),
)


def options(command: Command) -> Command:
    """Give a command all switches, as keyword arguments."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def touched(switches: dict[str, Any]) -> dict[str, object]:
    """Return the switches that were given, as `Switches` names them."""
    given = {name: value for name, value in switches.items() if value not in (None, ())}
    if "fee" in given:
        given["fee_cents"] = given.pop("fee") * 100
    return given


def switched(scenario: "Scenario", given: dict[str, object]) -> "Scenario":
    """Return the scenario with these switches; raises a usage error for what makes no sense."""
    from landed.testing.switches import switched as with_switches

    try:
        return with_switches(scenario, **given)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
