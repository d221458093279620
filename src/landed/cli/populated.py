"""`landed serve --demo`: an example to look around in, instead of an application of one's own.

Its services run in the same process, and are gone when that ends. So is its store, unless one was
named: then it stays, to be read by the other commands.
"""

import tempfile
from collections.abc import Awaitable, Callable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click

from landed.cli.opened import SQLITE_URL, App, app_of

if TYPE_CHECKING:
    from landed.runtime.runtime import Runtime

EXTRAS = "for the example, pip install 'landed[console,demo]'"


async def nothing(runtime: "Runtime") -> None:
    """Do nothing before it is served."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """What is served: which store, with which application, and what is done before it is."""

    url: str
    app: App
    begins: "Callable[[Runtime], Awaitable[None]]" = nothing


@contextmanager
def offered(app: str, url: str, *, lang: str | None) -> Generator[Offered]:
    """Offer an application of somebody's, on the store at `url`."""
    found = app_of(app)
    if lang is not None:
        from landed.runtime.opened import Settings

        said = replace(found.settings or Settings(), language=lang)
        found = replace(found, settings=said)
    yield Offered(url=url, app=found)


@contextmanager
def example(url: str, *, person: str, lang: str | None) -> Generator[Offered]:
    """Offer the example, to a `person`; on a store of its own where `url` is ""."""
    try:
        from landed.testing.populated.place import place
        from landed.testing.populated.scenes import populate
    except ModuleNotFoundError as missing:
        if (missing.name or "").startswith("landed"):
            raise
        raise click.ClickException(f"{missing.name} is missing: {EXTRAS}") from missing

    async def begins(runtime: "Runtime") -> None:
        await populate(runtime, person=person)

    with ExitStack() as stack:
        there = stack.enter_context(place(person, language=lang or "en"))
        if not url:
            where = stack.enter_context(tempfile.TemporaryDirectory(prefix="landed-demo-"))
            url = f"{SQLITE_URL}{where}/demo.db"
        app = App(tools=there.tools, permissions=there.permissions, settings=there.settings)
        yield Offered(url=url, app=app, begins=begins)
