"""How a Postgres store is opened: what is refused, and bringing its schema up to date.

Openers queue at one lock that ends with their transaction. Whoever finds the schema up to date
changes nothing, so that a user who may not create tables can work.
"""

import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from landed.core.errors import StoreError
from landed.core.journal import GENESIS, verify
from landed.stores.migrate import Migration, migrations, require_writer
from landed.stores.postgres_facts import facts
from landed.stores.postgres_line import (
    DRIVER_ERRORS,
    Connection,
    Line,
    Settings,
    rows,
    run,
    store_error,
)
from landed.stores.postgres_queries import POSTGRES
from landed.stores.reading import entry

log = logging.getLogger("landed")

_OPENERS = 0x6C616E646564  # "landed": the key of the lock at which openers queue.

_LEDGER = """
CREATE SCHEMA IF NOT EXISTS landed;
CREATE TABLE IF NOT EXISTS landed.migration (
    version BIGINT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    checksum TEXT NOT NULL,
    min_writer BIGINT NOT NULL
)
"""


async def open_line(settings: Settings) -> tuple[Line, str]:
    """Connect and prepare the schema; return the line and the link that a new chain starts from.

    Raises `StoreError`, with what to do; nothing was changed then.
    """
    line = Line(settings)
    try:
        connection = await line.connected()
        known = migrations("postgres")
        await _require_durable(connection, settings)
        async with _waiting_in_bounds(connection, settings):
            is_current = await _is_current(connection, known, settings)
        if not is_current:
            async with _waiting_in_bounds(connection, settings):
                await _migrate(connection, known, settings)
        for fact in await facts(connection):
            if not fact.ok:
                log.warning("%s: %s: %s: %s", settings.place, fact.name, fact.value, fact.advice)
        return line, await _newest_link(connection, settings)
    except DRIVER_ERRORS as error:
        line.drop()
        raise store_error(error, settings.place) from error
    except BaseException:
        line.drop()
        raise


@asynccontextmanager
async def _waiting_in_bounds(connection: Connection, settings: Settings) -> AsyncGenerator[None]:
    async with connection.transaction():
        wait_ms = int(settings.lock_wait_max_s * 1000)
        await run(connection, f"SET LOCAL lock_timeout = {wait_ms}")
        yield


async def _require_durable(connection: Connection, settings: Settings) -> None:
    found = await rows(connection, "SELECT current_setting('synchronous_commit')", ())
    if found[0][0] == "off":
        raise StoreError(
            f"{settings.place} has synchronous_commit=off: a crash would lose commits that were "
            "told as durable; set it to on for this database or user"
        )


async def _is_current(
    connection: Connection, known: Sequence[Migration], settings: Settings
) -> bool:
    there = await rows(connection, "SELECT to_regclass('landed.migration') IS NOT NULL", ())
    return bool(there[0][0]) and not await _missing(connection, known, settings)


async def _missing(
    connection: Connection, known: Sequence[Migration], settings: Settings
) -> list[Migration]:
    query = "SELECT version, checksum, min_writer FROM landed.migration"
    applied = {version: row for version, *row in await rows(connection, query, ())}
    newest = known[-1].version
    for version, (_, min_writer) in applied.items():
        if version > newest:
            require_writer(min_writer, newest=newest, path=settings.place)
    for migration in known:
        row = applied.get(migration.version)
        if row is not None and row[0] != migration.checksum:
            raise StoreError(
                f"migration {migration.version} ({migration.name}) is not the one that was applied "
                f"to {settings.place}; install the release of landed that made its schema"
            )
    return [migration for migration in known if migration.version not in applied]


async def _migrate(connection: Connection, known: Sequence[Migration], settings: Settings) -> None:
    await run(connection, f"SELECT pg_advisory_xact_lock({_OPENERS})")
    await run(connection, _LEDGER)
    # Each writer reads who may write first thing in its transaction. So this waits for those who
    # found that they may, and those who come find out when it is over.
    await run(connection, "LOCK TABLE landed.migration IN ACCESS EXCLUSIVE MODE")
    for migration in await _missing(connection, known, settings):
        await run(connection, migration.sql)
        await run(
            connection,
            "INSERT INTO landed.migration (version, name, checksum, min_writer)"
            " VALUES ($1, $2, $3, $4)",
            (migration.version, migration.name, migration.checksum, migration.min_writer),
        )


async def _newest_link(connection: Connection, settings: Settings) -> str:
    found = await rows(connection, POSTGRES.newest, ())
    if not found:
        return GENESIS
    newest = entry(found[0])
    try:
        verify(newest, secret=settings.secret, older=settings.older)
    except StoreError:
        raise StoreError(
            f"the journal of {settings.place} does not end in a link of this secret; open it with "
            "the secret that it was written with. If that is the one, its end was edited"
        ) from None
    return newest.hash
