"""A folder in which each change is one rename, so that afterwards it can be told what landed.

The order of the disk's own steps is the proof. A change first makes its new file ready beside the
target (`.landed-KEY.part`), then writes down what it is about to do (`.landed/KEY.json` in the
root), and only then renames. So, whatever ends the process, and wherever:

    no note                   it never began
    a note, the part there    it was about to, and did not
    a note, no part           it landed, whatever has become of the file since

A removal is a rename as well, into the folder of notes: it landed where the note and the removed
file are there. Everything is synced before what depends on it. Whoever tidies up leaves `.landed*`
alone: a part that somebody else deletes would look as if it had been renamed. One lock for each
root (`flock`) keeps a close and a change of the same key apart, also between processes.

No path leaves the root: it is walked name by name, and a symbolic link on the way is an error.
"""

import fcntl
import hashlib
import json
import os
import re
import stat
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

from landed.core.errors import NotSentError, ProposalError, RefusedError

NOTES = ".landed"
PATH_MAX_CHARS = 1_000
NAME_MAX_BYTES = 200
DEPTH_MAX = 32
LISTED_MAX = 1_000
LOCK_EVERY_S = 0.01  # How often somebody who waits for the lock asks for it.
NONE = "none"
"""The digest of a file that is not there."""

_PLAIN_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
_MODE = 0o644


class RenameError(Exception):
    """What went wrong at the rename or after it: only a look says whether it is done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """What a change is about to do, or did: from the digest `before` to the digest `after`."""

    tool: str
    key: str
    path: str
    before: str
    after: str
    bytes: int

    @property
    def removes(self) -> bool:
        """Whether it leaves no file."""
        return self.after == NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What is at a path now; `mode` is that of a new file where there is none."""

    digest: str
    bytes: int = 0
    mode: int = _MODE


def check_path(path: str) -> tuple[str, ...]:
    """Return the names in a path; `ProposalError` for one that is not plainly inside the root."""
    names = tuple(path.split("/"))
    if not path.isprintable():
        raise ProposalError("a path has printable characters only")
    if len(path) > PATH_MAX_CHARS or len(names) > DEPTH_MAX:
        raise ProposalError(f"a path has at most {PATH_MAX_CHARS} characters, {DEPTH_MAX} names")
    for name in names:
        if not name.strip(".") or "\\" in name:
            raise ProposalError(
                f"{path!r} is no path inside the folder: give names with / between them, none of"
                " them empty or dots alone"
            )
        if name.startswith(NOTES) or len(name.encode()) > NAME_MAX_BYTES:
            raise ProposalError(f"{name!r} can be no name here")
    return names


