"""The switches of `landed demo`: another rule, contract, world or process for one scenario."""

from collections.abc import Callable
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from landed.testing.invoices.scenario import InvoiceScenario
    from landed.testing.scenario import Scenario

Command = Callable[..., None]


def _wrong(name: str, help: str) -> Callable[[Command], Command]:
    """Return the option of a wrong design over an invoice scenario."""
    return click.option(f"--{name}", is_flag=True, default=None, help=f"Invoices: {help}")


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
    # Those of `landed.testing.invoices.switches.InvoiceSwitches`.
    _wrong("end-in-error", "a plan that ran some steps ends in an error, and lets go of them."),
    _wrong("no-drain", "a process that is to end waits for nothing."),
    _wrong("consume-on-mismatch", "whoever presents an approval uses it up."),
    _wrong("lenient-yes", "what begins with a yes is one."),
    _wrong("model-key", "the model names its calls, and nothing else stands in its way."),
    _wrong("retry-new-plan", "a retry is another plan."),
    _wrong("ask-each-step", "a question for each step."),
    _wrong("cancel-kills", "a step that is stopped is taken for cancelled."),
    click.option(
        "--lang",
        "language",
        type=click.Choice(("en", "es")),
        help="Invoices: what the user speaks.",
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


def switched(
    scenario: "Scenario | InvoiceScenario", given: dict[str, object]
) -> "Scenario | InvoiceScenario":
    """Return the scenario with these switches; raises a usage error for what makes no sense."""
    from landed.testing.invoices.scenario import InvoiceScenario
    from landed.testing.invoices.switches import switched as with_invoice_switches
    from landed.testing.switches import Switches
    from landed.testing.switches import switched as with_switches

    try:
        if isinstance(scenario, InvoiceScenario):
            return with_invoice_switches(scenario, **given)
        if strange := set(given) - {each.name for each in fields(Switches)}:
            raise ValueError(f"{', '.join(sorted(strange))}: only with the invoice scenarios")
        return with_switches(scenario, **given)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
