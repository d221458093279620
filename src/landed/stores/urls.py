"""Opens the store that a URL names."""

import time
from collections.abc import Callable

from landed.core.errors import StoreError
from landed.core.keeping import KeepingStore
from landed.core.onlooker import NOBODY, Wrote


async def open_store(
    url: str,
    *,
    secret: bytes = b"",
    older: tuple[bytes, ...] = (),
    wrote: Wrote = NOBODY.wrote,
    clock: Callable[[], float] = time.time,
) -> KeepingStore:
    """Open the store that a URL names; what was written with an `older` secret stays good.

    `sqlite:///relative.db`, `sqlite:////absolute.db`, `sqlite://:memory:`, or with
    `landed[postgres]` libpq's own `postgresql://user@host/database`. `wrote` is told of each batch
    of commits, `clock` is that of whoever claims and renews here (UTC, seconds since the epoch).
    Raises `StoreError`, with what to do, for any other and where it cannot be opened.
    """
    if url.startswith(("postgresql://", "postgres://")):
        return await _open_postgres(url, secret=secret, older=older, wrote=wrote, clock=clock)
    if not url.startswith("sqlite://"):
        raise StoreError(
            f"{url!r} names no store that is known; use sqlite:///relative.db,"
            " sqlite:////absolute.db, sqlite://:memory: or postgresql://user@host/database"
        )
    from landed.stores.sqlite import open_sqlite

    path = url.removeprefix("sqlite://")
    file = path if path == ":memory:" else path[1:]
    return open_sqlite(file, secret=secret, older=older, wrote=wrote)


async def _open_postgres(
    url: str, *, secret: bytes, older: tuple[bytes, ...], wrote: Wrote, clock: Callable[[], float]
) -> KeepingStore:
    try:
        from landed.stores.postgres import open_postgres
    except ImportError as error:
        raise StoreError("a store in Postgres needs psycopg; install landed[postgres]") from error
    return await open_postgres(url, secret=secret, older=older, wrote=wrote, clock=clock)
