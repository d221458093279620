"""A conversation on disk: one JSON line for each message, only ever appended.

    log = SessionLog("monday.jsonl")
    harness = Harness(…, messages=log.replay())
    harness.subscribe(persist_to(log))

What a conversation is now is computed from its lines and stored nowhere. Ids are line numbers. Any
number of logs, also in several processes, may append to one file: each append holds the file's lock
and reads first what the others have appended since, and nothing else; so what it costs does not
grow with the file.

**When it is on the disk.** With `sync="each"` an append returns once the disk says so: a line whose
append returned survives a power cut. With `sync="system"` it returns once the operating system has
it: it survives the death of the process, and the last lines may be lost with the machine.

An append is plain code and waits for the disk, some milliseconds at worst on a healthy one: it is a
saver, and what follows it must not come before it.
"""

import fcntl
import gc
import os
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from io import FileIO
from pathlib import Path
from typing import Any

from landed.agent.harness import Listener
from landed.agent.log_lines import TORN, Entry, LogError, entry_of, is_whole, kept, line_of
from landed.agent.loop import Event
from landed.agent.messages import Message

# What is waited between two tries to have the file: about ten seconds in all.
_PAUSES_S = (0.0, *(0.001 * 2**n for n in range(8)), *(0.25,) * 38)


