"""`landed backup`: copies a store in SQLite while its workers write, and checks the copy."""

from dataclasses import asdict

import click

from landed.cli.opened import SQLITE_URL, app_of, named_store, require_store
from landed.cli.shown import show, show_json
from landed.core.errors import StoreError

POSTGRES = (
    "a store in Postgres is backed up with Postgres' own means: pg_dump for a copy of one moment,"
    " or a base backup with its log (PITR) to lose nothing; docs/guides/backup.md says what to"
    " note beside it"
)


@click.command()
@named_store
@click.option("--to", required=True, metavar="FILE", help="The copy; it must not be there yet.")
@click.option("--app", default="", metavar="MODULE[:NAME]", help="The application: its secret.")
@click.option("--json", "as_json", is_flag=True, help="Print an object instead.")
def command(url: str, to: str, app: str, as_json: bool) -> None:
    """Copy a store to FILE: one moment of it, fsynced, every record and link of it checked."""
    from landed.stores.backup import back_up

    if not url.startswith(SQLITE_URL):
        raise StoreError(POSTGRES)
    require_store(url)
    copied = back_up(url.removeprefix(SQLITE_URL), to, secrets=app_of(app).secrets)
    if as_json:
        show_json(asdict(copied))
        return
    show(f"{to}: {copied.records} records, {copied.entries} entries of one chain, all checked")
