"""`landed restored`: says that a store was put back from a backup, where no mark could tell.

It writes that down, and nothing else: the workers find out what was open before they send anything.
With `--done` a person takes it upon themselves that nothing more has to be found out.
"""

import asyncio
import time
from datetime import datetime

import click

from landed.cli.opened import app_of, named_store, require_store
from landed.cli.shown import show
from landed.core.errors import ProposalError
from landed.core.incarnation import Incarnation, reconciled, writing
from landed.core.store import Store
from landed.runtime.lookout import current, declare
from landed.stores.urls import open_store


@click.command()
@named_store
@click.option("--as", "by", required=True, envvar="LANDED_AS", metavar="NAME", help="Who says so.")
@click.option("--note", default="", help="Why, for the record.")
@click.option(
    "--backup-at",
    "backup_at",
    default="",
    metavar="TIME",
    help="When the backup was made, with its zone: 2026-11-30T12:00:00+00:00.",
)
@click.option("--done", is_flag=True, help="Nothing more has to be found out: send again.")
def command(url: str, by: str, note: str, backup_at: str, done: bool) -> None:
    """Declare that a store was restored from a backup, or that its reconciliation is over."""
    at = time_of(backup_at) if backup_at else None
    now = asyncio.run(_write(url, by=by, note=note, known_at=at, done=done))
    show(f"restore {now.number} is {now.state}: {now.why} ({now.by})")


def time_of(text: str) -> float:
    """Return a time with its zone as UTC seconds; raises a usage error for one without."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        raise click.UsageError(f"--backup-at: {error}") from None
    if at.tzinfo is None:
        raise click.UsageError(f"--backup-at: {text} has no zone; write +00:00 after it for UTC")
    return at.timestamp()


async def _write(
    url: str, *, by: str, note: str, known_at: float | None, done: bool
) -> Incarnation:
    require_store(url)
    secrets = app_of("").secrets
    store = await open_store(url, secret=secrets[0], older=secrets[1:])
    try:
        if done:
            await _close(store, by=by, note=note)
        else:
            why = note or "somebody said so"
            await declare(store, missed=None, by=by, why=why, at=time.time(), known_at=known_at)
        return await current(store)
    finally:
        await store.close()


async def _close(store: Store, *, by: str, note: str) -> None:
    now = await current(store)
    if not now.reconciling:
        raise ProposalError("no restore of this store is being reconciled")
    why = note or "somebody said that nothing more has to be found out"
    await store.commit(writing(reconciled(now, by=by, why=why, at=time.time())))
