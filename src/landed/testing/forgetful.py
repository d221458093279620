"""A store that kept the turns and lost the operations: what a crash leaves of a wrong design."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from landed.core.changes import Changes, Hold, Kind, Record
from landed.core.journal import Entry
from landed.core.plan import At, Place, Plan, plan_from, plan_record
from landed.core.store import Fact, Page, Selection, Store

LOST = frozenset({Kind.OPERATION, Kind.RELEASE})


@dataclass(slots=True, eq=False)
class ForgetfulStore:
    """Shows everything of `inner` but the operations and releases made before it was opened.

    Plans are shown as if their steps had not been started. What is made from then on is kept.
    """

    inner: Store
    made: set[str] = field(default_factory=set[str])

    async def commit(self, changes: Changes) -> tuple[Record, ...]:
        """Write it; a name that something lost still holds is not asked for."""
        self.made.update(move.after.id for move in changes.moves if move.after.version == 1)
        holders = await self.inner.holders(*(hold.name for hold in changes.takes))
        lost = {name for name, holder in holders.items() if await self._is_lost(holder)}
        kept = replace(changes, takes=_without(changes.takes, lost))
        held = await self.inner.holders(*(hold.name for hold in kept.frees))
        frees = tuple(hold for hold in kept.frees if held.get(hold.name) == hold.record)
        return await self.inner.commit(replace(kept, frees=frees))

    async def load(self, *ids: str) -> tuple[Record, ...]:
        """Return what is left of these; here and below."""
        return self._left(await self.inner.load(*ids))

    async def open_records(self, *, tenant: str, session: str, worker: str) -> tuple[Record, ...]:
        """See `load`."""
        return self._left(
            await self.inner.open_records(tenant=tenant, session=session, worker=worker)
        )

    async def session_records(
        self, *, tenant: str, session: str, after: int = 0, limit: int = 1000
    ) -> tuple[Record, ...]:
        """See `load`."""
        records = await self.inner.session_records(
            tenant=tenant, session=session, after=after, limit=limit
        )
        return self._left(records)

    async def listed(
        self, *, tenant: str, of: Selection, after: int = 0, limit: int = 1000
    ) -> Page:
        """See `load`."""
        page = await self.inner.listed(tenant=tenant, of=of, after=after, limit=limit)
        return replace(page, records=self._left(page.records))

    async def journal(
        self, *, after: int = 0, limit: int = 1000, record: str = ""
    ) -> tuple[Entry, ...]:
        """As the inner store; here and below."""
        return await self.inner.journal(after=after, limit=limit, record=record)

    async def holders(self, *names: str) -> Mapping[str, str]:
        """Return who holds these names, of what is left."""
        held = await self.inner.holders(*names)
        return {name: id for name, id in held.items() if not await self._is_lost(id)}

    async def claim(self, *, worker: str, now: float, limit: int = 100) -> tuple[Record, ...]:
        """See `load`."""
        return self._left(await self.inner.claim(worker=worker, now=now, limit=limit))

    async def renew(self, *, worker: str, until: float) -> None:
        """See `journal`."""
        await self.inner.renew(worker=worker, until=until)

    async def retire(self, *, worker: str) -> None:
        """See `journal`."""
        await self.inner.retire(worker=worker)

    async def facts(self) -> tuple[Fact, ...]:
        """See `journal`."""
        return await self.inner.facts()

    async def close(self) -> None:
        """See `journal`."""
        await self.inner.close()

    async def _is_lost(self, id: str) -> bool:
        if id in self.made:
            return False
        return any(record.kind in LOST for record in await self.inner.load(id))

    def _left(self, records: tuple[Record, ...]) -> tuple[Record, ...]:
        kept = (r for r in records if r.kind not in LOST or r.id in self.made)
        return tuple(self._seen(r) if r.kind is Kind.PLAN else r for r in kept)

    def _seen(self, record: Record) -> Record:
        """Return a plan as it reads without the operations that it speaks of."""
        plan = plan_from(record)
        steps = tuple(
            replace(
                step,
                keeps=self._known(step.keeps),
                replaces=self._known(step.replaces),
                corrects=self._known(step.corrects),
            )
            for step in plan.steps
        )
        seen = plan_record(replace(plan, steps=steps, places=self._places(plan)))
        return replace(record, frozen=seen.frozen, changing=seen.changing)

    def _places(self, plan: Plan) -> tuple[Place, ...]:
        return tuple(
            place if step.reads or place.record in self.made else Place(at=At.WAITING)
            for step, place in zip(plan.steps, plan.places, strict=True)
        )

    def _known(self, id: str) -> str:
        return id if id in self.made else ""


def _without(holds: tuple[Hold, ...], names: set[str]) -> tuple[Hold, ...]:
    return tuple(hold for hold in holds if hold.name not in names)
