"""The scenarios of a stop in `landed demo`: how each is played, printed and put into the table."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from landed.testing.stops.scenario import StopRan

NO_MORE = (
    "{name} has neither world nor store, and its wrong designs are scenarios of their own:"
    " it takes --json, and none of --history, --kill, --points, --seed, --simulated, --store"
    " and the switches"
)


def names() -> tuple[str, ...]:
    """Return the names of all, in the order in which they are listed."""
    from landed.testing.stops.scenarios import STOPS_BY_NAME

    return tuple(STOPS_BY_NAME)


def is_one(name: str) -> bool:
    """Whether a scenario of that name is one of them."""
    return name in names()


def play(name: str, *, as_json: bool, is_plain: bool) -> int:
    """Play one and print it; return the exit status. Raises a usage error for other options."""
    from landed.testing.stops.scenario import run
    from landed.testing.stops.scenarios import STOPS_BY_NAME

    if not is_plain:
        raise click.UsageError(NO_MORE.format(name=name))
    ran = run(STOPS_BY_NAME[name])
    if as_json:
        click.echo(json.dumps(ran.plain(), indent=2, ensure_ascii=False))
    else:
        told = (f"-- {what}: {how}" for what, how in ran.end.told())
        for line in (*map(str, ran.lines), *told):
            click.echo(line)
    return _status(ran)


def every_played() -> "list[StopRan]":
    """Play all of them."""
    from landed.testing.stops.scenario import run
    from landed.testing.stops.scenarios import STOPS

    return [run(scenario) for scenario in STOPS]


def rows(ran: "Sequence[StopRan]") -> list[tuple[str, ...]]:
    """Return the table of these, with its heading."""
    heading = ("scenario of a stop", "its last record", "ended", "as described")
    return [
        heading,
        *(
            (
                one.scenario.name,
                one.end.records[-1],
                ", ".join(one.end.endings) or "-",
                "yes" if one.as_described else "no",
            )
            for one in ran
        ),
    ]


def _status(ran: "StopRan") -> int:
    if ran.as_described:
        return 0
    otherwise = "; ".join(
        f"{name} should be {wanted!r} and is {found!r}" for name, wanted, found in ran.differences()
    )
    said = f"landed demo: {ran.scenario.name} did not end as described: {otherwise}"
    click.echo(said, err=True)
    return 1
