"""Who holds which open records on Postgres: registrations by lease, and the take-over.

There is no file that ends with a process, so only the end of a lease, or of the registration, says
that a worker is gone. Of two workers with one name the later registration stands; the earlier is
told so at its next heartbeat. Leases are kept in the server's time: by how much the caller's clock
differs from it is measured in the same transaction, so that a clock that is an hour off takes over
nothing early and holds nothing long.
"""

import secrets
from dataclasses import replace
from functools import partial

from landed.core.changes import Record
from landed.core.errors import LeaseLostError, StoreError
from landed.stores.fair import Left, Picking, Turns
from landed.stores.postgres_line import Settings, rows, run
from landed.stores.postgres_queries import POSTGRES, SHARED
from landed.stores.postgres_transaction import Begun, Mark, Transactions
from landed.stores.reading import record


class Claims:
    """The workers that began through one store, and what they may take over."""

    def __init__(self, transactions: Transactions, settings: Settings) -> None:
        self._transactions = transactions
        self._settings = settings
        self._own = secrets.token_hex(8)  # Marks the registrations that were made here.
        self._registered: set[str] = set()
        self._turns = Turns()
        self._edited: set[str] = set()
        self._unheard: dict[str, tuple[int, list[str]]] = {}

    async def renew(self, worker: str, until: float) -> None:
        """Enter the worker, or extend its lease; raises `LeaseLostError` when that was ended."""
        if worker not in self._registered:
            await self._transactions.run(partial(self._enter, worker, until))
            self._registered.add(worker)
        elif not await self._transactions.run(partial(self._extend, worker, until)):
            self._registered.discard(worker)
            raise LeaseLostError(record=f"worker {worker}", held=0, found=0)

    async def retire(self, *workers: str) -> None:
        """End the registrations of workers that began here."""
        await self._transactions.run(partial(self._remove, workers))
        self._registered.difference_update(workers)

    async def retire_all(self) -> None:
        """End the registration of every worker that began here."""
        if self._registered:
            await self.retire(*self._registered)

    async def claim(self, worker: str, now: float, limit: int) -> tuple[Record, ...]:
        """Take over what no living worker holds; clear away workers that are gone.

        With it comes what the call before took over, where that call never heard whether it did.
        """
        if worker in self._unheard:
            took = await self._transactions.run(partial(self._took, worker, *self._unheard[worker]))
            del self._unheard[worker]
            if took:
                return took
        taken = await self._transactions.run(partial(self._take_over, worker, now, limit))
        self._unheard.pop(worker, None)
        return taken

    async def _enter(self, worker: str, until: float, begun: Begun) -> tuple[None, Mark]:
        # What an earlier worker of that name held is decided by claim and epoch, never by name.
        await run(begun.connection, SHARED.disown, (worker,))
        until += await self._shift_s(begun)
        await run(begun.connection, SHARED.register_worker, (worker, until, self._own))
        return None, Mark()

    async def _extend(self, worker: str, until: float, begun: Begun) -> tuple[int, Mark]:
        until += await self._shift_s(begun)
        renewed = await run(begun.connection, POSTGRES.renew, (until, worker, self._own))
        return renewed.rowcount, Mark()

    async def _remove(self, workers: tuple[str, ...], begun: Begun) -> tuple[None, Mark]:
        await run(begun.connection, POSTGRES.retire, (list(workers), self._own))
        return None, Mark()

    async def _take_over(
        self, worker: str, now: float, limit: int, begun: Begun
    ) -> tuple[tuple[Record, ...], Mark]:
        connection = begun.connection
        now += await self._shift_s(begun)
        owners = await rows(connection, SHARED.owners, (worker,))
        gone = [name for name, until, _ in owners if until is None]
        over = sorted(name for name, until, _ in owners if until is not None and until <= now)
        if over:
            gone += [name for (name,) in await rows(connection, POSTGRES.lock_gone, (over, now))]
        found: list[Record] = []
        if gone:
            found = await self._intact(await self._pick(gone, limit, begun), begun)
        epoch = 0
        if found:
            ((_, (epoch,)),) = await rows(connection, POSTGRES.draw, (0, 1))
            ids = [one.id for one in found]
            self._unheard[worker] = (epoch, ids)
            await run(connection, SHARED.claim_records, (worker, epoch, ids))
        await run(connection, POSTGRES.remove_idle, (worker, now))
        return tuple(replace(one, worker=worker, epoch=epoch) for one in found), Mark()

    async def _took(
        self, worker: str, epoch: int, ids: list[str], begun: Begun
    ) -> tuple[tuple[Record, ...], Mark]:
        """Return which of these that claim did take over, and nobody has moved to others since."""
        every = await self._intact(ids, begun)
        theirs = (worker, epoch, True)
        return tuple(one for one in every if (one.worker, one.epoch, one.open) == theirs), Mark()

    async def _shift_s(self, begun: Begun) -> int:
        """Return by how many seconds the server's clock is ahead of the caller's."""
        ((there,),) = await rows(begun.connection, POSTGRES.time, ())
        # In whole seconds, so that what it takes to ask moves nothing between two machines.
        return round(float(there) - self._settings.clock())

    async def _pick(self, gone: list[str], limit: int, begun: Begun) -> list[str]:
        """Return what is taken over, fairly between the tenants."""
        found: list[str] = []
        for since in dict.fromkeys((self._turns.since, "")):
            asked = (since, gone, limit + 1)
            every = await rows(begun.connection, SHARED.tenants_left, asked)
            found += [tenant for (tenant,) in every]
        picking = Picking(self._turns.take(found, limit), limit)
        while picking.take(await self._left(gone, picking.tenants, picking.share, begun)):
            continue
        return picking.picked

    async def _left(
        self, gone: list[str], tenants: list[str], share: int, begun: Begun
    ) -> list[Left]:
        """Return what these workers hold of each tenant, past the edited ones, oldest first."""
        asked = (gone, tenants, share + len(self._edited))
        found = await rows(begun.connection, POSTGRES.lock_claimable, asked)
        return [row for row in found if row[0] not in self._edited]

    async def _intact(self, ids: list[str], begun: Begun) -> list[Record]:
        """Leave out edited records: nobody may act on them, and they must stop nobody else."""
        found: list[Record] = []
        for row in await rows(begun.connection, SHARED.load, (ids,)):
            try:
                found.append(record(row, self._settings.secrets))
            except StoreError:
                self._edited.add(row[0])
        return sorted(found, key=lambda one: one.made)
