"""`landed timeline`: prints or draws what happened, from a demo's JSON or from a store."""

import asyncio
import json
from pathlib import Path

import click

from landed.cli.opened import named_store, require_store
from landed.core.errors import ProposalError
from landed.testing.timeline import Line, Timeline, replayed


@click.command()
@click.argument("source", metavar="FILE|SESSION")
@named_store
@click.option("--tenant", default="default", show_default=True)
@click.option("--svg", "as_svg", is_flag=True, help="Draw it, as SVG on standard output.")
def command(source: str, url: str, tenant: str, as_svg: bool) -> None:
    """Print the timeline of a FILE that `landed demo NAME --json` wrote, or of a SESSION.

    With a SESSION it is read from the journal of the store; nothing is claimed or changed.
    """
    if Path(source).is_file():
        title, lines = _of_file(Path(source))
    else:
        title, lines = source, asyncio.run(_of_session(source, url, tenant))
    if as_svg:
        from landed.testing.picture import document

        click.echo(document(lines, title=title), nl=False)
        return
    for line in lines:
        click.echo(str(line))


def _of_file(path: Path) -> tuple[str, list[Line]]:
    try:
        ran = json.loads(path.read_bytes())
        if any("turn" in line for line in ran["timeline"]):
            raise ValueError("it counts turns of the event loop, and no time goes by")
        return str(ran["scenario"]), [Line(**line) for line in ran["timeline"]]
    except (ValueError, KeyError, TypeError) as error:
        raise click.ClickException(
            f"{path} is no timeline ({error}); write one with: landed demo NAME --json > FILE"
        ) from None


async def _of_session(session: str, url: str, tenant: str) -> list[Line]:
    from landed.stores.urls import open_store

    require_store(url)
    store = await open_store(url)
    try:
        timeline: Timeline = await replayed(store, tenant=tenant, session=session)
    finally:
        await store.close()
    if not timeline.lines:
        raise ProposalError(f"{url} has no session {session!r} with anything in it")
    return timeline.lines
