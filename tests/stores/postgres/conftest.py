"""Stores on Postgres for the tests of it, which get closed."""

from collections.abc import AsyncIterator, Callable

import pytest

from landed.stores.postgres import PostgresStore, open_postgres


@pytest.fixture
async def opened(url: str) -> AsyncIterator[Callable]:
    """Open stores on one database (or another URL), and close them in the end."""
    stores: list[PostgresStore] = []

    async def open_one(place: str = url, **settings: object) -> PostgresStore:
        stores.append(await open_postgres(place, **settings))  # type: ignore[arg-type]
        return stores[-1]

    yield open_one
    for store in reversed(stores):
        await store.close()
