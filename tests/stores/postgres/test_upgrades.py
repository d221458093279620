"""The same upgrades on Postgres: every version, and an operation in every state."""

from collections.abc import Sequence

import pytest

from landed.core.store import Store
from landed.stores import postgres_opening
from landed.stores.migrate import Migration, migrations
from landed.stores.postgres import open_postgres
from tests.stores.test_upgrades import Opener, check_upgrade

pytestmark = [pytest.mark.anyio, pytest.mark.services, pytest.mark.fault("X41")]


@pytest.fixture
def postgres(url: str, monkeypatch: pytest.MonkeyPatch) -> Opener:
    async def open_at(known: Sequence[Migration]) -> Store:
        monkeypatch.setattr(postgres_opening, "migrations", lambda _: known)
        return await open_postgres(url)

    return open_at


@pytest.mark.parametrize("version", [one.version for one in migrations("postgres")])
async def test_each_version_of_the_schema_in_postgres_is_upgraded_and_recovered(
    version: int, postgres: Opener
) -> None:
    await check_upgrade(postgres, migrations("postgres"), version)
