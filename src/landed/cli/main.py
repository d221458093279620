"""The entry point of `landed`: finds the sub-command, and turns our errors into one line."""

from collections.abc import Sequence
from importlib import import_module

import click

from landed import __version__
from landed.core.errors import LandedError
from landed.core.visible import line

# Name of the sub-command ▸ its module, which calls it `command`.
COMMANDS = {
    "archive": "landed.cli.archive",
    "audit": "landed.cli.audit",
    "backup": "landed.cli.backup",
    "case": "landed.cli.case",
    "chat": "landed.cli.chat",
    "contract": "landed.cli.contract",
    "demo": "landed.cli.demo",
    "doctor": "landed.cli.doctor",
    "erase": "landed.cli.erase",
    "inbox": "landed.cli.inbox",
    "inspect": "landed.cli.inspect",
    "log": "landed.cli.log",
    "plan": "landed.cli.plan",
    "restored": "landed.cli.restored",
    "serve": "landed.cli.serve",
    "timeline": "landed.cli.timeline",
    "worker": "landed.cli.worker",
}


class Commands(click.Group):
    """Imports a sub-command when it is asked for, so that `landed --version` loads none."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the sub-commands."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a sub-command, or None for a name that there is not."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(COMMANDS[cmd_name]).command
        return command

    def invoke(self, ctx: click.Context) -> object:
        """Run the sub-command; an error of ours is one line on standard error and status 1."""
        try:
            return super().invoke(ctx)
        except LandedError as error:
            raise click.ClickException(line(" ".join(str(error).split()))) from error


@click.group(cls=Commands)
@click.version_option(__version__, prog_name="landed", message="%(prog)s %(version)s")
def landed() -> None:
    """Agent actions that land once, and are told truthfully."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit: 0 for well, 1 for not, 2 for a command that makes no sense."""
    landed.main(args=arguments, prog_name="landed")
