"""How large SQLite's write-ahead log may grow, and who is told when it does not shrink.

SQLite moves the log into the file after every 1000 pages, and begins it anew once nobody reads from
it: that is the policy. A reader that never ends keeps it from that, and no other setting helps. So
its size is a fact of `landed doctor`, and a log that has grown too large is warned of, again each
time it has doubled.
"""

import logging
from contextlib import suppress
from pathlib import Path

from landed.core.store import Fact

log = logging.getLogger("landed")

LOG_MAX_BYTES = 64 * 1024 * 1024
"""A log larger than this is warned of; one that has shrunk again is cut to this."""

LOOK_EVERY = 256  # commits

_ADVICE = (
    "a program has been reading the file for long, and the log cannot be begun anew until it ends:"
    " look for an open sqlite3 shell, a viewer, a backup"
)


def wal_bytes(path: str) -> int:
    """Return the size of the log beside the file at `path`, 0 where there is none."""
    with suppress(OSError):
        return Path(f"{path}-wal").stat().st_size
    return 0


def wal_fact(path: str) -> Fact:
    """Return the size of the log, for `landed doctor`."""
    size = wal_bytes(path)
    return Fact(name="wal_bytes", value=str(size), ok=size <= LOG_MAX_BYTES, advice=_ADVICE)


class WalWatch:
    """Looks at the log's size from time to time, as commits are written."""

    def __init__(self, path: str) -> None:
        self._path = str(Path(path).resolve())
        self._written = 0
        self._warn_above = LOG_MAX_BYTES

    def wrote(self, commits: int) -> None:
        """Count what was written; warn when it is time to look and the log is too large."""
        self._written += commits
        if self._written < LOOK_EVERY:
            return
        self._written = 0
        size = wal_bytes(self._path)
        if size > self._warn_above:
            log.warning("the log %s-wal has grown to %d bytes: %s", self._path, size, _ADVICE)
            self._warn_above = 2 * size
        elif size <= LOG_MAX_BYTES:
            self._warn_above = LOG_MAX_BYTES
