"""The worker processes of a chaos run: each is started again when it ends, until told to stop.

A worker that was taken for dead, or whose store is gone for too long, ends by itself; that is no
fault. Any other end by itself is one, and is kept for the report.
"""

import asyncio
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from landed.testing.chaos.notes import Noted, Notes
from landed.testing.chaos.process import STORE_GONE, TAKEN_FOR_DEAD

STOP_MAX_S = 60.0
AGAIN_S = 0.2  # the pause before a process that ended by itself is started again

EXPECTED: Mapping[int, str] = {
    -signal.SIGKILL: "killed",
    TAKEN_FOR_DEAD: "taken for dead",
    STORE_GONE: "store gone",
    0: "drained",
}


@dataclass(slots=True, eq=False)
class Worker:
    """One worker number: its command, its notes, and the process it is now."""

    number: int
    command: tuple[str, ...]
    notes: Notes
    ends: Counter[str] = field(default_factory=Counter[str])
    unexpected: list[str] = field(default_factory=list[str])
    stopping: bool = False
    process: Process | None = None
    _seen: int = 0

    @property
    def name(self) -> str:
        """The name of the worker that began last, "" before the first."""
        names = [line["worker"] for line in self.notes.lines() if line["noted"] == Noted.BEGAN]
        return str(names[-1]) if names else ""

    @property
    def is_up(self) -> bool:
        """Whether its process has come so far that it works."""
        began = sum(line["noted"] == Noted.BEGAN for line in self.notes.lines())
        running = self.process is not None and self.process.returncode is None
        return running and began > self._seen

    async def keep(self) -> None:
        """Run process after process until it is told to stop."""
        while not self.stopping:
            self._seen = sum(line["noted"] == Noted.BEGAN for line in self.notes.lines())
            self.process = await asyncio.create_subprocess_exec(
                sys.executable, *self.command, stdin=PIPE, stdout=DEVNULL, stderr=PIPE
            )
            assert self.process.stderr is not None
            said = await _last_of(self.process.stderr)
            self._ended(await self.process.wait(), said)
            if not self.stopping:
                await asyncio.sleep(AGAIN_S)

    def _ended(self, status: int, said: str) -> None:
        if self.stopping and status == -signal.SIGTERM:
            status = 0  # It had not come so far that it could be asked to drain.
        self.ends[EXPECTED.get(status, "unexpected")] += 1
        if status not in EXPECTED:
            noted = [line["why"] for line in self.notes.lines() if line["noted"] == Noted.ENDED]
            last = said or (noted or ["without a word"])[-1]
            self.unexpected.append(f"worker {self.number} ended with {status}: {last}")

    def signal(self, number: signal.Signals) -> None:
        """Send its process a signal, if there is one."""
        if self.process is not None and self.process.returncode is None:
            with suppress(ProcessLookupError):
                self.process.send_signal(number)

    def stop(self) -> None:
        """Have it drain, and start no other."""
        self.stopping = True
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGTERM)


async def _last_of(stream: asyncio.StreamReader) -> str:
    """Return the last line that is said, having taken all of them, so that nobody is held up."""
    last = ""
    while line := await stream.readline():
        last = line.decode(errors="replace").strip() or last
    return last
