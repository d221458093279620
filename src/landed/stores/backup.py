"""A copy of a SQLite store, taken while its workers write, and checked before it counts.

SQLite's own online backup reads one moment of the file. The copy gets its name only once it is
whole, linked entry by entry, and on the disk.
"""

import os
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from landed.core.errors import StoreError
from landed.core.journal import GENESIS, verify
from landed.stores.driver import (
    READ_WAIT_MS,
    Connection,
    connect,
    driver,
    pragma,
    require_ours,
    store_error,
)
from landed.stores.queries import SQLITE
from landed.stores.reading import entry, record

UNFINISHED = ".part"

_PAGE = 1000  # entries read at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class Copied:
    """What a copy holds, each of it checked: how many records and journal entries; its bytes."""

    records: int
    entries: int
    size: int


def back_up(path: str, to: str, *, secrets: tuple[bytes, ...] = (b"",)) -> Copied:
    """Copy the store in the file at `path` to a new file `to`, check it, and return what it holds.

    Workers may go on writing: the copy is of one moment. Raises `StoreError` where `to` is there
    already, for a store that is damaged or edited, and for a disk that does not take the copy;
    there is no file `to` then.
    """
    place = Path(to).resolve()
    unfinished = place.with_name(place.name + UNFINISHED)
    if place.exists():
        raise StoreError(f"{to} is there already; a backup replaces nothing: give another name")
    try:
        unfinished.unlink(missing_ok=True)
        try:
            copied = _copy(path, unfinished, secrets)
            os.link(unfinished, place)  # Unlike a rename, it replaces nothing.
        finally:
            unfinished.unlink(missing_ok=True)
        _sync(place.parent)
    except (OSError, driver.Error) as error:
        raise store_error(error, to) from error
    return copied


def _copy(path: str, unfinished: Path, secrets: tuple[bytes, ...]) -> Copied:
    unfinished.touch(mode=Path(path).stat().st_mode & 0o777)
    with closing(connect(path, wait_ms=READ_WAIT_MS)) as source:
        source.execute("PRAGMA query_only = ON")
        require_ours(source, path)
        with closing(connect(str(unfinished), wait_ms=READ_WAIT_MS)) as target:
            source.backup(target)  # In one step, so that it need not begin again when others write.
            target.execute("PRAGMA journal_mode = DELETE")  # All of it is in the one file.
            records, entries = _checked(target, str(unfinished), secrets)
    _sync(unfinished)
    return Copied(records=records, entries=entries, size=unfinished.stat().st_size)


def _checked(connection: Connection, path: str, secrets: tuple[bytes, ...]) -> tuple[int, int]:
    """Return how many records and entries there are, each checked, and all of them one chain."""
    sound = pragma(connection, "integrity_check")
    if sound != "ok":
        raise StoreError(f"{path} is damaged ({sound}); look at the disk, and at an older backup")
    records = 0
    for row in connection.execute("SELECT * FROM loaded"):
        record(row, secrets)
        records += 1
    seq, hash = 0, GENESIS
    while rows := connection.execute(SQLITE.journal_page, (seq, _PAGE)).fetchall():
        for row in rows:
            found = entry(row)
            verify(found, secret=secrets[0], older=secrets[1:])
            if (found.seq, found.prev) != (seq + 1, hash):
                raise StoreError(f"{path}: the journal is not one chain at entry {found.seq}")
            seq, hash = found.seq, found.hash
    return records, seq


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
