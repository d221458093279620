"""What a Postgres store finds out about itself, for `landed doctor`."""

from landed.core.census import COUNTED_MAX, IN_DOUBT, Counted
from landed.core.changes import Kind
from landed.core.store import Fact
from landed.stores.postgres_line import Connection, rows
from landed.stores.postgres_queries import POSTGRES, SHARED

_LOST = "a crash would lose acknowledged commits; set it on the server"
_KEPT = ("on", "remote_apply")  # What waits for the disks of all who are to be waited for.


async def facts(connection: Connection) -> tuple[Fact, ...]:
    """Return the facts of an opened store, each asked of the server."""
    (found,) = await rows(connection, POSTGRES.facts, ())
    version, synchronous, fsync, full_pages, is_standby, waited_for, followers, schema = found
    return (
        Fact(name="postgres", value=version, ok=True),
        _synchronous(synchronous),
        _fail_over(waited_for, followers),
        Fact(name="fsync", value=fsync, ok=fsync == "on", advice=_LOST),
        Fact(name="full_pages", value=full_pages, ok=full_pages == "on", advice=_LOST),
        Fact(
            name="role",
            value="standby" if is_standby else "primary",
            ok=not is_standby,
            advice="a standby cannot be written; connect to the primary",
        ),
        Fact(name="schema", value=str(schema), ok=True),
    )


def _synchronous(level: str) -> Fact:
    lost = "a fail-over" if level in ("local", "remote_write") else "a crash"
    advice = f"{lost} would lose acknowledged commits; set it to on or remote_apply"
    return Fact(name="synchronous", value=level, ok=level in _KEPT, advice=advice)


def _fail_over(waited_for: str, followers: int) -> Fact:
    """Say whether a commit is on another server before it is acknowledged."""
    value = f"{followers} follow, none is waited for" if followers else "nobody follows"
    if waited_for:
        value = f"waits for {waited_for}"
    advice = (
        "a fail-over to one of them would lose the latest acknowledged commits; set "
        "synchronous_standby_names, unless they are only read from"
    )
    return Fact(name="fail_over", value=value, ok=bool(waited_for or not followers), advice=advice)


async def counts(connection: Connection) -> tuple[list[Counted], list[Counted], list[str]]:
    """Return what is open, what waits, and the id of what is in doubt longest, for a census."""
    bound = (COUNTED_MAX,)
    doubts = (*bound, Kind.OPERATION, list(IN_DOUBT))
    found = await rows(connection, SHARED.oldest_open, doubts)
    return (
        await rows(connection, SHARED.open_counts, bound),
        await rows(connection, SHARED.waiting_counts, bound),
        [str(id) for (id,) in found],
    )
