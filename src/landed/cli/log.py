"""`landed log`: the log of a conversation: read, checked, freed of a torn end, taken from a store.

A line that cannot be read is never passed over, and no command but `repair` changes a log.
"""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from landed.cli.opened import Place, named_store, reading
from landed.cli.shown import show, show_json

if TYPE_CHECKING:
    from landed.agent.messages import Message
    from landed.agent.session_log import Repaired

Problems = list[tuple[int, str]]
"""What is wrong with a log, each with its line."""

a_log = click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
as_json = click.option("--json", "as_json", is_flag=True, help="Print it as JSON instead.")


@click.group()
def command() -> None:
    """Show, check, repair or export the log of a conversation."""


@command.command("show")
@a_log
@as_json
def show_log(file: Path, as_json: bool) -> None:
    """Show the conversation of FILE as it stands, a line for each message."""
    from landed.agent.messages import render

    messages = [message for _, message in _conversation(file)]
    if as_json:
        show_json(messages)
    elif messages:
        show(render(messages))


@command.command()
@a_log
@as_json
def check(file: Path, as_json: bool) -> None:
    """Check that each line of FILE can be read, and that each result answers one call."""
    from landed.agent.log_lines import LogError
    from landed.agent.validate import problems_by_place

    problems: Problems = []
    said: list[tuple[int, Message]] = []
    try:
        said = _conversation(file)
    except LogError as error:
        problems = [(error.line, error.problem)]
    found = problems_by_place([message for _, message in said])
    problems += [(said[place][0], problem) for place, problem in found]
    if as_json:
        wrong = [{"line": line, "problem": problem} for line, problem in problems]
        show_json({"ok": not wrong, "messages": len(said), "problems": wrong})
    else:
        show("\n".join(_checked(file, problems, count=len(said))))
    raise SystemExit(1 if problems else 0)


@command.command()
@a_log
@as_json
def repair(file: Path, as_json: bool) -> None:
    """Cut from FILE an end that cannot be read; what is cut is kept in a file beside it."""
    from landed.agent.session_log import repair_tail

    with _said_in_a_line(file):
        repaired = repair_tail(file)
    if not as_json:
        show(_repaired(file, repaired))
        return
    if repaired is None:
        show_json({"line": None, "cut_bytes": 0, "kept_in": None})
        return
    kept_in = None if repaired.kept_in is None else str(repaired.kept_in)
    show_json({"line": repaired.line, "cut_bytes": repaired.cut_bytes, "kept_in": kept_in})


@command.command()
@click.argument("session")
@click.argument("file", type=click.Path(path_type=Path))
@named_store
@click.option("--tenant", default="default", show_default=True)
def export(session: str, file: Path, url: str, tenant: str) -> None:
    """Write the conversation SESSION of a store into a new log FILE; the store is only read."""
    asyncio.run(_export(session, file, Place(url=url, tenant=tenant, as_json=False, app="")))


async def _export(session: str, file: Path, place: Place) -> None:
    from landed.agent.journal_log import export_to, journal_entries
    from landed.agent.session_log import SessionLog

    async with reading(place) as auditor:
        store = auditor.reader.store
        entries = await journal_entries(store, session=session, tenant=place.tenant)
    if not entries:
        raise click.ClickException(f"{place.url} has no conversation of an agent in {session!r}")
    try:
        count = export_to(SessionLog(file), entries)
    except (OSError, ValueError) as error:
        raise click.ClickException(str(error)) from None
    show(f"{file}: {count} entries of {session}")


def _conversation(file: Path) -> "list[tuple[int, Message]]":
    """Return each message of the conversation as it stands, with its line."""
    from landed.agent.log_lines import kept
    from landed.agent.session_log import SessionLog

    with _said_in_a_line(file):
        entries = SessionLog(file).entries()
    return [(int(id.removeprefix("e")), message) for id, message in kept(file, entries)]


def _checked(file: Path, problems: Problems, *, count: int) -> list[str]:
    if not problems:
        return [f"{file}: {count} messages, nothing wrong"]
    return [f"{file}{f', line {line}' if line else ''}: {problem}" for line, problem in problems]


def _repaired(file: Path, repaired: "Repaired | None") -> str:
    if repaired is None:
        return f"{file}: its end can be read; there is nothing to cut"
    if repaired.kept_in is None:
        return f"{file}, line {repaired.line}: it was whole but for its end, which it has now"
    cut = f"cut {repaired.cut_bytes} bytes that cannot be read; they are in {repaired.kept_in}"
    return f"{file}, line {repaired.line}: {cut}"


@contextmanager
def _said_in_a_line(file: Path) -> Generator[None]:
    """Turn what the system says of a file into an error of the command line."""
    try:
        yield
    except OSError as error:
        raise click.ClickException(f"{file}: {error.strerror}") from error
