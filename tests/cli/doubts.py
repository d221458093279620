"""A small application for the command line's tests whose mails end in front of a person."""

import asyncio
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import landed
from landed.cli.main import landed as landed_command
from landed.core.outcome import Found
from landed.core.plan import Wanted
from landed.core.value import Receipt
from landed.runtime.runtime import Runtime

SENT: list[str] = []


@landed.tool(
    effect="irreversible",
    keyed="key",
    when_unknown="escalate",
    deadline_s=0.02,
    retention_s=3_600.0,
)
async def mail(to: str, key: str) -> dict[str, str]:
    """Send a mail, of which nobody ever answers."""
    SENT.append(to)
    if to.startswith("known"):
        return {"id": "M1"}
    raise TimeoutError("no answer")


tools = (mail,)


@dataclass(slots=True)
class Doubts:
    """A store in a directory, its application, and the command line over it."""

    directory: Path

    @property
    def url(self) -> str:
        return f"sqlite:///{self.directory}/agent.db"

    def open(self) -> AbstractAsyncContextManager[Runtime]:
        return landed.open(self.url, tools=tools)

    def doubt(self, to: str = "ana", *, tenant: str = "default", says: str = "Tell Ana.") -> str:
        """Have a mail end in front of a person; return its operation."""

        async def act() -> str:
            async with self.open() as rt:
                heard = await rt.receive(says, principal="cleo", tenant=tenant)
                asked = heard.ask("c1")
                return (await rt.perform(mail, {"to": to}, ask=asked, patience_s=30.0)).operation

        return asyncio.run(act())

    def hear(self, key: str, text: str = "{}", *, tenant: str = "default") -> None:
        """Take in evidence about a key."""

        async def act() -> None:
            async with self.open() as rt:
                await rt.receive(
                    text,
                    principal="hook",
                    origin="webhook",
                    tenant=tenant,
                    evidence=Receipt(key=key, outcome=Found(result=None)),
                )

        asyncio.run(act())

    def run(self, *words: str, app: bool = False, env: Any = None) -> Result:
        with_app = ("--app", "tests.cli.doubts") if app else ()
        return CliRunner().invoke(
            landed_command,
            [*words, "--store", self.url, *with_app],
            catch_exceptions=False,
            env=env,
        )

    def plan(self, *to: str) -> Sequence[Wanted]:
        return [Wanted(tool="mail", arguments={"to": each}) for each in to]


@pytest.fixture
def doubts(tmp_path: Path) -> Doubts:
    SENT.clear()
    return Doubts(directory=tmp_path)
