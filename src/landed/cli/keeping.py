"""What the commands that archive and erase share: ages, the store, and how it is told."""

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from landed.cli.opened import Place, app_of, require_store
from landed.cli.shown import show, show_json

if TYPE_CHECKING:
    from landed.runtime.keeping import Keeper, Tally

_AGE = re.compile(r"(\d+(?:\.\d+)?)([dh])")
_DAYS = {"d": 1.0, "h": 1 / 24}


class Age(click.ParamType):
    """An age such as `90d` or `12h`, in days."""

    name = "age"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the days in it, or fail as a usage error."""
        found = _AGE.fullmatch(str(value))
        if found is None:
            self.fail(f"{value!r} is no age; write 90d or 12h", param, ctx)
        return float(found[1]) * _DAYS[found[2]]


who = click.option(
    "--as", "by", required=True, envvar="LANDED_AS", metavar="NAME", help="Who has it done."
)


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
