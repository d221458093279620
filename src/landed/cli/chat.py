"""`landed chat`: an agent on a terminal, or for one shot, whose calls with effects are operations.

This file only reads the command line; `landed.cli.chatting` is the chat.
"""

import asyncio
import getpass
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from landed.agent.stop import GRACE_S
from landed.cli.chatting.asked import PROVIDERS, Asked, Speaker, place_of
from landed.cli.opened import named_store

WINDOW_TOKENS = 100_000


@click.command()
@click.option(
    "--provider",
    type=click.Choice(tuple(PROVIDERS)),
    envvar="LANDED_PROVIDER",
    required=True,
    help="Whose dialect is spoken, or LANDED_PROVIDER. The key is in the usual variable.",
)
@click.option(
    "--model",
    envvar="LANDED_MODEL",
    required=True,
    metavar="NAME",
    help="The provider's name for it, or LANDED_MODEL.",
)
@click.option(
    "--base-url", default="", metavar="URL", help="Where the model is; else the provider itself."
)
@click.option(
    "--app", default="", metavar="MODULE[:NAME]", help="The application: what offers its tools."
)
@click.option(
    "--session",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The conversation's own store, made if need be; a .jsonl has no effects.",
)
@named_store
@click.option(
    "--name",
    default="",
    metavar="NAME",
    help="The conversation's, in the store; else the FILE's, or main.",
)
@click.option("--tenant", default="default", show_default=True)
@click.option(
    "--as",
    "principal",
    default=getpass.getuser,
    envvar="LANDED_AS",
    metavar="NAME",
    help="Who you are, or LANDED_AS; else your user here.",
)
@click.option(
    "--folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=".",
    show_default=True,
    help="Whose files the model may use.",
)
@click.option("--no-files", is_flag=True, help="Without tools for files and commands.")
@click.option(
    "--allow",
    multiple=True,
    metavar="PROGRAM",
    help="Runs without asking, such as 'git status'; also write and edit. May be given again.",
)
@click.option(
    "--window",
    default=WINDOW_TOKENS,
    show_default=True,
    type=click.IntRange(min=1000),
    metavar="TOKENS",
    help="What the model can be shown; room is made before there is more.",
)
@click.option(
    "--grace",
    "grace_s",
    default=GRACE_S,
    show_default=True,
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="How long a run may take to answer a stop.",
)
@click.option(
    "-p",
    "--prompt",
    "text",
    default=None,
    metavar="TEXT",
    help="Say this, print the answer, and exit.",
)
@click.option(
    "--console",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    help="Serve the console beside the chat on this port of the loopback, 0 for any that is free.",
)
@click.option("--resume", is_flag=True, help="Only finish what was left, and exit.")
@click.option("--delivery", default="", metavar="ID", help="The same ID again is the same input.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print each event as a line of JSON, and nothing else."
)
@click.pass_context
def command(
    ctx: click.Context,
    /,
    text: str | None,
    resume: bool,
    delivery: str,
    as_json: bool,
    **given: Any,
) -> None:
    """Talk with an agent, whose calls with effects are operations of the application.

    Enter sends, also while it works; Esc or Ctrl-C stops it, again at once; Ctrl-D leaves.
    A yes is read by code, strictly. With -p it exits with 0 once it is answered and nothing is
    open, with 1 when that failed or was stopped, and with 3 where something waits for a yes or is
    not known yet.
    """
    if resume and text:
        raise click.UsageError("--resume says nothing: leave out either it or -p")
    is_store_said = ctx.get_parameter_source("url") is ParameterSource.COMMANDLINE
    asked = _asked(is_store_said=is_store_said, **given)
    if given["console"] is not None and (text is not None or resume):
        raise click.UsageError("--console is for a chat that goes on: leave out -p and --resume")
    if text is None and not resume:
        from landed.cli.chatting.terminal import chat

        raise SystemExit(asyncio.run(chat(asked, as_json=as_json)))
    from landed.cli.chatting.once import once

    raise SystemExit(asyncio.run(once(asked, text or "", delivery=delivery, as_json=as_json)))


def _asked(
    *,
    provider: str,
    model: str,
    base_url: str,
    app: str,
    file: Path | None,
    url: str,
    is_store_said: bool,
    name: str,
    folder: Path,
    no_files: bool,
    **more: Any,
) -> Asked:
    """Return what is asked; raises a usage error for what makes no sense together."""
    speaker = Speaker(provider=provider, model=model, base_url=base_url)
    speaker.key()
    return Asked(
        speaker=speaker,
        place=place_of(file, name=name, app=app, store=url, is_store_said=is_store_said),
        app=app,
        folder=None if no_files else folder,
        **more,
    )
