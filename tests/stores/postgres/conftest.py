"""A Postgres for the tests of its store: a server for the session, a database for each test."""

from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from landed.stores.postgres import PostgresStore, open_postgres
from tests.stores.postgres.embedded import Server, serving


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    with serving() as running:
        yield running


@pytest.fixture
def url(server: Server) -> Iterator[str]:
    place = server.database()
    yield place
    server.give_back(place)


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
