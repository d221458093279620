"""`landed doctor`: whether this machine can keep what a store promises, checked and read back."""

import asyncio
import json
import platform
import re
import sys
import tempfile
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from pathlib import Path

import click

from landed.cli.inbox import age
from landed.cli.opened import STORE_VARIABLE
from landed.core.census import FIRST_SENT_AT
from landed.core.errors import StoreError
from landed.core.store import Fact
from landed.runtime.clock import WallClock
from landed.runtime.lookout import facts_of
from landed.stores.locks import FileLock
from landed.stores.marks import marks_of
from landed.stores.urls import open_store

PYTHON_MIN = (3, 11)
SQLITE_URL = "sqlite:///"
NOT_THERE = "not there yet; its directory was checked with a store made for the moment"
_PASSWORD = re.compile(r"(?<=:)[^:/@]+(?=@)|(?<=password=)[^&]+")
NO_STORE = "none named (--store); the directory for temporary files was checked"


@click.command()
@click.option(
    "--store", "url", envvar=STORE_VARIABLE, default="", metavar="URL", help="Else LANDED_STORE."
)
@click.option("--json", "as_json", is_flag=True, help="Print an object instead of a table.")
def command(url: str, as_json: bool) -> None:
    """Check Python, SQLite and the disk under a store; exit with 1 when something is wrong.

    A store that is there is opened as any process would open it. Where there is none, nothing is
    left behind.
    """
    facts = examine(url)
    sound = all(fact.ok for fact in facts)
    if as_json:
        found = {"ok": sound, "facts": [asdict(fact) for fact in facts]}
        click.echo(json.dumps(found, indent=2))
    else:
        for line in table(facts):
            click.echo(line)
    raise SystemExit(0 if sound else 1)


def examine(url: str) -> list[Fact]:
    """Return what is so about this Python and about a store; "" for one made for the moment.

    Raises `StoreError` when the store cannot be opened.
    """
    with warnings.catch_warnings():
        # What the store would warn of is a line of the table.
        warnings.simplefilter("ignore", RuntimeWarning)
        try:
            return [_python(), *_store(url)]
        except OSError as error:
            raise StoreError(
                f"the directory of {url or 'temporary files'} cannot be written; give it to the"
                f" user that runs this process ({error})"
            ) from error


def table(facts: Iterable[Fact]) -> Iterator[str]:
    """Yield a line for each fact, with what to do about those that are not as they should be."""
    for fact in facts:
        line = f"{'ok' if fact.ok else 'advice':<8}{fact.name:<16}{fact.value}"
        yield line if fact.ok else f"{line}: {fact.advice}"


def _store(url: str) -> list[Fact]:
    path = Path(url.removeprefix(SQLITE_URL)) if url.startswith(SQLITE_URL) else None
    if url and path is None:
        return [_named(url), *asyncio.run(_facts(url))]
    if path is not None and (path.exists() or not path.parent.is_dir()):
        return [_named(url), *asyncio.run(_facts(url)), _lock(path.parent)]
    with tempfile.TemporaryDirectory(prefix=".landed-", dir=path and path.parent) as directory:
        said = f"{url}: {NOT_THERE}" if url else NO_STORE
        made = f"{SQLITE_URL}{directory}/doctor.db"
        return [_named(said), *asyncio.run(_facts(made)), _lock(Path(directory))]


async def _facts(url: str) -> tuple[Fact, ...]:
    store = await open_store(url)
    try:
        now = WallClock().now()
        facts = *await store.facts(), *await facts_of(store, marks_of(url))
        return tuple(_aged(fact, now) for fact in facts)
    finally:
        await store.close()


def _aged(fact: Fact, now: float) -> Fact:
    """Say how long the oldest doubt stands; a store has no clock to say it by."""
    since = fact.numbers.get(FIRST_SENT_AT)
    return fact if since is None else replace(fact, value=f"{age(now - since)}: {fact.value}")


def _named(url: str) -> Fact:
    return Fact(name="store", value=_PASSWORD.sub("***", url), ok=True)


def _python() -> Fact:
    return Fact(
        name="python",
        value=platform.python_version(),
        ok=sys.version_info >= PYTHON_MIN,
        advice="use Python 3.11 or newer",
    )


def _lock(directory: Path) -> Fact:
    """Try a file lock in the directory: it must keep two holders apart."""
    with tempfile.NamedTemporaryFile(prefix=".landed-", dir=directory) as file:
        first, second = FileLock(Path(file.name)), FileLock(Path(file.name))
        try:
            apart = first.try_lock() and not second.try_lock()
        finally:
            first.close()
            second.close()
    return Fact(
        name="lock",
        value="keeps two holders apart" if apart else "does not keep two holders apart",
        ok=apart,
        advice="processes would take each other for dead; put the store on a local disk",
    )
