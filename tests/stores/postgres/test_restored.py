"""A Postgres that is put back to an earlier time: by a copy of it, and under a process."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from landed.core.errors import RestoredError, StoreError
from landed.core.lease import Lease
from landed.core.value import Confirmed
from landed.runtime.parts import assemble, register
from landed.runtime.runtime import Runtime
from landed.stores.marks import FileMarks
from landed.stores.postgres import open_postgres
from tests.stores.postgres.embedded import Server
from tests.stores.test_restored import Shop, until_reconciled

pytestmark = [pytest.mark.anyio, pytest.mark.services, pytest.mark.fault("X37", "X38")]


def running(store: Any, shop: Shop, mark: Path | None) -> Runtime:
    """A runtime on Postgres, whose lease a test can wait for."""
    return assemble(
        store,
        tools=register(shop.tools()),
        lease=Lease(lease_s=1.0, beat_s=0.2),
        marks=FileMarks(mark) if mark else None,
    )


def copied(server: Server, url: str) -> str:
    """Return the URL of a copy of a database that nobody is connected to."""
    name = f"{server.name(url)}_noon"
    server.execute(server.uri, f"DROP DATABASE IF EXISTS {name}")
    server.execute(server.uri, f"CREATE DATABASE {name} TEMPLATE {server.name(url)}")
    return server.url(name)


@pytest.mark.req("S4-30")
async def test_a_copy_of_the_database_in_its_place_is_noticed_by_the_mark(
    server: Server, url: str, tmp_path: Path
) -> None:
    shop, mark = Shop(tmp_path), tmp_path / "shop.mark"
    async with running(await open_postgres(url), shop, mark) as rt:
        await rt.perform("order", {"what": "tea"})
    noon = copied(server, url)
    async with running(await open_postgres(url), shop, mark) as rt:
        await rt.perform("order", {"what": "milk"})

    async with running(await open_postgres(noon), shop, mark) as rt:
        assert rt.worker.lookout.incarnation.number == 1
        await until_reconciled(rt)
        value = await rt.perform("order", {"what": "bread"})
    assert isinstance(value, Confirmed)
    assert len(shop.orders) == len(set(shop.orders)) == 3


class FailingOver:
    """A connection that is lost, after which a standby answers that had not heard of everything."""

    def __init__(self, primary: Any) -> None:
        self.inner = primary
        self.standby: Any = None

    def __getattr__(self, name: str) -> Any:
        if self.standby is None:
            return getattr(self.inner, name)
        self.inner, self.standby = self.standby, None

        async def lost(*_: object, **__: object) -> None:
            raise StoreError("the connection was lost")

        return lost


async def test_a_standby_that_lost_commits_stops_the_worker_and_the_next_finds_out(
    server: Server, url: str, tmp_path: Path
) -> None:
    """No mark is kept: what the process itself wrote is enough."""
    shop = Shop(tmp_path)
    async with running(await open_postgres(url), shop, None) as rt:
        await rt.perform("order", {"what": "tea"})
    noon = copied(server, url)
    primary, standby = await open_postgres(url), await open_postgres(noon)
    line = FailingOver(primary)
    async with running(line, shop, None) as rt:
        await rt.perform("order", {"what": "milk"})
        line.standby = standby
        with pytest.raises(RestoredError):
            await rt.serve(asyncio.Event())
        with pytest.raises(RestoredError):
            await rt.perform("order", {"what": "bread"})
    await primary.close()

    async with running(await open_postgres(noon), shop, None) as rt:
        assert rt.worker.lookout.incarnation.number == 1
        await until_reconciled(rt)
        await rt.perform("order", {"what": "bread"})
    assert len(shop.orders) == len(set(shop.orders)) == 3
