"""How a store can tell that a worker's process is gone, before its lease is over.

Each worker keeps a file locked for as long as its process lives. The lock ends with the process,
however it ends, so a free file means that nobody is left who could act.
"""

import itertools
import re
from pathlib import Path
from typing import Protocol

from landed.core.errors import StoreError
from landed.stores.locks import FileLock, is_free, lock_for_life, remove_if_free

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:@+-]{0,127}")


class Liveness(Protocol):
    """Who is alive, as far as a store can tell."""

    def begin(self, worker: str) -> str:
        """Mark `worker` as alive for as long as this process is, and return its file's name.

        Raises `StoreError` when a process is alive under that name.
        """
        ...

    def file(self, worker: str) -> str:
        """Return the file of the worker that is marked under that name."""
        ...

    def end(self, file: str) -> None:
        """Take the mark back: from now on its worker is gone. Harmless without a mark."""
        ...

    def is_gone(self, file: str) -> bool:
        """Say whether the worker of that file is surely gone."""
        ...

    def clear(self, file: str) -> None:
        """Remove what is left of a worker that is gone; a living one is left alone."""
        ...


class WorkerFiles:
    """The locked files of the workers on one SQLite file, in a directory beside it."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._held: dict[str, FileLock] = {}

    def begin(self, worker: str) -> str:
        """Mark the worker as alive."""
        path = self._path(worker)
        self._directory.mkdir(exist_ok=True)
        self._held[worker] = lock_for_life(path)
        return worker

    def file(self, worker: str) -> str:
        """Return its name: no two that live have the same."""
        return worker

    def end(self, file: str) -> None:
        """Take the mark back."""
        # The file stays: while it is there and free, it says that its worker is gone.
        if lock := self._held.pop(file, None):
            lock.close()

    def is_gone(self, file: str) -> bool:
        """Say whether it is surely gone."""
        return is_free(self._path(file))

    def clear(self, file: str) -> None:
        """Remove what is left of it."""
        remove_if_free(self._path(file))

    def _path(self, name: str) -> Path:
        # What comes out of the store is checked as well: an edited row must name no other file.
        if _NAME.fullmatch(name) is None:
            raise StoreError(
                f"{name!r} is no name for a worker: use 1 to 128 letters, digits and _ . : @ + -"
            )
        return self._directory / name


class MemoryWorkers:
    """The same for records in memory: a worker is alive until somebody says that it died.

    Who was said to have died may live on here, and another may begin under its name: so the file
    of each is its own.
    """

    def __init__(self) -> None:
        self._files: dict[str, str] = {}  # Of the living, by name.
        self._numbers = itertools.count(1)

    def begin(self, worker: str) -> str:
        """Mark the worker as alive."""
        if worker in self._files:
            raise StoreError(f"a worker named {worker} is alive; start each under a new name")
        return self._files.setdefault(worker, f"{worker}#{next(self._numbers)}")

    def file(self, worker: str) -> str:
        """Return the file of the one that is alive under that name, or ""."""
        return self._files.get(worker, "")

    def end(self, file: str) -> None:
        """Take the mark back."""
        self._files = {name: held for name, held in self._files.items() if held != file}

    def is_gone(self, file: str) -> bool:
        """Say whether it is surely gone."""
        return file not in self._files.values()

    def clear(self, file: str) -> None:
        """Nothing is left of it."""
