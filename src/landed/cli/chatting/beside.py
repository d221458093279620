"""Serves the console beside a chat, over the same runtime, with the button of its conversation."""

import asyncio
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import click

from landed.agent.button import Button, Buttons
from landed.cli.chatting.asked import Asked
from landed.cli.chatting.talks import Talk, WithEffects

NEEDS = "--console needs more than is installed: pip install 'landed[console]'"


@asynccontextmanager
async def console_of(
    talk: Talk, button: Button, asked: Asked, say: Callable[[str], None]
) -> AsyncGenerator[None]:
    """Serve on the loopback while the block runs; its owner is who chats, let in by the link said.

    Does nothing where no port is asked for, or where there is no runtime to look at. Raises a
    usage error where what it needs is not installed, `ClickException` for a port that is taken.
    """
    if asked.console is None or not isinstance(talk, WithEffects):
        yield
        return
    try:
        from landed.cli.serve import LOOPBACK, Serving, apps
        from landed.server.listening import listening
    except ModuleNotFoundError:
        raise click.UsageError(NEEDS) from None
    buttons = Buttons()
    serving = Serving(
        authenticate=None,
        hosts=set(LOOPBACK),
        owner=asked.principal,
        console=True,
        secret=b"",
        buttons=buttons,
    )
    door = _door(asked.console)
    app, enters = apps(talk.session.rt, serving)
    base = f"http://{LOOPBACK[0]}:{door.getsockname()[1]}"
    # The chat itself heeds the signals: the first one only stops the run.
    server = listening(
        app, farewell_s=1, begun=lambda: say(enters.format(base=base)), heeds_signals=False
    )
    with door, buttons.lit(button, tenant=asked.tenant, session=asked.place.name):
        working = asyncio.ensure_future(server.serve(sockets=[door]))
        try:
            yield
        finally:
            server.should_exit = True
            await working


def _door(port: int) -> socket.socket:
    from landed.cli.serve import LOOPBACK
    from landed.server.listening import listen_at

    try:
        return listen_at(LOOPBACK[0], port)
    except OSError as error:
        raise click.ClickException(f"--console {port}: {error.strerror}") from None
