"""`landed serve`: the HTTP API and the console over an application's own runtime, until stopped.

It listens on the loopback, where nothing else is said, and nowhere else without knowing who calls.
SIGTERM and Ctrl-C drain, as with a worker.
"""

import asyncio
import getpass
import signal
import socket
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from landed.cli.opened import named_store, running
from landed.cli.populated import Offered, example, offered
from landed.cli.shown import show

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from landed.agent.button import Buttons
    from landed.console.seal import Link
    from landed.runtime.runtime import Runtime
    from landed.server.auth import Authenticate

LOOPBACK = ("127.0.0.1", "::1", "localhost")
STOPS = (signal.SIGTERM, signal.SIGINT)
FAREWELL_S = 5  # how long an answer that is under way is waited for at the end
SECRET_MIN = 16  # bytes of a secret that is given
CONSOLE_NEEDS = ("cryptography", "cryptography.fernet", "jinja2", "markupsafe")
NO_CONSOLE = "there is no console here; for one: pip install 'landed[console]'"


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """How it is served: who calls, by which names, and the console beside the API.

    `owner` is who has the start-up link where nobody has a token; `secret` seals the cookies;
    `buttons` stop the agents that the application runs in this process.
    """

    authenticate: "Authenticate | None"
    hosts: set[str]
    owner: str
    console: bool
    secret: bytes
    buttons: "Buttons | None" = None


@click.command()
@named_store
@click.option(
    "--app", default="", metavar="MODULE[:NAME]", help="The application: what offers its tools."
)
@click.option("--demo", is_flag=True, help="An example instead, with something in every list.")
@click.option("--lang", type=click.Choice(("en", "es")), help="Of the pages and the sentences.")
@click.option("--host", default=LOOPBACK[0], show_default=True, help="Where to listen.")
@click.option("--port", default=8080, show_default=True, type=click.IntRange(0, 65535))
@click.option(
    "--tokens",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Who may call: a TOML file of bearer tokens, read again when it changes.",
)
@click.option(
    "--name", "names", multiple=True, help="A host name it is called by, besides its own."
)
@click.option("--console/--no-console", default=True, help="With the web console, or the API only.")
@click.option(
    "--secret-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    envvar="LANDED_CONSOLE_SECRET_FILE",
    help="What seals the console's cookies, where several processes serve it.",
)
@click.option(
    "--as",
    "owner",
    default=getpass.getuser,
    envvar="LANDED_AS",
    metavar="NAME",
    help="Who you are without --tokens; else you are your user here.",
)
@click.pass_context
def command(
    asked: click.Context,
    url: str,
    app: str,
    demo: bool,
    lang: str | None,
    host: str,
    port: int,
    tokens: Path | None,
    names: tuple[str, ...],
    console: bool,
    secret_file: Path | None,
    owner: str,
) -> None:
    """Serve plans, operations and sessions over HTTP with a console, and carry them out.

    The application may say who calls, with an `authenticate`, and bring the `buttons` by which its
    agents are stopped. Without that or --tokens you are let
    into the console by the link that is printed, and whatever calls the API on this machine is an
    agent of yours, which can agree to nothing. --demo has services of its own, and a store that is
    removed afterwards, or the new one that --store names.
    """
    if demo == bool(app) or (demo and tokens is not None):
        raise click.UsageError("say what is served: either --app, or --demo (without --tokens)")
    is_named = asked.get_parameter_source("url") is ParameterSource.COMMANDLINE
    whose = url if is_named else ""
    what = example(whose, person=owner, lang=lang) if demo else offered(app, url, lang=lang)
    with what as serves:
        authenticate = None if demo else _authenticate(app, tokens)
        serving = Serving(
            authenticate=authenticate,
            hosts={host, *LOOPBACK, *names} if authenticate is None or names else set(),
            owner=owner,
            console=console,
            secret=_secret(secret_file),
            buttons=None if demo else _buttons(app),
        )
        with _door(host, port, is_safe=authenticate is not None) as door:
            asyncio.run(_serve(serves, serving, door))


