"""What a Postgres store finds out about itself, for `landed doctor`."""

from landed.core.store import Fact
from landed.stores.postgres_line import Connection, rows
from landed.stores.postgres_queries import POSTGRES


async def facts(connection: Connection) -> tuple[Fact, ...]:
    """Return the facts of an opened store, each asked of the server."""
    (found,) = await rows(connection, POSTGRES.facts, ())
    version, synchronous, fsync, full_pages, is_standby, schema = found
    lost = "a crash would lose acknowledged commits; set it on the server"
    return (
        Fact(name="postgres", value=version, ok=True),
        Fact(name="synchronous", value=synchronous, ok=synchronous != "off", advice=lost),
        Fact(name="fsync", value=fsync, ok=fsync == "on", advice=lost),
        Fact(name="full_pages", value=full_pages, ok=full_pages == "on", advice=lost),
        Fact(
            name="role",
            value="standby" if is_standby else "primary",
            ok=not is_standby,
            advice="a standby cannot be written; connect to the primary",
        ),
        Fact(name="schema", value=str(schema), ok=True),
    )
