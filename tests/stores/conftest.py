"""What the tests of the stores share: asyncio, a path of their own, and stores that get closed."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from landed.stores.sqlite import SqliteStore, open_sqlite


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "agent.db")


@pytest.fixture
async def opened(path: str) -> AsyncIterator[Callable[..., SqliteStore]]:
    """Open stores on one file (or another path), and close them in the end."""
    stores: list[SqliteStore] = []

    def open_one(place: str = path, **settings: object) -> SqliteStore:
        stores.append(open_sqlite(place, **settings))  # type: ignore[arg-type]
        return stores[-1]

    yield open_one
    for store in reversed(stores):
        await store.close()


@pytest.fixture
def store(opened: Callable[..., SqliteStore]) -> SqliteStore:
    return opened()
