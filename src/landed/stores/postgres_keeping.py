"""What a Postgres store does for what is over: bodies are let go of; VACUUM FULL has them leave."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Protocol

from landed.core.erased import ERASED
from landed.core.keeping import Kept
from landed.stores.pages import bounded
from landed.stores.postgres_line import Parameters, run
from landed.stores.postgres_queries import SHARED
from landed.stores.postgres_transaction import Begun, Mark, Transactions
from landed.stores.reading import kept

STILL_THERE = (
    "Postgres keeps what was erased in its pages until it uses them again: run VACUUM FULL"
    " landed.journal when no worker writes. Its log, its replicas and its backups keep it until"
    " they are discarded"
)


class Alone(Protocol):
    """Runs what needs the writing connection for itself, in its turn."""

    def __call__(self, act: Callable[[], Awaitable[None]], /) -> Awaitable[None]:
        """Wait for `act`."""
        ...


class PostgresKeeping:
    """A `landed.core.keeping.Keeping`; made by `landed.stores.postgres.PostgresStore.keeping`."""

    def __init__(
        self,
        transactions: Transactions,
        *,
        rows: Callable[[str, Parameters], Awaitable[list[Any]]],
        alone: Alone,
        secrets: tuple[bytes, ...],
    ) -> None:
        self._transactions = transactions
        self._rows = rows
        self._alone = alone
        self._secrets = secrets

    async def sessions(
        self, *, after: tuple[str, str] = ("", ""), limit: int = 1000
    ) -> tuple[tuple[str, str], ...]:
        """Return (tenant, session) of conversations that have records, in order, after one."""
        rows = await self._rows(SHARED.sessions, (*after, bounded(limit)))
        return tuple((tenant, session) for tenant, session in rows)

    async def kept(
        self, *, tenant: str, session: str, after: int = 0, limit: int = 1000
    ) -> tuple[Kept, ...]:
        """Return the records of a session made after journal position `after`, oldest first."""
        parameters = (tenant, session, after, bounded(limit))
        rows = await self._rows(SHARED.session_records, parameters)
        return tuple([kept(row, self._secrets) for row in rows])

    async def let_go(self, *ids: str) -> None:
        """Let those of the records whose latest event is an erasure begin with it."""
        bounded(len(ids) or 1)
        act = partial(self._write, list(ids))
        await self._alone(lambda: self._transactions.run(act))

    async def scrub(self, *, rewrites: bool = False) -> str:
        """Return what is still to be done: only the owner of the server can do it."""
        return STILL_THERE

    async def _write(self, ids: list[str], begun: Begun) -> tuple[None, Mark]:
        for query in (SHARED.begin_with_erasure, SHARED.let_bodies_go):
            await run(begun.connection, query, (ids, ERASED))
        return None, Mark()
