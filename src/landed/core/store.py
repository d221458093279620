"""The seam to durable records: what a store must do, and nothing about how.

There is one writing verb; the rest are reads, `claim` and `renew`. When a change wants a
thirteenth verb, ask which rule is leaking out of core.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from landed.core.changes import Changes, Record
from landed.core.journal import Entry

# The states in which a person is waited for: operations, plans; questions, approvals and cases.
WAITING = ("undecided", "proposed", "open")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One thing that a store found out about itself, for `landed doctor` and for telemetry.

    `numbers` are what is counted or measured in it, by name: plain values to compute with.
    """

    name: str
    value: str
    ok: bool
    advice: str = ""
    numbers: Mapping[str, float] = field(default_factory=dict[str, float])


class Selection(StrEnum):
    """What of a tenant's records `Store.listed` is asked for, whatever their kind."""

    WAITING = "waiting"  # In one of the `WAITING` states, whoever holds it; oldest first by `made`.
    OPEN = "open"  # Something may still have to be done with it; oldest first by `made`.
    RECENT = "recent"  # All of them; newest first by `last`.


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Some of the records that were asked for, and the position to go on from.

    `next` is what `after` has to be for the page behind this one, 0 where nothing is left. A page
    that is short, or empty, is not the last one while `next` is not 0.
    """

    records: tuple[Record, ...]
    next: int


class Store(Protocol):
    """Durable records and their journal. Every method may raise `StoreError`.

    `landed.testing.check_store` is the contract as a test suite; run it over your own.
    """

    async def commit(self, changes: Changes) -> tuple[Record, ...]:
        """Write the unit whole and return the moved records as stored, once it is durable.

        Raises `StaleWriteError` or `LeaseLostError`, as `landed.core.changes.apply` does; nothing
        was written then. A caller that is cancelled while it waits does not undo the unit.
        """
        ...

    async def load(self, *ids: str) -> tuple[Record, ...]:
        """Return those of the records that exist, in the order asked for.

        Raises `StoreError` when a record does not agree with its journal (an edited row).
        """
        ...

    async def open_records(self, *, tenant: str, session: str, worker: str) -> tuple[Record, ...]:
        """Return the open records of a session that `worker` holds, oldest first."""
        ...

    async def session_records(
        self, *, tenant: str, session: str, after: int = 0, limit: int = 1000
    ) -> tuple[Record, ...]:
        """Return the records of a session made after journal position `after`, oldest first."""
        ...

    async def listed(
        self, *, tenant: str, of: Selection, after: int = 0, limit: int = 1000
    ) -> Page:
        """Return a page of a tenant's records, in the order that `of` says, with the way on.

        `after` is the `next` of the page before, 0 for the first. What it costs depends on `limit`
        alone, not on how much is finished: `RECENT` looks at a bounded number of journal entries,
        so where others write a lot its page may be short. Read on from `next` for the rest.
        """
        ...

    async def journal(
        self, *, after: int = 0, limit: int = 1000, record: str = ""
    ) -> tuple[Entry, ...]:
        """Return journal entries after position `after`, in order; of one record if named."""
        ...

    async def holders(self, *names: str) -> Mapping[str, str]:
        """Return which record holds each of those names that are held."""
        ...

    async def claim(self, *, worker: str, now: float, limit: int = 100) -> tuple[Record, ...]:
        """Take over up to `limit` open records that no living worker holds; oldest first.

        The tenants share a claim equally, what one leaves of its share goes to the others, and in
        each the oldest goes first. Where there are more tenants than `limit`, the next claim begins
        with those that this one did not reach. Fewer than `limit` are returned only where no more
        is left, or others are taking it.

        A worker is dead when its lease is over at `now`, or when its store can tell that its
        process is gone. All records claimed by one call get the same new epoch; neither their
        version nor the journal changes, for a claim is not an event of theirs.
        """
        ...

    async def renew(self, *, worker: str, until: float) -> None:
        """Register the worker, or extend its lease to `until` (UTC, seconds since the epoch).

        Raises `LeaseLostError` when the worker's registration was ended by another's claim.
        """
        ...

    async def retire(self, *, worker: str) -> None:
        """End the worker's registration: what it still holds may be claimed at once."""
        ...

    async def facts(self) -> tuple[Fact, ...]:
        """Return what the store found out about its own durability, version and place.

        Also what is open in it, what waits for a person, and what has been in doubt longest, each
        with `numbers` (`landed.core.census`); reading them costs no more for what is finished.
        """
        ...

    async def close(self) -> None:
        """Finish what was handed to `commit` and let go of files and connections."""
        ...
