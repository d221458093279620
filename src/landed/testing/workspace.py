"""A workspace in memory and a shell over it: for tests of an agent, without disk and processes.

The shell knows `echo`, `cat`, `seq`, `rm`, `true`, `false`, `exit` and `sleep`, one after another
with `;` or `&&`, until one fails. `sleep 3` takes three turns of the event loop, and `sleep inf` is
never done.
"""

import asyncio
import shlex
from collections.abc import Callable, Mapping

from landed.agent.budget import Kept, tail
from landed.testing.ticks import ticks


class FakeWorkspace:
    """Files in memory, in `files`."""

    def __init__(self, files: Mapping[str, str] | None = None) -> None:
        self.files = dict(files or {})

    def read(self, path: str) -> str:
        """Return the text of a file; raises `FileNotFoundError`."""
        if path not in self.files:
            raise FileNotFoundError(path)
        return self.files[path]

    def write(self, path: str, text: str) -> None:
        """Put this text in place of the file."""
        self.files[path] = text

    def names(self) -> list[str]:
        """Return the paths of all files, in order."""
        return sorted(self.files)

    def remove(self, path: str) -> None:
        """Remove a file, or all in a folder."""
        for name in self.names():
            if name == path or name.startswith(f"{path}/"):
                del self.files[name]


class FakeShell:
    """Runs commands over a workspace; `started` are all of them, oldest first."""

    def __init__(self, workspace: FakeWorkspace | None = None) -> None:
        self.workspace = workspace or FakeWorkspace()
        self.started: list[FakeCommand] = []

    @property
    def alive(self) -> list["FakeCommand"]:
        """The commands that are still running."""
        return [command for command in self.started if not command.done]

    def start(self, command: str) -> "FakeCommand":
        """Start a command; it goes on by itself, turn by turn."""
        started = FakeCommand(command, self.workspace)
        self.started.append(started)
        return started


class FakeCommand:
    """A command of a `FakeShell`: `done` when it has ended or was killed."""

    def __init__(self, line: str, workspace: FakeWorkspace) -> None:
        self.line = line
        self.done = False
        self.killed = False
        self._workspace = workspace
        self._printed: list[str] = []
        self._running = asyncio.ensure_future(self._run())

    async def wait(self) -> int:
        """Return its exit code once it has ended."""
        return await asyncio.shield(self._running)

    def kill(self) -> None:
        """End it at once, if it is not over."""
        if not self.done:
            self.done = self.killed = True
            self._running.cancel()

    def output(self) -> Kept:
        """Return the end of what it has printed so far."""
        return tail("".join(f"{line}\n" for line in self._printed))

    async def _run(self) -> int:
        code = 0
        for part in self.line.replace("&&", ";").split(";"):
            program, *words = shlex.split(part)
            if program == "sleep":
                await self._sleep(words[0])
            else:
                code = PROGRAMS.get(program, _unknown)(self, words)
            if code:
                break
        self.done = True
        return code

    async def _sleep(self, turns: str) -> None:
        if turns == "inf":
            await asyncio.Event().wait()
        await ticks(int(turns))

    def print(self, *lines: str) -> int:
        """Print these lines; return the code of success."""
        self._printed.extend(lines)
        return 0

    def cat(self, path: str) -> int:
        """Print a file."""
        if path not in self._workspace.files:
            return self.print(f"cat: {path}: No such file or directory") or 1
        return self.print(*self._workspace.files[path].splitlines())

    def rm(self, path: str) -> int:
        """Remove a file or a folder."""
        self._workspace.remove(path)
        return 0


def _unknown(command: FakeCommand, words: list[str]) -> int:
    return command.print("command not found") or 127


PROGRAMS: dict[str, Callable[[FakeCommand, list[str]], int]] = {
    "echo": lambda command, words: command.print(" ".join(words)),
    "cat": lambda command, words: command.cat(words[-1]),
    "seq": lambda command, words: command.print(*map(str, range(1, int(words[-1]) + 1))),
    "rm": lambda command, words: command.rm(words[-1]),
    "true": lambda command, words: 0,
    "false": lambda command, words: 1,
    "exit": lambda command, words: int(words[-1]),
}
"""What a `FakeShell` can run besides `sleep`: a function of the command and its words."""