class Sync(StrEnum):
    """When a line counts as written."""

    EACH = "each"
    """When the disk has it."""

    SYSTEM = "system"
    """When the operating system has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repaired:
    """What `repair_tail` did: the line, the bytes it cut from it, the file that keeps them.

    `kept_in` is None where nothing was cut, because only the end of the line was missing.
    """

    line: int
    cut_bytes: int
    kept_in: Path | None


class SessionLog:
    """The log of one conversation, in the file `path`, which the first append makes.

    Every verb raises `LogError`, a `ValueError`, naming the file and the line, when a line cannot
    be read: a torn one is refused until `repair_tail` is called. `OSError` goes through: then the
    line is not written, unless it was the disk's own confirmation that failed.
    """

    def __init__(self, path: Path | str, *, sync: Sync | str = Sync.EACH) -> None:
        self.path = Path(path)
        self.sync = Sync(sync)
        self._read_bytes = 0
        self._read_lines = 0
        self._file: tuple[int, int] | None = None

    def append(self, message: Message) -> str:
        """Write a message down and return the id of its entry, such as "e12"."""
        return self.append_entry({"type": "message", "message": message})

    def append_entry(self, entry: Mapping[str, Any]) -> str:
        """Write down an entry of any type, given without its id; return the id."""
        with _locked(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT) as file:
            self._catch_up(file)
            number = self._read_lines + 1
            try:
                line = line_of({"id": f"e{number}", **entry})
                entry_of(line, number=number)
            except ValueError as error:
                raise LogError(self.path, 0, f"this cannot be an entry: {error}") from error
            _write_line(file, line)
            if self.sync is Sync.EACH:
                _flush(file, new=self.path if number == 1 else None)
            self._read_bytes, self._read_lines = self._read_bytes + len(line), number
        return f"e{number}"

    def entries(self) -> list[Entry]:
        """Return every entry there is, in order; none for a file that is not there yet."""
        with suppress(FileNotFoundError), _locked(self.path, os.O_RDONLY) as file:
            self._read_bytes = self._read_lines = 0
            self._file = None
            return self._catch_up(file)
        return []

    def replay(self) -> list[Message]:
        """Return the conversation as it stands: what a harness resumes with."""
        with _collector_at_rest():
            return [message for _, message in kept(self.path, self.entries())]

    def _catch_up(self, file: FileIO) -> list[Entry]:
        """Read what was appended since this log last looked, by whomever."""
        status = os.fstat(file.fileno())
        identity = (status.st_dev, status.st_ino)
        if self._file not in (None, identity) or status.st_size < self._read_bytes:
            raise LogError(self.path, 0, "it is not the file that was read before; open it anew")
        file.seek(self._read_bytes)
        fresh = file.read()
        entries = _read(self.path, fresh, after=self._read_lines)
        self._file = identity
        self._read_bytes += len(fresh)
        self._read_lines += len(entries)
        return entries


def persist_to(log: SessionLog) -> Listener:
    """Return a listener that writes each message down as it is completed.

    It is a saver: what it raises ends the run, for what cannot be saved must not go on in silence.
    """

    def save(event: Event) -> None:
        if event["type"] == "message_end" and "message" in event:
            log.append(event["message"])

    return save


def repair_tail(path: Path | str) -> Repaired | None:
    """Cut from a log the end that cannot be read; None when there is nothing to cut.

    What is cut is kept in a file beside it, written first, and the log says so in an entry of its
    own. A line that is whole but for its end is kept. Raises `LogError` when a line can be read
    after one that cannot: that is no torn tail, and a person has to look.
    """
    path = Path(path)
    with _locked(path, os.O_RDWR | os.O_APPEND) as file:
        lines = file.read().split(b"\n")
        start, number = 0, 1
        for number, line in enumerate(lines, 1):
            if number == len(lines) or not is_whole(line):
                break
            start += len(line) + 1
        tail = b"\n".join(lines[number - 1 :])
        if not tail:
            return None
        if is_whole(tail):
            _write_line(file, b"\n")
            _flush(file)
            return Repaired(line=number, cut_bytes=0, kept_in=None)
        _require_lost(path, lines, after=number)
        aside = _keep_aside(path, tail, number=number)
        file.truncate(start)
        entry = {"type": "repaired", "cut_bytes": len(tail), "kept_in": aside.name}
        _write_line(file, line_of({"id": f"e{number}", **entry}))
        _flush(file)
    return Repaired(line=number, cut_bytes=len(tail), kept_in=aside)


def _read(path: Path, fresh: bytes, *, after: int) -> list[Entry]:
    *lines, rest = fresh.split(b"\n")
    entries: list[Entry] = []
    for number, line in enumerate(lines, after + 1):
        try:
            entries.append(entry_of(line, number=number))
        except ValueError as error:
            raise LogError(path, number, str(error)) from None
    if rest:
        number = after + len(lines) + 1
        raise LogError(path, number, TORN)
    return entries


def _require_lost(path: Path, lines: list[bytes], *, after: int) -> None:
    for number, line in enumerate(lines[after:], after + 1):
        if is_whole(line):
            problem = f"it cannot be read, but line {number} after it can: no torn tail"
            raise LogError(path, after, problem)


def _keep_aside(path: Path, tail: bytes, *, number: int) -> Path:
    """Write what is cut into a new file beside the log, durably, and return it."""
    tried = 0
    while True:
        aside = path.with_name(f"{path.name}.torn-{number}{f'-{tried}' if tried else ''}")
        with suppress(FileExistsError), FileIO(aside, "xb") as file:
            aside.chmod(0o600)
            _write_line(file, tail)
            _flush(file, new=aside)
            return aside
        tried += 1


@contextmanager
def _collector_at_rest() -> Generator[None]:
    """Leave the garbage collector out while a log is read, for all that is made then stays.

    It would go through it again and again: a third of the time, as `bench.agent_log` measures it.
    """
    was_at_work = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_at_work:
            gc.enable()


@contextmanager
def _locked(path: Path, flags: int) -> Generator[FileIO]:
    """Open the file and have it alone; the lock belongs to what was opened, and ends with it."""
    descriptor = os.open(path, flags | os.O_CLOEXEC, 0o600)
    with FileIO(descriptor, "rb" if flags & os.O_ACCMODE == os.O_RDONLY else "rb+") as file:
        for pause in _PAUSES_S:
            time.sleep(pause)
            with suppress(BlockingIOError):
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
        else:
            raise LogError(path, 0, "another process holds it and does not let it go")
        yield file


def _write_line(file: FileIO, line: bytes) -> None:
    """Write all of it at the end, or nothing: on a full disk no half of it stays."""
    before = os.fstat(file.fileno()).st_size
    written = 0
    try:
        while written < len(line):
            written += file.write(line[written:])
    except OSError:
        with suppress(OSError):
            file.truncate(before)
        raise


def _flush(file: FileIO, *, new: Path | None = None) -> None:
    """Return once the disk has the file, and the name of a new one."""
    if sys.platform == "darwin":  # Its fsync leaves the rest to the drive.
        fcntl.fcntl(file.fileno(), fcntl.F_FULLFSYNC)
    else:
        os.fsync(file.fileno())
    if new is None:
        return
    folder = os.open(new.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