def digest_of(content: bytes) -> str:
    """Return the digest by which contents are compared, as `sha256:…`."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


class Folder:
    """The folder `root`, which must be there. Its methods block, and raise `OSError`."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @contextmanager
    def locked(self, *, within_s: float) -> Generator[None]:
        """Keep every other change of this root out, in this and in other processes.

        Raises `NotSentError` where somebody else keeps us out for longer than `within_s`.
        """
        with _opened(self.root / NOTES, made=True) as notes:
            lock = os.open("lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600, dir_fd=notes)
            try:
                _lock(lock, until=time.monotonic() + within_s)
                yield
            finally:
                os.close(lock)

    def see(self, path: str) -> Seen:
        """Return what is there; `RefusedError` where it is anything but a plain file."""
        with self._parent(path) as (parent, name):
            return _seen(parent, name)

    def note(self, key: str) -> Note | None:
        """Return what was noted under a key, None where nothing was."""
        text = self._kept(f"{_plain(key)}.json")
        return None if text is None else _note_of(text)

    def landed_since(self, at: float) -> list[Note]:
        """Return what landed since a time (UTC, seconds); `LookupError` above LISTED_MAX."""
        if not (self.root / NOTES).is_dir():
            return []
        new = (one for one in (self.root / NOTES).glob("*.json") if one.stat().st_mtime >= at)
        files = list(islice(new, LISTED_MAX + 1))
        if len(files) > LISTED_MAX:
            raise LookupError(f"more than {LISTED_MAX} writes: ask for a later time")
        notes = [_note_of(file.read_bytes()) for file in files]
        return [note for note in notes if self.landed(note.key)]

    def landed(self, key: str) -> Note | None:
        """Return what landed under a key, None where nothing did so far."""
        note = self.note(key)
        if note is None:
            return None
        if note.removes:
            return note if (self.root / NOTES / f"{_plain(key)}.removed").exists() else None
        with self._parent(note.path) as (parent, _):
            try:
                os.stat(_part(key), dir_fd=parent, follow_symlinks=False)
            except FileNotFoundError:
                return note
            return None

    def before(self, key: str) -> bytes | None:
        """Return what was there before, as it was kept; None where nothing was kept."""
        return self._kept(f"{_plain(key)}.before")

    def closed(self, key: str) -> bool:
        """Whether the key was closed."""
        return (self.root / NOTES / f"{_plain(key)}.closed").exists()

    def shut(self, key: str) -> None:
        """Close the key, durably; under the lock."""
        self._keep(f"{_plain(key)}.closed", b"")

    def ready(self, key: str, note: Note, content: bytes | None, *, mode: int, keeps: bool) -> None:
        """Make everything ready for the one rename, under the lock; nothing has changed after it.

        `content` is what is to be there, None for no file. With `keeps` what is there is kept.
        """
        plain = _plain(key)
        # What an earlier try made ready is written over where it stands: were the part taken away
        # first, its note alone would say that it has landed.
        with self._parent(note.path) as (parent, name):
            if keeps and note.before != NONE:
                self._keep(f"{plain}.before", _read(parent, name))
            if content is not None:
                _written(parent, _part(key), content, mode=mode)
                if digest_of(_read(parent, _part(key))) != note.after:
                    raise OSError(f"{note.path} did not read back as it was written")
                os.fsync(parent)
        self._keep(f"{plain}.json", json.dumps(asdict(note)).encode())

    def change(self, key: str, note: Note) -> None:
        """Do the one rename that `ready` made ready, and check what is there after it.

        Raises `RenameError` whatever goes wrong: the rename may be done by then.
        """
        try:
            self._change(key, note)
        except (OSError, RefusedError) as error:
            raise RenameError(str(error)) from error

    def _change(self, key: str, note: Note) -> None:
        with self._parent(note.path) as (parent, name):
            if note.removes:
                with _opened(self.root / NOTES) as notes:
                    gone = f"{_plain(key)}.removed"
                    os.rename(name, gone, src_dir_fd=parent, dst_dir_fd=notes)
                    sync(notes)
            else:
                os.rename(_part(key), name, src_dir_fd=parent, dst_dir_fd=parent)
            sync(parent)
            if _seen(parent, name).digest != note.after:
                raise RefusedError(f"{note.path} holds something else than was just put there")

    def forget(self, *, before: float, within_s: float) -> int:
        """Delete what is kept of changes last touched before a time; returns how many files.

        A key of which nothing is kept looks as if it had never been used.
        """
        forgotten = 0
        with self.locked(within_s=within_s):
            for kept in (self.root / NOTES).iterdir():
                if kept.name != "lock" and kept.stat().st_mtime < before:
                    kept.unlink()
                    forgotten += 1
        return forgotten

    @contextmanager
    def _parent(self, path: str) -> Generator[tuple[int, str]]:
        *folders, name = check_path(path)
        with _opened(self.root) as at:
            for folder in folders:
                inner = os.open(folder, _FOLDER, dir_fd=at)
                # The descriptor of the root is closed by its own block; the inner ones here.
                os.dup2(inner, at, inheritable=False)
                os.close(inner)
            yield at, name

    def _kept(self, name: str) -> bytes | None:
        try:
            return (self.root / NOTES / name).read_bytes()
        except FileNotFoundError:
            return None

    def _keep(self, name: str, content: bytes) -> None:
        """Write a file of our own whole or not at all."""
        with _opened(self.root / NOTES, made=True) as notes:
            _written(notes, f"{name}.new", content, mode=0o600)
            os.rename(f"{name}.new", name, src_dir_fd=notes, dst_dir_fd=notes)
            os.fsync(notes)


def _lock(lock: int, *, until: float) -> None:
    while True:
        try:
            return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until:
                raise NotSentError("another change of this folder takes too long") from None
        time.sleep(LOCK_EVERY_S)


def sync(folder: int) -> None:
    """Make the names in a folder durable; `folder` is its open descriptor."""
    os.fsync(folder)


def _note_of(text: bytes) -> Note:
    return Note(**json.loads(text))


def _plain(key: str) -> str:
    """Return a key as a file name: itself where it is plain, else its digest."""
    return key if _PLAIN_KEY.fullmatch(key) else f"k{hashlib.sha256(key.encode()).hexdigest()}"


def _part(key: str) -> str:
    return f"{NOTES}-{_plain(key)}.part"


@contextmanager
def _opened(folder: Path, *, made: bool = False) -> Generator[int]:
    if made:
        folder.mkdir(mode=0o700, exist_ok=True)
    at = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield at
    finally:
        os.close(at)


def _seen(parent: int, name: str) -> Seen:
    try:
        at = os.open(name, _READ, dir_fd=parent)
    except FileNotFoundError:
        return Seen(digest=NONE)
    with os.fdopen(at, "rb") as file:
        what = os.fstat(at)
        if not stat.S_ISREG(what.st_mode):
            raise RefusedError(f"{name} is no plain file")
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return Seen(digest=f"sha256:{digest}", bytes=what.st_size, mode=stat.S_IMODE(what.st_mode))


def _read(parent: int, name: str) -> bytes:
    with os.fdopen(os.open(name, _READ, dir_fd=parent), "rb") as file:
        return file.read()


def _written(parent: int, name: str, content: bytes, *, mode: int) -> None:
    with os.fdopen(os.open(name, _WRITE, 0o600, dir_fd=parent), "wb") as file:
        file.write(content)
        file.flush()
        os.fchmod(file.fileno(), mode)
        os.fsync(file.fileno())
