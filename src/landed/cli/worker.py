"""`landed worker`: carries out what is in a store, with an application's tools, until told to stop.

SIGTERM and Ctrl-C drain: nothing new is started, what is out comes back or is recorded as in doubt,
and every claim is let go of. A second Ctrl-C does not wait for that.
"""

import asyncio
import signal

import click

from landed.cli.opened import App, app_of, named_store, running
from landed.cli.shown import show

STOPS = (signal.SIGTERM, signal.SIGINT)


@click.command()
@named_store
@click.option(
    "--app", required=True, metavar="MODULE[:NAME]", help="The application: what offers its tools."
)
def command(url: str, app: str) -> None:
    """Work on a store with the tools of an application, until SIGTERM or Ctrl-C.

    Takes over what workers that died left, and what was decided elsewhere. Exits with 0 once it
    is drained, and with 1 when its claims were taken over by somebody else.
    """
    asyncio.run(_work(url, app_of(app)))


async def _work(url: str, app: App) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def stopped() -> None:
        stop.set()
        for each in STOPS:
            loop.remove_signal_handler(each)

    for each in STOPS:
        loop.add_signal_handler(each, stopped)
    async with running(url, app) as runtime:
        show(f"{runtime.worker.name} works; it took over {runtime.recovered}")
        await runtime.serve(stop)
        show(f"draining, for at most {runtime.settings.drain_s:g} s")
    show("drained")
