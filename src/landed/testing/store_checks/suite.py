"""How the checks of a store are named and run, and what they write."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from landed.core.changes import Changes, Kind, Move, Record
from landed.core.errors import LeaseLostError, StaleWriteError
from landed.core.event import Event
from landed.core.store import Store

FAR = 1e12
"""A lease that is over in no check (UTC, seconds since the epoch)."""


class NotApplicableError(Exception):
    """The check needs what its maker does not offer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Maker:
    """Where a check gets its stores from; see `landed.testing.check_store.check_store`."""

    make: Callable[[], Awaitable[Store]]
    again: Callable[[Store], Awaitable[Store]] | None = None
    secret: bytes = b""


Check = Callable[[Maker], Awaitable[None]]
OnStore = Callable[[Store], Awaitable[None]]
OnHandles = Callable[[Store, Store], Awaitable[None]]

CHECKS: dict[str, Check] = {}
"""Every check by name, in the order in which they were defined."""


def check_maker(function: Check) -> Check:
    """Enter a check that makes its stores itself."""
    CHECKS[function.__name__] = function
    return function


def check(function: OnStore) -> OnStore:
    """Enter a check that gets a new store."""

    async def run(maker: Maker) -> None:
        store = await maker.make()
        try:
            await function(store)
        finally:
            await store.close()

    CHECKS[function.__name__] = run
    return function


def check_handles(function: OnHandles) -> OnHandles:
    """Enter a check that gets two handles on one new store."""

    async def run(maker: Maker) -> None:
        if maker.again is None:
            raise NotApplicableError
        first = await maker.make()
        second = await maker.again(first)
        try:
            await function(first, second)
        finally:
            await second.close()
            await first.close()

    CHECKS[function.__name__] = run
    return function


def made(
    id: str,
    *,
    worker: str = "w",
    open: bool = True,
    tenant: str = "t",
    session: str = "s",
    state: str = "recorded",
) -> Move:
    """Return the first move of a new operation."""
    record = Record(
        id=id,
        kind=Kind.OPERATION,
        tenant=tenant,
        session=session,
        state=state,
        version=1,
        epoch=0,
        worker=worker,
        open=open,
        frozen={"tool": "book", "arguments": {"day": "Sat", "people": 4}},
        changing={},
    )
    return Move(after=record, event=Event(name=state, record=id, at=1.5))


def moved(record: Record, state: str, *, open: bool = True) -> Move:
    """Return the next move of a record."""
    version = record.version + 1
    after = replace(record, state=state, version=version, open=open, changing={"state": state})
    return Move(after=after, event=Event(name=state, record=record.id, at=2.5))


async def inserted(store: Store, id: str, *, worker: str = "w") -> Record:
    """Commit a new operation and return it as stored."""
    (record,) = await store.commit(Changes(moves=(made(id, worker=worker),)))
    return record


async def refusal(store: Store, changes: Changes) -> StaleWriteError | LeaseLostError:
    """Commit what must be refused, and return how it was."""
    try:
        await store.commit(changes)
    except (StaleWriteError, LeaseLostError) as error:
        return error
    raise AssertionError(f"{changes} was written, and should have been refused")


def demand_stale(error: Exception, *, record: str = "", expected: int = 0, found: int = 0) -> None:
    """Demand a `StaleWriteError` about a record, with these versions."""
    assert isinstance(error, StaleWriteError), f"StaleWriteError expected, not {error!r}"
    assert (error.record, error.expected, error.found) == (record, expected, found), str(error)
