"""`landed archive`: writes what is over to a directory, reads it back, and may then erase it."""

import asyncio
import time
from typing import TYPE_CHECKING, Any

import click

from landed.cli.keeping import aged, keeping, kept, tell
from landed.cli.opened import Place
from landed.cli.shown import show, show_json

if TYPE_CHECKING:
    from landed.runtime.keeping import Tally


@click.command()
@aged
@click.option("--to", default="", metavar="DIR", help="The directory; it is made where it is not.")
@click.option("--erase", is_flag=True, help="Erase the details of what is in the archive then.")
@click.option("--as", "by", envvar="LANDED_AS", metavar="NAME", help="Who has it erased.")
@click.option("--verify", "checks", default="", metavar="DIR", help="Compare an archive instead.")
@kept
def command(
    older_than: float | None,
    to: str,
    erase: bool,
    by: str | None,
    checks: str,
    **given: Any,
) -> None:
    """Archive what is over, of every conversation of the tenant; or verify an archive.

    It is written as JSON lines with its links and digests, fsynced and read back. Running it again
    goes on where one that died stopped, and writes nothing twice.
    """
    place = Place(**given)
    if checks:
        _verify(place, checks)
        return
    if older_than is None or not to:
        raise click.UsageError("give --older-than and --to, or --verify")
    if erase and not by:
        raise click.UsageError("say who has it erased: --as NAME, or LANDED_AS")
    tell(place, asyncio.run(_archive(place, older_than, to, by=by or "", erases=erase)))


async def _archive(place: Place, days: float, to: str, *, by: str, erases: bool) -> "Tally":
    from landed.core.keeping import Selection
    from landed.runtime.keeping import Retention

    erase_after_days = days if erases else None
    retention = Retention(archive_after_days=days, erase_after_days=erase_after_days, to=to)
    async with keeping(place, to) as keeper:
        chosen = Selection(tenant=place.tenant)
        return await keeper.keep(retention, by=by, now=time.time(), selection=chosen)


def _verify(place: Place, checks: str) -> None:
    problems = asyncio.run(_compare(place, checks))
    if place.as_json:
        show_json({"ok": not problems, "problems": problems})
    for problem in () if place.as_json else problems or ["it agrees with the store"]:
        show(problem)
    raise SystemExit(1 if problems else 0)


async def _compare(place: Place, checks: str) -> list[str]:
    async with keeping(place, checks) as keeper:
        return await keeper.verify()
