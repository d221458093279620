"""What the tests of the chat share: the command as a process, over a provider with a script."""

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from landed.agent.journal_log import JournalLog
from landed.agent.messages import Message
from landed.agent.repair import messages_for_model
from landed.agent.validate import transcript_problems
from landed.assemble import open_runtime
from landed.testing.provider import Called, Reply, ScriptedProvider

MAX_S = 40.0
MAIN = "from landed.cli.main import main; main()"

BOOKS = Reply(calls=[Called(id="c1", name="book", arguments={"day": "Fri"})])
TEXTS = Reply(calls=[Called(id="c2", name="text", arguments={"to": "Sam"})])
FAXES = Reply(calls=[Called(id="c1", name="fax", arguments={"to": "Sam"})])
HANGS = Reply(text="Hm.", silent_at=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a process of the chat ended."""

    status: int
    said: str
    notes: str

    @property
    def events(self) -> list[Any]:
        return [json.loads(line) for line in self.said.splitlines()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chat:
    """The chat over one file, in a directory of its own, with the restaurant's tools."""

    directory: Path
    provider: ScriptedProvider

    @property
    def file(self) -> Path:
        return self.directory / "monday.db"

    @property
    def gate(self) -> Path:
        return self.directory / "ledger.gate"

    @property
    def environment(self) -> dict[str, str]:
        keys = {"OPENAI_API_KEY": "", "LANDED_LEDGER": str(self.directory / "ledger")}
        return {**os.environ, "COLUMNS": "100", "LANDED_AS": "ana", **keys}

    def command(self, *more: str, app: bool = True) -> Sequence[str]:
        """Return the command line, with the restaurant's tools unless they are left out."""
        given = ["--provider", "openai", "--model", "m", "--base-url", self.provider.openai_url]
        given += ["--folder", str(self.directory), *(["--app", "tests.cli.table"] if app else [])]
        if "--session" not in more:
            given += ["--session", str(self.file)]
        return [sys.executable, "-c", MAIN, "chat", *given, *more]

    async def start(self, *more: str, app: bool = True) -> asyncio.subprocess.Process:
        """Start the chat for what is not a terminal."""
        return await asyncio.create_subprocess_exec(
            *self.command(*more, app=app),
            env=self.environment,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )

    async def run(self, *more: str, app: bool = True) -> Ended:
        """Run the chat to its end."""
        return await ended(await self.start(*more, app=app))

    async def transcript(self) -> list[Message]:
        """Return the conversation, as the store has it."""
        async with open_runtime(f"sqlite:///{self.file}") as rt:
            return await JournalLog(rt, self.file.stem).replay()


async def ended(process: asyncio.subprocess.Process, says: str = "") -> Ended:
    """Wait for the end of a process, after what is typed into it."""
    said, notes = await asyncio.wait_for(process.communicate(says.encode()), MAX_S)
    assert process.returncode is not None
    return Ended(status=process.returncode, said=said.decode(), notes=notes.decode())


def problems(messages: Sequence[Message]) -> list[str]:
    """Return what is wrong with a transcript, as a record and as the request made of it."""
    asked = messages_for_model(messages)
    return [*transcript_problems(messages, "record"), *transcript_problems(asked, "request")]
