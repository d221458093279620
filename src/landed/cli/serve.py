"""`landed serve`: the HTTP API over an application's own runtime, until told to stop.

It listens on the loopback, where nothing else is said, and nowhere else without knowing who calls.
SIGTERM and Ctrl-C drain, as with a worker.
"""

import asyncio
import signal
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from landed.cli.opened import App, app_of, named_store, running
from landed.cli.shown import show

if TYPE_CHECKING:
    from landed.runtime.runtime import Runtime
    from landed.server.auth import Authenticate

LOOPBACK = ("127.0.0.1", "::1", "localhost")
STOPS = (signal.SIGTERM, signal.SIGINT)
FAREWELL_S = 5  # how long an answer that is under way is waited for at the end


@click.command()
@named_store
@click.option(
    "--app", required=True, metavar="MODULE[:NAME]", help="The application: what offers its tools."
)
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
def command(
    url: str, app: str, host: str, port: int, tokens: Path | None, names: tuple[str, ...]
) -> None:
    """Serve plans, operations and sessions over HTTP, and carry them out.

    The application may say who calls by itself, with an `authenticate`. Without that or --tokens,
    everybody on this machine is an agent without a name, who can agree to nothing.
    """
    offered = app_of(app)
    authenticate = _authenticate(app, tokens)
    if authenticate is None and host not in LOOPBACK:
        raise click.UsageError(f"--host {host}: without --tokens only the loopback is listened on")
    hosts = {host, *LOOPBACK, *names} if authenticate is None or names else set[str]()
    from landed.server.listening import listen_at

    try:
        door = listen_at(host, port)
    except OSError as error:
        raise click.ClickException(f"{host}:{port} cannot be listened on: {error}") from None
    with door:
        asyncio.run(_serve(url, offered, authenticate, hosts, door))


def _authenticate(app: str, tokens: Path | None) -> "Authenticate | None":
    from landed.server.auth import Tokens

    own: Authenticate | None = getattr(sys.modules[app.partition(":")[0]], "authenticate", None)
    if own is not None and tokens is not None:
        raise click.UsageError("--tokens: the application says by itself who calls")
    return Tokens(file=tokens) if tokens is not None else own


async def _serve(
    url: str,
    app: App,
    authenticate: "Authenticate | None",
    hosts: set[str],
    door: socket.socket,
) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for each in STOPS:
        loop.add_signal_handler(each, stop.set)
    async with running(url, app) as runtime:
        await _listen(runtime, authenticate, hosts, door, stop)
        show(f"draining, for at most {runtime.settings.drain_s:g} s")
    show("drained")


async def _listen(
    runtime: "Runtime",
    authenticate: "Authenticate | None",
    hosts: set[str],
    door: socket.socket,
    stop: asyncio.Event,
) -> None:
    from landed.server.app import http_app
    from landed.server.listening import listening

    host, port = door.getsockname()[:2]

    def begun() -> None:
        named = f"[{host}]" if ":" in host else host
        show(f"{runtime.worker.name} serves http://{named}:{port}")

    api = http_app(runtime, authenticate=authenticate, hosts=hosts)
    server = listening(api, farewell_s=FAREWELL_S, begun=begun)
    serving = asyncio.ensure_future(server.serve(sockets=[door]))
    working = asyncio.ensure_future(runtime.serve(stop))
    await asyncio.wait((serving, working), return_when=asyncio.FIRST_COMPLETED)
    stop.set()
    server.should_exit = True
    await serving
    await working
