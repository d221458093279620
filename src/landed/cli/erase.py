"""`landed erase`: has the details of what is over go, and writes down who had them go, and why."""

import asyncio
import time
from typing import TYPE_CHECKING, Any

import click

from landed.cli.keeping import aged, keeping, kept, tell, who
from landed.cli.opened import Place
from landed.core.errors import ProposalError

if TYPE_CHECKING:
    from landed.core.keeping import Selection
    from landed.runtime.keeping import Tally

DAY_S = 86_400.0


@click.command()
@click.option("--record", default="", metavar="ID", help="An operation, a plan, …: its strand.")
@click.option("--session", default="", help="A whole conversation.")
@click.option("--principal", default="", help="What this person asked for.")
@aged
@click.option("--why", required=True, help="Why, for the journal.")
@click.option("--rewrite", is_flag=True, help="Write the file anew; nobody can write meanwhile.")
@who
@kept
def command(
    record: str,
    session: str,
    principal: str,
    older_than: float | None,
    why: str,
    rewrite: bool,
    by: str,
    **given: Any,
) -> None:
    """Erase arguments, results and words of what is selected and over; all that is given must fit.

    Ids, states, times, who asked and who agreed stay, and so does every link of the journal. What
    is open, waits for somebody or can still be taken back is left alone, with a sentence.
    """
    from landed.core.keeping import Selection

    if not (record or session or principal or older_than is not None):
        raise click.UsageError("name what: --record, --session, --principal or --older-than")
    place = Place(**given)
    now = time.time()
    days = older_than or 0.0
    chosen = Selection(
        tenant=place.tenant,
        session=session,
        record=record,
        principal=principal,
        before=now - days * DAY_S,
    )
    tell(place, asyncio.run(_erase(place, chosen, by=by, why=why, now=now, rewrites=rewrite)))


async def _erase(
    place: Place, chosen: "Selection", *, by: str, why: str, now: float, rewrites: bool
) -> "Tally":
    from landed.core.erasing import WHY_MAX, Erasure

    if len(why) > WHY_MAX:
        raise ProposalError(f"the reason has {len(why)} characters; at most {WHY_MAX} are kept")
    async with keeping(place) as keeper:
        return await keeper.erase(chosen, Erasure(by=by, why=why, at=now), rewrites=rewrites)
