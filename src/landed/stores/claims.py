"""Who holds which open records: registrations, and the take-over of what nobody living holds."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import product

from landed.core.changes import Record
from landed.core.errors import LeaseLostError, StoreError
from landed.stores.driver import Row
from landed.stores.fair import Left, Picking, Turns
from landed.stores.queries import SQLITE, many
from landed.stores.reading import record
from landed.stores.transaction import Writer
from landed.stores.unit import Head
from landed.stores.workers import Liveness


class Claims:
    """The workers that began through one store, and what they may take over."""

    def __init__(self, writer: Writer, liveness: Liveness, *, secrets: tuple[bytes, ...]) -> None:
        self._writer = writer
        self._liveness = liveness
        self._secrets = secrets
        self._files: dict[str, str] = {}  # Of the workers that live here.
        self._registered: set[str] = set()
        self._turns = Turns()
        self._edited: set[str] = set()

    def renew(self, worker: str, until: float, wait: bool) -> None:
        """Enter the worker, or extend its lease; raises `LeaseLostError` when that was ended."""
        if worker in self._registered:
            self._writer.run(partial(self._extend, worker, until), wait=wait)
        else:
            self._writer.run(partial(self._enter, worker, until), wait=wait)
            self._registered.add(worker)

    def retire(self, worker: str, wait: bool) -> None:
        """End the worker's registration and its life here."""
        file = self._files.get(worker, "")
        self._writer.run(partial(self._leave, worker, file), wait=wait)
        self._registered.discard(worker)
        if file:
            self.end(worker)
            self._liveness.clear(file)

    def claim(self, worker: str, now: float, limit: int, wait: bool) -> tuple[Record, ...]:
        """Take over what no living worker holds; clear away workers that are gone."""
        write = partial(self._take_over, worker, now, limit)
        taken, files = self._writer.run(write, wait=wait)
        for file in files:
            self._liveness.clear(file)
        return taken

    def end(self, worker: str) -> None:
        """End the life of a worker that began here: what it holds may be claimed."""
        if file := self._files.pop(worker, ""):
            self._liveness.end(file)

    def bury(self, worker: str) -> None:
        """Take the worker of that name for dead, also one that began at another handle."""
        self.end(worker)
        self._liveness.end(self._liveness.file(worker))

    def end_all(self) -> None:
        """End the life of every worker that began here."""
        for worker in list(self._files):
            self.end(worker)

    def _enter(self, worker: str, until: float, head: Head) -> None:
        if worker not in self._files:
            self._files[worker] = self._liveness.begin(worker)
        # What an earlier worker of that name held is decided by claim and epoch, never by name.
        self._writer.connection.execute(SQLITE.disown, (worker,))
        entry = (worker, until, self._files[worker])
        self._writer.connection.execute(SQLITE.register_worker, entry)

    def _extend(self, worker: str, until: float, head: Head) -> None:
        # Another worker of that name may stand in its place: then this is a heartbeat of the dead.
        entry = (until, worker, self._files.get(worker, ""))
        renewed = self._writer.connection.execute(SQLITE.renew_worker, entry).rowcount
        if not renewed:
            self._registered.discard(worker)
            self.end(worker)
            raise LeaseLostError(record=f"worker {worker}", held=0, found=0)

    def _leave(self, worker: str, file: str, head: Head) -> None:
        self._writer.connection.execute(SQLITE.remove_worker, (worker, file))

    def _remove(self, workers: list[str], head: Head) -> None:
        self._writer.connection.execute(SQLITE.remove_workers, (many(workers),))

    def _take_over(
        self, worker: str, now: float, limit: int, head: Head
    ) -> tuple[tuple[Record, ...], list[str]]:
        execute = self._writer.connection.execute
        owners: list[Row] = execute(SQLITE.owners, (worker,)).fetchall()
        gone = [name for name, until, file in owners if self._is_dead(until, file, now)]
        found = self._intact(self._pick(gone, limit)) if gone else []
        epoch = head.epoch
        if found:
            epoch = self._writer.draw_epoch(head)
            execute(SQLITE.claim_records, (worker, epoch, many(one.id for one in found)))
        idle = [
            (name, file)
            for name, _, file in execute(SQLITE.idle_workers, (worker,)).fetchall()
            if name in gone or self._liveness.is_gone(file)
        ]
        if idle:
            self._remove([name for name, _ in idle], head)
        taken = tuple(replace(one, worker=worker, epoch=epoch) for one in found)
        return taken, [file for _, file in idle]

    def _is_dead(self, until: float | None, file: str | None, now: float) -> bool:
        if until is None or file is None:
            return True  # Not registered.
        return until <= now or self._liveness.is_gone(file)

    def _pick(self, gone: list[str], limit: int) -> list[str]:
        """Return what is taken over, fairly between the tenants."""
        execute = self._writer.connection.execute
        found: list[str] = []
        for since in dict.fromkeys((self._turns.since, "")):
            every = execute(SQLITE.tenants_left, (since, many(gone), limit + 1))
            found += [tenant for (tenant,) in every]
        picking = Picking(self._turns.take(found, limit), limit)
        while picking.take(self._left(gone, picking.tenants, picking.share)):
            continue
        return picking.picked

    def _left(self, gone: list[str], tenants: list[str], share: int) -> Iterator[Left]:
        """Yield what these workers hold of each tenant, past the edited ones, oldest first."""
        execute = self._writer.connection.execute
        for tenant, worker in product(tenants, gone):
            rows = execute(SQLITE.claimable, (worker, tenant, share + len(self._edited)))
            yield from (row for row in rows if row[0] not in self._edited)

    def _intact(self, ids: list[str]) -> list[Record]:
        """Leave out edited records: nobody may act on them, and they must stop nobody else."""
        found: list[Record] = []
        for row in self._writer.connection.execute(SQLITE.load, (many(ids),)):
            try:
                found.append(record(row, self._secrets))
            except StoreError:
                self._edited.add(row[0])
        return sorted(found, key=lambda one: one.made)
