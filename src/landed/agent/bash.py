"""Runs a command in a shell, and sees to it that nothing of it is left running.

The command is a process group of its own. However `execute` is left (it ended, it was stopped, the
run was cancelled or closed, something raised), the whole group was killed by then, with what it put
into the background. What made itself a session of its own (`setsid`, a daemon) is beyond that.

Nothing polls: a thread sleeps in the kernel until the process ends, and the token wakes the waiter.
"""

import asyncio
import os
import signal as signals
import subprocess
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from landed.agent.budget import Kept, Tail
from landed.agent.signal import Signal, StoppedError, unless_cancelled
from landed.agent.tool import AgentTool, text_argument

CANCELLED = "Command cancelled"
"""The last line of a command that was stopped, and all there is of one that never began."""

PARTLY = "[It was running and may have done part of its work.]"
"""What stands before it where the command had begun."""

CHUNK_BYTES = 65_536
"""Read at once from a command's output."""

LAST_CHUNKS = 64
"""Read at most when all is over: what escaped the group might print for ever."""

DIES_WITHIN_S = 1.0
"""How long leaving waits for a killed process to be gone; only a sick disk makes it that long."""


class Command(Protocol):
    """A command that was started."""

    async def wait(self) -> int:
        """Return its exit code once it has ended."""
        ...

    def kill(self) -> None:
        """End it and all that it started, at once; do nothing where that is over."""
        ...

    def output(self) -> Kept:
        """Return the end of what it has printed so far."""
        ...


class Shell(Protocol):
    """Where commands run."""

    def start(self, command: str) -> Command:
        """Start a command."""
        ...


def bash_tool(shell: Shell) -> AgentTool:
    """Return the tool `bash`: a command that fails has still been run, and its code is told."""

    async def execute(arguments: Mapping[str, Any], signal: Signal | None = None) -> str:
        line = text_argument(arguments, "command")
        if signal is not None and signal.is_cancelled():
            return CANCELLED
        command = shell.start(line)
        try:
            code = await unless_cancelled(command.wait(), signal)
            ending = f"Command exited with code {code}" if code else ""
        except StoppedError:
            ending = f"{PARTLY}\n{CANCELLED}"
        finally:
            command.kill()
        return _told(command.output(), ending)

    return AgentTool(
        name="bash",
        description=(
            "Run a command in a shell and read what it prints. Long output keeps its end. "
            "What it leaves running in the background is killed when it ends."
        ),
        parameters={
            "type": "object",
            "properties": {"command": {"type": "string", "description": "The command line."}},
            "required": ["command"],
        },
        execute=execute,
        snippet="bash: run a command",
    )


def _told(output: Kept, ending: str) -> str:
    cut = (
        ""
        if output.is_whole
        else f"[Showing the last {output.shown} of {output.total} lines. "
        "Narrow the command for more.]"
    )
    return "\n".join(part for part in (output.text, cut, ending) if part) or "(no output)"


class LocalShell:
    """Runs commands with `/bin/bash` on this machine, in `folder`, with this environment."""

    def __init__(self, folder: Path, *, environment: Mapping[str, str] | None = None) -> None:
        self._folder = folder
        self._environment = environment

    def start(self, command: str) -> "LocalCommand":
        """Start a command; raises `OSError` if there is no shell or no folder."""
        process = subprocess.Popen(
            ["/bin/bash", "-c", command],
            cwd=self._folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        return LocalCommand(process)


class LocalCommand:
    """A process that leads a group of its own, and the end of what the group prints."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process
        self._tail = Tail()
        self._lock = threading.Lock()  # A group is signalled only while its leader is not reaped.
        self._is_gone = threading.Event()
        self._loop = asyncio.get_running_loop()
        self._code: asyncio.Future[int] = self._loop.create_future()
        assert process.stdout is not None
        self._pipe = process.stdout
        os.set_blocking(self._pipe.fileno(), False)
        try:
            threading.Thread(target=self._reap, daemon=True).start()
        except BaseException:
            self._kill_group()
            process.wait()
            self._pipe.close()
            raise
        self._loop.add_reader(self._pipe.fileno(), self._read)

    async def wait(self) -> int:
        """Return the exit code of the shell; what it put into the background is killed then."""
        return await asyncio.shield(self._code)

    def kill(self) -> None:
        """Kill the group, wait until its leader is gone, and take what is left of the output."""
        if self._pipe.closed:
            return
        with self._lock:
            if self._process.returncode is None:
                self._kill_group()
        self._is_gone.wait(DIES_WITHIN_S)
        self._loop.remove_reader(self._pipe.fileno())
        for _ in range(LAST_CHUNKS):
            if not self._read():
                break
        self._pipe.close()

    def output(self) -> Kept:
        """Return the last lines of what was printed."""
        return self._tail.kept()

    def _read(self) -> bool:
        """Take what is there; return whether there may be more."""
        try:
            chunk = os.read(self._pipe.fileno(), CHUNK_BYTES)
        except BlockingIOError:
            return False
        self._tail.feed(chunk)
        if not chunk:
            self._loop.remove_reader(self._pipe.fileno())
        return bool(chunk)

    def _reap(self) -> None:
        """Sleep until the process ends, end what it left behind, and tell its code (a thread)."""
        if hasattr(os, "waitid"):
            # Not reaped yet: its number still names this group, and no other.
            os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
        else:
            self._process.wait()
        with self._lock:
            self._kill_group()
            code = self._process.wait()
        self._is_gone.set()
        with suppress(RuntimeError):  # The loop may be closed: then nobody waits.
            self._loop.call_soon_threadsafe(self._tell, code)

    def _tell(self, code: int) -> None:
        if not self._code.done():
            self._code.set_result(code)

    def _kill_group(self) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signals.SIGKILL)
