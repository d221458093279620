"""File locks that end with the process that holds them: whose turn it is, and who is alive.

They are `flock` locks: they belong to the opened file, so that two stores in one process are kept
apart as two processes are. A forked child inherits opened files, and would keep its parent's locks
after the parent's death; so a child closes them at once.
"""

import fcntl
import os
import weakref
from pathlib import Path

from landed.core.errors import StoreError

_TRIES = 3


class FileLock:
    """One file that may be locked by one holder at a time. It is made when it is missing.

    Raises `OSError` when it cannot be made.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        _opened.add(self)

    def try_lock(self) -> bool:
        """Take the lock if it is free, without waiting."""
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def unlock(self) -> None:
        """Let the lock go; harmless without it."""
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def is_in_place(self) -> bool:
        """Say whether the path still leads to this file."""
        return os.fstat(self._descriptor).st_nlink > 0

    def close(self) -> None:
        """Let the lock and the file go."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


_opened: weakref.WeakSet[FileLock] = weakref.WeakSet()


def _close_all_in_child() -> None:
    for lock in list(_opened):
        lock.close()


os.register_at_fork(after_in_child=_close_all_in_child)


def lock_for_life(path: Path) -> FileLock:
    """Make the file and lock it; raises `StoreError` when a living process holds it."""
    for _ in range(_TRIES):
        lock = FileLock(path)
        if not lock.try_lock():
            lock.close()
            break
        if lock.is_in_place():
            return lock
        lock.close()  # Somebody who found it free removed it in between.
    raise StoreError(
        f"{path.name} is the name of a worker that is alive; start each worker under a new name"
    )


def is_free(path: Path) -> bool:
    """Say whether the file is there and nobody holds it: whoever locked it is gone.

    A file that is missing says nothing, for it may have been removed under a living process.
    """
    if not path.exists():
        return False
    lock = FileLock(path)
    try:
        return lock.try_lock()
    finally:
        lock.close()


def remove_if_free(path: Path) -> None:
    """Remove the file of a worker that is gone; leave that of a living one."""
    if not path.exists():
        return
    lock = FileLock(path)
    try:
        if lock.try_lock():
            path.unlink(missing_ok=True)
    finally:
        lock.close()
