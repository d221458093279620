"""Stores that are slow, that hang, fail, conflict or count: each wraps a real one."""

import asyncio
from collections.abc import Callable
from typing import Any

from landed.core.changes import Changes, Record
from landed.core.errors import StaleWriteError, StoreError
from landed.core.store import Page


class Wrapped:
    """A store that does what the inner one does, but for what a subclass says."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


class SlowStore(Wrapped):
    """Each commit and each load takes a while, as on a busy disk; virtual time."""

    commit_s = 0.1
    load_s = 0.01

    async def commit(self, changes: Changes) -> tuple[Record, ...]:
        await asyncio.sleep(self.commit_s)  # virtual time
        return await self.inner.commit(changes)

    async def load(self, *ids: str) -> tuple[Record, ...]:
        await asyncio.sleep(self.load_s)  # virtual time
        return await self.inner.load(*ids)


class TroubledStore(Wrapped):
    """Commits in trouble: `trouble` sees each unit first, and may raise or never return."""

    def __init__(self, inner: Any, trouble: "Callable[[Changes], Any]") -> None:
        super().__init__(inner)
        self.trouble = trouble

    async def commit(self, changes: Changes) -> tuple[Record, ...]:
        hang = self.trouble(changes)
        if hang is not None:
            await hang
        return await self.inner.commit(changes)


class DozingStore(Wrapped):
    """After the first unit with `event` in it is durable, the process sleeps; virtual time."""

    def __init__(self, inner: Any, event: str, doze_s: float) -> None:
        super().__init__(inner)
        self.event = event
        self.doze_s = doze_s

    async def commit(self, changes: Changes) -> tuple[Record, ...]:
        stored = await self.inner.commit(changes)
        if self.event in events_of(changes):
            self.event = ""
            await asyncio.sleep(self.doze_s)  # virtual time
        return stored


class CountingStore(Wrapped):
    """Remembers which records were loaded, and how."""

    def __init__(self, inner: Any) -> None:
        super().__init__(inner)
        self.loaded: list[str] = []
        self.claimed: list[str] = []
        self.paged = 0

    async def load(self, *ids: str) -> tuple[Record, ...]:
        self.loaded += ids
        return await self.inner.load(*ids)

    async def claim(self, **asked: Any) -> tuple[Record, ...]:
        records = await self.inner.claim(**asked)
        self.claimed += [record.id for record in records]
        return records

    async def session_records(self, **asked: Any) -> tuple[Record, ...]:
        self.paged += 1
        return await self.inner.session_records(**asked)

    async def listed(self, **asked: Any) -> Page:
        return await self.inner.listed(**asked)

    async def open_records(self, **asked: Any) -> tuple[Record, ...]:
        self.paged += 1
        return await self.inner.open_records(**asked)


def events_of(changes: Changes) -> list[str]:
    """Return the names of the events of a unit."""
    return [move.event.name for move in changes.moves]


class Trouble:
    """What goes wrong with commits that contain one of `events`, the first `times` of them."""

    def __init__(self, *events: str, times: int = 10**9) -> None:
        self.events = set(events)
        self.times = times
        self.seen = 0

    def strikes(self, changes: Changes) -> bool:
        if not self.events.intersection(events_of(changes)) or self.seen >= self.times:
            return False
        self.seen += 1
        return True


class Fails(Trouble):
    """The commit is refused, as on a full disk."""

    def __call__(self, changes: Changes) -> None:
        if self.strikes(changes):
            raise StoreError("the disk is full; free some space")


class Hangs(Trouble):
    """The commit never comes back."""

    def __call__(self, changes: Changes) -> Any:
        if self.strikes(changes):
            return asyncio.get_running_loop().create_future()
        return None


class Conflicts(Trouble):
    """Another writer is always quicker."""

    def __call__(self, changes: Changes) -> None:
        if self.strikes(changes):
            after = changes.moves[0].after
            raise StaleWriteError(record=after.id, expected=after.version - 1, found=99)
