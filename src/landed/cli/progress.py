"""Shows the steps of a plan while they are done: live on a terminal, plain lines elsewhere.

`rich` draws it where it is installed (the extra `cli`) and standard output is a terminal.
"""

import asyncio
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Protocol

import click

from landed.core.plan import OPEN
from landed.core.visible import line

if TYPE_CHECKING:
    from landed.runtime.runtime import Runtime

LOOK_S = 1.0  # how often it is looked whether anybody waits on

Show = Callable[[str], None]


class Step(Protocol):
    """One thing that is told while a plan runs."""

    @property
    def text(self) -> str:
        """Return it as a line, such as "Step 2 of 4: issue the invoice"."""
        ...


async def moving(runtime: "Runtime", plan: str, *, tenant: str) -> AsyncIterator[Step]:
    """Yield how a plan comes on, from when it is in motion; its ending is told by others."""
    with runtime.driver.setting.listeners.listening(plan) as listener:
        while not any(held.open for held in listener.heard):
            listener.heard.clear()
            await listener.wait(LOOK_S)
    async for step in runtime.progress(plan, tenant=tenant):
        if step.state in OPEN:
            yield step


@asynccontextmanager
async def shown(steps: AsyncIterator[Step]) -> AsyncGenerator[None]:
    """Show what comes while the body runs, and what has come by its end."""
    with _screen() as show:
        following = asyncio.ensure_future(_follow(steps, show))
        try:
            yield
            # The body has seen the plan at rest; so will this, or it is of no use any more.
            await asyncio.wait((following,), timeout=1.0)
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)


async def _follow(steps: AsyncIterator[Step], show: Show) -> None:
    last = ""
    async for step in steps:
        text = line(step.text)
        if text != last:
            show(text)
        last = text


@contextmanager
def _screen() -> Generator[Show]:
    if not sys.stdout.isatty():
        yield click.echo
        return
    try:
        from rich.console import Console
        from rich.text import Text
    except ModuleNotFoundError:
        yield click.echo
        return
    console = Console(highlight=False)
    told: list[str] = []
    with console.status(Text("…")) as status:

        def show(text: str) -> None:
            # What went before stays above; the newest goes on until the next.
            if told:
                console.print(Text(told[-1]))
            told.append(text)
            status.update(Text(text))

        yield show
    for text in told[-1:]:
        console.print(Text(text))
