"""How a command opens a store: to read, to write down a decision, or with the application's tools.

To read is to claim nothing. A decision without the application is written down by a runtime that
has no tools, adopts nothing and starts nothing; the application's own worker carries it out.
"""

import os
import sys
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from landed.core.errors import StoreError

if TYPE_CHECKING:
    from landed.core.onlooker import Onlooker
    from landed.runtime.auditing import Auditor
    from landed.runtime.opened import Settings
    from landed.runtime.permissions import Permissions
    from landed.runtime.runtime import Runtime

STORE = "sqlite:///agent.db"
STORE_VARIABLE = "LANDED_STORE"
"""Names the store for every command that works on the application's."""

SQLITE_URL = "sqlite:///"
SECRET = "LANDED_SECRET"

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class App:
    """What an application offers to be run with: its tools, and what goes with them."""

    tools: tuple[object, ...] = ()
    permissions: "Permissions | None" = None
    settings: "Settings | None" = None
    telemetry: "Onlooker | None" = None
    secrets: tuple[bytes, ...] = (b"",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Which store, whose records, and how it is printed; `app` is "" without an application.

    `lang` is the language of the sentences, None for the application's own.
    """

    url: str
    tenant: str
    as_json: bool
    app: str
    lang: str | None = None


named_store = click.option(
    "--store",
    "url",
    envvar=STORE_VARIABLE,
    default=STORE,
    show_default=True,
    metavar="URL",
    help="The store, or LANDED_STORE.",
)


def placed(command: Command) -> Command:
    """Give a command the options of a `Place`, as keyword arguments."""
    options = (
        named_store,
        click.option("--tenant", default="default", show_default=True),
        click.option("--lang", type=click.Choice(("en", "es")), help="Of the sentences."),
        click.option("--json", "as_json", is_flag=True, help="Print an object instead."),
        click.option(
            "--app",
            default="",
            metavar="MODULE[:NAME]",
            help="The application: what offers its tools, and may offer permissions and a secret.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


@asynccontextmanager
async def reading(place: Place) -> "AsyncGenerator[Auditor]":
    """Open the store to read it; nothing is claimed and nothing is written."""
    from landed.runtime.auditing import Auditor
    from landed.runtime.reader import Reader
    from landed.stores.urls import open_store

    require_store(place.url)
    secrets = app_of(place.app).secrets
    store = await open_store(place.url, secret=secrets[0], older=secrets[1:])
    try:
        yield Auditor(reader=Reader(store=store), tenant=place.tenant)
    finally:
        await store.close()


@asynccontextmanager
async def deciding(place: Place) -> "AsyncGenerator[Runtime]":
    """Open a runtime on the store: the application's, or one that only writes decisions down."""
    from landed.runtime.parts import assemble
    from landed.stores.urls import open_store

    require_store(place.url)
    app = app_of(place.app)
    if place.app:
        async with running(place.url, app) as runtime:
            yield runtime
        return
    store = await open_store(place.url, secret=app.secrets[0], older=app.secrets[1:])
    try:
        runtime = assemble(store, tools={}, secrets=app.secrets, decides_only=True)
        async with runtime:
            yield runtime
    finally:
        await store.close()


def running(url: str, app: App) -> "AbstractAsyncContextManager[Runtime]":
    """Open the application's own runtime on the store; a store that is not there is made."""
    from landed.assemble import open_runtime

    return open_runtime(
        url,
        tools=app.tools,
        settings=app.settings,
        permissions=app.permissions,
        secret=app.secrets,
        telemetry=app.telemetry,
    )


def require_store(url: str) -> None:
    """Raise `StoreError` for a file that is not there: reading must not make one."""
    path = url.removeprefix(SQLITE_URL)
    if url.startswith(SQLITE_URL) and not Path(path).is_file():
        raise StoreError(f"there is no store at {path}; name it by --store, or by LANDED_STORE")


def app_of(name: str) -> App:
    """Return the application that a MODULE[:NAME] names; "" has no tools.

    NAME is as `landed.cli.apps.tools_of` reads it. The module may also have `permissions`,
    `settings`, `secret` and `telemetry`. Raises a usage error for what cannot be imported.
    """
    if not name:
        return App(secrets=(os.environ.get(SECRET, "").encode(),))
    from landed.cli.apps import tools_of

    tools = tools_of(name)
    offered = sys.modules[name.partition(":")[0]]
    return App(
        tools=tools,
        permissions=getattr(offered, "permissions", None),
        settings=getattr(offered, "settings", None),
        telemetry=getattr(offered, "telemetry", None),
        secrets=_secrets(getattr(offered, "secret", b"")),
    )


def _secrets(secret: object) -> tuple[bytes, ...]:
    if isinstance(secret, bytes):
        return (secret,)
    given = cast("Iterable[object]", secret) if isinstance(secret, Iterable) else ()
    held = tuple(each for each in given if isinstance(each, bytes))
    if not held:
        raise click.UsageError("--app: its secret is to be bytes, or several of them, newest first")
    return held
