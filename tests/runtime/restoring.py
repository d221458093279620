"""What the tests of a restored store share: a mark in memory, and a store that is put back."""

from typing import Any

from landed.core.errors import StoreError
from landed.core.incarnation import INCARNATION, Incarnation, Mark, incarnation_from
from landed.stores.driver import driver
from landed.stores.sqlite import open_sqlite
from tests.runtime.rig import Rig


class MemoryMarks:
    """A mark that outlives processes and restores; `broken` makes it unreadable, or unwritable."""

    place = "memory"

    def __init__(self) -> None:
        self.mark: Mark | None = None
        self.written = 0
        self.broken = ""

    async def read(self) -> Mark | None:
        if self.broken == "read":
            raise StoreError("the mark at memory cannot be read")
        return self.mark

    async def write(self, mark: Mark) -> None:
        if self.broken == "write":
            raise StoreError("the mark at memory cannot be written")
        self.written += 1
        self.mark = mark


def backup(rig: Rig) -> Any:
    """Copy what the store holds now, as an online backup does."""
    saved = driver.connect(":memory:", check_same_thread=False)
    base: Any = rig.base
    base._opened.writer.backup(saved)
    return saved


def restore(rig: Rig, saved: Any) -> None:
    """Put a copy back in place of the store: every process is gone by then."""
    base = open_sqlite(":memory:")
    saved.backup(base._opened.writer)
    rig.base = base


def incarnation(rig: Rig) -> Incarnation:
    """Return the incarnation of the store."""

    async def read() -> Incarnation:
        found = await rig.base.open_again().load(INCARNATION)
        return incarnation_from(found[0]) if found else Incarnation()

    return rig._outside(read)