def _door(host: str, port: int, *, is_safe: bool) -> socket.socket:
    if host not in LOOPBACK and not is_safe:
        raise click.UsageError(f"--host {host}: without --tokens only the loopback is listened on")
    from landed.server.listening import listen_at

    try:
        return listen_at(host, port)
    except OSError as error:
        raise click.ClickException(f"{host}:{port} cannot be listened on: {error}") from None


def _authenticate(app: str, tokens: Path | None) -> "Authenticate | None":
    from landed.server.auth import Tokens

    own: Authenticate | None = getattr(sys.modules[app.partition(":")[0]], "authenticate", None)
    if own is not None and tokens is not None:
        raise click.UsageError("--tokens: the application says by itself who calls")
    return Tokens(file=tokens) if tokens is not None else own


def _buttons(app: str) -> "Buttons | None":
    """Return the buttons that an application offers for the agents that it runs here."""
    from landed.agent.button import Buttons

    own = getattr(sys.modules[app.partition(":")[0]], "buttons", None)
    if own is not None and not isinstance(own, Buttons):
        raise click.UsageError(f"--app: its buttons are no {Buttons.__module__}.Buttons")
    return own


def _secret(file: Path | None) -> bytes:
    secret = file.read_bytes().strip() if file is not None else b""
    if file is not None and len(secret) < SECRET_MIN:
        raise click.UsageError(f"--secret-file: at least {SECRET_MIN} bytes that nobody can guess")
    return secret


async def _serve(serves: Offered, serving: Serving, door: socket.socket) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for each in STOPS:
        loop.add_signal_handler(each, stop.set)
    async with running(serves.url, serves.app) as runtime:
        await serves.begins(runtime)
        await _listen(runtime, serving, door, stop)
        show(f"draining, for at most {runtime.settings.drain_s:g} s")
    show("drained")


async def _listen(
    runtime: "Runtime", serving: Serving, door: socket.socket, stop: asyncio.Event
) -> None:
    from landed.server.listening import listening

    host, port = door.getsockname()[:2]
    app, enters = apps(runtime, serving)

    def begun() -> None:
        base = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        show(f"{runtime.worker.name} serves {base}")
        show(enters.format(base=base))

    server = listening(app, farewell_s=FAREWELL_S, begun=begun)
    serving_it = asyncio.ensure_future(server.serve(sockets=[door]))
    working = asyncio.ensure_future(runtime.serve(stop))
    await asyncio.wait((serving_it, working), return_when=asyncio.FIRST_COMPLETED)
    stop.set()
    server.should_exit = True
    await serving_it
    await working


def apps(runtime: "Runtime", serving: Serving) -> "tuple[ASGIApp, str]":
    """Return what is served, and the line that says how a person gets in."""
    from landed.server.app import http_app
    from landed.server.auth import Identity, Role

    owner = Identity(principal=serving.owner, role=Role.ADMIN)
    api = http_app(
        runtime,
        authenticate=serving.authenticate,
        nobody=Identity(principal=serving.owner, role=Role.AGENT),
        hosts=serving.hosts,
        buttons=serving.buttons,
    )
    if not serving.console:
        return api, "without the console"
    try:
        from landed.console.app import beside, console_app
        from landed.console.seal import Link
    except ModuleNotFoundError as missing:
        if missing.name not in CONSOLE_NEEDS:
            raise
        return api, NO_CONSOLE
    link = Link() if serving.authenticate is None else None
    console = console_app(
        runtime,
        authenticate=serving.authenticate,
        owner=owner,
        link=link,
        hosts=serving.hosts,
        secret=serving.secret,
        buttons=serving.buttons,
    )
    return beside(console, api), _way_in(link)


def _way_in(link: "Link | None") -> str:
    if link is None:
        return "console: {base}/console"
    return "console: {base}/console/sign-in?key=" + link.key + " (lets one browser in)"
