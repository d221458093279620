"""Postgres does for what is over what SQLite does; the bytes on its disk are its owner's part."""

from collections.abc import Awaitable, Callable

import pytest

from landed.stores.postgres import PostgresStore
from landed.stores.postgres_keeping import STILL_THERE
from tests.stores.keeping_contract import KEEPING, erase, heard

pytestmark = [pytest.mark.anyio, pytest.mark.services]

Opened = Callable[[], Awaitable[PostgresStore]]


@pytest.mark.parametrize("name", KEEPING)
async def test_the_store_keeps_the_contract_of_keeping(name: str, opened: Opened) -> None:
    await KEEPING[name](await opened())


async def test_what_the_owner_of_the_server_has_to_do_is_said(opened: Opened) -> None:
    store = await opened()
    await erase(store, await heard(store, "in-1"))
    assert await store.keeping().scrub() == STILL_THERE
    assert "VACUUM FULL" in STILL_THERE
