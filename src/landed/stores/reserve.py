"""Room that is kept beside a SQLite file, so that what is under way can end on a full disk.

A full disk refuses new work, and that costs nothing. But what a send came back with is a fact that
exists nowhere else: while it cannot be written the operation stays `sent`, and a process that ends
then leaves it in doubt. So a file is kept for nothing but to be removed. What it gives up is for
units that begin no operation, plan or input; these are refused until it could be made again.
"""

import logging
import os
from pathlib import Path

from landed.core.store import Fact

log = logging.getLogger("landed")

RESERVE_BYTES = 4 * 1024 * 1024
"""Bytes kept beside a file: a few hundred outcomes."""


class Reserve:
    """The file `<path>-reserve`; `is_spent` once it was given up, or could not be made."""

    def __init__(self, path: str) -> None:
        self._path = Path(f"{Path(path).resolve()}-reserve")
        self.is_spent = False

    def keep(self) -> bool:
        """Make the file where it is not there in full; return whether it is."""
        try:
            with self._path.open("ab") as file:
                _allocate(file.fileno())
        except OSError:
            self._path.unlink(missing_ok=True)
            self.is_spent = True
        else:
            self.is_spent = False
        return not self.is_spent

    def spend(self) -> None:
        """Give the room up."""
        if not self.is_spent:
            log.warning(
                "the disk of %s is full: what is under way is still written, nothing new is begun;"
                " free some space",
                self._path,
            )
        self.is_spent = True
        self._path.unlink(missing_ok=True)

    def fact(self) -> Fact:
        """Return whether the room is there, for `landed doctor`."""
        return Fact(
            name="reserve",
            value="none" if self.is_spent else f"{RESERVE_BYTES} bytes",
            ok=not self.is_spent,
            advice="the disk is full, or almost; what comes back could not be written: free space",
        )


def _allocate(file: int) -> None:
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, 0, RESERVE_BYTES)
    else:
        os.write(file, bytes(max(0, RESERVE_BYTES - os.fstat(file).st_size)))
