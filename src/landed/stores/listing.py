"""Which records a page of a listing holds: the queries that find their ids, for every store.

Each way of listing is a generator that yields one query after the other, is sent its rows, and
returns the ids with the position to go on from; so one flow runs in both stores, which alone know
how to ask. That is the way of httpx's `Auth.auth_flow`.
"""

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from heapq import merge
from itertools import islice
from typing import Any, TypeAlias

from landed.core.store import Selection
from landed.stores.queries import Queries

LOOKED_MAX = 1_000
"""Journal entries that one page of what is recent looks at, or four for each record asked for."""

_ENTRIES_PER_RECORD = 4
_NEWEST = 2**63 - 1

Rows: TypeAlias = "list[Any]"
Found: TypeAlias = "tuple[list[str], int]"  # The ids, and where the next page begins.
Asking: TypeAlias = "Generator[Query, Rows, Found]"


@dataclass(frozen=True, slots=True)
class Query:
    """One query by its text, and what it is handed."""

    text: str
    parameters: tuple[object, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What one page is asked for, and the queries in the dialect of the store."""

    queries: Queries
    tenant: str
    after: int
    limit: int


def found(of: Selection, asked: Asked) -> Asking:
    """Return the queries that find one page: send each its rows; what is returned are the ids."""
    return _WAYS[of](asked)


def _waiting(asked: Asked) -> Asking:
    rows = yield Query(asked.queries.waiting, (asked.tenant, asked.after, asked.limit))
    return _page(rows, asked.limit)


def _open(asked: Asked) -> Asking:
    """Take the oldest of what each worker holds: there is no index over all of them by age."""
    each: list[Rows] = []
    for (worker,) in (yield Query(asked.queries.open_workers, ())):
        wanted = (worker, asked.tenant, asked.after, asked.limit)
        each.append((yield Query(asked.queries.open_of, wanted)))
    return _page(list(islice(merge(*each), asked.limit)), asked.limit)


def _page(rows: Rows, limit: int) -> Found:
    following = rows[-1][0] if len(rows) == limit else 0
    return [id for _, id in rows], following


def _recent(asked: Asked) -> Asking:
    """Go back through the journal until enough is found, or enough was looked at."""
    ids: list[str] = []
    before, stride = asked.after or _NEWEST, _ENTRIES_PER_RECORD * asked.limit
    left = max(LOOKED_MAX, stride)
    while left > 0:
        count = min(stride, left)
        rows = yield Query(asked.queries.recent, (before, count, asked.tenant))
        for before, id in rows:
            if id is not None:
                ids.append(id)
            if len(ids) == asked.limit:
                return ids, before
        if len(rows) < count:
            return ids, 0
        left -= count
    return ids, before


_WAYS: Mapping[Selection, Callable[[Asked], Asking]] = {
    Selection.WAITING: _waiting,
    Selection.OPEN: _open,
    Selection.RECENT: _recent,
}
