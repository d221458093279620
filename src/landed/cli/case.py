"""`landed case`: one case with all that is known of it, and a person's ruling on it.

Enough is shown to decide from it alone: what was authorised, by whom, what to search for at the
service, what was found out so far, and what may be said. A ruling carries a name and a note.
"""

import asyncio
from typing import TYPE_CHECKING, Any

import click

from landed.cli.opened import Place, deciding, placed, reading
from landed.cli.shown import show, show_json

if TYPE_CHECKING:
    from landed.core.canonical import Json

RULINGS = ("landed", "absent", "hold", "lift", "sign_off")


@click.group()
def command() -> None:
    """Show a case, and settle it."""


@command.command("show")
@click.argument("case")
@placed
def show_case(case: str, **given: Any) -> None:
    """Show CASE: the id of a case, or of an operation that cannot be found out."""
    place = Place(**given)
    _print(place, asyncio.run(_read(place, case)))


@command.command()
@click.argument("case")
@click.argument("ruling", type=click.Choice(RULINGS))
@click.option("--as", "by", required=True, envvar="LANDED_AS", metavar="NAME", help="Who says so.")
@click.option("--note", default="", help="Why, for the record.")
@click.option("--made", default="", help="The id of what it made, where it landed.")
@placed
def resolve(case: str, ruling: str, by: str, note: str, made: str, **given: Any) -> None:
    """Say of CASE that it landed, that it is absent, or that it stays open; or sign it off."""
    place = Place(**given)
    asyncio.run(_rule(place, case, ruling, by=by, note=note, made=made))
    _print(place, asyncio.run(_read(place, case)))


async def _rule(place: Place, case: str, ruling: str, *, by: str, note: str, made: str) -> None:
    from landed.core.case import Ruling
    from landed.runtime.inbox import Inbox

    async with deciding(place) as runtime:
        await Inbox(reader=runtime.driver.reader, tenant=place.tenant).case(case)
        await runtime.resolve(case, ruling=Ruling(ruling), by=by, note=note, made=made)


async def _read(place: Place, id: str) -> "dict[str, Json]":
    from landed.runtime.inbox import Inbox
    from landed.runtime.tracing import instant

    async with reading(place) as auditor:
        case = await Inbox(reader=auditor.reader, tenant=place.tenant).case(id)
    return {
        "case": case.id,
        "why": case.why,
        "state": case.state,
        "says": case.says,
        "since": instant(case.since),
        "tool": case.tool,
        "arguments": dict(case.arguments) if case.arguments is not None else None,
        "asked for by": case.principal,
        "in the words": case.words,
        "operation": case.operation,
        "search for": case.key or case.operation,
        "known until": instant(case.known_until) if case.known_until else "",
        "session": case.session,
        "turn": case.turn,
        "plan": case.plan,
        "retries": case.retries,
        "undoes": case.undoes,
        "evidence": [
            f"{instant(each.at)}  {each.source}{f' by {each.by}' if each.by else ''}: {each.says}"
            for each in case.evidence
        ],
        "may": list(case.may),
    }


def _print(place: Place, plain: "dict[str, Json]") -> None:
    if place.as_json:
        show_json(plain)
        return
    for name, value in plain.items():
        if value in ("", None, [], {}):
            continue
        if isinstance(value, list):
            show(f"{name}:")
            for each in value:
                show(each, indent="  ")
        else:
            show(f"{name}: {value}")
