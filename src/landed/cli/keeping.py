"""What the commands that archive and erase share: ages, the store, and how it is told."""

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from landed.cli.opened import Command, Place, app_of, named_store, require_store
from landed.cli.shown import show, show_json

if TYPE_CHECKING:
    from landed.runtime.keeping import Keeper, Tally

_AGE = re.compile(r"(\d+(?:\.\d+)?)([dh])")
_DAYS = {"d": 1.0, "h": 1 / 24}


def _days(ctx: click.Context, parameter: click.Parameter, value: str | None) -> float | None:
    """Return an age such as `90d` or `12h` in days; raises a usage error for any other text."""
    if value is None:
        return None
    found = _AGE.fullmatch(value)
    if found is None:
        raise click.BadParameter(f"{value!r} is no age; write 90d or 12h", ctx, parameter)
    return float(found[1]) * _DAYS[found[2]]


aged = click.option(
    "--older-than",
    callback=_days,
    metavar="AGE",
    help="What has been over for that long: 90d, 12h.",
)

who = click.option(
    "--as", "by", required=True, envvar="LANDED_AS", metavar="NAME", help="Who has it done."
)


def kept(command: Command) -> Command:
    """Give a command the options of a `Place`, but for the language: nobody is spoken to."""
    options = (
        named_store,
        click.option("--tenant", default="default", show_default=True),
        click.option("--json", "as_json", is_flag=True, help="Print an object instead."),
        click.option("--app", default="", metavar="MODULE[:NAME]", help="Its secret is used."),
    )
    for option in reversed(options):
        command = option(command)
    return command


@asynccontextmanager
async def keeping(place: Place, to: str = "") -> "AsyncGenerator[Keeper]":
    """Open a store to archive and erase in it; with `to`, the directory of an archive."""
    from landed.runtime.archive import Archive
    from landed.runtime.keeping import Keeper
    from landed.stores.urls import open_store

    require_store(place.url)
    secrets = app_of(place.app).secrets
    store = await open_store(place.url, secret=secrets[0], older=secrets[1:])
    archive = Archive(place=Path(to), secrets=secrets) if to else None
    try:
        yield Keeper(store=store, keeping=store.keeping(), archive=archive)
    finally:
        await store.close()


def tell(place: Place, tally: "Tally") -> None:
    """Print what was done."""
    if place.as_json:
        show_json(asdict(tally))
        return
    show(f"archived {tally.archived}, erased {tally.erased}, not at rest {tally.busy}")
    for why in tally.refused:
        show(f"left alone: {why}")
    if tally.left:
        show(f"still to be done: {tally.left}")
